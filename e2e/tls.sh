#!/usr/bin/env bash
# Over TLS, against a real Mosquitto and against the reference gateway: versions 1.2 and 1.3,
# certificates that are wrong in every way, client certificates, and sessions that are resumed by
# the device alone whose they were. SUBJECTS is the number of devices with a certificate.
source "$(dirname "$0")/lib.sh"
source e2e/peers/pki.sh
need mosquitto mosquitto_pub openssl jq python3

readonly SUBJECTS=${SUBJECTS:-100}
readonly PKI=$WORK/pki
mkdir -p "$PKI/devices"

make_certificates() {
    local n here="subjectAltName=DNS:localhost,IP:127.0.0.1"
    authority ca
    authority stranger
    certificate "$PKI/server" ca /CN=server "$here" -days 2
    certificate "$PKI/elsewhere" ca /CN=server "subjectAltName=DNS:elsewhere.example" -days 2
    # A certificate of no days ends where it begins.
    certificate "$PKI/expired" ca /CN=server "$here" -days 0
    certificate "$PKI/app" ca /CN=application "extendedKeyUsage=clientAuth" -days 2
    for n in $(seq 0 $((SUBJECTS - 1))); do
        certificate "$PKI/devices/meter-$n" ca "/CN=meter-$n" "extendedKeyUsage=clientAuth" -days 2
    done
}

# listener PORT CERTIFICATE [LINE...]: the lines of a listener of Mosquitto.
listener() {
    local port=$1 certificate=$2
    shift 2
    printf '%s\n' "listener $port 127.0.0.1" "cafile $PKI/ca.pem" "certfile $PKI/$certificate.pem" \
        "keyfile $PKI/$certificate.key" "$@"
}

start_broker() {
    local name
    for name in trusted old new mutual elsewhere expired; do declare -g "$name=$(free_port)"; done
    {
        # As root it would become somebody who may not read the keys.
        echo "user $(id -un)"
        echo "allow_anonymous true"
        printf '%s\n' "max_queued_messages 0" "max_inflight_messages 0" "log_dest stderr" "log_type notice"
        listener "$trusted" server
        listener "$old" server "tls_version tlsv1.2"
        listener "$new" server "tls_version tlsv1.3"
        listener "$mutual" server "require_certificate true" "use_identity_as_username true"
        listener "$elsewhere" elsewhere
        listener "$expired" expired
    } >"$WORK/mosquitto.conf"
    mosquitto -c "$WORK/mosquitto.conf" >"$WORK/mosquitto.log" 2>&1 &
    BROKER=$!
    STARTED+=("$BROKER")
    listens "$trusted"
    listens "$expired"
}

# scenario PORT KIND COUNT: a short run over TLS.
write_scenario() {
    cat >"$PKI/scenario.yaml" <<YAML
name: tls
platform:
  kind: mqtt
  devices: [ "mqtts://127.0.0.1:1" ]
  tls: { ca: ca.pem }
  backend: { qos: 1, tls: { ca: ca.pem, cert: app.pem, key: app.key } }
fleet:
  - name: meters
    count: 100
    id: "meter-\${index}"
    connect: { rate: 500/s, timeout: 5s }
    reconnect: { min: 10ms, max: 1s }
    streams: [ { name: readings, rate: 500/s, qos: 1 } ]
phases: { warm-up: 1s, measure: 4s }
slo: { loss: 0, failure-ratio: 0, connected: 100% }
YAML
}

# run NAME PORT ARGUMENT...: a run into $WORK/NAME; its exit code is in STATUS.
run() {
    local name=$1 port=$2
    shift 2
    status_of "$MUSTER" run "$PKI/scenario.yaml" --quiet --out "$WORK/$name" \
        --set "platform.devices=[mqtts://127.0.0.1:$port]" "$@"
    cp "$WORK/out" "$WORK/$name.txt"
}

