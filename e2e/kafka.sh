#!/usr/bin/env bash
# A backend of Kafka against Apache Kafka 3.9: devices publish to Mosquitto, mosquitto_sub and kcat carry what
# they say to Kafka, and what is consumed is what the topics grew by, to the unit: alone, in a group that
# is rebalanced, over a broker that stands still, for a while or to the end, and while partitions are added to the topic. Then who may not do what, by the
# rights of users that log in.
source "$(dirname "$0")/lib.sh"
source e2e/peers/kafka/node.sh
need java kcat mosquitto mosquitto_sub mvn jq

MESSAGES=2400
readonly TOPIC=readings
# Records of somebody else, between those of the run.
readonly STRAY=7

# Partitions of the topic.
SIZE=6

MQTT=$(free_port)
readonly PASSWORD=open-sesame-4711
# Who logs in.
readonly LISTENERS=(LOGIN:SASL_PLAINTEXT)
# Who may do what, and nothing else.
readonly RIGHTS=("app READ TOPIC $TOPIC" "app READ GROUP application" "describer DESCRIBE TOPIC $TOPIC"
    "loner READ TOPIC $TOPIC" "finder DESCRIBE TOPIC absent" "issuer CREATE CLUSTER kafka-cluster"
    "issuer READ TOPIC hono.telemetry.t1" "issuer READ TOPIC hono.event.t1" "issuer READ TOPIC hono.command_response.t1"
    "issuer DESCRIBE TOPIC hono.command.t1" "issuer WRITE TOPIC elsewhere" "issuer DESCRIBE TOPIC hono.notification.registry-tenant"
    "issuer DESCRIBE TOPIC hono.notification.registry-device")

# configuration: users of the listener, and that others than the script itself may do nothing.
configuration() {
    local user users=
    for user in app describer loner finder issuer nobody; do users+=" user_$user=\"$PASSWORD\""; done
    printf '%s\n' auto.create.topics.enable=false "sasl.enabled.mechanisms=PLAIN" "super.users=User:ANONYMOUS" \
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer" \
        "listener.name.login.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required$users;"
}

# as USER: keys of a backend that logs in, into LOGIN.
as() {
    LOGIN=(--set "platform.backend.url=kafka://$(listener LOGIN)" --set "platform.backend.user=$1"
        --set "platform.backend.password=$PASSWORD")
}

# bridge: carries the messages of one run to Kafka, the topic of each as its key; some of somebody else after
# the first hundred. It ends with the last of them.
bridge() {
    mosquitto_sub -p "$MQTT" -i bridge -c -q 1 -t 'muster/#' -C "$MESSAGES" -W 120 -F '%t|%p' |
        awk -v stray="$STRAY" '{ print } NR == 100 { for (i = 0; i < stray; i++) print "nobody|hello" }' |
        kcat -P -b "127.0.0.1:$KAFKA" -t "$TOPIC" -K '|' -X topic.metadata.refresh.interval.ms=500 \
            -X message.timeout.ms="${BRIDGE_WAITS:-60000}" >"$WORK/bridge.log" 2>&1
}

# run NAME ARGUMENT...: one run, from whose first message on `$MEANWHILE` is done.
run() {
    local name=$1 before bridging meanwhile
    shift
    # The session of the bridge stands before it is used, so that it misses nothing.
    mosquitto_sub -p "$MQTT" -i bridge -c -q 1 -t 'muster/#' -E >/dev/null
    before=$(ends "$TOPIC" "$SIZE")
    bridge &
    bridging=$!
    (mosquitto_sub -p "$MQTT" -t 'muster/#' -C 1 -W 60 >/dev/null && ${MEANWHILE:-true}) &
    meanwhile=$!
    STARTED+=("$bridging" "$meanwhile")
    status_of "$MUSTER" run e2e/kafka.yaml --quiet --out "$WORK/$name" \
        --set "platform.devices=[mqtt://127.0.0.1:$MQTT]" --set "platform.backend.url=kafka://127.0.0.1:$KAFKA" "$@"
    kill -CONT "$NODE"
    wait "$bridging" "$meanwhile" || true
    GROWTH=$(($(ends "$TOPIC" "${GROWN:-$SIZE}") - before))
}

# counts NAME: a run that lost nothing, and whose account is Kafka's own.
counts() {
    local name=$1 u='.ledger.uplink'
    same "$name: all that was due was accepted" "$(value "$WORK/$name" "$u.accepted")" "$MESSAGES"
    same "$name: what was consumed is what the topic grew by" "$(value "$WORK/$name" "$u.consumed")" "$GROWTH"
    same "$name: the topic grew by what was sent" "$GROWTH" $((MESSAGES + STRAY))
    same "$name: unstamped" "$(value "$WORK/$name" "$u.unstamped")" "$STRAY"
}

# disturb_group: a stranger joins the group for another topic, and leaves it.
disturb_group() {
    timeout 5 kcat -b "127.0.0.1:$KAFKA" -G application other >/dev/null 2>&1 || true
}

