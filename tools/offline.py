"""Runner of a command without network: `python tools/offline.py COMMAND …`.

The command runs in a new network namespace with loopback only, made with root's rights, a user
namespace or, if the kernel refuses both, bubblewrap. `--probe` only checks whether one can be made
(exit status 0 or 1). Linux only.

No connection over loopback uses TLS, so commands get one certificate authority, whose key is lost,
in place of the system's. The releases read all of them for each client that they make, several
times in a turn: a fifth of its processor time. Without any they cannot make a client.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from harness.client.target.confine.network import enter_own_network

REFUSED = 77
AUTHORITIES = Path(__file__).resolve().with_name("authorities")


def _child(command: list[str]) -> int:
    """Run the command in a namespace; return its exit status, REFUSED if none can be made.

    All in a child process, since a half-made namespace cannot be left.
    """
    pid = os.fork()
    if pid == 0:
        if enter_own_network():
            os._exit(REFUSED)
        try:
            os.execvp(command[0], command)
        except OSError as error:
            sys.stderr.write(f"offline: {command[0]}: {error.strerror}\n")
            os._exit(127)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def run(command: list[str]) -> int:
    """Run a command offline and return its exit status, REFUSED if no namespace can be made."""
    status = _child(command)
    bubblewrap = shutil.which("bwrap")
    if status != REFUSED or bubblewrap is None:
        return status
    wrapped = [bubblewrap, "--dev-bind", "/", "/", "--unshare-net", "--", *command]
    probe = subprocess.run([*wrapped[: -len(command)], "true"], capture_output=True, check=False)
    return subprocess.run(wrapped, check=False).returncode if probe.returncode == 0 else REFUSED


def main() -> int:
    """Run the command of the command line and return its exit status."""
    arguments = sys.argv[1:]
    if arguments == ["--probe"]:
        return 0 if run(["true"]) == 0 else 1
    if not arguments:
        sys.stderr.write("usage: offline.py [--probe] COMMAND ...\n")
        return 2
    os.environ["SSL_CERT_DIR"] = str(AUTHORITIES)
    os.environ["SSL_CERT_FILE"] = str(AUTHORITIES / "none.pem")
    status = run(arguments)
    if status == REFUSED:
        sys.stderr.write("offline: this machine lets nobody make a network namespace\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
