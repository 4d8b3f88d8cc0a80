#!/usr/bin/env bash
# Clients of libcoap upload to the reference gateway, plain and over DTLS by GnuTLS and by OpenSSL, and
# mosquitto's clients are the business application. What all of them saw is compared with the gateway's
# own account.
source "$(dirname "$0")/lib.sh"
need "$MUSTER" coap-client-gnutls coap-client-openssl mosquitto_sub mosquitto_pub python3

printf 'sensor1@T1:hono-secret\napp:app\n' >"$WORK/users"
head -c 5000 /dev/zero | tr '\0' x >"$WORK/body"
MQTT=$(free_port)
readonly MQTT

# start OPTION...: starts a gateway; where it hears devices is in COAP and COAPS.
start() {
    local out line
    out=$(mktemp -u "$WORK/out-XXXXXX")
    mkfifo "$out"
    "$MUSTER" gateway --dialect hono --listen "127.0.0.1:$MQTT" --coap 127.0.0.1:0 --coaps 127.0.0.1:0 \
        --users "$WORK/users" --threads 1 "$@" >"$out" &
    GATEWAY=$!
    STARTED+=("$GATEWAY")
    exec {OUT}<"$out"
    COAPS=
    while [ -z "$COAPS" ] && read -r -u "$OUT" line; do
        case $line in
        *coap://*) COAP=${line##*//} ;;
        *coaps://*) COAPS=${line##*//} ;;
        esac
    done
}

# stop: ends the gateway; its account is in $WORK/account.
stop() {
    kill -INT "$GATEWAY"
    cat <&"$OUT" >"$WORK/account"
    exec {OUT}<&-
}

account() {
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$WORK/account" "$1"
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
# Whoever has heard its own message has subscribed.
until grep -q hello "$WORK/surfaced"; do
    mosquitto_pub -V 5 -h 127.0.0.1 -p "$MQTT" -u app -P app -q 1 -t hello -m ''
done
for client in gnutls openssl; do uploads "$client"; done
stop
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
stop
same "rejected" "$(account rejected)" 1
finish
