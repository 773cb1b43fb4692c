#!/bin/sh
# Pages of reports in a real browser: every filter, link, fold and key (fixtures/clients/report_reader.py).
# At last a session on the page of harness connect --web, and a run and a recording on those of harness
# watch (fixtures/clients/page_user.py), and some pages of the site if it was built, which axe sees. The
# pages of reports: a server that completes turns twice, one that dies, one with problematic texts, and a
# report of 640 scenarios. Arguments: what to run it under, if anything.
set -eu
cd "$(dirname "$0")/.."
without="the pages of reports are not
opened (tests/unit/report has them without a browser)"
. tools/browser.sh
bin=$PWD/.venv/bin
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
page() {
    status=0
    "$bin/harness" run --server-cmd "$bin/python $PWD/fixtures/servers/broken/$1.py" turns/ \
        --dir "$folder" --html "$folder/$1.html" --json "$folder/$1.json" > "$folder/$1.txt" 2>&1 ||
        status=$?
    [ $status = 1 ] || { cat "$folder/$1.txt"; exit 1; }
}
page double_completed
page dies_mid_turn
page odd_texts
"$bin/python" - "$folder/double_completed.json" "$folder/many.json" << 'END'
import json, sys
report = json.load(open(sys.argv[1]))
scenarios = report["scenarios"]
times = -(-640 // len(scenarios))
report["scenarios"] = [
    {**one, "id": f"copy{number}/{one['id']}" if number else one["id"]}
    for number in range(times)
    for one in scenarios
][:640]
json.dump(report, open(sys.argv[2], "w"))
END
"$bin/harness" report "$folder/many.json" --html "$folder/many.html" > "$folder/many.txt"
"$@" "$browser/bin/python" fixtures/clients/report_reader.py "$chromium" "$folder"/*.html
"$@" "$browser/bin/python" fixtures/clients/page_user.py "$chromium" "$bin/harness" "$folder" \
    "$bin/python $PWD/fixtures/servers/broken/double_completed.py"
site=.harness/site
if [ -f "$site/index.html" ]; then
    "$@" "$browser/bin/python" fixtures/clients/accessibility.py "$chromium" "$site/index.html" \
        "$site/docs/reports.html" "$site/docs/releases.html" "$site/docs/rules.html" \
        "$site/docs/state-machines.html" "$site/scenarios/approvals.html"
else
    echo "make real: there is no site (make site); axe does not see its pages"
fi
