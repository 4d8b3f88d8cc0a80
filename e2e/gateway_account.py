"""Compares the lines that did not come with the payload hashes of the gateway's account."""

import json
import sys


def fnv1a(payload: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in payload:
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return value


def main() -> int:
    account, misbehaviour, sent, got = sys.argv[1:]
    befell = json.loads(account)["misbehaved"].get(misbehaviour, [])
    with open(sent, "rb") as lines:
        sent_lines = lines.read().splitlines()
    with open(got, "rb") as lines:
        got_lines = set(lines.read().splitlines())
    absent = sorted(f"{fnv1a(line):016x}" for line in sent_lines if line not in got_lines)
    if absent != befell:
        print(f"absent {absent}, account {befell}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
