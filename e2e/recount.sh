#!/usr/bin/env bash
# The facts of a small run in which much goes wrong, recounted by a script that shares no code with
# Muster: the same ledger, cell by cell, and the same as the gateway's account of raw payloads. The
# recount must fail when our own consumer loses a copy, and when one line of the facts is dropped,
# doubled or altered. So it is with a run that has commands and devices that subscribe.
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

python3 e2e/recount_test.py 2>"$WORK/cases" || cat "$WORK/cases"
check "what was lost in the air for good is told from what came again" grep -qx OK "$WORK/cases"
status_of "$MUSTER" run e2e/recount.yaml --quiet --facts "$FACTS" --out "$OUT"
judged "the SLO fails" "$OUT" fail
same "residue" "$(value "$OUT" .ledger.uplink.residue)" 0
check "the recount agrees with the result and with the gateway" recounts "$FACTS"
cat "$WORK/recount.txt"
echo "# $(value "$OUT" '.ledger.uplink | {scheduled, sent, shed, accepted, rejected, timed_out, broken, unacknowledged,
    arrived, lost, lost_unacknowledged, late, duplicates, reordered, corrupted, unstamped} | tostring')"

# loses HOW: a run whose consumer loses one copy by itself, before or after it is counted.
loses() {
    OUT="$WORK/lost-$1"
    LOST="$WORK/facts-$1"
    status_of "$MUSTER" run e2e/recount.yaml --quiet --facts "$LOST" --out "$OUT" --lose-copy "$1"
}

only_the_gateway_differs() {
    ! recounts "$LOST" && grep -q '^differs: delivered: .* the gateway says' "$WORK/recount.txt" &&
        ! grep '^differs: ' "$WORK/recount.txt" | grep -qv 'the gateway says'
}

told_that_consumed_differs() {
    ! recounts "$LOST" && grep -q '^differs: .*consumed' "$WORK/recount.txt"
}

# Ledger and facts come from one consumer: what it never counted only the gateway knows.
loses uncounted
same "a copy lost before it is counted: residue" "$(value "$OUT" .ledger.uplink.residue)" 0
check "a copy lost before it is counted: facts and ledger agree" \
    python3 e2e/recount.py "$LOST" "$OUT"
check "a copy lost before it is counted: the gateway's account differs, and nothing else" only_the_gateway_differs
grep '^differs: ' "$WORK/recount.txt" | sed 's/^/# /'
loses counted
same "a copy lost after it is counted: exit code, invalid" "$STATUS" 3
same "a copy lost after it is counted: residue" "$(value "$OUT" .ledger.uplink.residue)" 1
check "a copy lost after it is counted: the recount sees it" told_that_consumed_differs
grep '^differs: ' "$WORK/recount.txt" | sed 's/^/# /'
OUT="$WORK/run"

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

# Commands, and devices that subscribe, with names and topics of the scenario's own.
FACTS="$WORK/facts-commands" OUT="$WORK/commands"
status_of "$MUSTER" run e2e/recount-commands.yaml --quiet --facts "$FACTS" --out "$OUT"
judged "commands: messages are lost" "$OUT" fail
for ledger in command receive; do
    same "ledger of $ledger: residue" "$(value "$OUT" ".ledger.$ledger.residue")" 0
done
same "commands lost" "$(value "$OUT" .ledger.command.delivered_not_received)" 9
check "commands and subscribers: the recount agrees with the result and with the gateway" recounts "$FACTS"
cat "$WORK/recount.txt"
for kind in issue presence receipt answer reply reception; do
    given="BEGIN { kind = \"$kind\"; pattern = \"\" }"
    tampered "$kind dropped" "$given $SHOT { done = 1; next } { print }"
    tampered "$kind doubled" "$given $SHOT { done = 1; print } { print }"
done
given='BEGIN { kind = "reception"; pattern = "intact" }'
tampered "a subscriber altered" "$given $SHOT { done = 1; \$8 += 1 } { print }"
tampered "a subscriber's stream altered" "$given $SHOT { done = 1; \$9 += 1 } { print }"
tampered "the device of what it got altered" "$given $SHOT { done = 1; \$3 += 1 } { print }"
tampered "the number of what it got altered" "$given $SHOT { done = 1; \$5 += 1 } { print }"
tampered "the run of what it got altered" "$given $SHOT { done = 1; \$2 = 1 } { print }"
given='BEGIN { kind = "receipt"; pattern = "intact" }'
tampered "who got a command altered" "$given $SHOT { done = 1; \$7 += 1 } { print }"
given='BEGIN { kind = "presence"; pattern = "online" }'
tampered "where a device stood altered" "$given $SHOT { done = 1; \$7 = \"offline\" } { print }"
given='BEGIN { kind = "issue"; pattern = "delivered" }'
tampered "a delivery altered" "$given $SHOT { done = 1; \$9 = \"unknown\" } { print }"
finish
