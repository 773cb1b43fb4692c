#!/bin/sh
# The public TypeScript SDKs of the real agent, as npm has them, drive `agent` unchanged; then the suite
# judges them. The optional dependency, the real agent itself, is left out. What they are asked here, the
# tests in tests/sdk ask of the SDK in sdk/typescript.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
command -v node > /dev/null && command -v npm > /dev/null || {
    echo "real_sdk: no node or npm here, so no TypeScript SDK can be tried"
    exit 0
}
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
    echo "== TypeScript SDK $1, judged"
    "$here/.venv/bin/harness" run "$here/scenarios/sdk-calls" \
        --sdk-cmd "node $here/fixtures/sdk_drivers/node_driver.mjs $2 Codex codexPathOverride" || status=1
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
