"""Errors of the harness: one tree, so that a command catches a branch and not a list of classes.

    HarnessError
        UsageError     the request of the user is impossible; the text is for the user
        TargetError    the server under test cannot be used, or is gone
            TargetGone     its connection ended

Packages add classes below these where callers must tell cases apart. Wrong arguments of our own
code raise ValueError; an exception that never leaves its module is private there.
"""


class HarnessError(Exception):
    """An error that the harness raises on purpose."""


class UsageError(HarnessError):
    """An impossible request of the user; the text says in one line what to do instead."""


class TargetError(HarnessError):
    """The server under test cannot be used, or went away."""


class TargetGone(TargetError):
    """The connection to the server ended, from either side; no more messages will arrive."""
