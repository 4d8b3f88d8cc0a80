#!/usr/bin/env bash
# What a consumer of AMQP 1.0 costs beside fe2o3-amqp alone, by turns before one peer; a line of JSON each.
# Usage: bench/amqp.sh AMQP_COST MESSAGES REPETITIONS
AMQP_COST=$(realpath "$1")
readonly AMQP_COST MESSAGES=$2 REPETITIONS=$3
source "$(dirname "$0")/../e2e/lib.sh"

"$AMQP_COST" serve "$MESSAGES" >"$WORK/port" &
STARTED+=("$!")
until_lines 1 . "$WORK/port"
PORT=$(head -1 "$WORK/port")
for ((turn = 0; turn < REPETITIONS; turn++)); do
    timeout 120 "$AMQP_COST" bare "$PORT" "$MESSAGES"
    timeout 120 "$AMQP_COST" muster "$PORT" "$MESSAGES"
done
