"""User programs that exit or are interrupted during a turn leave no agent behind."""

import asyncio
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from fake_agents import BOUND, DEAF, ECHO, WAITS, Fake, until

pytestmark = [pytest.mark.socket, pytest.mark.anyio, pytest.mark.slow]


def _script(agent: Fake, body: str, folder: Path) -> subprocess.Popen[str]:
    """A program of a user, whose agent has little time to end."""
    begin = f"""
        import asyncio, os, signal, sys
        from agent_sdk import Agent, process, tree
        tree.GRACE_SECONDS = process.LINGER_SECONDS = 0.3
        thread = Agent(agent_path={str(agent.path)!r}).start_thread()
    """
    path = folder / "script.py"
    path.write_text(textwrap.dedent(begin) + textwrap.dedent(body), "utf-8")
    return subprocess.Popen(
        [sys.executable, "-X", "dev", "-W", "error", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize(
    "body",
    [
        """
        async def main():
            global stream
            stream = thread.run_streamed("x", output_schema={})
            await anext(stream)
        asyncio.run(main())
        """,
        """
        stream = thread.run_streamed_sync("x", output_schema={})
        next(stream)
        """,
        """
        loop = asyncio.new_event_loop()
        stream = thread.run_streamed("x", output_schema={})
        loop.run_until_complete(anext(stream))
        for pending in asyncio.all_tasks(loop):
            pending.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        """,
        """
        async def main():
            global task
            told, observe = asyncio.Event(), thread._observe
            thread._observe = lambda event: (observe(event), told.set())
            task = asyncio.create_task(thread.run("x", output_schema={}))
            await told.wait()
        asyncio.run(main())
        """,
    ],
    ids=["stream", "sync", "closed loop", "task"],
)
def test_a_program_that_ends_leaves_no_agent(fake, tmp_path: Path, body: str) -> None:
    agent = fake(DEAF)
    with _script(agent, body, tmp_path) as program:
        out, errors = program.communicate(timeout=BOUND)
    assert agent.runs() != []
    assert agent.living() == []
    assert (out, errors, program.returncode) == ("", "", 0)


@pytest.mark.parametrize(
    "body",
    [
        'thread.run_sync("x")',
        """
        for event in thread.run_streamed_sync("x"):
            print(event.type, flush=True)
        """,
        'asyncio.run(thread.run("x"))',
    ],
    ids=["run_sync", "run_streamed_sync", "run"],
)
async def test_an_interrupt_from_the_keyboard_ends_the_agent(
    fake, tmp_path: Path, body: str
) -> None:
    agent = fake(DEAF)
    with _script(agent, body, tmp_path) as program:
        await until(lambda: len(agent.living()) == 5)
        program.send_signal(signal.SIGINT)
        _, errors = await asyncio.to_thread(program.communicate, timeout=BOUND)
    assert agent.living() == []
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert program.returncode == -signal.SIGINT


def test_a_fork_does_not_end_the_agent_of_its_parent(fake, tmp_path: Path) -> None:
    agent = fake(WAITS)
    body = """
        stream = thread.run_streamed_sync("x")
        next(stream)
        import warnings
        warnings.simplefilter("ignore")
        pid = os.fork()
        if pid == 0:
            sys.exit(0)
        os.waitpid(pid, 0)
        print(next(stream).type)
    """
    with _script(agent, body, tmp_path) as program:
        out, errors = program.communicate(timeout=BOUND)
    assert (out, errors) == ("turn.started\n", "")
    assert agent.living() == []


@pytest.mark.parametrize("body", ['print(thread.run_sync("x").final_response)'])
def test_children_that_the_system_reaps_by_itself_are_no_trouble(
    fake, tmp_path: Path, body: str
) -> None:
    agent = fake(ECHO)
    ignored = f"signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n{body}"
    with _script(agent, ignored, tmp_path) as program:
        out, errors = program.communicate(timeout=BOUND)
    assert (out, errors) == ("x\n", "")
