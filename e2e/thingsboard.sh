#!/usr/bin/env bash
# ThingsBoard against others on both sides. `kind: thingsboard` through a real Mosquitto to a server end made
# with Paho, which checks each body and counts: devices by their tokens, gateways that announce theirs, and
# what a rule chain that keeps every tenth message, and writes all others anew, hands on; commands that it numbers, and requests that it
# answers. Then Paho devices, a gateway and a consumer
# against Muster's gateway: what they hear is what ThingsBoard says, and their counts equal the account. At last
# the counts that the gateway's rule engine stores each second, read by REST, against a run's ledger.
source "$(dirname "$0")/lib.sh"
need mosquitto python3 jq curl

with_paho

# broker NAME: a Mosquitto that writes down who logs in; PORT, BROKER.
broker() {
    PORT=$(free_port)
    { sed "s/^listener 1883 /listener $PORT /" deploy/mosquitto/mosquitto.conf; echo "log_type notice"; } >"$WORK/$1.conf"
    mosquitto -c "$WORK/$1.conf" 2>"$WORK/$1.log" &
    BROKER=$!
    STARTED+=("$BROKER")
    listens "$PORT"
}

# serve NAME ROLE: the server end made with Paho in that role; SERVER. It ends with descriptor 9.
serve() {
    mkfifo "$WORK/$1.end"
    "$PYTHON" e2e/thingsboard.py "$2" "$PORT" <"$WORK/$1.end" >"$WORK/$1.txt" &
    SERVER=$!
    STARTED+=("$SERVER")
    exec 9>"$WORK/$1.end"
    until_lines 1 ready "$WORK/$1.txt"
}

# served NAME: ends it; its counts are in NAME.json.
served() {
    exec 9>&-
    wait "$SERVER"
    tail -1 "$WORK/$1.txt" >"$WORK/$1.json"
    stop "$BROKER"
    same "each body is right" "$(counted "$1" '.wrong | length')" 0
    [ "$(counted "$1" '.wrong | length')" -eq 0 ] || jq -c '.wrong[0:3]' "$WORK/$1.json"
}

# run NAME [KEY]: a scenario through a broker, whose address goes to a key too, to the server end made with
# Paho; its counts are in NAME.json.
run() {
    broker "$1"
    serve "$1" server
    status_of "$MUSTER" run "e2e/$1.yaml" --quiet --out "$WORK/$1" \
        --set "platform.devices=[mqtt://127.0.0.1:$PORT]" ${2:+--set "$2=mqtt://127.0.0.1:$PORT"}
    [ "$STATUS" -lt 2 ] || cat "$WORK/out"
    served "$1"
}

# counted NAME FILTER: a count of the server end.
counted() {
    jq -r "$2 // 0" "$WORK/$1.json"
}

# What the gateway ends itself, after half a minute and a whole one, goes on while all else is done.
PATIENT_PORT=$(free_port)
PATIENT_HTTP=$(free_port)
PATIENT_REST=$(free_port)
"$MUSTER" gateway --listen "127.0.0.1:$PATIENT_PORT" --dialect thingsboard --http "127.0.0.1:$PATIENT_HTTP" \
    --rest "127.0.0.1:$PATIENT_REST" >"$WORK/patient.txt" 2>&1 &
STARTED+=("$!")
listens "$PATIENT_PORT"
listens "$PATIENT_HTTP"
"$PYTHON" e2e/thingsboard.py patient "$PATIENT_PORT" >"$WORK/patient.json" &
PATIENT=$!
STARTED+=("$PATIENT")
curl -sS -o "$WORK/call.json" -w '{"status":%{http_code},"seconds":%{time_total}}' -H 'Content-Type: application/json' \
    -d '{"method":"getTime","params":{}}' "http://127.0.0.1:$PATIENT_HTTP/api/v1/t/rpc" >"$WORK/called.json" &
CALL=$!
STARTED+=("$CALL")

run thingsboard
S='.ledger.by_stream'
same "exit code" "$STATUS" 0
same "telemetry sent" "$(value "$WORK/thingsboard" "$S[\"devices/telemetry\"].ledger.sent")" "$(counted thingsboard .telemetry)"
same "telemetry accepted" "$(value "$WORK/thingsboard" "$S[\"devices/telemetry\"].ledger.accepted")" 1000
same "attributes sent at QoS 0" "$(value "$WORK/thingsboard" "$S[\"devices/attributes\"].ledger.unacknowledged")" \
    "$(counted thingsboard .attributes)"
same "alarms, to the unit" "$(counted thingsboard .alarms)" 20
same "nothing is known northbound" "$(value "$WORK/thingsboard" '.ledger.uplink.arrived')" null
TOKENS=$(grep -o "u'token-[0-9]*'" "$WORK/thingsboard.log" | sort -u | wc -l)
same "links with a token of their own" "$TOKENS" 20
check "no token in the result" bash -c "! grep -q 'token-[0-9]' '$WORK/thingsboard/result.json'"

