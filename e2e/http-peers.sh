#!/usr/bin/env bash
# Devices over HTTP against servers that others wrote: what a run counted is compared with what the server did.
# HTTP_PEERS chooses among python, node and nginx; python is the default, and needs nothing else.
source "$(dirname "$0")/lib.sh"

readonly PEERS=${HTTP_PEERS:-python}
readonly HERE=e2e/peers/http
readonly MESSAGES=400
need "$MUSTER" jq python3

cat >"$WORK/api.yaml" <<'SCENARIO'
name: http-peers
platform: { kind: http, devices: "http://127.0.0.1:1" }
fleet:
  - count: 20
    streams:
      - name: readings
        rate: 200/s
        path: "/api/devices/${id}/readings"
        headers: { x-site: "site-${index}" }
        payload: { template: '{"at":${due_ms},"id":"${stamp}"}' }
        success: [ 201 ]
        answer-id: { pointer: /reading/id }
phases: { warm-up: 0s, measure: 2s }
slo: { failure-ratio: 0, connected: any, disconnects: any }
SCENARIO

# serve COMMAND...: starts a server on PORT; what it says at its end is in $WORK/served.
serve() {
    "$@" >"$WORK/served" 2>"$WORK/served.err" &
    SERVER=$!
    STARTED+=("$SERVER")
    listens "$PORT"
}

# served WHAT: ends the server; it has read as many messages as were sent.
served() {
    kill -TERM "$SERVER"
    wait "$SERVER" || true
    same "$1: messages that the server read" "$(cut -d' ' -f1 "$WORK/served")" "$MESSAGES"
}

# run NAME OPTION...: a run towards PORT, which passes; its result is in RESULT.
run() {
    local name=$1 status=0
    shift
    RESULT=$WORK/$name/result.json
    "$MUSTER" run "$WORK/api.yaml" --set "platform.devices=http://127.0.0.1:$PORT" --quiet --out "$WORK/$name" "$@" \
        >"$WORK/$name.txt" 2>&1 || status=$?
    [ "$status" -eq 0 ] || cat "$WORK/$name.txt"
    same "$name: the verdict" "$status" 0
    same "$name: due, accepted, residue" \
        "$(jq -r '.ledger.uplink | "\(.scheduled) \(.accepted) \(.residue)"' "$RESULT")" "$MESSAGES $MESSAGES 0"
}

# ends: why connections ended, and how often.
ends() {
    jq -c .links.disconnects "$RESULT"
}

python() {
    serve python3 "$HERE/server.py" "$PORT" HTTP/1.1
    run python
    served python
    same "python: ends of connections" "$(ends)" '{}'
    serve python3 "$HERE/server.py" "$PORT" HTTP/1.0
    run python-1.0
    served python-1.0
    same "python-1.0: each answer ends its connection" "$(ends)" "{\"between-requests\":$MESSAGES}"
}

node() {
    need node
    serve command node "$HERE/server.js" "$PORT"
    run node
    served node
    serve command node "$HERE/server.js" "$PORT"
    run node-pipelined --set 'fleet.client={ http: { pipelining: 4 } }'
    served node-pipelined
}

# nginx says nothing of its own: what it read stands in its log.
nginx() {
    need nginx
    authority
    certificate server server
    TLS=$(free_port)
    cat >"$WORK/nginx.conf" <<CONF
daemon off;
pid $WORK/nginx.pid;
error_log $WORK/nginx.err;
events { }
http {
    log_format counted '\$scheme \$request_method \$status \$request_length';
    access_log $WORK/access.log counted;
    client_body_temp_path $WORK/bodies;
    proxy_temp_path $WORK/proxied;
    fastcgi_temp_path $WORK/fastcgi;
    uwsgi_temp_path $WORK/uwsgi;
    scgi_temp_path $WORK/scgi;
    keepalive_requests 10;
    server {
        listen 127.0.0.1:$PORT;
        listen 127.0.0.1:$TLS ssl;
        ssl_certificate $WORK/server.pem;
        ssl_certificate_key $WORK/server.key;
        location /api/ { default_type application/json; return 201 '{"reading":{"id":"x"}}'; }
    }
}
CONF
    serve command nginx -c "$WORK/nginx.conf"
    run nginx
    # It closes each connection behind its tenth request, and says so.
    same "nginx: ends of connections" "$(ends)" '{"between-requests":40}'
    run nginx-tls --set "platform.devices=https://localhost:$TLS" --set "platform.tls={ ca: $WORK/ca.pem }"
    kill -TERM "$SERVER"
    wait "$SERVER" || true
    for scheme in http https; do
        same "$scheme: messages in the log of nginx" "$(grep -c "^$scheme POST 201 " "$WORK/access.log")" "$MESSAGES"
    done
}

for peer in $PEERS; do
    PORT=$(free_port)
    "$peer"
done
finish
