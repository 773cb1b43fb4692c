"""Texts for the model about the skills that an input names.

A `skill` item means the file at its path; `$name` alone means the nearest enabled skill of that
name. Only the exact name counts; words after a `$` that are not a skill's name (`$HOME`, `$5`) are
plain text. A file is read only if it is a SKILL.md that the sandbox policy lets commands read: so
neither a client nor a project with a link can have a hidden file sent to the model. Source:
session-protocol "turn/start" ("Skill invocation", "the text input contains `$<skill-name>`").
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from os.path import basename

import anyio
from anyio import to_thread

from harness.protocol.wire.input import MentionInput, SkillInput, TextInput, UserInput
from reference_server.limits import LimitExceeded, check_path
from reference_server.sandbox.mounts import Plan, Refused
from reference_server.sandbox.permissions import may_read
from reference_server.sandbox.sandbox import Sandbox
from reference_server.settings import ThreadSettings
from reference_server.skills.document import Document, read_document
from reference_server.skills.files import read_file
from reference_server.skills.library import Library
from reference_server.skills.scan import FILE_LIMIT
from reference_server.skills.skill import SKILL_FILE, Skill, SkillError
from reference_server.words import SkillTexts

MAX_DOLLAR_SIGNS = 10_000
"""Maximum dollar signs of one text that are examined."""
_WORD = r"\w[\w-]*"
_SIGN = re.compile(rf"(?<![\w$\\])\$({_WORD})")
_FIRST_WORD = re.compile(_WORD)
_GOES_ON = re.compile(r"[\w-]")


def words_after_signs(texts: Iterable[str]) -> set[str]:
    """Return the words directly after a `$`, with which names of skills may begin."""
    return {match[1] for text in texts for match in _signs(text)}


def first_word(name: str) -> str | None:
    """Return the word at the start of a name; None without one, as no `$name` has it then."""
    match = _FIRST_WORD.match(name)
    return match and match[0]


def names_in(texts: Iterable[str], names: Collection[str]) -> list[str]:
    """Return the names that follow a `$` in the texts, each once, in order."""
    # The longest first: `$spell check` means `spell check`, not `spell`.
    lengths: dict[str, list[int]] = {}
    for name in sorted(names, key=len, reverse=True):
        if word := first_word(name):
            known_lengths = lengths.setdefault(word, [])
            if len(name) not in known_lengths[-1:]:
                known_lengths.append(len(name))
    known_names = set(names)
    found_names: dict[str, None] = {}
    for text in texts:
        for match in _signs(text):
            begin = match.start(1)
            for length in lengths.get(match[1], ()):
                name = text[begin : begin + length]
                if name in known_names and not _GOES_ON.match(text, begin + length):
                    found_names[name] = None
                    break
    return list(found_names)


def _signs(text: str) -> Iterator[re.Match[str]]:
    return islice(_SIGN.finditer(text), MAX_DOLLAR_SIGNS)


MAX_SKILLS = 20
"""Maximum skills of one input."""
TEXT_LIMIT = 512 * 1024
"""Maximum characters of all skills of one input together."""
READING_TIME = 5.0
"""Seconds that reading a file may take: a network disk may never answer."""


async def skill_texts(
    content: Sequence[UserInput], settings: ThreadSettings, library: Library, sandbox: Sandbox
) -> SkillTexts:
    """Read the skills that an input names, and return their texts, each once."""
    return await _Invocation(settings, library, sandbox).read(content)


@dataclass(slots=True)
class _Invocation:
    """Skills of one input; `blocks` are texts by the real path of the file."""

    settings: ThreadSettings
    library: Library
    sandbox: Sandbox
    blocks: dict[str, str] = field(default_factory=dict[str, str])
    refusals: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    notes: list[str] = field(default_factory=list[str])

    async def read(self, content: Sequence[UserInput]) -> SkillTexts:
        items = {(one.name, one.path): one for one in content if isinstance(one, SkillInput)}
        for key, item in items.items():
            try:
                await self._add_skill(item.name, item.path)
            except SkillError as error:
                self.refusals[key] = str(error)
        texts = [one.text for one in content if isinstance(one, TextInput)]
        apps = {one.name for one in content if isinstance(one, MentionInput)}
        await self._add_named_skills(texts, {name for name, _ in items} | apps)
        return SkillTexts(list(self.blocks.values()), self.refusals, self.notes)

    async def _add_named_skills(self, texts: list[str], known_names: set[str]) -> None:
        """Add the skills that texts name by `$name`, except known names, which items resolve."""
        if not words_after_signs(texts) - {first_word(name) for name in known_names}:
            return
        usable = await self.library.usable_skills(self.settings.cwd)
        for name in names_in(texts, {*usable, *known_names}):
            if name not in known_names:
                try:
                    await self._add_skill(name, usable[name].path)
                except SkillError as error:
                    self.notes.append(f"The skill ${name} is not used: {error}")

    async def _add_skill(self, name: str, file: str) -> None:
        """Add the text of a skill. Raises SkillError if it is unusable, disabled or too long."""
        path = _normalize(file)
        if basename(path) != SKILL_FILE:
            raise SkillError(f"it is not in a {SKILL_FILE}")
        real, document = await self._read_document(path)
        if document.name != name:
            raise SkillError(f"the skill there is called {document.name}")
        skill = Skill(name, document.description, path, real, "user")
        if await self.library.is_disabled(skill):
            raise SkillError("it is disabled")
        if real in self.blocks:
            return
        block = f"<skill>\n<name>{name}</name>\n<path>{path}</path>\n{document.text}</skill>"
        if len(self.blocks) >= MAX_SKILLS:
            raise SkillError(f"one input names at most {MAX_SKILLS} skills")
        if sum(map(len, self.blocks.values())) + len(block) > TEXT_LIMIT:
            raise SkillError(
                f"the skills of one input have at most {TEXT_LIMIT // 1024} KiB together"
            )
        self.blocks[real] = block

    async def _read_document(self, path: str) -> tuple[str, Document]:
        """Return the real path and the content of a SKILL.md that the sandbox lets commands read.

        Raises SkillError if it cannot be read.
        """
        try:
            check_path(path)
            plan = self.sandbox.view(self.settings.sandbox, workspace=self.settings.cwd)
        except (LimitExceeded, Refused, ValueError) as error:
            raise SkillError(str(error)) from None
        try:
            with anyio.fail_after(READING_TIME):
                return await to_thread.run_sync(
                    partial(_read, path, plan), abandon_on_cancel=True, limiter=self.library.readers
                )
        except TimeoutError:
            raise SkillError(f"it was not read within {READING_TIME:g} s") from None


def _normalize(path: str) -> str:
    return os.path.normpath(path)


def _read(path: str, plan: Plan | None) -> tuple[str, Document]:
    def judge(real: str, status: os.stat_result) -> None:
        if plan is not None and not (plan.readable(real) and may_read(real, status)):
            raise SkillError("the sandbox hides it")

    text, real = read_file(path, FILE_LIMIT, judge)
    return real, read_document(text)
