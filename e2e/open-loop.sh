#!/usr/bin/env bash
# Open loop by arithmetic: a stall of three seconds in a minute of 1,000/s (200/s in a closed loop) must be seen as its due
# messages suffer it, and by a closed loop as traffic that never came due.
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

open_loop() {
    run open-loop-stall
    sound open-loop-stall
    local out=$WORK/open-loop-stall
    same "open: all were due" "$(value "$out" .ledger.measured.scheduled)" 60000
    local times
    read -r -a times <<<"$(both "$out" p99_us)"
    near "open: response p99" "${times[@]}" 2400000
    read -r -a times <<<"$(both "$out" p99_9_us)"
    near "open: response p99.9" "${times[@]}" 2940000
}

closed_loop() {
    local out=$WORK/closed-loop-stall service omitted own
    # At 1,000/s all answers but those of the stall are so fast that our own delay is most of them.
    run closed-loop-stall --set fleet.streams.rate=200/s
    omitted=$(value "$out" .ledger.measured.omitted)
    # Each 500 ms of our own delay, a device's period, can have left out one message more.
    own=$(value "$out" '([.verdict.rules[] | select(.rule == "shape" and .scope != "run") | .observed.fraction] | add)
        * (.latency.response | .count * .mean_us) / 500000 | floor')
    sound closed-loop-stall
    service=$(value "$out" .latency.service.p99_us)
    check "closed: service p99 below 100 ms ($service us)" test "$service" -lt 100000
    check "closed: between 2.4 and 3.0 s of traffic never came due ($omitted, of which $own at most by our own delay)" \
        test "$omitted" -ge 480 -a "$omitted" -le $((600 + own))
}

open_loop
closed_loop
finish
