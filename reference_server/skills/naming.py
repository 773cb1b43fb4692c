"""Finding `$name` in the user's text.

Only the whole name counts, exactly, and only if it does not go on after it. Words after a `$` that
name no skill (`$HOME`, `$5`) are text like any other. Source: session-protocol "turn/start" ("the
text input contains `$<skill-name>`").
"""

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import islice

MAX_DOLLAR_SIGNS = 10_000
"""Dollar signs of one input that are looked at."""
_WORD = r"\w[\w-]*"
_SIGN = re.compile(rf"(?<![\w$\\])\$({_WORD})")
_FIRST_WORD = re.compile(_WORD)
_GOES_ON = re.compile(r"[\w-]")


def words_after_signs(texts: Iterable[str]) -> set[str]:
    """Return the words that stand directly after a `$`; the name of a skill begins with one."""
    return {match[1] for text in texts for match in _signs(text)}


def first_word(name: str) -> str | None:
    """Return the word that a name begins with; None if it begins with none, and is never found."""
    match = _FIRST_WORD.match(name)
    return match and match[0]


def names_in(texts: Iterable[str], names: Collection[str]) -> list[str]:
    """Return the names that stand after a `$`, each once, in the order in which they come."""
    # The longest first: of `spell check` and `spell` the text means the one that it spells out.
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
