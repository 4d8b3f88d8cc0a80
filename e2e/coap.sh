#!/usr/bin/env bash
# CoAP, both ends, against libcoap: every way to answer, blocks both ways, observe, ping, and
# datagrams that either side loses.
source "$(dirname "$0")/lib.sh"
need coap-client-notls coap-server-notls cargo cmp

cargo build --quiet -p muster-protocol --example coap
OURS=target/debug/examples/coap
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
    ask '2.05 piggybacked.* notifications=3 ' get "$uri/time" observe=3
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
    mkfifo "$WORK/port-$#"
    "$OURS" serve "$@" >"$WORK/port-$#" &
    STARTED+=("$!")
    read -r PORT <"$WORK/port-$#"
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
    local uri=coap://127.0.0.1:$PORT ticks
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
    timeout 60 coap-client-notls -w -s 2 "$uri/ticks" >"$WORK/ticks" 2>&1
    ticks=$(grep -c tick "$WORK/ticks")
    check "libcoap's client: observed $ticks states in 2 s" test "$ticks" -ge 10
    # One to register, one to deregister.
    said '"ticks": 2' "$uri/asked"
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

our_client "$(free_port)"
lossy_server "$(free_port)"
their_client
losses
finish
