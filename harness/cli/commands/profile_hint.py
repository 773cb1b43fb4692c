"""The built-in profile that fits the server of a recording."""

from harness.client.target.profile import builtin_names
from harness.play.session.server_name import server_name
from harness.trace.trace import Trace


def profile_hint(trace: Trace) -> str:
    """Return a hint with the `--target` that fits the server's version, "" if none does.

    "" too if the trace has a profile. The names of the profiles end in the version that they fit.
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
