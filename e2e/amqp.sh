#!/usr/bin/env bash
# A backend of AMQP 1.0 against Apache ActiveMQ Artemis 2.33: devices publish to it over MQTT, and what is received from its
# queue is what the queue counts, to the unit: with credit 1 and more, by several consumers, over a pause, over a broker that
# ends every connection, and with messages that other libraries send in every form of a body. Then who may not log in or
# receive, and addresses that are not there or vanish. AMQP_SENDERS names the libraries: proton, which CI has, and rhea.
source "$(dirname "$0")/lib.sh"
need java mvn jq mosquitto mosquitto_sub

readonly MESSAGES=2400
export PASSWORD=open-sesame-4711
AMQP=$(free_port)
MQTT=$(free_port)
ANSWERS=$WORK/broker.out

# start_artemis: starts the broker, whose orders go to the descriptor ORDERS.
start_artemis() {
    bash e2e/peers/fetch.sh artemis >"$WORK/build.log"
    mkfifo "$WORK/orders"
    java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=error \
        -cp 'target/peers/artemis/lib/*' e2e/peers/artemis/Broker.java "$AMQP" "$MQTT" "$PASSWORD" \
        <"$WORK/orders" >"$ANSWERS" 2>"$WORK/broker.err" &
    STARTED+=("$!")
    exec {ORDERS}>"$WORK/orders"
    until_lines 1 ready "$ANSWERS"
}

# order WORD ANSWER: gives the broker an order, and waits for its answer, which is in ANSWER.
order() {
    local before
    before=$(wc -l <"$ANSWERS")
    echo "$1" >&"$ORDERS"
    until_lines $((before + 1)) . "$ANSWERS"
    ANSWER=$(tail -1 "$ANSWERS")
}

# counted: what the queue has taken and what was acknowledged, into ADDED and ACKNOWLEDGED.
counted() {
    order count
    read -r _ ADDED ACKNOWLEDGED <<<"$ANSWER"
}

# run NAME ARGUMENT...: one run, in whose third second the broker gets the order in `$MEANWHILE`.
run() {
    local name=$1 added acknowledged meanwhile
    shift
    counted
    added=$ADDED acknowledged=$ACKNOWLEDGED
    (sleep 4 && [ -z "${MEANWHILE:-}" ] || echo "$MEANWHILE" >&"$ORDERS") &
    meanwhile=$!
    status_of "$MUSTER" run e2e/amqp.yaml --quiet --out "$WORK/$name" \
        --set "platform.devices=[mqtt://127.0.0.1:$MQTT]" --set "platform.backend.url=amqp://127.0.0.1:$AMQP" "$@"
    wait "$meanwhile" || true
    [ -n "${VANISHES:-}" ] || counted
    ADDED=$((ADDED - added)) ACKNOWLEDGED=$((ACKNOWLEDGED - acknowledged))
}

# counts NAME: a run that lost nothing, and whose account is the queue's own.
counts() {
    local name=$1 u='.ledger.uplink'
    same "$name: all that was due was accepted" "$(value "$WORK/$name" "$u.accepted")" "$MESSAGES"
    same "$name: what was consumed is what the queue took" "$(value "$WORK/$name" "$u | .consumed - .duplicates")" "$ADDED"
    same "$name: all of it was acknowledged" "$ACKNOWLEDGED" "$ADDED"
    [ "${TWICE:-}" ] || same "$name: nothing came twice" "$(value "$WORK/$name" "$u.duplicates")" 0
}

# checked ARGUMENT...: what `muster check` says.
checked() {
    status_of "$MUSTER" check e2e/amqp.yaml --set "platform.devices=[mqtt://127.0.0.1:$MQTT]" \
        --set "platform.backend.url=amqp://127.0.0.1:$AMQP" "$@"
}

