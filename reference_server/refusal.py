"""The exception by which a handler refuses a request.

Source: the shape of error responses is not shown in the document ("Errors"); codes are JSON-RPC's.
"""

import errno

from harness.protocol.wire.rpc import ErrorCode


class Refusal(Exception):
    """The request is not carried out; `message` is sent to the client."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


UNKNOWN_METHOD = "there is no method"
"""Beginning of the message for a method that this server does not know."""


HIDDEN_METHOD = "dialect:"
"""Prefix that hides a method of the text from this server if a dialect answers it otherwise."""


def unknown_method(name: str) -> Refusal:
    """Return the refusal of an unknown method; `name` is quoted as it is given."""
    return Refusal(ErrorCode.METHOD_NOT_FOUND, f"{UNKNOWN_METHOD} {name}")


def invalid_request(message: str) -> Refusal:
    """Return the refusal of a well-formed request that cannot be carried out now."""
    return Refusal(ErrorCode.INVALID_REQUEST, message)


def invalid_params(message: str) -> Refusal:
    """Return the refusal of a wrong parameter; `message` begins with the parameter's name."""
    return Refusal(ErrorCode.INVALID_PARAMS, message)


_REMEDIES = {
    errno.ENOSPC: "; free space there, then try again",
    errno.EDQUOT: "; free space there, then try again",
    errno.EACCES: "; change its permissions, then try again",
    errno.EPERM: "; change its permissions, then try again",
    errno.EISDIR: "; move away what is there, then try again",
    errno.ENOTDIR: "; move away what is there, then try again",
    errno.EROFS: "; mount it writable, then try again",
}
"""Advice by error number, added to the system's error text (our own errors contain theirs)."""


def describe_disk_error(cause: OSError) -> str:
    """Return `file: problem; remedy` for an error of the disk, as far as they are known."""
    problem = cause.strerror or type(cause).__name__
    place = f"{cause.filename}: " if cause.filename else ""
    return f"{place}{problem}{_REMEDIES.get(cause.errno or 0, '')}"
