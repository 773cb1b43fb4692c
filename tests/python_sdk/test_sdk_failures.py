"""Agents that fail, die, flood or write invalid lines: the errors, and no call hangs."""

import json
import pickle
from pathlib import Path

import pytest
from fake_agents import ECHO, Fake

from agent_sdk import (
    Agent,
    AgentError,
    AgentMessageItem,
    AgentNotFoundError,
    CommandExecutionItem,
    ConfigError,
    ProcessError,
    ProtocolError,
    RunStreamedResult,
    ThreadErrorEvent,
    ThreadEvent,
    TurnFailedError,
    TurnFailedEvent,
)

pytestmark = [pytest.mark.socket, pytest.mark.anyio]

BIG = "x" * 1_000_000


def _thread(agent: Fake, **options):
    return Agent(agent_path=agent.path, **options).start_thread()


async def _all(stream: RunStreamedResult) -> tuple[list[ThreadEvent], AgentError | None]:
    """The events of a stream, and what it raised after them."""
    events: list[ThreadEvent] = []
    try:
        async for event in stream:
            events.append(event)  # noqa: PERF401
    except AgentError as error:
        return events, error
    return events, None


FAILS = """
read()
begin()
message("as far as this")
sys.stderr.write("no money left\\n")
say("error", message="quota exceeded")
say("turn.failed", error={"message": "quota exceeded"})
sys.exit(1)
"""


async def test_a_failed_turn_rejects_run_with_the_message(fake) -> None:
    with pytest.raises(TurnFailedError, match=r"^quota exceeded$") as told:
        await _thread(fake(FAILS)).run("x")
    error = told.value
    assert (error.message, error.thread_id, error.usage) == ("quota exceeded", "thr_1", None)
    assert error.items == (AgentMessageItem(id="item_0", text="as far as this"),)
    assert error.stderr == "no money left\n"


async def test_a_failed_turn_is_told_by_its_event_and_the_stream_raises_nothing(fake) -> None:
    stream = _thread(fake(FAILS)).run_streamed("x")
    events, error = await _all(stream)
    assert error is None
    assert isinstance(events[-1], TurnFailedEvent)
    assert events[-1].error.message == "quota exceeded"
    assert (stream.exit_code, stream.stderr) == (1, "no money left\n")


async def test_a_failure_without_a_message_is_an_error_with_one(fake) -> None:
    with pytest.raises(TurnFailedError, match="did not say why"):
        await _thread(fake('read(); begin(); say("turn.failed")')).run("x")


@pytest.mark.parametrize("status", [0, 1, 101])
async def test_a_fatal_error_rejects_run_and_ends_the_stream(fake, status: int) -> None:
    agent = fake(f'read(); begin(); say("error", message="key refused"); sys.exit({status})')
    with pytest.raises(TurnFailedError, match=r"^key refused$"):
        await _thread(agent).run("x")
    events, error = await _all(_thread(agent).run_streamed("x"))
    assert error is None
    assert events[-1] == ThreadErrorEvent(message="key refused")


async def test_errors_that_tell_of_retries_do_not_fail_a_turn_that_completes(fake) -> None:
    agent = fake(
        """
read()
begin()
for number in (1, 2):
    say("error", message=f"Reconnecting... {number}/5")
message("there")
complete()
"""
    )
    assert (await _thread(agent).run("x")).final_response == "there"
    events, error = await _all(_thread(agent).run_streamed("x"))
    assert error is None
    assert [event.type for event in events].count("error") == 2


