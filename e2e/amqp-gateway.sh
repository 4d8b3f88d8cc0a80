#!/usr/bin/env bash
# Devices of Hono at the reference gateway, whose telemetry, events, commands and replies go over AMQP 1.0, as in the published
# test of Hono: queries with their commands and replies, commands to devices that are there or not, with the outcome of each,
# and a consumer that grants no credit, for which the gateway refuses telemetry as Hono's adapters do.
source "$(dirname "$0")/lib.sh"
need jq

COAP=$(free_port)
AMQP=$(free_port)
"$MUSTER" gateway --dialect hono --listen "127.0.0.1:$(free_port)" --coap "127.0.0.1:$COAP" --amqp "127.0.0.1:$AMQP" \
    --threads 1 >"$WORK/gateway.log" &
STARTED+=("$!")
listens "$AMQP"

# run NAME ARGUMENT...: one run.
run() {
    status_of "$MUSTER" run e2e/amqp-gateway.yaml --quiet --out "$WORK/$1" --set "platform.devices=[coap://127.0.0.1:$COAP]" \
        --set "platform.backend.url=amqp://127.0.0.1:$AMQP" "${@:2}"
}

# commands NAME: the account of commands closes.
commands() {
    local c='.ledger.command'
    same "$1: residue of commands" "$(value "$WORK/$1" "$c.residue")" 0
    same "$1: devices had what was delivered" "$(value "$WORK/$1" "$c | .delivered == .received")" true
}

status_of "$MUSTER" check e2e/amqp-gateway.yaml --set "platform.devices=[coap://127.0.0.1:$COAP]" \
    --set "platform.backend.url=amqp://127.0.0.1:$AMQP"
same "check: exit code" "$STATUS" 0

passes queries
commands queries
same "queries: each had its command, and each command its reply" "$(value "$WORK/queries" '.ledger.command |
    .queries == .received_by_query and .issued == .replies_arrived and .issued > 40')" true
same "queries: nothing was damaged" "$(value "$WORK/queries" .ledger.uplink.corrupted)" 0

passes anybody --set 'platform.backend.commands={ to: all, mode: two-way, rate: 20/s }'
commands anybody
check "anybody: what nobody took was released ($(value "$WORK/anybody" '.ledger.command.undeliverable_by_status["amqp-released"]'))" \
    test "$(value "$WORK/anybody" '.ledger.command.undeliverable_by_status["amqp-released"] // 0')" -ge 40

run withheld --set 'platform.backend.pause=[{ at: 2s, for: 2s }]'
u='.ledger.uplink'
check "withheld: telemetry was refused ($(value "$WORK/withheld" "$u.rejected"))" test "$(value "$WORK/withheld" "$u.rejected")" -ge 20
same "withheld: with 5.03 alone" "$(value "$WORK/withheld" "$u.rejected_by_code | keys | join(\" \")")" 5.03
same "withheld: nothing was lost" "$(value "$WORK/withheld" "$u.lost")" 0
same "withheld: residue" "$(value "$WORK/withheld" "$u.residue")" 0
same "withheld: a pause is no loss of the consumer" "$(event withheld consumer-lost)" ""
finish
