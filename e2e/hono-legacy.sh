#!/usr/bin/env bash
# A real Eclipse Hono 1.2.3: its HTTP and MQTT adapters, Artemis as its messaging network over AMQP 1.0, and the registry of
# Hono 2.6. Devices are created there and send telemetry and events over each protocol. What the application receives over AMQP
# is what Artemis counted. Then, over each protocol: devices come with a wrong password, of an unknown tenant and for a device of
# another tenant; the application stands still until the adapters have no credit; Artemis is started anew in the middle of a run;
# devices are registered once they are refused. One device has a password hashed by bcrypt.
# With WHOLE=1 the load lasts a minute; RATE and MEASURE choose others.
source "$(dirname "$0")/lib.sh"
source e2e/hono/platform.sh
source e2e/hono-legacy/platform.sh
need curl java jq mvn

readonly RATE=${RATE:-500}
MEASURE=${MEASURE:-15s}
[ -z "${WHOLE:-}" ] || MEASURE=60s
readonly TENANT=load-tests DEVICES=400
# Bytes of an address from which on senders get no credit, in the run that wants that.
readonly FULL=200000
# For how long the application stands still there, and for how long the HTTP adapter asks a device to wait then, in seconds.
readonly PAUSE=10 RETRY_AFTER=2

# over PROTOCOL: what devices speak from now on. The MQTT adapter of 1.2.3 knows no MQTT 5.
over() {
    case $1 in
    http) OVER=(--set "platform.devices=[$HONO_HTTP]") ;;
    mqtt) OVER=(--set "platform.devices=[$HONO_MQTT]" --set 'fleet[0].client.version=3.1.1') ;;
    esac
}

# at_legacy COMMAND ARGUMENT...: a command of ours about the scenario at this Hono.
at_legacy() {
    "$MUSTER" "$1" e2e/hono-legacy.yaml "${OVER[@]}" \
        --set "platform.backend.url=amqp://127.0.0.1:$AMQP" --set "provision.url=http://127.0.0.1:$REGISTRY" "${@:2}"
}

ours() {
    status_of at_legacy "$@"
}

# provisions WHAT WANTED ACTION ARGUMENT...: one call of `muster provision`, and what it counts.
provisions() {
    ours provision "$3" --quiet --out "$WORK/record" "${@:4}"
    same "$1" "$(grep -o 'device: .*' "$WORK/out" | head -1)" "$2"
}

# asks METHOD PATH ARGUMENT...: a call of the registry's management API by curl, and its status.
asks() {
    curl -s -o /dev/null -w '%{http_code}' -X "$1" "http://127.0.0.1:$REGISTRY/v1/$2" -H 'content-type: application/json' "${@:3}"
}

# Telemetry has three fifths of the rate.
readonly RATES=(--set "fleet[0].streams.telemetry.rate=$((RATE * 3 / 5))/s" --set "fleet[0].streams.event.rate=$((RATE * 2 / 5))/s")
# The rate of a few devices.
readonly SLOW=(--set 'fleet[0].streams.telemetry.rate=12/s' --set 'fleet[0].streams.event.rate=8/s')
# A run whose platform is made to refuse.
readonly REFUSING=(--set 'slo.failure-ratio=any' --set 'slo.disconnects=any' --set 'slo.connected=any')

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

# ended NAME CODE: the exit code of the last command, and what it printed where it was another one.
ended() {
    same "$1: exit code" "$STATUS" "$2"
    [ "$STATUS" -eq "$2" ] || cat "$WORK/out"
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
    same "$name: lost" "$(value "$out" .ledger.uplink.lost)" 0
}

# load NAME: the load of all devices, which passes. An adapter that has just started answers 503 for the first seconds.
load() {
    run "$1" "${RATES[@]}" --set phases.warm-up=20s
    ended "$1" 0
    is_artemis "$1"
    echo "# $1, $MEASURE: $(value "$WORK/$1" '"\(.ledger.uplink.scheduled) messages due, \(.ledger.uplink.accepted) accepted, \(.rates.offered) offered and \(.rates.accepted) accepted a second, p99 \(.latency.response.p99_us) us"')"
}

# hopeless NAME CAUSE SETTING...: a few devices with something wrong, of whose messages none is accepted, for a cause that the
# verdict names.
hopeless() {
    local name=$1 settings=()
    for setting in "${@:3}"; do settings+=(--set "$setting"); done
    ours run --quiet --out "$WORK/$name" --set phases.warm-up=0s --set phases.measure=4s --set 'fleet[0].count=8' \
        --set 'fleet[0].connect.timeout=5s' "${settings[@]}"
    ended "$name" 1
    same "$name: nothing is accepted" "$(value "$WORK/$name" .ledger.uplink.accepted)" 0
    [ -z "$2" ] || says "$name: why" "$(value "$WORK/$name" '[.verdict.causes[].text] | join("; ")')" "$2"
}

