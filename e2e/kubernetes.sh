#!/usr/bin/env bash
# Reference gateways as pods of a real Kubernetes control plane: `muster scale` grows their Deployment from one to four and
# puts it back. A conflict, an API server that is away for three seconds and a kill are survived; a missing right, a quota,
# a fight with somebody else and a pod that never gets ready are named. Needs a program with the feature `kubernetes`.
# GROWN=none leaves out the whole growth, which takes minutes.
MUSTER=${MUSTER:-target/debug/muster}
source "$(dirname "$0")/lib.sh"
source e2e/kubernetes/cluster.sh
need curl go jq openssl

# grow NAME KUBECONFIG ARGUMENT...: a growth in the background; it prints to $WORK/NAME.txt, and its process is GROWTH.
grow() {
    local name=$1 kubeconfig=$2
    shift 2
    KUBECONFIG=$kubeconfig "$MUSTER" scale e2e/kubernetes.yaml --set "platform.devices=[mqtt://127.0.0.1:$PORT]" \
        --out "$WORK/$name" "$@" >"$WORK/$name.txt" 2>&1 &
    GROWTH=$!
    STARTED+=("$GROWTH")
}

# ended: waits for the growth; its exit code is in STATUS.
ended() {
    STATUS=0
    { wait "$GROWTH"; } 2>/dev/null || STATUS=$?
}

# sets COUNT NAME ARGUMENT...: a growth that begins with a number of pods, and is ended once they are ready.
sets() {
    local count=$1 name=$2
    shift 2
    grow "$name" "$RIGHTS" --set "scale.instances={min: $count, max: $count}" "$@"
    becomes_ready "$count" "$name"
    kill -INT "$GROWTH"
    ended
}

becomes_ready() {
    check "$2: $1 instances are ready" until_lines 1 "^$1 instances are ready" "$WORK/$2.txt"
}

# refused WHAT NAME WORD ARGUMENT...: a growth to four pods that ends with an error that holds the word.
refused() {
    local what=$1 name=$2 word=$3
    shift 3
    grow "$name" "${AS:-$RIGHTS}" --set 'scale.instances={min: 4, max: 4}' --set scale.timeout=15s "$@"
    ended
    same "$what: exit code" "$STATUS" 3
    says "$what" "$(tail -n 5 "$WORK/$name.txt" | tr '\n' ' ')" "$word"
    check "$what: nothing is left to put back" test ! -e "$WORK/$name/target.json"
}

# wish KIND NAME: the replicas that are wanted.
wish() {
    k get "$1" "$2" -o jsonpath='{.spec.replicas}'
}

start_cluster
k apply -f deploy/kubernetes/role.yaml >/dev/null
RIGHTS=$(service_account muster)
k create rolebinding muster-scale --role=muster-scale --serviceaccount="$SPACE:muster" >/dev/null
NONE=$(service_account nobody)
PORT=$(free_port)

gateway() {
    PROBE=$PORT workload Deployment gateway "$(realpath "$MUSTER")" gateway --listen "127.0.0.1:$PORT" --shared-port \
        --threads 1 --behaviour "capacity: { rate: 400/s, service: fixed }, queue: 40, full: reject"
    soon "a gateway is ready" "1 1" replicas deployment gateway
}
gateway


sets 4 plain
soon "replicas are put back" "1 1" replicas deployment gateway

# Somebody else changes the Deployment all the time, and its replicas once.
touch "$WORK/meddle"
while [ -e "$WORK/meddle" ]; do k annotate deployment gateway "at=$EPOCHREALTIME" --overwrite >/dev/null || true; done &
STARTED+=("$!")
grow conflict "$RIGHTS" --set 'scale.instances={min: 4, max: 4}'
soon "four are wished for" 4 wish deployment gateway
k scale deployment gateway --replicas=2 >/dev/null
becomes_ready 4 conflict
rm "$WORK/meddle"
kill -INT "$GROWTH"
ended
soon "replicas are put back after a conflict" "1 1" replicas deployment gateway

