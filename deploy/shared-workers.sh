#!/usr/bin/env bash
# A pool of workers in front of one bottleneck: each worker carries 300/s, all of them together 400/s.
#   shared-workers.sh set MUSTER COUNT   starts the pool anew with that number of workers; 0 ends it
#   shared-workers.sh actual             prints the number of workers that are ready
set -euo pipefail

PORT=18850
STATE=${TMPDIR:-/tmp}/muster-shared-workers-$UID

# Whether a process is a pool that runs. One that has ended has no command line, even if nobody waited for it.
is_pool() {
    tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline" | grep -q "gateway --listen 127.0.0.1:$PORT "
}

# The process and the number of workers of a pool that runs.
PID=0
COUNT=0
if [ -r "$STATE" ]; then
    read -r PID COUNT <"$STATE"
    if ! is_pool "$PID"; then PID=0 COUNT=0; fi
fi

case ${1:-} in
set)
    MUSTER=$2
    WANTED=$3
    if [ "$PID" -ne 0 ]; then
        kill "$PID"
        for _ in {1..200}; do
            if ! is_pool "$PID"; then break; fi
            sleep 0.05
        done
        if is_pool "$PID"; then
            echo "the pool (process $PID) goes on 10 s after SIGTERM: end it" >&2
            exit 1
        fi
    fi
    rm -f "$STATE"
    if [ "$WANTED" -eq 0 ]; then exit; fi
    RATE=$((WANTED * 300 < 400 ? WANTED * 300 : 400))
    "$MUSTER" gateway --listen "127.0.0.1:$PORT" --threads 1 \
        --behaviour "capacity: { rate: $RATE/s, service: fixed }, queue: 30, full: reject" >/dev/null 2>&1 &
    echo "$! $WANTED" >"$STATE"
    ;;
actual)
    if ! (: <"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; then COUNT=0; fi
    echo "$COUNT"
    ;;
*)
    echo "usage: $0 set MUSTER COUNT | actual" >&2
    exit 2
    ;;
esac
