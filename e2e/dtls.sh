#!/usr/bin/env bash
# Both ends of our DTLS against those that others wrote: `dtls_client` against their servers, their
# clients against `dtls_server` (examples of crates/transport). DTLS_PEERS chooses among openssl,
# gnutls, libcoap, pion (Go) and scandium (Californium: JDK 17, Maven); those that Debian has are the
# default. A table of what was seen ends it.
source "$(dirname "$0")/lib.sh"

readonly PEERS=${DTLS_PEERS:-openssl gnutls libcoap}
readonly BUILT=$PWD/target/peers
readonly IDENTITY=sensor1@t1 KEY=hono-secret
readonly KEY_HEX=686f6e6f2d736563726574
readonly PSK=(--psk "$IDENTITY:$KEY")
examples muster-transport dtls_client dtls_server
# The first flight is said again until the server listens.
readonly CLIENT=("$EXAMPLES/dtls_client" --first 200)
# GET / of CoAP, confirmable (RFC 7252 section 3).
readonly GET=40010001
readonly VERSIONS=NORMAL:-VERS-ALL:+VERS-DTLS1.2:+AES-128-CCM-8:+AES-128-CCM:+AES-128-GCM
readonly PSKS=(PskCcm8 PskCcm PskGcm)
readonly ECDSAS=(EcdheEcdsaCcm8 EcdheEcdsaCcm EcdheEcdsaGcm)
readonly ROWS=("${PSKS[@]}" EcdhePskCcm8 EcdhePskCcm EcdhePskGcm "${ECDSAS[@]}" resumption ticket "connection id"
    "client certificate" "wrong key" renegotiation)
declare -A CELLS
PEER=''
need openssl

# seen ROW SIDE WHAT COMMAND...: a check, noted in the table; the side is whose server or client it is.
seen() {
    local cell="$1/$PEER $2" before=$FAILED what="$PEER $2: $1: $3"
    shift 3
    check "$what" "$@"
    if [ "$FAILED" -gt "$before" ]; then CELLS[$cell]=no; elif [ "${CELLS[$cell]:-}" != no ]; then CELLS[$cell]=yes; fi
}

# served ROW COUNT ARGUMENT...: our client at their server on PORT, which answers; so many sessions.
served() {
    local row=$1 wanted=$2
    shift 2
    status_of timeout 20 "${CLIENT[@]}" "127.0.0.1:$PORT" "$@"
    seen "$row" server "answered" test "$STATUS" -eq 0
    [ "$STATUS" -eq 0 ] || cat "$WORK/out"
    seen "$row" server "sessions" test "$(grep -c '^connected' "$WORK/out")" -eq "$wanted"
}

# starts COMMAND...: something of a peer's, in the background; its process id is in THEIRS.
starts() {
    "$@" <&0 >"$WORK/theirs.log" 2>&1 &
    THEIRS=$!
    STARTED+=("$THEIRS")
}

# ours ARGUMENT...: our server on a port of its own, for one client unless said otherwise.
ours() {
    PORT=$(free_port)
    : >"$WORK/ours.log"
    "$EXAMPLES/dtls_server" "127.0.0.1:$PORT" "$@" >"$WORK/ours.log" 2>&1 &
    OURS=$!
    STARTED+=("$OURS")
    until_lines 1 '^listening' "$WORK/ours.log"
}

# asked ROW PATTERN: our server's clients have come and gone, and it has printed this.
asked() {
    local status=0
    wait "$OURS" || status=$?
    seen "$1" client "a client came" test "$status" -eq 0
    seen "$1" client "it was heard" grep -qE "$2" "$WORK/ours.log"
}

make_certificates() {
    local ec=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
    openssl req -x509 "${ec[@]}" -keyout "$WORK/ca.key" -out "$WORK/ca.pem" -days 2 -subj /CN=ca \
        -addext basicConstraints=critical,CA:TRUE 2>"$WORK/err"
    openssl req "${ec[@]}" -keyout "$WORK/own.key" -out "$WORK/own.csr" -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>>"$WORK/err"
    openssl x509 -req -in "$WORK/own.csr" -CA "$WORK/ca.pem" -CAkey "$WORK/ca.key" -CAcreateserial \
        -copy_extensions copy -days 2 -out "$WORK/own.pem" 2>>"$WORK/err"
    CERTIFIED=(--ca "$WORK/ca.pem" --name localhost)
    OWN=(--cert "$WORK/own.pem" --key "$WORK/own.key")
}

