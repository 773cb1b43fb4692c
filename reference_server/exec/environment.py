"""The variables that a command gets.

Here lives what is taken away and added; who confines the command is `sandbox.py`.
"""

from collections.abc import Mapping

SECRET_WORDS = ("KEY", "SECRET", "TOKEN", "PASSWORD", "PASSWD", "CREDENTIAL")
"""A variable whose name holds one of them, in any case, is not for commands."""
NOT_SECRET = frozenset({"SSH_AUTH_SOCK", "KEYBOARD", "XKB_DEFAULT_LAYOUT"})


def command_environment(environment: Mapping[str, str], *, tty: bool) -> dict[str, str]:
    """The server's environment without its secrets, for one command.

    Without a terminal, TERM is `dumb` and pagers are `cat`, so that nothing waits for a key.
    """
    kept = {
        name: value
        for name, value in environment.items()
        if name in NOT_SECRET or not any(word in name.upper() for word in SECRET_WORDS)
    }
    if tty:
        kept.setdefault("TERM", "xterm-256color")
    else:
        kept |= {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat"}
    return kept
