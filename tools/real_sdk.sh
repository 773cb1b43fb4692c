#!/bin/sh
# The public TypeScript SDKs of the real agent, as npm has them, drive `agent` unchanged; then the one
# of sdk/typescript does the same. The optional dependency, the real agent itself, is left out.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
command -v node > /dev/null && command -v npm > /dev/null || {
    echo "real_sdk: no node or npm here, so no TypeScript SDK can be tried"
    exit 0
}
status=0
drive() { # name, entry file of the package
    echo "== TypeScript SDK $1 on agent exec"
    play=$here/.harness/typescript_sdk/$1
    rm -rf "$play"
    mkdir -p "$play"
    timeout 120 node "$here/fixtures/clients/typescript_sdk.mjs" "$2" "$here/.venv/bin/agent" "$play" \
        || status=1
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
