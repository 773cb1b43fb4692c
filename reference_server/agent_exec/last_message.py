"""`--output-last-message FILE`: a file with the final message.

The model may be able to write in the folder of that file. So the folder is opened before the turn,
and anything with the file's name is replaced afterwards, not followed: a link that the model made
there has no effect. A device or a pipe is opened before the turn.
"""

import contextlib
import os
import stat
from typing import Any

from anyio import to_thread

from reference_server.agent_exec.ending import NotBegun
from reference_server.agent_exec.output import Sink

Fields = dict[str, Any]


class MessageFile:
    """Place of the file, opened before the turn. Raises NotBegun if that fails."""

    def __init__(self, path: str) -> None:
        self._shown = path
        real = os.path.realpath(path)
        self._name = os.path.basename(real)
        self._mode: int | None = None
        self._device: int | None = None
        try:
            self._inspect(path)
            self._folder = os.open(os.path.dirname(real), os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise NotBegun(
                f"agent exec: --output-last-message {path}: {error.strerror}; name a file in a "
                "folder that exists"
            ) from None

    def _inspect(self, path: str) -> None:
        # Not the real path: that of a pipe of this process (/dev/stderr) cannot be opened.
        with contextlib.suppress(FileNotFoundError):
            mode = os.stat(path).st_mode
            if stat.S_ISDIR(mode):
                raise IsADirectoryError(None, "it is a folder")
            if stat.S_ISREG(mode):
                self._mode = stat.S_IMODE(mode) & 0o777
            else:
                # Opening a pipe without a reader fails at once instead of waiting.
                self._device = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                os.set_blocking(self._device, True)

    def write(self, text: str) -> None:
        """Write the text to the device, or replace the file by it. Blocks. Raises OSError."""
        data = text.encode("utf-8", "backslashreplace")
        if self._device is not None:
            _write(self._device, data)
            return
        temporary = f".{self._name[:200]}.{os.urandom(4).hex()}"
        descriptor = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=self._folder
        )
        try:
            try:
                _write(descriptor, data)
                if self._mode is not None:
                    os.fchmod(descriptor, self._mode)
            finally:
                os.close(descriptor)
            os.replace(temporary, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=self._folder)
            raise


class LastMessageSink:
    """A sink that also writes the last message to a file at the end, "" if there is none."""

    def __init__(self, sink: Sink, file: MessageFile) -> None:
        self._sink = sink
        self._file = file
        self._last = ""

    async def tell(self, events: list[Fields]) -> None:
        """Pass events on. Raises PeerGone."""
        self._last = last_message(events) or self._last
        await self._sink.tell(events)

    async def finish(self) -> None:
        """Write the file, then finish the wrapped sink. Raises PeerGone, OSError."""
        # A pipe may have a reader that reads nothing.
        await to_thread.run_sync(self._file.write, self._last, abandon_on_cancel=True)
        await self._sink.finish()


def last_message(events: list[Fields]) -> str:
    """Return the last message of the agent among events, "" if there is none."""
    messages = [
        event["item"]["text"]
        for event in events
        if event["type"] == "item.completed" and event["item"]["type"] == "agent_message"
    ]
    return messages[-1] if messages else ""


def _write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
