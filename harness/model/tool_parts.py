"""Parts of a scripted reply that request actions: tools, searches, a reviewer's answer.

`tools` chooses the server's tool and its arguments.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Tag, model_validator

from harness.model.strict import Strict


class RunBody(Strict):
    """A shell command; `escalate` requests to run it outside the sandbox, with a `reason`.

    `tty` requests a terminal, and `background_after` to let the command run on in the background
    after so many seconds, if the server's tool can do that.
    """

    command: str
    tty: bool = False
    background_after: float = Field(default=10, gt=0, le=10)
    escalate: bool = False
    reason: str | None = None

    @model_validator(mode="after")
    def _check_reason(self) -> "RunBody":
        if self.reason is not None and not self.escalate:
            raise ValueError("reason goes with escalate: true")
        return self


class Run(Strict):
    """`run: "ls"`, or `run: {command: "touch x", escalate: true, reason: "..."}`."""

    run: Annotated[
        RunBody,
        BeforeValidator(lambda value: {"command": value} if isinstance(value, str) else value),
    ]


class Replacement(Strict):
    """One change within a file: the lines `old` become the lines `new`."""

    old: str
    new: str


class PatchBody(Strict):
    """Changes of files: path -> content for `add`, paths to `delete`, path -> lines to `update`."""

    add: dict[str, str] = Field(default_factory=dict[str, str])
    update: dict[str, Replacement] = Field(default_factory=dict[str, Replacement])
    delete: list[str] = Field(default_factory=list[str])
    text: str | None = None

    @model_validator(mode="after")
    def _check_changes(self) -> "PatchBody":
        if bool(self.add or self.update or self.delete) == (self.text is not None):
            raise ValueError("expected text, or some of add, update and delete")
        return self


class Patch(Strict):
    """`patch: {add: {made.txt: "new\\n"}}`, or `patch: {text: ...}` for the patch's own syntax."""

    patch: PatchBody


class PlanStep(Strict):
    """A step of a plan."""

    step: str
    status: Literal["pending", "inProgress", "completed"] = "pending"


class UpdatePlanBody(Strict):
    """The whole current plan."""

    explanation: str | None = None
    steps: list[PlanStep]


class UpdatePlan(Strict):
    """`update_plan: {steps: [{step: "look", status: completed}, {step: "leap"}]}`"""

    update_plan: UpdatePlanBody


class McpCallBody(Strict):
    """A call of a tool of an MCP server."""

    server: str
    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])


class McpCall(Strict):
    """`mcp_call: {server: tiny, tool: add, arguments: {a: 1, b: 2}}`"""

    mcp_call: McpCallBody


class DynamicCallBody(Strict):
    """A call of a tool that the client provided."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])


class DynamicCall(Strict):
    """`dynamic_call: {tool: lookup, arguments: {}}`"""

    dynamic_call: DynamicCallBody


class ViewImageBody(Strict):
    """An image file, with the path that is sent to the server."""

    path: str


class ViewImage(Strict):
    """`view_image: {path: picture.png}`"""

    view_image: ViewImageBody


class WebSearchBody(Strict):
    """A search (`query`), the visit of a page (`url`), or a search in one (`url`, `pattern`)."""

    query: str | None = None
    url: str | None = None
    pattern: str | None = None

    @model_validator(mode="after")
    def _check_target(self) -> "WebSearchBody":
        if (self.query is None) == (self.url is None) or (self.pattern and not self.url):
            raise ValueError("expected query, or url, or url and pattern")
        return self


class WebSearch(Strict):
    """`web_search: {query: "..."}`: the model's provider searched the web by itself."""

    web_search: WebSearchBody


class Finding(Strict):
    """A finding of a review, with its place."""

    title: str
    body: str = ""
    path: str
    start: int = Field(default=1, ge=1)
    end: int = Field(default=1, ge=1)


class ReviewBody(Strict):
    """A reviewer's answer."""

    explanation: str
    correct: bool = True
    findings: list[Finding] = Field(default_factory=list[Finding])


class Review(Strict):
    """`review: {explanation: "...", findings: [...]}`: a reviewer's structured answer."""

    review: ReviewBody


ToolPart = Run | Patch | UpdatePlan | McpCall | DynamicCall | ViewImage
"""Parts that call tools which the server offers."""

ProviderPart = WebSearch
"""Parts that are items made by the model's provider, without a tool of the server."""

AskPart = (
    Annotated[Run, Tag("run")]
    | Annotated[Patch, Tag("patch")]
    | Annotated[UpdatePlan, Tag("update_plan")]
    | Annotated[McpCall, Tag("mcp_call")]
    | Annotated[DynamicCall, Tag("dynamic_call")]
    | Annotated[ViewImage, Tag("view_image")]
    | Annotated[WebSearch, Tag("web_search")]
    | Annotated[Review, Tag("review")]
)
"""All parts of this module, each with the key that distinguishes it from other parts."""
