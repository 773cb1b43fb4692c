#!/bin/sh
# A login to an MCP server with a real browser, then a turn with its token (tools/oauth_browser.py).
# Chromium is taken from the machine, or from apt where that can be done; playwright is no dependency
# of this project and gets an environment of its own. Arguments: what to run it under, if anything.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"
find_browser() {
    command -v chromium || command -v chromium-browser || command -v google-chrome || true
}
chromium=$(find_browser)
if [ -z "$chromium" ] && [ "${HARNESS_INSTALL:-yes}" != no ] && [ "$(id -u)" = 0 ] &&
    command -v apt-get > /dev/null; then
    apt-get update -qq > /dev/null 2>&1 || true
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium \
        > /dev/null 2>&1 || true
    chromium=$(find_browser)
fi
if [ -z "$chromium" ]; then
    echo "make real: there is no Chromium, and none can be installed here; the login with a browser"
    echo "is left out (tests/server/test_oauth_login.py has it with an HTTP client)"
    exit 0
fi
browser=$here/.real/browser
wanted=playwright==1.65.2
if [ "$(cat "$browser/.installed" 2> /dev/null)" != "$wanted" ]; then
    # The pip of this project installs into it: to install a pip there takes longer than the rest.
    rm -rf "$browser"
    "${PYTHON:-$(command -v python3.11 || command -v python3)}" -m venv --without-pip "$browser"
    .venv/bin/python -m pip --python "$browser/bin/python" install --quiet \
        --disable-pip-version-check "$wanted"
    echo "$wanted" > "$browser/.installed"
fi
exec "$@" .venv/bin/python -m tools.oauth_browser "$browser/bin/python" "$chromium"
