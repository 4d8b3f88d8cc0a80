#!/usr/bin/env bash
# Against brokers and clients that others wrote: Muster's devices and consumers against each broker,
# and each client against the reference gateway. INTEROP_BROKERS and INTEROP_CLIENTS choose among them;
# those that need only Debian's packages and npm are the default. A table of what was seen ends it.
source "$(dirname "$0")/lib.sh"

readonly BROKERS=${INTEROP_BROKERS:-mosquitto aedes}
readonly CLIENTS=${INTEROP_CLIENTS:-mosquitto paho mqttjs}
readonly BUILT=$PWD/target/peers
readonly PKI=$WORK/pki
readonly MESSAGES=20
need openssl mosquitto mosquitto_sub python3 jq

# Which row and column of the table the checks of the moment belong to.
declare -A CELLS
ROWS=() COLUMNS=() ROW='' COLUMN=''

# row NAME: what is checked from here on.
row() {
    ROW=$1
    [[ " ${ROWS[*]/%/;} " == *" $ROW; "* ]] || ROWS+=("$ROW")
    CELLS[$ROW/$COLUMN]=yes
}

# column NAME: against whom.
column() {
    COLUMN=$1
    COLUMNS+=("$1")
}

# not_offered NAME: what this peer does not have.
not_offered() {
    row "$1"
    CELLS[$ROW/$COLUMN]=-
}

# seen WHAT COMMAND...: a check, noted in the table.
seen() {
    local before=$FAILED what=$1
    shift
    check "$COLUMN: $ROW: $what" "$@"
    [ "$FAILED" -eq "$before" ] || CELLS[$ROW/$COLUMN]=no
}

table() {
    local row column
    printf '| |'; printf ' %s |' "${COLUMNS[@]}"
    printf '\n|---|'; printf -- '---|%.0s' "${COLUMNS[@]}"; echo
    for row in "${ROWS[@]}"; do
        printf '| %s |' "$row"
        for column in "${COLUMNS[@]}"; do printf ' %s |' "${CELLS[$row/$column]:-}"; done
        echo
    done
    ROWS=() COLUMNS=()
}

make_certificates() {
    local name
    mkdir -p "$PKI"
    {
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=ca \
            -keyout "$PKI/ca.key" -out "$PKI/ca.pem"
        for name in server client; do
            openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$name" \
                -keyout "$PKI/$name.key" -out "$PKI/$name.csr"
            openssl x509 -req -in "$PKI/$name.csr" -CA "$PKI/ca.pem" -CAkey "$PKI/ca.key" -days 2 \
                -set_serial "0x$(openssl rand -hex 8)" -out "$PKI/$name.pem" \
                -extfile <(echo "subjectAltName=DNS:localhost,IP:127.0.0.1")
            openssl pkcs12 -export -passout pass:changeit -name "$name" -in "$PKI/$name.pem" \
                -inkey "$PKI/$name.key" -out "$PKI/$name.p12"
        done
    } 2>>"$WORK/openssl.log"
}

# Java's programs know whom to trust from a store of their own.
make_java_stores() {
    cp "$PKI/server.p12" "$PKI/both.p12"
    local store
    for store in ca both; do
        keytool -importcert -noprompt -alias ca -file "$PKI/ca.pem" -keystore "$PKI/$store.p12" \
            -storetype PKCS12 -storepass changeit 2>>"$WORK/openssl.log"
    done
}

# build PEER: what the peer needs, under target/, so that nothing is left in the tree.
build() {
    local peer=$1 folder=$BUILT/$1
    mkdir -p "$folder"
    cp -r "e2e/peers/$peer/." "$folder/"
    case $peer in
    aedes | mqttjs) need node npm && (cd "$folder" && npm install --no-package-lock --silent) ;;
    mochi | paho-go) need go && (cd "$folder" && go build -o peer .) ;;
    java)
        need java mvn keytool
        (cd "$folder" && mvn -q compile dependency:build-classpath -Dmdep.outputFile=classpath) >>"$WORK/build.log"
        make_java_stores
        ;;
    paho | mosquitto) ;;
    esac
}

# java_peer CLASS ARGUMENT...: takes the place of the shell it runs in, so that it ends with it.
java_peer() {
    exec java -cp "$BUILT/java/target/classes:$(cat "$BUILT/java/classpath")" "$@"
}

# ---- Muster's devices and consumers against a broker

