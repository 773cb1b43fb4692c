#!/bin/sh
# Runs a command as on a machine without bubblewrap: in a mount namespace of its own, in which
# every program bwrap on the PATH, and where the reference server looks beside it, is no program.
# Nothing outside changes. An ordinary user's command runs as that user, if unshare can do that.
# Where nothing can be hidden it says so and ends with 125.
set -eu
[ $# -gt 0 ] || { echo "usage: $0 COMMAND [ARGUMENT...]"; exit 125; }
refuse() { echo "bubblewrap cannot be hidden here: $1" >&2; exit 125; }
everywhere() { # the programs bwrap, a line each
    (IFS=:; for folder in /usr/bin /usr/local/bin /bin $PATH; do
        [ ! -x "$folder/bwrap" ] || readlink -f "$folder/bwrap"
    done) | sort -u
}
HARNESS_INSTALL=no
export HARNESS_INSTALL

if [ "${HARNESS_HIDING:-}" = inside ]; then
    unset HARNESS_HIDING
    everywhere | while IFS= read -r program; do
        mount --bind /dev/null "$program" || exit 1
    done || refuse "mount --bind failed"
    [ -z "$(everywhere)" ] || refuse "$(everywhere) is still there"
    back=${HARNESS_USER:-}
    unset HARNESS_USER
    # shellcheck disable=SC2086
    [ -z "$back" ] || ! unshare $back true 2>/dev/null || exec unshare $back "$@"
    exec "$@"
fi
[ -n "$(everywhere)" ] || exec "$@"
command -v unshare >/dev/null || refuse "the program unshare is missing (package util-linux)"
how=--mount
if [ "$(id -u)" != 0 ]; then
    how="--mount --map-root-user"
    export HARNESS_USER="--user --map-user=$(id -u) --map-group=$(id -g)"
fi
# shellcheck disable=SC2086
unshare $how true 2>/dev/null || refuse "unshare $how is not allowed"
# shellcheck disable=SC2086
HARNESS_HIDING=inside exec unshare $how "$0" "$@"
