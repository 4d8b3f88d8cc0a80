#!/usr/bin/env bash
# Which lines the corpus of a fuzz target reaches: builds the target with coverage, runs the corpus
# once, and prints the files of the crates that the target aims at.
# Usage: fuzz/coverage.sh TARGET [FILE_FILTER]. Needs Debian's llvm-19.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly TARGET=$1 FILTER=${2:-crates/}
readonly FOLDER=${CARGO_TARGET_DIR:-target}/fuzz-coverage
corpus=("fuzz/corpus/$TARGET")
[ -d "${corpus[0]}" ] || { echo "no corpus in ${corpus[0]}: run just fuzz $TARGET first"; exit 1; }
[ ! -d "fuzz/seeds/$TARGET" ] || corpus+=("fuzz/seeds/$TARGET")

RUSTFLAGS="-Cinstrument-coverage --cfg fuzzing" CARGO_TARGET_DIR="$FOLDER" \
    cargo build --quiet --manifest-path fuzz/Cargo.toml --bin "$TARGET"
LLVM_PROFILE_FILE="$FOLDER/$TARGET.profraw" \
    "$FOLDER/debug/$TARGET" -runs=0 "${corpus[@]}" 2>&1 | grep -E 'INITED|DONE'
llvm-profdata-19 merge -sparse "$FOLDER/$TARGET.profraw" -o "$FOLDER/$TARGET.profdata"
llvm-cov-19 report "$FOLDER/debug/$TARGET" -instr-profile="$FOLDER/$TARGET.profdata" |
    awk -v filter="$FILTER" 'match($1, "crates/") && index($1, filter) {
        printf "%-50s %4d lines, %s reached\n", substr($1, RSTART), $8, $10 }'
