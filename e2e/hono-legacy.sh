#!/usr/bin/env bash
# A real Eclipse Hono 1.2.3: its MQTT adapter, Artemis as its messaging network over AMQP 1.0, and the registry of Hono
# 2.6. Devices are created there, send telemetry and events, and what the application receives over AMQP is what
# Artemis counted. Then the application stands still until the adapters have no credit, Artemis is started anew in the middle of
# a run, and devices come with a wrong password, of an unknown tenant and for a device of another tenant. RATE and MEASURE make it
# shorter.
source "$(dirname "$0")/lib.sh"
source e2e/hono/platform.sh
source e2e/hono-legacy/platform.sh
need curl java jq mvn

readonly RATE=${RATE:-500} MEASURE=${MEASURE:-60s}
readonly TENANT=load-tests
# Bytes of an address from which on senders get no credit, in the run that wants that.
readonly FULL=200000

# at_legacy COMMAND ARGUMENT...: a command of ours about the scenario at this Hono.
at_legacy() {
    "$MUSTER" "$1" e2e/hono-legacy.yaml --set "platform.devices=[$HONO_MQTT]" \
        --set "platform.backend.url=amqp://127.0.0.1:$AMQP" --set "provision.url=http://127.0.0.1:$REGISTRY" "${@:2}"
}

ours() {
    status_of at_legacy "$@"
}

# Telemetry has three fifths of the rate.
readonly RATES=(--set "fleet[0].streams.telemetry.rate=$((RATE * 3 / 5))/s" --set "fleet[0].streams.event.rate=$((RATE * 2 / 5))/s")

# counts: what Artemis has added to the queues of telemetry and events, and what of it was acknowledged.
counts() {
    local queue
    for queue in telemetry event; do
        echo "$(counted_by_broker "$queue/$TENANT" 2) $(counted_by_broker "$queue/$TENANT" 3)"
    done | paste -sd' '
}

# in_the_middle: does `$MEANWHILE` once Artemis has added a thousand messages of telemetry to those that it had.
in_the_middle() {
    [ -n "${MEANWHILE:-}" ] || return 0
    local before
    before=$(counted_by_broker "telemetry/$TENANT" 2)
    # The broker's own answer paces this.
    local latest=$((SECONDS + 60))
    while [ "$SECONDS" -lt "$latest" ]; do
        [ $(($(counted_by_broker "telemetry/$TENANT" 2) - before)) -lt 1000 ] || break
    done
    $MEANWHILE >"$WORK/meanwhile" 2>&1
}

# run NAME ARGUMENT...: one run, in whose middle `$MEANWHILE` is done; what Artemis counted of it is in GROWTH.
run() {
    local name=$1 before meanwhile
    before=$(counts)
    in_the_middle &
    meanwhile=$!
    STARTED+=("$meanwhile")
    ours run --quiet --out "$WORK/$name" --set "phases.measure=$MEASURE" "${@:2}"
    wait "$meanwhile" || true
    # What was started in the meantime is ended with the script.
    readarray -t -O "${#STARTED[@]}" STARTED <"$WORK/brokers"
    read -r -a GROWTH < <(paste <(counts | tr ' ' '\n') <(tr ' ' '\n' <<<"$before") | awk '{ print $1 - $2 }' | paste -sd' ')
}

# closes NAME: the ledger of a run closes.
closes() {
    same "$1: residue" "$(value "$WORK/$1" .ledger.uplink.residue)" 0
}

# is_artemis NAME: the ledger of a run is what Artemis counted, to the unit.
is_artemis() {
    local name=$1 out=$WORK/$1
    closes "$name"
    same "$name: consumed is what Artemis added" "$(value "$out" .ledger.uplink.consumed)" $((GROWTH[0] + GROWTH[2]))
    same "$name: and what was acknowledged to it" "$(value "$out" .ledger.uplink.consumed)" $((GROWTH[1] + GROWTH[3]))
    same "$name: of telemetry" "$(value "$out" '[.ledger.by_stream["publishers/telemetry"].ledger | .arrived + .duplicates] | add')" "${GROWTH[0]}"
    same "$name: of events" "$(value "$out" '[.ledger.by_stream["publishers/event"].ledger | .arrived + .duplicates] | add')" "${GROWTH[2]}"
    same "$name: nothing was altered or of others" "$(value "$out" '.ledger.uplink | [.foreign, .corrupted] | join(" ")')" "0 0"
}

