#!/usr/bin/env bash
# Open loop by arithmetic: a stall of three seconds in a third of a minute of 1,000/s must be seen as its due
# messages suffer it. With WHOLE=1 the minute of the scenarios, and by a closed loop as traffic that never came due.
source "$(dirname "$0")/lib.sh"
need jq

# near WHAT LOWER UPPER WANTED: the true time lies between both; within 3 %.
near() {
    check "$1 ($2 to $3, wanted $4 within 3 %)" is_near "$2" "$3" "$4"
}

is_near() {
    jq -en --argjson lower "$1" --argjson upper "$2" --argjson wanted "$3" \
        '$lower <= $wanted * 1.03 and $upper >= $wanted * 0.97' >"$WORK/near"
}

# both FOLDER PERCENTILE: the response without our own delay and with it.
both() {
    value "$1" ".latency.response | \"\(.lower.$2) \(.$2)\""
}

run() {
    local name=$1
    shift
    rm -rf "${WORK:?}/$name"
    status_of "$MUSTER" run "scenarios/$name.yaml" --quiet --out "$WORK/$name" "$@"
}

sound() {
    same "$1: exit code" "$STATUS" 0
    same "$1: residue" "$(value "$WORK/$1" .ledger.uplink.residue)" 0
    same "$1: the gateway stood still" "$(jq .stalled "$WORK/$1/gateway.json")" 1
}

# open_loop DUE P99 P99.9 ARGUMENT...: so many messages are due, of which the slowest take so long.
open_loop() {
    local due=$1 p99=$2 p99_9=$3 out=$WORK/open-loop-stall times
    shift 3
    run open-loop-stall "$@"
    sound open-loop-stall
    same "open: all were due" "$(value "$out" .ledger.measured.scheduled)" "$due"
    read -r -a times <<<"$(both "$out" p99_us)"
    near "open: response p99" "${times[@]}" "$p99"
    read -r -a times <<<"$(both "$out" p99_9_us)"
    near "open: response p99.9" "${times[@]}" "$p99_9"
}

closed_loop() {
    local out=$WORK/closed-loop-stall service omitted
    run closed-loop-stall
    omitted=$(value "$out" .ledger.measured.omitted)
    sound closed-loop-stall
    service=$(value "$out" .latency.service.p99_us)
    check "closed: service p99 below 100 ms ($service us)" test "$service" -lt 100000
    # Beside it our own delay leaves some out: rule `shape` holds it to 5 % of the time of slow answers, which is 150 messages.
    check "closed: between 2.7 and 3.15 s of traffic never came due ($omitted)" \
        test "$omitted" -ge 2700 -a "$omitted" -le 3150
}

# Of the 3,000 messages that the gateway holds up, 0 to 3 s each, the slowest hundredth of all and the slowest thousandth.
if [ -n "${WHOLE:-}" ]; then
    open_loop 60000 2400000 2940000
    closed_loop
else
    open_loop 20000 2800000 2980000 --set phases.measure=20s --set 'platform.behaviour.stall={ at: 8s, for: 3s }'
fi
finish
