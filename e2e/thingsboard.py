#!/usr/bin/env python3
"""Both ends of the ThingsBoard dialect with the Paho client, and nothing of Muster's.

thingsboard.py server PORT: a server end behind a broker. It reads what devices and gateways publish, and
hands on what gateways do, as a rule chain would, but for every tenth message; when its standard input ends it
prints its counts as JSON.
thingsboard.py rpc PORT: a server end behind a broker where d0/, d1/, ... stand before the topics of its devices.
It gives each command of the application a number and hands it to its device but for every tenth, gives the
replies back, and answers requests: every tenth not at all, every seventh twice, every fifth call with an error;
counts as above. It writes all JSON anew, in another order and with blanks.
thingsboard.py commanded PORT: an application, devices and a gateway that it commands, a device that asks, and
one that asks to be made, against a server end; prints as JSON what came of each.
thingsboard.py devices PORT: devices, a gateway and a consumer against a server end; prints as JSON what came
of each message.
thingsboard.py patient PORT: a device that calls a method which nobody answers, and a link that asks for devices and
stays; prints as JSON what ended each, after how many seconds."""

import collections
import json
import sys
import threading
import time

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

PATIENCE = 10


def waits(event):
    assert event.wait(PATIENCE), "nothing came in time"


def connected(port, token=None, protocol=mqtt.MQTTv5):
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=protocol)
    if token:
        client.username_pw_set(token)
    up, granted = threading.Event(), threading.Event()
    client.codes, client.over, client.answers = [], threading.Event(), {}
    client.answered = threading.Event()

    def on_connect(_client, _userdata, _flags, reason, _properties):
        client.codes.append(reason.value)
        up.set()

    def on_publish(_client, _userdata, mid, reason, _properties):
        client.answers[mid] = reason.value
        client.answered.set()

    def on_disconnect(_client, _userdata, _flags, reason, _properties):
        client.goodbye = reason.value
        client.over.set()

    client.on_connect, client.on_publish, client.on_disconnect = on_connect, on_publish, on_disconnect
    client.on_subscribe = lambda *_: granted.set()
    client.granted = granted
    client.connect("127.0.0.1", port)
    client.loop_start()
    waits(up)
    return client


def listen(client, filters, heard):
    client.on_message = heard
    client.subscribe([(one, 1) for one in filters])
    waits(client.granted)


def check_point(point, stamp):
    """A point of the published meter, with the stamp of a run among its values where a backend reads it."""
    assert set(point) == {"ts", "values"}, point
    assert abs(point["ts"] / 1000 - time.time()) < 60, point
    values = point["values"]
    assert set(values) == {"pulseCounter", "leakage", "batteryLevel"} | stamp, values
    assert 0 <= values["pulseCounter"] < 1_000_000 and isinstance(values["leakage"], bool)
    assert values["batteryLevel"] == 10 or 50 <= values["batteryLevel"] <= 99, values
    return values


def server(port):
    counts, announced, wrong = collections.Counter(), set(), []
    client = connected(port)

    def take(message):
        body = json.loads(message.payload)
        if message.topic == "v1/devices/me/telemetry":
            counts["telemetry"] += 1
            counts["alarms"] += check_point(body, set())["batteryLevel"] == 10
        elif message.topic == "v2/a":
            counts["attributes"] += 1
            numbers = [body[key] for key in ("latitude", "longitude", "speed", "fuel", "batteryLevel")]
            assert all(isinstance(number, (int, float)) for number in numbers), body
        elif message.topic == "v1/gateway/connect":
            counts["announced"] += 1
            announced.add(body["device"])
        elif message.topic == "v1/gateway/telemetry":
            [(device, [point])] = body.items()
            values = check_point(point, {"musterId"})
            assert device in announced, f"{device} was not announced"
            counts["gateway"] += 1
            if counts["gateway"] % 10 == 0:
                counts["kept"] += 1
            else:
                # A rule chain has the values alone, and writes them anew.
                client.publish(f"thingsboard/{device}/telemetry", anew(values), qos=1)
        else:
            raise AssertionError(message.topic)

    def heard(_client, _userdata, message):
        try:
            take(message)
        except Exception as error:  # An error in a callback would end the listening.
            wrong.append(repr(error))

    listen(client, ["v1/#", "v2/#"], heard)
    print("ready", flush=True)
    sys.stdin.read()
    client.disconnect()
    print(json.dumps({**counts, "wrong": wrong}), flush=True)


def anew(body):
    """The same JSON, written as nobody else does."""
    return json.dumps(body, indent=1, sort_keys=True)


