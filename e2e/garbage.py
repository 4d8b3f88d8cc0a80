#!/usr/bin/env python3
"""Listens on a port of 127.0.0.1 and answers CONNECT with a CONNACK, then every PUBLISH with bytes
that are no MQTT. With --at-once even the CONNECT is answered with such bytes. With --close the link is
closed instead. Usage: garbage.py PORT [--at-once | --close]"""

import socketserver
import sys

CONNACK = bytes([0x20, 0x03, 0x00, 0x00, 0x00])
SUBACK = bytes([0x90, 0x04, 0x00, 0x01, 0x00, 0x02])
GARBAGE = bytes([0x40, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x00])


class Peer(socketserver.BaseRequestHandler):
    def handle(self):
        try:
            self.serve()
        except OSError:
            pass

    def serve(self):
        while packet := self.request.recv(65536):
            kind = packet[0] >> 4
            if kind == 1 and "--at-once" not in sys.argv:
                self.request.sendall(CONNACK)
            elif kind == 8:
                # The identifier follows the fixed header of a short SUBSCRIBE.
                self.request.sendall(SUBACK[:2] + packet[2:4] + SUBACK[4:])
            elif "--close" in sys.argv:
                return
            else:
                self.request.sendall(GARBAGE)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 512


Server(("127.0.0.1", int(sys.argv[1])), Peer).serve_forever()
