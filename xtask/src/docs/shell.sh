# Commands for the shells that run blocks of the documents. The program is $PROGRAM, the project $PROJECT.

# Starts a gateway that lives until its block ends, and waits for the line that says where it listens.
gateway() {
    local line from
    exec {from}< <(exec "$PROGRAM" gateway "$@" 2>&1)
    echo "$!" >>gateways
    while read -r -t 60 -u "$from" line; do
        [[ $line != *listens* ]] || { cat <&"$from" >/dev/null & return 0; }
        echo "$line"
    done
    return 1
}

end_gateways() {
    local status=$?
    [ ! -e gateways ] || xargs kill <gateways || true
    rm -f gateways
    wait
    exit "$status"
}

# cargo run -- ARGUMENT... is the program itself.
of_cargo() {
    while [ $# -gt 0 ] && [ "$1" != -- ]; do shift; done
    shift && muster "$@"
}

to_run() {
    trap end_gateways EXIT
    muster() {
        case ${1:-} in
            gateway) gateway "${@:2}" ;;
            *) "$PROGRAM" "$@" ;;
        esac
    }
    cargo() {
        [ "$1" = run ] || { echo "cargo $1 is not run here: mark the block with needs="; return 1; }
        of_cargo "$@"
    }
}

# Nothing but these functions and the shell's own words: whatever else a block starts is left out.
to_parse() {
    exec 3>parsed
    trap end_parsing EXIT
    muster() {
        "$PROGRAM" "$@" --help >help.log 2>&1 || echo "muster $*: $(<help.log)" >&3
        local argument
        for argument; do
            [[ $argument != scenarios/* ]] || [ -e "$argument" ] || echo "muster $*: no such file" >&3
        done
    }
    cargo() { [ "$1" != run ] || [[ " $* " == *" -p "* ]] || of_cargo "$@"; }
    just() {
        [[ $'\n'$(<"$PROJECT/justfile") =~ $'\n'"$1"[\ :] ]] || echo "just $1: no such recipe" >&3
        [ "$1" != e2e ] || bash "e2e/$2.sh"
    }
    bash() { [ -e "$PROJECT/$1" ] || echo "bash $1: no such file" >&3; }
    sudo() { "$@"; }
    seq() { echo 1; }
    taskset() { "${@:3}"; }
    command_not_found_handle() { :; }
    PATH=/nowhere
}

end_parsing() {
    PATH=/usr/bin:/bin
    wait
    cat parsed
    [ ! -s parsed ]
    exit $?
}
