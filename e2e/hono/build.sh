#!/usr/bin/env bash
# Builds the three services of Hono into target/peers/hono, unless they are newer than their sources. With an empty
# ~/.m2 it fetches some 1,600 files, 200 MB, from Maven Central first, which takes minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly BUILT=$PWD/target/peers/hono
mkdir -p "$BUILT"
# Two builds at once would disturb each other.
exec {lock}>"$BUILT/lock"
flock "$lock"
if [ ! -f "$BUILT/built" ] || [ -n "$(find e2e/hono -newer "$BUILT/built" -print -quit)" ]; then
    mvn -q -B -f e2e/hono/pom.xml package "-Dbuilt=$BUILT"
    touch "$BUILT/built"
fi