start_mosquitto "$MQTT"
mapfile -t lines < <(configuration)
start_kafka "${lines[@]}"
(java_of e2e/peers/kafka/Rights.java "127.0.0.1:$KAFKA" "${RIGHTS[@]}") >"$WORK/rights.log" 2>&1

# checked URL ARGUMENT...: what `muster check` says of the cluster at an address.
checked() {
    status_of "$MUSTER" check e2e/kafka.yaml --set "platform.devices=[mqtt://127.0.0.1:$MQTT]" \
        --set "platform.backend.url=$1" "${@:2}"
}

# late: waits until most of a run's messages were published.
late() {
    mosquitto_sub -p "$MQTT" -t 'muster/#' -C $((MESSAGES - 600)) -W 60 >/dev/null
}

freeze_late() {
    late
    freeze_kafka 5
}

# change WHAT...: somebody changes a topic.
change() {
    (java_of e2e/peers/kafka/Topics.java "127.0.0.1:$KAFKA" "$@") >"$WORK/change.log" 2>&1
}

freeze_to_the_end() {
    late
    kill -STOP "$NODE"
}

# refused NAME USER PART ARGUMENT...: a run of that user has no result, and says why.
refused() {
    local name=$1 part=$3
    as "$2"
    shift 3
    status_of "$MUSTER" run e2e/kafka.yaml --quiet --out "$WORK/$name" --set "platform.devices=[mqtt://127.0.0.1:$MQTT]" \
        --set 'fleet[0].connect.timeout=2s' "${LOGIN[@]}" "$@"
    same "$name: there is no result" "$STATUS" 4
    says "$name: it is named" "$(event "$name" consumer-refused)" "$part"
}

# unready NAME USER PART ARGUMENT...: `check` as that user says so.
unready() {
    local name=$1 part=$3
    as "$2"
    shift 3
    checked "kafka://$(listener LOGIN)" "${LOGIN[@]}" "$@"
    same "check, $name: exit code" "$STATUS" 2
    says "check, $name: it is named" "$(grep -F refused "$WORK/out")" "$part"
}

checked "kafka://127.0.0.1:$KAFKA"
same "check of a cluster that answers: exit code" "$STATUS" 0
says "it says what would be created" "$(grep kafka:// "$WORK/out" | tail -1)" 'the run creates topic `readings` with 6 partitions'

passes alone --set 'platform.backend.topics={ readings: 6, other: 1 }'
counts alone
says "alone: the topics were created" "$(event alone topics)" '`readings` was created with 6 partitions'
same "alone: the consumer was never away" "$(event alone consumer-lost)" ""

checked "kafka://127.0.0.1:$KAFKA" --set 'platform.backend.topics={ readings: 4 }'
same "check of a topic with other partitions: exit code" "$STATUS" 0
says "it warns" "$(grep ^warning "$WORK/out")" 'topic `readings` has 6 partitions, not 4'

# By the least rights that docs/kafka.md names.
MEANWHILE=disturb_group
as app
passes group "${LOGIN[@]}" --set 'platform.backend.topics={ readings: 4 }' --set platform.backend.shared=application \
    --set platform.backend.consumers=2
same "group: other partitions are one warning" "$(value "$WORK/group" '[.verdict.warnings[].kind] - ["cpu", "cpu-wait", "steal"] | join(" ")')" topics-differ
counts group
says "group: the rebalance is told" "$(event group consumer-lost)" "(a rebalance)"
says "group: and that it is over" "$(event group consumer-back)" "consumer 0 of"
same "group: nothing came twice" "$(value "$WORK/group" .ledger.uplink.duplicates)" 0

MEANWHILE=freeze_late
passes frozen
counts frozen
check "frozen: no client was answered" test -e "$WORK/was-frozen"
says "frozen: a broker that does not answer is told" "$(event frozen consumer-lost)" "has not answered for"

# What is written to partitions that are added meanwhile is consumed to the unit, alone and in a group.
MEANWHILE="change grow $TOPIC 8"
GROWN=8 passes grown
SIZE=8
counts grown
says "grown: it is told" "$(event grown topics-changed)" 'topic `readings` grew from 6 to 8 partitions'
check "grown: something was written to the new ones" test "$(ends "$TOPIC" 8)" -gt "$(ends "$TOPIC" 6)"
same "grown: the consumer was never away" "$(event grown consumer-lost)" ""
MEANWHILE="change grow $TOPIC 12"
GROWN=12 passes regrown --set platform.backend.shared=application --set platform.backend.consumers=2
SIZE=12
counts regrown
says "grown, a group: it is told" "$(event regrown topics-changed)" 'topic `readings` grew from 8 to 12 partitions'
says "grown, a group: a warning, with the time" \
    "$(value "$WORK/regrown" '[.verdict.warnings[] | select(.kind == "topics-changed").detail] | join(" ")')" 'to 12 partitions at '

