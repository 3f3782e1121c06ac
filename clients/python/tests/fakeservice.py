"""A service on loopback whose answers, also wrong ones, the test provides."""

from __future__ import annotations

import http.server
import json
import ssl
import threading
from collections.abc import Callable
from typing import Any

Reply = tuple[int, dict[str, str], bytes] | None
"""Status, headers and body; None closes the connection without an answer."""
Script = Callable[[str, str, bytes], Reply]
ORG = "8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11"
TOKEN = "apl_live_secret_of_a_test"


class FakeService:
    """Answers each request with a function of method, path and body, and records the requests."""

    def __init__(self, script: Script, tls: ssl.SSLContext | None = None) -> None:
        self.script = script
        self.requests: list[tuple[str, str, bytes, dict[str, str]]] = []
        self.interim = 0  # answers 103 before each answer
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        return self._server.server_port

    def settings(self) -> dict[str, Any]:
        """Return a client's arguments."""
        return dict(url=self.url, token=TOKEN, org=ORG, agent="agt_1", key_id="key_1", key=b"\7" * 32)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                service.requests.append((self.command, self.path, body, dict(self.headers.items())))
                reply = service.script(self.command, self.path, body)
                if reply is None:
                    self.close_connection = True
                    return
                status, headers, text = reply
                for _ in range(service.interim):
                    self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n")
                self.send_response(status)
                for name, value in {"Content-Length": str(len(text)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler


def answer(status: int, members: Any, **headers: str) -> Reply:
    """Return a reply in JSON."""
    return status, {n.replace("_", "-"): v for n, v in headers.items()}, json.dumps(members).encode()


def stored(body: bytes, **more: Any) -> dict[str, Any]:
    """Return the members of a 201 answer for an event."""
    event = json.loads(body)
    members = {"event_id": event["event_id"], "sequence_num": 1, "event_hash": "0" * 64, "chain_valid": True}
    return {**members, "status": "created", **more}


def store_lines(body: bytes) -> Reply:
    """Return the reply to a batch that is stored completely."""
    lines = [json.dumps({"status_code": 201, **stored(line)}) for line in body.splitlines()]
    return 200, {}, "\n".join(lines).encode() + b"\n"


def accept(method: str, path: str, body: bytes) -> Reply:
    """Answer like a service that stores all events and allows all acts."""
    if path.endswith("/batch"):
        return store_lines(body)
    return answer(201, stored(body))
