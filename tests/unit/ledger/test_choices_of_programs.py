"""Programs that choose differently are recorded with different choices, on every surface.

Each conversation is written by hand, and so is the value that it must give.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from harness.judge.ledger.record import record_trace
from harness.protocol.spec.loading import load_book
from harness.trace.marks import CallEnd, ModelEnd
from tests.rules import open_commands as odd
from tests.rules import open_exec as odd_exec
from tests.rules import open_sdk as odd_sdk
from tests.rules.case import Written
from tests.rules.command_talk import (
    AUTHORIZE,
    HEADINGS,
    MCP_URL,
    CommandTalk,
    http_table,
    stdio_table,
)
from tests.rules.sdk_talk import FAILED, SAID, STARTED, SdkTalk, completed, whole_turn
from tests.rules.streams import THREAD, StreamTalk, command, message

BOOK = load_book()
Talk = Callable[[], Written]
DOCS = stdio_table("docs", "npx")


# agent exec


def two_turns(**second: int) -> StreamTalk:
    """Two turns of a thread, each with 12 tokens by the model."""
    talk = StreamTalk()
    for number, thread in enumerate(("", THREAD)):
        talk.process(thread=thread).calls("hello")
        talk.mark(ModelEnd(call=number + 1, outcome=CallEnd.COMPLETED, usage=12))
        talk.opens().completed(message("Yes.", id=f"i-{number}"))
        talk.done(**(second if number else {}))
    return talk


def of_the_thread() -> StreamTalk:
    return two_turns(input_tokens=20, output_tokens=4)


def ids_again() -> StreamTalk:
    talk = StreamTalk().process().opens().completed(message("Yes.", id="i-0")).done()
    return talk.process(thread=THREAD).opens().completed(message("No.", id="i-0")).done()


def not_named_again() -> StreamTalk:
    talk = StreamTalk().turn().process(thread=THREAD).says("turn.started")
    return talk.completed(message("Yes.")).done()


def usual_command() -> StreamTalk:
    talk = StreamTalk().process().opens().started(command()).completed(command(**odd_exec.DONE))
    change = {"type": "file_change", "changes": [{"path": "/a", "kind": "add"}]}
    return talk.completed({**change, "status": "completed"}).completed(message("Yes.")).done()


def retried(*, told: bool) -> StreamTalk:
    talk = StreamTalk().process().calls("hello").refuses(500).opens()
    if told:
        talk.says("error", message="Reconnecting")
    return talk.calls("hello").answers("Yes.").completed(message("Yes.")).done()


def failed(*, error: bool) -> StreamTalk:
    talk = StreamTalk().process().opens()
    return (talk.says("error", message="no") if error else talk).fails()


# agent mcp


def lists(auth: str, state: str, url: str = "-", cwd: str = "-") -> CommandTalk:
    """A server over HTTP, and one that has no key enabled."""
    talk = CommandTalk().config(http_table("web") + DOCS.replace("enabled = true\n", ""))
    rows = f"web  {url}  -  -  -  enabled  {auth}\ndocs  npx  -  -  {cwd}  {state}  unsupported\n"
    return talk.asks("list").ends(f"{HEADINGS}\n{rows}")


def shows(env: str) -> CommandTalk:
    talk = CommandTalk().adds("docs", "npx", KEY="v4lue")
    return talk.asks("get", "docs").ends(f"docs\n  env: {env}\n")


def members(**more: object) -> CommandTalk:
    entry = {"name": "docs", "auth_status": "unsupported", **more}
    return CommandTalk().config(DOCS).asks("list", "--json").ends(json.dumps([entry]))


def removes_unknown(status: int) -> CommandTalk:
    return CommandTalk().config(DOCS).asks("remove", "nope").ends("No server.\n", status=status)


def unknown_subcommand() -> CommandTalk:
    return CommandTalk().asks("restart").ends("", "error\n", status=2)


def empty_list(printed: str) -> CommandTalk:
    return CommandTalk().asks("list").ends(printed)


def gets_unknown() -> CommandTalk:
    return CommandTalk().config(DOCS).asks("get", "nope").ends("", "no nope\n", status=1)


def refuses(*words: str) -> CommandTalk:
    return CommandTalk().asks("add", *words).ends("", "error\n", status=2)


def takes(*words: str, config: str = "", left: str = DOCS) -> CommandTalk:
    return CommandTalk().config(config).asks("add", *words).config(left).ends("Added.\n")


def replaces() -> CommandTalk:
    return takes("docs", "--", "x", config=DOCS, left=stdio_table("docs", "x"))


def flat() -> CommandTalk:
    return takes("docs", "--", "npx", left='[mcp_servers.docs]\ncommand = "npx"\n')


def keeps_comments() -> CommandTalk:
    return takes("docs", "--", "npx", config="# mine\n", left=f"# mine\n{DOCS}")


def keeps_both() -> CommandTalk:
    talk = CommandTalk().asks("add", "one", "--", "x").asks("add", "two", "--", "x")
    talk.config(stdio_table("one", "x") + stdio_table("two", "x"))
    return talk.ends(run=1).ends(run=2)


def adds_web(*, login: bool = False) -> CommandTalk:
    url = "http://127.0.0.1:8080/mcp"
    talk = CommandTalk().asks("add", "web", "--url", url, offers=AUTHORIZE)
    talk = talk.visits(talk.address()) if login else talk
    return talk.config(http_table("web", url)).ends("Added.\n")


def logs_in(*, register: bool = False, store: str = "") -> CommandTalk:
    talk = CommandTalk().config(http_table("web"))
    talk.asks("login", "web", offers=AUTHORIZE).web("metadata")
    if register:
        talk.web("register")
    talk.visits(talk.address()).web("token")
    return (talk.store("access_token", path=store) if store else talk).ends("Logged in.\n")


def denies() -> CommandTalk:
    talk = CommandTalk().config(http_table("web")).asks("login", "web", offers=AUTHORIZE)
    return talk.visits(talk.address()).ends("", "denied\n", status=1)


def removes_all() -> CommandTalk:
    talk = CommandTalk().config(http_table("web")).logs_in("web").asks("remove", "web")
    return talk.config("").store().ends("Removed the global server web.\n")


def logs_out_of_nobody() -> CommandTalk:
    return CommandTalk().config(DOCS).asks("logout", "nope").ends("None.\n")


# SDKs


def base_by_override() -> SdkTalk:
    return SdkTalk().driver({"baseUrl": "http://h/v1"}).runs("--config", 'base="http://h/v1"')


def config(*words: str) -> SdkTalk:
    return SdkTalk().driver({"config": {"a": "b c"}}).runs(*words)


def model_twice(*words: str) -> SdkTalk:
    return SdkTalk().driver({"config": {"model": "m-1"}}, {"model": "m-2"}).runs(*words)


def first_word(word: str) -> SdkTalk:
    return SdkTalk().driver().asks().starts(word).gives()


def joined(join: str, image: str) -> SdkTalk:
    entries = [{"type": "text", "text": "one"}, {"type": "local_image", "path": "a/b.png"}]
    entries.append({"type": "text", "text": "two"})
    talk = SdkTalk().driver().asks("run", entries)
    return talk.starts("exec", "--image", image, stdin=join.join(("one", "two"))).gives()


def later(*words: str) -> SdkTalk:
    talk = SdkTalk().driver(thread={"model": "m-1"}).runs("--model", "m-1")
    return talk.asks().starts("exec", *words).gives()


def resumed(*words: str) -> SdkTalk:
    return SdkTalk().driver(thread={"model": "m-1"}, resume="thr-1").runs(*words)


def effort(*, passed: bool) -> SdkTalk:
    talk = SdkTalk().driver(thread={"modelReasoningEffort": "huge"}).asks()
    return talk.starts("exec", "effort=huge").gives() if passed else talk.throws("no", thread=None)


def no_message(final: str | None) -> SdkTalk:
    writes = whole_turn({"type": "reasoning", "text": "hm"})
    return SdkTalk().driver().asks(writes=writes).starts("exec").gives(final)


def no_end(*, gives: bool) -> SdkTalk:
    talk = SdkTalk().driver().asks(writes=[STARTED, completed(SAID)]).starts("exec")
    return talk.gives(usage=None) if gives else talk.throws("no end")


def retries(*, goes_on: bool) -> SdkTalk:
    writes = [STARTED, odd_sdk.RETRIED, *whole_turn()[1:]]
    talk = SdkTalk().driver().asks(writes=writes).starts("exec")
    return talk.gives() if goes_on else talk.throws("Reconnecting 1/5")


def fatal(*, gives: bool) -> SdkTalk:
    talk = SdkTalk().driver().asks(writes=[STARTED, odd_sdk.RETRIED]).starts("exec")
    return talk.gives(usage=None) if gives else talk.throws("Reconnecting 1/5")


def ends_after_failing() -> SdkTalk:
    events = whole_turn(end=FAILED)
    talk = SdkTalk().driver().asks("runStreamed", writes=events).starts("exec")
    return talk.yields(*events).ends()


def rejects(words: str) -> SdkTalk:
    return SdkTalk().driver().asks(writes=whole_turn(end=FAILED)).starts("exec").throws(words)


def aborted(call: str, when: str) -> SdkTalk:
    talk = SdkTalk().driver().asks(call, abort=when, writes=[STARTED])
    return talk.starts("exec").throws("stopped", "AbortError")


def unnamed(thread: str | None) -> SdkTalk:
    talk = SdkTalk().driver().asks(abort="before", writes=[])
    return talk.throws("stopped", "AbortError", thread)


URL, ENV = ("--url", "http://h/"), ("--env", "A=b")

# What must be seen: a point, a situation, a value, and the conversation that shows it.
SEEN: list[tuple[str, str, str, Talk]] = [
    ("sdk-usage.meaning", "", "of the turn", two_turns),
    ("sdk-usage.meaning", "", "of the whole thread", of_the_thread),
    ("sdk-item.ids", "", "string", usual_command),
    ("sdk-item.ids", "", "absent", odd_exec.without_ids),
    ("sdk-item.ids", "in a later turn of the thread", "others than before", two_turns),
    ("sdk-item.ids", "in a later turn of the thread", "some come again", ids_again),
    ("sdk-item.status-words", "command_execution", "in_progress", usual_command),
    ("sdk-item.status-words", "command_execution", "running", odd_exec.other_words),
    ("sdk-item.kinds", "", "add", usual_command),
    ("sdk-item.kinds", "", "created", odd_exec.other_words),
    ("sdk-item.absent", "exit_code of command_execution, when it begins", "null", usual_command),
    (
        "sdk-item.absent",
        "exit_code of command_execution, when it begins",
        "absent",
        odd_exec.leaves_out,
    ),
    ("sdk-item.updated-which", "command_execution", "not updated", usual_command),
    ("sdk-item.updated-which", "command_execution", "updated", odd_exec.updates_all),
    ("sdk-item.started-which", "command_execution", "item.started first", usual_command),
    (
        "sdk-item.started-which",
        "command_execution",
        "item.completed alone",
        odd_exec.only_completed,
    ),
    ("sdk-child.exit-status", "turn.completed", "status 0", two_turns),
    ("sdk-child.exit-status", "turn.completed", "status 3", odd_exec.always_one),
    ("sdk-event.started-again", "", "yes, with the same id", two_turns),
    ("sdk-event.started-again", "", "no", not_named_again),
    ("sdk-event.retries", "", "an error event", lambda: retried(told=True)),
    ("sdk-event.retries", "", "no error event", lambda: retried(told=False)),
    ("sdk-event.failed-after-error", "", "turn.failed", lambda: failed(error=True)),
    ("sdk-event.failed-after-error", "", "no error event before it", lambda: failed(error=False)),
    ("mcp-list.auth-words", "list, not logged in", "maybe", lambda: lists("maybe", "on")),
    ("mcp-list.auth-words", "list, not logged in", "none", lambda: lists("none", "on")),
    ("mcp-list.status-words", "no key", "enabled", lambda: lists("none", "enabled")),
    ("mcp-list.status-words", "no key", "off", lambda: lists("none", "off")),
    ("mcp-config.enabled-default", "list", "enabled", lambda: lists("none", "enabled")),
    ("mcp-config.enabled-default", "list", "off", lambda: lists("none", "off")),
    ("mcp-list.url-column", "", "Command", lambda: lists("none", "on", url=MCP_URL)),
    ("mcp-list.url-column", "", "not shown", lambda: lists("none", "on")),
    ("mcp-list.cwd-column", "the file has no cwd", "a dash", lambda: lists("none", "on")),
    ("mcp-list.cwd-column", "the file has no cwd", "here", lambda: lists("no", "on", cwd="here")),
    ("mcp-list.secrets", "get", "masked", lambda: shows("KEY=*****")),
    ("mcp-list.secrets", "get", "as they are", odd.shows_values),
    ("mcp-list.json-fields", "list --json", "auth_status, name", members),
    ("mcp-list.json-fields", "list --json", "auth_status, more, name", lambda: members(more=1)),
    (
        "mcp-command.exit-statuses",
        "remove of an unknown name",
        "status 0, standard output",
        lambda: removes_unknown(0),
    ),
    (
        "mcp-command.exit-statuses",
        "remove of an unknown name",
        "status 7, standard output",
        odd.one_status,
    ),
    (
        "mcp-command.no-subcommand",
        "an unknown one",
        "status 0, standard output",
        odd.no_subcommand,
    ),
    (
        "mcp-command.no-subcommand",
        "an unknown one",
        "status 2, standard error",
        unknown_subcommand,
    ),
    ("mcp-list.empty", "list", "nothing, status 0, nothing printed", lambda: empty_list("")),
    ("mcp-list.empty", "list", "a line, status 0, standard output", lambda: empty_list("None.")),
    (
        "mcp-get.unknown",
        "get",
        "does not name it, status 0, nothing printed",
        odd.unknown_is_empty,
    ),
    ("mcp-get.unknown", "get", "names it, status 1, standard error", gets_unknown),
    ("mcp-name.empty", "", "added, status 0", odd.takes_an_empty_name),
    ("mcp-name.empty", "", "not added, status 2", lambda: refuses("", "--", "x")),
    (
        "mcp-add.existing",
        "",
        "the old one is kept, status 1, standard error",
        odd.keeps_the_existing,
    ),
    ("mcp-add.existing", "", "the new one replaces it, status 0, standard output", replaces),
    ("mcp-add.env-form", "", "added, status 0", odd.env_without_equals),
    ("mcp-add.env-form", "", "not added, status 2", lambda: refuses("a", "--env", "A", "--", "x")),
    ("mcp-add.without-dashes", "", "not added, status 2", odd.needs_dashes),
    ("mcp-add.without-dashes", "", "added, status 0", lambda: takes("docs", "npx")),
    ("mcp-add.both-kinds", "both", "added, status 0", odd.takes_both_kinds),
    ("mcp-add.both-kinds", "both", "not added, status 2", lambda: refuses("a", *URL, "--", "x")),
    ("mcp-config.env-for-http", "", "added, status 0", odd.takes_env_for_http),
    ("mcp-config.env-for-http", "", "not added, status 2", lambda: refuses("a", *URL, *ENV)),
    ("mcp-config.flat-form", "written", "keys within transport", keeps_comments),
    ("mcp-config.flat-form", "written", "keys in the table itself", flat),
    ("mcp-config.other-keys", "comments", "kept", keeps_comments),
    ("mcp-config.other-keys", "comments", "changed or lost", odd.drops_other_keys),
    (
        "mcp-config.broken-file",
        "add",
        "status 0, standard output, the file is changed",
        odd.mends_a_broken_file,
    ),
    (
        "mcp-config.broken-file",
        "add",
        "status 0, standard error, the file is untouched",
        odd.refuses_a_broken_file,
    ),
    ("mcp-config.concurrent", "", "some are lost", odd.loses_one),
    ("mcp-config.concurrent", "", "none is lost", keeps_both),
    ("mcp-add.login", "", "a login begins", lambda: adds_web(login=True)),
    ("mcp-add.login", "", "no login, the server is not asked", adds_web),
    ("mcp-login.callback", "the way back", "127.0.0.1, /callback", logs_in),
    ("mcp-login.callback", "the way back", "not by an address", odd.another_callback),
    ("mcp-login.registration", "", "does not register", logs_in),
    ("mcp-login.registration", "", "registers itself", lambda: logs_in(register=True)),
    ("mcp-login.denied", "", "it waits on", odd.denied),
    ("mcp-login.denied", "", "status 1, standard error", denies),
    ("mcp-credentials.store", "", "in no file of the home", logs_in),
    ("mcp-credentials.store", "", ".keys with mode 0600", lambda: logs_in(store=".keys")),
    ("mcp-remove.credentials", "", "they are left", odd.keeps_credentials),
    ("mcp-remove.credentials", "", "they are removed too", removes_all),
    ("mcp-logout.unconfigured", "", "status 1, nothing printed", odd.logout_unconfigured),
    ("mcp-logout.unconfigured", "", "status 0, standard output", logs_out_of_nobody),
    ("sdk-child.way", "the first word", "exec", lambda: first_word("exec")),
    ("sdk-child.way", "the first word", "serve", lambda: first_word("serve")),
    ("sdk-client.base-url-way", "", "the variable THE_URL", odd_sdk.by_variables),
    ("sdk-client.base-url-way", "", "the override base", base_by_override),
    ("sdk-client.own-variables", "", "PATH, SDK", odd_sdk.by_variables),
    ("sdk-client.own-variables", "", "none", lambda: first_word("exec")),
    ("sdk-client.config-values", "string", "in double quotes", lambda: config('a="b c"')),
    ("sdk-client.config-values", "string", "in single quotes", lambda: config("a='b c'")),
    ("sdk-client.config-keys", "", "passed on", lambda: config('a="b c"')),
    ("sdk-client.config-keys", "", "left out", lambda: config("--yes")),
    (
        "sdk-client.config-order",
        "",
        "the option comes last",
        lambda: model_twice('model="m-1"', "m-2"),
    ),
    (
        "sdk-client.config-order",
        "",
        "the override comes last",
        lambda: model_twice("m-2", 'model="m-1"'),
    ),
    ("sdk-input.joined", "", "a space", odd_sdk.joins_texts),
    ("sdk-input.joined", "", "an empty line", lambda: joined("\n\n", "a/b.png")),
    ("sdk-input.image-base", "", "made absolute", odd_sdk.joins_texts),
    ("sdk-input.image-base", "", "as it was given", lambda: joined("\n", "a/b.png")),
    ("sdk-thread-options.every-turn", "", "not passed on", odd_sdk.options_at_first),
    ("sdk-thread-options.every-turn", "", "passed on", lambda: later("--model", "m-1")),
    ("sdk-agent.resume-options", "", "not passed on", odd_sdk.options_at_first),
    ("sdk-agent.resume-options", "", "passed on", lambda: resumed("--model", "m-1")),
    ("sdk-thread-options.unknown", "", "passed on", lambda: effort(passed=True)),
    ("sdk-thread-options.unknown", "", "throws Error", lambda: effort(passed=False)),
    ("sdk-result.no-message", "", "null", lambda: no_message(None)),
    ("sdk-result.no-message", "", "empty string", lambda: no_message("")),
    ("sdk-result.usage-null", "", "null", lambda: no_end(gives=True)),
    ("sdk-result.usage-null", "", "throws Error", lambda: no_end(gives=False)),
    ("sdk-thread.transitions", "the id, not named yet", "null", lambda: unnamed(None)),
    ("sdk-thread.transitions", "the id, not named yet", "string", lambda: unnamed("thr-0")),
    ("sdk-event.retries", "run", "resolves", lambda: retries(goes_on=True)),
    ("sdk-event.retries", "run", "throws Error", lambda: retries(goes_on=False)),
    ("sdk-event.failed-after-error", "run", "resolves", lambda: fatal(gives=True)),
    ("sdk-event.failed-after-error", "run", "throws Error", lambda: fatal(gives=False)),
    ("sdk-errors.streamed-throws", "", "throws Error", odd_sdk.throws_after_failing),
    ("sdk-errors.streamed-throws", "", "ends", ends_after_failing),
    ("sdk-errors.messages", "", "its own words", odd_sdk.own_messages),
    ("sdk-errors.messages", "", "the words of turn.failed", lambda: rejects("too fast")),
    ("sdk-errors.messages", "", "those words and more", lambda: rejects("failed: too fast")),
    ("sdk-abort.streamed", "", "ends", odd_sdk.aborted_streams),
    ("sdk-abort.streamed", "", "throws AbortError", lambda: aborted("runStreamed", "during")),
    (
        "sdk-abort.beforehand",
        "run",
        "throws AbortError, the agent is started",
        lambda: aborted("run", "before"),
    ),
    (
        "sdk-abort.beforehand",
        "run",
        "throws TypeError, nothing is started",
        odd_sdk.aborted_streams,
    ),
]


@pytest.mark.parametrize(
    ("point", "about", "value", "talk"), SEEN, ids=[f"{one[0]}-{one[2]}" for one in SEEN]
)
def test_a_choice_is_recorded_as_what_it_is(point: str, about: str, value: str, talk: Talk) -> None:
    record = record_trace(BOOK, talk().trace())
    assert record.crashes == []
    seen = [(one.situation, one.value) for one in record.choices if one.point == point]
    assert (about, value) in seen


def test_each_point_has_two_programs_that_are_told_apart() -> None:
    values: dict[tuple[str, str], set[str]] = {}
    for point, about, value, _ in SEEN:
        values.setdefault((point, about), set()).add(value)
    apart = {point for (point, _), found in values.items() if len(found) > 1}
    others = [one for one in BOOK.unspecified if one.document == "mcp-cli-and-sdk"]
    assert {one.id for one in others if one.unseen is None} - apart == set()