run thingsboard-gateway platform.backend.url
U='.ledger.uplink'
judged "some were lost" "$WORK/thingsboard-gateway" fail
same "devices announced" "$(counted thingsboard-gateway .announced)" 50
same "links" "$(grep -o "u'GW[0-9]*'" "$WORK/thingsboard-gateway.log" | sort -u | paste -sd' ')" \
    "u'GW00000000' u'GW00000001' u'GW00000002'"
same "sent" "$(value "$WORK/thingsboard-gateway" "$U.sent")" "$(counted thingsboard-gateway .gateway)"
same "accepted" "$(value "$WORK/thingsboard-gateway" "$U.accepted")" 1000
same "lost = kept by the rule chain" "$(value "$WORK/thingsboard-gateway" "$U.lost")" \
    "$(counted thingsboard-gateway .kept)"
same "arrived = the rest" "$(value "$WORK/thingsboard-gateway" "$U.arrived")" 900
same "none counts as corrupted, though written anew" "$(value "$WORK/thingsboard-gateway" "$U.corrupted")" 0
same "residue" "$(value "$WORK/thingsboard-gateway" "$U.residue")" 0

# Commands, and requests that are answered. Devices of ThingsBoard have the same topics, so that each gets a
# Mosquitto of its own, with a bridge that puts the device before its topics.
device_broker() {
    local place=$1 port=$2 topic direction
    {
        sed "s/^listener 1883 /listener $port /" deploy/mosquitto/mosquitto.conf
        printf 'connection d%s\naddress 127.0.0.1:%s\nnotifications false\n' "$place" "$PORT"
        shift 2
        for topic in "$@"; do
            direction=${topic%%:*}
            printf 'topic v1/devices/me/%s %s 1 "" d%s/\n' "${topic#*:}" "$direction" "$place"
        done
    } >"$WORK/d$place.conf"
    mosquitto -c "$WORK/d$place.conf" 2>"$WORK/d$place.log" &
    STARTED+=("$!")
    listens "$port"
    DEVICES+="${DEVICES:+,}mqtt://127.0.0.1:$port"
}

PORT=$(free_port)
{ sed "s/^listener 1883 /listener $PORT /" deploy/mosquitto/mosquitto.conf; echo "log_type subscribe"; } >"$WORK/rpc.conf"
mosquitto -c "$WORK/rpc.conf" 2>"$WORK/rpc.log" &
BROKER=$!
STARTED+=("$BROKER")
listens "$PORT"
DEVICES=""
for PLACE in 0 1 2; do
    device_broker "$PLACE" "$(free_port)" out:attributes/request/+ in:attributes/response/+ \
        in:rpc/request/+ out:rpc/response/+
done
device_broker 3 "$(free_port)" out:telemetry out:rpc/request/+ in:rpc/response/+
until_lines 7 ' d[0-3]/v1/' "$WORK/rpc.log"
serve rpc rpc
status_of "$MUSTER" run e2e/thingsboard-rpc.yaml --quiet --out "$WORK/rpc" \
    --set "platform.devices=[$DEVICES]" --set "platform.backend.url=mqtt://127.0.0.1:$PORT"
served rpc
same "exit code, since some were not answered" "$STATUS" 1
[ "$STATUS" -eq 1 ] || cat "$WORK/out"
C='.ledger.command'
same "commands issued" "$(value "$WORK/rpc" "$C.issued")" "$(counted rpc .commands)"
same "received = all but what it kept" "$(value "$WORK/rpc" "$C.received")" "$(counted rpc '.commands - .kept')"
same "named as not received" "$(value "$WORK/rpc" "$C.delivered_not_received")" "$(counted rpc .kept)"
same "replies, each under its number" "$(value "$WORK/rpc" "$C.replies_arrived")" "$(counted rpc .replies)"
same "residue of commands" "$(value "$WORK/rpc" "$C.residue")" 0
for OF in attributes rpc; do
    STREAM=$([ "$OF" = rpc ] && echo callers/calls || echo devices/attributes)
    L="$S[\"$STREAM\"].ledger"
    same "$OF asked" "$(value "$WORK/rpc" "$L.sent")" "$(counted rpc ".$OF")"
    same "$OF not answered" "$(value "$WORK/rpc" "$L.timed_out")" "$(counted rpc ".[\"$OF silent\"]")"
    same "$OF answered twice" "$(value "$WORK/rpc" "$L.answered_again")" "$(counted rpc ".[\"$OF twice\"]")"
done
same "calls refused" "$(value "$WORK/rpc" "$L.rejected_by_code[\"500\"]")" "$(counted rpc .refused)"
same "residue" "$(value "$WORK/rpc" "$U.residue")" 0

