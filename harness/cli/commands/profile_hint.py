"""The built-in profile that fits the server of a recording."""

from harness.client.target.profile import builtin_names
from harness.play.session.server_name import server_name
from harness.trace.trace import Trace


def profile_hint(trace: Trace) -> str:
    """Return which `--target` fits a trace without a profile, "" if none does.

    The name of such a profile ends in the version that the server says of itself.
    """
    name = "" if trace.header.profile else server_name(trace)
    for profile in builtin_names():
        version = profile.rpartition("-")[2]
        if version[:1].isdigit() and f"/{version}." in name:
            return (
                f'the server is "{name.split(" ")[0]}": --target {profile} marks the known '
                "deviations of this version"
            )
    return ""
