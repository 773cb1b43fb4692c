# Sourced by what needs a real browser; sets $chromium and $browser, an environment with playwright.
# Chromium is taken from the machine, or from apt where that can be done; playwright and axe-core are
# no dependencies of this project and get an environment of their own. Ends the script if there is no
# browser, with $without: what is left out then.
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
    echo "make real: there is no Chromium, and none can be installed here; $without"
    exit 0
fi
browser=$PWD/.real/browser
wanted="playwright==1.65.2 axe-core@4.14.1"
if [ "$(cat "$browser/.installed" 2> /dev/null)" != "$wanted" ]; then
    # The pip of this project installs into it: to install a pip there takes longer than the rest.
    rm -rf "$browser"
    "${PYTHON:-$(command -v python3.11 || command -v python3)}" -m venv --without-pip "$browser"
    .venv/bin/python -m pip --python "$browser/bin/python" install --quiet \
        --disable-pip-version-check "${wanted% *}"
    npm install --silent --no-audit --no-fund --no-save --no-package-lock --prefix "$browser" \
        "${wanted#* }"
    echo "$wanted" > "$browser/.installed"
fi
