#!/usr/bin/env bash
# ThingsBoard against others on both sides. `kind: thingsboard` through a real Mosquitto to a server end made
# with Paho, which checks each body and counts: devices by their tokens, gateways that announce theirs, and
# what a rule chain that keeps every tenth message hands on. Then Paho devices, a gateway and a consumer
# against Muster's gateway: what they hear is what ThingsBoard says, and their counts equal the account. At last
# the counts that the gateway's rule engine stores each second, read by REST, against a run's ledger.
source "$(dirname "$0")/lib.sh"
need mosquitto python3 jq curl

python3 -m venv "$WORK/venv"
"$WORK/venv/bin/pip" install --quiet --disable-pip-version-check 'paho-mqtt>=2,<3'

# broker NAME: a Mosquitto that writes down who logs in; PORT, BROKER.
broker() {
    PORT=$(free_port)
    { sed "s/^listener 1883 /listener $PORT /" deploy/mosquitto/mosquitto.conf; echo "log_type notice"; } >"$WORK/$1.conf"
    mosquitto -c "$WORK/$1.conf" 2>"$WORK/$1.log" &
    BROKER=$!
    STARTED+=("$BROKER")
    listens "$PORT"
}

# run NAME [KEY]: a scenario through a broker, whose address goes to a key too, to the server end made with
# Paho; its counts are in NAME.json.
run() {
    broker "$1"
    mkfifo "$WORK/$1.end"
    "$WORK/venv/bin/python" e2e/thingsboard.py server "$PORT" <"$WORK/$1.end" >"$WORK/$1.txt" &
    local server=$!
    STARTED+=("$server")
    exec 9>"$WORK/$1.end"
    until_lines 1 ready "$WORK/$1.txt"
    status_of "$MUSTER" run "e2e/$1.yaml" --quiet "${COUNTS_ONLY[@]}" --out "$WORK/$1" \
        --set "platform.devices=[mqtt://127.0.0.1:$PORT]" ${2:+--set "$2=mqtt://127.0.0.1:$PORT"}
    [ "$STATUS" -lt 2 ] || cat "$WORK/out"
    exec 9>&-
    wait "$server"
    tail -1 "$WORK/$1.txt" >"$WORK/$1.json"
    stop "$BROKER"
}

# counted NAME FILTER: a count of the server end.
counted() {
    jq -r "$2 // 0" "$WORK/$1.json"
}

run thingsboard
S='.ledger.by_stream'
same "exit code" "$STATUS" 0
same "each body is right" "$(counted thingsboard '.wrong | length')" 0
[ "$(counted thingsboard '.wrong | length')" -eq 0 ] || jq -c '.wrong[0:3]' "$WORK/thingsboard.json"
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
same "exit code, since some were lost" "$STATUS" 1
same "each body is right" "$(counted thingsboard-gateway '.wrong | length')" 0
[ "$(counted thingsboard-gateway '.wrong | length')" -eq 0 ] || jq -c '.wrong[0:3]' "$WORK/thingsboard-gateway.json"
same "devices announced" "$(counted thingsboard-gateway .announced)" 50
same "links" "$(grep -o "u'GW[0-9]*'" "$WORK/thingsboard-gateway.log" | sort -u | paste -sd' ')" \
    "u'GW00000000' u'GW00000001' u'GW00000002'"
same "sent" "$(value "$WORK/thingsboard-gateway" "$U.sent")" "$(counted thingsboard-gateway .gateway)"
same "accepted" "$(value "$WORK/thingsboard-gateway" "$U.accepted")" 1000
same "lost = kept by the rule chain" "$(value "$WORK/thingsboard-gateway" "$U.lost")" \
    "$(counted thingsboard-gateway .kept)"
same "arrived = the rest" "$(value "$WORK/thingsboard-gateway" "$U.arrived")" 900
same "residue" "$(value "$WORK/thingsboard-gateway" "$U.residue")" 0

