#!/usr/bin/env python3
"""Publishes at QoS 1 with the Paho client at an even rate and prints the median and the 99th
percentile of the time from publish to PUBACK, in microseconds. Usage: peer.py PORT RATE SECONDS"""

import sys
import time

import paho.mqtt.client as mqtt

PORT, RATE, COUNT = int(sys.argv[1]), float(sys.argv[2]), int(float(sys.argv[2]) * float(sys.argv[3]))
sent, answered = {}, {}


def published(_client, _userdata, number, _reason, _properties):
    answered[number] = time.monotonic()


client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
client.on_publish = published
client.max_inflight_messages_set(10_000)
client.connect("127.0.0.1", PORT)
client.loop_start()
begin = time.monotonic()
for i in range(COUNT):
    time.sleep(max(0.0, begin + i / RATE - time.monotonic()))
    at = time.monotonic()
    sent[client.publish("muster/peer/readings", b"x" * 100, qos=1).mid] = at
until = time.monotonic() + 10
while len(answered) < COUNT and time.monotonic() < until:
    time.sleep(0.1)
client.disconnect()
took = sorted(answered[number] - at for number, at in sent.items() if number in answered)
if len(took) < COUNT:
    sys.exit(f"{len(took)} of {COUNT} were answered")
print(*(round(took[int(share * COUNT)] * 1e6) for share in (0.5, 0.99)))
