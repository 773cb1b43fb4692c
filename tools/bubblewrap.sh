#!/bin/sh
# Makes sure that bubblewrap is there and works: the reference server confines commands with it.
# Without it the server refuses to run a confined command, and the tests of the sandbox are skipped.
set -eu
works() {
    command -v bwrap >/dev/null && bwrap --ro-bind / / --dev /dev --proc /proc --unshare-all true
}
install() {
    apt-get install -y -qq bubblewrap >/dev/null 2>&1 ||
        { apt-get update -qq && apt-get install -y -qq bubblewrap; } >/dev/null 2>&1
}
if ! command -v bwrap >/dev/null; then
    if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
        install || echo "bubblewrap: apt-get could not install it"
    else
        echo "bubblewrap is not installed; install the package bubblewrap (it has the program bwrap):"
        echo "  apt-get install bubblewrap, dnf install bubblewrap, pacman -S bubblewrap"
    fi
fi
if works; then
    echo "$(bwrap --version): works"
else
    echo "bubblewrap does not work here: commands are refused except under dangerFullAccess or"
    echo "externalSandbox, and the tests of the sandbox are skipped"
fi
