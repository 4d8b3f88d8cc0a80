#!/usr/bin/env bash
# docs/first-scenario.md as a reader would follow it: each file saved under its name, each command run as printed.
source "$(dirname "$0")/lib.sh"
need jq mosquitto mosquitto_passwd openssl

readonly PAGE=$PWD/docs/first-scenario.md
MUSTER=$(realpath "$MUSTER")

# The files of the page into FOLDER, and its commands, in order, into FOLDER/commands.
unpack() {
    python3 - "$PAGE" "$1" <<'PYTHON'
import pathlib, re, sys

text, folder = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2])
commands = []
for before, kind, body in re.findall(r"([^\n]*)\n\n```(\w*)[^\n]*\n(.*?)```", text, re.S):
    saved = re.fullmatch(r"Save as `([\w.-]+)`:", before)
    if saved:
        (folder / saved[1]).write_text(body)
    elif kind == "sh":
        commands.append(body)
(folder / "commands").write_text("set -e\n" + "".join(commands))
PYTHON
}

mkdir "$WORK/page" "$WORK/bin"
ln -s "$MUSTER" "$WORK/bin/muster"
# The page's brokers end with this script, and go on only when they listen.
cat >"$WORK/bin/mosquitto" <<EOF
#!/usr/bin/env bash
"$(command -v mosquitto)" "\$1" "\$2" >>broker.log 2>&1 &
echo "\$!" >>"$WORK/brokers"
$(declare -f listens)
listens "\$(sed -n 's/^listener \([0-9]*\).*/\1/p' "\$2")"
EOF
chmod +x "$WORK/bin/mosquitto"
unpack "$WORK/page"
status=0
(cd "$WORK/page" && PATH="$WORK/bin:$PATH" bash commands >out 2>&1) || status=$?
while read -r pid; do STARTED+=("$pid"); done <"$WORK/brokers"
same "the page's commands: exit code" "$status" 0
[ "$status" -eq 0 ] || tail -n 40 "$WORK/page/out"
for name in plain slo tls; do
    same "$name: verdict" "$(value "$WORK/page/results/$name" .verdict.result)" pass
done
same "plain: messages due, as the page has it" "$(value "$WORK/page/results/plain" .ledger.uplink.scheduled)" 6000
same "tls: all links took their passwords" "$(grep -c '20 of 20 links connected' "$WORK/page/out")" 1
check "tls: no password in the results" test -z "$(grep -rl app-secret "$WORK/page/results" || true)"
finish
