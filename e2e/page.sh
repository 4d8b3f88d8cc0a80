#!/usr/bin/env bash
# The page of a report in a browser, as wide as a phone, a tablet and a screen: its script has no error, nothing
# is wider than the page, no cell stands over another, no word of a table is broken, and lower bounds are marked.
source "$(dirname "$0")/lib.sh"
need python3 chromium jq

# faults PAGE WIDTH: what is wrong with a page at a width, one line each.
faults() {
    python3 e2e/page.py "$1" "$2" >"$WORK/framed.html"
    chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
        --disable-component-update --disable-sync --user-data-dir="$WORK/profile" --virtual-time-budget=5000 \
        --window-size=1400,9000 --dump-dom "file://$WORK/framed.html" 2>/dev/null >"$WORK/dom"
    grep -q measured "$WORK/dom" || echo "the page was not measured"
    sed -n '/measured/,/<\/body>/p' "$WORK/dom" | sed '1d;s/<.*//;/^$/d' | sort -u
}

examples muster-report page
# An overload, in which most messages have no end, with a rule that is switched off.
jq '.verdict.switched_off = [{ rule: "loss", scope: "run" }]
    | .latency.response.censored = 40000
    | .latency.response.all_due += { p50_us: 10000000, p99_us: 10000000, at_least: ["p50_us", "p99_us"] }' \
    golden/sample-result.json >"$WORK/overload.json"

for result in golden/sample-*.json "$WORK/overload.json"; do
    name=$(basename "$result" .json)
    "$EXAMPLES/page" "$result" "$WORK/$name.html"
    for width in 360 390 768 1280; do
        found=$(faults "$WORK/$name.html" "$width")
        [ -z "$found" ] || echo "$found"
        check "$name at $width px" test -z "$found"
    done
done
finish
