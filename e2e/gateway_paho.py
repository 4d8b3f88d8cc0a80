"""A Paho client against the gateway: persistent session, shared subscription, will, properties."""

import queue
import sys
import threading

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

PATIENCE_S = 20


class Peer:
    """One client and what it heard."""

    def __init__(self, port, name, version=mqtt.MQTTv5, expiry_s=0, will=None):
        self.heard = queue.Queue()
        self.present = None
        self.granted = queue.Queue()
        self.connected = threading.Event()
        callbacks = mqtt.CallbackAPIVersion.VERSION2
        self.client = mqtt.Client(callbacks, client_id=name, protocol=version)
        self.client.on_connect = self.on_connect
        self.client.on_message = lambda _client, _data, message: self.heard.put(message)
        self.client.on_subscribe = lambda _c, _d, _id, codes, _p: self.granted.put(codes)
        if will:
            self.client.will_set(*will, qos=1)
        arguments = {}
        if version == mqtt.MQTTv5:
            properties = Properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = expiry_s
            arguments = {"clean_start": expiry_s == 0, "properties": properties}
        self.client.connect("127.0.0.1", port, keepalive=30, **arguments)
        self.client.loop_start()
        assert self.connected.wait(PATIENCE_S), f"{name} did not connect"

    def on_connect(self, _client, _data, flags, code, _properties):
        assert not code.is_failure, code
        self.present = flags.session_present
        self.connected.set()

    def subscribe(self, topic, qos=1):
        self.client.subscribe(topic, options=SubscribeOptions(qos=qos))
        codes = self.granted.get(timeout=PATIENCE_S)
        assert [code.value for code in codes] == [qos], codes

    def publish(self, topic, payload, qos, properties=None):
        done = self.client.publish(topic, payload, qos, properties=properties)
        done.wait_for_publish(PATIENCE_S)
        assert done.is_published(), f"{topic} was not answered"

    def hear(self, count):
        return [self.heard.get(timeout=PATIENCE_S) for _ in range(count)]

    def leave(self):
        self.client.disconnect()
        self.client.loop_stop()

    def vanish(self):
        """Ends the connection without DISCONNECT."""
        self.client.loop_stop()
        self.client.socket().close()


def every_quality(port):
    consumer = Peer(port, "consumer")
    consumer.subscribe("paho/#", 2)
    device = Peer(port, "device")
    for qos in range(3):
        for number in range(50):
            device.publish(f"paho/{qos}", f"{qos}-{number}", qos)
    heard = consumer.hear(150)
    for qos in range(3):
        own = [m.payload.decode() for m in heard if m.topic == f"paho/{qos}"]
        assert own == [f"{qos}-{number}" for number in range(50)], own
        assert all(m.qos == qos for m in heard if m.topic == f"paho/{qos}")
    consumer.leave()
    device.leave()


def persistent_session(port):
    consumer = Peer(port, "sleeper", expiry_s=300)
    consumer.subscribe("sleep/+")
    consumer.leave()
    device = Peer(port, "device")
    for number in range(20):
        device.publish("sleep/1", str(number), 1)
    consumer = Peer(port, "sleeper", expiry_s=300)
    assert consumer.present, "the session was not kept"
    assert [m.payload.decode() for m in consumer.hear(20)] == [str(n) for n in range(20)]
    consumer.leave()
    device.leave()


def shared_subscription(port):
    sharers = [Peer(port, f"sharer-{n}") for n in range(3)]
    for sharer in sharers:
        sharer.subscribe("$share/group/shared/+")
    device = Peer(port, "device")
    for number in range(60):
        device.publish("shared/1", str(number), 1)
    heard = [int(m.payload) for sharer in sharers for m in sharer.hear(20)]
    assert sorted(heard) == list(range(60)), heard
    for peer in [*sharers, device]:
        peer.leave()


def will_and_properties(port):
    consumer = Peer(port, "consumer")
    consumer.subscribe("last/#")
    device = Peer(port, "device", will=("last/will", "gone"))
    properties = Properties(PacketTypes.PUBLISH)
    properties.UserProperty = [("stamp", "abc"), ("stamp", "def")]
    properties.ContentType = "text/plain"
    device.publish("last/word", "here", 1, properties)
    (word,) = consumer.hear(1)
    assert word.properties.UserProperty == [("stamp", "abc"), ("stamp", "def")]
    assert word.properties.ContentType == "text/plain"
    device.vanish()
    (will,) = consumer.hear(1)
    assert (will.topic, will.payload) == ("last/will", b"gone")
    consumer.leave()


def old_version(port):
    consumer = Peer(port, "old-consumer", version=mqtt.MQTTv311)
    consumer.client.subscribe("old", 2)
    consumer.granted.get(timeout=PATIENCE_S)
    device = Peer(port, "old-device", version=mqtt.MQTTv311)
    device.publish("old", "exactly once", 2)
    assert consumer.hear(1)[0].payload == b"exactly once"
    consumer.leave()
    device.leave()


def main():
    port = int(sys.argv[1])
    for check in [every_quality, persistent_session, shared_subscription, will_and_properties, old_version]:
        check(port)
        print(f"ok    paho: {check.__name__.replace('_', ' ')}")


if __name__ == "__main__":
    main()
