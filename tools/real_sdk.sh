#!/bin/sh
# The public TypeScript SDKs of the real agent, as npm has them, drive `agent` unchanged; then the suite
# judges them, on a scripted agent, on `agent` and on the real one of `real.sh`, whose profile and
# program are the arguments. The optional dependency, the real agent itself, is left out. What they are
# asked here, the tests in tests/sdk ask of the SDK in sdk/typescript.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
command -v node > /dev/null && command -v npm > /dev/null || {
    echo "real_sdk: no node or npm here, so no TypeScript SDK can be tried"
    exit 0
}
target=${1:-} real=${2:-} offline=${3:-}
# The release of the SDK that came with the real agent.
own=0.107.0
status=0
# Outside the checkout, since one of the things they are asked is a folder without git.
plays=$(mktemp -d)
trap 'rm -rf "$plays"' EXIT
drive() { # name, entry file of the package
    echo "== TypeScript SDK $1 on agent exec"
    play=$plays/$1
    mkdir "$play"
    timeout 120 node "$here/fixtures/clients/typescript_sdk.mjs" "$2" "$here/.venv/bin/agent" "$play" \
        || status=1
    driver="node $here/fixtures/sdk_drivers/node_driver.mjs $2 Codex codexPathOverride"
    echo "== TypeScript SDK $1, judged on scripted agents"
    "$here/.venv/bin/harness" run "$here/scenarios/sdk-calls" --sdk-cmd "$driver" || status=1
    # An agent's profile speaks of the agent; what this SDK leaves out is told above. Each SDK and each
    # agent is played once: what an SDK makes of an event does not depend on who wrote it.
    if [ -z "$real" ] || [ "$1" != "$own" ]; then
        echo "== TypeScript SDK $1, judged on agent"
        "$here/.venv/bin/harness" run --target reference --lanes 4 \
            --server-cmd "$here/.venv/bin/agent app-server" --agent-cmd "$here/.venv/bin/agent" \
            --sdk-cmd "$driver" --tag sdk -k "not sdk-calls" || status=1
    else
        echo "== TypeScript SDK $1, judged on $target"
        $offline "$here/.venv/bin/harness" run --target "$target" --server-cmd "$real app-server" \
            --agent-cmd "$real" --sdk-cmd "$driver" --tag sdk -k "not sdk-calls" --lanes 4 || status=1
    fi
}
for release in 0.107.0 0.163.0; do
    sdk=$here/.real/sdk-$release
    entry=$sdk/node_modules/@openai/codex-sdk/dist/index.js
    if [ ! -f "$entry" ]; then
        mkdir -p "$sdk"
        npm install --silent --no-audit --no-fund --no-save --no-package-lock --ignore-scripts \
            --omit=optional --prefix "$sdk" "@openai/codex-sdk@$release"
    fi
    drive "$release" "$entry"
done
exit $status
