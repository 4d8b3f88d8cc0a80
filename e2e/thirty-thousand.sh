#!/usr/bin/env bash
# More devices than one process may have descriptors: two workers against a gateway of two
# processes, one result. THIRTY_THOUSAND=1 takes 30,000 devices, else it is 2,000 in --workers 2.
source "$(dirname "$0")/lib.sh"
need jq

SIZE=(--workers 2 --set fleet.count=2000)
DEVICES=2000
if [ -n "${THIRTY_THOUSAND:-}" ]; then
    SIZE=(--set fleet.count=30000 --set fleet.connect.rate=3000/s)
    DEVICES=30000
fi
OUT="$WORK/run"
status_of "$MUSTER" run scenarios/first.yaml --quiet --out "$OUT" "${SIZE[@]}" \
    --set 'slo.response.p99=<= 5s' --set 'slo.end-to-end.p99=<= 5s'
same "exit code" "$STATUS" 0
[ "$STATUS" -eq 0 ] || cat "$WORK/out"
L='.ledger.uplink'
same "links wanted and connected" "$(value "$OUT" '.links | [.wanted, .connected, .open_at_end] | join(" ")')" "$DEVICES $DEVICES $DEVICES"
same "due, sent, accepted, arrived" "$(value "$OUT" "$L | [.scheduled, .sent, .accepted, .arrived] | join(\" \")")" "6000 6000 6000 6000"
same "lost, duplicates, residue" "$(value "$OUT" "$L | [.lost, .duplicates, .residue] | join(\" \")")" "0 0 0"
same "processes" "$(value "$OUT" .environment.processes)" 2
same "the gateway's account: received, accepted, delivered" \
    "$(jq -r '[.received, .accepted, .delivered] | join(" ")' "$OUT/gateway.json")" "6000 6000 6000"
[ -z "${THIRTY_THOUSAND:-}" ] || same "gateway processes" "$(value "$OUT" '.target.cpu | length')" 2
echo "# $(value "$OUT" '"\(.links.connected) links, connect p99 \(.latency.connect.p99_us) us, generator \(.generator.cpu_s) cpu-s, \(.generator.peak_rss_bytes) bytes"')"
finish
