#!/usr/bin/env bash
# The kernel's view: PUBLISH packets counted from the bytes on the loopback interface, to and from the
# port of a Mosquitto, are as many as the ledger says were sent and consumed. Needs root.
source "$(dirname "$0")/lib.sh"
need mosquitto python3 jq

PORT=$(free_port)
start_mosquitto "$PORT"
for qos in 0 1 2; do
    : >"$WORK/packets"
    python3 e2e/packets.py "$PORT" >"$WORK/packets" 2>"$WORK/packets.err" &
    CAPTURE=$!
    STARTED+=("$CAPTURE")
    until grep -q ready "$WORK/packets"; do
        kill -0 "$CAPTURE" 2>/dev/null || { echo "not ok - no capture: $(cat "$WORK/packets.err")"; exit 1; }
        sleep 0.1
    done
    out="$WORK/qos$qos"
    status_of "$MUSTER" run e2e/faults.yaml --quiet --out "$out" \
        --set "platform.devices=[mqtt://127.0.0.1:$PORT]" --set "fleet.streams.qos=$qos"
    same "QoS $qos: exit code" "$STATUS" 0
    [ "$STATUS" -eq 0 ] || cat "$WORK/out"
    kill "$CAPTURE"
    wait "$CAPTURE" || true
    same "QoS $qos: PUBLISH to the broker, from it, missed by the capture" "$(tail -1 "$WORK/packets")" \
        "$(value "$out" '.ledger.uplink | "\(.sent) \(.consumed) 0"')"
done
stop "$BROKER"
finish
