"""The built-in profile that fits the server of a recording."""

import contextlib
import re
from pathlib import Path

from harness.client.target.profile import Profile, builtin_names, load_profile
from harness.play.session.server_name import server_name
from harness.protocol.releases import short_release
from harness.trace.trace import Trace

# The handshake comes first; its answer can be in a string of JSON itself.
_HEAD_BYTES = 256 * 1024
_USER_AGENT = re.compile(r'userAgent\\*"\s*:\s*\\*"([^"\\]*)')


def profile_hint(trace: Trace) -> str:
    """Return a hint with the `--target` that fits the server's release, "" if none does.

    "" too if the trace has a profile.
    """
    name = "" if trace.header.profile else server_name(trace)
    for family in builtin_names() if name else ():
        profile = load_profile(family)
        edition = profile.edition
        if (
            edition is None
            or edition.is_named
            or not (release := profile.version.find_release(name))
        ):
            continue
        return (
            f'the server is "{name.split(" ")[0]}": --target {family}-{short_release(release)} '
            "marks the known deviations of this version"
        )
    return ""


def fit_profile(target: str, path: Path) -> Profile:
    """Return the profile of a target, for the release that the server of a recording says.

    A file that cannot be read has none; whoever reads it next says why.
    """
    profile = load_profile(target)
    if profile.edition is None or profile.edition.is_named:
        return profile
    with contextlib.suppress(OSError), path.open("rb") as file:
        if agent := _USER_AGENT.search(file.read(_HEAD_BYTES).decode("utf-8", "replace")):
            return load_profile(target, profile.version.find_release(agent[1]))
    return profile
