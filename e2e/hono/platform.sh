# A whole Eclipse Hono on loopback, for scripts that have sourced e2e/lib.sh and e2e/peers/kafka/node.sh: Kafka, the
# registry, the command router and the CoAP adapter, each at free ports, its data in $WORK. Hono's own are the adapter, the
# router's logic, the management API and what adapters ask the registry by; ours are the data behind them, in memory, and
# who may ask (the sources beside this file).

readonly HONO_BUILT=$PWD/target/peers/hono
readonly HONO_PASSWORD=services-of-one-platform

# common PORT: what every service is told; PORT is that of its health and metrics.
common() {
    cat <<END
platform.password=$HONO_PASSWORD
quarkus.http.host=127.0.0.1
quarkus.http.port=$1
quarkus.log.category."org.apache.kafka".level=ERROR
hono.app.amqpMessagingDisabled=true
hono.app.maxInstances=1
hono.kafka.commonClientConfig."bootstrap.servers"=127.0.0.1:$KAFKA
END
}

# asks SERVICE PORT: how a service asks another one.
asks() {
    cat <<END
hono.$1.host=127.0.0.1
hono.$1.port=$2
hono.$1.username=service
hono.$1.password=$HONO_PASSWORD
hono.$1.requestTimeout=2000
END
}

# listening WHERE PORT: the address of one of a service's own servers.
listening() {
    printf 'hono.%s.%s\n' "$1" insecurePortEnabled=true "$1" insecurePortBindAddress=127.0.0.1 "$1" "insecurePort=$2"
}

# start_service NAME HEAP PORT: starts what $WORK/NAME.properties configures and waits until it says that it is ready; its
# process id is in SERVICE. It shares its machine with the load, which must not be the
# one that waits for a processor; where others work there too (SHARED), they would take it all from a service that yields.
start_service() {
    local yielding=10
    [ -z "${SHARED:-}" ] || yielding=0
    nice -n "$yielding" java "-Xmx$2" -XX:+UseSerialGC -Dvertx.disableDnsResolver=true -Dvertx.json.base64=legacy \
        "-Dquarkus.config.locations=$WORK/$1.properties" -jar "$HONO_BUILT/$1/quarkus-app/quarkus-run.jar" >"$WORK/$1.log" 2>&1 &
    SERVICE=$!
    STARTED+=("$SERVICE")
    curl -sf --retry 120 --retry-delay 1 --retry-all-errors "http://127.0.0.1:$3/readiness" >/dev/null 2>&1 ||
        { echo "not ok - Hono's $1 is not ready"; tail -30 "$WORK/$1.log"; exit 1; }
}

start_registry() {
    REGISTRY_AMQP=$(free_port)
    REGISTRY=$(free_port)
    local health
    health=$(free_port)
    {
        common "$health"
        listening registry.amqp "$REGISTRY_AMQP"
        listening registry.http "$REGISTRY"
        echo hono.registry.http.authenticationRequired=false
    } >"$WORK/registry.properties"
    start_service registry 160m "$health"
}

start_router() {
    ROUTER_AMQP=$(free_port)
    local health
    health=$(free_port)
    {
        common "$health"
        listening commandRouter.amqp "$ROUTER_AMQP"
        asks tenant "$REGISTRY_AMQP"
        asks registration "$REGISTRY_AMQP"
    } >"$WORK/router.properties"
    start_service router 160m "$health"
}

# start_adapter: its address over DTLS is in COAPS, that of its metrics in METRICS, its process id in ADAPTER. Its heap also holds
# each exchange for the 247 s of its lifetime, so that long runs at hundreds a second want more of it: ADAPTER_HEAP.
start_adapter() {
    local port health service
    port=$(free_port)
    health=$(free_port)
    {
        common "$health"
        cat <<END
hono.coap.bindAddress=127.0.0.1
hono.coap.port=$port
hono.coap.maxConnections=20000
hono.connectionEvents.producer=events
END
        for service in tenant registration credentials; do
            asks "$service" "$REGISTRY_AMQP"
        done
        asks commandRouter "$ROUTER_AMQP"
    } >"$WORK/adapter.properties"
    start_service adapter "${ADAPTER_HEAP:-384m}" "$health"
    ADAPTER=$SERVICE
    COAPS=coaps://127.0.0.1:$port
    METRICS=http://127.0.0.1:$health/prometheus
}

# start_hono: all of it, Kafka first.
start_hono() {
    bash e2e/hono/build.sh >"$WORK/hono-build.log" 2>&1 || { cat "$WORK/hono-build.log"; exit 1; }
    start_kafka auto.create.topics.enable=true num.partitions=1
    start_registry
    start_router
    start_adapter
}
