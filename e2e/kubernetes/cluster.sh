# A Kubernetes control plane on loopback, for scripts that have sourced e2e/lib.sh: etcd, API server, controllers and
# scheduler are the real ones, built from Go modules; vkubelet runs each pod's command as a process of this machine. KUBE_BIN
# names a folder that has the programs or is to have them.
readonly KUBE_BIN=${KUBE_BIN:-$PWD/target/peers/kubernetes}
readonly CLUSTER=$WORK/cluster SPACE=iot

# start_cluster: builds what is not there and starts it all; `kubectl` is that of an administrator.
start_cluster() {
    local port
    nice -n 19 e2e/kubernetes/build.sh "$KUBE_BIN"
    trap 'e2e/kubernetes/stop.sh "$CLUSTER" >/dev/null; clean_up' EXIT
    # Ports in a row: of several tries one finds them all free.
    for _ in 1 2 3 4 5; do
        port=$(free_port)
        KUBE_PORT=$port e2e/kubernetes/start.sh "$KUBE_BIN" "$CLUSTER" && break
    done
    export PATH=$KUBE_BIN:$PATH KUBECONFIG=$CLUSTER/kubeconfig
    API=https://127.0.0.1:$((port + 2))
    kubectl create namespace "$SPACE"
    k wait --for=create serviceaccount/default --timeout=60s >/dev/null
}

k() {
    kubectl -n "$SPACE" "$@"
}

# api_server_away SECONDS: kills the API server and starts it again so long afterwards.
api_server_away() {
    e2e/kubernetes/restart.sh "$CLUSTER" kube-apiserver "$1"
}

# workload KIND NAME COMMAND...: a Deployment or StatefulSet of one pod that runs a command; its pods are called the same.
# PROBE is the port that answers once a pod is ready, DELAY the time it takes to be ready.
workload() {
    local kind=$1 name=$2 command
    shift 2
    command=$(printf '%s\n' "$@" | jq -R . | jq -s .)
    jq -n --arg kind "$kind" --arg name "$name" --argjson command "$command" \
        --arg probe "${PROBE:-}" --arg delay "${DELAY:-0s}" '{
        apiVersion: "apps/v1", kind: $kind, metadata: { name: $name },
        spec: ({
            replicas: 1, selector: { matchLabels: { app: $name } },
            template: {
                metadata: { labels: { app: $name }, annotations: { "vk/ready-delay": $delay } },
                spec: {
                    terminationGracePeriodSeconds: 2,
                    containers: [ { name: "main", image: "none", command: $command } + (if $probe == "" then {} else
                        { readinessProbe: { periodSeconds: 1, tcpSocket: { port: ($probe | tonumber) } } } end) ]
                }
            }
        } + (if $kind == "StatefulSet" then { serviceName: $name, podManagementPolicy: "Parallel" } else {} end))
    }' | k create -f - >/dev/null
}

# replicas KIND NAME: the wish and the number that is ready, such as `4 4`.
replicas() {
    k get "$1" "$2" -o jsonpath='{.spec.replicas} {.status.readyReplicas}'
}

# soon WHAT WANTED COMMAND...: the command prints it within a minute. It asks again and again, since a watch would end with
# the API server, which some cases take away.
soon() {
    local what=$1 wanted=$2 got tries
    shift 2
    for tries in $(seq 300); do
        got=$("$@" 2>&1) || true
        [ "$got" != "$wanted" ] || break
        sleep 0.2
    done
    same "$what" "$got" "$wanted"
}

# service_account NAME: a kubeconfig, whose path it prints, of a service account.
service_account() {
    local token
    k create serviceaccount "$1" >/dev/null
    token=$(k create token "$1" --duration=2h)
    sed "s,token: [^}]*},token: \"$token\"},; s,namespace: default,namespace: $SPACE," "$CLUSTER/kubeconfig" >"$WORK/$1.kubeconfig"
    echo "$WORK/$1.kubeconfig"
}
