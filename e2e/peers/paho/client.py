"""Eclipse Paho for Python as `sub` or `pub`; the arguments are those of every client here (interop.sh)."""

import queue
import sys
from urllib.parse import urlparse

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

command, rest = sys.argv[1], sys.argv[2:]
told = dict(zip(rest[::2], rest[1::2]))
url = urlparse(told["--url"])
version = mqtt.MQTTv311 if told.get("--version") == "3.1.1" else mqtt.MQTTv5
count, qos = int(told.get("--count", 1)), int(told.get("--qos", 0))
events = queue.Queue()

client = mqtt.Client(
    mqtt.CallbackAPIVersion.VERSION2,
    protocol=version,
    transport="websockets" if url.scheme == "ws" else "tcp",
)
if url.scheme == "ws":
    client.ws_set_options(path=url.path)
if url.scheme == "mqtts":
    pki = told["--pki"]
    client.tls_set(f"{pki}/ca.pem", f"{pki}/client.pem", f"{pki}/client.key")
if "--will" in told:
    client.will_set(told["--will"], "gone", qos=1)
client.on_connect = lambda *_: events.put("connected")
client.on_subscribe = lambda *_: events.put("subscribed")
client.on_message = lambda _client, _data, message: events.put(message)

properties = None
if "--receive-maximum" in told:
    properties = Properties(PacketTypes.CONNECT)
    properties.ReceiveMaximum = int(told["--receive-maximum"])
client.connect(url.hostname, url.port, properties=properties)
client.loop_start()
assert events.get(timeout=10) == "connected"

if command == "sub":
    client.subscribe(told["--topic"], qos)
    seen = 0
    while seen < count:
        event = events.get()
        if event == "subscribed":
            print("subscribed", flush=True)
            continue
        seen += 1
        print(event.topic, event.qos, str(bool(event.retain)).lower(), event.payload.decode(), flush=True)
else:
    for n in range(count):
        body = told.get("--payload", "m") + ("" if count == 1 else f"-{n}")
        client.publish(told["--topic"], body, qos, "--retain" in told).wait_for_publish(10)
    print("accepted", count)
client.disconnect()
client.loop_stop()
