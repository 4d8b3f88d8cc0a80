#!/usr/bin/env python3
"""Compares what Prometheus, InfluxDB and an OTLP receiver hold of a run with its result.json, and plays the servers
that are not installed: InfluxDB 2 by its published API, and an OTLP receiver by the published classes.

The table of docs/metrics.md names each metric and its place in the result; this file reads both by itself."""
import http.server
import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}


def table():
    """Rows of the page: names, form, labels and place."""
    measurement = None
    for line in open("docs/metrics.md"):
        found = re.match(r"Measurement `(\w+)`", line)
        if found:
            measurement = found.group(1)
        found = re.match(r"\| `(muster_\w+)`<br>`([\w.]+)`<br>field `(\w+)` \| (\w+), (\S+) \| (.*?) \|.* \| (.*) \|$", line)
        if found:
            prometheus, otlp, field, kind, unit, labels, place = found.groups()
            yield {"prometheus": prometheus, "otlp": otlp, "field": field, "kind": kind, "unit": unit,
                   "labels": re.findall(r"`(\w+)`", labels), "measurement": measurement,
                   "place": place.split("`")[1].replace("\\|", "|") if "`" in place else None}


def walk(at, steps, labels):
    """Values at a place, with the labels that stand for keys on the way."""
    if not steps:
        yield labels, at
        return
    step, rest = steps[0], steps[1:]
    if not step.startswith("{"):
        if isinstance(at, dict) and step in at:
            yield from walk(at[step], rest, labels)
        return
    for key, inner in (at or {}).items():
        names = re.findall(r"{(\w+)(?:=([^}]*))?}", step)
        parts = key.split("/", len(names) - 1)
        if len(parts) == len(names) and all(not only or part in only.split("|") for (_, only), part in zip(names, parts)):
            more = {name: part for (name, _), part in zip(names, parts)}
            yield from walk(inner, rest, {**labels, **more})


def expected(result):
    """(row, labels, suffix, value) of each value that the result has."""
    for row in table():
        if row["place"] is None or row["place"].startswith("windows"):
            continue
        for labels, value in walk(result, row["place"].split("."), {}):
            if value is None:
                continue
            if row["kind"] == "summary":
                count = value["count"]
                yield row, labels, "count", count
                yield row, labels, "sum", (value["mean_us"] or 0) * count / 1e6
                for key, quantile in QUANTILES.items():
                    if value[key + "_us"] is not None:
                        yield row, {**labels, "quantile": str(quantile)}, key, value[key + "_us"] / 1e6
            elif isinstance(value, str):
                yield row, {**labels, row["labels"][-1]: value}, "", 1
            else:
                yield row, labels, "", value


def compare(what, wanted, held):
    """Both are {name and labels: value}; prints a line, and what differs."""
    wrong = [(key, value, held.get(key)) for key, value in wanted.items()
             if key not in held or abs(held[key] - value) > 1e-9 * max(1, abs(value))]
    more = [key for key in held if key not in wanted]
    for key, value, got in wrong:
        print(f"# {what}: {key}: {got}, wanted {value}")
    for key in more:
        print(f"# {what}: {key} is in no result: {held[key]}")
    print(f"{len(wanted)} values, {len(wrong)} differ, {len(more)} unknown")
    sys.exit(0 if len(wanted) > 50 and not wrong and not more else 1)


def key(name, labels):
    return name + json.dumps({name: value for name, value in sorted(labels.items()) if value})


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


def prometheus(url, result):
    def ask(query):
        return get(f"{url}/api/v1/query?query={urllib.parse.quote(query)}")["data"]["result"]

    wanted, held = {}, {}
    for row, labels, suffix, value in expected(result):
        name = row["prometheus"] + (f"_{suffix}" if suffix in ("sum", "count") else "")
        wanted[key(name, labels)] = value
    # The last scrape is the one that holds the final values.
    for series in ask('last_over_time({__name__=~"muster_.*"}[15m]) and on(instance) last_over_time(muster_run_finished[15m])'):
        labels = series["metric"]
        name = labels.pop("__name__", None)
        held[key(name, {n: v for n, v in labels.items() if n not in ("instance", "job")})] = float(series["value"][1])
    # last_over_time drops the name in some versions: ask for each by name instead.
    if any(name.startswith("null") or name.startswith("None") for name in held) or not held:
        held = {}
        for name in {name.split("{")[0] for name in wanted}:
            for series in ask(f"last_over_time({name}[15m])"):
                labels = {n: v for n, v in series["metric"].items() if n not in ("instance", "job", "__name__")}
                held[key(name, labels)] = float(series["value"][1])
    known = {name.split("{")[0] for name in wanted}
    compare("Prometheus", wanted, {name: value for name, value in held.items() if name.split("{")[0] in known})


