#!/usr/bin/env bash
# Devices and a backend of Kafka as three processes of one run: the devices publish to Mosquitto, mosquitto_sub and kcat carry
# what they say to Kafka, and two processes consume it as one group. With a line between them all settle once everything has
# arrived, so that none leaves the group while another still listens.
source "$(dirname "$0")/lib.sh"
source e2e/peers/kafka/node.sh
need java kcat mosquitto mosquitto_sub mvn jq

readonly MESSAGES=2400

MQTT=$(free_port)
start_mosquitto "$MQTT"
start_kafka auto.create.topics.enable=false
LINE=$(free_port)

mosquitto_sub -p "$MQTT" -i bridge -c -q 1 -t 'muster/#' -E
{
    mosquitto_sub -p "$MQTT" -i bridge -c -q 1 -t 'muster/#' -C "$MESSAGES" -W 120 -F '%t|%p' |
        kcat -P -b "127.0.0.1:$KAFKA" -t readings -K '|' -X message.timeout.ms=60000 >"$WORK/bridge.log" 2>&1
} &
STARTED+=("$!")

START=$(date -u -d '+12 seconds' +%Y-%m-%dT%H:%M:%SZ)
# part NAME PART LINE: one process of the run.
part() {
    "$MUSTER" run e2e/kafka.yaml --quiet --set "platform.devices=[mqtt://127.0.0.1:$MQTT]" \
        --set "platform.backend.url=kafka://127.0.0.1:$KAFKA" --set platform.backend.shared=application \
        --set platform.backend.consumers=2 --set phases.settle.at-most=90s --set phases.settle.quiet=45s \
        --run-id 5eed --start-at "$START" --part "$2" "$3" "$LINE" --out "$WORK/$1" >"$WORK/$1.txt" 2>&1
}

part first backend:1/2 --listen &
PARTS=("$!")
part second backend:2/2 --join &
PARTS+=("$!")
part devices devices --join &
PARTS+=("$!")
for pid in "${PARTS[@]}"; do
    status=0; wait "$pid" || status=$?
    same "a part: exit code" "$status" 0
done

status_of "$MUSTER" merge "$WORK/first" "$WORK/second" "$WORK/devices" --out "$WORK/whole"
same "merge: exit code" "$STATUS" 0
[ "$STATUS" -eq 0 ] || cat "$WORK"/*.txt "$WORK/out"
U='.ledger.uplink'
same "due, sent, accepted, arrived" \
    "$(value "$WORK/whole" "$U | [.scheduled, .sent, .accepted, .arrived] | join(\" \")")" "$MESSAGES $MESSAGES $MESSAGES $MESSAGES"
same "consumed is what the topic grew by" "$(value "$WORK/whole" "$U.consumed")" "$(ends readings 6)"
same "lost, duplicates, residue" "$(value "$WORK/whole" "$U | [.lost, .duplicates, .residue] | join(\" \")")" "0 0 0"
for name in first second; do
    check "$name consumed some of it" test "$(value "$WORK/$name" "$U.consumed")" -gt 0
done
for name in first second devices; do
    check "$name settled once all had arrived" jq -e \
        '[.phases[] | select(.phase == "settle") | .until_s - .from_s] | first < 30' "$WORK/$name/result.json"
    same "$name: consumers lost by others' leaving" "$(event "$name" consumer-lost)$(event "$name" consumer-away)" ""
done
finish