start_broker() {
    local broker=$1
    PLAIN=$(free_port) SECURE=$(free_port) WEB=$(free_port)
    local ports=("$PLAIN" "$SECURE" "$WEB" "$PKI")
    : >"$WORK/$broker.log"
    case $broker in
    mosquitto)
        cat >"$WORK/mosquitto.conf" <<CONF
user $(id -un)
allow_anonymous true
max_queued_messages 0
max_inflight_messages 5
listener $PLAIN 127.0.0.1
listener $SECURE 127.0.0.1
cafile $PKI/ca.pem
certfile $PKI/server.pem
keyfile $PKI/server.key
require_certificate true
listener $WEB 127.0.0.1
protocol websockets
CONF
        mosquitto -c "$WORK/mosquitto.conf" >"$WORK/$broker.log" 2>&1 &
        ;;
    aedes) (cd "$BUILT/aedes" && exec node broker.mjs "${ports[@]}") >"$WORK/$broker.log" 2>&1 & ;;
    mochi) "$BUILT/mochi/peer" "${ports[@]}" >"$WORK/$broker.log" 2>&1 & ;;
    hivemq) java_peer HiveMqBroker "${ports[@]}" >"$WORK/$broker.log" 2>&1 & ;;
    moquette) java_peer MoquetteBroker "${ports[@]}" >"$WORK/$broker.log" 2>&1 & ;;
    esac
    BROKER=$!
    STARTED+=("$BROKER")
    [ "$broker" = mosquitto ] || until_lines 1 '^ready' "$WORK/$broker.log" ||
        { echo "not ok - $broker did not start"; cat "$WORK/$broker.log"; exit 1; }
    listens "$PLAIN"
    listens "$SECURE"
    listens "$WEB"
}

write_scenario() {
    cat >"$PKI/scenario.yaml" <<YAML
name: interop
platform:
  kind: mqtt
  devices: [ "mqtt://127.0.0.1:1" ]
  backend: { qos: 2 }
fleet:
  - name: meters
    count: $MESSAGES
    id: "meter-\${index}"
    connect: { rate: 200/s, timeout: 5s }
    streams: [ { name: readings, rate: 100/s, qos: 1 } ]
phases: { warm-up: 1s, measure: 2s, settle: { at-most: 20s, quiet: 1s } }
slo: { loss: 0, failure-ratio: 0, connected: 100%, disconnects: 0 }
YAML
}

# run URL ARGUMENT...: a short run into $WORK/run.
run() {
    local url=$1
    shift
    rm -rf "$WORK/run"
    status_of "$MUSTER" run "$PKI/scenario.yaml" --quiet --out "$WORK/run" \
        --set "platform.devices=[$url]" "$@"
}

closes() {
    jq -e '.ledger.uplink | .scheduled == .arrived and .accepted + .unacknowledged == .sent and .residue == 0
        and .lost == 0 and .duplicates == 0 and .sent >= 300' "$WORK/run/result.json" >"$WORK/jq"
}

# passes URL ARGUMENT...: a run that passes, all of whose messages arrived, and whose books close.
passes() {
    run "$@"
    [ "$STATUS" -eq 0 ] || sed 's/^/# /' "$WORK/out"
    seen "the run passes" test "$STATUS" -eq 0
    seen "all arrived once, and the ledger closes" closes
}

# The last message of each device stays with the broker, and somebody else reads it there.
retained() {
    passes "$@" --set fleet.streams.retain=true
    mosquitto_sub -i observer -h 127.0.0.1 -p "$PLAIN" -t 'muster/#' -C "$MESSAGES" -W 10 -F '%r' >"$WORK/retained" || true
    seen "another client finds them" test "$(grep -c '^1$' "$WORK/retained")" -eq "$MESSAGES"
}

# Killed, the devices cannot take their leave, and the broker says what they left.
wills() {
    local muster
    mosquitto_sub -i observer -h 127.0.0.1 -p "$PLAIN" -t 'left/#' -q 1 -C "$MESSAGES" -W 40 -F '%t %p' >"$WORK/wills" &
    local observer=$!
    "$MUSTER" run "$PKI/scenario.yaml" --out "$WORK/killed" --set "platform.devices=[$1]" "${@:2}" --set phases.measure=60s \
        --set 'fleet.client.will={topic: "left/${id}", payload: gone, qos: 1}' >"$WORK/out" 2>&1 &
    muster=$!
    STARTED+=("$muster")
    until_lines 1 ' (warm-up|measure) ' "$WORK/out" || true
    kill -9 "$muster" 2>/dev/null || true
    wait "$muster" 2>/dev/null || true
    wait "$observer" || true
    rm -rf "$WORK/killed"
    seen "another client gets each will" test "$(sort -u "$WORK/wills" | grep -c '^left/meter-[0-9]* gone$')" -eq "$MESSAGES"
}

