#!/usr/bin/env python3
"""Recounts the facts of a run and compares them with its result, cell by cell.

Usage: recount.py FACTS RESULT_FOLDER [--gateway]

Reads the lines that `muster run --facts` wrote (the format stands at the top of
crates/measure/src/facts.rs) and counts them again with nothing but sets and dictionaries: the
whole run, the measured cohort, each stream, each backend's table and lost messages, the links, and
the latencies, and commands and subscribers where there are any. From the result it takes the scenario
with its names, topics and filters, the instants of the phases and the number of messages that were
due; with --gateway it also compares with `gateway.json`, what the
gateway says it did. Prints every difference; the status is 1 if there is one.
"""

import json
import re
import sys
from collections import Counter, defaultdict, namedtuple

Attempt = namedtuple("Attempt", "due taken sent ended state code resent")
Arrival = namedtuple("Arrival", "id due seen backend consumer integrity")
Device = namedtuple("Device", "fleet name values")
Stream = namedtuple("Stream", "name deadline keys devices")

SENT = ["accepted", "rejected", "timed_out", "broken", "unacknowledged", "in_flight"]
EXPECTED = ("accepted", "unacknowledged")
UNITS = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
# A percentile of the report stands for a bucket of its histogram.
BUCKET = 0.01

complaints = []


def complain(text):
    complaints.append(text)


def same(name, recounted, told):
    if recounted != told:
        complain(f"{name}: recounted {recounted}, the result says {told}")


def number(text):
    return None if text == "-" else int(text)


def micros(text):
    if text is None:
        return None
    return sum(round(float(n) * UNITS[u]) for n, u in re.findall(r"([\d.]+)(us|ms|s|m|h)", text))


class Facts:
    """The lines of the file, by kind, in their order."""

    def __init__(self, path):
        self.attempts = {}
        self.arrivals = []
        self.links = []
        self.queries, self.issues, self.answers, self.presences = {}, {}, {}, {}
        self.receipts, self.replies, self.receptions = [], [], []
        self.runs, self.lines = Counter(), 0
        with open(path, encoding="ascii") as lines:
            if next(lines) != "# muster-facts/2\n":
                sys.exit(f"{path}: not a facts file of version 2")
            for line in lines:
                kind, *fields = line.rstrip("\n").split("\t")
                getattr(self, kind)(fields)
                self.lines += 1

    def attempt(self, fields):
        run, *name = map(int, fields[:4])
        due, taken, sent, ended = map(number, fields[4:8])
        self.runs[run] += 1
        message = tuple(name)
        attempt = Attempt(due, taken, sent, ended, fields[8], fields[9], fields[10] == "1")
        if message in self.attempts:
            complain(f"message {message}: two final states")
        instants = [at for at in (due, taken, sent) if at is not None]
        if instants != sorted(instants) or ended < instants[-1]:
            complain(f"message {message}: its instants are not in order: {attempt}")
        if not 0 <= int(fields[11]) <= ended - due:
            complain(f"message {message}: {fields[11]} us are our own, of {ended - due}")
        if (sent is None) != (attempt.state == "shed"):
            complain(f"message {message}: {attempt.state}, and sent at {sent}")
        self.attempts[message] = attempt

    def arrival(self, fields):
        run, *name = map(number, fields[:4])
        due, seen, backend, consumer = map(number, fields[4:8])
        message = None if run is None else (run, *name)
        if due is not None and not 0 <= int(fields[9]) <= max(seen - due, 0):
            complain(f"copy of {message}: {fields[9]} us are our own, of {seen - due}")
        self.arrivals.append(Arrival(message, due, seen, backend, consumer, fields[8]))

    def query(self, fields):
        self.once(self.queries, fields, fields[6:8])

    def issue(self, fields):
        self.once(self.issues, fields, fields[7:9])

    def presence(self, fields):
        self.once(self.presences, fields, fields[5:6])

    def answer(self, fields):
        self.once(self.answers, fields, fields[7:9])

    def once(self, known, fields, told):
        command = tuple(map(int, fields[:4]))
        if command in known:
            complain(f"command {command}: two ends")
        known[command] = told

    def receipt(self, fields):
        self.receipts.append((tuple(map(number, fields[:4])), (int(fields[5]), int(fields[6]))))

    def reply(self, fields):
        self.replies.append(tuple(map(number, fields[:4])))

    def reception(self, fields):
        self.receptions.append((tuple(map(number, fields[:4])), (int(fields[6]), int(fields[7]))))

    def link(self, fields):
        self.links.append((int(fields[0]), int(fields[1]), fields[2], fields[3]))


