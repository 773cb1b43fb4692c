"""`agent mcp login` and `logout` with a real authorization server: requests, output, storage."""

import base64
import hashlib
import json
import stat

import pytest
from oauth_attempts import file_store, log_in
from oauth_side import Home, agent, consent, logged_in, logging_in, only_credentials

from fixtures.oauth.authority import Switches
from fixtures.oauth.pair import pair
from reference_server.cli import mcp_login

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
        f"Authorize 'docs' by opening this URL in your browser:\n{login.address}\n\n"
        "Successfully logged in to MCP server 'docs'.\n"
    )
    assert page.status_code == 200
    assert "You are logged in" in page.text
    entry = only_credentials(home)
    assert entry["access_token"] in servers.authority.tokens
    assert stat.S_IMODE(home.credentials.stat().st_mode) == 0o600
    shown = done.out + page.text
    assert not [token for token in servers.authority.tokens if token in shown]


async def test_the_requests_to_the_authorization_server(home) -> None:
    async with pair() as servers:
        home.configure(servers.url)
        async with logging_in(home) as login:
            given = login.parameters
            await consent(login.address)
            await login.ended()
        [client] = servers.authority.clients.values()
        [code] = servers.front.forms
    assert client.client_name == "agent"
    assert [str(one) for one in client.redirect_uris or []] == [given["redirect_uri"]]
    assert client.grant_types == ["authorization_code", "refresh_token"]
    assert given["redirect_uri"].startswith("http://127.0.0.1:")
    assert (given["response_type"], given["code_challenge_method"]) == ("code", "S256")
    # The MCP server says which scopes its clients need (RFC 9728), and what the token is for.
    assert (given["scope"], given["resource"]) == ("tools", servers.url)
    assert len(given["state"]) >= 32
    assert code["resource"] == servers.url
    assert code["redirect_uri"] == given["redirect_uri"]
    digest = hashlib.sha256(code["code_verifier"].encode()).digest()
    assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == given["code_challenge"]


async def test_two_logins_share_no_secret(home) -> None:
    async with pair() as servers:
        home.configure(servers.url)
        async with logging_in(home) as one, logging_in(home) as other:
            for name in ("state", "code_challenge", "redirect_uri", "client_id"):
                assert one.parameters[name] != other.parameters[name]


@pytest.mark.parametrize(
    ("words", "scopes"),
    [
        (["--scopes", "tools,files"], ["tools", "files"]),
        (["--scopes", " tools , files,,mail "], ["tools", "files", "mail"]),
        (["--scopes=tools,tools"], ["tools"]),
    ],
)
async def test_the_scopes_that_are_given_are_asked_for(home, words, scopes) -> None:
    async with pair() as servers:
        done = await logged_in(home, servers, *words)
        [asked] = servers.authority.asked
    assert done.status == 0
    assert asked.scopes == scopes
    assert only_credentials(home)["scopes"] == scopes


async def test_the_scopes_of_the_settings_are_asked_for_where_none_are_given(home) -> None:
    async with pair() as servers:
        home.configure(servers.url, table='scopes = ["tools", "mail"]')
        async with logging_in(home) as login:
            assert login.parameters["scope"] == "tools mail"
        async with logging_in(home, "--scopes", "files") as login:
            assert login.parameters["scope"] == "files"


@pytest.mark.parametrize("words", ["a b", 'a,"', "a,b\\", " , ", "", "\u00e9"])
def test_an_invalid_scope_is_wrong_usage(words, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        mcp_login.login(["docs", "--scopes", words])
    assert ended.value.code == 2
    assert "argument --scopes" in capsys.readouterr().err


async def test_a_client_that_was_registered_by_hand_is_used(home) -> None:
    async with pair(Switches(registration=False)) as servers:
        servers.authority.add_client("by-hand", "http://127.0.0.1:8931/callback")
        home.configure(
            servers.url,
            more="mcp_oauth_callback_port = 8931",
            table='oauth_client_id = "by-hand"',
        )
        async with logging_in(home) as login:
            assert login.parameters["client_id"] == "by-hand"
            await consent(login.address)
            assert (await login.ended()).status == 0


@pytest.mark.parametrize("known", [None, ["none"], ["client_secret_basic"], ["client_secret_post"]])
async def test_the_client_shows_who_it_is_as_the_authorization_server_wants(
    tmp_path, known
) -> None:
    async with pair(Switches(methods=known)) as servers:
        kept = await log_in(file_store(tmp_path), servers)
        [client] = servers.authority.clients.values()
    assert client.token_endpoint_auth_method == (known or ["none"])[0]
    assert (kept.client_secret is not None) == (known not in (None, ["none"]))


@pytest.mark.parametrize(
    "where", ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]
)
async def test_a_server_without_metadata_may_be_its_own_authorization_server(
    tmp_path, where
) -> None:
    async with pair(Switches(own=True, metadata_at=where)) as servers:
        assert servers.authority.url == servers.server.url
        kept = await log_in(file_store(tmp_path), servers)
    assert kept.issuer == servers.server.url


async def test_an_authorization_server_with_openid_metadata_alone_is_found(tmp_path) -> None:
    async with pair(Switches(metadata_at="/.well-known/openid-configuration")) as servers:
        assert (await log_in(file_store(tmp_path), servers)).issuer == servers.authority.url


async def test_the_issuer_that_the_answer_names_is_compared(tmp_path) -> None:
    async with pair() as servers:
        servers.authority.switches.issuer = servers.authority.url
        assert (await log_in(file_store(tmp_path), servers)).access_token