# versions_of BROKER: Aedes 1.0 and Moquette 0.17 refuse MQTT 5.
versions_of() {
    case $1 in
    aedes | moquette) echo 3.1.1 ;;
    *) echo "3.1.1 5" ;;
    esac
}

against_broker() {
    local broker=$1 version qos url
    column "$broker"
    start_broker "$broker"
    url="mqtt://127.0.0.1:$PLAIN"
    for version in 3.1.1 5; do
        for qos in 0 1 2; do
            if [[ " $(versions_of "$broker") " == *" $version "* ]]; then
                row "QoS $qos, MQTT $version"
                passes "$url" --set "fleet.client.version=$version" --set "fleet.streams.qos=$qos"
            else
                not_offered "QoS $qos, MQTT $version"
            fi
        done
    done
    version=$(versions_of "$broker")
    version=${version##* }
    local as=(--set "fleet.client.version=$version")
    row "TLS with client certificate"
    passes "mqtts://127.0.0.1:$SECURE" "${as[@]}" --set 'platform.tls={ca: ca.pem}' \
        --set 'fleet.credential={kind: certificate, cert: client.pem, key: client.key}' \
        --set 'platform.backend.tls={ca: ca.pem, cert: client.pem, key: client.key}'
    row "WebSocket"
    passes "ws://127.0.0.1:$WEB/mqtt" "${as[@]}"
    row "retained"
    retained "$url" "${as[@]}"
    row "will"
    wills "$url" "${as[@]}"
    if [ "$version" = 3.1.1 ]; then
        not_offered "shared subscription"
    else
        row "shared subscription"
        passes "$url" "${as[@]}" --set platform.backend.consumers=2 --set platform.backend.shared=readers
    fi
    if [ "$version" = 5 ]; then
        row "receive maximum"
        passes "$url" "${as[@]}" --set 'fleet.streams=[{ name: readings, qos: 1, shape: { burst: { n: 30, every: 1s } } }]'
    else
        not_offered "receive maximum"
    fi
    stop "$BROKER"
}

# ---- A client against the reference gateway

start_gateways() {
    local name port
    for name in plain secure web; do
        port=$(free_port)
        declare -g "GATEWAY_$name=$port"
    done
    # shellcheck disable=SC2154
    "$MUSTER" gateway --listen "127.0.0.1:$GATEWAY_plain" >"$WORK/gateway-plain.log" 2>&1 & STARTED+=($!)
    # shellcheck disable=SC2154
    "$MUSTER" gateway --listen "127.0.0.1:$GATEWAY_secure" --cert "$PKI/server.pem" --key "$PKI/server.key" \
        --client-ca "$PKI/ca.pem" >"$WORK/gateway-secure.log" 2>&1 & STARTED+=($!)
    # shellcheck disable=SC2154
    "$MUSTER" gateway --listen "127.0.0.1:$GATEWAY_web" --websocket >"$WORK/gateway-web.log" 2>&1 & STARTED+=($!)
    for port in "$GATEWAY_plain" "$GATEWAY_secure" "$GATEWAY_web"; do listens "$port"; done
}

# client ARGUMENT...: the client of the moment.
client() {
    case $COLUMN in
    mosquitto) exec bash "$BUILT/mosquitto/client.sh" "$@" ;;
    paho) exec python3 "$BUILT/paho/client.py" "$@" ;;
    mqttjs) cd "$BUILT/mqttjs" && exec node client.mjs "$@" ;;
    paho-go) exec "$BUILT/paho-go/peer" "$@" ;;
    hivemq-client) java_peer HiveMqClient "$@" ;;
    esac
}

# subscriber NAME ARGUMENT...: one in the background that has its grant; its process is in SUBSCRIBER.
subscriber() {
    local name=$1
    shift
    : >"$WORK/$name"
    (client sub "$@") >"$WORK/$name" 2>&1 &
    SUBSCRIBER=$!
    STARTED+=("$SUBSCRIBER")
    until_lines 1 '^[Ss]ubscribed' "$WORK/$name" || echo "# $COLUMN: no subscription: $(tail -3 "$WORK/$name")"
}

publishes() {
    (client pub --payload m "$@") >"$WORK/pub" 2>&1 || true
    grep -q '^accepted' "$WORK/pub"
}

# got NAME TOPIC: the payloads that a subscriber got there, in order.
got() {
    sed -nE "s#^$2 [012] (true|false|0|1) ##p" "$WORK/$1"
}

