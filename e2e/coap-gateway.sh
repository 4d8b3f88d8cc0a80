#!/usr/bin/env bash
# Clients of libcoap upload to the reference gateway, plain and over DTLS by GnuTLS and by OpenSSL, and
# mosquitto's clients are the business application. What all of them saw is compared with the gateway's
# own account. Then certificates: libcoap's client shows one to the gateway, and devices of a scenario show
# theirs to libcoap's server, where each resumes its own session.
source "$(dirname "$0")/lib.sh"
need "$MUSTER" coap-client-gnutls coap-client-openssl coap-server-openssl mosquitto_sub mosquitto_pub openssl python3

printf 'sensor1@T1:hono-secret\napp:app\n' >"$WORK/users"
head -c 5000 /dev/zero | tr '\0' x >"$WORK/body"
MQTT=$(free_port)
readonly MQTT

# start OPTION...: starts a gateway; where it hears devices is in COAP and COAPS.
start() {
    start_gateway coaps --dialect hono --listen "127.0.0.1:$MQTT" --coap 127.0.0.1:0 --coaps 127.0.0.1:0 \
        --users "$WORK/users" --max-payload 5000 --threads 1 "$@"
    COAP=${AT[coap]} COAPS=${AT[coaps]}
}

# said CLIENT WANTED ARGUMENT...: what a client prints.
said() {
    local client=$1 wanted=$2 got
    shift 2
    got=$(timeout 20 "coap-client-$client" -v 6 "$@" 2>&1 | tr -d '\0' | tr '\n' ' ') || true
    check "$client: $* -> $wanted" grep -q -F "$wanted" <<<"$got"
}

# uploads CLIENT: 4 uploads and a query, of which 4 are secured, and 2 refusals.
uploads() {
    local client=$1 psk=(-u sensor1@T1 -k hono-secret)
    said "$client" c:2.04 -m put -t 50 -e '{"n":1}' "coap://$COAP/t/T1/dev-1"
    said "$client" c:4.04 -m put -t 50 -e '{}' "coap://$COAP/nothing/T1/dev-1"
    said "$client" c:4.01 -m post -t 50 -e '{}' "coap://$COAP/t"
    said "$client" c:2.04 -m post -t 50 -e '{"n":2}' "${psk[@]}" "coaps://$COAPS/event"
    said "$client" c:2.04 -m post -t 0 -f "$WORK/body" "${psk[@]}" "coaps://$COAPS/t"
    said "$client" c:2.04 -m put -t 50 -e '{"n":3}' "${psk[@]}" "coaps://$COAPS/t//dev-2"
    # Nobody commands, so that the answer comes after a second, in a message of its own.
    said "$client" 't:CON c:2.04' -m post -t 50 -e '{"n":4}' "${psk[@]}" "coaps://$COAPS/t?hono-ttd=1"
}

start
mosquitto_sub -V 5 -h 127.0.0.1 -p "$MQTT" -u app -P app -q 1 -t '#' -F '%t %l' >"$WORK/surfaced" &
STARTED+=("$!")
# Whoever has heard its own message has subscribed. Before, the gateway has nobody to give it to, and ends the link as
# Hono does.
until grep -q hello "$WORK/surfaced"; do
    mosquitto_pub -V 5 -h 127.0.0.1 -p "$MQTT" -u app -P app -q 1 -t telemetry/T1/hello -m hello 2>/dev/null || true
done
for client in gnutls openssl; do uploads "$client"; done
stop_gateway
grep -v hello "$WORK/surfaced" | sort | uniq -c | awk '{$1=$1; print}' >"$WORK/counted"
cat >"$WORK/wanted" <<WANTED
2 event/T1/sensor1 7
2 telemetry/T1/dev-1 7
2 telemetry/T1/dev-2 7
2 telemetry/T1/sensor1 5000
2 telemetry/T1/sensor1 7
WANTED
check "what was uploaded surfaced, topic by topic, with its length" diff "$WORK/counted" "$WORK/wanted"
same "refused" "$(account refused-requests)" 4
same "queries" "$(account queries)" 2
same "queries without a command" "$(account queries-without-command)" 2
same "answers in a message of their own" "$(account separate)" 2
same "handshakes" "$(account dtls-handshakes)" 8
same "goodbyes" "$(account dtls-closed)" 8
same "what is no CoAP" "$(account malformed)" 0

