#!/usr/bin/env bash
# What a consumer of Kafka costs beside rdkafka alone, by turns on one full topic of a real broker; a line of JSON each.
# Usage: bench/kafka.sh KAFKA_COST MESSAGES REPETITIONS
KAFKA_COST=$(realpath "$1")
readonly KAFKA_COST MESSAGES=$2 REPETITIONS=$3
source "$(dirname "$0")/../e2e/lib.sh"
source e2e/peers/kafka/node.sh
need java kcat mvn

start_kafka auto.create.topics.enable=false
"$KAFKA_COST" fill "127.0.0.1:$KAFKA" "$MESSAGES" >"$WORK/fill.log"
for ((turn = 0; turn < REPETITIONS; turn++)); do
    # A group that nobody was in begins with the first message.
    timeout 120 "$KAFKA_COST" bare "127.0.0.1:$KAFKA" "$MESSAGES" "bare-$turn"
    timeout 120 "$KAFKA_COST" muster "127.0.0.1:$KAFKA" "$MESSAGES" "muster-$turn"
done