PORT=$(free_port)
printf '%s:\n' consumer new old gateway provision >"$WORK/tokens"
"$MUSTER" gateway --listen "127.0.0.1:$PORT" --dialect thingsboard --users "$WORK/tokens" >"$WORK/commanded.txt" 2>&1 &
GATEWAY=$!
STARTED+=("$GATEWAY")
listens "$PORT"
"$PYTHON" e2e/thingsboard.py commanded "$PORT" >"$WORK/commanded.json"
kill -INT "$GATEWAY"
wait "$GATEWAY" || true
sed -n '/^{/,$p' "$WORK/commanded.txt" >"$WORK/account.json"
came() { jq -c ".[\"$1\"]" "$WORK/commanded.json"; }
for WHAT in "command to new" "command to old" "command to one" "reply of new" "reply of old" "reply of one" \
    "attributes asked" called claim "asked to be made"; do
    same "accepted: $WHAT" "$(came "$WHAT")" 0
done
same "a command to nobody" "$(came "nobody's command")" 16
same "a command that calls nothing" "$(came "no call")" 153
same "what the application hears" "$(came replies)" \
    "$(jq -nc '["new", "old", "one"] | map("thingsboard-rpc/\(.)/response {\"by\": \"\(.)\"}")')"
same "what the device that asked hears" "$(came "heard by new")" \
    '["v1/devices/me/attributes/response/41 {}","v1/devices/me/rpc/response/42 {}"]'
same "what the device that was made hears" "$(came made)" \
    '["/provision/response",{"status":"SUCCESS","credentialsType":"ACCESS_TOKEN","credentialsValue":"t-1"}]'
same "commands, handed on, replies" "$(jq -c '[.commands, .["commands-routed"], .replies, .unreadable]' "$WORK/account.json")" "[4,3,3,1]"

PORT=$(free_port)
printf '%s:\n' consumer new old gateway >"$WORK/tokens"
"$MUSTER" gateway --listen "127.0.0.1:$PORT" --dialect thingsboard --users "$WORK/tokens" >"$WORK/gateway.txt" 2>&1 &
GATEWAY=$!
STARTED+=("$GATEWAY")
listens "$PORT"
"$PYTHON" e2e/thingsboard.py devices "$PORT" >"$WORK/devices.json"
kill -INT "$GATEWAY"
wait "$GATEWAY" || true
sed -n '/^{/,$p' "$WORK/gateway.txt" >"$WORK/account.json"
said() { jq -r ".said[\"$1\"]" "$WORK/devices.json"; }
for WHAT in flat list attributes connect gateway disconnect "still open"; do
    same "accepted: $WHAT" "$(said "$WHAT")" 0
done
same "no JSON, MQTT 5" "$(said "no json")" closed
same "no JSON, MQTT 5: why" "$(said "no json, why")" 153
same "no JSON, MQTT 3.1.1" "$(said "old, no json")" closed
same "a topic that is nobody's" "$(said "nobody's topic")" 144
same "a token that is nobody's" "$(jq .stranger "$WORK/devices.json")" 134
same "surfaced" "$(jq -c '[.got[] | join(" ")]' "$WORK/devices.json")" \
    "$(jq -nc '["thingsboard/new/attributes {\"b\":true} paho",
        "thingsboard/new/telemetry {\"longKey\":73} ", "thingsboard/new/telemetry {\"still\":\"open\"} ",
        "thingsboard/old/attributes {\"model\":{\"a\":[1]}} ",
        "thingsboard/old/telemetry [{\"ts\":1600000000000,\"values\":{\"a\":1}},{\"b\":\"x\"}] ",
        "thingsboard/one/telemetry {\"one\":[{\"ts\":1,\"values\":{\"a\":1}}],\"two\":[{\"a\":2}]} ",
        "thingsboard/two/telemetry {\"one\":[{\"ts\":1,\"values\":{\"a\":1}}],\"two\":[{\"a\":2}]} "]')"
same "uplinks, announcements apart" "$(jq -c '[.received, .announced, .["announced-gone"], .unreadable, .["unknown-topics"]]' "$WORK/account.json")" "[9,1,1,2,1]"
same "tokens refused" "$(jq -c .refused "$WORK/account.json")" '{"134":1}'

PORT=$(free_port)
REST=$(free_port)
echo open-sesame >"$WORK/password"
"$MUSTER" gateway --listen "127.0.0.1:$PORT" --dialect thingsboard --rest "127.0.0.1:$REST" \
    --rest-token "$WORK/password" --rest-gateway node >"$WORK/counting.txt" 2>&1 &
