#!/bin/sh
# A login to an MCP server with a real browser, then a turn with its token (tools/oauth_browser.py).
# Arguments: what to run it under, if anything.
set -eu
cd "$(dirname "$0")/.."
without="the login with a browser
is left out (tests/server/test_oauth_login.py has it with an HTTP client)"
. tools/browser.sh
exec "$@" .venv/bin/python -m tools.oauth_browser "$browser/bin/python" "$chromium"
