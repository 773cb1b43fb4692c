"""When the other end of a descriptor is closed, though what it wrote before is unread.

Here lives how each system tells. Reading would tell too, but who reads has to keep what comes.
"""

import select
import sys

import anyio

if sys.platform == "linux":

    async def no_more_to_come(descriptor: int) -> None:
        """Wait until all who could write are gone. Raises OSError where that cannot be waited for.

        An epoll of its own asks for the hang-up alone, and is ready when it has come.
        """
        with select.epoll() as hangups:
            # EPOLLHUP is always asked for: that of pipes. Sockets of which one half is closed:
            hangups.register(descriptor, select.EPOLLRDHUP)
            await anyio.wait_readable(hangups.fileno())

else:

    async def no_more_to_come(descriptor: int) -> None:
        """Wait until all who could write are gone. Raises OSError where that cannot be waited for.

        A kqueue of its own tells of what is new alone (`KQ_EV_CLEAR`), the end among it.
        """
        if not hasattr(select, "kqueue"):
            raise OSError("this system has no kqueue")
        with select.kqueue() as news:
            flags = select.KQ_EV_ADD | select.KQ_EV_CLEAR
            wanted = select.kevent(descriptor, select.KQ_FILTER_READ, flags)
            found = news.control([wanted], 1, 0)
            while not any(one.flags & select.KQ_EV_EOF for one in found):
                await anyio.wait_readable(news.fileno())
                found = news.control(None, 1, 0)
