"""Errors of the harness: one tree, so that a command catches a branch and not a list of classes.

    HarnessError
        UsageError     the user asked for what cannot be done; the text is for the user
        TargetError    the server under test cannot be used, or is gone
            TargetGone     its connection ended

Each package may add classes below these, where somebody must tell one case from another. Wrong
arguments of our own code raise ValueError; what never leaves its module is private there.
"""


class HarnessError(Exception):
    """Something that the harness raises on purpose."""


class UsageError(HarnessError):
    """An impossible request of the user; the text says in one line what to do instead."""


class TargetError(HarnessError):
    """The server under test cannot be used, or went away."""


class TargetGone(TargetError):
    """The connection to the server ended, from either side; nothing more will come."""
