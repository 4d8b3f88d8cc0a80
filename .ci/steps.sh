# Steps with a name, a time and a log each, for the scripts that source this file: .ci/run and .ci/nightly.
set -euo pipefail
SELF=$(readlink -f "$0")
readonly SELF
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly LOGS=${LOGS:-target/ci}
readonly VENV=target/ci/venv
# How long a step may take, and how long a script.
readonly STEP_LIMIT=${STEP_LIMIT:-30m} SCRIPT_LIMIT=10m
# One line a step that has ended: passed, failed, status, seconds, name.
readonly ENDED=$LOGS/ended
export CARGO_TERM_COLOR=never
# From a fresh clone each crate is compiled once a profile: what would make a second time quick only costs time.
export CARGO_INCREMENTAL=0
# A panic keeps its backtrace; errors of which a program makes thousands, and prints some, need none.
export RUST_LIB_BACKTRACE=0
# Panics name their place without it.
export CARGO_PROFILE_DEV_DEBUG=0
# Debian keeps mosquitto in /usr/sbin, which is not on every PATH.
export PATH="$PWD/$VENV/bin:${CARGO_HOME:-$HOME/.cargo}/bin:$PATH:/usr/sbin"

log_of() {
    printf '%s/%s.log' "$LOGS" "$(tr -c 'a-z0-9\n' '-' <<<"$1")"
}

# step NAME COMMAND...: runs the command, times it, and counts it. A command that runs tests counts
# each of them instead, as its closing lines tell.
step() {
    local name=$1 started=$SECONDS log tests passed failed status=0 how=ok
    shift
    log=$(log_of "$name")
    printf '\n==> %s\n' "$name"
    timeout --kill-after=30s "${LIMIT:-$STEP_LIMIT}" "$@" 2>&1 | tee "$log" || status=$?
    tests=$(sed -nE 's/^test result: .* ([0-9]+) passed; ([0-9]+) failed;.*/\1 \2/p' "$log" |
        awk '{ passed += $1; failed += $2 } END { print passed + 0, failed + 0 }')
    passed=${tests% *} failed=${tests#* }
    if [ "$status" -eq 0 ]; then
        [ "$tests" != "0 0" ] || passed=1
    else
        [ "$failed" != 0 ] || failed=1
        how="FAILED with $status"
    fi
    printf '%d %d %d %d %s\n' "$passed" "$failed" "$status" $((SECONDS - started)) "$name" >>"$ENDED"
    printf '==> %s: %s, %d s\n' "$name" "$how" $((SECONDS - started))
}

# lanes COUNT SCRIPT...: so many end-to-end scripts at a time; the output of each comes in one piece.
lanes() {
    local count=$1
    shift
    printf '%s\n' "$@" | xargs -P "$count" -I{} bash "$SELF" lane {}
}

# lane SCRIPT: one of them.
lane() {
    local out
    out=$(LIMIT=$SCRIPT_LIMIT step "$1" bash "$1")
    printf '%s\n' "$out"
}

install_packages() {
    local sudo=()
    [ "$(id -u)" -eq 0 ] || sudo=(sudo)
    "${sudo[@]}" apt-get update -qq
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

install_python() {
    python3 -m venv "$VENV"
    "$VENV/bin/pip" install --quiet --disable-pip-version-check 'paho-mqtt>=2,<3' 'opentelemetry-proto>=1.30,<2' \
        tb-ce-client==4.4.0 tb-rest-client==4.4
}

# tool NAME: a tool of cargo's. It works for seconds, and compiles for minutes with all optimizations.
tool() {
    command -v "$1" >/dev/null || cargo install --quiet --locked --debug "$1"
}

# summary: the steps in a table, what failed with its last lines, and the counts; its status is that of all.
summary() {
    printf '\n| step | result | seconds |\n|---|---|---|\n'
    awk '{ name = $5; for (i = 6; i <= NF; i++) name = name " " $i
        printf "| %s | %s | %d |\n", name, $3 == 0 ? "ok" : "FAILED", $4 }' "$ENDED"
    printf '\n==> all steps: %d s\n' "$SECONDS"
    local name
    while read -r _ _ _ _ name; do
        printf 'failed: %s; its last lines:\n' "$name"
        tail -n 40 "$(log_of "$name")" | cut -c-300
    done < <(awk '$3 != 0' "$ENDED")
    awk '{ passed += $1; failed += $2 } END { printf "%d passed, %d failed\n", passed, failed; exit failed > 0 }' "$ENDED"
}
