# Hono's HTTP and MQTT adapters of 1.2.3 on loopback, for scripts that have sourced e2e/lib.sh: the registry of Hono 2.6
# (e2e/hono), Artemis as the messaging network over AMQP 1.0, and both adapters, each at free ports. No Kafka, no commands: the
# service behind those is on Maven Central in no version that 1.2.3 can ask.

readonly LEGACY_BUILT=$PWD/target/peers/hono-legacy

# start_broker [BYTES]: Artemis, whose addresses hold so many bytes before senders get no more credit (no limit by default). It
# keeps its ports and its journal over restarts. Its process id is the last line of $WORK/brokers.
start_broker() {
    AMQP=${AMQP:-$(free_port)}
    COUNTS=${COUNTS:-$(free_port)}
    java -Xmx192m -XX:+UseSerialGC -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
        -cp 'target/peers/artemis/lib/*' e2e/hono-legacy/Broker.java "$AMQP" "$COUNTS" "$WORK/artemis" "${1:--1}" >>"$WORK/artemis.log" 2>&1 &
    STARTED+=("$!")
    echo "$!" >>"$WORK/brokers"
    # Nobody needs to read that it was killed.
    disown
    curl -sf --retry 60 --retry-delay 1 --retry-all-errors "http://127.0.0.1:$COUNTS/" >"$WORK/counts" 2>&1 ||
        { echo "not ok - Artemis is not ready"; tail -30 "$WORK/artemis.log"; exit 1; }
}

# restart_broker [BYTES]: ends Artemis as a crash would, and starts it anew on the same journal; returns when the adapters have it
# again.
restart_broker() {
    local pid
    pid=$(tail -1 "$WORK/brokers")
    kill -9 "$pid"
    until ! kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
    start_broker "${1:--1}"
    xargs -n 1 curl -sf -o /dev/null --retry 60 --retry-delay 1 --retry-all-errors <"$WORK/ready" 2>/dev/null
}

# counted_by_broker QUEUE FIELD: what Artemis counted of a queue: 2 is added, 3 acknowledged, 4 held.
counted_by_broker() {
    curl -sf "http://127.0.0.1:$COUNTS/" | awk -v "queue=$1" -v "field=$2" '$1 == queue { sum += $field } END { print sum + 0 }'
}

# legacy_asks SERVICE PORT: how an adapter of 1.x asks another service.
legacy_asks() {
    printf 'hono.%s.%s\n' "$1" host=127.0.0.1 "$1" "port=$2" "$1" username=service "$1" "password=$HONO_PASSWORD"
}

# start_legacy_adapter NAME PORT: an adapter of 1.x; its process id is in SERVICE.
start_legacy_adapter() {
    local name=$1 port=$2 service health
    health=$(free_port)
    {
        # The health server of 1.x takes no literal address.
        printf 'hono.healthCheck.%s\n' insecurePortEnabled=true insecurePortBindAddress=localhost "insecurePort=$health"
        printf "hono.$name.%s\n" insecurePortEnabled=true insecurePortBindAddress=127.0.0.1 "insecurePort=$port" authenticationRequired=true
        echo hono.app.maxInstances=1
        legacy_asks messaging "$AMQP"
        legacy_asks command "$AMQP"
        for service in tenant registration credentials deviceConnection; do
            legacy_asks "$service" "$REGISTRY_AMQP"
        done
        printf 'hono.%s.requestTimeout=2000\n' tenant registration credentials
    } >"$WORK/legacy-$name.properties"
    java -Xmx256m -XX:+UseSerialGC --add-opens java.base/java.lang=ALL-UNNAMED -cp "$LEGACY_BUILT/$name/lib/*" \
        "org.eclipse.hono.adapter.$name.impl.Application" "--spring.config.location=file:$WORK/legacy-$name.properties" \
        >"$WORK/legacy-$name.log" 2>&1 &
    SERVICE=$!
    STARTED+=("$SERVICE")
    curl -sf --retry 120 --retry-delay 1 --retry-all-errors "http://localhost:$health/readiness" >/dev/null 2>&1 ||
        { echo "not ok - Hono's $name adapter is not ready"; tail -30 "$WORK/legacy-$name.log"; exit 1; }
    echo "http://localhost:$health/readiness" >>"$WORK/ready"
}

# start_legacy_hono [BYTES]: all of it, the broker first; BYTES as of start_broker. Addresses are in HONO_HTTP and HONO_MQTT.
start_legacy_hono() {
    bash e2e/hono/build.sh >"$WORK/hono-build.log" 2>&1 || { cat "$WORK/hono-build.log"; exit 1; }
    bash e2e/peers/fetch.sh artemis >"$WORK/artemis-build.log"
    bash e2e/hono-legacy/build.sh >"$WORK/legacy-build.log" 2>&1 || { cat "$WORK/legacy-build.log"; exit 1; }
    # Hono 2.6 names a Kafka that nobody asks: its registry tells of changes, and nobody listens.
    KAFKA=$(free_port)
    start_registry
    start_broker "${1:--1}"
    local port
    port=$(free_port)
    start_legacy_adapter http "$port"
    HONO_HTTP=http://127.0.0.1:$port
    port=$(free_port)
    start_legacy_adapter mqtt "$port"
    HONO_MQTT=mqtt://127.0.0.1:$port
}
