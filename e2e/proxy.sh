#!/usr/bin/env bash
# A known delay: devices reach Mosquitto through a proxy that holds every byte to it for 50 ms. The
# median of response, service and end-to-end must rise by 50 ms within 1 ms, against the same proxy
# without a delay. The consumer is connected to the broker directly. What is true of a time lies
# between its lower value, without our own delay, and the upper one.
source "$(dirname "$0")/lib.sh"
need mosquitto python3 jq

BROKER_PORT=$(free_port)
start_mosquitto "$BROKER_PORT"

# through DELAY_MS: the exact medians of response, service and end-to-end in microseconds, lower and upper.
through() {
    local port facts="$WORK/facts-$1"
    port=$(free_port)
    python3 e2e/proxy.py "$port" "$BROKER_PORT" "$1" 2>"$WORK/proxy-$1.log" &
    local proxy=$!
    STARTED+=("$proxy")
    listens "$port"
    status_of "$MUSTER" run e2e/faults.yaml --quiet --out "$WORK/run-$1" --facts "$facts" \
        --set "platform.devices=[mqtt://127.0.0.1:$port]" --set "platform.backend.url=mqtt://127.0.0.1:$BROKER_PORT"
    stop "$proxy"
    same "proxy with $1 ms: exit code" "$STATUS" 0
    [ "$STATUS" -eq 0 ] || cat "$WORK/out"
    MEDIANS=$(python3 - "$facts" <<'PY'
import statistics, sys
uppers, lowers = ([], [], []), ([], [], [])
lateness = {}

def add(which, upper, own):
    uppers[which].append(upper)
    lowers[which].append(max(upper - own, 0))

lines = [line.rstrip("\n").split("\t") for line in open(sys.argv[1])]
for f in lines:
    if f[0] == "attempt" and f[9] == "accepted":
        due, taken, sent, ended, own = int(f[5]), int(f[6]), int(f[7]), int(f[8]), int(f[12])
        lateness[tuple(f[1:5])] = taken - due
        add(0, ended - due, own)
        add(1, ended - sent, own)
for f in lines:
    if f[0] == "arrival":
        add(2, int(f[6]) - int(f[5]), int(f[10]) + lateness.get(tuple(f[1:5]), 0))
print(*(round(statistics.median(values)) for side in (lowers, uppers) for values in side))
PY
    )
}

through 0
read -r -a WITHOUT <<<"$MEDIANS"
through 50
read -r -a WITH <<<"$MEDIANS"
stop "$BROKER"
names=(response service end-to-end)
for i in 0 1 2; do
    least=$((WITH[i] - WITHOUT[i + 3])) most=$((WITH[i + 3] - WITHOUT[i]))
    check "${names[i]}: the median rises by 50 ms within 1 ms (from ${WITHOUT[i + 3]} us by $least to $most us)" \
        test "$most" -ge 49000 -a "$least" -le 51000
done
p50=$(value "$WORK/run-50" .latency.response.p50_us)
check "the report prints the same median within a bucket ($p50 us, exactly ${WITH[3]} us)" \
    test $((p50 * 100)) -ge $((WITH[3] * 98)) -a $((p50 * 100)) -le $((WITH[3] * 102))
finish
