#!/usr/bin/env bash
# A search that is killed goes on where it was, and is verified; a forged journal or answer is refused. A generator that is the
# bottleneck itself gives no capacity.
source "$(dirname "$0")/lib.sh"
need jq

export XDG_CACHE_HOME=$WORK/cache
readonly SEARCH=("$MUSTER" capacity scenarios/capacity.yaml)

steps() {
    tail -n +2 "$1/search.jsonl"
}

# Above the capacity of the gateway, 2,000/s: the first rate has to fail twice.
"${SEARCH[@]}" --from 4000/s --out "$WORK/search" >"$WORK/killed.txt" 2>&1 &
SEARCHING=$!
STARTED+=("$SEARCHING")
check "a first step is judged" until_lines 1 '^step' "$WORK/killed.txt"
kill -9 "$SEARCHING"
wait "$SEARCHING" 2>/dev/null || true
FIRST=$(steps "$WORK/search")
status_of "$MUSTER" verify "$WORK/search"
same "a killed run is not verified: exit code" "$STATUS" 1
check "it has no certificate" grep -q '^NOT VERIFIED: certificate.json is missing' "$WORK/out"

cp -r "$WORK/search" "$WORK/forged"
sed -i '2s/"outcome":"fail"/"outcome":"pass"/' "$WORK/forged/search.jsonl"
status_of "${SEARCH[@]}" --resume "$WORK/forged"
same "a forged journal is refused: exit code" "$STATUS" 2
check "by its line" grep -q 'search.jsonl: line 2: step 1 is `pass`, and its rules give `fail`' "$WORK/out"

status_of "${SEARCH[@]}" --resume "$WORK/search"
same "it goes on: exit code, as the first rate fails" "$STATUS" 1
ANSWER=$WORK/search/capacity.json
check "4,000/s fails" jq -e '.end.end == "fails-at-first" and .end.rate == 4000 and .certified == null' "$ANSWER"
check "in two runs, each step once" jq -e '.sessions == 2 and [.steps[].number] == [range(1; (.steps | length) + 1)]' "$ANSWER"
check "the first step is not held again" test "$(steps "$WORK/search" | head -n 1)" = "$FIRST"
status_of "$MUSTER" verify "$WORK/search"
same "it is verified: exit code" "$STATUS" 0
sed -i 's/"sessions": 2/"sessions": 3/' "$ANSWER"
status_of "$MUSTER" verify "$WORK/search"
same "an altered answer is refused: exit code" "$STATUS" 1
check "by its name" grep -q 'capacity.json is not the file that was certified' "$WORK/out"

# As on a machine whose one shard takes two milliseconds of CPU for a message.
for entry in "$WORK"/cache/muster/calibration-*.json; do
    jq -c '.measured.streams[].cost.shards_us = 2000' "$entry" >"$WORK/entry"
    mv "$WORK/entry" "$entry"
done
status_of "${SEARCH[@]}" --from 400/s --out "$WORK/above"
same "a rate above 70 % of its ceiling: exit code" "$STATUS" 2
check "named, with what to add" grep -q 'judges at most 350/s here, bound by devices; add cores' "$WORK/out"
"${SEARCH[@]}" --from 200/s --out "$WORK/starved" >"$WORK/starved.txt" 2>&1 &
SEARCHING=$!
STARTED+=("$SEARCHING")
check "a lower one is tried" until_lines 1 '^step' "$WORK/starved.txt"
STATUS=0
kill -TERM "$SEARCHING"
wait "$SEARCHING" || STATUS=$?
same "a stopped search: exit code" "$STATUS" 3
check "it never goes above 70 % of the ceiling, and certifies nothing" jq -e \
    '.limits.most > 349 and .limits.most < 351 and .certified == null' "$WORK/starved/capacity.json"

# A generator that may run in every other half second only, on a target that carries any of these rates.
rm -r "$XDG_CACHE_HOME"
start_gateway mqtt
cat >"$WORK/halved.yaml" <<YAML
name: halved
platform: { kind: mqtt, devices: [ 'mqtt://${AT[mqtt]}' ] }
fleet:
  - { name: meters, count: 50, streams: [ { name: readings, rate: 200/s, qos: 1, timeout: 10s } ] }
phases: { warm-up: 0s, measure: 1s, settle: { at-most: 30s, quiet: 1s } }
slo: { failure-ratio: "<= 0.1%", response: { p90: "<= 100ms" } }
YAML
# The time of the generator, not a wait: of each second it has half.
halve() {
    while kill -STOP "$1" 2>/dev/null; do
        sleep 0.5
        kill -CONT "$1" 2>/dev/null || break
        sleep 0.5
    done
}
"$MUSTER" capacity "$WORK/halved.yaml" --from 50/s --to 400/s --budget 2m --out "$WORK/halved" >"$WORK/halved.txt" 2>&1 &
SEARCHING=$!
STARTED+=("$SEARCHING")
check "the first step is held with all of the machine" until_lines 1 '^step' "$WORK/halved.txt"
halve "$SEARCHING" &
HALVING=$!
STATUS=0
wait "$SEARCHING" || STATUS=$?
wait "$HALVING" || true
same "a generator in want of CPU: exit code" "$STATUS" 3
check "it certifies nothing, and blames no step on the target" jq -e \
    '.certified == null and .first_failing == null and ([.steps[1:][].outcome] | length > 1 and all(. == "unclear"))' \
    "$WORK/halved/capacity.json"
finish