def variables(fleet, place):
    """The name of a device, and what stands for it in templates."""
    values = {"index": fleet["first"] + place, "tenant": fleet.get("tenant", "")}
    values["id"] = render(fleet.get("id", fleet["name"] + "-${index:08}"), values)
    return values["id"], values


def render(template, values):
    """A template of topics, filters and names; columns of a data file are not in the result."""

    def value(found):
        name, width = found.groups()
        if name not in values:
            sys.exit(f"`{found.group()}` in `{template}`: only id, index and tenant can be recounted")
        return f"{values[name]:{width}}" if width else str(values[name])

    return re.sub(r"\$\{(\w+):?(\w*)\}", value, template)


def takes(topic_filter, topic):
    """Whether a topic filter takes a topic (MQTT 5, section 4.7)."""
    wanted, levels = topic_filter.split("/"), topic.split("/")
    if wanted[-1] == "#":
        wanted, levels = wanted[:-1], levels[: len(wanted) - 1]
    return len(wanted) == len(levels) and all(w in ("+", level) for w, level in zip(wanted, levels))


class Result:
    """What is needed of result.json."""

    def __init__(self, folder):
        with open(f"{folder}/result.json", encoding="utf-8") as file:
            self.json = json.load(file)
        at = {p["phase"]: (round(p["from_s"] * 1e6), round(p["until_s"] * 1e6)) for p in self.json["phases"]}
        self.measured_from, self.measured_until = at["measure"]
        self.end = at["settle"][1]
        scenario = self.json["scenario"]
        self.quiet = micros(scenario["phases"]["settle"]["quiet"])
        self.run = int(self.json["run"], 16)
        self.backends = [b["name"] for b in scenario["platform"]["backend"]]
        self.streams, self.devices = [], []
        for fleet in scenario["fleet"]:
            first, name = len(self.devices), fleet["name"]
            self.devices += [Device(name, *variables(fleet, i)) for i in range(fleet["count"])]
            for stream in fleet["streams"]:
                deadline = micros(stream.get("deadline"))
                of = range(first, len(self.devices))
                self.streams.append(Stream(f"{name}/{stream['name']}", deadline, stream, of))
        self.by_name = {device.name: number for number, device in enumerate(self.devices)}

    def stream_of(self, device, stream):
        """The number of a stream of this name in the fleet of that device."""
        names = [stream.name for stream in self.streams]
        return names.index(f"{self.devices[device].fleet}/{stream}")

    def messages(self, listed):
        """The ids in a list such as `lost_ids`: ranges of numbers by device and stream."""
        ids = set()
        for of, ranges in listed.items():
            if of == "truncated":
                continue
            name, stream = of.rsplit("/", 1)
            device = self.by_name[name]
            for first, last in ranges:
                ids |= {(device, self.stream_of(device, stream), seq) for seq in range(first, last + 1)}
        return ids


class Backend:
    """What one backend saw, message by message."""

    def __init__(self, facts, result, index):
        self.copies = Counter()
        self.in_order, self.in_time = set(), set()
        self.unstamped, self.foreign, self.corrupted = [], [], []
        self.last = 0
        self.first_seen = {}
        expected = defaultdict(int)
        for arrival in (a for a in facts.arrivals if a.backend == index):
            if arrival.integrity == "corrupted":
                self.corrupted.append(arrival.seen)
            if arrival.id is None:
                self.unstamped.append(arrival.seen)
                continue
            message = arrival.id[1:]
            if arrival.id[0] != result.run or message not in facts.attempts:
                self.foreign.append(arrival.seen)
                continue
            self.take(arrival, message, facts, result, expected)

    def take(self, arrival, message, facts, result, expected):
        device, stream, seq = message
        attempt = facts.attempts[message]
        if arrival.integrity == "intact" and arrival.due != attempt.due:
            complain(f"message {message}: due at {attempt.due}, and at {arrival.due} by its stamp")
        if attempt.sent is None:
            complain(f"message {message}: arrived, and was never sent")
        self.copies[message] += 1
        self.first_seen.setdefault(message, (arrival.seen, arrival.due))
        self.last = max(self.last, arrival.seen)
        queue = (device, stream, arrival.consumer)
        if seq >= expected[queue]:
            self.in_order.add(message)
            if arrival.integrity != "corrupted":
                expected[queue] = seq + 1
        deadline = result.streams[stream].deadline
        if deadline is None or arrival.due is None or arrival.seen - arrival.due <= deadline:
            self.in_time.add(message)