# hopeless NAME CODE SETTING...: a few devices with something wrong.
hopeless() {
    local name=$1 code=$2 settings=()
    for setting in "${@:3}"; do settings+=(--set "$setting"); done
    ours run --quiet --out "$WORK/$name" --set phases.warm-up=0s --set phases.measure=4s --set 'fleet[0].count=8' \
        --set 'fleet[0].connect.timeout=5s' "${settings[@]}"
    same "$name: exit code" "$STATUS" "$code"
    [ "$STATUS" -eq "$code" ] || cat "$WORK/out"
}

BEGAN=$SECONDS
start_legacy_hono
echo "# up after $((SECONDS - BEGAN)) s"

ours provision create --quiet --out "$WORK/record"
same "devices are created" "$(grep -o 'device: .*' "$WORK/out" | head -1)" "device: 400 created; tenant: 1 created"

run load "${RATES[@]}"
same "load: exit code" "$STATUS" 0
[ "$STATUS" -eq 0 ] || cat "$WORK/out"
same "load: lost" "$(value "$WORK/load" .ledger.uplink.lost)" 0
is_artemis load
echo "# load: $(value "$WORK/load" '"\(.rates.offered) offered, \(.rates.accepted // .rates.issued) accepted a second, p99 \(.latency.response.p99_us) us"')"

hopeless wrong-password 1 'fleet[0].credential.secret=another'
same "wrong password: each link is refused" "$(value "$WORK/wrong-password" '.links | "\(.connected) \(.connect_failures | keys | join(" "))"')" "0 rejected-connack-4"
hopeless no-tenant 1 'fleet[0].tenant=nobody'
same "no tenant: likewise" "$(value "$WORK/no-tenant" '.links | "\(.connected) \(.connect_failures | keys | join(" "))"')" "0 rejected-connack-4"
hopeless other-tenant 1 'fleet[0].streams.telemetry.topic=telemetry/others/${id}' 'fleet[0].streams.event.topic=event/others/${id}'
same "other tenant: nothing is accepted" "$(value "$WORK/other-tenant" .ledger.uplink.accepted)" 0
check "other tenant: Hono ends each link that tries" test "$(value "$WORK/other-tenant" .ledger.uplink.broken)" -gt 0
closes other-tenant

# The application stands still, and an address holds 200 kB: then the adapters have no credit. Hono closes the link of whoever sends
# then (503 over HTTP), and what was accepted is received afterwards.
restart_broker "$FULL"
run no-credit "${RATES[@]}" --set phases.measure=30s --set 'platform.backend.pause=[{ at: 8s, for: 10s }]' --set 'slo.failure-ratio=any' \
    --set 'slo.disconnects=any' --set 'slo.connected=any'
[ "$STATUS" -le 1 ] || cat "$WORK/out"
is_artemis no-credit
same "no credit: lost" "$(value "$WORK/no-credit" .ledger.uplink.lost)" 0
check "no credit: refusals are counted as links that Hono ended ($(value "$WORK/no-credit" '.links.disconnects | tostring'))" \
    test "$(value "$WORK/no-credit" '[.links.disconnects[]] | add // 0')" -gt 0
check "no credit: and what was on them as broken ($(value "$WORK/no-credit" .ledger.uplink.broken))" test "$(value "$WORK/no-credit" .ledger.uplink.broken)" -gt 0

# Artemis crashes and comes back: events are in its journal, telemetry is not.
restart_broker
MEANWHILE=restart_broker
run restarted "${RATES[@]}" --set phases.measure=30s --set 'slo.loss=any' --set 'slo.failure-ratio=any' --set 'slo.disconnects=any' --set 'slo.connected=any'
MEANWHILE=''
[ "$STATUS" -le 1 ] || cat "$WORK/out"
closes restarted
same "restarted: no event that was accepted is lost" "$(value "$WORK/restarted" '.ledger.by_stream["publishers/event"].ledger.lost')" 0
says "restarted: the loss of the consumer is named" "$(event restarted consumer-lost)" "consumer 0 of backend"
check "restarted: messages were accepted afterwards" test "$(value "$WORK/restarted" .ledger.uplink.accepted)" -gt $((RATE * 15))

ours provision remove --quiet --out "$WORK/record"
same "devices are removed" "$(grep -o 'device: .*' "$WORK/out" | head -1)" "device: 400 removed; tenant: 1 removed"
finish
