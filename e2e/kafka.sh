#!/usr/bin/env bash
# A backend of Kafka against Apache Kafka 3.9: devices publish to Mosquitto, mosquitto_sub and kcat carry what
# they say to Kafka, and what is consumed is what the topics grew by, to the unit: alone, in a group that
# is rebalanced, and over a broker that stands still.
source "$(dirname "$0")/lib.sh"
source e2e/peers/kafka/node.sh
need java kcat mosquitto mosquitto_sub mvn jq

readonly MESSAGES=2400
readonly TOPIC=readings
# Records of somebody else, between those of the run.
readonly STRAY=7

MQTT=$(free_port)

# bridge: carries the messages of one run to Kafka, the topic of each as its key; some of somebody else after
# the first hundred. It ends with the last of them.
bridge() {
    mosquitto_sub -p "$MQTT" -i bridge -c -q 1 -t 'muster/#' -C "$MESSAGES" -F '%t|%p' |
        awk -v stray="$STRAY" '{ print } NR == 100 { for (i = 0; i < stray; i++) print "nobody|hello" }' |
        kcat -P -b "127.0.0.1:$KAFKA" -t "$TOPIC" -K '|' -X message.timeout.ms=60000 >"$WORK/bridge.log" 2>&1
}

# run NAME ARGUMENT...: one run, from whose first message on `$MEANWHILE` is done.
run() {
    local name=$1 before bridging meanwhile
    shift
    # The session of the bridge stands before it is used, so that it misses nothing.
    mosquitto_sub -p "$MQTT" -i bridge -c -q 1 -t 'muster/#' -E
    before=$(ends "$TOPIC" 6)
    bridge &
    bridging=$!
    (mosquitto_sub -p "$MQTT" -t 'muster/#' -C 1 -W 60 >/dev/null && ${MEANWHILE:-true}) &
    meanwhile=$!
    STARTED+=("$bridging" "$meanwhile")
    status_of "$MUSTER" run e2e/kafka.yaml --quiet "${COUNTS_ONLY[@]}" --out "$WORK/$name" \
        --set "platform.devices=[mqtt://127.0.0.1:$MQTT]" --set "platform.backend.url=kafka://127.0.0.1:$KAFKA" "$@"
    wait "$bridging" "$meanwhile" || true
    GROWTH=$(($(ends "$TOPIC" 6) - before))
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
start_kafka auto.create.topics.enable=false

# checked URL: what `muster check` says of the cluster at an address.
checked() {
    status_of "$MUSTER" check e2e/kafka.yaml --set "platform.devices=[mqtt://127.0.0.1:$MQTT]" \
        --set "platform.backend.url=$1"
}

checked "kafka://127.0.0.1:$KAFKA"
same "check of a cluster that answers: exit code" "$STATUS" 0
says "it says what would be created" "$(grep kafka:// "$WORK/out" | tail -1)" 'the run creates topic `readings` with 6 partitions'

passes alone --set 'platform.backend.topics={ readings: 6, other: 1 }'
counts alone
says "alone: the topics were created" "$(event alone topics)" '`readings` was created with 6 partitions'
same "alone: the consumer was never away" "$(event alone consumer-lost)" ""

MEANWHILE=disturb_group
passes group --set platform.backend.shared=application --set platform.backend.consumers=2
counts group
says "group: the rebalance is told" "$(event group consumer-lost)" "(a rebalance)"
says "group: and that it is over" "$(event group consumer-back)" "consumer 0 of"
same "group: nothing came twice" "$(value "$WORK/group" .ledger.uplink.duplicates)" 0

MEANWHILE="freeze_kafka 5"
passes frozen
counts frozen
check "frozen: no client was answered" test -e "$WORK/was-frozen"
says "frozen: a broker that does not answer is told" "$(event frozen consumer-lost)" "has not answered for"
says "frozen: and that it answers again" "$(event frozen consumer-back)" "consumer 0 of"
MEANWHILE=

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
