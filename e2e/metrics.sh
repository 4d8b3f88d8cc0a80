#!/usr/bin/env bash
# A real Prometheus reads a run, a real InfluxDB 1.6 receives it, and both hold at the end what result.json says:
# e2e/metrics.py compares them by the table of docs/metrics.md. InfluxDB 2 and an OTLP receiver are played by their
# published definitions. Then servers that are away, refuse, or come back, and a port that is taken: each is named at
# once, and none changes the verdict. Without WHOLE=1 it ends after the first run.
source "$(dirname "$0")/lib.sh"
need influxd prometheus python3 curl jq

METRICS=$(free_port)
HTTP=$(free_port)
PROMETHEUS=$(free_port)
MOCK=$(free_port)
readonly METRICS HTTP PROMETHEUS MOCK

# start_influxd: its process id is in INFLUXD; what it holds outlives it.
start_influxd() {
    cat >"$WORK/influxdb.conf" <<CONF
reporting-disabled = true
bind-address = "127.0.0.1:$INFLUX_RPC"
[meta]
  dir = "$WORK/influx/meta"
[data]
  dir = "$WORK/influx/data"
  wal-dir = "$WORK/influx/wal"
[http]
  bind-address = "127.0.0.1:$HTTP"
  auth-enabled = $1
[monitor]
  store-enabled = false
CONF
    influxd -config "$WORK/influxdb.conf" >>"$WORK/influxd.log" 2>&1 &
    INFLUXD=$!
    STARTED+=("$INFLUXD")
    listens "$HTTP"
}

ask_influx() {
    curl -sS -G "http://127.0.0.1:$HTTP/query" --data-urlencode "q=$1" -XPOST >>"$WORK/influx-queries.log"
}

start_prometheus() {
    cat >"$WORK/prometheus.yml" <<YAML
scrape_configs:
  - job_name: muster
    scrape_interval: 1s
    static_configs: [{ targets: ["127.0.0.1:$METRICS"] }]
YAML
    prometheus --config.file="$WORK/prometheus.yml" --storage.tsdb.path="$WORK/prometheus" \
        --web.listen-address="127.0.0.1:$PROMETHEUS" >"$WORK/prometheus.log" 2>&1 &
    STARTED+=("$!")
    listens "$PROMETHEUS"
}

# run NAME ARGUMENT...: a run in which much goes wrong; its exit code is in STATUS, what it says in $WORK/out.
run() {
    status_of "$MUSTER" run "${SCENARIO:-e2e/recount.yaml}" --quiet --out "$WORK/$1" "${@:2}"
}

# code NAME: the exit code of the verdict of a run; on a busy machine it may be that of `invalid`.
code() {
    value "$WORK/$1" '{ pass: 0, fail: 1, invalid: 3, none: 4 }[.verdict.result]'
}

# warned: what the last run printed of warnings and errors.
warned() {
    grep -E '^(warning|error): ' "$WORK/out"
}

# compares WHAT ARGUMENT...: e2e/metrics.py, and what it says where it finds a difference.
compares() {
    local what=$1 said status=0
    shift
    said=$("$PYTHON" e2e/metrics.py "$@" 2>&1) || status=$?
    check "$what ($(tail -1 <<<"$said"))" test "$status" -eq 0
    [ "$status" -eq 0 ] || head -40 <<<"$said"
}

# finds QUERY: waits until Prometheus finds a value.
finds() {
    local latest=$((SECONDS + 15))
    # The server's own answer paces this.
    while [ "$SECONDS" -lt "$latest" ]; do
        if curl -sS -G "http://127.0.0.1:$PROMETHEUS/api/v1/query" --data-urlencode "query=$1" |
            jq -e '.data.result | length > 0' >/dev/null; then return 0; fi
    done
    echo "# not after 15 s"
    return 1
}

INFLUX_RPC=$(free_port)
with_module opentelemetry.proto.metrics.v1.metrics_pb2 'opentelemetry-proto>=1.30,<2'
start_influxd false
ask_influx 'CREATE DATABASE muster'
start_prometheus
DB="http://127.0.0.1:$HTTP?db=muster"
"$PYTHON" e2e/metrics.py mock "$MOCK" "$WORK/otlp.jsonl" "http://127.0.0.1:$HTTP/write?db=v2" >"$WORK/mock.log" 2>&1 &
STARTED+=("$!")
listens "$MOCK"

export OTEL_EXPORTER_OTLP_HEADERS='api-key=s3same%3D'
check "Prometheus looks for a run" finds up
run all --metrics "$METRICS" --influx "$DB" --otlp "http://127.0.0.1:$MOCK"
same "exit code" "$STATUS" "$(code all)"
same "no warning about metrics" "$(grep -c 'warning.*\(InfluxDB\|OTLP\)' "$WORK/out")" 0
check "the last scrape has the final values" finds "last_over_time(muster_run_finished[15m])"
compares "Prometheus holds the result" prometheus "http://127.0.0.1:$PROMETHEUS" "$WORK/all/result.json"
compares "InfluxDB holds the result" influx "http://127.0.0.1:$HTTP" muster "$WORK/all/result.json"
compares "each second is that of the windows" seconds "http://127.0.0.1:$HTTP" muster "$WORK/all/result.json"
compares "events are annotations" events "http://127.0.0.1:$HTTP" muster "$WORK/all/result.json"
compares "panels for Prometheus" dashboard "http://127.0.0.1:$PROMETHEUS" "" "$WORK/all/result.json"
compares "panels for InfluxDB" dashboard "http://127.0.0.1:$HTTP" muster "$WORK/all/result.json"
compares "the OTLP receiver holds the result" otlp "$WORK/otlp.jsonl" "$WORK/all/result.json"
[ -n "${WHOLE:-}" ] || { finish; exit; }

