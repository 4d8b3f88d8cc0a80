#!/usr/bin/env bash
# What a run does when the target, the user or the disk fails it: it says so, settles, and never hangs.
source "$(dirname "$0")/lib.sh"
need python3 jq mosquitto mosquitto_passwd timeout

L='.ledger.uplink'
OUTPUT=(--quiet)

# faulty PORT OUT OPTIONS...: the run of faults.yaml against a port, ended by force after a minute.
faulty() {
    local port=$1 out=$2
    shift 2
    timeout -k 5 60 "$MUSTER" run e2e/faults.yaml "${OUTPUT[@]}" --out "$out" \
        --set "platform.devices=[mqtt://127.0.0.1:$port]" "$@"
}

# watched PORT OUT OPTIONS...: the same in the background, with a line a second in $WORK/out; its process is RUN.
watched() {
    : >"$WORK/out"
    OUTPUT=(--every 1s)
    faulty "$@" >"$WORK/out" 2>&1 &
    RUN=$!
    OUTPUT=(--quiet)
}

# reaches PHASE SECONDS: waits until such a run has been in a phase for so many seconds.
reaches() {
    until_lines "$2" "^ *[0-9:]+ $1 " "$WORK/out" || { echo "not ok - no run reached '$1'"; exit 1; }
}

rule() {
    value "$1" ".verdict.rules[] | select(.rule == \"$2\" and .scope == \"run\") | .result"
}

says() {
    grep -qE "$1" "$WORK/out" || { sed 's/^/# /' "$WORK/out"; return 1; }
}

closes() {
    # A run that ended before its load scheduled nothing.
    same "$1: residue" "$(value "$2" "$L | if .scheduled == null and .sent == 0 then 0 else .residue end")" 0
    same "$1: the run went on to its end" "$(rule "$2" uninterrupted)" pass
}

garbage() {
    python3 e2e/garbage.py "$@" 2>>"$WORK/garbage.log" &
    PEER=$!
    STARTED+=("$PEER")
    listens "$1"
}

unreachable() {
    local port started=$SECONDS
    port=$(free_port)
    status_of faulty "$port" "$WORK/unreachable"
    same "unreachable: exit code" "$STATUS" 4
    check "unreachable: names the address" says "mqtt://127\.0\.0\.1:$port"
    check "unreachable: names the reason" says 'no run \(refused [0-9]+(, run-ended [0-9]+)?\)'
    check "unreachable: the result names both in one place" jq -e --arg at "127.0.0.1:$port" \
        '[.. | strings | select(contains($at) and test("refused"; "i"))] | length > 0' "$WORK/unreachable/result.json"
    check "unreachable: within the connect time-out and a little" test $((SECONDS - started)) -le 5
    # Nobody answers from a network that is for documentation (RFC 5737), or there is no way to it.
    started=$SECONDS
    status_of faulty "$port" "$WORK/silent" --set 'platform.devices=[mqtt://192.0.2.1:1883]'
    same "silent address: exit code" "$STATUS" 4
    check "silent address: names it" says '192\.0\.2\.1:1883'
    check "silent address: within the connect time-out and a little" test $((SECONDS - started)) -le 8
    status_of faulty "$port" "$WORK/name" --set 'platform.devices=[mqtt://no-such-host.invalid:1883]'
    same "unknown name: exit code" "$STATUS" 4
    check "unknown name: names it" says 'no-such-host\.invalid'
}

credentials() {
    local port conf
    port=$(free_port)
    conf="$WORK/mosquitto-users.conf"
    touch "$WORK/users" && chmod 600 "$WORK/users" && mosquitto_passwd -b "$WORK/users" muster right
    chmod 755 "$WORK" && chmod 644 "$WORK/users"
    printf 'listener %s 127.0.0.1\nallow_anonymous false\npassword_file %s\n' "$port" "$WORK/users" >"$conf"
    mosquitto -c "$conf" >"$WORK/users.log" 2>&1 &
    local broker=$!
    STARTED+=("$broker")
    listens "$port"
    status_of faulty "$port" "$WORK/credentials" \
        --set 'fleet.credential={ kind: password, user: muster, secret: wrong }' \
        --set platform.backend.user=muster --set platform.backend.password=right
    stop "$broker"
    same "wrong credentials: exit code" "$STATUS" 1
    check "wrong credentials: counted by the code of the CONNACK" jq -e \
        '.links.connect_failures | to_entries | any(.key | test("0x8[67]"))' "$WORK/credentials/result.json"
    closes "wrong credentials" "$WORK/credentials"
    echo "# wrong credentials: $(value "$WORK/credentials" '.links | tostring')"
}

frozen() {
    local port out="$WORK/frozen" status=0
    port=$(free_port)
    start_mosquitto "$port"
    watched "$port" "$out"
    reaches measure 2
    kill -STOP "$BROKER"
    sleep 4
    kill -CONT "$BROKER"
    wait "$RUN" || status=$?
    stop "$BROKER"
    same "frozen: exit code" "$status" 1
    closes frozen "$out"
    check "frozen: the report says from when to when" jq -e \
        'any(.events[]; .kind == "no-answer" and .until_s != null and .until_s - .t_s >= 2)' "$out/result.json"
    echo "# frozen: $(value "$out" '.events | tostring')"
}

