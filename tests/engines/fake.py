"""Engines of a few lines, for tests: a server that answers /health, and what can go wrong."""

import sys

from harness.engines.base import Engine, Launch, Start

HEALTHY = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"ok")
    def log_message(self, *args): pass
print("KV pool: 1,234 tokens", flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
# Serves, and has a child that ignores every polite signal.
STUBBORN = (
    """
import signal, subprocess, sys
child = ("import signal, time\\n"
         "signal.signal(signal.SIGINT, signal.SIG_IGN)\\n"
         "signal.signal(signal.SIGTERM, signal.SIG_IGN)\\n"
         "print('child is up', flush=True); time.sleep(600)")
subprocess.Popen([sys.executable, "-c", child])
"""
    + HEALTHY
)
DIES_STARTING = """
import sys
print("loading weights", flush=True)
print("RuntimeError: api_key=abc123secret is wrong", flush=True)
sys.exit(7)
"""
NEVER_READY = "import time; print('thinking', flush=True); time.sleep(600)"


class Fake(Engine):
    name = "fake"
    pool_pattern = r"KV pool: ([\d,]+) tokens"

    def argv(self, start: Start) -> list[str]:
        return [sys.executable, "-c", HEALTHY, str(start.port)]


def launch(script: str, port: int) -> Launch:
    return Launch((sys.executable, "-c", script, str(port)), port)
