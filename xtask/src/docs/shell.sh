# What blocks of the documents are run with. The program is $PROGRAM, the project $PROJECT, the block $BLOCK.

# A gateway runs until the block ends; the commands after it need one that listens.
gateway() {
    "$PROGRAM" gateway "$@" >gateway.log 2>&1 &
    GATEWAYS+=("$!")
    for _ in {1..100}; do
        ! grep -q listens gateway.log || return 0
        kill -0 "$!" || break
        sleep 0.05
    done
    cat gateway.log
    return 1
}

# cargo run -- ARGUMENT... and cargo run -p xtask -- ARGUMENT... are the programs themselves.
of_cargo() {
    local package=muster
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        [ "$1" != -p ] || package=$2
        shift
    done
    [ "$package" = muster ] && shift && muster "$@"
}

run_block() {
    GATEWAYS=()
    trap 'status=$?; kill "${GATEWAYS[@]}" 2>/dev/null || true; wait; exit "$status"' EXIT
    muster() {
        case ${1:-} in
            gateway) gateway "${@:2}" ;;
            *) "$PROGRAM" "$@" ;;
        esac
    }
    cargo() {
        [ "$1" = run ] && of_cargo "$@" || { echo "cargo $1 is not run here: mark the block with needs="; return 1; }
    }
    set -euo pipefail
    eval "$BLOCK"
}

# Nothing but these functions and the shell's own words: whatever else a block starts is left out.
parse_block() {
    FAILED=0
    local parsed
    parsed=$(mktemp)
    exec 3>"$parsed"
    muster() { "$PROGRAM" "$@" --help >help.log 2>&1 || { echo "muster $*: $(head -n 1 help.log)" >&3; }; }
    cargo() {
        [ "$1" != run ] || [[ " $* " == *" -p "* ]] || of_cargo "$@"
    }
    just() { [ $# -eq 0 ] || /usr/bin/grep -qE "^$1( [^:]*)?:" "$PROJECT/justfile" || echo "just $1: no such recipe" >&3; }
    bash() { [ -e "$PROJECT/$1" ] || echo "bash $1: no such file" >&3; }
    sudo() { "$@"; }
    seq() { echo 1; }
    head() { /usr/bin/head "$@"; }
    command_not_found_handle() { :; }
    local PATH=/nowhere
    eval "$BLOCK"
    PATH=/usr/bin:/bin
    wait
    cat "$parsed"
    [ ! -s "$parsed" ]
    FAILED=$?
    rm "$parsed"
    exit "$FAILED"
}
