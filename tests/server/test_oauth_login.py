"""`agent mcp login` and `logout` with a real authorization server: what is asked, printed, kept."""

import json
import stat

import pytest
from oauth_side import Home, consent, logging_in

from fixtures.oauth.pair import pair

pytestmark = [pytest.mark.slow, pytest.mark.socket]


@pytest.fixture
def home(tmp_path) -> Home:
    return Home(tmp_path / "home")


async def test_a_login_is_printed_and_kept(home) -> None:
    async with pair() as servers:
        home.configure(servers.url)
        async with logging_in(home) as login:
            page = await consent(login.address)
            done = await login.ended()
    assert (done.status, done.err) == (0, "")
    assert done.out == (
        f"Authorize `docs` by opening this URL in your browser:\n{login.address}\n\n"
        "Successfully logged in to MCP server 'docs'.\n"
    )
    assert page.status_code == 200
    assert "You are logged in" in page.text
    [entry] = json.loads(home.credentials.read_text()).values()
    assert entry["access_token"] in servers.authority.tokens
    assert stat.S_IMODE(home.credentials.stat().st_mode) == 0o600
    shown = done.out + page.text
    assert not [token for token in servers.authority.tokens if token in shown]
