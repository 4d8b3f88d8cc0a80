#!/usr/bin/env bash
# Records answers of a real API server for crates/actuator/tests/kubernetes: `bash e2e/kubernetes/record.sh`. Each file
# holds the request, the status and the body without `managedFields`, which nothing reads.
source "$(dirname "$0")/../lib.sh"
source e2e/kubernetes/cluster.sh
need curl go jq openssl

readonly RECORDED=crates/actuator/tests/recorded
APPS=/apis/apps/v1/namespaces/$SPACE

# record NAME METHOD PATH [BODY]: one request, and the answer to it. TOKEN is the bearer's.
record() {
    local status
    status=$(curl -sS --cacert "$CLUSTER/certs/apiserver.crt" -o "$WORK/body" -w '%{http_code}' -X "$2" ${4:+-d "$4"} \
        -H "Authorization: Bearer ${TOKEN:-$(cat "$CLUSTER/token")}" -H 'Content-Type: application/json' "$API$3")
    jq -n --arg request "$2 ${3%%\?*}" --argjson status "$status" --slurpfile body "$WORK/body" \
        '{ request: $request, status: $status, body: ($body[0] | del(.. | .managedFields?)) }' >"$RECORDED/$1.json"
    echo "$1: $status"
}

# scale NAME COUNT: records setting the replicas of the Deployment as it is now.
scale() {
    local scale
    scale=$(k get --raw "$DEPLOYMENT/scale" | jq -c ".spec.replicas = $2")
    record "$1" PUT "$DEPLOYMENT/scale" "$scale"
}

# until_is FILTER PATH: waits until an object is as a jq filter demands. It asks again and again: `kubectl wait` knows no
# filter over lists, and its conditions of pods that were never created have no field to wait for.
until_is() {
    local tries
    for tries in $(seq 300); do
        ! k get --raw "$2" | jq -e "$1" >/dev/null || return 0
        sleep 0.1
    done
    echo "$2 is not $1 after $tries tries"
    exit 1
}

# one_pod_allowed KIND: a workload whose namespace has no room for a second pod.
one_pod_allowed() {
    workload "$1" gateway sleep 1000
    until_is '.status.readyReplicas == 1' "$APPS/${1,,}s/gateway"
    k create quota few --hard=pods=1 >/dev/null
    until_is '.status.used.pods == "1"' "/api/v1/namespaces/$SPACE/resourcequotas/few"
}

# again: removes all workloads and what they left.
again() {
    k delete deployment,statefulset,quota --all >/dev/null
    until_is '.items == []' "/api/v1/namespaces/$SPACE/pods"
}

start_cluster
mkdir -p "$RECORDED"
rm -f "$RECORDED"/*.json
kubectl version -o json | jq '{ kubernetes: .serverVersion.gitVersion }' >"$RECORDED/version.json"
DEPLOYMENT=$APPS/deployments/gateway STATEFUL=$APPS/statefulsets/gateway
PODS=/api/v1/namespaces/$SPACE/pods?labelSelector=app%3Dgateway

DELAY=2s workload Deployment gateway sleep 1000
until_is '.status.readyReplicas == 1 and .status.observedGeneration == .metadata.generation' "$DEPLOYMENT"
record one GET "$DEPLOYMENT"
stale=$(k get --raw "$DEPLOYMENT/scale" | jq -c '.spec.replicas = 4')
k annotate deployment gateway meanwhile=changed >/dev/null
record conflict PUT "$DEPLOYMENT/scale" "$stale"
scale set-to-four 4
record four-starting GET "$DEPLOYMENT"
until_is '.status.readyReplicas == 4' "$DEPLOYMENT"
record four GET "$DEPLOYMENT"
scale set-to-one 1
until_is '.status.replicas == 1 and .status.observedGeneration == .metadata.generation' "$DEPLOYMENT"
record one-again GET "$DEPLOYMENT"
TOKEN=wrong record unauthorized GET "$DEPLOYMENT"
k create serviceaccount nobody >/dev/null
token=$(k create token nobody)
TOKEN=$token record forbidden GET "$DEPLOYMENT"
TOKEN=$token record forbidden-pods GET "$PODS"
record not-found GET "$APPS/deployments/gateway2"
scale invalid -1

again
one_pod_allowed Deployment
record quota-before GET "$DEPLOYMENT"
k scale deployment gateway --replicas=2 >/dev/null
until_is 'any(.status.conditions[]; .type == "ReplicaFailure" and .status == "True")' "$DEPLOYMENT"
record quota GET "$DEPLOYMENT"

again
workload Deployment gateway sh -c "mkdir $WORK/first || exit 7; exec sleep 1000"
until_is '.status.readyReplicas == 1' "$DEPLOYMENT"
record crashing-before GET "$DEPLOYMENT"
k scale deployment gateway --replicas=2 >/dev/null
until_is 'any(.items[].status.containerStatuses[]?; .state.waiting.reason == "CrashLoopBackOff")' "${PODS%%\?*}"
record crashing GET "$DEPLOYMENT"
record crashing-pods GET "$PODS"

again
one_pod_allowed StatefulSet
record stateful-before GET "$STATEFUL"
k scale statefulset gateway --replicas=2 >/dev/null
EVENTS=/api/v1/namespaces/$SPACE/events
uid=$(k get --raw "$STATEFUL" | jq -r .metadata.uid)
until_is "any(.items[]; .involvedObject.uid == \"$uid\" and .type == \"Warning\")" "$EVENTS"
record stateful GET "$STATEFUL"
record stateful-pods GET "$PODS"
record stateful-events GET "$EVENTS?fieldSelector=involvedObject.uid%3D$uid,type%3DWarning"
