#!/usr/bin/env bash
# The tables of docs/hono-published.md, from results alone: of two that are there (DIR DIR), or else of both tests run one after
# the other against a real Hono, which has just begun with the first. MEASURE makes them shorter; RATE1 and RATE2 are messages
# a second and class. By hand, since the tests last half an hour; MUSTER should be a release build.
source "$(dirname "$0")/../lib.sh"
need jq

# ours DIR...: lines of a table with one column a result.
ours() {
    jq -rs '
        def times(t): [t["avg", "95%", "99%", "99.9%", "max"]] | map((. // "-") | rtrimstr(" ms")) | join(", ");
        def failed(f): if f == {} then "none" else [f | to_entries[] | "\(.key) \(.value)"] | join(", ") end;
        def line(name; cell): [name] + map(cell) | "| " + join(" | ") + " |";
        def rates: .rates | [.offered, .issued, .completed, .arrived] | map(. * 10 | round / 10 | tostring) | join(", ");
        line("version, seconds measured"; "\(.muster), \(.measured_s)"),
        line("verdict"; .verdict.result + ([.verdict.rules[] | select(.consequence == "fails" or .consequence == "invalidates") | .rule] | if . == [] then "" else ": " + join(", ") end)),
        line("a second: offered, issued, completed, arrived"; rates),
        line("residue of uplink, of commands"; "\(.ledger.uplink.residue), \(.ledger.command.residue)"),
        line("devices connected / lost later / failed to connect"; .published.hono |
            "\(.numClientSuccessfulConnects) / \(.numClientDisconnects) / \(.numClientConnectFailureClients)"),
        line("telemetry, events, queries sent"; .published.hono |
            "\(.publishedTelemetryCount), \(.publishedEventsCount), \(.publishedCommandQueries)"),
        line("commands received, answered"; .published.hono | "\(.receivedCommands), \(.answeredCommandsCount)"),
        line("telemetry: average, 95 %, 99 %, 99.9 %, longest (ms)"; times(.published.hono.coapRttSendTelemetry)),
        line("events"; times(.published.hono.coapRttSendEvent)),
        line("query to command"; times(.published.hono.coapRttSendCommandRequest)),
        line("reply to its answer"; times(.published.hono.coapRttSendCommandResponse)),
        line("telemetry failed"; failed(.published.hono.coapErrorsSendTelemetry)),
        line("events failed"; failed(.published.hono.coapErrorsSendEvent)),
        line("queries failed"; failed(.published.hono.coapErrorsSendCommandRequest)),
        line("replies failed"; failed(.published.hono.coapErrorsSendCommandResponse)),
        line("not issued"; .published.hono.notIssued | "\(.telemetry), \(.event), \(.commandRequest)"),
        line("open at the end"; .published.hono.inFlightAtStop | "\(.telemetry), \(.event), \(.commandRequest), \(.commandResponse)"),
        line("lost on the way to the application"; .ledger.uplink.lost),
        line("arrived though rejected, though timed out"; .ledger.uplink | "\(.rejected_but_arrived), \(.timed_out_but_arrived)"),
        line("answers, 99 %: cold, warm (ms)"; [.latency_cold, .latency_warm | .response.p99_us // 0 | . / 1000] | map(tostring) | join(", "))
    ' "${@/%//result.json}"
}

# redone NUMBER RATE: one of the two tests at this Hono.
redone() {
    local rates=() stream
    for stream in 0 1 2; do rates+=(--set "fleet[0].streams[$stream].rate=$2/s"); done
    status_of "$MUSTER" run "scenarios/hono-coap-test$1.yaml" --out "$WORK/test$1" --set "platform.devices=[$COAPS]" \
        --set "platform.backend.url=kafka://127.0.0.1:$KAFKA" --set "provision.url=http://127.0.0.1:$REGISTRY" \
        --set "phases.measure=${MEASURE:-15m}" "${rates[@]}"
    check "test $1: it ran (exit code $STATUS)" test -f "$WORK/test$1/result.json"
    [ "$STATUS" -le 1 ] || cat "$WORK/out"
}

if [ $# -eq 2 ]; then
    ours "$@"
    exit
fi
source e2e/peers/kafka/node.sh
source e2e/hono/platform.sh
need curl java kcat mvn
ADAPTER_HEAP=3g
start_hono
redone 1 "${RATE1:-300}"
redone 2 "${RATE2:-600}"
printf '| | test 1, ours | test 2, ours |\n|---|---|---|\n'
ours "$WORK/test1" "$WORK/test2"
finish
