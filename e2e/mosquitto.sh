#!/usr/bin/env bash
# Against a real Mosquitto: QoS 0, 1 and 2, MQTT 3.1.1 and 5; the ledger equals the broker's own
# $SYS counters; then the broker is killed with -9 in mid-run and started again.
# MOSQUITTO_FULL=1 takes the scenarios as they stand: 10,000 devices, 10,000/s, a minute; then
# MOSQUITTO_RATE=5000/s is another rate, and MOSQUITTO_QOS="2" a choice of them.
source "$(dirname "$0")/lib.sh"
need mosquitto mosquitto_sub jq python3

SIZE=(--set fleet.count=500 --set fleet.streams.rate=1000/s --set fleet.connect.rate=1000/s
    --set phases.warm-up=1s --set phases.measure=8s)
# What is compared is counts: latency must not decide where a busy machine is slow.
LATENCY=(--set 'slo.end-to-end.p99=<= 60s')
MEASURE=(--set phases.measure=14s)
KILL_AFTER=5
if [ -n "${MOSQUITTO_FULL:-}" ]; then
    SIZE=(--set "fleet.streams.rate=${MOSQUITTO_RATE:-10000/s}")
    MEASURE=()
    KILL_AFTER=25
fi
readonly SYS='$SYS/broker/publish' CLIENTS='$SYS/broker/clients/total' UPTIME='$SYS/broker/uptime'
# What the broker sends for one reading, and for one tick: what it kept, and what is new.
readonly A_READING=1 A_TICK=2

# tick PORT: waits until the broker has renewed its counters, as it does each second; what is read at
# once after it is not disturbed by the next renewal.
tick() {
    mosquitto_sub -h 127.0.0.1 -p "$1" -R -W 10 -C 1 -t "$UPTIME" >"$WORK/tick"
}

# counter PORT TOPIC: one of the broker's counters, as of the last tick. The broker forgets a counter
# that has not changed for a minute: only `dropped`, at 0.
counter() {
    local value
    value=$(mosquitto_sub -h 127.0.0.1 -p "$1" -W 3 -C 1 -t "$SYS/$2" 2>"$WORK/err" || true)
    echo "${value:-0}"
}

run_against() {
    local port=$1 qos=$2 version=$3 out=$4
    shift 4
    [ "$qos" -eq 0 ] || set -- --set 'slo.response.p99=<= 60s' "$@"
    "$MUSTER" run "scenarios/mosquitto-qos$qos.yaml" --quiet --out "$out" "${SIZE[@]}" "${LATENCY[@]}" \
        --set "platform.devices=[mqtt://127.0.0.1:$port]" --set "fleet.client.version=$version" "$@"
}

healthy() {
    local qos=$1 version=$2 port out before sent_before sent_by_broker received bytes dropped status=0
    port=$(free_port)
    out="$WORK/qos$qos-$version"
    start_mosquitto "$port"
    tick "$port"
    sent_before=$(counter "$port" messages/sent)
    before="$(counter "$port" messages/received) $(counter "$port" messages/dropped) $(counter "$port" bytes/received)"
    run_against "$port" "$qos" "$version" "$out" >"$out.txt" 2>&1 || status=$?
    tick "$port"
    sent_by_broker=$(($(counter "$port" messages/sent) - sent_before - 4 * A_READING - A_TICK))
    received=$(counter "$port" messages/received)
    bytes=$(counter "$port" bytes/received)
    dropped=$(counter "$port" messages/dropped)
    stop "$BROKER"
    local name="QoS $qos, MQTT $version" l='.ledger.uplink'
    same "$name: exit code" "$status" 0
    [ "$status" -eq 0 ] || cat "$out.txt"
    [ -f "$out/result.json" ] || return 0
    local due sent accepted unacknowledged arrived
    read -r due sent accepted unacknowledged arrived <<<"$(value "$out" \
        "$l | [.scheduled, .sent, .accepted, .unacknowledged, .arrived] | join(\" \")")"
    same "$name: sent = due" "$sent" "$due"
    if [ "$qos" -eq 0 ]; then
        same "$name: unacknowledged by design = sent" "$unacknowledged" "$sent"
    else
        same "$name: accepted = sent" "$accepted" "$sent"
    fi
    same "$name: arrived = sent" "$arrived" "$sent"
    same "$name: lost, residue" "$(value "$out" "$l | [.lost, .lost_unacknowledged, .residue] | join(\" \")")" "0 0 0"
    same "$name: \$SYS before the run" "$before" "0 0 0"
    # Mosquitto 2.0 does not count received PUBLISH packets of QoS 2 (its mask of the first byte
    # leaves a bit of the QoS), but it counts their payload.
    [ "$qos" -eq 2 ] || same "$name: \$SYS received = sent" "$received" "$sent"
    same "$name: \$SYS bytes received = 100 a message sent" "$bytes" "$((sent * 100))"
    same "$name: \$SYS sent = consumed" "$sent_by_broker" "$(value "$out" "$l.consumed")"
    same "$name: \$SYS dropped" "$dropped" 0
    echo "# $name: $(value "$out" '[.ledger.uplink.sent, .rates.issued, .latency.response.p99_us, .latency.end_to_end.p99_us, .generator.cpu_s] |
        "sent \(.[0]), issued \(.[1])/s, response p99 \(.[2]) us, end-to-end p99 \(.[3]) us, generator \(.[4]) cpu-s"')"
}

