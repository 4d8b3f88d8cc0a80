#!/usr/bin/env bash
# The truth table of blame: what the target does wrong ends in `fail`, whatever else the machine does; what only our own
# delay breaks ends in `invalid`; what holds with our own delay counted in passes and says how much of it was ours.
# Without CASES=all it is those cases that need a machine; each of the others has one under virtual time in
# crates/sim/tests/worlds/blame.rs and crates/judge/tests/judging.
source "$(dirname "$0")/lib.sh"
need jq python3 taskset renice

cat >"$WORK/blame.yaml" <<'YAML'
name: blame
fleet:
  - name: meters
    count: 100
    reconnect: { min: 2s, max: 3s }
    streams:
      - { name: readings, rate: 2000/s, qos: 1, timeout: 3s, payload: { size: 100 } }
phases: { warm-up: 0s, measure: 6s, settle: { at-most: 30s, quiet: 1s } }
slo: { loss: 0, failure-ratio: "<= 1%", connected: 100%, response: { p99: "<= 1s" } }
YAML
readonly PASS=0 FAIL=1 INVALID=3

# folder_of NAME: where the run of this name goes.
folder_of() {
    echo "$WORK/$(tr -c 'a-z0-9\n' '-' <<<"$1")"
}

# blamed WANTED NAME OPTIONS...: one run, its exit code and its verdict.
blamed() {
    local wanted=$1 name=$2 out
    shift 2
    out=$(folder_of "$name")
    status_of "$MUSTER" run "$WORK/blame.yaml" --quiet --out "$out" "$@"
    judged "$wanted" "$name" "$out"
}

# fails NAME OPTIONS...: a run that the target must fail. FREEZE is called beside it, if set.
FREEZE=:
fails() {
    local frozen
    "$FREEZE" &
    frozen=$!
    blamed $FAIL "$@"
    wait "$frozen"
}

# judged WANTED NAME FOLDER: the verdict, and what it rests on.
judged() {
    local words=([PASS]=pass [FAIL]=fail [INVALID]=invalid)
    same "$2: exit code" "$STATUS" "$1"
    same "$2: verdict" "$(value "$3" .verdict.result)" "${words[$1]}"
    # A run that ended before its load has no ledger to close.
    same "$2: residue" "$(value "$3" '.ledger.uplink | if .scheduled == null and .sent == 0 then 0 else .residue end')" 0
    value "$3" '.verdict.rules[] | select(.consequence != "none") | "#   \(.rule): \(.evidence)"'
}

# because NAME FOLDER REASON: an invalid run has this reason, with its remedy, and would be a fail.
because() {
    same "$1: would be" "$(value "$2" .verdict.would_be)" fail
    check "$1: by reason $3, with a remedy" jq -e --arg reason "$3" \
        'any(.verdict.rules[]; .reason == $reason and (.remedy | contains("docs/invalid.md#" + $reason)))' "$2/result.json"
}

# gateway OPTIONS...: starts one that stands alone; its port is in PORT, its process in GATEWAY.
gateway() {
    PORT=$(free_port)
    "$MUSTER" gateway --listen "127.0.0.1:$PORT" --threads 1 "$@" >"$WORK/gateway-$PORT" 2>&1 &
    GATEWAY=$!
    STARTED+=("$GATEWAY")
    listens "$PORT"
    AT=(--set platform.kind=mqtt --set "platform.devices=[mqtt://127.0.0.1:$PORT]"
        --set 'platform.backend={filter: "muster/#", qos: 1}')
}

# hogs CPU COUNT: so many processes that want all of one core.
HOGS=()
hogs() {
    local number
    for number in $(seq "$2"); do
        taskset -c "$1" bash -c 'while :; do :; done' &
        HOGS+=($!)
        STARTED+=($!)
    done
}

end_hogs() {
    local hog
    for hog in "${HOGS[@]}"; do stop "$hog"; done
    HOGS=()
}

