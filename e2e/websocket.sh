#!/usr/bin/env bash
# MQTT over WebSocket, without TLS and with it: against a real Mosquitto, against the reference
# gateway, whom a Paho client visits too, and against a web server that knows no WebSocket.
source "$(dirname "$0")/lib.sh"
need mosquitto openssl jq python3

cat >"$WORK/scenario.yaml" <<'YAML'
name: websocket
platform:
  kind: mqtt
  devices: [ "ws://127.0.0.1:1" ]
  backend: { qos: 1 }
fleet:
  - name: meters
    count: 100
    connect: { rate: 500/s, timeout: 5s }
    streams: [ { name: readings, rate: 500/s, qos: 1, payload: { size: 300 } } ]
phases: { warm-up: 1s, measure: 4s }
slo: { loss: 0, failure-ratio: 0, connected: 100% }
YAML

make_certificate() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
        -addext "subjectAltName=DNS:localhost,IP:127.0.0.1" -addext "basicConstraints=critical,CA:FALSE" \
        -keyout "$WORK/server.key" -out "$WORK/server.pem" 2>>"$WORK/openssl.log"
}

start_broker() {
    ws=$(free_port)
    wss=$(free_port)
    # As root it would become somebody who may not read the key; and with listeners for WebSocket
    # alone, Mosquitto 2.0.11 does not start.
    printf '%s\n' "user $(id -un)" "allow_anonymous true" "max_queued_messages 0" \
        "max_inflight_messages 0" "listener $(free_port) 127.0.0.1" \
        "listener $ws 127.0.0.1" "protocol websockets" \
        "listener $wss 127.0.0.1" "protocol websockets" \
        "certfile $WORK/server.pem" "keyfile $WORK/server.key" >"$WORK/mosquitto.conf"
    mosquitto -c "$WORK/mosquitto.conf" >"$WORK/mosquitto.log" 2>&1 &
    BROKER=$!
    STARTED+=("$BROKER")
    listens "$ws"
    listens "$wss"
}

# run NAME URL ARGUMENT...: a run into $WORK/NAME; its exit code is in STATUS.
run() {
    local name=$1 url=$2
    shift 2
    status_of "$MUSTER" run "$WORK/scenario.yaml" --quiet --out "$WORK/$name" \
        --set "platform.devices=[$url]" "$@"
}

broker() {
    local version qos
    for version in 3.1.1 5; do
        for qos in 0 1 2; do
            passes "ws-$version-$qos" "ws://127.0.0.1:$ws" --set "fleet.client.version=$version" \
                --set "fleet.streams.qos=$qos" --set "platform.backend.qos=$qos" --set phases.measure=2s
        done
    done 2>/dev/null
    passes wss "wss://127.0.0.1:$wss" --set platform.tls.ca="$WORK/server.pem"
    status_of "$MUSTER" check "$WORK/scenario.yaml" --set "platform.devices=[ws://127.0.0.1:$ws]"
    same "check: exit code" "$STATUS" 0
    check "check: a session was opened" grep -q 'ws://127.0.0.1:.*/mqtt.*connected within' "$WORK/out"
}

gateway() {
    local port=$1 account=$WORK/account.json
    "$MUSTER" gateway --listen "127.0.0.1:$port" --websocket >"$account" &
    local gateway=$!
    STARTED+=("$gateway")
    listens "$port"
    passes gateway "ws://127.0.0.1:$port/any/path?at=all"
    with_paho
    check "gateway: a Paho client publishes and hears itself" "$PYTHON" e2e/websocket_paho.py "$port"
    stop "$gateway"
    sed -i '1d' "$account"
    same "gateway: what the Paho client sent" "$(jq '.received' "$account")" \
        "$(($(value "$WORK/gateway" .ledger.uplink.sent) + 50))"
    same "gateway: malformed" "$(jq '.malformed' "$account")" 0
}

# A web server answers 404: it is no target.
web_server() {
    local port=$1
    python3 -m http.server --bind 127.0.0.1 --directory "$WORK" "$port" >"$WORK/http.log" 2>&1 &
    STARTED+=("$!")
    listens "$port"
    run refused "ws://127.0.0.1:$port/mqtt" --set fleet.count=5 --set platform.backend.url="ws://127.0.0.1:$ws"
    same "web server: exit code (no target)" "$STATUS" 4
    check "web server: the status is the cause: $(value "$WORK/refused" .links.connect_failures | tr -d '\n ')" \
        jq -e '.links.connect_failures | has("upgrade-refused-404")' "$WORK/refused/result.json"
}

make_certificate
start_broker
broker
gateway "$(free_port)"
web_server "$(free_port)"
status_of "$MUSTER" run scenarios/first.yaml --quiet --out "$WORK/embedded" \
    --set 'platform.devices=[ws://127.0.0.1:0]' --set 'slo.response.p99=<= 60s'
same "embedded over ws: exit code" "$STATUS" 0
finish
