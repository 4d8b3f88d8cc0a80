# The developer's menu: each recipe is one line that calls cargo, xtask or a script.

# Lists the recipes.
default:
    @just --list --unsorted

# What a commit needs, cheapest first; stops at the first failure.
check:
    cargo fmt --all --check && cargo run -q -p xtask -- tidy && cargo run -q -p xtask -- layers && cargo clippy --workspace --all-targets -- -D warnings && cargo clippy --workspace --no-default-features -- -D warnings && cargo fmt --manifest-path fuzz/Cargo.toml --check && cargo check --manifest-path fuzz/Cargo.toml && cargo test --workspace --features muster-provision/mongodb,muster-provision/postgresql,muster/kubernetes && RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps

# Tests, all or those whose name holds the filter.
test filter="":
    cargo test --workspace {{ filter }}

# The first scenario against the embedded gateway, with its report.
demo:
    cargo run --release -- run scenarios/first.yaml

# The simulation under the virtual clock, with one seed or fresh ones.
sim seed="":
    MUSTER_SIM_SEED={{ seed }} PROPTEST_CASES=256 cargo test --release -p muster-sim

# 100,000 handshakes of DTLS at 20 % loss, under virtual time.
dtls:
    cargo test --release -p muster-transport --test dtls -- --ignored

# Speed and memory, side by side with the bare loop.
bench *arguments:
    cargo run --release -p xtask -- bench {{ arguments }}

# One end-to-end script against a real peer, such as `just e2e mosquitto`.
e2e peer:
    bash e2e/{{ peer }}.sh

# Every peer that docs/interop.md names; needs Go, JDK 17, Maven and npm.
interop:
    INTEROP_BROKERS="mosquitto mochi hivemq aedes moquette" INTEROP_CLIENTS="mosquitto paho mqttjs paho-go hivemq-client" bash e2e/interop.sh && COAP_PEERS="libcoap californium" bash e2e/coap.sh && AMQP_SENDERS="proton rhea" bash e2e/amqp.sh

# Writes the golden files anew and shows the difference.
bless:
    MUSTER_BLESS=1 INSTA_UPDATE=always cargo test --workspace; git diff --stat

# One fuzz target for some seconds (cargo install cargo-fuzz); without a target, their list.
fuzz target="" seconds="60":
    {{ if target == "" { "cargo fuzz list" } else { "bash fuzz/run.sh " + target + " -max_total_time=" + seconds } }}

# Plants each fault of faults/, or those whose names begin so, and demands that its test fails.
faults *names:
    cargo run -q -p xtask -- faults {{ names }}

# All that CI does for a commit, installing what it needs.
ci:
    bash .ci/run

# What is too long for each commit, installing what it needs; up to two hours.
nightly:
    bash .ci/nightly