# thread PID NAME: the id of a thread of a process, once it has started.
thread() {
    local tries comm
    for tries in $(seq 100); do
        for comm in /proc/"$1"/task/*/comm; do
            if [ "$(cat "$comm" 2>/dev/null)" = "$2" ]; then
                basename "$(dirname "$comm")"
                return
            fi
        done
        sleep 0.05
    done
    echo "not ok - process $1 has no thread $2 after $tries tries" >&2
    return 1
}

the_target() {
    local slow=(--set platform.behaviour.service-time=100ms)
    fails "capacity 500/s, queueing" --set platform.behaviour.capacity=500/s
    fails "capacity 500/s, rejecting" \
        --set 'platform.behaviour={capacity: 500/s, queue: 100, full: reject}'
    fails "capacity 500/s, dropping" \
        --set 'platform.behaviour={capacity: 500/s, queue: 100, full: drop}'
    fails "capacity 500/s, blocking" \
        --set 'platform.behaviour={capacity: 500/s, queue: 100, full: block}'
    fails "every publish rejected, end-to-end named" --set 'slo.end-to-end={p99: "<= 1s"}' \
        --set 'platform.behaviour.reject={code: 151, share: 100%}'
    fails "in-flight bound with queue" "${slow[@]}" \
        --set 'fleet.streams.loop={in-flight: 1, overflow: queue, bound: 1000}'
    fails "in-flight bound with shed" "${slow[@]}" \
        --set 'fleet.streams.loop={in-flight: 1, overflow: shed}'
    fails "links closed" --set 'slo.disconnects=0' \
        --set 'platform.behaviour.close-links={at: 2s, share: 30%}'
    gateway --receive-maximum 1 --behaviour 'service-time: 100ms'
    fails "receive maximum 1" "${AT[@]}"
    stop "$GATEWAY"
    refused
}

slow_reader() {
    gateway --read-slowly 50
    # It would take half a minute to hear what is left.
    fails "slow reader" "${AT[@]}" --set 'fleet.streams.payload={size: 2000}' --set phases.settle.at-most=8s
    stop "$GATEWAY"
}

refused() {
    echo right:secret >"$WORK/users"
    gateway --users "$WORK/users"
    fails "credentials refused" "${AT[@]}" \
        --set 'platform.backend={filter: "muster/#", qos: 1, user: right, password: secret}' \
        --set 'fleet.credential={kind: password, user: right, secret: wrong}'
    stop "$GATEWAY"
}

freeze() {
    sleep 3
    kill -STOP "$GATEWAY"
    sleep 3
    kill -CONT "$GATEWAY"
}

frozen() {
    gateway
    FREEZE=freeze
    fails "target frozen by SIGSTOP" "${AT[@]}"
    FREEZE=:
    stop "$GATEWAY"
}

no_slot() {
    blamed $INVALID "own pool of messages exhausted" --slots 64 --set platform.behaviour.service-time=500ms
    by_limit "own pool of messages exhausted"
}

the_generator() {
    blamed $INVALID "absurd rate" --set fleet.streams.rate=1000000/s --set phases.measure=4s
    gateway --read-slowly 50
    # More bytes than the kernel's own buffers hold for links that are hardly read.
    blamed $INVALID "own buffer pool exhausted" "${AT[@]}" --buffers 1 --set fleet.count=10 \
        --set phases.settle.at-most=8s \
        --set fleet.streams.rate=100/s --set 'fleet.streams.payload={size: 200000}'
    by_limit "own buffer pool exhausted"
    check "own buffer pool exhausted: an event says which" jq -e \
        'any(.events[]; .kind == "generator-limit" and (.detail | test("no buffer was left")))' \
        "$(folder_of "own buffer pool exhausted")/result.json"
    stop "$GATEWAY"
    pinned
    starved_consumer
}

# by_limit NAME: what is shed for want of our own room is counted by that name.
by_limit() {
    check "$1: by name" test \
        "$(value "$(folder_of "$1")" '.ledger.uplink.shed_by_cause["generator-limit"] > 0')" = true
}

# The generator shares its core with six processes that want all of it, the target has the other one. It has little to do,
# so that it waits for its core and is not overloaded.
pinned() {
    local out bound
    gateway
    taskset -a -p -c 1 "$GATEWAY" >"$WORK/out"
    hogs 0 6
    out=$(beside_hogs "pinned beside hogs, with room")
    STATUS=$(cat "$WORK/status")
    judged $PASS "pinned beside hogs, with room" "$out"
    check "pinned beside hogs: says how much of the figure was ours" \
        test "$(value "$out" '.latency.response | .lower.p99_us < .p99_us')" = true
    value "$out" '.latency.response | "#   p99 between \(.lower.p99_us) and \(.p99_us) us"'
    bound=$(value "$out" '.latency.response | (3 * .lower.p99_us + .p99_us) / 4 | floor')
    out=$(beside_hogs "pinned beside hogs, too slow by our own delay" --set "slo.response.p99=<= ${bound}us")
    STATUS=$(cat "$WORK/status")
    judged $INVALID "pinned beside hogs, too slow by our own delay" "$out"
    because "pinned beside hogs, too slow by our own delay" "$out" own-delay
    stop "$GATEWAY"
    gateway --behaviour 'service-time: 2500ms'
    taskset -a -p -c 1 "$GATEWAY" >"$WORK/out"
    out=$(beside_hogs "pinned beside hogs, the target too slow by more")
    STATUS=$(cat "$WORK/status")
    judged $FAIL "pinned beside hogs, the target too slow by more" "$out"
    end_hogs
    stop "$GATEWAY"
}

# beside_hogs NAME OPTIONS...: a run on core 0; says where it is. Its exit code is in $WORK/status.
beside_hogs() {
    local out
    out=$(folder_of "$1")
    shift
    status_of taskset -c 0 "$MUSTER" run "$WORK/blame.yaml" --quiet --out "$out" "${AT[@]}" \
        --set fleet.streams.rate=200/s "$@"
    echo "$STATUS" >"$WORK/status"
    echo "$out"
}

# What the consumer reads late because it waits for its core is not held against the target.
starved_consumer() {
    gateway
    local out=$WORK/starved run consumer
    "$MUSTER" run "$WORK/blame.yaml" --quiet --out "$out" "${AT[@]}" --set fleet.streams.rate=200/s \
        --set 'slo.end-to-end={p99: "<= 5ms"}' >"$WORK/out" 2>&1 &
    run=$!
    STARTED+=("$run")
    consumer=$(thread "$run" consumer-0)
    taskset -p -c 1 "$consumer" >"$WORK/out-taskset"
    renice -n 19 -p "$consumer" >"$WORK/out-renice"
    hogs 1 8
    STATUS=0
    wait "$run" || STATUS=$?
    end_hogs
    judged $INVALID "own consumer starved" "$out"
    because "own consumer starved" "$out" own-delay-end-to-end
    stop "$GATEWAY"
}

if [ "${CASES:-}" = all ]; then
    the_target
    no_slot
fi
slow_reader
frozen
the_generator
finish
