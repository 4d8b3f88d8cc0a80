#!/usr/bin/env bash
# A backend of AMQP 1.0 against RabbitMQ 3 with its plugins of AMQP 1.0 and MQTT: devices publish over MQTT to a topic that is
# bound to a queue, and all of the queue is received over AMQP 1.0, nothing lost, nothing twice. Then who may not log in, and a
# queue that is not there.
source "$(dirname "$0")/lib.sh"
need rabbitmq-server rabbitmqctl jq openssl

# Debian has wrappers that want another user.
export PATH="/usr/lib/rabbitmq/bin:$PATH"
export PASSWORD=open-sesame-4711
AMQP=$(free_port)
MQTT=$(free_port)
QUEUE=/amq/queue/readings

# Of a node of this script alone.
DISTRIBUTION=$(free_port)
EPMD=$(free_port)
export HOME="$WORK" RABBITMQ_NODENAME="muster-$AMQP@localhost" RABBITMQ_MNESIA_BASE="$WORK/mnesia" RABBITMQ_LOG_BASE="$WORK/log"
export RABBITMQ_CONFIG_FILE="$WORK/rabbitmq.conf" RABBITMQ_ENABLED_PLUGINS_FILE="$WORK/plugins" RABBITMQ_CONF_ENV_FILE="$WORK/none"
export RABBITMQ_DIST_PORT="$DISTRIBUTION" ERL_EPMD_PORT="$EPMD" ERL_EPMD_ADDRESS=127.0.0.1 RABBITMQ_PID_FILE="$WORK/pid"
export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1}"
# RabbitMQ takes it for its own log file.
unset LOGS

# start_rabbitmq: starts the broker with the queue `readings`, which has what is published to the topic of its name.
start_rabbitmq() {
    echo '[rabbitmq_amqp1_0,rabbitmq_mqtt].' >"$WORK/plugins"
    cat >"$WORK/rabbitmq.conf" <<CONF
listeners.tcp.default = 127.0.0.1:$AMQP
mqtt.listeners.tcp.default = 127.0.0.1:$MQTT
mqtt.allow_anonymous = false
mqtt.exchange = amq.topic
load_definitions = $WORK/definitions.json
CONF
    # A salt of four bytes, and the digest of salt and password.
    local hash
    hash=$({ printf salt; printf 'salt%s' "$PASSWORD" | openssl dgst -sha256 -binary; } | base64)
    jq -n --arg hash "$hash" '{
        vhosts: [{ name: "/" }],
        users: [{ name: "app", password_hash: $hash, hashing_algorithm: "rabbit_password_hashing_sha256", tags: [] }],
        permissions: [{ user: "app", vhost: "/", configure: ".*", write: ".*", read: ".*" }],
        queues: [{ name: "readings", vhost: "/", durable: true, auto_delete: false, arguments: {} }],
        bindings: [{ source: "amq.topic", vhost: "/", destination: "readings", destination_type: "queue",
            routing_key: "readings", arguments: {} }] }' >"$WORK/definitions.json"
    epmd -port "$EPMD" -address 127.0.0.1 &
    STARTED+=("$!")
    rabbitmq-server >"$WORK/broker.log" 2>&1 &
    STARTED+=("$!")
    rabbitmqctl wait --timeout 120 "$WORK/pid" >"$WORK/wait.log" 2>&1 || { cat "$WORK"/*.log; exit 1; }
    STARTED+=("$(cat "$WORK/pid")")
}

# left: the messages that the queue has.
left() {
    rabbitmqctl list_queues --quiet --no-table-headers messages
}

# Where broker and queue are; RabbitMQ 3.10 speaks MQTT 3.1.1.
ARGUMENTS=(--set "platform.devices=[mqtt://127.0.0.1:$MQTT]" --set "platform.backend.url=amqp://127.0.0.1:$AMQP"
    --set "platform.backend.addresses=[$QUEUE]" --set 'fleet[0].client.version="3.1.1"')

# run NAME ARGUMENT...: one run.
run() {
    status_of "$MUSTER" run e2e/amqp.yaml --quiet --out "$WORK/$1" "${ARGUMENTS[@]}" "${@:2}"
}

# counts NAME: nothing came twice, and nothing is left.
counts() {
    same "$1: nothing came twice" "$(value "$WORK/$1" .ledger.uplink.duplicates)" 0
    same "$1: each is as it was sent" "$(value "$WORK/$1" .ledger.uplink.corrupted)" 0
    same "$1: nothing is left in the queue" "$(left)" 0
}

# checked ARGUMENT...: what `muster check` says.
checked() {
    status_of "$MUSTER" check e2e/amqp.yaml "${ARGUMENTS[@]}" "$@"
}

start_rabbitmq
checked
same "check: exit code" "$STATUS" 0
says "check: it connects" "$(cat "$WORK/out")" "connected and subscribed"

passes alone
counts alone

passes one --set platform.backend.credit=1
counts one

passes shared --set platform.backend.consumers=3
counts shared

# RabbitMQ 3.10 ends the session if a link of a classic queue is drained, as a pause does: a fault of the broker, which is named.
passes paused --set 'platform.backend.pause=[{ at: 2s, for: 3s }]'
says "paused: the fault of the broker" "$(event paused consumer-lost)" "amqp:internal-error"
says "paused: and that the consumer is back" "$(event paused consumer-back)" "consumer 0 of"

checked --set platform.backend.password=wrong
says "a wrong password: the key" "$(cat "$WORK/out")" "platform.backend.password"
checked --set 'platform.backend.addresses=[/amq/queue/absent]'
says "a queue that is not there: the key" "$(cat "$WORK/out")" "platform.backend.addresses"
finish
