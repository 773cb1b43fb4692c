#!/bin/sh
# Installs the real servers into .real/ (ignored) and judges both, where only loopback exists: the
# bundled scenarios and the examples of docs/scenarios.md over pipes (those of several clients over
# WebSocket), some over WebSocket alone.
# npm runs before the namespace is entered. Where no namespace can be made, only the release that
# stays on loopback by itself is judged, with a notice. Last, two public clients of the real server
# talk to the reference server, a browser logs in to an MCP server, and the public TypeScript SDKs
# drive `agent exec`.
set -eu
bin=.venv/bin
real() { # release, path of the program inside the package
    dir=.real/$1
    program=$dir/node_modules/real/vendor/x86_64-unknown-linux-musl/$2
    if [ ! -x "$program" ]; then
        mkdir -p "$dir"
        npm install --silent --no-audit --no-fund --no-save --no-package-lock \
            --prefix "$dir" "real@npm:@openai/codex@$1-linux-x64"
    fi
    echo "$program"
}
case "$(uname -s)-$(uname -m)" in
Linux-x86_64) ;;
*) echo "make real: the real servers are taken as Linux x86-64 programs; this is $(uname -sm)"; exit 0 ;;
esac
first=$(real 0.107.0 codex/codex)
second=$(real 0.169.0 bin/codex)
judge() { # profile, program; fails if either run does
    red=0
    echo "== $1"
    $offline $bin/harness run --target "$1" --server-cmd "$2 app-server" \
        -n 3 --json ".harness/reports/$1.json" ${HARNESS_ARGS:-scenarios .harness/examples} || red=1
    if [ -z "${HARNESS_ARGS:-}" ]; then
        echo "== $1, its exec and mcp"
        $offline $bin/harness run --target "$1" --agent-cmd "$2" -n 2 \
            --json ".harness/reports/$1-programs.json" || red=1
        echo "== $1 over WebSocket"
        $offline $bin/harness run --target "$1" --server-cmd "$2 app-server --listen {listen}" \
            scenarios/language scenarios/clients scenarios/turns/plain-turn.scenario.yaml || red=1
    fi
    return $red
}
mutate() { # profile, program: how many faults the rules notice in this server's own messages
    echo "== $1, a sample of faults"
    # A fault that survives here (1) is to be read by hand: the server gave its rule no occasion, or
    # the rule keeps silent on purpose.
    $offline $bin/harness mutate --target "$1" --server-cmd "$2 app-server" --sample 40 \
        || [ $? -eq 1 ] || status=1
}
python_sdk() { # program, anywhere but in a git repository
    echo "== Python SDK on $1 exec"
    play=$(mktemp -d)
    $offline $bin/python fixtures/clients/own_python_sdk.py "$PWD/$1" "$play" || status=1
    rm -rf "$play"
}
mkdir -p .harness/reports
$bin/python -m tools.examples .harness/examples
said=$(mktemp)
trap 'rm -f "$said"' EXIT
status=0
if $bin/python tools/offline.py --probe; then
    offline="$bin/python tools/offline.py"
    # Side by side: most of both runs is waiting. What each says is shown in one piece.
    judge codex-0.169 "$second" >"$said" 2>&1 &
    other=$!
    judge codex-0.107 "$first" || status=1
    wait "$other" || status=1
    cat "$said"
    if [ -z "${HARNESS_ARGS:-}" ]; then
        mutate codex-0.107 "$first"
        mutate codex-0.169 "$second"
    fi
    # What changed between the two, for those who read the documents without running anything.
    if [ -z "${HARNESS_ARGS:-}" ]; then $bin/python -m tools.compare_page || status=1; fi
    python_sdk "$second"
else
    echo "make real: no network namespace can be made here; 0.169.0 would try to reach the"
    echo "internet, so only 0.107.0 is judged"
    offline=
    judge codex-0.107 "$first" || status=1
fi
python_sdk "$first"
python_sdk "$bin/agent"
echo "== public clients on agent app-server"
tools/public_clients.sh || status=1
echo "== a login to an MCP server with a browser"
tools/oauth_browser.sh $offline || status=1
tools/real_sdk.sh codex-0.107 "$PWD/$first" "$offline" || status=1
exit $status