# The names that others have for a suite.
openssl_name() {
    case $1 in
        PskCcm8) echo PSK-AES128-CCM8 ;;
        PskCcm) echo PSK-AES128-CCM ;;
        PskGcm) echo PSK-AES128-GCM-SHA256 ;;
        EcdheEcdsaCcm8) echo ECDHE-ECDSA-AES128-CCM8 ;;
        EcdheEcdsaCcm) echo ECDHE-ECDSA-AES128-CCM ;;
        EcdheEcdsaGcm) echo ECDHE-ECDSA-AES128-GCM-SHA256 ;;
    esac
}

gnutls_cipher() {
    case $1 in
        *Ccm8) echo AES-128-CCM-8 ;;
        *Ccm) echo AES-128-CCM ;;
        *) echo AES-128-GCM ;;
    esac
}

# openssl_serves ARGUMENT...: s_server, which says `answer` for each line that it hears.
openssl_serves() {
    PORT=$(free_port)
    rm -f "$WORK/in"
    mkfifo "$WORK/in"
    exec {ANSWERS}<>"$WORK/in"
    starts openssl s_server -dtls1_2 -accept "127.0.0.1:$PORT" -cert "$WORK/own.pem" -key "$WORK/own.key" \
        -psk "$KEY_HEX" -psk_identity "$IDENTITY" -cipher ALL:@SECLEVEL=0 "$@" <&"$ANSWERS"
}

# openssl_answers COUNT WORDS: once so many lines were heard, it says this.
openssl_answers() {
    until_lines "$1" '^hello' "$WORK/theirs.log" && echo "$2" >&"$ANSWERS"
}

openssl_stops() {
    stop "$THEIRS"
    exec {ANSWERS}>&-
}

openssl_server() {
    local suite row flag
    for suite in "${PSKS[@]}" "${ECDSAS[@]}"; do
        openssl_serves
        (openssl_answers 1 answer) &
        served "$suite" 1 "${PSK[@]}" "${CERTIFIED[@]}" --suites "$suite" --send $'hello\n'
        openssl_stops
    done
    for row in resumption ticket; do
        flag=-no_ticket
        [ "$row" = resumption ] || flag=-serverpref
        openssl_serves "$flag"
        (openssl_answers 1 answer; openssl_answers 2 answer) &
        served "$row" 2 "${PSK[@]}" --suites PskGcm --send $'hello\n' --resume
        seen "$row" server "the second was resumed" grep -q 'is_resumed: true' "$WORK/out"
        openssl_stops
    done
    openssl_serves -Verify 1 -CAfile "$WORK/ca.pem"
    (openssl_answers 1 answer) &
    served "client certificate" 1 "${CERTIFIED[@]}" "${OWN[@]}" --send $'hello\n'
    openssl_stops
    # `r` alone in a line makes s_server want to negotiate again.
    openssl_serves
    : >"$WORK/out"
    (openssl_answers 1 answer; until_lines 1 '^received' "$WORK/out"; echo r >&"$ANSWERS") &
    status_of timeout 20 "${CLIENT[@]}" "127.0.0.1:$PORT" "${PSK[@]}" --suites PskGcm --send $'hello\n' --linger 1000
    seen renegotiation server "it was refused by no_renegotiation" until_lines 1 'no renegotiation' "$WORK/theirs.log"
    openssl_stops
    openssl_serves
    status_of timeout 20 "${CLIENT[@]}" "127.0.0.1:$PORT" --psk "$IDENTITY:another" --suites PskCcm8 --give-up 2000
    seen "wrong key" server "no session" grep -q '^failed' "$WORK/out"
    openssl_stops
}

# says_hello COMMAND...: a client of theirs, which says hello and stays until it hears it back.
says_hello() {
    : >"$WORK/theirs.log"
    "$@" < <(echo hello; until_lines 1 '^hello' "$WORK/theirs.log") >"$WORK/theirs.log" 2>&1
}

