"""Carries lines of standard input to an address of AMQP 1.0 by Apache Qpid Proton, each line one message: in turns as a
section of data, as text and as bytes. Prints `sent N` once the peer has accepted all of them.

    python amqp_proton.py PORT USER PASSWORD ADDRESS
"""

import sys
import threading

from proton import Message
from proton.handlers import MessagingHandler
from proton.reactor import ApplicationEvent, Container, EventInjector


class Bridge(MessagingHandler):
    def __init__(self, port, user, password, address):
        super().__init__()
        self.url = f"127.0.0.1:{port}"
        self.login = {"user": user, "password": password}
        self.address = address
        self.lines = EventInjector()
        self.waiting = []
        self.sent = self.accepted = 0
        self.has_ended = False

    def on_start(self, event):
        event.container.selectable(self.lines)
        connection = event.container.connect(self.url, allow_insecure_mechs=True, **self.login)
        self.sender = event.container.create_sender(connection, self.address)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in sys.stdin:
            self.lines.trigger(ApplicationEvent("line", subject=line.rstrip("\n")))
        self.lines.trigger(ApplicationEvent("end"))

    def on_line(self, event):
        self.waiting.append(event.subject)
        self.flush()

    def on_end(self, _):
        self.has_ended = True
        self.flush()

    def on_sendable(self, _):
        self.flush()

    def on_accepted(self, _):
        self.accepted += 1
        self.flush()

    def flush(self):
        while self.waiting and self.sender.credit:
            self.sender.send(self.message(self.waiting.pop(0)))
            self.sent += 1
        if self.has_ended and not self.waiting and self.accepted == self.sent:
            print(f"sent {self.sent}", flush=True)
            self.lines.close()
            self.sender.connection.close()

    def message(self, text):
        body = text if self.sent % 3 == 1 else text.encode()
        return Message(address=self.address, body=body, inferred=self.sent % 3 == 0)


Container(Bridge(*sys.argv[1:])).run()
