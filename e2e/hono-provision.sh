#!/usr/bin/env bash
# Devices of a Hono, written into a database of its registry's kind: mongo-java-server. MUSTER is to be built with the feature
# `mongodb`. MANY=200000 is the size of docs/hono.md, which takes minutes. e2e/hono.sh tries the management API.
MUSTER=${MUSTER:-target/debug/muster}
source "$(dirname "$0")/lib.sh"
need java mvn

readonly TENANT="muster-$$"
readonly FEW=2000 SOME=5000 MANY=${MANY:-10000}
# Where the record of what was created is.
RECORD=$WORK/record
readonly BUILT=$PWD/target/peers/mongo

# scenario COUNT: a scenario of devices with pre-shared keys.
scenario() {
    cat <<YAML
name: hono-provision
platform: { kind: hono, devices: [ "coaps://127.0.0.1:5684" ] }
provision: { mongodb: "\${env:URI}", rate: 10000/s, pending: 4 }
fleet:
  - { count: $1, id: "ns:d-\${index}", tenant: $TENANT, streams: [],
      credential: { kind: psk, user: "\${id}@\${tenant}", secret: "key-\${index}" } }
YAML
}

# told WHAT SCENARIO ACTION WANTED: one call of `muster provision`, and what it counts.
told() {
    status_of "$MUSTER" provision "$2" "$3" --quiet --out "$RECORD"
    same "$1" "$(grep -o 'device: .*' "$WORK/out" | head -1)" "$4"
}

bash e2e/peers/fetch.sh mongo
javac -d "$BUILT" -cp "$BUILT/lib/*" e2e/peers/mongo/src/main/java/peers/Mongo.java
PORT=$(free_port)
java -Xmx1500m -cp "$BUILT:$BUILT/lib/*" peers.Mongo "$PORT" >"$WORK/mongo.txt" 2>"$WORK/mongo.err" &
STARTED+=("$!")
until_lines 1 ready "$WORK/mongo.txt"
export URI="mongodb://127.0.0.1:$PORT/registry"

scenario "$FEW" >"$WORK/few.yaml"
told created "$WORK/few.yaml" create "device: $FEW created; tenant: 1 created"
told "created once" "$WORK/few.yaml" create "device: $FEW already there; tenant: 1 already there"
told verified "$WORK/few.yaml" verify "device: $FEW already there; tenant: 1 already there"
told removed "$WORK/few.yaml" remove "device: $FEW removed; tenant: 1 removed"
told gone "$WORK/few.yaml" verify "device: $FEW missing; tenant: 1 missing"

# A process that was killed before its first insert, and others who make these devices since: theirs stay.
grep -E '"target"|"creating"' "$WORK/record/provisioned.jsonl" >"$WORK/begun"
mkdir "$WORK/others"
RECORD=$WORK/others
told "created by others" "$WORK/few.yaml" create "device: $FEW created; tenant: 1 created"
cp "$WORK/begun" "$WORK/record/provisioned.jsonl"
RECORD=$WORK/record
told "others' are left" "$WORK/few.yaml" remove "device: $FEW left; tenant: 1 left"
check "and named, with what to do" grep -q "the device \`$TENANT/ns:d-[0-9]*\` is left there: its version is not the one that was written, so others have made or changed it; remove it there" "$WORK/out"
told "others' are there" "$WORK/few.yaml" verify "device: $FEW already there; tenant: 1 already there"
cp "$WORK/begun" "$WORK/record/provisioned.jsonl"
told "others' are used" "$WORK/few.yaml" create "device: $FEW already there; tenant: 1 already there"
status_of "$MUSTER" provision "$WORK/few.yaml" remove --quiet --out "$RECORD"
same "others' are not taken over" "$(head -1 "$WORK/out" | grep -o 'nothing')" nothing
RECORD=$WORK/others
told "others remove theirs" "$WORK/few.yaml" remove "device: $FEW removed; tenant: 1 removed"

