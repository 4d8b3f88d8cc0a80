#!/usr/bin/env bash
# A backend of Kafka over TLS and by SCRAM, against Apache Kafka 3.9 with an authority of its own: server and client
# certificates, SCRAM-SHA-256 and -512, and both at once. Whatever is wrong is named with the key to look at, and no
# secret stands in what is said or kept. MUSTER is to be built with the feature `kafka-tls`.
MUSTER=${MUSTER:-target/debug/muster}
source "$(dirname "$0")/lib.sh"
source e2e/peers/kafka/node.sh
source e2e/peers/pki.sh
need java kcat mosquitto mosquitto_sub mvn openssl jq

readonly MESSAGES=300
readonly PASSWORD=open-sesame-4711
readonly PKI=$WORK/pki
MQTT=$(free_port)

# TLS, TLS with client certificates, SCRAM, and SCRAM over TLS.
readonly LISTENERS=(TLS:SSL MUTUAL:SSL SCRAM:SASL_PLAINTEXT BOTH:SASL_SSL)
readonly USERS=("SCRAM-SHA-256=[name=app,password=$PASSWORD]" "SCRAM-SHA-512=[name=app,password=$PASSWORD]")

make_certificates() {
    mkdir -p "$PKI"
    authority ca
    authority stranger
    certificate "$PKI/server" ca /CN=server "subjectAltName=DNS:localhost,IP:127.0.0.1" -days 2
    certificate "$PKI/app" ca /CN=application "extendedKeyUsage=clientAuth" -days 2
    certificate "$PKI/other" stranger /CN=application "extendedKeyUsage=clientAuth" -days 2
    cat "$PKI/server.key" "$PKI/server.pem" >"$PKI/server.both"
}

# configuration: what the listeners need.
configuration() {
    local login=org.apache.kafka.common.security.scram.ScramLoginModule at of
    for at in scram both; do
        for of in scram-sha-256 scram-sha-512; do
            echo "listener.name.$at.$of.sasl.jaas.config=$login required;"
        done
    done
    printf '%s\n' "sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512" "listener.name.mutual.ssl.client.auth=required" \
        "ssl.keystore.type=PEM" "ssl.keystore.location=$PKI/server.both" \
        "ssl.truststore.type=PEM" "ssl.truststore.location=$PKI/ca.pem"
}

# keys KEY=VALUE...: keys of the backend, into ARGUMENTS.
keys() {
    local key
    ARGUMENTS=(--set "platform.devices=[mqtt://127.0.0.1:$MQTT]")
    for key in "$@"; do ARGUMENTS+=(--set "platform.backend.$key"); done
}

# runs NAME KEY...: one run with these keys.
runs() {
    local name=$1
    shift
    keys "$@"
    status_of "$MUSTER" run e2e/kafka-tls.yaml --quiet --out "$WORK/$name" "${ARGUMENTS[@]}"
}

# run NAME KEY...: the same, while a bridge carries its messages to the plain listener.
run() {
    mosquitto_sub -p "$MQTT" -i bridge -c -q 1 -t 'muster/#' -E
    mosquitto_sub -p "$MQTT" -i bridge -c -q 1 -t 'muster/#' -C "$MESSAGES" -W 120 -F '%t|%p' |
        kcat -P -b "127.0.0.1:$KAFKA" -t readings -K '|' >"$WORK/bridge.log" 2>&1 &
    STARTED+=("$!")
    runs "$@"
}

# checked MARK CODE WHAT PART KEY...: `check` marks the cluster so, and says what to look at.
checked() {
    local mark=$1 code=$2 what=$3 part=$4
    shift 4
    keys "$@"
    status_of "$MUSTER" check e2e/kafka-tls.yaml "${ARGUMENTS[@]}"
    same "$what: exit code" "$STATUS" "$code"
    says "$what" "$(grep -F "$mark" "$WORK/out")" "$part"
}

# refused WHAT PART KEY...: a broker answers, and refuses.
refused() {
    checked refused 2 "$@"
}

# silent WHAT PART KEY...: a broker ends the connection without an answer.
silent() {
    checked silent 4 "$@"
}

make_certificates
start_mosquitto "$MQTT"
mapfile -t lines < <(configuration)
start_kafka auto.create.topics.enable=false "${lines[@]}"

trusted="tls={ ca: $PKI/ca.pem }"
passes tls "url=kafkas://$(listener TLS)" "$trusted"
passes certificate "url=kafkas://$(listener MUTUAL)" "tls={ ca: $PKI/ca.pem, cert: $PKI/app.pem, key: $PKI/app.key }"
passes scram-256 "url=kafka://$(listener SCRAM)" user=app "password=$PASSWORD" sasl=scram-sha-256
passes scram-512 "url=kafkas://$(listener BOTH)" user=app "password=$PASSWORD" sasl=scram-sha-512 "$trusted" shared=application

wrong=wrong-4711
refused "a wrong authority" '`ca` of platform.backend.tls' "url=kafkas://$(listener TLS)" "tls={ ca: $PKI/stranger.pem }"
silent "no client certificate" 'name `cert` and `key` under platform.backend.tls' "url=kafkas://$(listener MUTUAL)" "$trusted"
silent "a stranger's certificate" 'name `cert` and `key` under platform.backend.tls' "url=kafkas://$(listener MUTUAL)" \
    "tls={ ca: $PKI/ca.pem, cert: $PKI/other.pem, key: $PKI/other.key }"
refused "a wrong password" platform.backend.password "url=kafkas://$(listener BOTH)" user=app "password=$wrong" sasl=scram-sha-512 "$trusted"
refused "another mechanism" platform.backend.sasl "url=kafka://$(listener SCRAM)" user=app "password=$PASSWORD"
silent "no login" platform.backend.user "url=kafka://$(listener SCRAM)"
silent "no TLS" '`kafkas://` where it speaks TLS' "url=kafka://$(listener TLS)"
silent "TLS where there is none" 'else `kafka://`' "url=kafkas://127.0.0.1:$KAFKA" "$trusted"

runs wrong "url=kafkas://$(listener BOTH)" user=app "password=$wrong" sasl=scram-sha-512 "$trusted"
same "a run with a wrong password has no result" "$STATUS" 4
says "it names the key" "$(event wrong consumer-refused)" platform.backend.password
same "each cause is told once" "$(value "$WORK/wrong" '[.events[] | select(.kind == "consumer-refused")] | length')" 1
check "no password stands in what was said or kept" test -z "$(grep -rlF -e "$PASSWORD" -e "$wrong" "$WORK/out" "$WORK"/{tls,certificate,scram-256,scram-512,wrong} || true)"
key=$(sed -n 2p "$PKI/app.key")
check "no key of a certificate either" test -z "$(grep -rlF -e "$key" "$WORK/certificate" || true)"
finish
