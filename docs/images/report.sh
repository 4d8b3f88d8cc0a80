#!/bin/sh
# Takes the picture of a report that opens the README: report.sh [RESULT.json]
# Needs Chromium (Debian: chromium) and, for the look of the picture, the font Inter (fonts-inter).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
result=${1:-$here/../../golden/sample-result.json}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$here/../.."
cargo run --quiet -p muster-report --example page "$result" "$work/report.html"
chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync \
    --user-data-dir="$work/profile" --hide-scrollbars --force-device-scale-factor=1.25 \
    --window-size=1200,1590 --virtual-time-budget=4000 \
    --screenshot="$here/report.png" "file://$work/report.html"
