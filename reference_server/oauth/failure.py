"""Reasons why there is no token."""


class OAuthFailure(Exception):
    """A login, a renewal or the store of credentials failed; str() is one line, without secrets."""