# refused NAME PORT CAUSE ARGUMENT...: no device connects, for this cause, told with its detail.
refused() {
    local name=$1 port=$2 cause=$3
    shift 3
    run "$name" "$port" --set fleet.count=5 --set fleet.connect.timeout=2s --set platform.backend.tls.insecure=true "$@"
    same "$name: exit code (nobody to run against)" "$STATUS" 4
    [ -f "$WORK/$name/result.json" ] || { cat "$WORK/out"; return 0; }
    check "$name: the only cause is $cause: $(value "$WORK/$name" .links.connect_failures | tr -d '\n ')" \
        jq -e --arg cause "$cause" '.links.connect_failures | del(."run-ended") | keys == [$cause]' "$WORK/$name/result.json"
    check "$name: an event tells more, once" \
        jq -e '[.events[] | select(.kind == "handshake-failed" and (.detail | startswith("device `meter-")))] | length == 1' "$WORK/$name/result.json"
    echo "# $name: $(value "$WORK/$name" '.events[] | select(.kind == "handshake-failed") | .detail')"
}

versions() {
    passes both "$trusted"
    passes tls-1.2 "$old" --set platform.tls.version=1.2 --set platform.backend.tls.version=1.2
    passes tls-1.3 "$new" --set platform.tls.version=1.3 --set platform.backend.tls.version=1.3
    passes alpn "$trusted" --set platform.tls.alpn=mqtt
    refused no-version "$new" tls-alert-protocol-version-70 --set platform.tls.version=1.2
}

wrong() {
    refused stranger "$trusted" tls-unknown-issuer --set platform.tls.ca=stranger.pem
    refused elsewhere "$elsewhere" tls-wrong-name
    refused expired "$expired" tls-expired
    refused nobody "$mutual" tls-alert-certificate-required-116 --set platform.tls.version=1.3
    passes name "$elsewhere" --set platform.tls.server-name=elsewhere.example \
        --set platform.backend.tls.server-name=elsewhere.example
    local key=$PKI/devices/meter-3.key
    mv "$key" "$key.away"
    run missing "$mutual" "${CERTIFICATES[@]}"
    same "missing key: exit code" "$STATUS" 2
    check "missing key: file and device are named" grep -q 'device `meter-3`: read .*/devices/meter-3.key' "$WORK/out"
    cp "$PKI/devices/meter-4.key" "$key"
    run mismatch "$mutual" "${CERTIFICATES[@]}"
    same "key of another: exit code" "$STATUS" 2
    check "key of another: files and device are named" grep -q 'device `meter-3`: the key in .*meter-3.key is not that of' "$WORK/out"
    mv "$key.away" "$key"
}

# Verification switched off is said wherever somebody looks.
insecure() {
    passes insecure "$expired" --set platform.tls.insecure=true --set platform.backend.tls.insecure=true
    check "insecure: stderr warns" grep -q '^warning: .*any certificate will do' "$WORK/insecure.txt"
    check "insecure: the summary says so" grep -q 'any certificate was taken' "$WORK/insecure.txt"
    same "insecure: the result says so" "$(value "$WORK/insecure" .environment.tls.insecure)" true
    check "insecure: the page says so" grep -q 'any certificate was taken' "$WORK/insecure/report.html"
    same "secure: the result says so" "$(value "$WORK/both" .environment.tls.insecure)" false
    check "secure: the summary says nothing of it" bash -c '! grep -q "any certificate" "$1"' - "$WORK/both.txt"
}

checked() {
    status_of "$MUSTER" check "$PKI/scenario.yaml" --set "platform.devices=[mqtts://127.0.0.1:$trusted]"
    same "check: exit code" "$STATUS" 0
    check "check: a session was opened" grep -q 'mqtts://127.0.0.1:.*connected within' "$WORK/out"
    status_of "$MUSTER" check "$PKI/scenario.yaml" --set "platform.devices=[mqtts://127.0.0.1:$expired]"
    same "check, expired: exit code" "$STATUS" 4
    check "check, expired: it says why" grep -q 'certificate expired' "$WORK/out"
}

readonly CERTIFICATES=(--set 'fleet.credential.kind=certificate' --set 'fleet.credential.cert=devices/${id}.pem'
    --set 'fleet.credential.key=devices/${id}.key')
# Links are closed on purpose, so that each device comes back with a session to resume.
# They are all up at once before the first has had its time, also where handshakes take seconds.
# Clients are called as their devices: brokers know those of a certificate by its subject.
readonly COMING_BACK=(--set 'fleet.client.id=${id}' --set fleet.connect.lifetime=4s --set phases.measure=8s --set fleet.connect.rate=1000/s)

