"""Programs for shell scripts, `harness` and `pytest`, that run in forks of a process.

That process has imported the wheel. A program passes its words, environment, folder and streams to
a thread of the test, which has one command forked at a time. Commands that serve others are started
by the script of the wheel instead: they run beside another command and end by a signal.
"""

import json
import os
import socket
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from fresh import Fresh

from tests.processes import fork_command

PROGRAMS = ("harness", "pytest")
SERVERS = ("double", "faulty", "model", "record")
SCRIPT = """#!{python} -IS
import json
import os
import socket
import sys

if sys.argv[1:2] and sys.argv[1] in {servers!r}:
    os.execv({started!r}, [{started!r}, *sys.argv[1:]])
program = os.path.basename(sys.argv[0])
with socket.socket(socket.AF_UNIX) as line:
    line.connect({address!r})
    asked = {{"words": [program, *sys.argv[1:]], "cwd": os.getcwd(), "env": dict(os.environ)}}
    socket.send_fds(line, [b"?"], [0, 1, 2])
    line.sendall(json.dumps(asked).encode() + b"\\n")
    sys.exit(int(line.makefile().readline()))
"""


@contextmanager
def forked_programs(fresh: Fresh) -> Generator[Path]:
    """Yield a folder with these programs, for the beginning of a PATH."""
    with tempfile.TemporaryDirectory() as name, socket.socket(socket.AF_UNIX) as listener:
        folder = Path(name)
        address = str(folder / "socket")
        listener.bind(address)
        listener.listen()
        for program in PROGRAMS:
            script = folder / program
            script.write_text(
                SCRIPT.format(
                    python=fresh.programs / "python",
                    servers=SERVERS,
                    started=str(fresh.programs / "harness"),
                    address=address,
                ),
                "utf-8",
            )
            script.chmod(0o755)
        thread = threading.Thread(target=_serve, args=[listener, fresh], daemon=True)
        thread.start()
        try:
            yield folder
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(listener: socket.socket, fresh: Fresh) -> None:
    """Have each command forked that is asked for, until the listener is shut down."""
    with suppress(OSError):
        while True:
            line, _ = listener.accept()
            with line, suppress(BrokenPipeError):
                line.sendall(b"%d\n" % _run(line, fresh))


def _run(line: socket.socket, fresh: Fresh) -> int:
    _, streams, _, _ = socket.recv_fds(line, 1, 3)
    try:
        asked = json.loads(line.makefile().readline())
        program, *words = asked["words"]
        command = [str(fresh.programs / program)]
        if program == "pytest":
            # Its modules and those of the wheel are already imported.
            command.append("--assert=plain")
        cwd, env = Path(asked["cwd"]), asked["env"]
        standard = (streams[0], streams[1], streams[2])
        return fork_command(
            [*command, *words], cwd=cwd, env=env, streams=standard, programs=fresh.programs
        )
    finally:
        for stream in streams:
            os.close(stream)