# rejected NAME: the codes of a run's refusals.
rejected() {
    value "$WORK/$1" '.ledger.uplink.rejected_by_code | keys | join(" ")'
}

# refused NAME: the number of usable links of a run, and why the others failed.
refused() {
    value "$WORK/$1" '.links | "\(.connected) \(.connect_failures | keys | join(" "))"'
}

# no_credit NAME: the application stands still, and an address holds 200 kB: then the adapters have no credit. What was accepted
# is received afterwards.
no_credit() {
    restart_broker "$FULL"
    run "$1" "${RATES[@]}" "${REFUSING[@]}" --set phases.measure=30s --set "platform.backend.pause=[{ at: 8s, for: ${PAUSE}s }]"
    judged "$1" "$WORK/$1" pass
    is_artemis "$1"
}

# restarted NAME: Artemis crashes and comes back: events are in its journal, telemetry is not.
restarted() {
    restart_broker
    MEANWHILE=restart_broker
    run "$1" "${RATES[@]}" "${REFUSING[@]}" --set phases.measure=30s --set 'slo.loss=any'
    MEANWHILE=''
    judged "$1" "$WORK/$1" pass
    closes "$1"
    same "$1: no event that was accepted is lost" "$(value "$WORK/$1" '.ledger.by_stream["publishers/event"].ledger.lost')" 0
    says "$1: the loss of the consumer is named" "$(event "$1" consumer-lost)" "consumer 0 of backend"
    says "$1: and its return" "$(event "$1" consumer-back)" "consumer 0 of backend"
    check "$1: the time between is an interval ($(value "$WORK/$1" '[.events[] | select(.kind == "consumer-lost") | "\(.t_s) to \(.until_s) s"] | join(", ")'))" \
        test "$(value "$WORK/$1" '[.events[] | select(.kind == "consumer-lost") | .until_s != null and .until_s > .t_s] | all and length > 0')" = true
    check "$1: messages were accepted afterwards" test "$(value "$WORK/$1" .ledger.uplink.accepted)" -gt $((RATE * 15))
    echo "# $1: $(value "$WORK/$1" '.ledger.uplink | "\(.accepted) accepted, \(.lost) lost, rejected \(.rejected_by_code), broken \(.broken_by_cause)"')"
}

# on_refusal NAME: 100 devices, of which the registry knows one without credentials. Each is registered once it is refused, and
# all that was registered is removed again.
on_refusal() {
    same "$1: a device without credentials is created" "$(asks POST "devices/$TENANT/new-0" -d '{}')" 201
    ours run --quiet --out "$WORK/$1" "${REFUSING[@]}" --set provision.mode=on-refusal --set 'fleet[0].count=100' \
        --set 'fleet[0].id=new-${index}' --set phases.warm-up=15s --set phases.measure=10s --set 'fleet[0].streams.telemetry.rate=60/s' \
        --set 'fleet[0].streams.event.rate=40/s'
    ended "$1" 0
    closes "$1"
    same "$1: lost" "$(value "$WORK/$1" .ledger.uplink.lost)" 0
    says "$1: each was registered" "$(event "$1" registered-on-refusal)" "100 links were refused"
    says "$1: and the one that was there has its credentials" "$(event "$1" registered-on-refusal)" "device: 99 created, 1 already there"
    check "$1: then all were accepted" test "$(value "$WORK/$1" '.ledger.measured | .accepted == .scheduled')" = true
    says "$1: what was created is removed" "$(event "$1" deprovisioned)" "device: 99 removed"
    same "$1: and nothing else" "$(asks DELETE "devices/$TENANT/new-0")" 204
}

BEGAN=$SECONDS
start_legacy_hono
echo "# up after $((SECONDS - BEGAN)) s"

over http
provisions "devices are created" "device: $DEVICES created; tenant: 1 created" create
same "the tenant is one of AMQP" "$(curl -s "http://127.0.0.1:$REGISTRY/v1/tenants/$TENANT" | jq -r '.ext["messaging-type"]')" amqp
same "the registry compares ETags" "$(asks PUT "credentials/$TENANT/p-0000" -H 'if-match: another' -d '[]')" 412

for protocol in http mqtt; do
    over "$protocol"
    load "$protocol"
done

