"""Connection to a scripted model in this process, for `--scenario`, without socket and HTTP.

Chunks are streamed as by a real model.
"""

from collections.abc import AsyncGenerator, Mapping
from urllib.parse import urlsplit

from harness.model.model import Answer, ScriptedModel
from harness.model.performance import StreamCut
from reference_server.model.answer import TransportError

_NOT_FOUND = 404


class ScriptedConnection:
    """Connection that answers all calls by one scripted model, at any path ending in `/responses`.

    With `resumes` the script continues after the answers that the first call contains.
    """

    def __init__(self, model: ScriptedModel, *, resumes: bool = False) -> None:
        self._model = model
        self._resumes = resumes

    async def post(
        self, address: str, headers: Mapping[str, str], content: bytes
    ) -> "ScriptedAnswer":
        """Return the answer of the script's next step; status 404 for another path."""
        path = urlsplit(address).path
        if not path.rstrip("/").endswith("/responses"):
            return ScriptedAnswer(Answer(_NOT_FOUND, {}, f"no {path} here".encode()))
        if self._resumes:
            self._resumes = False
            self._model.skip_answered(content)
        return ScriptedAnswer(self._model.answer(content))

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""


class ScriptedAnswer:
    """Answer to one call."""

    def __init__(self, answer: Answer) -> None:
        self.status = answer.status
        self.headers: Mapping[str, str] = {
            name.lower(): value for name, value in answer.headers.items()
        }
        self._answer = answer

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Yield the pieces of the body as they arrive. Raises TransportError at a scripted cut."""
        if self._answer.chunks is None:
            yield self._answer.body
            return
        try:
            async for chunk in self._answer.chunks:
                yield chunk
        except StreamCut:
            raise TransportError(
                "RemoteProtocolError: the scripted model closed the connection"
            ) from None

    async def aclose(self) -> None:
        """Close the stream."""
        if self._answer.chunks is not None:
            await self._answer.chunks.aclose()