# refused NAME PART ARGUMENT...: `check` says so, and a run has no result and says so too.
refused() {
    local name=$1 part=$2
    shift 2
    checked "$@"
    same "check, $name: exit code" "$STATUS" 2
    says "check, $name: it is named" "$(grep -F refused "$WORK/out")" "$part"
    status_of "$MUSTER" run e2e/amqp.yaml --quiet --out "$WORK/$name" --set "platform.devices=[mqtt://127.0.0.1:$MQTT]" \
        --set "platform.backend.url=amqp://127.0.0.1:$AMQP" --set 'fleet[0].connect.timeout=2s' "$@"
    same "$name: there is no result" "$STATUS" 4
    says "$name: it is named" "$(event "$name" consumer-refused)" "$part"
    check "$name: no secret is printed" test -z "$(grep -rl "$PASSWORD" "$WORK/$name" "$WORK/out")"
}

# with_proton: Qpid Proton for Python, which is built where it is fetched; in SENDER.
with_proton() {
    python3 -m venv "$WORK/python"
    "$WORK/python/bin/pip" install --quiet --disable-pip-version-check "python-qpid-proton==0.40.0"
    SENDER=("$WORK/python/bin/python" e2e/peers/amqp_proton.py)
}

# with_rhea: rhea for Node.js, in SENDER.
with_rhea() {
    need node npm
    mkdir "$WORK/node"
    cp e2e/peers/rhea/* "$WORK/node/"
    npm install --silent --no-audit --no-fund --prefix "$WORK/node" >"$WORK/npm.log" 2>&1
    SENDER=(node "$WORK/node/bridge.mjs")
}

start_artemis
checked
same "check: exit code" "$STATUS" 0
says "check: it connects" "$(cat "$WORK/out")" "connected and subscribed"

passes alone
counts alone
same "alone: the consumer was never away" "$(event alone consumer-lost)" ""

passes one --set platform.backend.credit=1
counts one

passes shared --set platform.backend.consumers=3
counts shared

passes paused --set 'platform.backend.pause=[{ at: 2s, for: 3s }]'
counts paused
same "paused: a pause is no loss" "$(event paused consumer-lost)" ""

MEANWHILE=restart
passes restarted
# A broker sends again what was not accepted when a connection broke.
TWICE=may counts restarted
check "restarted: the loss is named" grep -qE 'the peer (closed|reset) the connection' <<<"$(event restarted consumer-lost)"
says "restarted: and that it is over" "$(event restarted consumer-back)" "consumer 0 of"
MEANWHILE=

# Other libraries send, in every form of a body, what devices publish to another broker.
OTHER=$(free_port)
start_mosquitto "$OTHER"
for library in ${AMQP_SENDERS:-proton}; do
    "with_$library"
    mosquitto_sub -p "$OTHER" -i "bridge-$library" -c -q 1 -t readings -E >/dev/null
    mosquitto_sub -p "$OTHER" -i "bridge-$library" -c -q 1 -t readings -C "$MESSAGES" -W 120 |
        "${SENDER[@]}" "$AMQP" app "$PASSWORD" readings >"$WORK/bridge.log" 2>&1 &
    STARTED+=("$!")
    MQTT=$OTHER passes "$library"
    counts "$library"
    same "$library: all were sent" "$(tail -1 "$WORK/bridge.log")" "sent $MESSAGES"
    same "$library: each is as it was sent" "$(value "$WORK/$library" .ledger.uplink.corrupted)" 0
done

refused password "platform.backend.password" --set platform.backend.password=wrong
refused rights "amqp:unauthorized-access" --set platform.backend.user=nobody
refused absent "platform.backend.addresses" --set 'platform.backend.addresses=[absent]'
checked --set platform.backend.url=amqp://127.0.0.1:1
same "check of nobody: exit code" "$STATUS" 4
checked --set "platform.backend.url=amqp://127.0.0.1:$OTHER"
says "check of another protocol" "$(cat "$WORK/out")" "SASL"
# The last, since the queue is gone then.
MEANWHILE=destroy
VANISHES=yes run vanished --set 'phases.settle={ at-most: 4s, quiet: 1s }'
MEANWHILE=
says "vanished: the word of the broker" "$(event vanished consumer-lost)" "amqp:resource-deleted"
says "vanished: the key" "$(event vanished consumer-lost)" "platform.backend.addresses"
same "vanished: the residue" "$(value "$WORK/vanished" .ledger.uplink.residue)" 0
finish
