#!/usr/bin/env python3
"""A TCP proxy that holds every byte from client to server for an exact time; the way back is not
delayed. Usage: proxy.py LISTEN_PORT TARGET_PORT DELAY_MS

The last two milliseconds before a delivery are waited for without sleeping, because a sleep ends
late by up to one."""

import heapq
import selectors
import socket
import sys
import time

LISTEN, TARGET = int(sys.argv[1]), int(sys.argv[2])
DELAY = float(sys.argv[3]) / 1000
SPIN = 0.002

selector = selectors.DefaultSelector()
waiting = []
order = 0


def register(source, sink, delay):
    source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    selector.register(source, selectors.EVENT_READ, (sink, delay))


def accept(listener):
    client, _ = listener.accept()
    server = socket.create_connection(("127.0.0.1", TARGET))
    register(client, server, DELAY)
    register(server, client, 0)


def forward(source, sink, delay):
    global order
    try:
        data = source.recv(65536)
    except OSError:
        data = b""
    if not data:
        selector.unregister(source)
    order += 1
    heapq.heappush(waiting, (time.monotonic() + delay, order, sink, data))


def deliver():
    while waiting and waiting[0][0] <= time.monotonic():
        _, _, sink, data = heapq.heappop(waiting)
        try:
            if data:
                sink.sendall(data)
            else:
                sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def pause():
    if not waiting:
        return None
    return max(0.0, waiting[0][0] - time.monotonic() - SPIN)


listener = socket.create_server(("127.0.0.1", LISTEN), backlog=512)
selector.register(listener, selectors.EVENT_READ, None)
while True:
    for key, _ in selector.select(pause()):
        if key.data is None:
            accept(key.fileobj)
        else:
            forward(key.fileobj, *key.data)
    deliver()
