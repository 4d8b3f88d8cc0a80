#!/usr/bin/env bash
# Open loop by arithmetic: a stall of three seconds in a minute of 1,000/s must be seen as its due
# messages suffer it, and by a closed loop as traffic that never came due.
source "$(dirname "$0")/lib.sh"
need jq

# A machine that stops for 100 ms, a device's period, makes a closed loop leave out more: that may
# spoil a run; a wrong count would spoil each of so many.
readonly TRIES=3

# near WHAT GOT WANTED: within 3 %.
near() {
    check "$1 ($2, wanted $3 within 3 %)" is_near "$2" "$3"
}

is_near() {
    jq -en --argjson got "$1" --argjson wanted "$2" '($got / $wanted - 1) | fabs <= 0.03' >"$WORK/near"
}

run() {
    rm -rf "${WORK:?}/$1"
    status_of "$MUSTER" run "scenarios/$1.yaml" --quiet --out "$WORK/$1" "${COUNTS_ONLY[@]}"
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
    near "open: response p99" "$(value "$out" .latency.response.p99_us)" 2400000
    near "open: response p99.9" "$(value "$out" .latency.response.p99_9_us)" 2940000
}

closed_loop() {
    local out=$WORK/closed-loop-stall service omitted try
    for try in $(seq "$TRIES"); do
        run closed-loop-stall
        omitted=$(value "$out" .ledger.measured.omitted)
        [ "$omitted" -gt 3000 ] || break
        echo "# try $try: $omitted never came due"
    done
    sound closed-loop-stall
    service=$(value "$out" .latency.service.p99_us)
    check "closed: service p99 below 100 ms ($service us)" test "$service" -lt 100000
    check "closed: between 2.7 and 3.0 s of traffic never came due ($omitted)" \
        test "$omitted" -ge 2700 -a "$omitted" -le 3000
}

open_loop
closed_loop
finish
