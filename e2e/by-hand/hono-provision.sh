#!/usr/bin/env bash
# Devices of a Hono, told to its registry and written into a database of the registry's kind. By hand, since CI has neither:
# REGISTRY is the address of a real registry's management API, such as http://127.0.0.1:20111; MUSTER_MONGODB a muster
# with the feature `mongodb`, which is tried against mongo-java-server (JDK 17, Maven). What is not given is left out.
source "$(dirname "$0")/../lib.sh"
need curl jq

readonly TENANT="muster-$$"
readonly DEVICES=${DEVICES:-300} MANY=${MANY:-200000}

# scenario WHERE COUNT: a scenario of devices with pre-shared keys.
scenario() {
    cat <<YAML
name: hono-provision
platform: { kind: hono, devices: [ "coaps://127.0.0.1:5684" ] }
provision: { $1, rate: 10000/s, pending: 4 }
fleet:
  - { count: $2, id: "ns:d-\${index}", tenant: $TENANT, streams: [],
      credential: { kind: psk, user: "\${id}@\${tenant}", secret: "key-\${index}" } }
YAML
}

# told WHAT PROGRAM SCENARIO ACTION WANTED: one call of `muster provision`, and what it counts.
told() {
    local what=$1 program=$2 scenario=$3 action=$4 wanted=$5
    status_of "$program" provision "$scenario" "$action" --quiet --out "$WORK/record"
    same "$what" "$(grep -o 'device: .*' "$WORK/out" | head -1)" "$wanted"
}

# cycle WHAT PROGRAM SCENARIO COUNT: created once, verified, removed, and gone.
cycle() {
    told "$1: created" "$2" "$3" create "device: $4 created; tenant: 1 created"
    told "$1: created once" "$2" "$3" create "device: $4 already there; tenant: 1 already there"
    told "$1: verified" "$2" "$3" verify "device: $4 already there; tenant: 1 already there"
    told "$1: removed" "$2" "$3" remove "device: $4 removed; tenant: 1 removed"
    told "$1: gone" "$2" "$3" verify "device: $4 missing; tenant: 1 missing"
    rm -rf "$WORK/record"
}

if [ -n "${REGISTRY:-}" ]; then
    scenario "url: \"$REGISTRY\"" "$DEVICES" >"$WORK/rest.yaml"
    told "registry: created" "$MUSTER" "$WORK/rest.yaml" create "device: $DEVICES created; tenant: 1 created"
    same "the key stands for device 7" "$(curl -s "$REGISTRY/v1/credentials/$TENANT/ns:d-7" |
        jq -c '[.[0].type, .[0]["auth-id"], (.[0].secrets | length)]')" '["psk","ns:d-7",1]'
    "$MUSTER" provision "$WORK/rest.yaml" remove --quiet --out "$WORK/record" >/dev/null
    rm -rf "$WORK/record"
    cycle registry "$MUSTER" "$WORK/rest.yaml" "$DEVICES"
fi

if [ -n "${MUSTER_MONGODB:-}" ]; then
    need java mvn
    BUILT=$PWD/target/peers/mongo
    mkdir -p "$BUILT"
    mvn -q -B -f e2e/peers/mongo/pom.xml dependency:copy-dependencies "-DoutputDirectory=$BUILT/lib"
    javac -d "$BUILT" -cp "$BUILT/lib/*" e2e/peers/mongo/src/main/java/peers/Mongo.java
    PORT=$(free_port)
    java -Xmx1500m -cp "$BUILT:$BUILT/lib/*" peers.Mongo "$PORT" >"$WORK/mongo.txt" 2>"$WORK/mongo.err" &
    STARTED+=("$!")
    until_lines 1 ready "$WORK/mongo.txt"
    URI="mongodb://127.0.0.1:$PORT/registry"
    scenario "mongodb: \"\${env:URI}\"" 2000 >"$WORK/few.yaml"
    scenario "mongodb: \"\${env:URI}\"" "$MANY" >"$WORK/many.yaml"
    export URI
    cycle database "$MUSTER_MONGODB" "$WORK/few.yaml" 2000
    BEGAN=$(date +%s%N)
    told "database: many created" "$MUSTER_MONGODB" "$WORK/many.yaml" create "device: $MANY created; tenant: 1 created"
    TOOK_MS=$((($(date +%s%N) - BEGAN) / 1000000))
    echo "# $((MANY * 60000 / TOOK_MS)) devices a minute"
fi
finish
