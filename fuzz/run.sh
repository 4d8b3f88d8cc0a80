#!/usr/bin/env bash
# Runs a fuzz target on its corpus, which begins with the seeds that are kept for it, if any.
# Usage: fuzz/run.sh TARGET [LIBFUZZER_OPTION...]
set -euo pipefail
cd "$(dirname "$0")/.."

readonly TARGET=$1
shift
folders=("fuzz/corpus/$TARGET")
mkdir -p "${folders[0]}"
[ ! -d "fuzz/seeds/$TARGET" ] || folders+=("fuzz/seeds/$TARGET")
cargo fuzz run -s none "$TARGET" "${folders[@]}" -- "$@"