GATEWAY=$!
STARTED+=("$GATEWAY")
listens "$PORT"
listens "$REST"
URL="http://127.0.0.1:$REST/api"
TOKEN=$(curl -sS -H 'Content-Type: application/json' -d '{"username":"tenant@thingsboard.org","password":"open-sesame"}' \
    "$URL/auth/login" | jq -r .token)
rest() { curl -sS -H "X-Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' "$@"; }
TENANT=$(rest "$URL/auth/user" | jq -r .tenantId.id)
read_series() { rest "$URL/plugins/telemetry/TENANT/$TENANT/$1"; }
same "without a count node nothing is counted" "$(read_series keys/timeseries)" "[]"
# The published chain, whose count node stands behind the nodes that store.
CHAIN=$(rest -d '{"name":"Performance Test Rule Chain"}' "$URL/ruleChain")
jq -c '{ruleChainId: .id, firstNodeIndex: 0,
    nodes: [["filter.TbMsgTypeSwitchNode", {}], ["telemetry.TbMsgTimeseriesNode", {}],
        ["action.TbMsgCountNode", {telemetryPrefix: "messageCount", interval: 1}], ["telemetry.TbMsgTimeseriesNode", {}],
        ["telemetry.TbMsgAttributesNode", {}]]
        | map({type: "org.thingsboard.rule.engine.\(.[0])", name: .[0], configuration: .[1]}),
    connections: [{fromIndex: 0, toIndex: 1, type: "Post telemetry"}, {fromIndex: 1, toIndex: 2, type: "Success"},
        {fromIndex: 2, toIndex: 3, type: "Success"}, {fromIndex: 0, toIndex: 4, type: "Post attributes"},
        {fromIndex: 4, toIndex: 2, type: "Success"}]}' <<<"$CHAIN" >"$WORK/nodes.json"
rest -d "@$WORK/nodes.json" "$URL/ruleChain/metadata" >/dev/null
same "the root" "$(rest -X POST "$URL/ruleChain/$(jq -r .id.id <<<"$CHAIN")/root" | jq .root)" true
# Only what is stored is counted, and only of devices that are there.
status_of "$MUSTER" provision e2e/thingsboard.yaml create --quiet --out "$WORK/record" \
    --set "platform.devices=[mqtt://127.0.0.1:$PORT]" \
    --set "provision={ url: 'http://127.0.0.1:$REST', user: tenant@thingsboard.org, password: '\${file:$WORK/password}' }"
check "devices are created" grep -F 'device: 20 created' "$WORK/out"
FROM=$(date +%s%3N)
status_of "$MUSTER" run e2e/thingsboard.yaml --quiet --out "$WORK/counted" \
    --set "platform.devices=[mqtt://127.0.0.1:$PORT]"
same "exit code" "$STATUS" 0
KEY=$(read_series keys/timeseries | jq -r '.[]')
same "the series" "$KEY" messageCount_node
# The last second's count is stored with the next tick: it is asked for until it is there.
POINTS='[]'
END=$((SECONDS + 10))
until [ "$(jq '.[-1].value' <<<"$POINTS")" = 0 ] || [ "$SECONDS" -ge "$END" ]; do
    POINTS=$(read_series "values/timeseries?keys=$KEY&startTs=$FROM&endTs=9999999999999&limit=999999&agg=NONE&orderBy=ASC" |
        jq -c ".[\"$KEY\"] | map({ts, value: (.value | tonumber)})")
done
same "counted by seconds, in all" "$(jq 'map(.value) | add' <<<"$POINTS")" \
    "$(value "$WORK/counted" '.ledger.uplink | .accepted + .unacknowledged')"
AVERAGE=$(jq 'map(.value) | map(select(. > 0)) | .[1:-1] | add / length | round' <<<"$POINTS")
check "AVG of whole seconds is the rate of 240/s ($AVERAGE)" test "$AVERAGE" -ge 228 -a "$AVERAGE" -le 252
stop "$GATEWAY"

wait "$CALL" "$PATIENT" || true
# within WHAT FILE FILTER LEAST MOST: seconds between two bounds.
within() {
    local seconds
    seconds=$(jq "$3" "$2")
    same "$1, $seconds s in $4 to $5" "$(jq -n "$seconds >= $4 and $seconds <= $5")" true
}
same "a call over HTTP that nobody answers" "$(jq -c "[$(jq .status "$WORK/called.json"), .errorCode]" "$WORK/call.json")" "[503,2]"
within "after half a minute" "$WORK/called.json" .seconds 30 36
same "a call over MQTT that nobody answers" "$(jq -c .answer "$WORK/patient.json")" \
    '["v1/devices/me/rpc/response/1","{\"error\":\"timeout\"}"]'
within "after a minute" "$WORK/patient.json" '.["answered after"]' 59 66
within "a provisioning link is closed after a minute" "$WORK/patient.json" '.["closed after"]' 59 66
finish
