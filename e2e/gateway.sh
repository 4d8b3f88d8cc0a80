#!/usr/bin/env bash
# Independent clients talk to the reference gateway: mosquitto_pub and mosquitto_sub, and a Paho
# client. What they saw is compared with the gateway's own account. Fails when anything is missing.
source "$(dirname "$0")/lib.sh"
need mosquitto_pub mosquitto_sub python3

work=$WORK
gateway_pid=

fail() {
    echo "FAIL: $*" >&2
    exit 1
}

# Starts a gateway with this configuration; its address goes to $port.
start_gateway() {
    mkfifo "$work/orders" "$work/answers"
    "$binary" <"$work/orders" >"$work/answers" &
    gateway_pid=$!
    STARTED+=("$gateway_pid")
    exec 7>"$work/orders" 8<"$work/answers"
    echo "$1" >&7
    local line
    read -r line <&8 || fail "the gateway did not start"
    port=$(grep -o ':[0-9]*"' <<<"$line" | tr -dc 0-9)
    [ -n "$port" ] || fail "the gateway said: $line"
}

# Stops the gateway; its account goes to $account.
stop_gateway() {
    echo stop >&7
    read -r account <&8 || fail "the gateway gave no account"
    exec 7>&- 8<&-
    wait "$gateway_pid" || fail "the gateway failed"
    gateway_pid=
    rm "$work/orders" "$work/answers"
}

count() {
    python3 -c 'import json, sys; print(json.loads(sys.argv[1])[sys.argv[2]])' "$account" "$1"
}

expect() {
    local is
    is=$(count "$1")
    [ "$is" = "$2" ] || fail "the account says $1 = $is, seen were $2"
}

# So many lines to so many subscribers, every version and quality of service.
mosquitto_round() {
    local version=$1 qos=$2 lines=200
    start_gateway '{}'
    mosquitto_sub -h 127.0.0.1 -p "$port" -V "$version" -q "$qos" -i subscriber -t 'e2e/+/t' \
        -C "$lines" -W 30 >"$work/got" &
    local subscriber=$!
    until_subscribed
    seq 1 "$lines" | sed 's/^/message number /' >"$work/sent"
    mosquitto_pub -h 127.0.0.1 -p "$port" -V "$version" -q "$qos" -i publisher -t 'e2e/1/t' \
        -l <"$work/sent" || fail "mosquitto_pub at $version, QoS $qos"
    wait "$subscriber" || fail "mosquitto_sub at $version, QoS $qos"
    cmp "$work/sent" "$work/got" || fail "what came is not what was sent, $version, QoS $qos"
    stop_gateway
    expect received "$lines"
    expect delivered "$lines"
    if [ "$qos" != 0 ]; then expect accepted "$lines"; fi
    echo "ok    mosquitto $version, QoS $qos: $lines sent, $lines came, in order"
}

# Waits until the gateway says that there is a subscription.
until_subscribed() {
    local tries=0
    until [ "$(subscriptions)" -ge 1 ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 400 ] || fail "nobody subscribed"
        sleep 0.05
    done
}

subscriptions() {
    echo account >&7
    read -r account <&8
    count subscriptions
}

mosquitto_options() {
    start_gateway '{"users":[{"name":"meter","password":[115,101,99,114,101,116]}]}'
    local to=(-h 127.0.0.1 -p "$port" -t e2e/r)
    if mosquitto_pub "${to[@]}" -m no -u meter -P wrong 2>"$work/refused"; then
        fail "a wrong password was admitted"
    fi
    grep -qi 'not authori\|bad user' "$work/refused" || fail "refused as: $(cat "$work/refused")"
    mosquitto_pub "${to[@]}" -r -q 1 -m retained -u meter -P secret
    local got
    got=$(mosquitto_sub "${to[@]}" -u meter -P secret -C 1 -W 10)
    [ "$got" = retained ] || fail "the retained message came as: $got"
    stop_gateway
    echo "ok    mosquitto: credentials and a retained message"
}

# The gateway loses 7 of 100 after accepting them; a client that knows nothing of Muster counts.
mosquitto_loss() {
    start_gateway '{"behaviour":{"lose-after-accept":7},"expected-uplinks":100,"seed":5}'
    mosquitto_sub -h 127.0.0.1 -p "$port" -V mqttv5 -q 1 -i subscriber -t 'e2e/#' -C 93 -W 30 \
        >"$work/got" &
    local subscriber=$!
    until_subscribed
    seq 1 100 >"$work/sent"
    mosquitto_pub -h 127.0.0.1 -p "$port" -V mqttv5 -q 1 -t e2e/1 -l <"$work/sent"
    wait "$subscriber" || fail "93 of 100 did not come"
    stop_gateway
    expect accepted 100
    python3 e2e/gateway_account.py "$account" lose-after-accept "$work/sent" "$work/got" ||
        fail "the lost are not those of the account"
    echo "ok    mosquitto: 7 of 100 lost, the same 7 as in the account"
}

with_paho
examples muster-gateway serve
binary=$EXAMPLES/serve

for version in mqttv311 mqttv5; do
    for qos in 0 1 2; do mosquitto_round "$version" "$qos"; done
done
mosquitto_options
mosquitto_loss

start_gateway '{"threads":2}'
"$PYTHON" e2e/gateway_paho.py "$port" || fail "the Paho client"
stop_gateway
echo "ok    all"
