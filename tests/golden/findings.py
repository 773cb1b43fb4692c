"""Digests of the findings of all rules in all small conversations, in one reviewed file.

Each rule has a line with its numbers of passes and objections; each conversation with objections
has a line with the rules that object. So a new rule or conversation changes few lines.
`python -m tests.golden.findings` rewrites the file and prints the changed rows.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Row, Verdict
from harness.protocol.spec.loading import load_book
from harness.trace.trace import Trace
from tests.golden.conversations import conversations

ROOT = Path(__file__).parents[2]
STORED = ROOT / "fixtures" / "golden_findings.txt"
KEPT = ROOT / ".harness" / "golden"
HEADER = """\
# Written by `python -m tests.golden.findings`, to be reviewed with the rows that it prints: what
# all rules find in all small conversations of the tests. Of a rule: the numbers of rows that pass
# and of objections, a digest of the rows, and one of the words of the objections. Of a
# conversation: the rules that object, each with a digest of its rows.
"""
MAX_ROWS_SHOWN = 12
"""Maximum number of rows shown of one changed rule."""
MAX_WORDS_SHOWN = 4
MAX_RULES_SHOWN = 10
NO_EARLIER_ROWS = """\
no earlier rows to compare with, so the changed rows cannot be shown. To see them, interrupt this
before it writes (Ctrl-C), set your change aside (git stash), run `pytest tests/golden`, take your
change back (git stash pop), and run this again"""

Line = tuple[str, str]
"""A row without its texts, and the texts: `expected but actual`, "" if it passes."""
Rows = Mapping[str, Mapping[str, list[Line]]]
"""Rule -> conversation -> rows."""
NO_ROWS: Mapping[str, list[Line]] = {}


@dataclass
class Findings:
    """Rows of all rules in all conversations."""

    rows: dict[str, dict[str, list[Line]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    objections: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Conversation -> rules that object to it."""
    broken: dict[str, dict[tuple[str, ...], str]] = field(default_factory=lambda: defaultdict(dict))
    """Rule -> the requirements that one of its violations names -> its first conversation."""

    def add(self, name: str, rows: Iterable[Row]) -> None:
        """Add the rows of one conversation."""
        for row in rows:
            self.rows[row.rule][name].append(line_of(row))
            if row.verdict is not Verdict.PASS:
                self.objections[name].add(row.rule)
            if row.verdict is Verdict.FAIL:
                self.broken[row.rule].setdefault(row.clauses, name)

    def text(self) -> str:
        """Return the content of the file."""
        return HEADER + "".join(f"{line}\n" for line in [*self._of_rules(), *self._objections()])

    def _of_rules(self) -> Iterator[str]:
        for rule, found in sorted(self.rows.items()):
            rows = [(name, *line) for name, lines in found.items() for line in lines]
            words = [f"{name} {said}" for name, _, said in rows if said]
            counts = f"{len(rows) - len(words)} pass, {len(words)} objections"
            lines = digest(f"{name} {line}" for name, line, _ in rows)
            yield f"{rule}: {counts}; digests: rows {lines}, words {digest(words)}"

    def _objections(self) -> Iterator[str]:
        for name, rules in sorted(self.objections.items()):
            lines = {rule: [line for line, _ in self.rows[rule][name]] for rule in sorted(rules)}
            yield f"{name}: {', '.join(f'{rule} {digest(lines[rule])}' for rule in lines)}"


def line_of(row: Row) -> Line:
    """Return a row as a pair of texts."""
    places = [f"{place.frame} {place.path} {place.offset}" for place in row.places]
    line = f"{row.verdict} {row.level} {row.subject!r} {[*row.frames]} {[*row.clauses]} {places}"
    return line, "" if row.verdict is Verdict.PASS else f"{row.expected!r} but {row.actual!r}"


def digest(lines: Iterable[str]) -> str:
    """Return a hash of eight hexadecimal digits of some lines, independent of their order."""
    return blake2b("\n".join(sorted(lines)).encode(), digest_size=4).hexdigest()


def found_in(traces: Iterable[tuple[str, Trace]]) -> Findings:
    """Judge conversations by all rules and return the findings."""
    findings, book, rules = Findings(), load_book(), all_rules().values()
    for name, trace in traces:
        findings.add(name, judge(book, trace, rules))
    return findings


