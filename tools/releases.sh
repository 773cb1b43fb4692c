#!/usr/bin/env bash
# Judges many releases of a shipping server, where only loopback exists, and writes docs/releases.md:
# what came and went with which. What was judged with the same harness is not played again.
set -euo pipefail
bin=.venv/bin
file=tools/releases.toml
case "$(uname -s)-$(uname -m)" in
Linux-x86_64) ;;
*) echo "make releases: the releases are taken as Linux x86-64 programs; this is $(uname -sm)"; exit 0 ;;
esac
$bin/python tools/offline.py --probe || { echo "make releases: no network namespace can be made here"; exit 0; }
work=.harness/releases
mkdir -p "$work/home" "$work/bin"
for release in $($bin/python -m tools.releases list "$file"); do
    if [ -z "$(find ".real/$release" -type f -name codex 2>/dev/null)" ]; then
        mkdir -p ".real/$release"
        npm install --silent --no-audit --no-fund --no-save --no-package-lock \
            --prefix ".real/$release" "real@npm:@openai/codex@$release-linux-x64"
    fi
    program=$(find ".real/$release" -type f -name codex | head -1)
    rm -rf "$work/schemas/$release"
    mkdir -p "$work/schemas/$release"
    CODEX_HOME=$PWD/$work/home $bin/python tools/offline.py "$program" app-server \
        generate-json-schema --experimental --out "$work/schemas/$release" >/dev/null 2>&1
done
# As in tools/real.sh: the releases ask it for the name of the system, by a dozen processes.
printf '#!/bin/sh\nexit 1\n' >"$work/bin/lsb_release"
chmod +x "$work/bin/lsb_release"
PATH=$PWD/$work/bin:$PATH $bin/python tools/offline.py $bin/harness matrix "$file" --no-confine \
    --jobs 2 --lanes "${LANES:-3}" --json "$work/matrix.json"
$bin/python -m tools.releases page "$work/matrix.json" "$work/schemas" docs/releases.md
