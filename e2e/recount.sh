#!/usr/bin/env bash
# The facts of a small run in which much goes wrong, recounted by a script that shares no code with
# Muster: the same ledger, cell by cell, and the same as the gateway's account of raw payloads. The
# recount must fail when one line of the facts is dropped, doubled or altered.
source "$(dirname "$0")/lib.sh"
need python3 jq awk

FACTS="$WORK/facts"
OUT="$WORK/run"

recounts() {
    python3 e2e/recount.py "$1" "$OUT" --gateway >"$WORK/recount.txt"
}

# tampered WHAT AWK-PROGRAM: the facts, changed by the program, must no longer make this ledger.
tampered() {
    awk -F '\t' -v OFS='\t' "$2" "$FACTS" >"$WORK/tampered"
    check "$1: one line of the facts is another" changed_once
    check "$1: the recount sees it" fails_to_recount
}

changed_once() {
    [ "$({ diff "$FACTS" "$WORK/tampered" || true; } | grep -c '^[<>]')" -le 2 ] && ! cmp -s "$FACTS" "$WORK/tampered"
}

fails_to_recount() {
    ! recounts "$WORK/tampered" && grep -q '^differs: ' "$WORK/recount.txt"
}

status_of "$MUSTER" run e2e/recount.yaml --quiet --facts "$FACTS" --out "$OUT" "${COUNTS_ONLY[@]}"
same "exit code: the SLO fails" "$STATUS" 1
[ "$STATUS" -eq 1 ] || cat "$WORK/out"
same "residue" "$(value "$OUT" .ledger.uplink.residue)" 0
check "the recount agrees with the result and with the gateway" recounts "$FACTS"
cat "$WORK/recount.txt"
echo "# $(value "$OUT" '.ledger.uplink | {scheduled, sent, shed, accepted, rejected, timed_out, broken, unacknowledged,
    arrived, lost, lost_unacknowledged, late, duplicates, reordered, corrupted, unstamped} | tostring')"

readonly SHOT='!done && $1 == kind && $0 ~ pattern'
for of in "attempt accepted" "attempt rejected" "attempt timed_out" "attempt broken" \
    "attempt unacknowledged" "arrival intact" "arrival corrupted" "link connected" "link disconnected"; do
    read -r kind pattern <<<"$of"
    given="BEGIN { kind = \"$kind\"; pattern = \"$pattern\" }"
    tampered "$of dropped" "$given $SHOT { done = 1; next } { print }"
    tampered "$of doubled" "$given $SHOT { done = 1; print } { print }"
done
given='BEGIN { kind = "attempt"; pattern = "accepted" }'
tampered "an outcome altered" "$given $SHOT { done = 1; \$10 = \"timed_out\" } { print }"
tampered "an outcome made a rejection" "$given $SHOT { done = 1; \$10 = \"rejected\"; \$11 = \"0x80\" } { print }"
tampered "a device altered" "$given $SHOT { done = 1; \$3 += 1 } { print }"
tampered "a number altered" "$given $SHOT { done = 1; \$5 += 1 } { print }"
tampered "a run altered" "$given $SHOT { done = 1; \$2 = 1 } { print }"
tampered "a due instant altered" "$given $SHOT { done = 1; \$6 += 1 } { print }"
given='BEGIN { kind = "attempt"; pattern = "rejected" }'
tampered "a code altered" "$given $SHOT { done = 1; \$11 = \"0x80\" } { print }"
given='BEGIN { kind = "arrival"; pattern = "intact" }'
tampered "an arrival's number altered" "$given $SHOT { done = 1; \$5 += 1 } { print }"
tampered "an arrival's run altered" "$given $SHOT { done = 1; \$2 = 1 } { print }"
tampered "an arrival's integrity altered" "$given $SHOT { done = 1; \$10 = \"corrupted\" } { print }"
tampered "an arrival without an id" "$given $SHOT { done = 1; \$2 = \$3 = \$4 = \$5 = \"-\" } { print }"
given='BEGIN { kind = "link"; pattern = "disconnected" }'
tampered "a link's cause altered" "$given $SHOT { done = 1; \$5 = \"reset\" } { print }"
finish
