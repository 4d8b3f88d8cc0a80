#!/usr/bin/env bash
# Gathers Hono's adapters of 1.2.3 in target/peers/hono-legacy, unless they are newer than what names them.
# With an empty ~/.m2 it fetches some 150 files, 90 MB, from Maven Central first.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly BUILT=$PWD/target/peers/hono-legacy
mkdir -p "$BUILT"
# Two builds at once would disturb each other.
exec {lock}>"$BUILT/lock"
flock "$lock"
if [ ! -f "$BUILT/built" ] || [ -n "$(find e2e/hono-legacy -newer "$BUILT/built" -print -quit)" ]; then
    mvn -q -B -f e2e/hono-legacy/pom.xml package "-Dbuilt=$BUILT"
    touch "$BUILT/built"
fi
