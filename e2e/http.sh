#!/usr/bin/env bash
# curl, wrk and Chromium upload to the reference gateway over HTTP, plain and over TLS; mosquitto's clients are the
# business application. What all of them saw is compared with the gateway's own account.
source "$(dirname "$0")/lib.sh"
need "$MUSTER" curl wrk chromium mosquitto_sub mosquitto_pub openssl python3

printf 'sensor1@T1:hono-secret\nT1-gw@T1:gw-secret\napp:app\n' >"$WORK/users"
head -c 5000 /dev/zero | tr '\0' x >"$WORK/body"
MQTT=$(free_port) HELLOS=0
readonly MQTT
readonly JSON='Content-Type: application/json' DEVICE=sensor1@T1:hono-secret BEHIND=T1-gw@T1:gw-secret
authority
certificate server server
certificate dev-0 dev-0@T1

# listen: what surfaces is written into $WORK/surfaced, from the script's own `hello` on.
listen() {
    mosquitto_sub -V 5 -h 127.0.0.1 -p "$MQTT" --cafile "$WORK/ca.pem" -u app -P app -q 1 -t '#' -F '%t %l' >"$WORK/surfaced" &
    STARTED+=("$!")
    # Whoever has heard its own message has subscribed. Before, the gateway has nobody to give it to, and ends the
    # link as Hono does.
    until grep -q hello "$WORK/surfaced"; do
        publish telemetry/T1/hello hello 2>/dev/null || true
        HELLOS=$((HELLOS + 1))
    done
}

publish() {
    mosquitto_pub -V 5 -h 127.0.0.1 -p "$MQTT" --cafile "$WORK/ca.pem" -u app -P app -q 1 -t "$1" -m "$2"
}

# said WANTED ARGUMENT...: the status that curl gets, and its fields and body in $WORK/answer.
said() {
    local wanted=$1 got
    shift
    got=$(curl -sS -i -o "$WORK/answer" -w '%{http_code}' --cacert "$WORK/ca.pem" --max-time 20 "$@" 2>"$WORK/err") || true
    same "curl ${*: -1}" "$got" "$wanted"
}

# answered PATTERN: the last answer has a line like that.
answered() {
    check "the answer has $1" grep -qi "$1" "$WORK/answer"
}

start_gateway https --dialect hono --listen "127.0.0.1:$MQTT" --http 127.0.0.1:0 --https 127.0.0.1:0 --users "$WORK/users" \
    --max-payload 5000 --threads 1 --cert "$WORK/server.pem" --key "$WORK/server.key"
listen
round=0
for at in "http://${AT[http]}" "https://${AT[https]}"; do
    round=$((round + 1))
    said 202 -u "$DEVICE" -H "$JSON" -d '{"n":1}' "$at/telemetry"
    said 202 -u "$DEVICE" -H "$JSON" -H 'qos-level: 1' -d '{"n":2}' "$at/telemetry"
    said 202 -u "$DEVICE" -H "$JSON" -d '{"n":3}' "$at/event?hono-ttl=10"
    # curl asks to go on before it sends so much, and sends chunks where it does not know how much it is.
    said 202 -u "$DEVICE" -H 'Expect: 100-continue' -H "$JSON" --data-binary "@$WORK/body" "$at/event"
    said 202 -u "$BEHIND" -H "$JSON" -H 'Transfer-Encoding: chunked' -X PUT -T "$WORK/body" "$at/telemetry/T1/dev-1"
    # Two requests on one connection.
    said 202202 -o "$WORK/second" -u "$BEHIND" -H "$JSON" -X PUT -d '{"n":4}' "$at/event//dev%202" "$at/event//dev%203"
    said 401 -H "$JSON" -d '{}' "$at/telemetry"
    answered '^WWW-Authenticate: Basic realm='
    said 401 -u sensor1@T1:wrong -H "$JSON" -d '{}' "$at/telemetry"
    said 403 -u "$BEHIND" -H "$JSON" -X PUT -d '{}' "$at/telemetry/T2/dev-1"
    said 404 -u "$DEVICE" -H "$JSON" -d '{}' "$at/nothing"
    said 405 -u "$DEVICE" "$at/telemetry"
    answered '^Allow: POST, PUT'
    said 405 -u "$DEVICE" -I "$at/telemetry"
    said 501 -u "$DEVICE" -X BREW "$at/telemetry"
    said 413 -u "$DEVICE" -H 'Expect:' -H "$JSON" -d "$(cat "$WORK/body")x" "$at/event"
    # Nobody commands, so that the answer comes after a second.
    said 202 -u "$DEVICE" -H "$JSON" -d '{"n":5}' "$at/telemetry?hono-ttd=1"
    # The answer to whoever waits is a command.
    curl -sS -i --cacert "$WORK/ca.pem" -u "$DEVICE" -H "$JSON" -H 'hono-ttd: 20' -d '{"n":66}' "$at/event" >"$WORK/answer" &
    asks=$!
    until_lines $round '^event/T1/sensor1 8$' "$WORK/surfaced"
    publish command/T1/sensor1/7f3a/set '{"on":true}'
    wait "$asks"
    for line in '^HTTP/1.1 200' '^hono-command: set' '^hono-cmd-req-id: 2047f3a' '{"on":true}'; do answered "$line"; done
    said 202 -u "$DEVICE" -H "$JSON" -d '{"is":"on"}' "$at/command/res/2047f3a?hono-cmd-status=200"
    until_lines $round '^command_response/T1/sensor1/7f3a/200 11$' "$WORK/surfaced"
