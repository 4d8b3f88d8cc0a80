#!/usr/bin/env bash
# ThingsBoard's own published clients for Python against the gateway's REST API: logins, devices one by one and by bulk
# import, latest and historic series, commands, and rule chains that are exported and imported. Then a gateway is killed
# while one of them creates devices: all that was answered is in its store, and all that was seen to be stored.
source "$(dirname "$0")/lib.sh"
need python3 jq

with_module 'paho.mqtt.enums, tb_ce_client, tb_rest_client' 'paho-mqtt>=2,<3' tb-ce-client==4.4.0 tb-rest-client==4.4
echo open-sesame >"$WORK/password"

# start NAME: a gateway with its store in NAME.redb; its addresses are PORT and URL.
start() {
    PORT=$(free_port)
    local rest
    rest=$(free_port)
    "$MUSTER" gateway --listen "127.0.0.1:$PORT" --dialect thingsboard --rest "127.0.0.1:$rest" --only-provisioned \
        --rest-token "$WORK/password" --store "$WORK/$1.redb" >"$WORK/$1.txt" 2>&1 &
    GATEWAY=$!
    STARTED+=("$GATEWAY")
    listens "$PORT"
    listens "$rest"
    URL="http://127.0.0.1:$rest"
}

# with MODE ARGUMENT...: the clients in that mode.
with() {
    "$PYTHON" e2e/thingsboard_clients.py "$@"
}

for CLIENT in ce rest; do
    start "$CLIENT"
    with calls "$CLIENT" "$URL" "$PORT" open-sesame >"$WORK/done.json" || echo '{}' >"$WORK/done.json"
    done_is() { same "$CLIENT: $1" "$(jq -c ".[\"$1\"]" "$WORK/done.json")" "$2"; }
    done_is authority '"TENANT_ADMIN"'
    done_is created '["d","default"]'
    done_is token '"secret"'
    done_is "created again" 400
    done_is imported '[20,0,0]'
    done_is "second page" '[6,21,false]'
    done_is "found by name" '"b7"'
    done_is "deleted again" 404
    done_is latest '{"n":[[5,"5"]],"on":[[5,"true"]]}'
    done_is "latest, strict" '{"n":[[5,5]]}'
    done_is history '{"n":[[1,1],[2,2],[3,3],[4,4]]}'
    done_is newest '{"n":[[5,"5"]]}'
    done_is counted '{"n":[[5,5]]}'
    done_is command '{"method":"setGpio","params":{"pin":7}}'
    done_is replied "\"{'on': True}\""
    done_is one-way 200
    done_is "to nobody" 404
    done_is "imported as it was" '["StaleObjectStateException"]'
    done_is "imported chain" '["counting",false,null]'
    done_is "its nodes" '["TbMsgTypeSwitchNode","TbMsgTimeseriesNode","TbMsgAttributesNode","TbMsgCountNode"]'
    done_is "made root" true
    done_is "deleted as root" 400
    done_is "put back" '"Root Rule Chain"'
    done_is deleted 200
    done_is "after logout" 401
    stop "$GATEWAY"
done

start killed
POINTS=$(with send "$URL" "$PORT" open-sesame)
with create "$URL" open-sesame "$WORK/answered" &
CREATOR=$!
STARTED+=("$CREATOR")
until_lines 100 '^k' "$WORK/answered"
kill -9 "$GATEWAY"
wait "$GATEWAY" "$CREATOR" 2>/dev/null || true
start killed
with read "$URL" open-sesame "$WORK/answered" >"$WORK/read.json"
same "devices that were answered are there after kill -9" "$(jq .kept "$WORK/read.json")" "$(wc -l <"$WORK/answered")"
check "and no more than one whose answer was on its way" test "$(jq .more "$WORK/read.json")" -le 1
same "points that were stored are there after kill -9" "$(with stored "$URL" open-sesame)" "$POINTS"
stop "$GATEWAY"
finish
