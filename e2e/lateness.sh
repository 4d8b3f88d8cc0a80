#!/usr/bin/env bash
# Lateness by arithmetic: the kernel stops the whole generator for about half a second of ten seconds
# of 1,000/s. The message due first is late by all of it, and of the others each by what was left.
source "$(dirname "$0")/lib.sh"
need jq python3

readonly FOR_S=0.5
readonly MEASURED_S=10

# stopped PID: stops it for a while; says for how many microseconds.
stopped() {
    python3 - "$1" "$FOR_S" <<'PY'
import os, signal, sys, time
pid, wanted = int(sys.argv[1]), float(sys.argv[2])
os.kill(pid, signal.SIGSTOP)
begun = time.monotonic()
time.sleep(wanted)
os.kill(pid, signal.SIGCONT)
print(round((time.monotonic() - begun) * 1e6))
PY
}

# run: leaves the result in $WORK/late, and the length of the stop in STOPPED. Without a terminal the
# run says a line every five seconds; the second one of the measured phase falls into its middle.
run() {
    local pid line progress measured=0 out=$WORK/late
    rm -rf "$out" "$WORK/progress"
    mkfifo "$WORK/progress"
    "$MUSTER" run scenarios/first.yaml --out "$out" --set fleet.streams.rate=1000/s --set phases.warm-up=1s \
        --set phases.measure=${MEASURED_S}s --set stability.min-windows=30 >"$WORK/progress" 2>&1 &
    pid=$!
    STARTED+=("$pid")
    exec {progress}<"$WORK/progress"
    : >"$WORK/out"
    while [ "$measured" -lt 2 ] && read -r line <&"$progress"; do
        echo "$line" >>"$WORK/out"
        case $line in *" measure "*) measured=$((measured + 1)) ;; esac
    done
    [ "$measured" -eq 2 ] || { echo "not ok - the run ended early"; cat "$WORK/out"; exit 1; }
    STOPPED=$(stopped "$pid")
    cat <&"$progress" >>"$WORK/out"
    exec {progress}<&-
    wait "$pid" || true
}

# within WHAT GOT WANTED: 20 ms.
within() {
    check "$1 ($2 us, wanted $3 us within 20 ms)" test "$(($2 - $3))" -ge -20000 -a "$(($2 - $3))" -le 20000
}

run
# What else the machine does makes the stop longer, as the generator sees it.
max=$(value "$WORK/late" .latency.lateness.max_us)
check "the latest was late by the whole stop ($max us, stopped for $STOPPED us)" test "$max" -ge $((STOPPED - 20000))
# Of all due the hundredth part was later than this: of those due in the stop 1 in STOPPED / 100 ms.
p99=$((max - MEASURED_S * 1000000 / 100))
within "p99 of lateness" "$(value "$WORK/late" .latency.lateness.p99_us)" "$p99"
same "late messages make the run invalid" "$(value "$WORK/late" .verdict.result)" invalid
check "rule shape says so" jq -e \
    '[.verdict.rules[] | select(.consequence == "invalidates") | .rule] | index("shape") != null' "$WORK/late/result.json"
same "nothing was lost" "$(value "$WORK/late" .ledger.uplink.lost)" 0
finish
