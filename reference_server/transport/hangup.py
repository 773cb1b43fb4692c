"""Detecting that the other end of a descriptor is closed, without reading from it.

Reading would detect it too, but the data would have to be kept.
"""

import select
import sys

from reference_server.transport.readiness import wait_readable

if sys.platform == "linux":

    async def no_more_to_come(descriptor: int) -> None:
        """Wait until every writer has closed it. Raises OSError for a kind that cannot tell.

        An epoll of its own that is asked for the hang-up alone becomes readable when it happens.
        """
        with select.epoll() as hangups:
            # EPOLLHUP (of pipes) is always reported; this is for a socket with one half closed.
            hangups.register(descriptor, select.EPOLLRDHUP)
            await wait_readable(hangups.fileno())

else:

    async def no_more_to_come(descriptor: int) -> None:
        """Wait until every writer has closed it. Raises OSError for a kind that cannot tell.

        A kqueue of its own reports each change once (`KQ_EV_CLEAR`), and the end is one of them.
        """
        if not hasattr(select, "kqueue"):
            raise OSError("this system has no kqueue")
        with select.kqueue() as news:
            flags = select.KQ_EV_ADD | select.KQ_EV_CLEAR
            wanted = select.kevent(descriptor, select.KQ_FILTER_READ, flags)
            found = news.control([wanted], 1, 0)
            while not any(one.flags & select.KQ_EV_EOF for one in found):
                await wait_readable(news.fileno())
                found = news.control(None, 1, 0)