# Mosquitto takes the user name from the certificate's subject, and prints it with the client id.
subjects_at_broker() {
    local log=$WORK/subjects.log
    : >"$WORK/mosquitto.log"
    passes subjects "$mutual" "${CERTIFICATES[@]}" --set "fleet.count=$SUBJECTS" "${COMING_BACK[@]}" \
        --set 'slo.failure-ratio=100%'
    sed -nE "s/.*New client connected from .* as (meter-[0-9]+) \(.*u'(.*)'\).*/\1 \2/p" "$WORK/mosquitto.log" >"$log"
    same "subjects: devices that the broker saw" "$(cut -d' ' -f1 "$log" | sort -u | wc -l)" "$SUBJECTS"
    same "subjects: as many subjects" "$(cut -d' ' -f2 "$log" | sort -u | wc -l)" "$SUBJECTS"
    same "subjects: each its own" "$(awk '$1 != $2' "$log" | wc -l)" 0
    check "subjects: they came back ($(wc -l <"$log") connections)" test "$(wc -l <"$log")" -ge $((2 * SUBJECTS))
}

# The gateway prints the subjects in its account, and how many sessions were resumed.
subjects_at_gateway() {
    local port account=$WORK/account.json
    port=$(free_port)
    "$MUSTER" gateway --listen "127.0.0.1:$port" --cert "$PKI/server.pem" --key "$PKI/server.key" \
        --client-ca "$PKI/ca.pem" >"$account" 2>"$WORK/gateway.err" &
    local gateway=$!
    STARTED+=("$gateway")
    listens "$port"
    passes gateway "$port" "${CERTIFICATES[@]}" --set "fleet.count=$SUBJECTS" "${COMING_BACK[@]}" \
        --set 'slo.failure-ratio=100%'
    check "gateway: mosquitto_pub over TLS 1.3" mosquitto_pub -h 127.0.0.1 -p "$port" -q 1 -t a -m b \
        -i pub --cafile "$PKI/ca.pem" --cert "$PKI/app.pem" --key "$PKI/app.key" --tls-version tlsv1.3
    check "gateway: mosquitto_pub over TLS 1.2" mosquitto_pub -h localhost -p "$port" -q 1 -t a -m b \
        -i pub --cafile "$PKI/ca.pem" --cert "$PKI/app.pem" --key "$PKI/app.key" --tls-version tlsv1.2
    check "gateway: mosquitto_pub without a certificate is sent away" bash -c '! "$@"' - \
        mosquitto_pub -h 127.0.0.1 -p "$port" -q 1 -t a -m b --cafile "$PKI/ca.pem" 2>>"$WORK/err"
    stop "$gateway"
    sed -i '1d' "$account"
    local devices='[.subjects | to_entries[] | select(.key | startswith("CN=meter-"))]'
    same "gateway: subjects of devices" "$(jq "$devices | length" "$account")" "$SUBJECTS"
    same "gateway: devices whose name is not their subject's" \
        "$(jq "$devices | map(select(.value.\"client-ids\" != [.key[3:]])) | length" "$account")" 0
    check "gateway: sessions were resumed ($(jq '"\(."tls-resumed") of \(."tls-handshakes")"' "$account"))" \
        jq -e '."tls-resumed" > 0' "$account"
    run unresumed "$trusted" --set platform.tls.session-resumption=false
    same "without resumption: exit code" "$STATUS" 0
}

# The run makes a certificate for its own gateway, and trusts it.
embedded() {
    local scheme
    for scheme in mqtts wss; do
        status_of "$MUSTER" run scenarios/first.yaml --quiet --out "$WORK/embedded-$scheme" \
            --set "platform.devices=[$scheme://127.0.0.1:0]" --set 'slo.response.p99=<= 60s'
        same "embedded over $scheme: exit code" "$STATUS" 0
        [ "$STATUS" -eq 0 ] || cat "$WORK/out"
    done
}

make_certificates
write_scenario
start_broker
versions
wrong
insecure
checked
subjects_at_broker
subjects_at_gateway
embedded
finish
