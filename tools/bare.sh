#!/bin/sh
# Plays the scenarios that run a command or change a file, and the tests of the sandbox, as on a
# machine without bubblewrap: they pass, and say what was not judged. No other scenario depends on it;
# `make demo` plays them. tests/architecture/test_make_targets.py holds that none is left out.
# Fails if bubblewrap was there after all: the pass would prove nothing.
# Where it works and cannot be hidden it says so, and fails in CI only.
set -eu
hidden=tools/without_bubblewrap.sh
why="bwrap was not found; install the package bubblewrap"
PATH="$PATH:/usr/bin:/usr/local/bin:/bin"
if ! bwrap --ro-bind / / --dev /dev --proc /proc --unshare-all true 2>/dev/null; then
    # Missing, or not allowed to work: this is such a machine.
    hidden=env
    why=
    export HARNESS_INSTALL=no
elif ! $hidden true; then
    echo "make bare: what a machine without bubblewrap does was not tried"
    [ "${CI:-}" != true ] || exit 1
    exit 0
fi
said=$(mktemp)
trap 'rm -f "$said" "$said.status"' EXIT
has() { # text that must be in what was said, what its absence means
    grep -qF "$1" "$said" || { echo "make bare: nothing said '$1': $2"; exit 1; }
}
run() { # a command; what it says is shown, and kept
    { $hidden "$@" 2>&1 || echo "$?" >"$said.status"; } | tee "$said"
    [ ! -e "$said.status" ] || { echo "make bare: $* ended with $(cat "$said.status")"; exit 1; }
}
run .venv/bin/harness run --target reference -v --agent-cmd .venv/bin/agent \
    --server-cmd ".venv/bin/agent app-server" \
    --tag command-execution,command-approval,terminal,file-change,file-change-approval \
    --tag sandbox,sandbox-policy
has "that need sandbox: $why" "it was not hidden"
has "verdict: GREEN" "they are to be green without it"
run .venv/bin/python -m pytest -q -n 3 -p no:cacheprovider \
    tests/server/exec tests/server/test_sandboxed_commands.py tests/server/test_attack_*.py \
    tests/server/test_no_sandbox.py tests/conformance/test_bare_machine.py
has "no sandbox on this machine: ${why%;*}" "the tests of the sandbox were not skipped"
