#!/usr/bin/env bash
# One run in two parts, as two machines would carry it: the same --run-id and --start-at, one
# Mosquitto, and one result of both by `muster merge`.
source "$(dirname "$0")/lib.sh"
need mosquitto jq python3

PORT=$(free_port)
start_mosquitto "$PORT"
START=$(date -u -d '+4 seconds' +%Y-%m-%dT%H:%M:%SZ)

part() {
    "$MUSTER" run e2e/faults.yaml --quiet --set "platform.devices=[mqtt://127.0.0.1:$PORT]" \
        --set platform.backend.consumers=2 --set platform.backend.shared=muster \
        --run-id 5eed --start-at "$START" --part "$1/2" --out "$WORK/part-$1" >"$WORK/part-$1.txt" 2>&1
}

part 1 &
FIRST=$!
part 2 &
SECOND=$!
status=0; wait "$FIRST" || status=$?
same "part 1: exit code" "$status" 0
status=0; wait "$SECOND" || status=$?
same "part 2: exit code" "$status" 0
same "a part gives no verdict" "$(for i in 1 2; do value "$WORK/part-$i" .verdict.result; done | paste -sd' ')" "part part"
status_of "$MUSTER" merge "$WORK/part-1" "$WORK/part-2" --out "$WORK/whole"
cp "$WORK/out" "$WORK/merged"
stop "$BROKER"
same "merge: exit code" "$STATUS" 0
[ "$STATUS" -eq 0 ] || cat "$WORK"/part-?.txt "$WORK/out"
L='.ledger.uplink'
same "due, sent, accepted, arrived" "$(value "$WORK/whole" "$L | [.scheduled, .sent, .accepted, .arrived] | join(\" \")")" \
    "1800 1800 1800 1800"
same "lost, duplicates, residue" "$(value "$WORK/whole" "$L | [.lost, .duplicates, .residue] | join(\" \")")" "0 0 0"
same "links" "$(value "$WORK/whole" '.links | [.wanted, .connected] | join(" ")')" "50 50"
same "each part sent its half" "$(for i in 1 2; do value "$WORK/part-$i" "$L.sent"; done | paste -sd' ')" "900 900"
check "each part saw arrivals of both" test "$(value "$WORK/part-1" "$L.consumed")" -gt 0 -a "$(value "$WORK/part-2" "$L.consumed")" -gt 0
check "one clock: no message arrived before it was due, nor a second after" jq -e \
    '.latency.end_to_end | .count == 1600 and .max_us < 1000000' "$WORK/whole/result.json"
same "windows: accepted in the measured phase" \
    "$(value "$WORK/whole" '[.windows[] | select(.phase == "measure") | .offered] | add')" 1600
for i in 1 2; do
    check "part $i says what is to be done with it" \
        grep -q "part $i of 2: merge the parts with .muster merge." "$WORK/part-$i.txt"
done
check "the whole does not" test "$(grep -c 'merge the parts' "$WORK/merged")" -eq 0
# The same with devices and backend apart, and a line between them: both settle once all has arrived.
PORT=$(free_port)
start_mosquitto "$PORT"
LINE=$(free_port)
START=$(date -u -d '+4 seconds' +%Y-%m-%dT%H:%M:%SZ)
apart() {
    "$MUSTER" run e2e/faults.yaml --quiet --set "platform.devices=[mqtt://127.0.0.1:$PORT]" \
        --set phases.settle.at-most=60s --run-id 5eed --start-at "$START" --part "$1" "$2" "$LINE" \
        --out "$WORK/$1" >"$WORK/$1.txt" 2>&1
}
apart backend --listen &
FIRST=$!
apart devices --join &
SECOND=$!
for part in $FIRST $SECOND; do
    status=0; wait "$part" || status=$?
    same "devices and backend apart: exit code" "$status" 0
done
status_of "$MUSTER" merge "$WORK/devices" "$WORK/backend" --out "$WORK/both"
stop "$BROKER"
same "devices and backend apart: exit code of merge" "$STATUS" 0
[ "$STATUS" -eq 0 ] || cat "$WORK/devices.txt" "$WORK/backend.txt" "$WORK/out"
same "due, sent, accepted, arrived, lost, residue" \
    "$(value "$WORK/both" "$L | [.scheduled, .sent, .accepted, .arrived, .lost, .residue] | join(\" \")")" "1800 1800 1800 1800 0 0"
for part in devices backend; do
    check "$part settled once all had arrived" jq -e \
        '[.phases[] | select(.phase == "settle") | .until_s - .from_s] | first < 30' "$WORK/$part/result.json"
done

status_of "$MUSTER" merge "$WORK/part-1" --out "$WORK/half"
same "a part alone is refused" "$STATUS" 2
status_of "$MUSTER" merge "$WORK/part-1" "$WORK/part-1" --out "$WORK/twice"
same "a part twice is refused" "$STATUS" 2
status_of "$MUSTER" run e2e/faults.yaml --part 1/2 --out "$WORK/unagreed"
same "a part without --run-id and --start-at is refused" "$STATUS" 2
finish
