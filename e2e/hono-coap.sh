#!/usr/bin/env bash
# The scenario of Eclipse Hono that needs no Java, over CoAP and over DTLS: what the gateway says that it took and delivered, which
# it counts without Muster's ids, is what the ledger has.
source "$(dirname "$0")/lib.sh"
need jq
export DEVICE_KEY=not-a-secret

# Counts are compared here, and no times: the bounds on the platform are wide.
readonly SLOW=(--set slo.end-to-end.p99='<= 60s'
    --set fleet.meters.streams.telemetry.slo.response.p99='<= 60s'
    --set fleet.meters.streams.asks.slo.command-request.p90='<= 60s')
readonly KEY='{ kind: psk, secret: "${env:DEVICE_KEY}" }'

run() {
    local name=$1
    shift
    status_of "$MUSTER" run scenarios/hono-coap.yaml --quiet --out "$WORK/$name" "${SLOW[@]}" "$@"
}

# agrees NAME: the gateway's account and the ledger.
agrees() {
    local name=$1 account="$WORK/$1/gateway.json" l='.ledger.uplink' c='.ledger.command'
    same "$name: taken" "$(jq .received "$account")" "$(value "$WORK/$name" "$l.sent")"
    same "$name: delivered, replies among them" "$(jq .delivered "$account")" "$(value "$WORK/$name" "$l.consumed + $c.replies_arrived")"
    same "$name: queries" "$(jq .queries "$account")" "$(value "$WORK/$name" "$c.queries")"
    same "$name: commands handed over" "$(jq '."commands-handed"' "$account")" "$(value "$WORK/$name" "$c.received")"
    same "$name: replies" "$(jq .replies "$account")" "$(value "$WORK/$name" "$c.answered")"
    same "$name: residue of commands" "$(value "$WORK/$name" "$c.residue")" 0
    same "$name: peers" "$(jq .peers "$account")" 600
}

passes plain
agrees plain
passes secured --set 'platform.devices=["coaps://127.0.0.1:0"]' --set "fleet.meters.credential=$KEY" --set "fleet.sensors.credential=$KEY"
agrees secured
same "secured: the scheme is told" "$(value "$WORK/secured" '.environment.tls.session_resumption | keys[]')" coaps

# What the gateway loses on purpose is named, and nothing else.
run lossy --set platform.behaviour.lose-after-accept=7
same "lossy: exit code" "$STATUS" 1
same "lossy: lost" "$(value "$WORK/lossy" '.ledger.uplink | .lost + .lost_unacknowledged')" 7
same "lossy: residue" "$(value "$WORK/lossy" .ledger.uplink.residue)" 0
finish
