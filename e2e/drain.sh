#!/usr/bin/env bash
# Offline queues that drain, against a real Mosquitto: subscribers with sessions are away while
# messages and commands go to them, and come back. With room all of it comes, once and in order; with
# a bound on the broker's queue what is lost is what the broker's own $SYS counter says it dropped,
# and an independent subscriber (mosquitto_sub) that was away too finds as much as the bound.
source "$(dirname "$0")/lib.sh"
need mosquitto mosquitto_sub mosquitto_pub jq python3

readonly BOUND=60 END=656e64 DROPPED='$SYS/broker/publish/messages/dropped' UPTIME='$SYS/broker/uptime'

# drain PORT NAME: the run, into $WORK/NAME.
drain() {
    status_of "$MUSTER" run e2e/drain.yaml --quiet --out "$WORK/$2" \
        --set "platform.devices=[mqtt://127.0.0.1:$1]" --set "platform.backend.url=mqtt://127.0.0.1:$1"
}

# witness PORT ARGUMENT...: a session of its own on the topic of one plant, one line a message, its
# payload in hexadecimal.
witness() {
    mosquitto_sub -h 127.0.0.1 -p "$1" -i witness -c -q 1 -t plant/0 -F %x "${@:2}"
}

# rest PORT: what is left in the session of the witness, up to the message `end`, into $WORK/rest. What it
# left without the broker having had its acknowledgement stands there a second time.
rest() {
    : >"$WORK/rest"
    mosquitto_sub -h 127.0.0.1 -p "$1" -i witness -c -q 1 -t plant/0 -F %x >"$WORK/rest" &
    local pid=$!
    STARTED+=("$pid")
    until_lines 1 "^$END\$" "$WORK/rest" || true
    stop "$pid"
}

# both NAME FILTER: a figure of the drains of messages and of commands, added up.
both() {
    value "$WORK/$1" "[.ledger.receive.offline_queue, .ledger.command.offline_queue | $2] | add"
}

holds() {
    local name=$1 ledger
    same "$name: exit code" "$STATUS" 0
    [ "$STATUS" -eq 0 ] || cat "$WORK/out"
    [ -f "$WORK/$name/result.json" ] || finish
    for ledger in uplink receive command; do
        same "$name: residue of $ledger" "$(value "$WORK/$name" ".ledger.$ledger.residue")" 0
    done
    same "$name: sessions that went away, came back, were forgotten" \
        "$(value "$WORK/$name" '.ledger.receive.offline_queue | "\(.devices) \(.returned) \(.forgotten)"')" "50 50 0"
    same "$name: what was expected came or is lost" \
        "$(both "$name" '.expected - .drained - .lost - .outstanding')" 0
    same "$name: twice, or out of order" "$(both "$name" '.duplicates + .reordered')" 0
    echo "# $name: $(value "$WORK/$name" '.ledger.receive.offline_queue | {expected, drained, lost, rate, took: .took.max_us} | tostring')"
}

with_room() {
    local port
    port=$(free_port)
    start_mosquitto "$port" "max_queued_messages 0"
    drain "$port" room
    stop "$BROKER"
    holds room
    same "room: nothing is lost" "$(both room '.lost + .incomplete')" 0
    # At 20 messages a second, away for five seconds and more.
    check "room: a hundred messages and more came to each" \
        test "$(value "$WORK/room" .ledger.receive.offline_queue.drained)" -ge 5000
}

with_a_bound() {
    local port to_witness found dropped
    port=$(free_port)
    start_mosquitto "$port" "max_queued_messages $BOUND"
    witness "$port" -E
    drain "$port" bound
    mosquitto_sub -h 127.0.0.1 -p "$port" -R -W 10 -C 1 -t "$UPTIME" >"$WORK/tick"
    dropped=$(mosquitto_sub -h 127.0.0.1 -p "$port" -W 3 -C 1 -t "$DROPPED")
    witness "$port" -C "$BOUND" -W 20 >"$WORK/found"
    mosquitto_pub -h 127.0.0.1 -p "$port" -q 1 -t plant/0 -m end
    rest "$port"
    found=$(sort -u "$WORK/found" "$WORK/rest" | grep -cv "^$END\$")
    stop "$BROKER"
    holds bound
    same "bound: the witness found what a queue holds, and nothing behind it" "$found" "$BOUND"
    to_witness=$(value "$WORK/bound" '.ledger.by_stream["plant/readings"].ledger.accepted / 50')
    same "bound: lost = dropped as the broker says, without those of the witness" \
        "$(both bound .lost)" "$((dropped - (to_witness - found)))"
    check "bound: something was lost to each" test "$(value "$WORK/bound" .ledger.receive.offline_queue.incomplete)" -eq 50
}

with_room
with_a_bound
finish