def series(url, database, query):
    query = urllib.parse.urlencode({"db": database, "q": query, "epoch": "ms"})
    found = get(f"{url}/query?{query}")["results"][0]
    if "error" in found:
        sys.exit(f"{query}: {found['error']}")
    return found.get("series", [])


def influx(url, database, result):
    wanted, held, fields = {}, {}, {}
    for row, labels, suffix, value in expected(result):
        field = row["field"] + (f"_{suffix}" if suffix else "")
        labels = {name: value for name, value in labels.items() if name != "quantile"}
        wanted[key(f"{row['measurement']}.{field}", labels)] = value
        fields.setdefault(row["measurement"], set()).add(field)
    for measurement, names in fields.items():
        for name in names:
            query = f"SELECT last(\"{name}\") FROM \"{measurement}\" WHERE \"run\" = '{result['run']}' GROUP BY *"
            for found in series(url, database, query):
                labels = {n: v for n, v in found["tags"].items() if n not in ("run", "scenario")}
                held[key(f"{measurement}.{name}", labels)] = found["values"][0][1]
    compare("InfluxDB", wanted, held)


def seconds(url, database, result):
    """Rates of each second against the windows of the result."""
    began_ms = None
    wanted, held = {}, {}
    for window in result["windows"]:
        if window["for_s"] == 1 and window["phase"] == "measure":
            wanted[window["t_s"]] = window["completed"]
    query = f"SELECT completed_per_second FROM muster_rates WHERE run = '{result['run']}'"
    for found in series(url, database, query):
        for at_ms, value in found["values"]:
            began_ms = began_ms or began_of(result)
            held[(at_ms - began_ms) / 1000] = value
    wrong = {at: (value, held.get(at)) for at, value in wanted.items() if held.get(at) != value}
    print(f"{len(wanted)} seconds, differ: {wrong}")
    # A second is shown two seconds after it; news that come later still are in the result alone.
    sys.exit(0 if len(wanted) >= 3 and not wrong else 1)


def began_of(result):
    from datetime import datetime
    return round(datetime.fromisoformat(result["started"].replace("Z", "+00:00")).timestamp() * 1000)


def events(url, database, result):
    """Annotations are the events of the result, and the phases and the verdict."""
    wanted = sorted([event["kind"], event["detail"]] for event in result["events"])
    held = []
    query = f"SELECT title, text FROM muster_events WHERE run = '{result['run']}'"
    for found in series(url, database, query):
        held += [[title, text] for _, title, text in found["values"] if title not in ("phase", "verdict")]
    print(f"{len(wanted)} events, held {len(held)}")
    sys.exit(0 if wanted and wanted == sorted(held) else f"{wanted} {sorted(held)}")


def published(url, database, result):
    """Sums of the seconds by the names of the published test."""
    ledger, protocol = result["ledger"]["uplink"], sys.argv[5]
    wanted = {f"{protocol}-publish.sent": ledger["sent"], "consumer.messageCount": ledger["arrived"]}
    if protocol != "mqtt":
        failures = ledger["rejected"] + ledger["timed_out"] + ledger["broken"]
        wanted.update({f"{protocol}-publish.success": ledger["accepted"], f"{protocol}-publish.failure": failures})
    held = {}
    for name in wanted:
        measurement, field = name.split(".")
        for found in series(url, database, f'SELECT sum("{field}") FROM "{measurement}"'):
            held[name] = found["values"][0][1]
    titles = series(url, database, 'SELECT title, description, tags FROM "events"')
    print(f"wanted {wanted}, held {held}, {len(titles[0]['values']) if titles else 0} events")
    sys.exit(0 if wanted == held and titles else 1)