# InfluxDB 2, which a real InfluxDB 1 backs.
ask_influx 'CREATE DATABASE v2'
export INFLUX_TOKEN=t0p-s3cret
run v2 --influx "http://127.0.0.1:$MOCK?org=my%20org&bucket=b"
compares "InfluxDB 2 holds the result" influx "http://127.0.0.1:$HTTP" v2 "$WORK/v2/result.json"
INFLUX_TOKEN=wr0ng run wrong --influx "http://127.0.0.1:$MOCK?org=my%20org&bucket=b"
says "a wrong token is named" "$(warned)" "it answered 401"
says "with the remedy" "$(warned)" "INFLUX_TOKEN"
same "and is not shown" "$(cat "$WORK/out" "$WORK/wrong/result.json" | grep -c wr0ng)" 0
same "nor changes the exit code" "$STATUS" "$(code wrong)"
same "what it lacks is in the result" "$(value "$WORK/wrong" '[.verdict.warnings[] | select(.kind == "metrics-lost")] | length')" 1

# Commands, their replies, and queries.
SCENARIO=scenarios/hono-coap.yaml run downlink --influx "$DB"
compares "commands are those of the result" influx "http://127.0.0.1:$HTTP" muster "$WORK/downlink/result.json"

# The names of the published test, over CoAP and over MQTT.
ask_influx 'CREATE DATABASE coap'
SCENARIO=scenarios/hono-coap.yaml run coap --influx "http://127.0.0.1:$HTTP?db=coap" --influx-names hono-simulator
compares "names of the published test, CoAP" published "http://127.0.0.1:$HTTP" coap "$WORK/coap/result.json" coap
ask_influx 'CREATE DATABASE mqtt'
run mqtt --influx "http://127.0.0.1:$HTTP?db=mqtt" --influx-names hono-simulator
compares "names of the published test, MQTT" published "http://127.0.0.1:$HTTP" mqtt "$WORK/mqtt/result.json" mqtt

# Refusals.
run missing --influx "http://127.0.0.1:$HTTP?db=nowhere"
says "a missing database is named" "$(warned)" 'database not found: \"nowhere\"'
says "with the remedy" "$(warned)" "CREATE DATABASE"
same "and changes no exit code" "$STATUS" "$(code missing)"
says "the result says what is lacking" "$(value "$WORK/missing" '[.verdict.warnings[].detail] | join(" ")')" "InfluxDB at http://127.0.0.1:$HTTP lacks"
same "the ledger closes all the same" "$(value "$WORK/missing" .ledger.uplink.residue)" 0
run taken --metrics "$PROMETHEUS"
same "a taken port ends the run before it begins" "$STATUS" 2
says "and is named" "$(warned)" "--metrics 127.0.0.1:$PROMETHEUS: Address already in use"
says "with the remedy" "$(warned)" "name a free port"
check "without a folder" test ! -e "$WORK/taken"
run secret --influx "http://me:hunter2@127.0.0.1:$HTTP?db=muster"
same "a password in the address is refused" "$STATUS" 2
same "and is not shown" "$(grep -c hunter2 "$WORK/out")" 0

# A server that is away when the run begins, and comes while it goes on, has everything at its end.
stop "$INFLUXD"
"$MUSTER" run e2e/recount.yaml --quiet --out "$WORK/back" --influx "$DB" >"$WORK/back.txt" 2>&1 &
RUN=$!
STARTED+=("$RUN")
until_lines 1 'warning: InfluxDB at' "$WORK/back.txt"
start_influxd false
wait "$RUN" || true
says "a server that is away is named at once" "$(grep -E '^(warning|error): ' "$WORK/back.txt")" "start it, or name the address where it listens"
same "it lacks nothing in the end" "$(value "$WORK/back" '[.verdict.warnings[] | select(.kind == "metrics-lost")] | length')" 0
compares "and holds the result" influx "http://127.0.0.1:$HTTP" muster "$WORK/back/result.json"

# Logins of version 1.
ask_influx "CREATE USER me WITH PASSWORD 'hunter2' WITH ALL PRIVILEGES"
stop "$INFLUXD"
start_influxd true
INFLUX_USERNAME=me INFLUX_PASSWORD=wr0ng run login --influx "$DB"
says "a wrong password is named" "$(warned)" "it answered 401"
INFLUX_USERNAME=me INFLUX_PASSWORD=hunter2 run login-right --influx "$DB"
same "a right one is taken" "$(grep -c 'warning.*InfluxDB' "$WORK/out")" 0
finish