done
stop_gateway
grep -v -e hello -e ^command/ "$WORK/surfaced" | sort | uniq -c | awk '{$1=$1; print}' >"$WORK/counted"
cat >"$WORK/wanted" <<WANTED
2 command_response/T1/sensor1/7f3a/200 11
2 event/T1/dev 2 7
2 event/T1/dev 3 7
2 event/T1/sensor1 5000
2 event/T1/sensor1 7
2 event/T1/sensor1 8
2 telemetry/T1/dev-1 5000
6 telemetry/T1/sensor1 7
WANTED
check "what was uploaded surfaced, topic by topic, with its length" diff "$WORK/counted" "$WORK/wanted"
same "refused" "$(account refused-requests)" 16
same "what is no HTTP" "$(account malformed)" 0
same "uplinks of devices" "$(($(account received) - HELLOS))" 18
same "queries, of these in vain" "$(account queries) $(account queries-without-command)" "4 2"
same "commands, replies" "$(account commands-handed) $(account replies)" "2 2"
same "handshakes are those of curl and the application" "$(($(account tls-handshakes) - $(account connected)))" 17

# A certificate names its device.
start_gateway https --dialect hono --listen "127.0.0.1:$MQTT" --https 127.0.0.1:0 --cert "$WORK/server.pem" \
    --key "$WORK/server.key" --client-ca "$WORK/ca.pem"
said 202 --cert "$WORK/dev-0.pem" --key "$WORK/dev-0.key" -H "$JSON" -d '{}' "https://${AT[https]}/telemetry"
said 403 --cert "$WORK/dev-0.pem" --key "$WORK/dev-0.key" -H "$JSON" -X PUT -d '{}' "https://${AT[https]}/event/T2/x"
said 000 -H "$JSON" -d '{}' "https://${AT[https]}/telemetry"
stop_gateway
same "uplinks of a certified device" "$(account received)" 1
check "who showed a certificate" grep -q CN=dev-0@T1 "$WORK/account"

# As many requests as wrk makes in two seconds, one behind the other on eight connections.
cat >"$WORK/post.lua" <<'LUA'
wrk.method = "POST"
wrk.body = string.rep("x", 100)
wrk.headers["Content-Type"] = "text/plain"
wrk.headers["Authorization"] = "Basic c2Vuc29yMUBUMTpob25vLXNlY3JldA=="
LUA
start_gateway http --dialect hono --listen "127.0.0.1:$MQTT" --http 127.0.0.1:0 --users "$WORK/users" --threads 1
wrk -t 1 -c 8 -d 2s -s "$WORK/post.lua" "http://${AT[http]}/telemetry" >"$WORK/wrk"
stop_gateway
requests=$(awk '/requests in/ { print $1 }' "$WORK/wrk")
grep 'Requests/sec' "$WORK/wrk" | sed 's/^/# wrk: /'
check "wrk got answers" test "$requests" -gt 1000
check "all of them said yes" bash -c "! grep -q -e Non-2xx -e 'Socket errors' '$WORK/wrk'"
# The last request of each connection is cut off.
check "$(account received) uplinks are the $requests of wrk" \
    test "$(($(account received) - requests))" -ge 0 -a "$(($(account received) - requests))" -le 8
same "connections, of which wrk tries one" "$(account http-connections)" 9

# A browser shows the reason of a refusal.
start_gateway http --dialect hono --listen "127.0.0.1:$MQTT" --http 127.0.0.1:0 --threads 1
chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
    --disable-component-update --disable-sync --user-data-dir="$WORK/profile" --dump-dom \
    "http://${AT[http]}/telemetry" >"$WORK/dom" 2>/dev/null
check "Chromium shows why its GET is refused" grep -q 'POST and PUT alone' "$WORK/dom"
stop_gateway
same "what is no HTTP for Chromium" "$(account malformed)" 0
finish