def rpc(port):
    counts, numbers, wrong = collections.Counter(), {}, []
    client = connected(port)

    def command(device, body):
        assert set(body) == {"method", "params"} and body["method"] == "setGpio", body
        counts["commands"] += 1
        if counts["commands"] % 10 == 0:
            counts["kept"] += 1
            return
        number = 1000 + 7 * counts["commands"]
        numbers[number] = device
        client.publish(f"d{int(device[2:])}/v1/devices/me/rpc/request/{number}", anew(body), qos=1)

    def reply(place, number, body):
        device = numbers.pop(number)
        assert place == f"d{int(device[2:])}", f"{place} replies for {device}"
        counts["replies"] += 1
        client.publish(f"thingsboard-rpc/{device}/response", anew(body), qos=1)

    def answered(place, kind, number, say):
        counts[kind] += 1
        if counts[kind] % 10 == 0:
            counts[kind + " silent"] += 1
            return
        times = 2 if counts[kind] % 7 == 0 else 1
        counts[kind + " twice"] += times - 1
        for _ in range(times):
            client.publish(f"{place}/v1/devices/me/{kind}/response/{number}", anew(say), qos=1)

    def call(place, number, body):
        assert body == {"method": "getTime", "params": {}}, body
        is_no = counts["rpc"] % 5 == 4
        counts["refused"] += is_no and (counts["rpc"] + 1) % 10 != 0
        answered(place, "rpc", number, {"error": "no such method"} if is_no else {"time": 5})

    def take(message):
        body, levels = json.loads(message.payload), message.topic.split("/")
        if levels[0] == "thingsboard-rpc":
            command(levels[1], body)
            return
        place, kind, what, number = levels[0], levels[4], levels[5] if len(levels) > 5 else "", levels[-1]
        if kind == "telemetry":
            return
        if (kind, what) == ("rpc", "response"):
            reply(place, int(number), body)
        elif (kind, what) == ("rpc", "request"):
            call(place, int(number), body)
        else:
            assert (kind, what) == ("attributes", "request"), message.topic
            assert body == {"clientKeys": "model", "sharedKeys": "interval"}, body
            answered(place, kind, int(number), {"client": {"model": "x"}, "shared": {"interval": 5}})

    def heard(_client, _userdata, message):
        try:
            take(message)
        except Exception as error:  # An error in a callback would end the listening.
            wrong.append(f"{message.topic}: {error!r}")

    filters = ["+/v1/devices/me/telemetry", "+/v1/devices/me/attributes/request/+"]
    # The topics of calls are those of commands the other way round, so the fourth device has no commands.
    filters += [f"d{place}/v1/devices/me/rpc/response/+" for place in range(3)]
    listen(client, [*filters, "d3/v1/devices/me/rpc/request/+", "thingsboard-rpc/+/request"], heard)
    print("ready", flush=True)
    sys.stdin.read()
    client.disconnect()
    print(json.dumps({**counts, "wrong": wrong}), flush=True)


def answer(client, topic, payload, qos=1):
    """The reason of the answer, or that of the end of the link, or that there was none."""
    client.answered.clear()
    sent = client.publish(topic, payload, qos=qos)
    if qos == 0:
        return "sent"
    limit = time.monotonic() + PATIENCE
    while time.monotonic() < limit:
        if sent.mid in client.answers:
            return client.answers[sent.mid]
        if client.over.is_set():
            return "closed"
        client.answered.wait(0.01)
    return "silent"


class Mailbox:
    """What comes to a client on filters of its own."""

    def __init__(self, client, filters):
        self.got, self.more = [], threading.Condition()
        listen(client, filters, self.take)

    def take(self, _client, _userdata, message):
        with self.more:
            self.got.append((message.topic, message.payload.decode()))
            self.more.notify_all()

    def wait(self, count, patience=PATIENCE):
        with self.more:
            assert self.more.wait_for(lambda: len(self.got) >= count, patience), f"{self.got}, wanted {count}"
            return self.got