readonly TO_OTHERS=('fleet[0].streams.telemetry.topic=telemetry/others/${id}' 'fleet[0].streams.event.topic=event/others/${id}')
over http
hopeless http-wrong-password "unauthorized (http-401)" 'fleet[0].credential.secret=another'
closes http-wrong-password
hopeless http-no-tenant "unauthorized (http-401)" 'fleet[0].tenant=nobody'
closes http-no-tenant
hopeless http-other-tenant "forbidden (http-403)" "${TO_OTHERS[@]}"
closes http-other-tenant
over mqtt
# Without a link no load begins.
hopeless mqtt-wrong-password "bad user name or password (connack-4)" 'fleet[0].credential.secret=another'
same "mqtt-wrong-password: no link" "$(refused mqtt-wrong-password)" "0 rejected-connack-4"
hopeless mqtt-no-tenant "bad user name or password (connack-4)" 'fleet[0].tenant=nobody'
same "mqtt-no-tenant: no link" "$(refused mqtt-no-tenant)" "0 rejected-connack-4"
# Hono gives no reason there: it ends each link that tries.
hopeless mqtt-other-tenant "" "${TO_OTHERS[@]}"
closes mqtt-other-tenant
same "mqtt-other-tenant: every message is broken by the end of its link" \
    "$(value "$WORK/mqtt-other-tenant" '.ledger.uplink | .broken == .sent and (.broken_by_cause | keys - ["closed-by-peer", "reset"] == [])')" true

# Over HTTP the answer is 503 with a time to wait, so that a device comes back once in that time.
over http
no_credit http-no-credit
same "http-no-credit: the only refusal" "$(rejected http-no-credit)" http-503
REJECTED=$(value "$WORK/http-no-credit" .ledger.uplink.rejected)
check "http-no-credit: devices wait for $RETRY_AFTER s after each ($REJECTED)" test "$REJECTED" -le $((DEVICES * (PAUSE / RETRY_AFTER + 1)))
# Nobody receives now, so that the address fills. The adapter has a credit of a thousand messages at most.
ANSWER=$(curl -s -o /dev/null -w '%{http_code} %header{retry-after}\n' -u "p-0000@$TENANT:key-0" -H 'qos-level: 1' \
    -H 'content-type: text/plain' -d "$(printf '%064d')" "$HONO_HTTP/telemetry?post=[1-3000]" | grep -m 1 '^5') || true
same "http-no-credit: the adapter's answer" "$ANSWER" "503 $RETRY_AFTER"
# Over MQTT Hono ends the link of whoever sends then.
over mqtt
no_credit mqtt-no-credit
check "mqtt-no-credit: refusals are counted as links that Hono ended ($(value "$WORK/mqtt-no-credit" '.links.disconnects | tostring'))" \
    test "$(value "$WORK/mqtt-no-credit" '[.links.disconnects[]] | add // 0')" -gt 0
check "mqtt-no-credit: and what was on them as broken ($(value "$WORK/mqtt-no-credit" .ledger.uplink.broken))" \
    test "$(value "$WORK/mqtt-no-credit" .ledger.uplink.broken)" -gt 0

for protocol in http mqtt; do
    over "$protocol"
    restarted "$protocol-restarted"
done

over http
on_refusal http-on-refusal
check "http-on-refusal: by 401 ($(value "$WORK/http-on-refusal" '.ledger.uplink.rejected_by_code | tostring'))" \
    test "$(rejected http-on-refusal)" = http-401
over mqtt
on_refusal mqtt-on-refusal
over http
# A gateway that is known, and two of its devices that are not.
GATEWAY=(--set 'fleet[0].id=behind-${index}' --set 'fleet[0].gateway={ devices: 3, id: gateway }')
provisions "a gateway is created" "device: 2 created; tenant: 1 already there" create "${GATEWAY[@]}" --set 'fleet[0].count=1'
ours run --quiet --out "$WORK/behind" "${GATEWAY[@]}" "${SLOW[@]}" "${REFUSING[@]}" --set 'fleet[0].count=3' --set phases.measure=5s \
    --set provision.mode=on-refusal
ended behind 0
closes behind
same "behind: an unknown device of a gateway" "$(rejected behind)" http-404
says "behind: the two are registered" "$(event behind registered-on-refusal)" "device: 2 created, 2 already there"
check "behind: then all were accepted" test "$(value "$WORK/behind" '.ledger.measured | .accepted == .scheduled')" = true

BCRYPT=(--set 'fleet[0].id=bcrypt' --set 'fleet[0].count=1')
provisions "a device with a hash of bcrypt is created" "device: 1 created; tenant: 1 already there" create "${BCRYPT[@]}" \
    --set provision.password-hash=bcrypt
run bcrypt "${BCRYPT[@]}" --set phases.warm-up=2s --set phases.measure=5s --set 'fleet[0].streams.telemetry.rate=3/s' \
    --set 'fleet[0].streams.event.rate=2/s'
ended bcrypt 0
is_artemis bcrypt
echo "# bcrypt: $(value "$WORK/bcrypt" '"\(.ledger.uplink.accepted) accepted, p50 \(.latency.response.p50_us) us"')"

provisions "devices are removed" "device: $((DEVICES + 3)) removed; tenant: 1 removed" remove
finish
