"""A Paho client over WebSocket against the gateway: 50 messages, heard again, of all sizes."""

import queue
import sys
import threading

import paho.mqtt.client as mqtt

PATIENCE_S = 20
SIZES = [0, 1, 100, 125, 126, 1_000, 65_535, 65_536, 200_000, 3] * 5


def main():
    heard = queue.Queue()
    subscribed = threading.Event()
    callbacks = mqtt.CallbackAPIVersion.VERSION2
    client = mqtt.Client(callbacks, client_id="paho", transport="websockets", protocol=mqtt.MQTTv5)
    client.ws_set_options(path="/mqtt")
    client.on_connect = lambda *_: client.subscribe("paho/#", qos=1)
    client.on_subscribe = lambda *_: subscribed.set()
    client.on_message = lambda _client, _data, message: heard.put(message.payload)
    client.connect("127.0.0.1", int(sys.argv[1]), keepalive=30)
    client.loop_start()
    assert subscribed.wait(PATIENCE_S), "the client is not subscribed"
    payloads = [bytes([n]) * size for n, size in enumerate(SIZES)]
    for payload in payloads:
        client.publish("paho/t", payload, qos=1).wait_for_publish(PATIENCE_S)
    assert [heard.get(timeout=PATIENCE_S) for _ in payloads] == payloads
    client.disconnect()
    client.loop_stop()


main()
