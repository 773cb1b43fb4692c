"""Waiting for a descriptor without the imports of `anyio.wait_readable`: 3 ms of a start."""

import asyncio


async def wait_readable(descriptor: int) -> None:
    """Wait for data or the end of the input. At most one caller per descriptor at a time.

    Raises PermissionError if the event loop cannot wait for it: a file, a device.
    """
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(descriptor, _set, ready)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


def _set(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)
