#!/usr/bin/env python3
"""Writes the telemetry of gateways as rows of ThingsBoard's tables, as its SQL does: each value of a point is a row of
`ts_kv` under the number that `key_dictionary` gives its key, and replaces one of the same device, key and instant.

Reads bodies of `v1/gateway/telemetry`, one a line; prints a statement for each message as it comes."""

import json
import sys


def text(value):
    return "'" + str(value).replace("'", "''") + "'"


def columns(value):
    """The value in the column of its type: bool_v, str_v, long_v, dbl_v, json_v."""
    places = {bool: 0, str: 1, int: 2, float: 3}
    place = places.get(type(value), 4)
    row = ["NULL::boolean", "NULL::varchar", "NULL::bigint", "NULL::double precision", "NULL::json"]
    row[place] = text(json.dumps(value) if place == 4 else value) + "::" + row[place].split("::")[1]
    return ", ".join(row)


for line in sys.stdin:
    keys, rows = set(), []
    for name, points in json.loads(line).items():
        for point in points:
            for key, value in point["values"].items():
                keys.add(f"({text(key)})")
                rows.append(f"({text(name)}, {text(key)}, {int(point['ts'])}, {columns(value)})")
    print(f"INSERT INTO key_dictionary (key) VALUES {', '.join(sorted(keys))} ON CONFLICT DO NOTHING;")
    print(
        "INSERT INTO ts_kv (entity_id, key, ts, bool_v, str_v, long_v, dbl_v, json_v)"
        " SELECT id, key_id, ts, bool_v, str_v, long_v, dbl_v, json_v"
        f" FROM (VALUES {', '.join(rows)}) AS point (device, name, ts, bool_v, str_v, long_v, dbl_v, json_v)"
        " JOIN device ON device.name = point.device JOIN key_dictionary ON key_dictionary.key = point.name"
        " ON CONFLICT (entity_id, key, ts) DO UPDATE SET bool_v = EXCLUDED.bool_v, str_v = EXCLUDED.str_v,"
        " long_v = EXCLUDED.long_v, dbl_v = EXCLUDED.dbl_v, json_v = EXCLUDED.json_v;",
        flush=True,
    )