async def test_an_agent_that_dies_while_it_retries_did_not_tell_a_fatal_error(fake) -> None:
    agent = fake(
        """
read()
begin()
say("error", message="Reconnecting... 1/5")
os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    events, error = await _all(_thread(agent).run_streamed("x"))
    assert events[-1] == ThreadErrorEvent(message="Reconnecting... 1/5")
    assert isinstance(error, ProcessError)
    assert (error.exit_code, error.signal) == (None, 9)
    assert "signal 9" in str(error)
    assert "Reconnecting... 1/5" in str(error)
    with pytest.raises(ProcessError):
        await _thread(agent).run("x")


@pytest.mark.parametrize("body", ["", "read()", "read(); begin()", 'read(); begin(); message("x")'])
async def test_a_turn_without_an_end_is_no_success(fake, body: str) -> None:
    agent = fake(f"{body}\nsys.exit(0)")
    with pytest.raises(ProcessError, match="status 0 before its turn had ended") as told:
        await _thread(agent).run("x")
    assert told.value.exit_code == 0
    _, error = await _all(_thread(agent).run_streamed("x"))
    assert isinstance(error, ProcessError)


@pytest.mark.parametrize("prompt", ["x", BIG])
async def test_an_agent_that_refuses_to_start_is_quoted_however_long_the_prompt(
    fake, prompt: str
) -> None:
    agent = fake('sys.exit("not a git repository; give --skip-git-repo-check")')
    with pytest.raises(ProcessError, match="not a git repository") as told:
        await _thread(agent).run(prompt)
    assert told.value.exit_code == 1
    assert told.value.stderr == "not a git repository; give --skip-git-repo-check\n"


async def test_a_prompt_that_nobody_reads_does_not_hold_up_the_turn(fake) -> None:
    agent = fake('begin(); message("I knew"); complete()')
    assert (await _thread(agent).run(BIG)).final_response == "I knew"


async def test_a_large_prompt_arrives_while_events_and_errors_flow(fake) -> None:
    agent = fake(
        """
begin()
sys.stderr.write("e" * 300_000)
for _ in range(20):
    message("y" * 20_000)
prompt = read()
message(f"{len(prompt)} {prompt[-1]}")
complete()
"""
    )
    result = await _thread(agent).run(BIG + "z")
    assert result.final_response == "1000001 z"
    assert len(result.items) == 21


async def test_a_line_of_many_megabytes_is_one_event(fake) -> None:
    agent = fake(
        """
read()
begin()
item = {"id": "item_0", "type": "command_execution", "command": "yes", "exit_code": 0,
        "aggregated_output": "y\\n" * 6_000_000, "status": "completed"}
say("item.completed", item=item)
message("\u2028\u0085 stays", id="item_1")
complete()
"""
    )
    result = await _thread(agent).run("x")
    assert isinstance(result.items[0], CommandExecutionItem)
    assert len(result.items[0].aggregated_output) == 12_000_000
    assert result.final_response == "\u2028\u0085 stays"


async def test_blank_lines_and_carriage_returns_are_no_matter(fake) -> None:
    agent = fake(
        """
read()
out.write(b'\\r\\n\\n{"type":"turn.started"}\\r\\n \\n')
out.write('{"type":"error","message":"a\u2028b"}\\n'.encode())
out.write(b'{"type":"turn.completed","usage":null}')
out.flush()
"""
    )
    events, error = await _all(_thread(agent).run_streamed("x"))
    assert error is None
    assert [event.type for event in events] == ["turn.started", "error", "turn.completed"]
    assert events[1] == ThreadErrorEvent(message="a\u2028b")
    assert (await _thread(agent).run("x")).usage is None


async def test_the_last_message_is_the_final_response(fake) -> None:
    agent = fake('read(); begin(); message("first"); message("last"); complete()')
    assert (await _thread(agent).run("x")).final_response == "last"
    silent = fake("read(); begin(); complete()")
    assert (await _thread(silent).run("x")).final_response == ""


async def test_a_line_that_is_no_event_ends_the_turn_and_the_agent(fake, hurried) -> None:
    agent = fake('read(); begin(); line(b"warming up"); forever()')
    with pytest.raises(ProtocolError, match="warming up") as told:
        await _thread(agent).run("x")
    assert told.value.line == "warming up"
    events, error = await _all(_thread(agent).run_streamed("x"))
    assert [event.type for event in events] == ["thread.started", "turn.started"]
    assert isinstance(error, ProtocolError)
    assert agent.living() == []


async def test_events_before_an_invalid_line_are_delivered(fake) -> None:
    agent = fake('read(); out.write(b\'{"type":"turn.started"}\\nnoise\\n\'); out.flush()')
    events, error = await _all(_thread(agent).run_streamed("x"))
    assert [event.type for event in events] == ["turn.started"]
    assert isinstance(error, ProtocolError)


async def test_that_the_agent_died_matters_more_than_the_line_it_was_writing(fake) -> None:
    agent = fake(
        """
read()
begin()
out.write(b'{"type":"item.comp')
out.flush()
sys.stderr.write("out of memory\\n")
os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    with pytest.raises(ProcessError, match="signal 9: out of memory"):
        await _thread(agent).run("x")


async def test_an_exit_status_after_a_completed_turn_takes_nothing_back(fake) -> None:
    agent = fake('read(); begin(); message("done"); complete(); sys.exit(3)')
    assert (await _thread(agent).run("x")).final_response == "done"
    stream = _thread(agent).run_streamed("x")
    events, error = await _all(stream)
    assert (error, events[-1].type, stream.exit_code) == (None, "turn.completed", 3)


async def test_of_a_flood_of_errors_the_end_is_kept(fake) -> None:
    agent = fake(
        """
read()
for number in range(200_000):
    sys.stderr.write(f"warning {number}\\n")
sys.exit("this is why")
"""
    )
    with pytest.raises(ProcessError) as told:
        await _thread(agent).run("x")
    lines = told.value.stderr.splitlines()
    assert lines[-2:] == ["warning 199999", "this is why"]
    assert lines[0].startswith("warning ")
    assert len(told.value.stderr) < 200_000


async def test_the_text_of_an_error_is_short_and_changes_no_terminal(fake) -> None:
    agent = fake(
        r"""
read()
sys.stderr.write("x" * 50_000 + "\x1b[31mred\x07\x7f\tthis is why\n")
sys.exit(4)
"""
    )
    with pytest.raises(ProcessError) as told:
        await _thread(agent).run("x")
    text = str(told.value)
    assert text.endswith("x\ufffd[31mred\ufffd\ufffd\tthis is why")
    assert len(text) < 5_000
    # What it wrote is all there.
    assert told.value.stderr.endswith("\x1b[31mred\x07\x7f\tthis is why\n")
    assert len(told.value.stderr) > 50_000


async def test_an_id_that_an_agent_tells_is_never_an_option_of_the_next_turn(fake) -> None:
    agent = fake('read(); begin("--last"); complete()')
    thread = _thread(agent)
    await thread.run("x")
    with pytest.raises(ConfigError, match="--last"):
        await thread.run("x", output_schema={})
    assert len(agent.runs()) == 1


async def test_errors_that_are_no_utf8_are_shown(fake) -> None:
    agent = fake('os.write(2, b"\\xff\\xfe broken"); sys.exit(4)')
    with pytest.raises(ProcessError, match="\ufffd\ufffd broken"):
        await _thread(agent).run("x")


async def test_an_agent_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "agent"
    with pytest.raises(AgentNotFoundError, match="there is no agent at") as told:
        await Agent(agent_path=missing).start_thread().run("x")
    assert told.value.path == str(missing)


async def test_an_agent_that_is_not_on_path_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(AgentNotFoundError, match="no `agent` on PATH; give agent_path"):
        await Agent().start_thread().run("x")


@pytest.mark.parametrize("entry", [".", "bin"])
async def test_the_working_directory_does_not_say_what_the_agent_is(
    fake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, entry: str
) -> None:
    """It may be a stranger's repository, and would get the key."""
    folder = tmp_path / "work" / entry
    folder.mkdir(parents=True)
    (folder / "agent").symlink_to(fake(ECHO).path)
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("PATH", f"/nowhere:{entry}")
    with pytest.raises(AgentNotFoundError, match="no `agent` on PATH"):
        await Agent().start_thread().run("x")


@pytest.mark.parametrize(
    ("content", "mode", "reason"),
    [
        ("#!/no/such/interpreter\n", 0o755, "interpreter"),
        ("#!/bin/sh\n", 0o644, "Permission denied"),
        ("no program", 0o755, "Exec format error"),
        (None, 0o755, "Permission denied"),
    ],
)
async def test_an_agent_that_cannot_be_run_is_named_with_the_reason(
    tmp_path: Path, content: str | None, mode: int, reason: str
) -> None:
    path = tmp_path / "agent"
    if content is None:
        path.mkdir()
    else:
        path.write_text(content)
        path.chmod(mode)
    thread = Agent(agent_path=path).start_thread()
    with pytest.raises(AgentNotFoundError, match=reason) as told:
        await thread.run("x", output_schema={})
    assert str(path) in str(told.value)


async def test_options_that_are_too_long_say_so(fake) -> None:
    with pytest.raises(AgentError, match="too long"):
        await _thread(fake(ECHO), config={"a": BIG}).run("x")


KEY = "sk-do-not-tell-1234567890"
TELLS = """
read()
key = os.environ["PROVIDER_API_KEY"]
sys.stderr.write(f"refused {key}\\n")
"""


@pytest.mark.parametrize(
    "end",
    [
        "sys.exit(1)",
        "line(key.encode())",
        'say("error", message=key); os.kill(os.getpid(), 9)',
        'begin(); say("turn.failed", error={"message": key})',
        'say("error", message=key)',
    ],
)
@pytest.mark.parametrize("given", [{"api_key": KEY}, {"env": {"PROVIDER_API_KEY": KEY}}])
async def test_no_error_shows_the_key(fake, end: str, given) -> None:
    agent = fake(TELLS + end)
    thread = _thread(agent, **given)
    with pytest.raises(AgentError) as told:
        await thread.run("x")
    shown = [str(told.value), repr(told.value), json.dumps(vars(told.value), default=repr)]
    assert "[API key]" in "".join(shown)
    assert KEY not in "".join(shown)
    assert KEY not in repr(Agent(agent_path=agent.path, **given)) + repr(thread)


@pytest.mark.parametrize("key", ["sk\n1", "sk\x001", "schlüssel", 7])
def test_a_key_that_cannot_be_one_is_refused_and_not_shown(key) -> None:
    with pytest.raises(ValueError, match="api_key") as told:
        Agent(api_key=key)
    assert str(key) not in str(told.value)


async def test_every_error_can_be_pickled(fake) -> None:
    agents = [FAILS, "sys.exit(3)", 'read(); line(b"noise")']
    for body in agents:
        with pytest.raises(AgentError) as told:
            await _thread(fake(body)).run("x")
        copied = pickle.loads(pickle.dumps(told.value))
        assert type(copied) is type(told.value)
        assert str(copied) == str(told.value)
        assert vars(copied) == vars(told.value)


async def test_the_thread_has_its_id_when_its_turn_fails_and_can_go_on(fake) -> None:
    agent = fake(
        """
prompt = read()
begin("thr_7")
if prompt == "bad":
    say("turn.failed", error={"message": "no"})
    sys.exit(1)
complete()
"""
    )
    thread = _thread(agent)
    with pytest.raises(TurnFailedError):
        await thread.run("bad")
    assert thread.id == "thr_7"
    await thread.run("good")
    assert agent.runs()[1]["argv"][-2:] == ["resume", "thr_7"]
