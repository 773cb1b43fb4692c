#!/usr/bin/env bash
# Plays the scenarios on both releases of the real server and on our double of each, where only
# loopback exists, and writes docs/drift.md: what the double does otherwise. `make real` installs the
# releases. HARNESS_ARGS names the scenarios; all by default.
set -euo pipefail
bin=.venv/bin
head='# Drift

Made by `make drift`; do not edit. `agent app-server --dialect codex-0.107` and `codex-0.169` beside the
releases that they imitate, all bundled scenarios played on each. [Comparing](comparing.md#a-double-and-its-release)
says what the figures mean. The reasons are in `tools/drift.toml`; a row without one is not explained yet.
'
$bin/python tools/offline.py --probe || { echo "make drift: no network namespace can be made here"; exit 0; }
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT
status=0
for release in 0.107 0.169; do
    program=$(find -L ".real/$release.0/node_modules/real/vendor" -type f -name codex | head -1)
    [ -n "$program" ] || { echo "make drift: run make real first, which installs $release.0"; exit 2; }
    schemas=.harness/drift/schemas-$release
    rm -rf "$schemas"
    mkdir -p "$schemas"
    "$program" app-server generate-json-schema --out "$schemas" >/dev/null
    # shellcheck disable=SC2086
    $bin/python tools/offline.py $bin/harness drift ${HARNESS_ARGS:-} --target "codex-$release" \
        --schemas "$schemas" --release-cmd "$program app-server" \
        --double-cmd "$bin/agent app-server --dialect codex-$release" --reasons tools/drift.toml \
        --json ".harness/drift/$release.json" --markdown "$pages/$release.md" || status=1
done
[ -n "${HARNESS_ARGS:-}" ] || { echo "$head"; cat "$pages/0.107.md"; echo; cat "$pages/0.169.md"; } >docs/drift.md
exit $status