# From here on pods take seconds to get ready.
k patch deployment gateway --type=json \
    -p '[{"op": "replace", "path": "/spec/template/metadata/annotations", "value": {"vk/ready-delay": "4s"}}]' >/dev/null
k rollout status deployment gateway --timeout=60s >/dev/null

# An autoscaler, as it were.
touch "$WORK/meddle"
while [ -e "$WORK/meddle" ]; do k scale deployment gateway --replicas=1 >/dev/null || true; done &
STARTED+=("$!")
refused "somebody who fights for the number" fight "somebody else changed its replicas"
rm "$WORK/meddle"
soon "replicas are put back after the fight" "1 1" replicas deployment gateway

# The API server is away while pods start, and once more while the target is put back.
grow away "$RIGHTS" --set 'scale.instances={min: 4, max: 4}'
soon "four are wished for, and the API server goes away" 4 wish deployment gateway
api_server_away 3
becomes_ready 4 away
api_server_away 3 &
kill -INT "$GROWTH"
ended
soon "replicas are put back by way of the outage" "1 1" replicas deployment gateway
check "nothing is left to put back after the outage" test ! -e "$WORK/away/target.json"

# A program that was killed.
grow killed "$RIGHTS" --set 'scale.instances={min: 2, max: 2}'
becomes_ready 2 killed
kill -9 "$GROWTH"
ended
same "replicas after a kill" "$(replicas deployment gateway)" "2 2"
check "the record outlives the kill" test -e "$WORK/killed/target.json"
KUBECONFIG=$RIGHTS "$MUSTER" scale e2e/kubernetes.yaml --set "platform.devices=[mqtt://127.0.0.1:$PORT]" \
    --set 'scale.instances={min: 2, max: 2}' --resume "$WORK/killed" >"$WORK/resumed.txt" 2>&1 &
GROWTH=$!
STARTED+=("$GROWTH")
becomes_ready 2 resumed
kill -INT "$GROWTH"
ended
soon "replicas are put back after a kill" "1 1" replicas deployment gateway

AS=$NONE refused "a token without rights" forbidden "is forbidden"
refused "a Deployment that is not there" missing "not found" --set scale.actuator.deployment=gateway2
k create quota few --hard=pods=2 >/dev/null
refused "a quota" quota "exceeded quota: few"
k delete quota few >/dev/null
soon "replicas are put back under a quota" "1 1" replicas deployment gateway

workload Deployment crashing sh -c "mkdir $WORK/first || exit 7; exec sleep 1000"
soon "the first pod of one that crashes is ready" "1 1" replicas deployment crashing
refused "pods that crash" crashing "container main: CrashLoopBackOff" --set scale.actuator.deployment=crashing
soon "replicas are put back after a crash" 1 wish deployment crashing
k delete deployment crashing >/dev/null

workload StatefulSet stateful sleep 1000
soon "a StatefulSet is ready" "1 1" replicas statefulset stateful
sets 3 stateful --set 'scale.actuator={kind: kubernetes, stateful-set: stateful}'
soon "replicas of a StatefulSet are put back" "1 1" replicas statefulset stateful

if [ "${GROWN:-all}" != none ]; then
    grow growth "$RIGHTS" --budget 25m
    ended
    cat "$WORK/growth.txt"
    ANSWER=$WORK/growth/scale.json
    same "the growth: exit code" "$STATUS" 0
    same "numbers of instances" "$(jq -r '[.capacities[].instances] | join(" ")' "$ANSWER")" "1 2 3 4"
    check "each carries 400/s, within 15 %" jq -e 'all(.capacities[]; .per_instance >= 340 and .per_instance <= 420)' "$ANSWER"
    soon "replicas are put back after the growth" "1 1" replicas deployment gateway
    check "nothing is left to put back after the growth" test ! -e "$WORK/growth/target.json"
fi

token=$(sed -n 's/.*token: "\([^"]*\)".*/\1/p' "$RIGHTS")
check "no result holds the token" test -n "$token" -a -z "$(grep -rlF "$token" "$WORK" --include='*.txt' --include='*.json' --include='*.jsonl' --include='*.html')"
finish