# A gateway that is full says so, and for how long.
start --behaviour 'reject: { code: 503, count: 1 }' --expect 1
said openssl 'c:5.03' -m put -t 50 -e '{}' "coap://$COAP/t/T1/dev-1"
stop_gateway
same "rejected" "$(account rejected)" 1

authority
certificate server server
certificate stranger stranger
for device in dev-0 dev-1; do certificate "$device" "$device@T1"; done

start --cert "$WORK/server.pem" --key "$WORK/server.key" --client-ca "$WORK/ca.pem"
trust=(-C "$WORK/ca.pem" -R "$WORK/ca.pem")
said openssl c:2.04 -m post -t 50 -e '{}' -c "$WORK/dev-0.pem" -j "$WORK/dev-0.key" "${trust[@]}" "coaps://$COAPS/t"
said openssl c:4.03 -m put -t 50 -e '{}' -c "$WORK/dev-1.pem" -j "$WORK/dev-1.key" "${trust[@]}" "coaps://$COAPS/t/T2/x"
said openssl c:2.04 -m post -t 50 -e '{}' -u sensor1@T1 -k hono-secret "coaps://$COAPS/t"
said openssl 'certificate unknown' -B 5 -m post -e '{}' -c "$WORK/stranger.pem" -j "$WORK/stranger.key" \
    "${trust[@]}" "coaps://$COAPS/t"
stop_gateway
same "handshakes of two devices and one with a key" "$(account dtls-handshakes)" 3
same "who showed a certificate" "$(account subjects | tr -d ' ' | grep -o 'CN=dev-[01]@T1' | sort | tr '\n' ' ')" \
    "CN=dev-0@T1 CN=dev-1@T1 "

# The run ends between two lifetimes, so that it cuts no handshake short.
cat >"$WORK/certified.yaml" <<SCENARIO
name: certified
platform: { kind: hono, devices: [ "coaps://127.0.0.1:PORT" ], tls: { ca: ca.pem } }
fleet:
  - count: 2
    tenant: T1
    id: "dev-\${index}"
    connect: { lifetime: 800ms }
    credential: { kind: certificate, cert: ./ }
    streams: [ { rate: 20/s, topic: "made/\${id}" } ]
phases: { warm-up: 0s, measure: 2s }
slo: { failure-ratio: any }
SCENARIO
PORT=$(free_port)
sed -i "s/PORT/$PORT/" "$WORK/certified.yaml"

# at_libcoap WHAT RESUMPTION OPTION...: two devices with certificates send to libcoap's server with these
# options, and connect again now and then; how many of its log's lines match a pattern is for `logged`.
at_libcoap() {
    local what=$1 resumption=$2 status=0 links
    shift 2
    : >"$WORK/libcoap.log"
    coap-server-openssl -A 127.0.0.1 -p "$((PORT - 1))" -d 10 -c "$WORK/server.pem" -j "$WORK/server.key" \
        -C "$WORK/ca.pem" -R "$WORK/ca.pem" -v 7 "$@" >"$WORK/libcoap.log" 2>&1 &
    local server=$!
    STARTED+=("$server")
    until_lines 1 'created DTLS' "$WORK/libcoap.log"
    "$MUSTER" run "$WORK/certified.yaml" --set "platform.tls.session-resumption=$resumption" \
        --quiet --out "$WORK/$what" >"$WORK/said" || status=$?
    kill "$server"
    wait "$server" || true
    same "$what: the verdict" "$status" 0
    links=$(python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(r["ledger"]["uplink"]["accepted"] > 0,
r["links"]["connect_failures"], r["links"]["connected"] > 2)' "$WORK/$what/result.json")
    same "$what: accepted, failures, connected again" "$links" "True {} True"
    SESSIONS=$(logged 'session connected')
}

logged() {
    grep -c "$1" "$WORK/libcoap.log" || true
}

at_libcoap certificates false
same "all sessions began with a device's certificate" "$(logged 'read certificate verify')" "$SESSIONS"
# With certificates of clients it refuses to resume: it sets no context for sessions of OpenSSL.
at_libcoap tickets true -n
same "of $SESSIONS sessions two were opened in full" "$(logged 'write key exchange')" 2
finish
