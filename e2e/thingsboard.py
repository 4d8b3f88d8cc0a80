#!/usr/bin/env python3
"""Both ends of the ThingsBoard dialect with the Paho client, and nothing of Muster's.

thingsboard.py server PORT: a server end behind a broker. It reads what devices and gateways publish, and
hands on what gateways do, as a rule chain would, but for every tenth message; when its standard input ends it
prints its counts as JSON.
thingsboard.py devices PORT: devices, a gateway and a consumer against a server end; prints as JSON what came
of each message."""

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


def check_point(point):
    """A point of the published meter, with the stamp of a run among its values."""
    assert set(point) == {"ts", "values"}, point
    assert abs(point["ts"] / 1000 - time.time()) < 60, point
    values = point["values"]
    assert set(values) == {"musterId", "pulseCounter", "leakage", "batteryLevel"}, values
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
            counts["alarms"] += check_point(body)["batteryLevel"] == 10
        elif message.topic == "v2/a":
            counts["attributes"] += 1
            numbers = [body[key] for key in ("latitude", "longitude", "speed", "fuel", "batteryLevel")]
            assert all(isinstance(number, (int, float)) for number in numbers), body
        elif message.topic == "v1/gateway/connect":
            counts["announced"] += 1
            announced.add(body["device"])
        elif message.topic == "v1/gateway/telemetry":
            [(device, [point])] = body.items()
            check_point(point)
            assert device in announced, f"{device} was not announced"
            counts["gateway"] += 1
            if counts["gateway"] % 10 == 0:
                counts["kept"] += 1
            else:
                client.publish(f"thingsboard/{device}/telemetry", message.payload, qos=1)
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
    said["no json"] = answer(new, "v1/devices/me/telemetry", "on")
    said["nobody's topic"] = answer(new, "v1/devices/you", "{}")
    said["still open"] = answer(new, "v2/t", '{"still":"open"}')
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


if sys.argv[1] == "server":
    server(int(sys.argv[2]))
else:
    devices(int(sys.argv[2]))
