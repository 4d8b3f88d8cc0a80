# One node of Apache Kafka 3.9 on loopback, for scripts that have sourced e2e/lib.sh.

# java_of CLASS ARGUMENT...: runs a program of Kafka's.
java_of() {
    exec java -Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
        -cp 'target/peers/kafka/lib/*' "$@"
}

# Further listeners, each NAME:PROTOCOL, and users of SCRAM as Kafka's own tool takes them; a script may name some.
declare -p LISTENERS >/dev/null 2>&1 || LISTENERS=()
declare -p USERS >/dev/null 2>&1 || USERS=()
declare -A PORTS=()

# listener NAME: the address of a further listener.
listener() {
    printf '127.0.0.1:%s' "${PORTS[$1]}"
}

# start_kafka [LINE...]: starts the node at the port KAFKA, with further lines of its configuration; its process id is
# in NODE.
start_kafka() {
    local controller it more= protocols= users=()
    bash e2e/peers/fetch.sh kafka >"$WORK/build.log"
    KAFKA=$(free_port)
    controller=$(free_port)
    for it in "${LISTENERS[@]}"; do
        PORTS[${it%:*}]=$(free_port)
        more+=",${it%:*}://$(listener "${it%:*}")"
        protocols+=",$it"
    done
    for it in "${USERS[@]}"; do users+=(--add-scram "$it"); done
    cat >"$WORK/kafka.properties" <<END
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller
listeners=PLAINTEXT://127.0.0.1:$KAFKA,CONTROLLER://127.0.0.1:$controller$more
advertised.listeners=PLAINTEXT://127.0.0.1:$KAFKA$more
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT$protocols
controller.listener.names=CONTROLLER
log.dirs=$WORK/kafka
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
END
    printf '%s\n' "$@" >>"$WORK/kafka.properties"
    (java_of kafka.tools.StorageTool format -t MkU3OEVBNTcwNTJENDM2Qk -c "$WORK/kafka.properties" "${users[@]}") \
        >"$WORK/format.log" 2>&1
    java_of kafka.Kafka "$WORK/kafka.properties" >"$WORK/kafka.log" 2>&1 &
    NODE=$!
    STARTED+=("$NODE")
    for _ in $(seq 60); do
        timeout 2 kcat -b "127.0.0.1:$KAFKA" -L >"$WORK/metadata" 2>&1 && return 0
    done
    echo "not ok - Kafka does not answer"
    exit 1
}

# ends TOPIC PARTITIONS: the sum of the ends of the topic's partitions, 0 where there is no such topic.
ends() {
    local partition asked=()
    for ((partition = 0; partition < $2; partition++)); do
        asked+=(-t "$1:$partition:-1")
    done
    { kcat -b "127.0.0.1:$KAFKA" -Q "${asked[@]}" 2>/dev/null || true; } | awk '{ sum += $NF } END { print sum + 0 }'
}

# partitions TOPIC: how many it has.
partitions() {
    kcat -b "127.0.0.1:$KAFKA" -L -t "$1" | grep -c 'partition [0-9]*, leader'
}

# freeze_kafka SECONDS: Kafka stands still until a client of others has waited for it in vain, which takes so long.
freeze_kafka() {
    kill -STOP "$NODE"
    kcat -b "127.0.0.1:$KAFKA" -L -m "$1" >"$WORK/frozen-answer" 2>&1 || touch "$WORK/was-frozen"
    kill -CONT "$NODE"
}
