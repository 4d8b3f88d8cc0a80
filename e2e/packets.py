#!/usr/bin/env python3
"""Counts the MQTT PUBLISH packets that the loopback interface carries from and to a port, from the
bytes of its TCP segments, until it is told to end (SIGTERM). Usage: packets.py PORT. Prints: to the port,
from it, dropped by the capture. Needs root."""

import ctypes
import signal
import socket
import struct
import sys

PORT = int(sys.argv[1])
IPV4, TCP, STATISTICS, PACKET = 0x0800, 6, 6, 263
# From <asm-generic/socket.h>; Python has no names for them.
ATTACH_FILTER, RCVBUFFORCE = 26, 33


class Stream:
    """One direction of a connection: segments in the order of their numbers, cut into packets."""

    def __init__(self):
        self.next, self.early, self.rest, self.publishes = None, {}, b"", 0

    def segment(self, number, flags, data):
        if flags & 2:
            self.next = (number + 1) & 0xFFFFFFFF
            return
        if self.next is None or not data:
            return
        self.early[number] = data
        while self.next in self.early:
            data = self.early.pop(self.next)
            self.next = (self.next + len(data)) & 0xFFFFFFFF
            self.rest += data
        self.cut()

    def cut(self):
        while len(self.rest) >= 2:
            length, shift, at = 0, 0, 1
            while True:
                if at >= len(self.rest):
                    return
                byte = self.rest[at]
                length |= (byte & 0x7F) << shift
                shift, at = shift + 7, at + 1
                if byte < 0x80:
                    break
            if len(self.rest) < at + length:
                return
            self.publishes += self.rest[0] >> 4 == 3
            self.rest = self.rest[at + length :]



def filter_of(port):
    """Classic BPF from the IP header on: TCP, from or to the port; a busy machine's other traffic
    must not fill the buffer. (code, if true, if false, constant)"""
    program = [
        (0x30, 0, 0, 9),  # A = protocol
        (0x15, 0, 5, TCP),
        (0xB1, 0, 0, 0),  # X = length of the IP header
        (0x48, 0, 0, 0),  # A = source port
        (0x15, 3, 0, port),
        (0x48, 0, 0, 2),  # A = target port
        (0x15, 1, 0, port),
        (0x06, 0, 0, 0),
        (0x06, 0, 0, 0x40000),
    ]
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    return text, struct.pack("HL", len(program), ctypes.addressof(text))


# Without a protocol it receives nothing yet: what came before the filter would not be TCP.
capture = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
capture.setsockopt(socket.SOL_SOCKET, RCVBUFFORCE, 64 << 20)
text, program = filter_of(PORT)
capture.setsockopt(socket.SOL_SOCKET, ATTACH_FILTER, program)
capture.bind(("lo", IPV4))
capture.settimeout(0.2)
ended = []
signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
print("ready", flush=True)
streams = {}
while True:
    try:
        # A socket for one protocol is shown packets as they come, not as they leave: each once.
        packet = capture.recv(1 << 17)
    except TimeoutError:
        if ended:
            break
        continue
    header = (packet[0] & 15) * 4
    total = struct.unpack("!H", packet[2:4])[0] or len(packet)
    source, target, number = struct.unpack("!HHI", packet[header : header + 8])
    data = packet[header + (packet[header + 12] >> 4) * 4 : total]
    stream = streams.setdefault((packet[12:20], source, target), Stream())
    stream.segment(number, packet[header + 13], data)
_, dropped = struct.unpack("II", capture.getsockopt(PACKET, STATISTICS, 8))
to_port = sum(s.publishes for (_, _, target), s in streams.items() if target == PORT)
from_port = sum(s.publishes for (_, source, _), s in streams.items() if source == PORT)
print(to_port, from_port, dropped)
