# Shared by the end-to-end scripts, which source it. Each prints one line a check, `ok` or `not ok`,
# and ends with the number of failed checks as its status.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

MUSTER=${MUSTER:-target/release/muster}
# Debian keeps mosquitto in /usr/sbin, which is not on every PATH.
export PATH="$PATH:/usr/sbin:/sbin"
WORK=$(mktemp -d)
readonly WORK
STARTED=()
CHECKS=0
FAILED=0

clean_up() {
    local pid
    # The status of the script is that of its checks, not that of what it ends here.
    for pid in "${STARTED[@]}"; do
        { kill -CONT "$pid" && kill -9 "$pid" && wait "$pid"; } 2>/dev/null || true
    done
    if [ -n "${KEEP:-}" ]; then echo "# kept $WORK"; else rm -rf "$WORK"; fi
}
trap clean_up EXIT

# need PROGRAM...: what a script cannot do without; a missing one fails it.
need() {
    local program
    for program in "$@"; do
        command -v "$program" >/dev/null || { echo "not ok - $program is not installed"; exit 1; }
    done
}

# check WHAT COMMAND...: one line, by the status of the command.
check() {
    local what=$1
    shift
    CHECKS=$((CHECKS + 1))
    if "$@"; then
        echo "ok $CHECKS - $what"
    else
        FAILED=$((FAILED + 1))
        echo "not ok $CHECKS - $what"
    fi
}

# same WHAT GOT WANTED: two values that must be equal.
same() {
    check "$1 ($2, wanted $3)" test "$2" = "$3"
}

# Reasons for an invalid run that only say that the machine was busy.
readonly OF_TIME='["own-delay", "own-delay-end-to-end", "own-delay-connect", "consumer-starved", "lateness-grew", "shape"]'

# judged WHAT FOLDER RESULT: the verdict on a run, whose exit code is in STATUS, where counts are the subject. A busy
# machine may leave the verdict open by reasons of time alone: the run is invalid then, and would be that result.
judged() {
    local code result
    local -A codes=([pass]=0 [fail]=1)
    code=${codes[$3]}
    result=$(value "$2" .verdict.result) || result=none
    [ "$result" != invalid ] || code=3
    same "$1: exit code" "$STATUS" "$code"
    [ "$STATUS" -eq "$code" ] || cat "$WORK/out"
    if [ "$result" = invalid ]; then
        check "$1: invalid by reasons of time alone" test \
            "$(value "$2" "[.verdict.rules[].reason | select(. != null)] | (. != []) and (. - $OF_TIME == [])")" = true
        result=$(value "$2" .verdict.would_be)
    fi
    same "$1: verdict" "$result" "$3"
}

# finish: the last line of each script.
finish() {
    echo "1..$CHECKS"
    [ "$CHECKS" -gt 0 ] || { echo "# nothing was checked"; exit 1; }
    [ "$FAILED" -eq 0 ] || { echo "# $FAILED failed"; exit 1; }
}

# examples PACKAGE NAME...: builds these examples, unless PREBUILT names a folder that has them; they are in EXAMPLES.
examples() {
    local name targets=()
    EXAMPLES=${PREBUILT:-target/debug/examples}
    [ -z "${PREBUILT:-}" ] || return 0
    for name in "${@:2}"; do targets+=(--example "$name"); done
    # With the program among the packages its features hold, and what was built for it is not built again.
    cargo build --quiet -p muster -p "$1" "${targets[@]}"
}

# with_paho: a Python that has paho-mqtt 2, in PYTHON.
with_paho() {
    with_module paho.mqtt.enums 'paho-mqtt>=2,<3'
}

# with_module MODULE PACKAGE...: a Python that has a module, or several with commas between them, whose packages are
# fetched where it is missing; in PYTHON.
with_module() {
    PYTHON=python3
    ! python3 -c "import $1" 2>/dev/null || return 0
    python3 -m venv "$WORK/venv"
    PYTHON=$WORK/venv/bin/python
    "$PYTHON" -m pip install --quiet --disable-pip-version-check "${@:2}"
}

free_port() {
    python3 - <<'PYTHON'
import random, socket

# Below those that the kernel gives to connections, and free for TCP and for UDP.
for port in random.sample(range(16000, 32000), 200):
    try:
        for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
            with socket.socket(socket.AF_INET, kind) as it:
                it.bind(("127.0.0.1", port))
        print(port)
        break
    except OSError:
        pass
PYTHON
}

