#!/usr/bin/env bash
# Gateway instances of a stated capacity are found to have it, linear up to three; a bottleneck that they share is named.
source "$(dirname "$0")/lib.sh"
need jq

BEGUN=$(date +%s)
status_of "$MUSTER" scale scenarios/scale-gateway.yaml --out "$WORK/linear"
cat "$WORK/out"
same "a port each: exit code" "$STATUS" 0
check "in less than ten minutes" test $(($(date +%s) - BEGUN)) -lt 600
ANSWER=$WORK/linear/scale.json
same "numbers of instances" "$(jq -r '[.capacities[].instances] | join(" ")' "$ANSWER")" "1 2 3"
check "each carries 400/s, within 5 %" jq -e '(.capacities | length == 3) and all(.capacities[]; .per_instance >= 380 and .per_instance <= 420)' "$ANSWER"
check "an instance adds 400/s, within 5 %" jq -e '.law.gain.per_instance | . >= 380 and . <= 420' "$ANSWER"
check "each instance received a fair share" jq -e \
    'all(.searches[]; [.load[].accepted] | max < 1.2 * min)' "$ANSWER"
check "nothing is left of the target" test ! -e "$WORK/linear/target.json"
status_of "$MUSTER" verify "$WORK/linear"
same "it is verified: exit code" "$STATUS" 0
check "its page has the steps" grep -q '"phase": *"confirm-lower"' "$WORK/linear/scale.html"

# Two workers reach the bottleneck: what is measured of the third one adds nothing.
status_of "$MUSTER" scale scenarios/scale-shared.yaml --set scale.instances.min=2 --out "$WORK/shared"
cat "$WORK/out"
same "a shared bottleneck: exit code" "$STATUS" 0
ANSWER=$WORK/shared/scale.json
same "the last number of workers that helped" "$(jq -r .helped_until "$ANSWER")" 2
check "the bottleneck is found, within 5 %" jq -e '(.capacities | length == 2) and all(.capacities[].interval.middle; . >= 380 and . <= 420)' "$ANSWER"
same "workers afterwards" "$(deploy/shared-workers.sh actual)" 0

# The published policy: two units of 100/s on one instance of 250/s, the third one needs another.
status_of "$MUSTER" scale scenarios/scale-published.yaml --set scale.published.units=3 --out "$WORK/published"
cat "$WORK/out"
same "the published policy: exit code" "$STATUS" 0
ANSWER=$WORK/published/scale.json
same "units by instances" "$(jq -r '[.capacities[] | "\(.instances):\(.units)"] | join(" ")' "$ANSWER")" "1:2 2:3"
same "lines of its log" "$(cut -d';' -f5,6 "$WORK/published/published.log" | tr '\n' ' ')" "1;1 2;1 3;2 3;2 "
status_of "$MUSTER" verify "$WORK/published"
same "it is verified: exit code" "$STATUS" 0
sed -i '0,/"per_instance": /s//&1/' "$ANSWER"
status_of "$MUSTER" verify "$WORK/published"
same "an altered figure is refused: exit code" "$STATUS" 1
finish