openssl_client() {
    local suite ask
    for suite in "${PSKS[@]}" "${ECDSAS[@]}"; do
        ours "${PSK[@]}" --ca "$WORK/ca.pem" "${OWN[@]}" --suites "$suite"
        ask=(timeout 20 openssl s_client -dtls1_2 -connect "127.0.0.1:$PORT" -CAfile "$WORK/ca.pem" -quiet
            -verify_return_error -psk "$KEY_HEX" -psk_identity "$IDENTITY" -cipher "$(openssl_name "$suite"):@SECLEVEL=0")
        says_hello "${ask[@]}" || true
        asked "$suite" '^received hello'
    done
    ours "${PSK[@]}" --suites PskGcm --count 2
    ask=(timeout 20 openssl s_client -dtls1_2 -connect "127.0.0.1:$PORT" -no_ticket -quiet -psk "$KEY_HEX"
        -psk_identity "$IDENTITY" -cipher "PSK:@SECLEVEL=0")
    says_hello "${ask[@]}" -sess_out "$WORK/session" || true
    says_hello "${ask[@]}" -sess_in "$WORK/session" || true
    asked resumption 'is_resumed: true'
    ours --ca "$WORK/ca.pem" "${OWN[@]}" --client-cert
    says_hello timeout 20 openssl s_client -dtls1_2 -connect "127.0.0.1:$PORT" -CAfile "$WORK/ca.pem" -quiet \
        -cert "$WORK/own.pem" -key "$WORK/own.key" || true
    asked "client certificate" '^received hello'
    # `R` alone in a line makes s_client want to negotiate again.
    ours "${PSK[@]}" --suites PskGcm
    : >"$WORK/theirs.log"
    timeout 20 openssl s_client -dtls1_2 -connect "127.0.0.1:$PORT" -psk "$KEY_HEX" -psk_identity "$IDENTITY" \
        -cipher PSK:@SECLEVEL=0 < <(until_lines 1 'Verify return code' "$WORK/theirs.log"; echo R
            until_lines 1 'no renegotiation' "$WORK/theirs.log") >"$WORK/theirs.log" 2>&1 || true
    seen renegotiation client "it was refused by no_renegotiation" grep -q 'no renegotiation' "$WORK/theirs.log"
    asked renegotiation '^connected'
}

gnutls_server() {
    local suite
    printf '%s:%s\n' "$IDENTITY" "$KEY_HEX" >"$WORK/psk.txt"
    for suite in "${PSKS[@]}" "${ECDSAS[@]}"; do
        PORT=$(free_port)
        if [[ $suite == Psk* ]]; then
            starts gnutls-serv -u --echo -p "$PORT" --pskpasswd "$WORK/psk.txt" --priority "$VERSIONS:-KX-ALL:+PSK"
        else
            starts gnutls-serv -u --echo -p "$PORT" --x509certfile "$WORK/own.pem" --x509keyfile "$WORK/own.key" \
                --priority "$VERSIONS"
        fi
        served "$suite" 2 "${PSK[@]}" "${CERTIFIED[@]}" --suites "$suite" --send hello --resume
        seen ticket server "$suite: the second was resumed" grep -q 'is_resumed: true' "$WORK/out"
        stop "$THEIRS"
    done
}

gnutls_client() {
    local suite ask
    for suite in "${PSKS[@]}" "${ECDSAS[@]}"; do
        ours "${PSK[@]}" --ca "$WORK/ca.pem" "${OWN[@]}" --suites "$suite"
        ask=(timeout 20 gnutls-cli -u -p "$PORT" localhost --x509cafile "$WORK/ca.pem")
        if [[ $suite == Psk* ]]; then
            ask+=(--pskusername "$IDENTITY" --pskkey "$KEY_HEX"
                --priority "$VERSIONS:-KX-ALL:+PSK:-CIPHER-ALL:+$(gnutls_cipher "$suite")")
        else
            ask+=(--priority "$VERSIONS:-CIPHER-ALL:+$(gnutls_cipher "$suite")")
        fi
        says_hello "${ask[@]}" || true
        asked "$suite" '^received hello'
    done
}

# libcoap's server takes DTLS on the port above the one it is given.
libcoap_server() {
    local stack
    for stack in openssl gnutls; do
        PORT=$(free_port)
        starts "coap-server-$stack" -A 127.0.0.1 -p "$((PORT - 1))" -k "$KEY" -h hint -v 6
        served PskCcm8 1 "${PSK[@]}" --suites PskCcm8 --send-hex "$GET"
        # 2.05 Content in an acknowledgement.
        seen PskCcm8 server "$stack: CoAP was answered" grep -q '^received `E' "$WORK/out"
        served PskGcm 1 "${PSK[@]}" --suites PskGcm --send-hex "$GET"
        stop "$THEIRS"
    done
}