expected() {
    seq -f 'm-%g' 0 $((MESSAGES - 1))
}

# passes_on URL ARGUMENT...: what one publishes another gets, once and in order.
passes_on() {
    local url=$1 topic="t/$RANDOM$RANDOM"
    shift
    subscriber sub --url "$url" --topic "$topic" --count "$MESSAGES" "$@"
    seen "all accepted" publishes --url "$url" --topic "$topic" --count "$MESSAGES" "$@"
    until_lines "$MESSAGES" "^$topic " "$WORK/sub" || true
    seen "all arrived, once and in order" test "$(got sub "$topic")" = "$(expected)"
    stop "$SUBSCRIBER"
}

keeps_retained() {
    local url=$1 topic="r/$RANDOM$RANDOM"
    seen "accepted" publishes --url "$url" --topic "$topic" --qos 1 --retain yes
    subscriber sub --url "$url" --topic "$topic" --qos 1
    until_lines 1 "^$topic " "$WORK/sub" || true
    seen "the late subscriber gets it, marked" grep -qE "^$topic 1 (true|1) m\$" "$WORK/sub"
    stop "$SUBSCRIBER"
}

tells_will() {
    local url=$1 topic="w/$RANDOM$RANDOM" observer
    subscriber observer --url "$url" --topic "$topic" --qos 1
    observer=$SUBSCRIBER
    subscriber dying --url "$url" --topic "idle/$RANDOM" --will "$topic"
    { kill -9 "$SUBSCRIBER" && wait "$SUBSCRIBER"; } 2>/dev/null || true
    until_lines 1 "^$topic " "$WORK/observer" || true
    seen "the others get it when its client dies" grep -q "^$topic .* gone\$" "$WORK/observer"
    stop "$observer"
}

# Two subscribers of a group: each message to one of them.
shares() {
    local url=$1 topic="s/$RANDOM$RANDOM" first second
    subscriber first --url "$url" --topic "\$share/g$RANDOM/$topic" --qos 1 --count "$MESSAGES"
    first=$SUBSCRIBER
    local group
    group=$(tr '\0' '\n' </proc/"$first"/cmdline | grep '^\$share/')
    subscriber second --url "$url" --topic "$group" --qos 1 --count "$MESSAGES"
    second=$SUBSCRIBER
    seen "all accepted" publishes --url "$url" --topic "$topic" --qos 1 --count "$MESSAGES"
    until_lines "$MESSAGES" "^$topic " "$WORK/first" "$WORK/second" || true
    seen "each arrived at one of the two" test "$({ got first "$topic"; got second "$topic"; } | sort)" = "$(expected | sort)"
    seen "both had some" test -n "$(got first "$topic")" -a -n "$(got second "$topic")"
    stop "$first"
    stop "$second"
}

against_gateway() {
    local version qos url="mqtt://127.0.0.1:$GATEWAY_plain" versions="3.1.1 5"
    column "$1"
    [ "$1" != paho-go ] || versions=5
    for version in 3.1.1 5; do
        for qos in 0 1 2; do
            if [[ " $versions " == *" $version "* ]]; then
                row "QoS $qos, MQTT $version"
                passes_on "$url" --version "$version" --qos "$qos"
            else
                not_offered "QoS $qos, MQTT $version"
            fi
        done
    done
    row "TLS with client certificate"
    passes_on "mqtts://127.0.0.1:$GATEWAY_secure" --qos 1 --pki "$PKI"
    if [ "$1" = mosquitto ]; then
        not_offered "WebSocket"
    else
        row "WebSocket"
        passes_on "ws://127.0.0.1:$GATEWAY_web/mqtt" --qos 1
    fi
    row "retained"
    keeps_retained "$url"
    row "will"
    tells_will "$url"
    row "shared subscription"
    shares "$url"
    row "receive maximum"
    passes_on "$url" --qos 1 --receive-maximum 1
}

# program_of PEER: the folder that holds it.
program_of() {
    case $1 in
    hivemq | moquette | hivemq-client) echo java ;;
    *) echo "$1" ;;
    esac
}

make_certificates
write_scenario
for program in $(for peer in $BROKERS $CLIENTS; do program_of "$peer"; done | sort -u); do
    [ "$program" = mosquitto ] || build "$program"
done
build mosquitto

for broker in $BROKERS; do against_broker "$broker"; done
echo "# Muster's devices and consumers against brokers:"
table
start_gateways
for peer in $CLIENTS; do against_gateway "$peer"; done
echo "# Clients against the reference gateway:"
table
finish