MESSAGES=1200
MEANWHILE=freeze_to_the_end
run silent --set phases.measure=3s --set 'phases.settle={ at-most: 6s, quiet: 2s }'
same "silent to the end: it fails" "$STATUS" 1
same "silent to the end: by what" "$(value "$WORK/silent" '[.verdict.rules[] | select(.consequence == "fails") | .rule] | join(" ")')" drain
check "silent to the end: what is absent is outstanding" test "$(value "$WORK/silent" .ledger.uplink.outstanding)" -gt 0
same "silent to the end: and not lost" "$(value "$WORK/silent" .ledger.uplink.lost)" 0
same "silent to the end: residue" "$(value "$WORK/silent" .ledger.uplink.residue)" 0
MEANWHILE=

unready "no right to read" describer 'failed to read topic `readings`'
unready "no right at all" nobody 'allow platform.backend.user to describe and read'
unready "no right to the group" loner 'resource Group' --set platform.backend.shared=application
unready "a wrong password" app platform.backend.password --set platform.backend.password=wrong
refused unread describer 'failed to read topic `readings`'
refused ungrouped loner 'resource Group' --set platform.backend.shared=application
refused uncreated finder 'failed to create topic `absent`' --set 'platform.backend.topics={ absent: 1 }'

# Devices of a tenant of whom Kafka knows nothing, whose commands may not be written.
port=$(free_port) coap=$(free_port)
"$MUSTER" gateway --dialect hono --listen "127.0.0.1:$port" --coap "127.0.0.1:$coap" --threads 1 >"$WORK/gateway.log" &
STARTED+=("$!")
listens "$port"
as issuer
status_of "$MUSTER" run e2e/kafka-commands.yaml --quiet --out "$WORK/unwritten" "${LOGIN[@]}" \
    --set "platform.devices=[coap://127.0.0.1:$coap]" --set 'platform.backend.commands={ to: all, mode: one-way, rate: 20/s }' \
    --set phases.measure=2s --set 'phases.settle={ at-most: 8s, quiet: 1s }' --set 'platform.backend.topics={ telemetry: 3 }'
u='.ledger.command'
check "commands that may not be written: some" test "$(value "$WORK/unwritten" "$u.issued")" -gt 20
same "each is counted by the broker's code" "$(value "$WORK/unwritten" "$u.undeliverable_by_status[\"kafka-29\"] == $u.issued")" true
same "residue" "$(value "$WORK/unwritten" "$u.residue")" 0
says "the right is named" "$(event unwritten consumer-refused)" "to write the topic of commands"
says "topics that were created are named" "$(event unwritten topics)" '`hono.telemetry.t1` was created with 3 partitions'
# Nobody else creates any here. Of those that the scenario does not name docs/kafka.md says how many.
for it in telemetry.t1:3 event.t1:4 command.t1:3 command_response.t1:2 notification.registry-tenant:4 notification.registry-device:4; do
    same "partitions of hono.${it%:*}" "$(partitions "hono.${it%:*}")" "${it#*:}"
done
says "that there were none is a warning" \
    "$(value "$WORK/unwritten" '[.verdict.warnings[] | select(.kind == "new-tenant").detail] | join(" ")')" 'no topic of tenant `t1`'

# A topic that is deleted is named at once, and beside the loss.
MEANWHILE="change delete $TOPIC"
MESSAGES=2400 BRIDGE_WAITS=3000 run deleted
MEANWHILE=
says "deleted: it is told" "$(event deleted topics-changed)" 'topic `readings` was deleted'
says "deleted: beside the loss" "$(value "$WORK/deleted" '.verdict.rules[] | select(.rule == "loss").evidence')" \
    'topic `readings` was deleted at '
same "deleted: the consumer was never away" "$(event deleted consumer-lost)" ""
SIZE=6
MEANWHILE="change delete $TOPIC"
MESSAGES=2400 BRIDGE_WAITS=3000 run vanished --set platform.backend.shared=application
MEANWHILE=
same "deleted, a group: it is told, and nothing else" "$(value "$WORK/vanished" '[.verdict.warnings[] | select(.kind == "topics-changed")] | length')" 1
says "deleted, a group: how" "$(event vanished topics-changed)" 'topic `readings` was deleted'

status_of "$MUSTER" run e2e/kafka.yaml --quiet --out "$WORK/nobody" --set "platform.devices=[mqtt://127.0.0.1:$MQTT]" \
    --set platform.backend.url=kafka://127.0.0.1:1 --set 'fleet[0].connect.timeout=2s'
same "without a broker there is no result" "$STATUS" 4
says "without a broker the key is named" "$(event nobody consumer-refused)" "platform.backend.url"

checked kafka://127.0.0.1:1
same "check of nobody: exit code" "$STATUS" 4
says "it names the key" "$(grep silent "$WORK/out")" "platform.backend.url"

checked kafkas://127.0.0.1:9093
same "over TLS: exit code" "$STATUS" 2
says "over TLS the feature is named" "$(cat "$WORK/out")" "--features kafka-tls"
finish