def story(before: Rows, after: Rows) -> Iterator[str]:
    """Yield lines that describe removed, new and changed conversations and rows; not all rules."""
    earlier, later = _conversations(before), _conversations(after)
    yield from (f"gone: {name}" for name in sorted(earlier - later))
    yield from (f"new: {name}" for name in sorted(later - earlier))
    both = earlier & later
    changes = [
        (rule, old, new, names)
        for rule in sorted({*before, *after})
        for old, new in [(before.get(rule, NO_ROWS), after.get(rule, NO_ROWS))]
        if (names := [name for name in sorted(both) if old.get(name) != new.get(name)])
    ]
    for rule, old, new, names in changes[:MAX_RULES_SHOWN]:
        yield f"{rule}: {len(names)} conversation(s) changed"
        rows = [line for name in names for line in _other_rows(name, old, new)]
        words = [line for name in names for line in _other_words(name, old, new)]
        for lines, most in ((rows, MAX_ROWS_SHOWN), (words, MAX_WORDS_SHOWN)):
            yield from lines[:most]
            if len(lines) > most:
                yield f"  and {len(lines) - most} more"
    if more := [rule for rule, *_ in changes[MAX_RULES_SHOWN:]]:
        yield f"and {len(more)} more rules: {', '.join(more)}"


def _conversations(rows: Rows) -> set[str]:
    return {name for found in rows.values() for name in found}


def _other_rows(
    name: str, old: Mapping[str, list[Line]], new: Mapping[str, list[Line]]
) -> Iterator[str]:
    was, now = dict(old.get(name, ())), dict(new.get(name, ()))
    yield from (f"  - {name}: {line} {was[line]}" for line in was if line not in now)
    yield from (f"  + {name}: {line} {now[line]}" for line in now if line not in was)


def _other_words(
    name: str, old: Mapping[str, list[Line]], new: Mapping[str, list[Line]]
) -> Iterator[str]:
    was, now = dict(old.get(name, ())), dict(new.get(name, ()))
    for line in was:
        if line in now and was[line] != now[line]:
            yield f"  words - {name}: {was[line]}"
            yield f"  words + {name}: {now[line]}"


def keep(findings: Findings) -> None:
    """Store the rows behind the file in the repository, unless stored, to explain later changes."""
    path = _kept(STORED.read_text("utf-8"))
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        for old in path.parent.glob("*.json"):
            old.unlink()
        # Replaced atomically, since another test run may read it at any moment.
        new = path.with_suffix(".new")
        new.write_text(json.dumps(findings.rows), "utf-8")
        new.replace(path)


def kept_rows() -> Rows | None:
    """Return the stored rows behind the file in the repository, None if there are none."""
    path = _kept(STORED.read_text("utf-8"))
    if not path.exists():
        return None
    kept: dict[str, dict[str, list[list[str]]]] = json.loads(path.read_text("utf-8"))
    return {
        rule: {name: [(line, words) for line, words in lines] for name, lines in found.items()}
        for rule, found in kept.items()
    }


def _kept(text: str) -> Path:
    return KEPT / f"{digest([text])}.json"


def replace_rule(rule: str, findings: Findings) -> str:
    """Write the findings of one rule into the file; return its line.

    The rows of the other rules are not judged again: their digests stay as they are.
    """
    before = STORED.read_text("utf-8")
    entries, ours = _entries(before), _entries(findings.text())
    entries.pop(rule, None)
    for name in {name for name in entries if "/" in name}:
        others = [each for each in entries.pop(name).split(", ") if each.split(" ")[0] != rule]
        if others:
            entries[name] = ", ".join(others)
    for name, text in ours.items():
        entries[name] = ", ".join(sorted(filter(None, [*entries.get(name, "").split(", "), text])))
    order = sorted(entries, key=lambda name: ("/" in name, name))
    after = HEADER + "".join(f"{name}: {entries[name]}\n" for name in order)
    STORED.write_text(after, "utf-8")
    return f"{ours.get(rule, 'no rows')}{'' if after == before else ' (changed)'}"


def _entries(text: str) -> dict[str, str]:
    """Return the lines of the file by their rule or conversation."""
    return dict(line.split(": ", 1) for line in text.splitlines() if not line.startswith("#"))


def write() -> Iterator[str]:
    """Write the file; yield what changed since it was written last."""
    before = kept_rows() if STORED.exists() else None
    if before is None:
        yield NO_EARLIER_ROWS
    findings = found_in(conversations())
    STORED.write_text(findings.text(), "utf-8")
    keep(findings)
    changes = list(story(before, findings.rows)) if before is not None else []
    yield "\n".join(changes) or f"written{'' if before is None else '; the rows are the same'}"


if __name__ == "__main__":
    for line in write():
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
