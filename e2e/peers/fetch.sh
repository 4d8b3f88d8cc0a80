#!/usr/bin/env bash
# fetch.sh NAME...: what a peer in Java runs with, into target/peers/NAME/lib, unless it is newer than the peer's pom.xml.
# With an empty ~/.m2 Maven fetches it first, which .ci/run does while the tests wait.
set -euo pipefail
cd "$(dirname "$0")/../.."

mkdir -p target/peers
# Two Mavens at once would disturb each other.
exec {lock}>target/peers/lock
flock "$lock"
for name in "$@"; do
    lib=$PWD/target/peers/$name/lib
    [ ! "$lib/fetched" -nt "e2e/peers/$name/pom.xml" ] || continue
    mvn -q -B -f "e2e/peers/$name/pom.xml" dependency:copy-dependencies "-DoutputDirectory=$lib"
    touch "$lib/fetched"
done
