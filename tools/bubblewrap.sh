#!/bin/sh
# Makes sure that bubblewrap (the program bwrap) is there: the reference server confines commands
# with it, and refuses to run them without it. The targets of `make` call this. Where it works this
# is quick and quiet. Where it does not, apt-get installs it, if this is root and apt-get is there;
# if that fails, what to do is said once, and neither is tried again until `make clean`.
# HARNESS_INSTALL=no: install nothing, say nothing. Never fails: without it all else is judged.
set -u
PATH="$PATH:/usr/bin:/usr/local/bin:/bin"
[ "$(uname -s)" = Linux ] || exit 0
said=.venv/.no-bubblewrap

works() { # fails with what bwrap said in $why
    command -v bwrap >/dev/null || { why="bwrap was not found"; return 1; }
    why=$(bwrap --ro-bind / / --dev /dev --proc /proc --unshare-all --die-with-parent true 2>&1) ||
        { why="bwrap does not work here: ${why:-it said nothing}"; return 1; }
}
quietly() { # a command that waits for neither a person nor a dead network
    DEBIAN_FRONTEND=noninteractive timeout 300 "$@" \
        -o Acquire::Retries=0 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 \
        >/dev/null 2>&1 </dev/null
}
install() {
    quietly apt-get install -y -qq bubblewrap ||
        { quietly apt-get update -qq && quietly apt-get install -y -qq bubblewrap; }
}

if works; then
    [ ! -e "$said" ] || rm -f "$said"
    exit 0
fi
[ "${HARNESS_INSTALL:-}" != no ] && [ ! -e "$said" ] || exit 0
failed=
if ! command -v bwrap >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    echo "bubblewrap is missing: installing it with apt-get"
    if install && works; then
        exit 0
    fi
    works || failed=" (apt-get could not install it)"
fi
echo "no sandbox on this machine: $why$failed"
if command -v bwrap >/dev/null; then
    echo "  allow user namespaces; for a container, in its security options"
else
    echo "  install the package bubblewrap: apt-get install bubblewrap, dnf install bubblewrap, …"
fi
echo "  until then the reference server runs no command under a policy that confines, and what"
echo "  needs the sandbox is not judged; said once, 'make clean' forgets it"
mkdir -p .venv && touch "$said"
exit 0
