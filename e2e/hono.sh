#!/usr/bin/env bash
# A real Eclipse Hono 2.6 with Kafka: its devices are told to its registry, upload over CoAP and DTLS, and what the
# application consumes is what Kafka's topics grew by and what Hono itself says it forwarded; devices ask for commands, which
# the application sends over Kafka; once more with devices and application as two processes. Then its adapter stands still
# in the middle of a run, and then Kafka. DEVICES and MEASURE make it shorter. With SHARED=1, for a machine that others work
# on, the services of Hono do not yield to other processes.
source "$(dirname "$0")/lib.sh"
source e2e/peers/kafka/node.sh
source e2e/hono/platform.sh
need curl java jq kcat mvn

readonly DEVICES=${DEVICES:-2500} MEASURE=${MEASURE:-3m}
readonly TENANT=load-tests TOLD=20
OTHERS=0 HOW=whole
readonly TELEMETRY=hono.telemetry.$TENANT EVENT=hono.event.$TENANT
readonly COMMAND=hono.command.$TENANT REPLY=hono.command_response.$TENANT

# at_hono COMMAND ARGUMENT...: a command of ours about the scenario at this Hono.
at_hono() {
    "$MUSTER" "$1" e2e/hono.yaml --set "fleet[0].count=$DEVICES" \
        --set "platform.devices=[$COAPS]" --set "platform.backend.url=kafka://127.0.0.1:$KAFKA" \
        --set "provision.url=http://127.0.0.1:$REGISTRY" --set "monitor[0].counters=$METRICS" "${@:2}"
}

ours() {
    status_of at_hono "$@"
}

# provisioned WHAT ACTION WANTED: what the registry was told, and how often.
provisioned() {
    ours provision "$2" --quiet --out "$WORK/record"
    same "$1" "$(grep -o 'device: .*' "$WORK/out" | head -1)" "$3"
}

# registry_says PATH: the status of one call of the management API.
registry_says() {
    curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$REGISTRY/v1/$1"
}

# hono_counts TYPE STATUS: how many messages the adapter says it has handled so.
hono_counts() {
    curl -s "$METRICS" | grep '^hono_telemetry_processing_duration_seconds_count' |
        grep "status=\"$2\"" | grep "type=\"$1\"" | awk '{ sum += $NF } END { print sum + 0 }'
}

# grown: Kafka's ends and Hono's own counters, before a run and after it.
grown() {
    echo "$(ends "$TELEMETRY" 10) $(ends "$EVENT" 4) $(hono_counts telemetry forwarded) $(hono_counts event forwarded)" \
        "$(($(hono_counts telemetry undeliverable) + $(hono_counts event undeliverable)))" \
        "$(ends "$COMMAND" 3) $(ends "$REPLY" 2)"
}

# in_the_middle: does `$MEANWHILE` once 500 messages of telemetry have come.
in_the_middle() {
    [ -n "${MEANWHILE:-}" ] || return 0
    timeout 120 kcat -b "127.0.0.1:$KAFKA" -C -q -t "$TELEMETRY" -o end -c 500 >/dev/null || return 0
    $MEANWHILE
}

whole() {
    at_hono run --quiet --out "$WORK/$1" "${@:2}"
}

# run NAME ARGUMENT...: one run, as `$HOW` has it, in whose middle `$MEANWHILE` is done; what grew by it is in GROWTH.
run() {
    local name=$1 before after meanwhile
    shift
    before=$(grown)
    in_the_middle &
    meanwhile=$!
    STARTED+=("$meanwhile")
    status_of "$HOW" "$name" "$@"
    wait "$meanwhile" || true
    after=$(grown)
    read -r -a GROWTH < <(paste <(tr ' ' '\n' <<<"$after") <(tr ' ' '\n' <<<"$before") | awk '{ print $1 - $2 }' | paste -s)
}

# within WHAT GOT WANTED LATE: as many as wanted, or more by some of those that were answered too late, with whatever code.
within() {
    check "$1 ($2, wanted $3, late $4)" test "$2" -ge "$3" -a "$2" -le $(($3 + $4))
}

# tell_of_connections: what an adapter that tells the application of connections writes among the events. That of CoAP,
# whose producer of them is on, tells of none.
tell_of_connections() {
    seq -f 'meters:m-%04g|{"cause":"connected","source":"hono-mqtt"}' "$TOLD" |
        kcat -P -b "127.0.0.1:$KAFKA" -t "$EVENT" -K '|' -H content-type=application/vnd.eclipse-hono-dc-notification+json \
            -H orig_adapter=hono-mqtt -H orig_address=event
}

