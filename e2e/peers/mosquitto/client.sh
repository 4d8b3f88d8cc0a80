#!/usr/bin/env bash
# mosquitto_sub and mosquitto_pub; the arguments are those of every client here (interop.sh).
set -euo pipefail
command=$1
shift
declare -A told
while [ $# -gt 0 ]; do told[$1]=$2; shift 2; done
url=${told[--url]}
port=${url##*:}
version=${told[--version]:-5}
count=${told[--count]:-1}
options=(-h 127.0.0.1 -p "$port" -t "${told[--topic]}" -q "${told[--qos]:-0}" -V "mqttv${version//./}")
[ "${told[--pki]:-}" = "" ] || options+=(--cafile "${told[--pki]}/ca.pem" --cert "${told[--pki]}/client.pem" --key "${told[--pki]}/client.key")
[ "${told[--will]:-}" = "" ] || options+=(--will-topic "${told[--will]}" --will-payload gone --will-qos 1)
[ "${told[--receive-maximum]:-}" = "" ] || options+=(-D connect receive-maximum "${told[--receive-maximum]}")
[ "${told[--retain]:-}" = "" ] || options+=(-r)
case $command in
sub) exec stdbuf -oL mosquitto_sub "${options[@]}" -d -C "$count" -F '%t %q %r %p' ;;
pub)
    if [ "$count" = 1 ]; then
        mosquitto_pub "${options[@]}" -m "${told[--payload]}"
    else
        seq -f "${told[--payload]}-%g" 0 $((count - 1)) | mosquitto_pub "${options[@]}" -l
    fi
    echo "accepted $count"
    ;;
esac