class Recount:
    """The cells of one scope: those messages for which `holds` is true."""

    def __init__(self, facts, backends, result, holds):
        self.result = result
        self.attempts = {m: a for m, a in facts.attempts.items() if holds(m, a)}
        self.states = Counter(a.state for a in self.attempts.values())
        self.backends = [self.at(backend) for backend in backends]

    def codes(self, state):
        return dict(Counter(a.code for a in self.attempts.values() if a.state == state))

    def at(self, backend):
        # The last two are of a platform's store alone.
        columns = ("arrived", "absent", "outstanding", "overwritten", "outside_sample")
        table = {state: dict.fromkeys(columns, 0) for state in SENT}
        is_quiet = backend.last + self.result.quiet <= self.result.end
        seen = [m for m in backend.copies if m in self.attempts]
        for message, attempt in self.attempts.items():
            if attempt.state in table:
                absent = "absent" if is_quiet else "outstanding"
                table[attempt.state]["arrived" if message in backend.copies else absent] += 1
        again = {m: backend.copies[m] - 1 for m in seen}
        own = sum(n for m, n in again.items() if self.attempts[m].resent)
        return {
            "copies": sum(backend.copies[m] for m in seen),
            "arrived": len(seen),
            "lost": table["accepted"]["absent"],
            "lost_unacknowledged": table["unacknowledged"]["absent"],
            "outstanding": sum(table[state]["outstanding"] for state in EXPECTED),
            "late": sum(m not in backend.in_time for m in seen),
            "duplicates": sum(again.values()) - own,
            "duplicate_own": own,
            "reordered": sum(m not in backend.in_order for m in seen),
            "rejected_but_arrived": table["rejected"]["arrived"],
            "timed_out_but_arrived": table["timed_out"]["arrived"],
            "broken_but_arrived": table["broken"]["arrived"],
            "table": table,
        }

    def compare_uplink(self, name, told):
        same(f"{name} scheduled", len(self.attempts), told["scheduled"])
        same(f"{name} sent", sum(a.sent is not None for a in self.attempts.values()), told["sent"])
        for state in [*SENT, "shed"]:
            same(f"{name} {state}", self.states[state], told[state])
        same(f"{name} shed_by_cause", self.codes("shed"), told["shed_by_cause"])
        same(f"{name} rejected_by_code", self.codes("rejected"), told["rejected_by_code"])
        same(f"{name} broken_by_cause", self.codes("broken"), told["broken_by_cause"])
        self.compare_arrivals(name, told, 0)

    def compare_arrivals(self, name, told, index):
        for cell, recounted in self.backends[index].items():
            if cell in told and not (cell == "late" and told[cell] is None):
                same(f"{name} {cell}", recounted, told[cell])


def compare_copies(name, backend, recount, told, is_of):
    """The figures by event: what was consumed, and what of it could not be placed."""
    foreign, unstamped = sum(map(is_of, backend.foreign)), sum(map(is_of, backend.unstamped))
    same(f"{name} foreign", foreign, told["foreign"])
    same(f"{name} unstamped", unstamped, told["unstamped"])
    same(f"{name} corrupted", sum(map(is_of, backend.corrupted)), told["corrupted"])
    same(f"{name} consumed", recount["copies"] + foreign + unstamped, told["consumed"])


def compare_ledgers(facts, result):
    ledger = result.json["ledger"]
    backends = [Backend(facts, result, index) for index in range(len(result.backends))]

    def is_measured(at):
        return result.measured_from <= at < result.measured_until

    whole = Recount(facts, backends, result, lambda m, a: True)
    whole.compare_uplink("uplink", ledger["uplink"])
    compare_copies("uplink", backends[0], whole.backends[0], ledger["uplink"], lambda at: True)
    measured = Recount(facts, backends, result, lambda m, a: is_measured(a.due))
    measured.compare_uplink("measured", ledger["measured"])
    compare_copies("measured", backends[0], measured.backends[0], ledger["measured"], is_measured)
    same("streams", sorted(stream.name for stream in result.streams), sorted(ledger["by_stream"]))
    for index, (name, *_) in enumerate(result.streams):
        stream = Recount(facts, backends, result, lambda m, a, index=index: m[1] == index)
        stream.compare_uplink(name, ledger["by_stream"][name]["ledger"])
    for index, name in enumerate(result.backends):
        told = ledger["by_backend"][name]
        whole.compare_arrivals(f"backend {name}", told, index)
        compare_copies(f"backend {name}", backends[index], whole.backends[index], told, lambda at: True)
        compare_lost(facts, result, backends[index], told, name)
    compare_latency(measured, backends[0], result)
    compare_schedule(facts, result)
    same("residue", 0, ledger["uplink"]["residue"])
    same("residue of the measured cohort", 0, ledger["measured"]["residue"])
    same("facts of other runs", {result.run}, set(facts.runs))
    return whole


