#!/usr/bin/env bash
# Installs the real servers into .real/ (ignored) and judges both, where only loopback exists: the
# bundled scenarios and the examples of docs/scenarios.md over pipes (those of several clients over
# WebSocket), some over WebSocket alone.
# npm runs before the namespace is entered. Where no namespace can be made, only the release that
# stays on loopback by itself is judged, with a notice. Then public clients are used on 0.169.0 and on
# the reference server in its place (`make clients`), a browser logs in to an MCP server, and the public TypeScript SDKs
# drive `agent exec`. Three parts run beside each other; each part's output is shown in one piece.
set -euo pipefail
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
said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT
# For each model client the releases ask lsb_release for the name of the system: a dozen processes, a
# sixth of all that they use. Without an answer they read /etc/os-release.
mkdir "$said/bin"
printf '#!/bin/sh\nexit 1\n' >"$said/bin/lsb_release"
chmod +x "$said/bin/lsb_release"
export PATH=$said/bin:$PATH
red=$said/red
touch "$red" "$said/begun" "$said/ended"
# At most three parts run at once, in the order in which they are begun, the longest first: with more
# of them scenarios ran into their bounds, with fewer a core waits. Each takes a token, and returns it.
mkfifo "$said/tokens"
exec 8<>"$said/tokens"
echo -n 123 >&8
begin() { # title, command: a part, once a token is free
    local token
    read -r -n 1 -u 8 token
    echo "$1" >>"$said/begun"
    (
        trap 'echo -n "$token" >&8' EXIT
        part "$@" 8>&-
        echo "$1" >>"$said/ended"
    ) &
}
finish() { # waits for all parts; one that was itself ended has failed
    wait
    sort "$said/begun" >"$said/begun.sorted"
    sort "$said/ended" | comm -23 "$said/begun.sorted" - >>"$red"
}
part() { # title, command: its output in one piece; a failure is remembered
    local title=$1 began=$SECONDS output status=0 TIMEFORMAT=$'%U\n%S'
    shift
    output=$(mktemp "$said/XXXXXX")
    # In a shell of its own, which counts no other part that ends meanwhile.
    (time "$@" >"$output" 2>&1) 2>"$output.time" || status=$?
    {
        flock 9
        echo "== $title ($((SECONDS - began)) s, $(awk '{ cpu += $1 } END { printf "%.0f", cpu }' "$output.time") s of CPU)"
        cat "$output"
        [ "$status" = 0 ] || { echo "== $title FAILED, exit status $status"; echo "$title" >>"$red"; }
    } 9>"$said/lock"
}
judge() { # profile, program
    local -a areas=(scenarios .harness/examples)
    [ -z "${HARNESS_ARGS:-}" ] || read -ra areas <<<"$HARNESS_ARGS"
    begin "$1" $offline $bin/harness run --target "$1" --server-cmd "$2 app-server" --lanes $lanes \
        --json ".harness/reports/$1.json" "${areas[@]}"
}
judge_programs() { # profile, program
    begin "$1, its exec and mcp" $offline $bin/harness run --target "$1" --agent-cmd "$2" \
        --lanes $lanes --json ".harness/reports/$1-programs.json"
}
judge_websocket() { # profile, program
    # Not scenarios/clients: all of them have several clients, so the first part plays them over
    # WebSocket. With the shell snapshots that the profiles turn off: one of an ephemeral thread is
    # a file that its scenario can see.
    begin "$1 over WebSocket, with shell snapshots" $offline $bin/harness run --target "$1" \
        --server-cmd "$2 app-server --listen {listen} -c features.shell_snapshot=true" --lanes $lanes \
        scenarios/language scenarios/turns/plain-turn.scenario.yaml scenarios/threads/ephemeral.scenario.yaml
}
faults() { # profile, program: how many faults the rules notice in this server's own messages
    # A fault that survives here (1) is to be read by hand: the server gave its rule no occasion, or
    # the rule keeps silent on purpose. One worker, since other parts run beside it.
    $offline $bin/harness mutate --target "$1" --server-cmd "$2 app-server" --sample 40 -n 1 \
        || [ $? -eq 1 ]
}
python_sdk() { # program, anywhere but in a git repository
    local play status=0
    play=$(mktemp -d)
    $offline $bin/python fixtures/clients/own_python_sdk.py "$PWD/$1" "$play" || status=1
    rm -rf "$play"
    return $status
}
mkdir -p .harness/reports
$bin/python -m tools.examples .harness/examples
# More lanes than processors, since both runs wait for half of their time.
lanes=4
is_partial=${HARNESS_ARGS:+yes}
if $bin/python tools/offline.py --probe; then
    offline="$bin/python tools/offline.py"
    is_offline=yes
else
    echo "make real: no network namespace can be made here; 0.169.0 would try to reach the"
    echo "internet, so only 0.107.0 is judged"
    offline=
    is_offline=no
fi
[ $is_offline = no ] || judge codex-0.169 "$second"
begin "pages of reports in a browser" tools/report_browser.sh $offline
begin "public clients, on a release and on our double" $bin/python -m tools.clients
judge codex-0.107 "$first"
begin "TypeScript SDKs" tools/real_sdk.sh codex-0.107 "$PWD/$first" "$offline"
if [ $is_offline = yes ] && [ -z "$is_partial" ]; then
    judge_programs codex-0.169 "$second"
    begin "codex-0.169, a sample of faults" faults codex-0.169 "$second"
fi
begin "a login to an MCP server with a browser" tools/oauth_browser.sh $offline
[ -n "$is_partial" ] || judge_programs codex-0.107 "$first"
if [ $is_offline = yes ] && [ -z "$is_partial" ]; then
    begin "codex-0.107, a sample of faults" faults codex-0.107 "$first"
    judge_websocket codex-0.169 "$second"
fi
[ -n "$is_partial" ] || judge_websocket codex-0.107 "$first"
begin "Python SDK on $bin/agent exec" python_sdk "$bin/agent"
[ $is_offline = no ] || begin "Python SDK on $second exec" python_sdk "$second"
begin "Python SDK on $first exec" python_sdk "$first"
finish
# What changed between the two, for those who read the documents without running anything.
if [ $is_offline = yes ] && [ -z "$is_partial" ]; then
    part "the page of versions" $bin/python -m tools.compare_page
    part "the page of choices" $bin/python -m tools.choices_page
fi
[ ! -s "$red" ] || { echo "make real: failed:"; sed 's/^/    /' "$red"; exit 1; }
echo "make real: all passed in $SECONDS s"