async def test_a_server_that_is_not_enabled_can_be_logged_in_to(home) -> None:
    async with pair() as servers:
        home.configure(servers.url, table="enabled = false")
        async with logging_in(home) as login:
            await consent(login.address)
            assert (await login.ended()).status == 0


async def test_a_second_login_takes_the_place_of_the_first(home) -> None:
    async with pair() as servers:
        await logged_in(home, servers)
        first = only_credentials(home)
        await logged_in(home, servers)
        second = only_credentials(home)
    assert first["access_token"] != second["access_token"]


async def test_a_token_in_a_variable_counts_before_a_login_and_that_is_said(home) -> None:
    async with pair() as servers:
        home.configure(servers.url, table='bearer_token_env_var = "DOCS_TOKEN"')
        async with logging_in(home) as login:
            await consent(login.address)
            done = await login.ended()
    assert done.status == 0
    assert "DOCS_TOKEN" in done.err


async def test_a_stdio_server_has_no_login(home) -> None:
    home.path.mkdir()
    (home.path / "config.toml").write_text('[mcp_servers.files]\ncommand = "true"\n')
    done = await agent(home, "mcp", "login", "files")
    assert (done.status, done.out) == (1, "")
    assert done.err == (
        "agent mcp login: OAuth login is unsupported for 'files': it is a stdio server, and only "
        "streamable HTTP servers have one\n"
    )


async def test_an_unknown_server_is_named(home) -> None:
    home.configure("http://127.0.0.1:1/mcp")
    done = await agent(home, "mcp", "login", "dogs")
    assert (done.status, done.out) == (1, "")
    assert done.err == (
        "agent mcp login: No MCP server named 'dogs' exists; did you mean `docs`?\n"
    )


@pytest.mark.parametrize(
    "words",
    [["login"], ["logout"], ["login", "a", "b"], ["logout", "--x", "a"], ["login", "--sc", "a"]],
)
def test_wrong_usage_is_status_2(words, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        {"login": mcp_login.login, "logout": mcp_login.logout}[words[0]](words[1:])
    assert ended.value.code == 2
    assert f"usage: agent mcp {words[0]}" in capsys.readouterr().err


async def test_settings_that_cannot_be_used_are_status_1(home) -> None:
    home.path.mkdir()
    (home.path / "config.toml").write_text("mcp_oauth_credentials_store = 'shelf'\n")
    done = await agent(home, "mcp", "login", "docs")
    assert done.status == 1
    assert "config.toml:1:31: `mcp_oauth_credentials_store` must be one of" in done.err


async def test_logout_removes_what_is_kept_and_says_so(home) -> None:
    async with pair() as servers:
        await logged_in(home, servers)
        listed = await agent(home, "mcp", "list", "--json")
        first = await agent(home, "mcp", "logout", "docs")
        second = await agent(home, "mcp", "logout", "docs")
        after = await agent(home, "mcp", "list", "--json")
    assert json.loads(listed.out)[0]["auth_status"] == "authenticated"
    assert (first.status, first.out) == (0, "Removed OAuth credentials for 'docs'.\n")
    assert (second.status, second.out) == (0, "No OAuth credentials stored for 'docs'.\n")
    assert (first.err, second.err) == ("", "")
    assert json.loads(after.out)[0]["auth_status"] != "authenticated"
    assert not home.credentials.exists()
    assert "[mcp_servers.docs]" in (home.path / "config.toml").read_text()


async def test_logout_needs_no_settings(home) -> None:
    async with pair() as servers:
        await logged_in(home, servers)
    (home.path / "config.toml").write_text("[broken")
    done = await agent(home, "mcp", "logout", "docs")
    assert (done.status, done.out) == (0, "Removed OAuth credentials for 'docs'.\n")


@pytest.mark.parametrize("name", ["docs", "never-was", "\x1b[31mred", "-x"])
def test_logout_without_a_login_names_the_server(tmp_path, name, monkeypatch, capsys) -> None:
    monkeypatch.setenv("AGENT_HOME", str(tmp_path / "home"))
    assert mcp_login.logout(["--", name]) == 1
    shown = name.replace("\x1b", "\\x1b")
    out, err = capsys.readouterr()
    assert out == f"No OAuth credentials stored for '{shown}'.\n"
    assert err == f"agent mcp logout: No MCP server named '{shown}' exists\n"
    assert not (tmp_path / "home").exists()


async def test_another_address_has_no_login(home) -> None:
    async with pair() as servers:
        await logged_in(home, servers)
        home.configure(f"{servers.server.url}/other")
        listed = await agent(home, "mcp", "list", "--json")
    assert json.loads(listed.out)[0]["auth_status"] != "authenticated"


async def test_removing_a_server_removes_its_login(home) -> None:
    async with pair() as servers:
        await logged_in(home, servers)
        done = await agent(home, "mcp", "remove", "docs")
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[-1] == "Removed OAuth credentials for 'docs'."
    assert not home.credentials.exists()


async def test_list_and_get_show_no_token(home) -> None:
    async with pair() as servers:
        await logged_in(home, servers)
        shown = [
            await agent(home, "mcp", *words)
            for words in (["list"], ["list", "--json", "--show-secrets"], ["get", "docs"])
        ]
        said = "".join(one.out + one.err for one in shown)
    assert "authenticated" in said
    assert not [token for token in servers.authority.tokens if token in said]
