"""Bad lines between a server and its client: what a broken proxy or a dying server does.

No message is wrong here, so no rule is broken: a client has to stand it. It reads what comes in
slices as ever, is not stuck while its messages are not read, and notices that its line has ended.
"""

from collections.abc import Callable
from typing import Literal, Protocol, get_args

import anyio

from harness.errors import TargetGone
from harness.faults.live.pieces import Piece
from harness.faults.live.relay import Side
from harness.trace.frame import Frame

LineKind = Literal["slices", "unread", "half-closed", "reset"]
LINE_KINDS: tuple[LineKind, ...] = get_args(LineKind)


class BreakableSide(Side, Protocol):
    """A client's end of a conversation that can be made bad."""

    async def send_slices(self, frames: list[Frame]) -> None:
        """Write messages byte by byte; on a WebSocket each byte is a fragment."""
        ...

    async def end_output(self) -> None:
        """End our direction without a word; the client's can still be read."""
        ...

    async def reset(self) -> None:
        """Break both directions off; over TCP by a RST."""
        ...


class BadLine:
    """A client's side whose line is bad from the message `after` on, of the server's messages.

    `slices`: bytes come one by one. `unread`: for `pause` seconds nothing of the client is read.
    `half-closed`: nothing more comes, and the client is still read. `reset`: the line is broken.
    `say` is called once, when that begins.
    """

    def __init__(
        self,
        side: BreakableSide,
        kind: LineKind,
        *,
        after: int,
        pause: float,
        say: Callable[[str], None],
    ) -> None:
        self._side = side
        self._kind = kind
        self._left = after
        self._pause = pause
        self._say = say
        self._has_begun = False
        self._closed = anyio.Event()

    async def receive(self) -> list[Piece]:
        """Return the client's next messages, [] at the end; late if they are not read."""
        pieces = await self._side.receive()
        if self._has_begun and self._kind == "unread":
            pause, self._pause = self._pause, 0.0
            with anyio.move_on_after(pause):
                await self._closed.wait()
        return pieces

    async def send(self, frames: list[Frame]) -> None:
        """Write messages as the line lets them. Raises `TargetGone` if it is broken."""
        good, bad = frames[: self._left], frames[self._left :]
        self._left -= len(good)
        if good:
            await self._side.send(good)
        if bad and not self._has_begun:
            self._has_begun = True
            self._say(f"line: {self._kind}")
            if self._kind == "half-closed":
                await self._side.end_output()
        match self._kind:
            case "slices" if bad:
                await self._side.send_slices(bad)
            case "unread" if bad:
                await self._side.send(bad)
            case "reset" if bad:
                await self._side.reset()
                raise TargetGone("the line was reset")
            case _:
                pass

    async def close(self) -> None:
        """Close the writing side; a pause ends."""
        self._closed.set()
        await self._side.close()
