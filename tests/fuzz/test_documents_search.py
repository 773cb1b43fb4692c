"""Searching documents: an error of ours, or a server that cannot be used, is never GREEN."""

import pytest

from harness.errors import TargetError
from harness.fuzz.case import kinds_of
from harness.fuzz.documents import search_documents
from harness.fuzz.run import Bounds, Fuzzing
from harness.fuzz.sessions.search import SessionCampaign
from harness.runner.config import configure
from harness.runner.interruption import Interruption

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", ["inputs", "frames"])
def test_a_server_that_cannot_be_used_is_told_and_not_green(kind: str) -> None:
    config = configure(target="spec", server_cmd="false")
    with pytest.raises(TargetError, match="initialize"):
        search_documents(
            kinds_of(kind)[0],
            config,
            1,
            5.0,
            Interruption(config.base),
            lambda found: pytest.fail(found.text),
        )


def test_a_run_that_broke_off_is_red() -> None:
    result = Fuzzing(Bounds(["frames"]), searches={"frames": SessionCampaign(1)})
    assert (result.played, result.verdict) == (0, "GREEN")
    result.broke_off = True
    assert result.verdict == "RED"
