#!/usr/bin/env bash
# CoAP, both ends, against implementations of others: every way to answer, blocks both ways,
# ping, and datagrams that either side loses. COAP_PEERS chooses among libcoap (the default) and
# californium, which needs a JDK and Maven.
source "$(dirname "$0")/lib.sh"
readonly PEERS=${COAP_PEERS:-libcoap}
readonly CALIFORNIUM=$PWD/target/peers/californium
need cmp

examples muster-protocol coap
OURS=$EXAMPLES/coap
head -c 5000 /dev/urandom >"$WORK/body"

# ask WANTED ARGUMENT...: our client's one line begins with what is wanted and counts no fault.
ask() {
    local wanted=$1 line
    shift
    line=$("$OURS" ask "$@" 2>&1) || true
    check "our client: $* -> $line" grep -q -E "^$wanted.* stray=0 malformed=0\$" <<<"$line"
}

our_client() {
    local port=$1 uri=coap://127.0.0.1:$1
    coap-server-notls -A 127.0.0.1 -p "$port" -d 10 >"$WORK/server.log" 2>&1 &
    STARTED+=("$!")
    # A ping is sent again until the server is there.
    local line
    line=$("$OURS" ping "127.0.0.1:$port")
    check "our client: ping -> $line" grep -q '^pong;' <<<"$line"
    ask '2.05 piggybacked' get "$uri/"
    ask '2.05 separate' get "$uri/" non
    ask '2.05 separate' get "$uri/async?1"
    ask '4.04 piggybacked' get "$uri/nothing"
    ask '2.05 piggybacked.* parts=1 ' get "$uri/example_data"
    ask '2.01 piggybacked' put "$uri/blob" "body=$WORK/body"
    ask '2.05 piggybacked; bytes=5000 parts=19 ' get "$uri/blob" block=256 early "out=$WORK/blob"
    check "our client: the body in blocks of 256 came back" cmp "$WORK/body" "$WORK/blob"
    ask '2.01 piggybacked.* retransmitted=2 ' put "$uri/lossy" "body=$WORK/body" block=128 lose=3,9
    ask '2.05 piggybacked; bytes=5000 .* retransmitted=2 ' get "$uri/lossy" lose=1,4 "out=$WORK/lossy"
    check "our client: over losses the body came back" cmp "$WORK/body" "$WORK/lossy"
}

# A server that loses: the answers it leaves out are asked for again.
lossy_server() {
    local port=$1 uri=coap://127.0.0.1:$1
    coap-server-notls -A 127.0.0.1 -p "$port" -l 2,4,5 >"$WORK/lossy.log" 2>&1 &
    STARTED+=("$!")
    "$OURS" ping "127.0.0.1:$port" >/dev/null
    ask '2.05 piggybacked.* retransmitted=1 ' get "$uri/"
    # The acknowledgement and the separate answer both get lost.
    ask '2.05 separate.*' get "$uri/async?1"
}

# our_server OPTION...: starts our server; its port is in PORT.
our_server() {
    local port
    port=$(mktemp -u "$WORK/port-XXXXXX")
    mkfifo "$port"
    "$OURS" serve "$@" >"$port" &
    STARTED+=("$!")
    read -r PORT <"$port"
}

# said WANTED ARGUMENT...: what libcoap's client prints.
said() {
    local wanted=$1 got
    shift
    got=$(timeout 60 coap-client-notls "$@" 2>&1 | tr -d '\0' | tr '\n' ' ') || true
    check "libcoap's client: $* -> $got" grep -q -F "$wanted" <<<"$got"
}

their_client() {
    our_server
    local uri=coap://127.0.0.1:$PORT
    said hello "$uri/hello"
    said hello -N "$uri/hello"
    said 'at last' "$uri/separate"
    said 4.04 "$uri/nothing"
    said 5.03 "$uri/busy"
    said 4.02 -O 9,x "$uri/hello"
    timeout 60 coap-client-notls -o "$WORK/large" "$uri/large"
    same "libcoap's client: bytes in blocks of 1024" "$(stat -c %s "$WORK/large")" 5000
    timeout 60 coap-client-notls -b 64 -o "$WORK/large-64" "$uri/large"
    check "libcoap's client: the same in blocks of 64" cmp "$WORK/large" "$WORK/large-64"
    timeout 60 coap-client-notls -m put -f "$WORK/body" "$uri/store"
    timeout 60 coap-client-notls -o "$WORK/stored" "$uri/store"
    check "libcoap's client: a body in blocks came back" cmp "$WORK/body" "$WORK/stored"
    timeout 60 coap-client-notls -m put -b 32 -f "$WORK/body" "$uri/store"
    timeout 60 coap-client-notls -o "$WORK/stored" "$uri/store"
    check "libcoap's client: in blocks of 32 too" cmp "$WORK/body" "$WORK/stored"
    head -c 140000 /dev/zero >"$WORK/huge"
    said 4.13 -m put -f "$WORK/huge" "$uri/store"
}

