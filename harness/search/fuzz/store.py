"""The store of failures: a folder with a scenario, what went wrong, and the trace of each.

`ID.scenario.yaml` is ready to be committed and played; `ID.json` says what is wrong; `ID.jsonl` is
the trace. Files are exchanged whole, so that a run that ends at any moment leaves no half of one.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from harness.errors import UsageError
from harness.scenario.written import as_text
from harness.search.fuzz.case import KINDS, Kind, failure_id
from harness.search.fuzz.sessions.search import Found
from harness.search.fuzz.sessions.turns import Json
from harness.trace.store import save

SCENARIO, ABOUT, TRACE = ".scenario.yaml", ".json", ".jsonl"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure in the store. `flaky` says that it did not show each time.

    `occasion` is what was going on, "" in the files of earlier versions.
    """

    id: str
    kind: Kind
    cause: str
    text: str
    flaky: bool
    target: str
    document: Json
    occasion: str = ""


class Store:
    """The failures in one folder. Make it with `open_store`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def scenario(self, identity: str) -> Path:
        """The file of a failure that can be played."""
        return self.folder / f"{identity}{SCENARIO}"

    def keep(self, kind: Kind, found: Found, target: str) -> Failure:
        """Write a failure. Raises `OSError`; what was written before is whole all the same."""
        failure = failure_of(kind, found, target)
        identity = failure.id
        origin = f"Found by harness fuzz ({kind}): {found.cause}"
        self._write(self.scenario(identity), as_text(found.document, origin))
        trace = self.folder / f"{identity}{TRACE}"
        fresh = trace.with_name(f"{trace.name}.part")
        try:
            save(found.trace, fresh)
            fresh.replace(trace)
        finally:
            fresh.unlink(missing_ok=True)
        # Last: what has this file is complete.
        plain = {"format": _FORMAT, **asdict(failure)}
        self._write(self.folder / f"{identity}{ABOUT}", json.dumps(plain, indent=1) + "\n")
        return failure

    def drop(self, identity: str) -> None:
        """Take a failure away, in whose place another one is kept; what cannot go stays."""
        for name in (f"{identity}{ABOUT}", f"{identity}{TRACE}", self.scenario(identity).name):
            with contextlib.suppress(OSError):
                (self.folder / name).unlink(missing_ok=True)

    def failures(self) -> Iterator[Failure | str]:
        """All failures, in the order of their ids; of a file that cannot be read, why."""
        for path in sorted(self.folder.glob(f"*{ABOUT}")):
            yield read_failure(path)

    def find(self, identity: str) -> Failure | None:
        """The failure of that id. Raises `UsageError` where its file cannot be read."""
        path = self.folder / f"{identity}{ABOUT}"
        if not path.is_file():
            return None
        failure = read_failure(path)
        if isinstance(failure, str):
            raise UsageError(failure)
        return failure

    def _write(self, path: Path, text: str) -> None:
        fresh = path.with_name(f"{path.name}.part")
        try:
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(path)
        finally:
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)


def failure_of(kind: Kind, found: Found, target: str) -> Failure:
    """A failure as it is kept; `target` is the server's, as options name it."""
    return Failure(
        failure_id(kind, found.cause, found.document),
        kind,
        found.cause,
        found.text,
        found.flaky,
        target,
        found.document,
        found.occasion,
    )


def read_failure(path: Path) -> Failure | str:
    """The failure of an `ID.json`; where it is none, why."""
    try:
        plain: Any = json.loads(path.read_text("utf-8"))
        if plain.pop("format") != _FORMAT:
            return f"{path} is of another version of harness fuzz; it is left alone"
        failure = Failure(**plain)
        is_valid = failure.kind in KINDS and isinstance(cast(Any, failure.document), dict)
        is_valid = is_valid and isinstance(cast(Any, failure.occasion), str)
        if not is_valid or failure.id != path.name.removesuffix(ABOUT):
            raise ValueError(failure.kind)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no failure of a fuzzer"
        return f"{path} cannot be read ({reason}); it is left alone"
    return failure


@contextlib.contextmanager
def open_store(folder: Path, kinds: Sequence[Kind] = KINDS) -> Generator[Store]:
    """The store in a folder, made if needed; the failures of these kinds for this process alone.

    Raises `UsageError` where it cannot be written, or another run has it.
    """
    with contextlib.ExitStack() as locks:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for kind in kinds:
                locks.enter_context(_locked(folder / f".{kind}.lock"))
        except BlockingIOError as error:
            raise UsageError(
                f"the store {folder} is in use by another run; wait, or give another by --store"
            ) from error
        except OSError as error:
            raise UsageError(
                f"the store {folder} cannot be written ({error.strerror}); give another by --store"
            ) from error
        yield Store(folder)


@contextlib.contextmanager
def _locked(path: Path) -> Generator[None]:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(path, flags, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)
