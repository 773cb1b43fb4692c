"""Store of failures: a folder with the scenario, the problem, and the trace of each.

`ID.scenario.yaml` is ready to be committed and played; `ID.json` has the problem; `ID.jsonl` is the
trace. Files are replaced atomically, so that a killed run leaves no partial file.
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
from harness.scenario.scenario_text import scenario_text
from harness.search.fuzz.case import KINDS, Kind, failure_id
from harness.search.fuzz.sessions.search import FoundFailure
from harness.search.fuzz.sessions.turns import Json
from harness.trace.store import save

SCENARIO, ABOUT, TRACE = ".scenario.yaml", ".json", ".jsonl"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Failure:
    """One stored failure; `flaky` if not every play failed.

    `server` is the command of the server that had it. `server` and `occasion` are "" in files of
    earlier versions.
    """

    id: str
    kind: Kind
    cause: str
    text: str
    flaky: bool
    target: str
    document: Json
    occasion: str = ""
    server: str = ""


class Store:
    """Failures in one folder. Made by `open_store`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def scenario(self, identity: str) -> Path:
        """Return the path of a failure's playable file."""
        return self.folder / f"{identity}{SCENARIO}"

    def keep(
        self, kind: Kind, found_failure: FoundFailure, target: str, server: str = ""
    ) -> Failure:
        """Store a failure and return it. Raises `OSError`, leaving only complete files."""
        failure = failure_of(kind, found_failure, target, server)
        identity = failure.id
        origin = f"Found by harness fuzz ({kind}): {found_failure.cause}"
        self._write(self.scenario(identity), scenario_text(found_failure.document, origin))
        trace = self.folder / f"{identity}{TRACE}"
        fresh = trace.with_name(f"{trace.name}.part")
        try:
            save(found_failure.trace, fresh)
            fresh.replace(trace)
        finally:
            fresh.unlink(missing_ok=True)
        # Last: a failure with this file is complete.
        plain = {"format": _FORMAT, **asdict(failure)}
        self._write(self.folder / f"{identity}{ABOUT}", json.dumps(plain, indent=1) + "\n")
        return failure

    def drop(self, identity: str) -> None:
        """Remove a failure; files that cannot be removed are ignored."""
        for name in (f"{identity}{ABOUT}", f"{identity}{TRACE}", self.scenario(identity).name):
            with contextlib.suppress(OSError):
                (self.folder / name).unlink(missing_ok=True)

    def failures(self) -> Iterator[Failure | str]:
        """Yield all failures in the order of their ids; for an unreadable file, a message."""
        for path in sorted(self.folder.glob(f"*{ABOUT}")):
            yield read_failure(path)

    def find(self, identity: str) -> Failure | None:
        """Return the failure of that id, or None. Raises `UsageError` if its file is unreadable."""
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


def failure_of(kind: Kind, failure: FoundFailure, target: str, server: str) -> Failure:
    """Return the stored form of a failure; `target` is the value of `--target`."""
    return Failure(
        failure_id(kind, failure.cause, failure.document),
        kind,
        failure.cause,
        failure.text,
        failure.flaky,
        target,
        failure.document,
        failure.occasion,
        server,
    )


def read_failure(path: Path) -> Failure | str:
    """Return the failure in an `ID.json`, or a message if it is not a valid one."""
    try:
        plain: Any = json.loads(path.read_text("utf-8"))
        if plain.pop("format") != _FORMAT:
            return f"{path} is of another version of harness fuzz; it is left alone"
        failure = Failure(**plain)
        is_valid = failure.kind in KINDS and isinstance(cast(Any, failure.document), dict)
        is_valid = is_valid and isinstance(cast(Any, failure.occasion), str)
        is_valid = is_valid and isinstance(cast(Any, failure.server), str)
        if not is_valid or failure.id != path.name.removesuffix(ABOUT):
            raise ValueError(failure.kind)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no failure of a fuzzer"
        return f"{path} cannot be read ({reason}); it is left alone"
    return failure


@contextlib.contextmanager
def open_store(folder: Path, kinds: Sequence[Kind] = KINDS) -> Generator[Store]:
    """Open the store in a folder, created if needed, and lock these kinds for this process.

    Raises `UsageError` if it cannot be written, or another run uses it.
    """
    with contextlib.ExitStack() as locks:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for kind in kinds:
                locks.enter_context(_lock_file(folder / f".{kind}.lock"))
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
def _lock_file(path: Path) -> Generator[None]:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(path, flags, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)
