#!/usr/bin/env bash
# A known delay: devices reach Mosquitto through a proxy that holds every byte to it for 50 ms. The
# median of response, service and end-to-end must rise by 50 ms within 1 ms, against the same proxy
# without a delay. The consumer is connected to the broker directly.
source "$(dirname "$0")/lib.sh"
need mosquitto python3 jq

BROKER_PORT=$(free_port)
start_mosquitto "$BROKER_PORT"

# through DELAY_MS: the exact medians of response, service and end-to-end in microseconds.
through() {
    local port facts="$WORK/facts-$1"
    port=$(free_port)
    python3 e2e/proxy.py "$port" "$BROKER_PORT" "$1" 2>"$WORK/proxy-$1.log" &
    local proxy=$!
    STARTED+=("$proxy")
    listens "$port"
    status_of "$MUSTER" run e2e/faults.yaml --quiet "${COUNTS_ONLY[@]}" --out "$WORK/run-$1" --facts "$facts" \
        --set "platform.devices=[mqtt://127.0.0.1:$port]" --set "platform.backend.url=mqtt://127.0.0.1:$BROKER_PORT"
    stop "$proxy"
    same "proxy with $1 ms: exit code" "$STATUS" 0
    [ "$STATUS" -eq 0 ] || cat "$WORK/out"
    MEDIANS=$(python3 - "$facts" <<'PY'
import statistics, sys
response, service, end_to_end = [], [], []
for line in open(sys.argv[1]):
    f = line.split("\t")
    if f[0] == "attempt" and f[9] == "accepted":
        response.append(int(f[8]) - int(f[5]))
        service.append(int(f[8]) - int(f[7]))
    elif f[0] == "arrival":
        end_to_end.append(int(f[6]) - int(f[5]))
print(*(round(statistics.median(values)) for values in (response, service, end_to_end)))
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
    rise=$((WITH[i] - WITHOUT[i]))
    check "${names[i]}: the median rises by 50 ms within 1 ms (from ${WITHOUT[i]} us by $rise us)" \
        test "$rise" -ge 49000 -a "$rise" -le 51000
done
p50=$(value "$WORK/run-50" .latency.response.p50_us)
check "the report prints the same median within a bucket ($p50 us, exactly ${WITH[0]} us)" \
    test $((p50 * 100)) -ge $((WITH[0] * 98)) -a $((p50 * 100)) -le $((WITH[0] * 102))
finish