closing_links() {
    local port out="$WORK/closing"
    port=$(free_port)
    garbage "$port" --close
    status_of faulty "$port" "$out"
    stop "$PEER"
    same "closing links: exit code" "$STATUS" 1
    closes "closing links" "$out"
    check "closing links: counted by cause" jq -e '.links.disconnects["closed-by-peer"] > 0' "$out/result.json"
}

malformed() {
    local port out="$WORK/malformed"
    port=$(free_port)
    garbage "$port"
    status_of faulty "$port" "$out"
    stop "$PEER"
    same "malformed bytes: exit code" "$STATUS" 1
    closes "malformed bytes" "$out"
    check "malformed bytes: a counted outcome" jq -e "$L.broken_by_cause[\"malformed\"] > 0" "$out/result.json"
    check "malformed bytes: counted at the links" jq -e '.links.disconnects["malformed"] > 0' "$out/result.json"
    port=$(free_port)
    garbage "$port" --at-once
    status_of faulty "$port" "$out-at-once" --set 'platform.backend=[]'
    stop "$PEER"
    same "malformed handshake: exit code (no target, no crash)" "$STATUS" 4
    check "malformed handshake: counted" jq -e '.links.connect_failures | tostring | test("malformed")' \
        "$out-at-once/result.json"
}

# A signal must reach muster itself, so it is not run under timeout.
signalled() {
    local port out="$WORK/interrupted" run status=0
    port=$(free_port)
    start_mosquitto "$port"
    local plain=("$MUSTER" run e2e/faults.yaml --every 1s --set "platform.devices=[mqtt://127.0.0.1:$port]")
    : >"$WORK/out"
    # Background jobs of a script ignore SIGINT; `env` restores what a terminal gives.
    env --default-signal=INT "${plain[@]}" --out "$out" >"$WORK/out" 2>&1 &
    run=$!
    reaches measure 2
    kill -INT "$run"
    wait "$run" || status=$?
    same "Ctrl-C: exit code" "$status" 3
    same "Ctrl-C: the result says interrupted" "$(rule "$out" uninterrupted)" fail
    same "Ctrl-C: residue" "$(value "$out" "$L.residue")" 0
    same "Ctrl-C: all that was sent was settled" "$(value "$out" "$L.sent == $L.accepted and $L.arrived == $L.sent")" true

    # A target that is silent makes settling long enough for a second Ctrl-C.
    status=0
    : >"$WORK/out"
    env --default-signal=INT "${plain[@]}" --out "$WORK/twice" >"$WORK/out" 2>&1 &
    run=$!
    reaches measure 2
    kill -STOP "$BROKER"
    kill -INT "$run"
    # The first one is heard: two at one time would be one.
    reaches settle 1
    kill -INT "$run"
    wait "$run" || status=$?
    kill -CONT "$BROKER"
    same "Ctrl-C twice: exit code" "$status" 130

    : >"$WORK/out"
    "${plain[@]}" --out "$WORK/killed" >"$WORK/out" 2>&1 &
    run=$!
    reaches measure 4
    kill -9 "$run"
    wait "$run" 2>/dev/null || true
    stop "$BROKER"
    status_of "$MUSTER" report "$WORK/killed"
    check "kill -9: muster report writes text from the folder (status $STATUS)" says 'faults'
    check "kill -9: it tells what was accepted until then" says '[1-9][0-9]* accepted'
    "$MUSTER" report "$WORK/killed" --format html >"$WORK/killed.html" 2>"$WORK/err" || true
    check "kill -9: muster report writes HTML" grep -qi '</html>' "$WORK/killed.html"
    "$MUSTER" report "$WORK/killed" --format json >"$WORK/killed.json" 2>"$WORK/err" || true
    check "kill -9: the verdict is invalid" jq -e '.verdict.result == "invalid"' "$WORK/killed.json"
}

no_room() {
    local port started=$SECONDS
    port=$(free_port)
    start_mosquitto "$port"
    touch "$WORK/a-file"
    status_of faulty "$port" "$WORK/a-file/below"
    same "folder that cannot be made: exit code, before the run" "$STATUS" 2
    check "folder that cannot be made: named" says 'a-file/below'
    if [ "$(id -u)" -eq 0 ]; then
        mkdir "$WORK/small"
        mount -t tmpfs -o size=65m tmpfs "$WORK/small"
        disk_full "$port"
        umount "$WORK/small"
    else
        # /dev/full cannot hold a folder; without root there is no small disk to be had but this one.
        echo "not ok - the disk that fills needs root"
        FAILED=$((FAILED + 1))
    fi
    stop "$BROKER"
}

disk_full() {
    local status=0
    head -c 20m /dev/zero >"$WORK/small/ballast"
    status_of faulty "$1" "$WORK/small/run"
    same "disk too full: exit code, before the run" "$STATUS" 2
    check "disk too full: says how much is free" says 'bytes are free'
    rm "$WORK/small/ballast"
    rm -rf "$WORK/small/run"
    watched "$1" "$WORK/small/run"
    reaches measure 2
    head -c 80m /dev/zero >"$WORK/small/ballast" 2>/dev/null || true
    wait "$RUN" || status=$?
    check "disk fills in mid-run: the summary is printed" says '^ledger .*residue 0'
    check "disk fills in mid-run: said at the end" says 'not complete'
    same "disk fills in mid-run: exit code" "$status" 0
}

unreachable
credentials
frozen
closing_links
malformed
signalled
no_room
finish