PORT=$(free_port)
printf '%s:\n' consumer new old gateway >"$WORK/tokens"
"$MUSTER" gateway --listen "127.0.0.1:$PORT" --dialect thingsboard --users "$WORK/tokens" >"$WORK/gateway.txt" 2>&1 &
GATEWAY=$!
STARTED+=("$GATEWAY")
listens "$PORT"
"$WORK/venv/bin/python" e2e/thingsboard.py devices "$PORT" >"$WORK/devices.json"
kill -INT "$GATEWAY"
wait "$GATEWAY" || true
sed -n '/^{/,$p' "$WORK/gateway.txt" >"$WORK/account.json"
said() { jq -r ".said[\"$1\"]" "$WORK/devices.json"; }
for WHAT in flat list attributes connect gateway disconnect "still open"; do
    same "accepted: $WHAT" "$(said "$WHAT")" 0
done
same "no JSON, MQTT 5" "$(said "no json")" 153
same "no JSON, MQTT 3.1.1" "$(said "old, no json")" closed
same "a topic that is nobody's" "$(said "nobody's topic")" 144
same "a token that is nobody's" "$(jq .stranger "$WORK/devices.json")" 135
same "surfaced" "$(jq -c '[.got[] | join(" ")]' "$WORK/devices.json")" \
    "$(jq -nc '["thingsboard/new/attributes {\"b\":true} paho",
        "thingsboard/new/telemetry {\"longKey\":73} ", "thingsboard/new/telemetry {\"still\":\"open\"} ",
        "thingsboard/old/attributes {\"model\":{\"a\":[1]}} ",
        "thingsboard/old/telemetry [{\"ts\":1600000000000,\"values\":{\"a\":1}},{\"b\":\"x\"}] ",
        "thingsboard/one/telemetry {\"one\":[{\"ts\":1,\"values\":{\"a\":1}}],\"two\":[{\"a\":2}]} ",
        "thingsboard/two/telemetry {\"one\":[{\"ts\":1,\"values\":{\"a\":1}}],\"two\":[{\"a\":2}]} "]')"
same "uplinks, announcements apart" "$(jq -c '[.received, .announced, .["announced-gone"], .unreadable, .["unknown-topics"]]' "$WORK/account.json")" "[9,1,1,2,1]"
same "tokens refused" "$(jq -c .refused "$WORK/account.json")" '{"135":1}'

PORT=$(free_port)
REST=$(free_port)
echo open-sesame >"$WORK/password"
"$MUSTER" gateway --listen "127.0.0.1:$PORT" --dialect thingsboard --rest "127.0.0.1:$REST" \
    --rest-token "$WORK/password" --rest-gateway node >"$WORK/counting.txt" 2>&1 &
GATEWAY=$!
STARTED+=("$GATEWAY")
listens "$PORT"
listens "$REST"
FROM=$(date +%s%3N)
status_of "$MUSTER" run e2e/thingsboard.yaml --quiet "${COUNTS_ONLY[@]}" --out "$WORK/counted" \
    --set "platform.devices=[mqtt://127.0.0.1:$PORT]"
same "exit code" "$STATUS" 0
URL="http://127.0.0.1:$REST/api"
TOKEN=$(curl -sS -H 'Content-Type: application/json' -d '{"username":"tenant@thingsboard.org","password":"open-sesame"}' \
    "$URL/auth/login" | jq -r .token)
SERIES="$URL/plugins/telemetry/TENANT/13814000-1dd2-11b2-8080-808080808080"
read_series() { curl -sS -H "X-Authorization: Bearer $TOKEN" "$SERIES/$1"; }
KEY=$(read_series keys/timeseries | jq -r '.[]')
same "the series" "$KEY" messageCount_node
# The last second's count is stored with the next tick: it is asked for until it is there.
POINTS='[]'
END=$((SECONDS + 10))
until [ "$(jq '.[-1].value' <<<"$POINTS")" = 0 ] || [ "$SECONDS" -ge "$END" ]; do
    POINTS=$(read_series "values/timeseries?keys=$KEY&startTs=$FROM&endTs=9999999999999&limit=999999&agg=NONE&orderBy=ASC" |
        jq -c ".[\"$KEY\"] | map({ts, value: (.value | tonumber)})")
done
same "counted each second, in all" "$(jq 'map(.value) | add' <<<"$POINTS")" \
    "$(value "$WORK/counted" '.ledger.uplink | .accepted + .unacknowledged')"
AVERAGE=$(jq 'map(.value) | map(select(. > 0)) | .[1:-1] | add / length | round' <<<"$POINTS")
check "AVG of whole seconds is the rate of 240/s ($AVERAGE)" test "$AVERAGE" -ge 228 -a "$AVERAGE" -le 252
stop "$GATEWAY"
finish
