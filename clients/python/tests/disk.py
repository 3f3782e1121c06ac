"""An agent on a small volume that fills up: disk.py FOLDER. It reports what happened as JSON, and the test checks it.

It fills the journal act by act, then the queue's file event by event. Then it frees space and continues.
"""

import json
import logging
import os
import pathlib
import sys
from typing import Any

import harness  # noqa: F401  (the path of the package)
from fakeservice import FakeService, accept

from agentledger import Client, Journal, NotDecided, NotWritten


def fill(volume: pathlib.Path) -> None:
    """Write a file until the volume is full."""
    handle = os.open(volume / "filler", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for size in (4096, 1):
        try:
            while True:
                os.write(handle, b"x" * size)
        except OSError:
            pass
    os.close(handle)


def main(volume: pathlib.Path) -> dict[str, Any]:
    """Do it and return what happened."""
    service = FakeService(accept)
    report: dict[str, Any] = {"ran": []}
    client = Client(**service.settings(), journal=Journal(volume / "journal"), queue_file=volume / "queue")

    def act(key: str, during: Any = None) -> Any:
        def run(permit: object) -> str:
            report["ran"].append(key)
            if during is not None:
                during(volume)
            return "x" * 5000

        return client.act("acme.mail.send", {"text": "x" * 5000}, run, key=key)

    act("before")
    queued = [client.queue({"action_kind": "tool_call", "payload": {"n": 0}})]
    client.flush()
    fill(volume)
    try:
        act("full")
    except NotDecided as why:
        report["act"] = str(why)
    service.script = lambda method, path, body: None  # nothing is delivered, so the queue needs space
    try:
        for n in range(1, 100):
            queued.append(client.queue({"action_kind": "tool_call", "payload": {"n": n, "text": "x" * 1000}}))
    except NotWritten as why:
        report["queue"] = str(why)
    service.script = accept
    client.flush()
    (volume / "filler").unlink()
    queued.append(client.queue({"action_kind": "tool_call", "payload": {"n": 100}}))
    act("full")
    report["logged"] = []
    handler = logging.Handler()
    handler.emit = lambda record: report["logged"].append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("agentledger").addHandler(handler)
    act("filled by the act", fill)
    client.flush()
    client.close()
    (volume / "filler").unlink()
    with Client(**service.settings(), journal=Journal(volume / "journal"), queue_file=volume / "queue") as client:
        client.resume()
        client.flush()
    lines = [line for _, path, body, _ in service.requests if path.endswith("/batch") for line in body.splitlines()]
    arrived = {event["event_id"]: event["payload"] for event in map(json.loads, lines)}
    report["lost"] = [e.event_id for e in queued if e.event_id not in arrived]
    report["results"] = sorted(p["status"] for p in arrived.values() if p.get("phase") == "result")
    return report


if __name__ == "__main__":
    print(json.dumps(main(pathlib.Path(sys.argv[1]))))