def compare_lost(facts, result, backend, told, name):
    """The very messages that were lost, not only how many."""
    lost = {m for m, a in facts.attempts.items() if a.state in EXPECTED and m not in backend.copies}
    if told["lost_ids"]["truncated"] or told["outstanding"]:
        return
    same(f"backend {name} lost messages", sorted(lost), sorted(result.messages(told["lost_ids"])))


def compare_latency(measured, backend, result):
    told = result.json["latency"]
    attempts = [a for a in measured.attempts.values()]
    answered = [a for a in attempts if a.state in ("accepted", "rejected")]
    sent = [a for a in attempts if a.sent is not None]
    seen = [at - due for m, (at, due) in backend.first_seen.items() if m in measured.attempts and due is not None]
    compare_distribution("response", [a.ended - a.due for a in answered], told["response"])
    compare_distribution("service", [a.ended - a.sent for a in answered], told["service"])
    compare_distribution("lateness", [a.taken - a.due for a in attempts if a.taken is not None], told["lateness"])
    compare_distribution("held", [a.sent - a.taken for a in sent], told["held"])
    compare_distribution("end_to_end", seen, told["end_to_end"])


def compare_distribution(name, values, told):
    if told is None:
        # No such time: the answers of queries have a table of their own.
        return
    values.sort()
    same(f"{name} count", len(values), told["count"])
    if not values or len(values) != told["count"]:
        return
    same(f"{name} max", values[-1], told["max_us"])
    for key, share in (("p50_us", 0.5), ("p90_us", 0.9), ("p99_us", 0.99), ("p99_9_us", 0.999)):
        exact = values[min(len(values) - 1, max(0, -int(-share * len(values) // 1) - 1))]
        if told[key] is not None and abs(told[key] - exact) > max(1, BUCKET * exact):
            complain(f"{name} {key}: recounted {exact}, the result says {told[key]}")


def compare_schedule(facts, result):
    """Every device's messages are numbered from 0 without a gap, and as many as were due."""
    numbers = defaultdict(list)
    for device, stream, seq in facts.attempts:
        numbers[device, stream].append(seq)
    for of, seqs in numbers.items():
        if sorted(seqs) != list(range(len(seqs))):
            complain(f"device and stream {of}: a number is missing")
    same("nominal", len(facts.attempts), result.json["ledger"]["uplink"]["nominal"])


def compare_commands(facts, result):
    told = result.json["ledger"]["command"]
    if told is None:
        return
    same("residue of commands", 0, told["residue"])
    ends = lambda known: Counter(told[0] for told in known.values())
    codes = lambda known, end: dict(Counter(t[1] for t in known.values() if t[0] == end))
    for known, names, by in (
        (facts.queries, "received_by_query no_command query_rejected query_timed_out query_broken query_in_flight", "query_rejected"),
        (facts.issues, "delivered expired undeliverable unknown withheld", "undeliverable"),
        (facts.answers, "answered one_way answer_rejected answer_timed_out answer_broken answer_in_flight answer_shed", "answer_rejected"),
    ):
        for name in names.split():
            same(f"commands {name}", ends(known)[name], told[name])
        listed = told.get(f"{by}_by_code", told.get(f"{by}_by_status"))
        same(f"commands {by} by code", codes(known, by), listed)
    same("queries", len(facts.queries), told["queries"])
    same("issued", len(facts.issues) - ends(facts.issues)["withheld"], told["issued"])
    copies = Counter(of for of, by in facts.receipts if of[0] == result.run and of[1:3] == by)
    same("received", len(copies), told["received"])
    same("received_again", copies.total() - len(copies), told["received_again"])
    same("received_damaged", sum(of[0] is None for of, _ in facts.receipts), told["received_damaged"])
    delivered = {of for of, (end, _) in facts.issues.items() if end == "delivered"}
    missed = {of[1:] for of in delivered - set(copies)}
    same("delivered_not_received", len(missed), told["delivered_not_received"])
    if not told["not_received_ids"]["truncated"]:
        same("commands not received", sorted(missed), sorted(result.messages(told["not_received_ids"])))
    same("received_not_delivered", len(set(copies) - delivered), told["received_not_delivered"])
    same("commands received and not answered, or the reverse", sorted(set(facts.answers) ^ set(copies)), [])
    answered = {of for of, (end, _) in facts.answers.items() if end == "answered"}
    replies = Counter(of for of in facts.replies if of[0] == result.run)
    same("replies_arrived", len(answered & set(replies)), told["replies_arrived"])
    same("replies_again", replies.total() - len(replies), told["replies_again"])
    missing = told["replies_lost"] + told["replies_outstanding"]
    same("replies missing", len(answered - set(replies)), missing)
    for place, row in told["by_presence"].items():
        there = {of for of, (at,) in facts.presences.items() if at == place}
        same(f"{place} scheduled", len(there), row["scheduled"])
        same(f"{place} delivered", len(there & delivered), row["delivered"])
        same(f"{place} received", len(there & set(copies)), row["received"])
        same(f"{place} replies_arrived", len(there & set(replies)), row["replies_arrived"])


def compare_receptions(facts, result):
    told = result.json["ledger"]["receive"]
    if told is None:
        return
    same("residue of subscribers", 0, told["residue"])
    same("subscribers consumed", len(facts.receptions), told["consumed"])
    copies = Counter((of, by) for of, by in facts.receptions if of[0] == result.run and of[1:] in facts.attempts)
    same("subscribers arrived", len(copies), told["arrived"])
    further = told["duplicates"] + told["duplicate_own"]
    same("subscribers duplicates", copies.total() - len(copies), further)
    rows = subscriptions(facts, result)
    same("subscribers", len(rows), told["subscribers"])
    got, again = defaultdict(set), Counter()
    for (of, by), count in copies.items():
        got[by].add(of[1:])
        again[by] += count - 1
    same("subscribers unknown", sorted(set(got) - set(rows)), [])
    same("subscribers expected", sum(map(len, rows.values())), told["expected"])
    same("subscribers unexpected", sum(len(got[by] - due) for by, due in rows.items()), told["unexpected"])
    missing = sum(len(due - got[by]) for by, due in rows.items())
    same("subscribers missing", missing, told["lost"] + told["outstanding"])
    if told["truncated"]:
        return
    for (device, stream), due in rows.items():
        name = f"{result.devices[device].name}/{result.streams[stream].keys['name']}"
        row, by = told["by_subscriber"].get(name, Counter()), (device, stream)
        same(f"{name} expected", len(due), row["expected"])
        same(f"{name} arrived", len(got[by]), row["arrived"])
        same(f"{name} again", again[by], row["again"])
        if told["outstanding"] == 0:
            same(f"{name} lost", len(due - got[by]), row["lost"])


def subscriptions(facts, result):
    """What each device is to get by each of its filters: the messages whose topic the filter takes."""
    sent = defaultdict(set)
    for message, attempt in facts.attempts.items():
        if attempt.state in EXPECTED:
            device, stream, _ = message
            topic = render(result.streams[stream].keys["topic"], result.devices[device].values)
            sent[topic].add(message)
    rows = {}
    for number, stream in enumerate(result.streams):
        for device in stream.devices if stream.keys["kind"] == "receive" else ():
            wanted = render(stream.keys["filter"], result.devices[device].values)
            taken = (messages for topic, messages in sent.items() if takes(wanted, topic))
            rows[device, number] = set().union(*taken)
    return rows


def compare_links(facts, result):
    told, up = result.json["links"], set()
    by = {"connected": Counter(), "returned": Counter(), "failed": Counter(), "disconnected": Counter()}
    last_sent = Counter()
    for link, at, event, detail in facts.links:
        if event == "last-sent":
            messages, cause = detail.split(" ", 1)
            last_sent[cause] += int(messages)
            continue
        by[event][detail] += 1
        if (link in up) != (event == "disconnected"):
            complain(f"link {link}: {event} at {at}, and was {'up' if link in up else 'down'}")
        (up.discard if event == "disconnected" else up.add if event == "connected" else up.discard)(link)
    connected, failed = by["connected"].total(), by["failed"].total()
    same("links opened", connected + failed, told["opened"])
    same("links connected", connected, told["connected"])
    same("links failed", dict(by["failed"]), told["connect_failures"])
    same("links disconnected", dict(by["disconnected"]), told["disconnects"])
    same("links open at the end", len(up), told["open_at_end"])
    same("messages last sent on links that the platform ended", dict(last_sent), told["last_sent"])


def sent_again(whole, facts):
    """The messages that went out again on resumed sessions, by how often the gateway received them.

    A message whose first transmission never came was received once: it went on once, since the gateway
    treats badly no message that it sees first with DUP. Of one whose answer was lost both transmissions
    came: there are two copies, or none where the gateway loses it.
    """
    copies = Counter(a.id[1:] for a in facts.arrivals if a.id is not None and a.backend == 0)
    again = {message for message, attempt in whole.attempts.items() if attempt.resent}
    once = {message for message in again if copies[message] == 1}
    return once, again - once


def compare_gateway(whole, facts, result, folder):
    """The gateway counted packets and raw payloads; it knows nothing of ids."""
    with open(f"{folder}/gateway.json", encoding="utf-8") as file:
        account = json.load(file)
    did = {name: len(hashes) for name, hashes in account["misbehaved"].items()}
    uplink, cells = result.json["ledger"]["uplink"], whole.backends[0]
    unstamped = sum(a.id is None for a in facts.arrivals)
    absent = sum(row["absent"] for row in cells["table"].values())
    unheard = sum(did.get(name, 0) for name in ("lose-after-accept", "drop", "reject"))

    def against(name, recounted, told):
        if recounted != told:
            complain(f"{name}: recounted {recounted}, the gateway says {told}")

    # What the kernel took as the gateway closed the link never reached it: at most one a link and
    # closing, since a link that is cut is seen before its next message. On a session that is resumed
    # it comes again, with DUP; it is absent only where there is none.
    sent = sum(a.sent is not None for a in whole.attempts.values())
    cut = sum(event == "disconnected" for _, _, event, _ in facts.links)
    once, twice = sent_again(whole, facts)
    against("received again", len(once) + len(twice), account["received-again"])
    lost_in_air = sent - account["received"]
    if not len(once) <= lost_in_air <= cut:
        against("received", sent, account["received"])
    elif lost_in_air:
        print(f"in the air when links were cut: {lost_in_air}, of which {len(once)} came again")
    never_came = lost_in_air - len(once)
    issued = sum(end != "withheld" for end, _ in facts.issues.values())
    against("commands", issued, account["commands"])
    # What came twice was accepted twice, and the first answer was lost.
    again = sum(whole.attempts[message].state == "accepted" for message in twice)
    taken = whole.states["accepted"] + again + account["commands"] + account["replies"]
    against("accepted", taken, account["accepted"])
    against("rejected", whole.states["rejected"], account["rejected"])
    # On a device's link that is cut a copy at QoS 0 may be lost, and one at QoS 1 comes again.
    to_devices = len(facts.receipts) + len(facts.receptions)
    seen = len(facts.arrivals) + len(facts.replies) + to_devices
    least, most = (cut, account["redelivered"]) if to_devices else (0, 0)
    if not account["delivered"] - least <= seen <= account["delivered"] + most:
        against("delivered", seen, account["delivered"])
    against("duplicate", cells["duplicates"], did.get("duplicate", 0))
    against("corrupt", sum(a.integrity == "corrupted" for a in facts.arrivals), did.get("corrupt", 0))
    against("absent, without those whose id cannot be read", absent - unstamped, unheard + never_came)
    unanswered = whole.states["timed_out"] + whole.states["broken"]
    if not 0 <= unanswered - account["unanswered"] <= never_came:
        against("unanswered", unanswered, account["unanswered"])
    devices = account["connected"] - sum(b.get("consumers", 1) for b in result.json["scenario"]["platform"]["backend"])
    against("links connected", sum(event == "connected" for _, _, event, _ in facts.links), devices)
    against("residue", uplink["residue"], 0)


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    if len(arguments) != 2:
        sys.exit(__doc__)
    facts, result = Facts(arguments[0]), Result(arguments[1])
    whole = compare_ledgers(facts, result)
    compare_commands(facts, result)
    compare_receptions(facts, result)
    compare_links(facts, result)
    if "--gateway" in sys.argv:
        compare_gateway(whole, facts, result, arguments[1])
    for complaint in complaints:
        print(f"differs: {complaint}")
    print(f"recounted {facts.lines} facts: {len(complaints)} differences")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
