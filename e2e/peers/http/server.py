"""server.py PORT VERSION: answers each POST to a path below /api/ with 201 and an id, and says at its end how many there
were. With HTTP/1.0 each answer ends with its connection, and nothing says how long it is."""

import http.server
import signal
import sys
import threading

COUNTED = threading.Lock()
COUNTS = {"requests": 0, "bytes": 0}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = sys.argv[2]

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.path.startswith("/api/"):
            self.send_error(404)
            return
        with COUNTED:
            COUNTS["requests"] += 1
            COUNTS["bytes"] += len(body)
            answer = b'{"reading":{"id":"%d"}}' % COUNTS["requests"]
        self.send_response(201)
        if self.protocol_version == "HTTP/1.1":
            self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def end(*_):
    print(COUNTS["requests"], COUNTS["bytes"], flush=True)
    sys.exit(0)


signal.signal(signal.SIGTERM, end)
Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