libcoap_client() {
    local stack suite
    for stack in openssl gnutls; do
        for suite in PskCcm8 PskGcm; do
            ours "${PSK[@]}" --suites "$suite" --coap
            status_of timeout 20 "coap-client-$stack" -B 5 -u "$IDENTITY" -k "$KEY" "coaps://127.0.0.1:$PORT/"
            seen "$suite" client "$stack: it heard the answer" grep -q muster "$WORK/out"
            asked "$suite" '^received'
        done
    done
}

# theirs SIDE SUITE [CID-BYTES]: pion or Scandium, as it was built.
theirs() {
    local side=$1
    shift
    case $PEER in
        pion) echo "$BUILT/pion/peer" "$side" "127.0.0.1:$PORT" "$IDENTITY" "$KEY" "$@" ;;
        scandium)
            echo java -cp "$BUILT/scandium/target/classes:$(cat "$BUILT/scandium/classpath")" Scandium "$side" "$PORT" \
                "$IDENTITY" "$KEY" "$@"
            ;;
    esac
}

# Peers that are told side, suite and connection id.
told_server() {
    local suite
    for suite in "$@"; do
        PORT=$(free_port)
        starts $(theirs serve "$suite")
        served "$suite" 1 "${PSK[@]}" --suites "$suite" --send hello
        stop "$THEIRS"
    done
    for suite in PskCcm8 PskGcm; do
        PORT=$(free_port)
        starts $(theirs serve "$suite" 8)
        served "connection id" 1 "${PSK[@]}" --suites "$suite" --cid c1c2c3 --send hello --move
        seen "connection id" server "$suite: it was agreed upon" grep -q 'has_connection_id: true' "$WORK/out"
        seen "connection id" server "$suite: heard at both addresses" \
            test "$(grep -c '^received hello' "$WORK/out")" -eq 2
        stop "$THEIRS"
    done
}

told_client() {
    local suite
    for suite in "$@"; do
        ours "${PSK[@]}" --suites "$suite" --patience 3000
        status_of timeout 20 $(theirs ask "$suite")
        seen "$suite" client "it heard the answer" test "$STATUS" -eq 0
        asked "$suite" '^received hello'
    done
    ours "${PSK[@]}" --suites PskGcm --cid a1a2a3a4a5 --patience 3000
    status_of timeout 20 $(theirs ask PskGcm 4)
    seen "connection id" client "it heard the answer" test "$STATUS" -eq 0
    asked "connection id" 'has_connection_id: true'
}

build_peer() {
    local folder=$BUILT/$PEER
    mkdir -p "$BUILT"
    rm -rf "$folder"
    cp -r "e2e/peers/$PEER" "$folder"
    case $PEER in
        pion) need go && (cd "$folder" && go build -o peer .) ;;
        scandium)
            need java mvn
            (cd "$folder" && mvn -q compile dependency:build-classpath -Dmdep.outputFile=classpath) >"$WORK/build.log"
            ;;
    esac
}

against() {
    PEER=$1
    case $PEER in
        openssl) openssl_server && openssl_client ;;
        gnutls) need gnutls-serv gnutls-cli && gnutls_server && gnutls_client ;;
        libcoap) need coap-server-openssl coap-client-gnutls && libcoap_server && libcoap_client ;;
        pion) build_peer && told_server "${PSKS[@]}" && told_client "${PSKS[@]}" ;;
        scandium)
            build_peer
            told_server "${PSKS[@]}" EcdhePskCcm8 EcdhePskCcm EcdhePskGcm
            told_client "${PSKS[@]}" EcdhePskCcm8 EcdhePskCcm EcdhePskGcm
            ;;
    esac
}

table() {
    local row peer side
    printf '| |'; for peer in $PEERS; do printf ' %s server | %s client |' "$peer" "$peer"; done
    printf '\n|---|'; for peer in $PEERS; do printf -- '---|---|'; done; echo
    for row in "${ROWS[@]}"; do
        printf '| %s |' "$row"
        for peer in $PEERS; do for side in server client; do printf ' %s |' "${CELLS[$row/$peer $side]:-}"; done; done
        echo
    done
}

make_certificates
for peer in $PEERS; do against "$peer"; done
table
finish
