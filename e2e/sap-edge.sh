#!/usr/bin/env bash
# SAP Edge against others on both sides. `kind: sap-edge` through a real Mosquitto to an application made
# with Paho, which accepts, rejects, keeps silent and repeats itself by the message's number: the
# ledger equals its counts, and the commands that it sees are those received. Then a Paho device against Muster's gateway: its counts equal the account.
source "$(dirname "$0")/lib.sh"
need mosquitto python3 jq

with_paho

PORT=$(free_port)
start_mosquitto "$PORT"
mkfifo "$WORK/end"
"$PYTHON" e2e/sap_edge.py application "$PORT" <"$WORK/end" >"$WORK/application.txt" &
APPLICATION=$!
STARTED+=("$APPLICATION")
exec 9>"$WORK/end"
until_lines 1 ready "$WORK/application.txt"
status_of "$MUSTER" run e2e/sap-edge.yaml --quiet --out "$WORK/run" \
    --set "platform.devices=[mqtt://127.0.0.1:$PORT]" --set "platform.backend.url=mqtt://127.0.0.1:$PORT"
exec 9>&-
wait "$APPLICATION"
read -r HEARD ACCEPTED REJECTED SILENT TWICE COMMANDS <<<"$(tail -1 "$WORK/application.txt")"
judged "some were rejected" "$WORK/run" fail
U='.ledger.uplink'
same "sent = heard" "$(value "$WORK/run" "$U.sent")" "$HEARD"
same "accepted, by 200 and by 202" "$(value "$WORK/run" "$U.accepted")" "$ACCEPTED"
same "rejected with 404" "$(value "$WORK/run" "$U.rejected_by_code[\"404\"]")" "$REJECTED"
same "timed out = not acknowledged" "$(value "$WORK/run" "$U.timed_out")" "$SILENT"
same "acknowledged twice" "$(value "$WORK/run" "$U.answered_again")" "$TWICE"
same "residue" "$(value "$WORK/run" "$U.residue")" 0
same "commands issued" "$(value "$WORK/run" .ledger.command.issued)" "$COMMANDS"
same "commands received" "$(value "$WORK/run" .ledger.command.received)" "$COMMANDS"
same "no reply is expected" "$(value "$WORK/run" .ledger.command.one_way)" "$COMMANDS"
same "nothing is known northbound" "$(value "$WORK/run" "$U.arrived")" null
same "what was said of the rejected" "$(value "$WORK/run" \
    '[.events[] | select(.kind == "rejecting") | .detail] | unique | join(" ")')" 'code 404: ["no such sensor"]'

PORT=$(free_port)
"$MUSTER" gateway --listen "127.0.0.1:$PORT" --dialect sap-edge --expect 500 \
    --behaviour 'reject: { count: 40 }, answer-batch: { most: 20, within: 50ms }' >"$WORK/gateway.txt" 2>&1 &
GATEWAY=$!
STARTED+=("$GATEWAY")
listens "$PORT"
read -r SEEN YES NO COMMANDED <<<"$("$PYTHON" e2e/sap_edge.py device "$PORT" 500)"
kill -INT "$GATEWAY"
wait "$GATEWAY" || true
sed -n '/^{/,$p' "$WORK/gateway.txt" >"$WORK/account.json"
same "each message is acknowledged" "$SEEN" 500
same "accepted, beside the command" "$YES" "$(jq ".accepted - .commands" "$WORK/account.json")"
same "rejected" "$NO" "$(jq .rejected "$WORK/account.json")"
same "rejected as asked" "$NO" 40
same "a command came as it was issued" "$COMMANDED" True
same "and is in the account" "$(jq -c '[.commands, .["commands-routed"]]' "$WORK/account.json")" "[1,1]"
check "in batches ($(jq .acknowledgements "$WORK/account.json") messages)" \
    test "$(jq .acknowledgements "$WORK/account.json")" -lt 250
finish