# The broker dies in the measured phase and is back three seconds later.
killed() {
    local port out muster status=0 l='.ledger.uplink'
    port=$(free_port)
    out="$WORK/killed"
    start_mosquitto "$port"
    run_against "$port" 1 5 "$out" "${MEASURE[@]}" >"$out.txt" 2>&1 &
    muster=$!
    STARTED+=("$muster")
    sleep "$KILL_AFTER"
    kill -9 "$BROKER"
    wait "$BROKER" 2>/dev/null || true
    sleep 3
    start_mosquitto "$port"
    wait "$muster" || status=$?
    stop "$BROKER"
    same "killed: exit code (the SLO fails)" "$status" 1
    [ "$status" -eq 1 ] || cat "$out.txt"
    [ -f "$out/result.json" ] || return 0
    same "killed: residue" "$(value "$out" "$l.residue")" 0
    same "killed: the run went on to its end" "$(value "$out" '.verdict.rules[] | select(.rule == "uninterrupted") | .result')" pass
    same "killed: all links are back" "$(value "$out" '.links | .open_at_end == .wanted')" true
    check "killed: every link was lost" test "$(value "$out" '[.links.disconnects[]] | add')" -ge "$(value "$out" .links.wanted)"
    check "killed: an event says from when to when links were down" has_gap "$out" links-down
    check "killed: an event says from when to when nothing was answered" has_gap "$out" no-answer
    check "killed: messages were accepted after it" accepted_after "$out"
    echo "# killed: $(value "$out" '.events[] | "\(.kind) \(.t_s)..\(.until_s): \(.detail)"' | tr '\n' ';')"
    echo "# killed: $(value "$out" "$l | {scheduled, sent, accepted, broken, timed_out, shed, arrived, lost} | tostring")"
}

# has_gap FOLDER KIND: an event of this kind lasted for two seconds or longer, and ended.
has_gap() {
    jq -e --arg kind "$2" 'any(.events[]; .kind == $kind and .until_s != null and .until_s - .t_s >= 2)' \
        "$1/result.json" >"$WORK/jq"
}

# accepted_after FOLDER: in the last second of the measured phase answers came again.
accepted_after() {
    jq -e '[.windows[] | select(.phase == "measure")] | last | .accepted > 0' "$1/result.json" >"$WORK/jq"
}

# Two runs in a row, whose consumers share a subscription by the same name: none of the first is dealt
# a part of what the second sends.
in_a_row() {
    local port out status run known l='.ledger.uplink'
    port=$(free_port)
    start_mosquitto "$port"
    for run in first second; do
        out="$WORK/row-$run" status=0
        run_against "$port" 1 5 "$out" --set phases.measure=3s --set platform.backend.consumers=2 \
            --set platform.backend.shared=readers >"$out.txt" 2>&1 || status=$?
        same "$run of two in a row, shared: exit code" "$status" 0
        [ "$status" -eq 0 ] || cat "$out.txt"
        same "$run of two in a row, shared: lost, foreign, residue" \
            "$(value "$out" "$l | [.lost, .foreign, .residue] | join(\" \")")" "0 0 0"
    done
    tick "$port"
    known=$(mosquitto_sub -h 127.0.0.1 -p "$port" -W 3 -C 1 -t "$CLIENTS" 2>"$WORK/err" || true)
    # It may count the one that reads it.
    check "after them the broker keeps no session of theirs (${known:-no answer})" test "${known:-9}" -le 1
    stop "$BROKER"
}

for version in 3.1.1 5; do
    for qos in ${MOSQUITTO_QOS:-0 1 2}; do healthy "$qos" "$version"; done
done
in_a_row
killed
finish
