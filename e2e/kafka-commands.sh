#!/usr/bin/env bash
# Commands over Apache Kafka 3.9: devices of Hono at the reference gateway, behind which a program of Kafka's own
# client stands in for Hono's northbound (e2e/peers/kafka/Hono.java). Every count is compared with what is on Kafka's
# topics: queries with their commands and replies, by one process and by two, over a broker that stands still, and commands
# to whoever is there or not, of which notices say that nobody has them.
source "$(dirname "$0")/lib.sh"
source e2e/peers/kafka/node.sh
need java kcat mosquitto_sub mvn jq

readonly TENANT=t1
GATEWAY_LOG=$WORK/gateway.log
QUERIES=$((40 * 6 / 4))
readonly GATEWAY_LOG QUERIES

# start_hono: the gateway, and what stands between it and Kafka.
start_hono() {
    local port coap
    port=$(free_port)
    coap=$(free_port)
    "$MUSTER" gateway --dialect hono --listen "127.0.0.1:$port" --coap "127.0.0.1:$coap" --threads 1 >"$GATEWAY_LOG" &
    STARTED+=("$!")
    listens "$port"
    DEVICES="coap://127.0.0.1:$coap"
    mkfifo "$WORK/surfaced"
    (java_of e2e/peers/kafka/Hono.java "127.0.0.1:$KAFKA" "$port" "$TENANT") <"$WORK/surfaced" >"$WORK/hono.out" 2>"$WORK/hono.err" &
    STARTED+=("$!")
    mosquitto_sub -V 5 -p "$port" -q 1 -t '#' -F '%t|%P|%p' >"$WORK/surfaced" &
    STARTED+=("$!")
    until_lines 1 ready "$WORK/hono.out"
}

# on CLASS: how many records a topic of Hono's holds.
on() {
    ends "hono.$1.$TENANT" 3
}

# notices: how many notices of failed delivery were ever on the topic of replies.
notices() {
    kcat -b "127.0.0.1:$KAFKA" -C -q -e -o beginning -t "hono.command_response.$TENANT" -f '%h\n' |
        grep -c delivery-failure || true
}

# whole NAME ARGUMENT...: one run.
whole() {
    "$MUSTER" run e2e/kafka-commands.yaml --quiet --out "$WORK/$1" \
        --set "platform.devices=[$DEVICES]" --set "platform.backend.url=kafka://127.0.0.1:$KAFKA" "${@:2}"
}

# run NAME ARGUMENT...: one run, as `$HOW` has it, while `$MEANWHILE` is done, and by how much each topic grew.
run() {
    local name=$1 meanwhile class before=()
    shift
    for class in telemetry event command command_response; do before+=("$(on "$class")"); done
    NOTICES=$(notices)
    (kcat -b "127.0.0.1:$KAFKA" -C -q -c 10 -o end -t "hono.telemetry.$TENANT" >/dev/null && ${MEANWHILE:-true}) &
    meanwhile=$!
    STARTED+=("$meanwhile")
    status_of "${HOW:-whole}" "$name" "$@"
    wait "$meanwhile" || true
    MESSAGES=$(($(on telemetry) - before[0] + $(on event) - before[1]))
    COMMANDS=$(($(on command) - before[2]))
    RETURNED=$(($(on command_response) - before[3]))
    NOTICES=$(($(notices) - NOTICES))
}

# counts NAME: an account that is Kafka's own.
counts() {
    local name=$1 c='.ledger.command'
    same "$name: what was consumed is what its topics grew by" "$(value "$WORK/$name" .ledger.uplink.consumed)" "$MESSAGES"
    same "$name: what was issued is on the topic of commands" "$(value "$WORK/$name" "$c.issued")" "$COMMANDS"
    same "$name: a notice each says what was not delivered" "$(value "$WORK/$name" "$c.undeliverable_by_status[\"503\"] // 0")" "$NOTICES"
    same "$name: the rest of the returned are replies" "$(value "$WORK/$name" "$c.replies_arrived")" $((RETURNED - NOTICES))
    same "$name: devices had what was delivered" "$(value "$WORK/$name" "$c | .delivered == .received")" true
    same "$name: residue of commands" "$(value "$WORK/$name" "$c.residue")" 0
    check "$name: nothing was wrong with the commands" test ! -s "$WORK/hono.err"
}

start_kafka
start_hono

passes queries
counts queries
same "queries: each had its command" "$(value "$WORK/queries" '.ledger.command | .queries == .received_by_query')" true
same "queries: so many" "$(value "$WORK/queries" .ledger.command.queries)" "$QUERIES"

HOW=in_two_parts
passes parts
HOW=whole
counts parts
same "parts: each query of one had its command of the other" "$(value "$WORK/parts" '.ledger.command |
    [.queries, .received_by_query, .issued, .received, .replies_arrived] | join(" ")')" "$(printf "$QUERIES%.0s " 1 2 3 4)$QUERIES"
same "parts: who asks issues nothing, and who answers receives nothing" "$(value "$WORK/parts-devices" .ledger.command.issued) $(
    value "$WORK/parts-backend" .ledger.command.received)" "0 0"

MEANWHILE="freeze_kafka 3"
passes frozen
counts frozen
check "frozen: no client was answered" test -e "$WORK/was-frozen"
MEANWHILE=

passes anybody --set 'platform.backend.commands={ to: all, mode: two-way, rate: 20/s }'
counts anybody
check "anybody: devices that are not there have nothing ($NOTICES notices of $COMMANDS)" test "$NOTICES" -ge 40

passes one-way --set 'platform.backend.commands={ to: waiting, mode: one-way }'
counts one-way
same "one-way: nobody replied" "$RETURNED" 0
finish