# A process killed in mid-insert is taken up, and nothing of either stays.
scenario "$SOME" >"$WORK/some.yaml"
RECORD=$WORK/killed
mkdir "$RECORD"
: >"$RECORD/provisioned.jsonl"
"$MUSTER" provision "$WORK/some.yaml" create --quiet --out "$RECORD" >"$WORK/killed.txt" 2>&1 &
KILLED=$!
until_lines 3000 '"creating"' "$RECORD/provisioned.jsonl"
kill -KILL "$KILLED"
STATUS=0
wait "$KILLED" || STATUS=$?
same "it was killed before it was done" "$STATUS" 137
status_of "$MUSTER" provision "$WORK/some.yaml" create --quiet --out "$RECORD"
echo "# after the kill: $(head -1 "$WORK/out")"
told "taken up" "$WORK/some.yaml" verify "device: $SOME already there; tenant: 1 already there"

# The same, all of it only begun, and with other keys: what is ours has the keys that are wanted now.
grep -E '"target"|"creating"' "$RECORD/provisioned.jsonl" >"$WORK/begun"
cp "$WORK/begun" "$RECORD/provisioned.jsonl"
sed 's/key-/other-/' "$WORK/some.yaml" >"$WORK/other.yaml"
told "taken up with other keys" "$WORK/other.yaml" create "device: $SOME already there; tenant: 1 already there"
told "and has them" "$WORK/other.yaml" verify "device: $SOME already there; tenant: 1 already there"
told "and no others" "$WORK/some.yaml" verify "device: $SOME different; tenant: 1 already there"
told "taken up and removed" "$WORK/some.yaml" remove "device: $SOME removed; tenant: 1 removed"
told "nothing stays" "$WORK/some.yaml" verify "device: $SOME missing; tenant: 1 missing"

# Two devices of one login, which a registry could not tell apart, are refused before anything is written.
sed 's/${id}@/same@/' "$WORK/few.yaml" >"$WORK/same.yaml"
RECORD=$WORK/same
readonly BOTH="the devices \`ns:d-0\` and \`ns:d-1\` of tenant \`$TENANT\`: both log in as \`same\`"
status_of "$MUSTER" check "$WORK/same.yaml"
says "one login for all: told by check" "$(grep -F refused "$WORK/out")" "$BOTH"
status_of "$MUSTER" provision "$WORK/same.yaml" create --quiet --out "$RECORD"
same "and refused: exit code" "$STATUS" 2
says "and told" "$(cat "$WORK/out")" "$BOTH"
told "nothing of it is there" "$WORK/few.yaml" verify "device: $FEW missing; tenant: 1 missing"

# What another scenario's devices log in as: the registry's own index keeps it from being written twice.
RECORD=$WORK/first
told "logins are taken" "$WORK/few.yaml" create "device: $FEW created; tenant: 1 created"
sed -e 's/id: "ns:d-/id: "ns:e-/' -e 's/user: "${id}@/user: "ns:d-${index}@/' "$WORK/few.yaml" >"$WORK/thief.yaml"
RECORD=$WORK/second
status_of "$MUSTER" provision "$WORK/thief.yaml" create --quiet --out "$RECORD"
same "a login that is taken: exit code" "$STATUS" 1
says "and what keeps it" "$(cut -c1-400 "$WORK/out")" "credentials.auth-id"
check "one of them for all" test "$(wc -c <"$WORK/out")" -le 1000
status_of "$MUSTER" provision "$WORK/thief.yaml" remove --quiet --out "$RECORD"
told "nothing of that stays" "$WORK/thief.yaml" verify "device: $FEW missing; tenant: 1 already there"
RECORD=$WORK/first
told "and the first are whole" "$WORK/few.yaml" verify "device: $FEW already there; tenant: 1 already there"
told "and removed" "$WORK/few.yaml" remove "device: $FEW removed; tenant: 1 removed"

RECORD=$WORK/many
scenario "$MANY" >"$WORK/many.yaml"
# timed WHAT ACTION WANTED: one call about many devices, and how many of them a minute.
timed() {
    local began
    began=$(date +%s%N)
    told "$1" "$WORK/many.yaml" "$2" "$3"
    echo "# $2: $((MANY * 60000 / (($(date +%s%N) - began) / 1000000))) devices a minute"
}
timed "many created" create "device: $MANY created; tenant: 1 created"
timed "many verified" verify "device: $MANY already there; tenant: 1 already there"
timed "many removed" remove "device: $MANY removed; tenant: 1 removed"
finish
