#!/usr/bin/env python3
"""Both ends of the SAP Edge dialect with the Paho client, and nothing of Muster's.

sap_edge.py application PORT: acknowledges what devices send through a broker: every tenth message of a
device is rejected with 404, every twenty-fifth not at all, every seventh twice; counts commands to devices
by the way; prints one line of counts when its standard input ends.
sap_edge.py device PORT COUNT: a device that subscribes, waits for the grant, publishes so many messages and
prints how many were acknowledged, by code, and whether a command came to it as it was issued."""

import collections
import json
import sys
import threading

import paho.mqtt.client as mqtt


def connected(port):
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
    granted = threading.Event()
    client.on_subscribe = lambda *_: granted.set()
    client.connect("127.0.0.1", port)
    client.loop_start()
    return client, granted


def application(port):
    counts = collections.Counter()
    client, granted = connected(port)

    def heard(_client, _userdata, message):
        body = json.loads(message.payload)
        if message.topic.startswith("commands/"):
            assert set(body) == {"sensorAlternateId", "capabilityAlternateId", "command"}, body
            counts["commands"] += 1
            return
        number = int(body["measureMessageId"])
        assert body["measures"][0]["ts"].endswith("Z") and body["capabilityAlternateId"] == "PerfTest"
        counts["heard"] += 1
        topic = "ack/" + message.topic.split("/", 1)[1]
        if number % 25 == 24:
            counts["silent"] += 1
            return
        code = 404 if number % 10 == 9 else 200 if number % 2 else 202
        counts["rejected" if code == 404 else "accepted"] += 1
        word = {"id": body["measureMessageId"], "code": code, "messages": ["no such sensor"] if code == 404 else []}
        words = [word, word] if number % 7 == 6 else [word]
        counts["twice"] += len(words) - 1
        client.publish(topic, json.dumps(words), qos=1)

    client.on_message = heard
    client.subscribe([("measures/+", 1), ("commands/+", 1)])
    granted.wait(10)
    print("ready", flush=True)
    sys.stdin.read()
    client.disconnect()
    print(*(counts[name] for name in ("heard", "accepted", "rejected", "silent", "twice", "commands")), flush=True)


def device(port, count):
    codes, seen, done = collections.Counter(), set(), threading.Event()
    client, granted = connected(port)

    command, commanded = json.dumps({"command": {"LED": "true"}}), threading.Event()

    def heard(_client, _userdata, message):
        if message.topic == "commands/PerfTest_0":
            assert message.payload.decode() == command and message.qos == 1, message.payload
            commanded.set()
            return
        for word in json.loads(message.payload):
            codes[word["code"]] += 1
            seen.add(int(word["id"]))
        if len(seen) == count:
            done.set()

    client.on_message = heard
    client.subscribe([("ack/PerfTest_0", 0), ("commands/PerfTest_0", 1)])
    granted.wait(10)
    for number in range(count):
        sample = {"ts": "2020-01-01T00:00:00.000000Z", "sn": number}
        body = {
            "measureMessageId": str(number),
            "capabilityAlternateId": "PerfTest",
            "sensorAlternateId": "PerfTest",
            "measures": [sample],
        }
        client.publish("measures/PerfTest_0", json.dumps(body), qos=0)
    done.wait(10)
    north, _ = connected(port)
    north.publish("commands/PerfTest_0", command, qos=1)
    commanded.wait(10)
    north.disconnect()
    client.disconnect()
    print(len(seen), codes[202], codes[503], commanded.is_set())


if sys.argv[1] == "application":
    application(int(sys.argv[2]))
else:
    device(int(sys.argv[2]), int(sys.argv[3]))