def commanded(port):
    """Commands to devices in each of their forms, replies, requests, a claim and a device that is made."""
    said = {}
    north, new, old = connected(port, "consumer"), connected(port, "new"), connected(port, "old", mqtt.MQTTv311)
    gateway, maker = connected(port, "gateway"), connected(port, "provision")
    replies = Mailbox(north, ["thingsboard-rpc/+/response"])
    answers = ["v1/devices/me/attributes/response/+", "v1/devices/me/rpc/response/+"]
    boxes = {
        "new": Mailbox(new, ["v1/devices/me/rpc/request/+", *answers]),
        "old": Mailbox(old, ["v2/r/req/+"]),
        "one": Mailbox(gateway, ["v1/gateway/rpc"]),
    }
    answer(gateway, "v1/gateway/connect", '{"device":"one"}')
    call = '{"method":"setGpio","params":{"pin":7}}'
    numbers = set()
    for device, box in boxes.items():
        said[f"command to {device}"] = answer(north, f"thingsboard-rpc/{device}/request", call)
        [(topic, text)] = box.wait(1)
        body = json.loads(text)
        if device == "one":
            assert topic == "v1/gateway/rpc" and body["device"] == "one", text
            number = body["data"].pop("id")
            body = body["data"]
            reply = json.dumps({"device": "one", "id": number, "data": {"by": device}})
            said["reply of one"] = answer(gateway, topic, reply)
        else:
            number = int(topic.rsplit("/", 1)[1])
            client, topic = (new, "v1/devices/me/rpc/response") if device == "new" else (old, "v2/r/res")
            said[f"reply of {device}"] = answer(client, f"{topic}/{number}", json.dumps({"by": device}))
        assert body == json.loads(call), text
        assert isinstance(number, int) and number not in numbers, number
        numbers.add(number)
    said["nobody's command"] = answer(north, "thingsboard-rpc/nobody/request", call)
    said["no call"] = answer(north, "thingsboard-rpc/new/request", '{"params":{}}')
    said["replies"] = sorted(f"{topic} {text}" for topic, text in replies.wait(3))
    said["attributes asked"] = answer(new, "v1/devices/me/attributes/request/41", '{"clientKeys":"a"}')
    said["called"] = answer(new, "v1/devices/me/rpc/request/42", '{"method":"getTime","params":{}}')
    said["claim"] = answer(new, "v1/devices/me/claim", '{"secretKey":"s","durationMs":1000}')
    said["heard by new"] = sorted(f"{topic} {text}" for topic, text in boxes["new"].wait(3)[1:])
    made, box = threading.Event(), []

    def heard(_client, _userdata, message):
        box.append([message.topic, json.loads(message.payload)])
        made.set()

    maker.on_message = heard
    wanted = {"deviceName": "n", "provisionDeviceKey": "k", "provisionDeviceSecret": "s"}
    credentials = {"credentialsType": "ACCESS_TOKEN", "token": "t-1"}
    said["asked to be made"] = answer(maker, "/provision/request", json.dumps({**wanted, **credentials}))
    waits(made)
    said["made"] = box[0]
    for client in (north, new, old, gateway, maker):
        client.disconnect()
    print(json.dumps(said))


def devices(port):
    said, got, enough = {}, [], threading.Event()
    wanted = 7

    def heard(_client, _userdata, message):
        user = dict(getattr(message.properties, "UserProperty", []))
        got.append([message.topic, message.payload.decode(), user.get("who", "")])
        if len(got) == wanted:
            enough.set()

    north = connected(port, "consumer")
    listen(north, ["thingsboard/#"], heard)
    new, old = connected(port, "new"), connected(port, "old", mqtt.MQTTv311)
    said["flat"] = answer(new, "v1/devices/me/telemetry", '{"longKey":73}')
    said["list"] = answer(old, "v2/t", '[{"ts":1600000000000,"values":{"a":1}},{"b":"x"}]')
    said["attributes"] = answer(old, "v1/devices/me/attributes", '{"model":{"a":[1]}}')
    properties = Properties(PacketTypes.PUBLISH)
    properties.UserProperty = ("who", "paho")
    new.publish("v2/a", '{"b":true}', qos=0, properties=properties)
    said["nobody's topic"] = answer(new, "v1/devices/you", "{}")
    said["still open"] = answer(new, "v2/t", '{"still":"open"}')
    said["no json"] = answer(new, "v1/devices/me/telemetry", "on")
    said["no json, why"] = new.goodbye
    gateway = connected(port, "gateway", mqtt.MQTTv311)
    said["connect"] = answer(gateway, "v1/gateway/connect", '{"device":"one"}')
    both = '{"one":[{"ts":1,"values":{"a":1}}],"two":[{"a":2}]}'
    said["gateway"] = answer(gateway, "v1/gateway/telemetry", both)
    said["disconnect"] = answer(gateway, "v1/gateway/disconnect", '{"device":"one"}')
    waits(enough)
    said["old, no json"] = answer(old, "v2/t", "{", qos=1)
    for client in (north, new, old, gateway):
        client.disconnect()
    stranger = connected(port, "stranger")
    print(json.dumps({"said": said, "got": sorted(got), "stranger": stranger.codes[0]}))
    stranger.disconnect()


def patient(port):
    """Waits that ThingsBoard ends itself, after a minute."""
    began = time.monotonic()
    maker, device = connected(port, "provision"), connected(port, "t", mqtt.MQTTv311)
    box = Mailbox(device, ["v1/devices/me/rpc/response/+"])
    answer(device, "v1/devices/me/rpc/request/1", '{"method":"getTime","params":{}}')
    assert maker.over.wait(90), "the link stays"
    said = {"closed after": round(time.monotonic() - began)}
    [said["answer"]] = box.wait(1, 90)
    said["answered after"] = round(time.monotonic() - began)
    for client in (maker, device):
        client.disconnect()
    print(json.dumps(said))


ROLES = {"server": server, "rpc": rpc, "devices": devices, "commanded": commanded, "patient": patient}
ROLES[sys.argv[1]](int(sys.argv[2]))
