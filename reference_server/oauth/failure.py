"""Errors of OAuth."""


class OAuthFailure(Exception):
    """A login, a renewal or the store of credentials failed; str() is one line, without secrets."""
