#!/usr/bin/env bash
# What a run sees of a real PostgreSQL and a real Mosquitto under load equals what pidstat sees in the same time, within
# 5 %: CPU of both, and memory. Memory of PostgreSQL is compared twice: that of one of its processes with pidstat, and that
# of all with the kernel's proportional shares, since pidstat counts a shared page in each process.
source "$(dirname "$0")/lib.sh"
need mosquitto jq python3 pidstat setpriv
BIN=${POSTGRES:-$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -1)}
need "$BIN/postgres" "$BIN/initdb" "$BIN/pgbench" "$BIN/pg_isready"
SECONDS_HALF=${SECONDS_HALF:-14}
readonly CLUSTER=$WORK/cluster CLIENTS=4

# postgres_user COMMAND...: as a user whom PostgreSQL accepts; in place of this shell.
postgres_user() {
    [ "$(id -u)" -eq 0 ] || exec "$@"
    exec setpriv --reuid=postgres --regid=postgres --init-groups "$@"
}

# start_postgres: a cluster of its own with the tables of pgbench; POSTMASTER, PGPORT.
start_postgres() {
    export PGHOST=127.0.0.1 PGUSER=postgres PGDATABASE=postgres PGPORT
    PGPORT=$(free_port)
    chmod 711 "$WORK"
    mkdir "$CLUSTER"
    [ "$(id -u)" -ne 0 ] || chown postgres "$CLUSTER"
    (postgres_user "$BIN/initdb" -D "$CLUSTER" -U postgres -A trust --no-sync) >"$WORK/initdb.log"
    (postgres_user "$BIN/postgres" -D "$CLUSTER" -p "$PGPORT" -k "$CLUSTER" -c listen_addresses=127.0.0.1 \
        -c shared_buffers=64MB -c autovacuum=off) >"$WORK/postgres.log" 2>&1 &
    POSTMASTER=$!
    STARTED+=("$POSTMASTER")
    listens "$PGPORT"
    until "$BIN/pg_isready" --quiet --timeout=20; do kill -0 "$POSTMASTER"; done
    "$BIN/pgbench" --initialize --quiet --scale=4 2>"$WORK/tables.log"
}

# watched_window PIDS FOLDER: samples these processes each second, and their shares of memory in the middle.
watched_window() {
    local pids=$1 out=$2
    cat <<SHELL
export LC_ALL=C; pidstat -u -r -h -p $pids 1 $SECONDS_HALF >$out/first
for pid in $(tr , ' ' <<<"$pids"); do sed "s/^/\$pid /" /proc/\$pid/smaps_rollup; done >$out/shares
pidstat -u -r -h -p $pids 1 $SECONDS_HALF >$out/second
SHELL
}

# seen COLUMN PID...: the mean of a column of pidstat, summed over these processes.
seen() {
    python3 - "$WORK" "$@" <<'PYTHON'
import sys

folder, column, pids = sys.argv[1], sys.argv[2], set(sys.argv[3:])
sums, seconds = 0.0, set()
for part in "first", "second":
    names = []
    for line in open(f"{folder}/{part}"):
        words = line.lstrip("# ").split()
        if "PID" in words:
            names = words
        elif len(words) >= len(names) > 0 and words[names.index("PID")] in pids:
            sums += float(words[names.index(column)])
            seconds.add((part, words[0]))
print(sums / len(seconds))
PYTHON
}

# shares PID...: the kernel's proportional shares of memory, summed, in bytes.
shares() {
    awk -v pids=" $* " '$2 == "Pss:" && index(pids, " " $1 " ") { sum += $3 } END { print sum * 1024 }' "$WORK/shares"
}

# close WHAT MUSTER OTHER: two figures that differ by at most 5 %, of which the larger is the base.
close() {
    local off
    off=$(python3 -c 'import sys; a, b = map(float, sys.argv[1:]); print(f"{100 * (a - b) / max(a, b):.2f}")' "$2" "$3")
    echo "# $1: $2 against $3, $off %"
    check "$1 within 5 %" python3 -c "import sys; sys.exit(abs($off) > 5)"
}

# average NAME RESOURCE: a figure of the run.
average() {
    jq -r --arg name "$1" --arg resource "$2" \
        '.monitor[] | select(.name == $name and .resource == $resource) | .average' "$WORK/run/result.json"
}

start_postgres
PORT=$(free_port)
start_mosquitto "$PORT"
"$BIN/pgbench" --rate=150 --client="$CLIENTS" --time=$((2 * SECONDS_HALF + 40)) >"$WORK/pgbench.log" 2>&1 &
LOAD=$!
STARTED+=("$LOAD")
BACKENDS=()
until [ "${#BACKENDS[@]}" -ge "$CLIENTS" ]; do
    kill -0 "$LOAD"
    mapfile -t BACKENDS < <(pgrep -P "$POSTMASTER" -f '\[local\]|127.0.0.1')
done
mapfile -t FAMILY < <(echo "$POSTMASTER"; pgrep -P "$POSTMASTER")
readonly FAMILY BACKENDS
ALL=$(IFS=,; echo "${FAMILY[*]},$BROKER")

jq -n --arg port "$PORT" --arg broker "$BROKER" --arg database "$POSTMASTER" --arg backend "${BACKENDS[0]}" \
    --arg seconds "$((2 * SECONDS_HALF + 1))s" --arg window "$(watched_window "$ALL" "$WORK")" '{
    name: "monitor",
    platform: { kind: "mqtt", devices: ["mqtt://127.0.0.1:\($port)"] },
    fleet: [{ name: "meters", count: 200, streams: [{ name: "r", rate: "3000/s", qos: 1 }] }],
    phases: { "warm-up": "5s", measure: $seconds, settle: { "at-most": "20s", quiet: "1s" } },
    monitor: [
        { name: "broker", process: $broker },
        { name: "database", process: $database },
        { name: "backend", process: $backend }
    ],
    hooks: [{ name: "pidstat", when: "measure", command: $window, timeout: "60s" }],
    slo: { "failure-ratio": 0 }
}' >"$WORK/monitor.yaml"
status_of "$MUSTER" run "$WORK/monitor.yaml" --quiet --out "$WORK/run"
judged "the run" "$WORK/run" pass
same "the window was seen" "$(jq -r '.hooks[0].code' "$WORK/run/result.json")" 0

percent() { python3 -c "print($1 * 100)"; }
bytes() { python3 -c "print($1 * 1024)"; }
close "CPU of Mosquitto in %" "$(percent "$(average broker cpu)")" "$(seen %CPU "$BROKER")"
close "memory of Mosquitto" "$(average broker memory)" "$(bytes "$(seen RSS "$BROKER")")"
close "CPU of PostgreSQL in %" "$(percent "$(average database cpu)")" "$(seen %CPU "${FAMILY[@]}")"
close "memory of one process of PostgreSQL" "$(average backend memory)" "$(bytes "$(seen RSS "${BACKENDS[0]}")")"
close "memory of PostgreSQL" "$(average database memory)" "$(shares "${FAMILY[@]}")"
echo "# pidstat, each shared page in each process: $(bytes "$(seen RSS "${FAMILY[@]}")")"
kill -INT "$POSTMASTER"
wait "$POSTMASTER" || true
finish
