"""Parser of SKILL.md: name, description and text of a skill.

Name and description are in the front matter, else in the title heading and the first paragraph
below it. Paragraphs and headings are those of CommonMark. Source: session-protocol "Skill
(SkillMetadata)" ("a title heading (skill name), a brief description, an Instructions section, an
Examples section and a Dependencies section").
"""

import re
import unicodedata
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from reference_server.skills import front_matter
from reference_server.skills.skill import SkillError

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

NAME_LIMIT = 100
"""Maximum characters of a name."""
DESCRIPTION_LIMIT = 1024
"""Maximum characters of a description; a longer one is cut."""
OUTLINE_LIMIT = 16 * 1024
"""Characters of a text that are searched for headings, which takes long."""
SECTIONS = ("Instructions", "Examples", "Dependencies")
_CLOSING = re.compile(r"[ \t]+#+[ \t]*$")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Document:
    """Content of a SKILL.md. `text` is the file without its front matter, for the model.

    `description` is "" if the file has none.
    """

    name: str
    description: str
    text: str


@dataclass(slots=True)
class Outline:
    """Title of a Markdown text, the paragraph below it, the first paragraph of known sections."""

    title: str = ""
    lead: str = ""
    sections: dict[str, str] = field(default_factory=dict[str, str])


def read_document(text: str) -> Document:
    """Parse the text of a SKILL.md. Raises SkillError for a bad name or front matter."""
    matter, body = front_matter.split(text)
    fields = {} if matter is None else front_matter.read(matter, ("name", "description"))
    name, description = (_one_line(fields.get(key, "")) for key in ("name", "description"))
    if not (name and description):
        outline = outline_of(body)
        name = name or _one_line(outline.title)
        description = (
            description
            or _one_line(outline.lead)
            or _one_line(outline.sections.get("Instructions", ""))
        )
    _check_name(name)
    return Document(name, _shorten(description), body.strip() + "\n")


def outline_of(text: str) -> Outline:
    """Return the outline of the first OUTLINE_LIMIT characters of a Markdown text."""
    outline = Outline()
    part: str | None = None
    tokens = _markdown().parse(text[:OUTLINE_LIMIT])
    for opening, inline in pairwise(tokens):
        if opening.level:
            # Inside a list or a quotation.
            continue
        if opening.type == "heading_open":
            words = _CLOSING.sub("", inline.content)
            if opening.tag == "h1" and not outline.title:
                outline.title, part = words, "lead"
            else:
                part = next((one for one in SECTIONS if one.lower() == words.lower().strip()), "")
                if part:
                    outline.sections.setdefault(part, "")
        elif opening.type == "paragraph_open" and part == "lead":
            outline.lead = outline.lead or inline.content
        elif opening.type == "paragraph_open" and part:
            outline.sections[part] = outline.sections[part] or inline.content
    return outline


@cache
def _markdown() -> "MarkdownIt":
    # Imported late: most skills have name and description in the front matter.
    from markdown_it import MarkdownIt

    # The content of a paragraph is not parsed.
    return MarkdownIt("commonmark").disable("inline")


def _one_line(text: str) -> str:
    """Return a text with all white space replaced by single spaces."""
    return _SPACE.sub(" ", text).strip()


def _shorten(text: str) -> str:
    return text if len(text) <= DESCRIPTION_LIMIT else text[: DESCRIPTION_LIMIT - 1] + "…"


def _check_name(name: str) -> None:
    if not name:
        raise SkillError(
            "has no name; begin it with a heading `# name`, or a front matter `name: …`"
        )
    if len(name) > NAME_LIMIT:
        raise SkillError(f"its name has more than {NAME_LIMIT} characters; shorten it")
    # Control characters, and those that change the direction of writing.
    if any(unicodedata.category(one) in ("Cc", "Cf") for one in name):
        raise SkillError("its name holds a character that cannot be seen; remove it")
