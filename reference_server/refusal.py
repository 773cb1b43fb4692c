"""Saying no to a request.

Here lives the one exception that a handler raises to refuse. Source: the shape of error responses
is not shown in the document ("Errors"); codes are JSON-RPC's.
"""

import errno

from harness.wire.rpc import ErrorCode


class Refusal(Exception):
    """The request is not carried out; the words go to the client."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def invalid_request(message: str) -> Refusal:
    """The request is well formed but cannot be done as things stand."""
    return Refusal(ErrorCode.INVALID_REQUEST, message)


def invalid_params(message: str) -> Refusal:
    """A parameter is missing, mistyped or outside its values; the words name it."""
    return Refusal(ErrorCode.INVALID_PARAMS, message)


_REMEDIES = {
    errno.ENOSPC: "; free space there, then try again",
    errno.EDQUOT: "; free space there, then try again",
    errno.EACCES: "; mend its rights, then try again",
    errno.EPERM: "; mend its rights, then try again",
    errno.EISDIR: "; move what stands there out of the way, then try again",
    errno.ENOTDIR: "; move what stands there out of the way, then try again",
    errno.EROFS: "; mount it writable, then try again",
}
"""What to do where the system's words do not say it; ours do."""


def disk_failure(cause: OSError) -> str:
    """Say what the server could not do on its disk; the words name the file and the remedy."""
    what = cause.strerror or type(cause).__name__
    where = f"{cause.filename}: " if cause.filename else ""
    return f"{where}{what}{_REMEDIES.get(cause.errno or 0, '')}"