def queries(dashboard):
    """Titles of panels, and their queries."""
    for panel in json.load(open(dashboard))["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target.get("expr") or target["query"]


def dashboard(url, database, result):
    """Every query of a dashboard is one, and panels are not empty in the middle of the measured phase."""
    measured = next(phase for phase in result["phases"] if phase["phase"] == "measure")
    middle_s = began_of(result) / 1000 + (measured["from_s"] + measured["until_s"]) / 2
    full, empty = set(), set()
    kind = "influxdb" if database else "prometheus"
    for title, query in queries(f"deploy/grafana/muster-{kind}.json"):
        if database:
            query = query.replace("$timeFilter", "time > now() - 1h").replace("$__interval", "1s").replace("$run", result["run"])
            found = series(url, database, query)
        else:
            query = query.replace("$instance", ".*").replace("$__rate_interval", "4s")
            found = get(f"{url}/api/v1/query?query={urllib.parse.quote(query)}&time={middle_s}")["data"]["result"]
        (full if found else empty).add(title)
    # The verdict comes later.
    lacking = sorted(empty - full - {"Verdict"})
    print(f"{len(full)} panels, empty: {lacking}")
    sys.exit(0 if len(full) >= 12 and not lacking else 1)


def otlp(path, result):
    wanted, held = {}, {}
    for row, labels, suffix, value in expected(result):
        name = row["otlp"] + (f".{suffix}" if suffix in ("sum", "count") else "")
        wanted[key(name, labels)] = value
    known = {row["otlp"]: row for row in table()}
    for line in open(path):
        point = json.loads(line)
        row = known[point["name"]]
        kinds = {"counter": "sum", "gauge": "gauge", "quantiles": "gauge", "summary": "summary"}
        is_right = kinds[row["kind"]] == point["kind"] and row["unit"] == point["unit"] and point["is_cumulative"]
        is_right = is_right and point["resource"]["service.instance.id"] == result["run"]
        if not is_right or point["start"] != began_of(result) * 1_000_000:
            sys.exit(f"{point} is not as {row}")
        for suffix, labels, value in point["values"]:
            held[key(point["name"] + suffix, labels)] = value
    names = {name.split("{")[0] for name in wanted}
    compare("OTLP", wanted, {name: value for name, value in held.items() if name.split("{")[0] in names})


def points_of(request):
    """Data points as the published classes read them."""
    for resource in request.resource_metrics:
        of = {attribute.key: attribute.value.string_value for attribute in resource.resource.attributes}
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                data = getattr(metric, kind)
                is_cumulative = kind != "sum" or (data.aggregation_temporality == 2 and data.is_monotonic)
                for point in data.data_points:
                    labels = {attribute.key: attribute.value.string_value for attribute in point.attributes}
                    if kind == "summary":
                        values = [(".count", labels, point.count), (".sum", labels, point.sum)]
                        values += [("", {**labels, "quantile": str(at.quantile)}, at.value) for at in point.quantile_values]
                    else:
                        values = [("", labels, getattr(point, point.WhichOneof("value")))]
                    yield {"name": metric.name, "unit": metric.unit, "kind": kind, "resource": of, "values": values,
                           "is_cumulative": is_cumulative, "start": point.start_time_unix_nano, "at": point.time_unix_nano}


def mock(port, dump, forward):
    """POST /api/v2/write as the OpenAPI document of InfluxDB 2 describes it, whose lines a real InfluxDB 1 keeps; and
    POST /v1/metrics as the OTLP specification does."""
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (ExportMetricsServiceRequest,
                                                                              ExportMetricsServiceResponse)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def say(self, status, body=b"", kind="application/json"):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            path, _, query = self.path.partition("?")
            query = dict(urllib.parse.parse_qsl(query))
            if path == "/v1/metrics":
                self.metrics(body)
            elif path == "/api/v2/write":
                self.write(query, body)
            else:
                self.say(404)

        def metrics(self, body):
            if self.headers["Content-Type"] != "application/x-protobuf":
                return self.say(415)
            if self.headers["api-key"] != "s3same=":
                return self.say(401)
            with open(dump, "a") as out:
                for point in points_of(ExportMetricsServiceRequest.FromString(body)):
                    out.write(json.dumps(point) + "\n")
            self.say(200, ExportMetricsServiceResponse().SerializeToString(), "application/x-protobuf")

        def write(self, query, body):
            def refuse(status, code, message):
                self.say(status, json.dumps({"code": code, "message": message}).encode())

            if self.headers["Authorization"] != "Token t0p-s3cret":
                return refuse(401, "unauthorized", f"unauthorized access: {self.headers['Authorization']}")
            if query.get("org") != "my org":
                return refuse(404, "not found", f"organization name {query.get('org')!r} not found")
            if query.get("bucket") != "b" or query.get("precision") not in ("ns", "us", "ms", "s"):
                return refuse(404, "not found", f"bucket {query.get('bucket')!r} not found")
            if not self.headers["Content-Type"].startswith("text/plain"):
                return refuse(415, "unsupported media type", "not line protocol")
            try:
                to = f"{forward}&precision={query['precision']}"
                urllib.request.urlopen(urllib.request.Request(to, data=body, method="POST"), timeout=5).read()
            except urllib.error.HTTPError as error:
                return refuse(400, "invalid", error.read().decode())
            self.say(204)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.serve_forever()


def main():
    action, *arguments = sys.argv[1:]
    if action == "mock":
        return mock(int(arguments[0]), arguments[1], arguments[2])
    result = json.load(open(arguments[-1] if action != "published" else arguments[2]))
    if action == "prometheus":
        prometheus(arguments[0], result)
    elif action == "otlp":
        otlp(arguments[0], result)
    else:
        {"influx": influx, "seconds": seconds, "events": events, "published": published, "dashboard": dashboard}[action](*arguments[:2], result)


if __name__ == "__main__":
    main()
