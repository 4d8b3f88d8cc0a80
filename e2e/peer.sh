#!/usr/bin/env bash
# Another client on the same target: p50 and p99 of publish to PUBACK as the Paho client sees them, and
# as Muster does (`service`), within 10 %. The gateway takes an exponential time with a mean of 100 ms
# for each uplink, so that both see the same distribution, and the clients' own time is small in it.
source "$(dirname "$0")/lib.sh"
need python3 jq

with_paho
PORT=$(free_port)
"$MUSTER" gateway --listen "127.0.0.1:$PORT" --behaviour 'service-time: { exponential: 100ms }' \
    >"$WORK/gateway.txt" 2>&1 &
STARTED+=("$!")
listens "$PORT"
read -r -a PEER <<<"$("$PYTHON" e2e/peer.py "$PORT" 400 25)"
status_of "$MUSTER" run e2e/faults.yaml --quiet --out "$WORK/run" \
    --set "platform.devices=[mqtt://127.0.0.1:$PORT]" --set fleet.streams.rate=400/s --set phases.measure=25s
same "exit code" "$STATUS" 0
[ "$STATUS" -eq 0 ] || cat "$WORK/out"
# The true time lies between that without our own delay and that with it.
read -r -a LOWER <<<"$(value "$WORK/run" '.latency.response.lower | "\(.p50_us) \(.p99_us)"')"
read -r -a OURS <<<"$(value "$WORK/run" '.latency.service | "\(.p50_us) \(.p99_us)"')"
for i in 0 1; do
    check "$([ "$i" -eq 0 ] && echo p50 || echo p99): Muster ${LOWER[i]} to ${OURS[i]} us, Paho ${PEER[i]} us, within 10 %" \
        test $((OURS[i] * 100)) -ge $((PEER[i] * 90)) -a $((LOWER[i] * 100)) -le $((PEER[i] * 110))
done
finish