# Requests and answers get lost, and no request is handed on twice.
losses() {
    our_server lose=2,3,6
    local uri=coap://127.0.0.1:$PORT
    said hello "$uri/hello"
    said hello "$uri/hello"
    said hello -l 1 "$uri/hello"
    said 'at last' "$uri/separate"
    said '"hello": 3, "separate": 1' "$uri/asked"
}

libcoap() {
    need coap-client-notls coap-server-notls
    our_client "$(free_port)"
    lossy_server "$(free_port)"
    their_client
    losses
}

# java_peer ARGUMENT...: takes the place of the shell it runs in, so that it ends with it; Californium
# leaves a file of settings where it runs.
java_peer() {
    cd "$CALIFORNIUM" && exec java -cp "$CALIFORNIUM/target/classes:$(cat "$CALIFORNIUM/classpath")" Peer "$@"
}

# answers WANTED ARGUMENT...: what Californium's client prints.
answers() {
    local wanted=$1 got
    shift
    got=$(java_peer "$@" 2>&1) || true
    same "californium's client: $*" "$got" "$wanted"
}

californium_server() {
    local port=$1 uri=coap://127.0.0.1:$1 line
    java_peer serve "$port" &
    STARTED+=("$!")
    line=$("$OURS" ping "127.0.0.1:$port")
    check "our client: ping -> $line" grep -q '^pong;' <<<"$line"
    ask '2.05 piggybacked; bytes=5 ' get "$uri/hello"
    ask '2.05 separate; bytes=5 ' get "$uri/hello" non
    ask '2.05 separate; bytes=7 ' get "$uri/separate"
    ask '4.04 piggybacked' get "$uri/nothing"
    ask '5.03 piggybacked max-age=2' get "$uri/busy"
    ask '2.04 piggybacked' put "$uri/store" "body=$WORK/body"
    ask '2.05 piggybacked; bytes=5000 parts=9 ' get "$uri/store" "out=$WORK/from-512"
    ask '2.05 piggybacked; bytes=5000 parts=78 ' get "$uri/store" block=64 early "out=$WORK/from-64"
    check "our client: the body in blocks of 512 came back" cmp "$WORK/body" "$WORK/from-512"
    check "our client: and in blocks of 64" cmp "$WORK/body" "$WORK/from-64"
    ask '2.04 piggybacked.* retransmitted=2 ' put "$uri/store" "body=$WORK/body" block=32 lose=3,7
}

californium_client() {
    our_server
    local uri=coap://127.0.0.1:$PORT
    answers pong ping "$uri"
    answers '2.05 ACK bytes=5' ask get "$uri/hello"
    answers '2.05 NON bytes=5' non "$uri/hello"
    answers '2.05 CON bytes=7' ask get "$uri/separate"
    answers '4.04 ACK bytes=16' ask get "$uri/nothing"
    answers '5.03 ACK bytes=5' ask get "$uri/busy"
    answers '2.05 ACK bytes=5000' ask get "$uri/large"
    answers '2.04 ACK bytes=0' ask put "$uri/store" "$WORK/body"
    answers '2.05 ACK bytes=5000' ask get "$uri/store" - "$WORK/stored-by-us"
    check "californium's client: a body in blocks came back" cmp "$WORK/body" "$WORK/stored-by-us"
    line=$("$OURS" ask get "$uri/asked" "out=$WORK/asked")
    check "no request was handed on twice: $(cat "$WORK/asked")" grep -q '"hello": 2.*"separate": 1, "store": 2' "$WORK/asked"
}

californium() {
    need java mvn
    bash e2e/peers/californium/build.sh "$CALIFORNIUM" >>"$WORK/build.log"
    californium_server "$(free_port)"
    californium_client
}

for peer in $PEERS; do
    "$peer"
done
finish