# counted NAME: what a run says of Hono's counters is what is read of them here. Neither of two parts can tell it of itself.
counted() {
    local name=$1 out=$WORK/$1
    same "$name: the result has Hono's counters as they are read here" "$(value "$out" '.target.counters |
        [map(select(.status == "forwarded" and .type == "telemetry")), map(select(.status == "forwarded" and .type == "event")),
        map(select(.status == "undeliverable"))] | map(map(.grown) | add) | join(" ")')" "${GROWTH[*]:2:3}"
    same "$name: and says that they are the ledger's" "$(value "$out" '[.target.counters[] | select(.status != "unprocessable").agrees] | all')" true
}

# Notices that changed nothing, such as a second one: the consumers tell how many there were.
readonly IDLE='([.events[] | select(.kind == "idle-notices").detail | capture(": (?<n>[0-9,]+) notices").n | gsub(","; "") | tonumber] | add // 0)'

# The figures of the published form that are not those of the ledger, as [published, ledger]; `{}` where all are.
readonly UNLIKE='.published.hono as $p | .ledger.by_stream as $s | $s["meters/queries"].command as $q | $s["meters/replies"].command as $r |
    $s["meters/telemetry"].ledger as $t | $s["meters/event"].ledger as $e | {
    telemetry: [$p.publishedTelemetryCount, $t.sent], event: [$p.publishedEventsCount, $e.sent],
    queries: [$p.publishedCommandQueries, $q.queries], received: [$p.receivedCommands, $q.received_by_query],
    answered: [$p.answeredCommandsCount, $r.answered], missing: [$p.coapErrorsSendCommandRequest.missingCommand // 0, $q.no_command],
    errors_telemetry: [$p.coapErrorsSendTelemetry | add // 0, ($t | .rejected + .timed_out + .broken)],
    errors_event: [$p.coapErrorsSendEvent | add // 0, ($e | .rejected + .timed_out + .broken)],
    errors_request: [$p.coapErrorsSendCommandRequest | add // 0, ($q | .no_command + .query_rejected + .query_timed_out + .query_broken)],
    errors_response: [$p.coapErrorsSendCommandResponse | add // 0, ($r | .answer_rejected + .answer_timed_out + .answer_broken)],
    not_issued: [$p.notIssued, {telemetry: $t.shed, event: $e.shed, commandRequest: $s["meters/queries"].ledger.shed, commandResponse: $r.answer_shed}],
    in_flight: [$p.inFlightAtStop, {telemetry: $t.in_flight, event: $e.in_flight, commandRequest: $q.query_in_flight, commandResponse: $r.answer_in_flight}]
    } | with_entries(select(.value[0] != .value[1])) | tojson'

# closes NAME: the ledgers of a run close and are those of Kafka and of Hono, to the unit; of the events so many were written
# by no device as `$OTHERS` says.
closes() {
    local name=$1 out=$WORK/$1 u='.ledger.uplink' c='.ledger.command'
    local t='.ledger.by_stream["meters/telemetry", "meters/queries"].ledger' e='.ledger.by_stream["meters/event"].ledger'
    same "$name: residue" "$(value "$out" "$u.residue")" 0
    same "$name: lost" "$(value "$out" "$u.lost")" 0
    same "$name: consumed is what Kafka's topics grew by" "$(value "$out" "$u.consumed")" $((GROWTH[0] + GROWTH[1]))
    same "$name: of telemetry" "$(value "$out" "[$t | .arrived + .duplicates] | add")" "${GROWTH[0]}"
    same "$name: of events" "$(value "$out" "$e | .arrived + .duplicates")" $((GROWTH[1] - OTHERS))
    same "$name: what others wrote has no id, and nothing was altered" \
        "$(value "$out" "$u | [.unstamped, .foreign, .corrupted] | join(\" \")")" "$OTHERS 0 0"
    within "$name: Hono says it forwarded the telemetry that was accepted" "${GROWTH[2]}" "$(value "$out" "[$t.accepted] | add")" "$(value "$out" "$u.answered_late")"
    within "$name: and the events" "${GROWTH[3]}" "$(value "$out" "$e.accepted")" "$(value "$out" "$u.answered_late")"
    within "$name: and could not deliver what it rejected" "${GROWTH[4]}" "$(value "$out" "$u.rejected")" "$(value "$out" "$u.answered_late")"
    same "$name: and answered no other" $((GROWTH[2] + GROWTH[3] + GROWTH[4])) "$(value "$out" "$u | .accepted + .rejected + .answered_late")"
    [ "$HOW" = in_two_parts ] || counted "$name"
    same "$name: the published form has the figures of the ledger" "$(value "$out" "$UNLIKE")" "{}"
    same "$name: residue of commands" "$(value "$out" "$c.residue")" 0
    same "$name: what was issued is on the topic of commands" "$(value "$out" "$c.issued")" "${GROWTH[5]}"
    same "$name: replies and notices are on theirs" \
        "$(value "$out" "($c | .replies_arrived + .replies_unanswered + .replies_again + (.undeliverable_by_status | add // 0)) + $IDLE")" "${GROWTH[6]}"
}

# fails NAME ARGUMENT...: a run of a minute's half that fails, and is valid.
fails() {
    run "$@" --set phases.warm-up=2s --set phases.measure=30s --set 'slo.end-to-end.p99=<= 1s'
    same "$1: exit code" "$STATUS" 1
    [ "$STATUS" -eq 1 ] || cat "$WORK/out"
    same "$1: nothing of it is invalid" "$(value "$WORK/$1" '[.verdict.rules[] | select(.consequence == "invalidates")] | length')" 0
    closes "$1"
}

# hopeless NAME CODE SETTING...: a few devices with something wrong: the run's exit code, and what its report says in $WORK/out.
# A run that never began (4) has no schedule to close its ledger with: nothing was sent, by nobody.
hopeless() {
    local name=$1 code=$2 settings=()
    shift 2
    for setting; do settings+=(--set "$setting"); done
    ours run --quiet --out "$WORK/$name" --set phases.warm-up=0s --set phases.measure=4s \
        --set 'fleet[0].connect.timeout=3s' --set 'fleet[0].count=8' "${settings[@]}"
    same "$name: exit code" "$STATUS" "$code"
    case $code in
    4) same "$name: nothing was sent, and nobody got in" \
        "$(value "$WORK/$name" '[.ledger.uplink.sent, .ledger.uplink.residue, .links.connected, .verdict.result] | tostring')" '[0,null,0,"none"]' ;;
    *) same "$name: residue" "$(value "$WORK/$name" .ledger.uplink.residue)" 0 ;;
    esac
}

# lasted NAME KIND: for how many seconds something was so, by the first event of that kind.
lasted() {
    value "$WORK/$1" "[.events[] | select(.kind == \"$2\") | .until_s - .t_s][0] // 0 | floor"
}

# freeze_adapter: the adapter stands still until somebody has waited ten seconds for it in vain.
freeze_adapter() {
    kill -STOP "$ADAPTER"
    curl -s -m 10 "$METRICS" >"$WORK/frozen-adapter" || true
    kill -CONT "$ADAPTER"
}

BEGAN=$SECONDS
start_hono
echo "# up after $((SECONDS - BEGAN)) s"

# A registry that does not know the tenant yet is one all the same; a path that it does not serve is none.
readonly ASKS=(check --set provision.mode=auto)
ours "${ASKS[@]}"
check "a registry without the tenant is found" grep -q "^ok .*management API: answers" "$WORK/out"
ours "${ASKS[@]}" --set "provision.url=http://127.0.0.1:$REGISTRY/wrong"
check "a wrong path is not taken for it" grep -q "^refused .*status 404.*is the base of the management API" "$WORK/out"
ours "${ASKS[@]}" --set provision.mode=verify
check "and a tenant that is not created is missing" grep -q "^refused .*there is no tenant .$TENANT." "$WORK/out"

# A tenant and a device of somebody else.
curl -s -o /dev/null -H content-type:application/json -d '{"ext":{"messaging-type":"kafka"}}' "http://127.0.0.1:$REGISTRY/v1/tenants/$TENANT"
curl -s -o /dev/null -H content-type:application/json -d '{}' "http://127.0.0.1:$REGISTRY/v1/devices/$TENANT/somebody"
provisioned "devices are created" create "device: $DEVICES created; tenant: 1 already there"
provisioned "and only once" create "device: $DEVICES already there; tenant: 1 already there"
same "one has its key" "$(curl -s "http://127.0.0.1:$REGISTRY/v1/credentials/$TENANT/meters:m-0007" |
    jq -c '[.[] | .type, ."auth-id", (.secrets | length)]')" '["psk","m-0007",1]'

ours check --loop
same "one device goes through the whole loop: exit code" "$STATUS" 0
[ "$STATUS" -eq 0 ] || cat "$WORK/out"
check "its command came, and the reply" grep -q "a command was received, and its reply seen within" "$WORK/out"
same "its topics were created as published" "$(partitions "$TELEMETRY") $(partitions "$EVENT") $(partitions "$REPLY")" "10 4 2"

# Each device's first messages, of which a Hono that has just begun may refuse some. Its machine may be too busy with starting
# it for a time to be decided; the counts have to hold.
run cold --set phases.warm-up=0s --set "phases.measure=$((DEVICES / 50 + 10))s"
same "cold: invalid by nothing but a busy machine (exit code $STATUS)" \
    "$(value "$WORK/cold" "[.verdict.rules[] | select(.consequence == \"invalidates\") | .reason] - $OF_TIME | join(\", \")")" ""
[ "$STATUS" -le 1 ] || cat "$WORK/out"
closes cold

MEANWHILE=tell_of_connections OTHERS=$TOLD
run load --set "phases.measure=$MEASURE"
same "load: exit code" "$STATUS" 0
[ "$STATUS" -eq 0 ] || cat "$WORK/out"
check "load: issued at least 99 % of offered" test "$(value "$WORK/load" '.rates | .issued >= 0.99 * .offered')" = true
closes load
MEANWHILE='' OTHERS=0
check "load: at least 98 % of queries had a command" test "$(value "$WORK/load" '.ledger.command | .received_by_query >= 0.98 * .queries')" = true
for name in cold load; do
    same "$name: every device's first messages are apart" "$(value "$WORK/$name" \
        '[.latency_cold, .latency_warm | .end_to_end.count > 0 and .command_request.count > 0] | all')" true
    echo "# $name: p99 of first and of other answers: $(value "$WORK/$name" \
        '"\(.latency_cold.response.p99_us) us, \(.latency_warm.response.p99_us) us"')"
    echo "# $name: first and other queries: $(value "$WORK/$name" '.ledger.command | "\(.queries_cold), \(.queries_warm)"')"
done

HOW=in_two_parts
run parts --set 'fleet[0].count=200' --set phases.warm-up=0s --set phases.measure=10s
same "parts: exit code" "$STATUS" 0
[ "$STATUS" -eq 0 ] || cat "$WORK/out"
closes parts
HOW=whole
check "parts: queries of one had commands of the other" test "$(value "$WORK/parts" '.ledger.command | .queries >= 300 and .received_by_query >= 0.98 * .queries and .received == .replies_arrived')" = true
same "parts: who asks issues nothing, and who answers receives nothing" "$(value "$WORK/parts-devices" .ledger.command.issued) $(
    value "$WORK/parts-backend" .ledger.command.received)" "0 0"

hopeless wrong-key 4 'fleet[0].credential.secret=another'
check "wrong key: told" grep -qF "handshake was not over in time" "$WORK/out"
hopeless no-tenant 4 'fleet[0].tenant=nobody'
says "no tenant: likewise, with what creates it" "$(event no-tenant handshake-failed)" "Is the tenant? Hono is silent towards each that it does not know: \`muster provision\`"
hopeless too-large 1 'fleet[0].streams.event.payload={ size: 3000 }'
same "too large: rejected by code" "$(value "$WORK/too-large" '.ledger.by_stream["meters/event"].ledger.rejected_by_code | keys | join(" ")')" 4.13
hopeless unknown-device 1 'fleet[0].streams.event.topic=event//nobody'
same "unknown device: rejected by code" "$(value "$WORK/unknown-device" '.ledger.by_stream["meters/event"].ledger.rejected_by_code | keys | join(" ")')" 4.04
says "unknown device: told with its meaning" "$(event unknown-device rejecting)" "the device is not registered"

MEANWHILE=freeze_adapter
fails adapter
check "adapter: the interval is among the events ($(lasted adapter no-answer) s)" test "$(lasted adapter no-answer)" -ge 7

MEANWHILE="freeze_kafka 10"
fails broker
check "broker: what was answered 5.03 and came is told ($(value "$WORK/broker" .ledger.uplink.rejected_but_arrived))" \
    test "$(value "$WORK/broker" .ledger.uplink.rejected_but_arrived)" -gt 0
says "broker: the codes are told" "$(value "$WORK/broker" '.ledger.uplink.rejected_by_code | keys | join(" ")')" 5.03
says "broker: that no broker answered is told" "$(event broker consumer-lost)" "has not answered for"
says "broker: and that it answers again" "$(event broker consumer-back)" "consumer 0 of"
check "broker: the interval is among the events ($(lasted broker consumer-lost) s)" test "$(lasted broker consumer-lost)" -ge 7

provisioned "devices are verified" verify "device: $DEVICES already there; tenant: 1 already there"
provisioned "devices are removed" remove "device: $DEVICES removed"
provisioned "and are gone" verify "device: $DEVICES missing; tenant: 1 already there"
same "that of somebody else is there" "$(registry_says "devices/$TENANT/somebody")" 200
same "and the tenant, too" "$(registry_says "tenants/$TENANT")" 200
finish