# start_gateway SCHEME OPTION...: starts the reference gateway alone and waits for the line with that scheme, which is
# the last of its addresses; these are in AT by their schemes, its process is GATEWAY.
start_gateway() {
    local last=$1 out line
    shift
    out=$(mktemp -u "$WORK/out-XXXXXX")
    mkfifo "$out"
    "$MUSTER" gateway "$@" >"$out" &
    GATEWAY=$!
    STARTED+=("$GATEWAY")
    exec {OUT}<"$out"
    declare -gA AT=()
    while [ -z "${AT[$last]:-}" ] && read -r -u "$OUT" line; do
        [[ $line =~ ([a-z]+)://([0-9.:]+) ]] && AT[${BASH_REMATCH[1]}]=${BASH_REMATCH[2]}
    done
}

# stop_gateway: ends the gateway; its account is in $WORK/account.
stop_gateway() {
    kill -INT "$GATEWAY"
    cat <&"$OUT" >"$WORK/account"
    exec {OUT}<&-
}

# account NAME: what the gateway counted under that name.
account() {
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$WORK/account" "$1"
}

# authority: a certificate that signs others, in ca.pem.
authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=ca \
        -keyout "$WORK/ca.key" -out "$WORK/ca.pem" 2>"$WORK/err"
}

# certificate NAME SUBJECT: a certificate of `authority`, in NAME.pem, with its key, in NAME.key.
certificate() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$WORK/$1.key" -out "$WORK/$1.csr" \
        -subj "/CN=$2" -addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>"$WORK/err"
    openssl x509 -req -in "$WORK/$1.csr" -CA "$WORK/ca.pem" -CAkey "$WORK/ca.key" -CAcreateserial \
        -copy_extensions copy -days 2 -out "$WORK/$1.pem" 2>"$WORK/err"
}

# in_two_parts NAME ARGUMENT...: a run of the script's `whole` as two processes, devices and backend, with a line between them, and
# what is made of both.
in_two_parts() {
    local name=$1 line start pid pids=() failed=0
    line=$(free_port)
    start=$(date -u -d '+8 seconds' +%Y-%m-%dT%H:%M:%SZ)
    whole "$name-backend" "${@:2}" --run-id 5eed --start-at "$start" --part backend --listen "$line" >"$WORK/$name-backend.txt" 2>&1 &
    pids+=("$!")
    whole "$name-devices" "${@:2}" --run-id 5eed --start-at "$start" --part devices --join "$line" >"$WORK/$name-devices.txt" 2>&1 &
    pids+=("$!")
    STARTED+=("${pids[@]}")
    for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
    [ "$failed" -eq 0 ] || { cat "$WORK/$name"-*.txt; return 1; }
    "$MUSTER" merge "$WORK/$name-devices" "$WORK/$name-backend" --out "$WORK/$name"
}

# listens PORT: waits up to a minute for somebody to listen there.
listens() {
    local tries
    for tries in $(seq 1200); do
        (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return 0
        sleep 0.05
    done
    echo "not ok - nobody listens on port $1 after $tries tries"
    exit 1
}

# until_lines COUNT PATTERN FILE...: waits until so many lines of the files match, woken by each one that is
# written; for a minute at most.
until_lines() {
    local count=$1 pattern=$2 lines tail
    shift 2
    # A program whose input is a pipe that nobody writes to yet has not opened its output.
    touch "$@"
    exec {lines}< <(exec timeout 60 tail -q -n +1 -f "$@")
    tail=$!
    grep -E -m "$count" "$pattern" <&"$lines" >"$WORK/lines" || true
    { kill "$tail" && wait "$tail"; } 2>/dev/null || true
    exec {lines}<&-
    [ "$(wc -l <"$WORK/lines")" -ge "$count" ]
}

# start_mosquitto PORT [LINE...]: starts the broker of deploy/ on a port, with further lines of its
# configuration; its process id is in BROKER.
start_mosquitto() {
    sed "s/^listener 1883 /listener $1 /" deploy/mosquitto/mosquitto.conf >"$WORK/mosquitto-$1.conf"
    [ $# -eq 1 ] || printf '%s\n' "${@:2}" >>"$WORK/mosquitto-$1.conf"
    mosquitto -c "$WORK/mosquitto-$1.conf" >>"$WORK/mosquitto-$1.log" 2>&1 &
    BROKER=$!
    STARTED+=("$BROKER")
    listens "$1"
}

# stop PID: ends a process of this script and waits for it.
stop() {
    kill "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

# status_of COMMAND...: runs it, its output into $WORK/out; the exit code is in STATUS.
status_of() {
    STATUS=0
    "$@" >"$WORK/out" 2>&1 || STATUS=$?
}

# value FOLDER FILTER: a value of a result, by a jq filter.
value() {
    jq -r "$2" "$1/result.json"
}

# event NAME KIND: what the events of that kind say.
event() {
    value "$WORK/$1" "[.events[] | select(.kind == \"$2\") | .detail] | join(\" \")"
}

# says WHAT TEXT PART: a text that holds another.
says() {
    check "$1 ($2)" grep -qF -- "$3" <<<"$2"
}

# passes NAME ARGUMENT...: a run of the script's own `run`, into $WORK/NAME, that passes, and whose
# ledger closes.
passes() {
    local name=$1 l='.ledger.uplink'
    run "$@"
    same "$name: exit code" "$STATUS" 0
    [ "$STATUS" -eq 0 ] || cat "$WORK/out"
    [ -f "$WORK/$name/result.json" ] || return 0
    same "$name: all that was due arrived" "$(value "$WORK/$name" "$l | .scheduled == .arrived and .accepted + .unacknowledged == .arrived")" true
    same "$name: residue" "$(value "$WORK/$name" "$l.residue")" 0
}
