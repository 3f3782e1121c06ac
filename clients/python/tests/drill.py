"""Send events for the drills of internal/test/clientdrill, with the client's settings in APS_*.

drill.py send FOLDER COUNT CALLERS sends most of the events, and queues the last ones in FOLDER.
drill.py queue FOLDER COUNT CALLERS queues events in FOLDER, and notes each in FOLDER/offered.
drill.py end FOLDER COUNT CALLERS queues events in memory and ends.
drill.py fork FOLDER COUNT CALLERS sends events in four forked children of a process whose client is in use.

In the end it prints what became of the events of this process.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "src"))

from agentledger import Client, Refused, Retry, Unreachable  # noqa: E402

RETRY = Retry(attempts=8, base=0.001, most=0.02)


def is_refused(n: int) -> bool:
    """Return whether the service refuses the event of a number for good."""
    return n % 50 == 49


def numbered(n: int) -> dict[str, Any]:
    """Return the event of a number."""
    name = f"evt-python-taken-{n}" if is_refused(n) else f"evt-python-{n}"
    return {"event_id": name, "trace_id": f"trc-{n % 97}", "action_kind": "note", "payload": {"n": n}}


def each(numbers: Iterable[int], callers: int, call: Callable[[int], None]) -> None:
    """Call a function with each number, in as many threads as there are callers."""
    left, lock = iter(numbers), threading.Lock()

    def work() -> None:
        while True:
            with lock:
                n = next(left, None)
            if n is None:
                return
            call(n)

    threads = [threading.Thread(target=work) for _ in range(callers)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def lines_of(path: pathlib.Path) -> int:
    """Return the number of lines of a file."""
    return path.read_text().count("\n") if path.exists() else 0


def flush(client: Client) -> None:
    """Wait until the queue is empty."""
    while client.pending:
        try:
            client.flush(10.0)
        except Unreachable:
            pass


def send(folder: pathlib.Path, count: int, callers: int) -> dict[str, int]:
    """Send events, and queue the last ones: few, because pauses of a queue grow to 30 seconds."""
    total, lock = {"offered": 0, "stored": 0, "refused": 0, "queued": 0}, threading.Lock()

    def add(name: str) -> None:
        with lock:
            total[name] += 1

    with Client(timeout=1.5, retry=RETRY) as client:

        def send_one(n: int) -> None:
            signed = client.sign(numbered(n))
            add("offered")
            while True:
                try:
                    client.send(signed)
                    return add("stored")
                except Refused as why:
                    if why.final:
                        return add("refused")
                except Unreachable:
                    pass

        sent = count - max(50, count // 100)
        each(range(sent), callers, send_one)
    with Client(timeout=1.5, retry=RETRY, queue_file=folder / "queue") as client:

        def queue_one(n: int) -> None:
            add("offered")
            client.queue(numbered(n))

        each(range(sent, count), callers, queue_one)
        flush(client)
        dead = lines_of(folder / "queue.refused")
        total["refused"] += dead
        total["queued"] = client.pending
        total["stored"] += count - sent - dead - client.pending
    return total


def queue(folder: pathlib.Path, count: int, callers: int) -> dict[str, int]:
    """Queue events after those of earlier processes."""
    first = lines_of(folder / "begun")
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    offered, begun = os.open(folder / "offered", flags), os.open(folder / "begun", flags)
    with Client(timeout=1.5, retry=RETRY, queue_file=folder / "queue") as client:

        def queue_one(n: int) -> None:
            os.write(begun, b"begun\n")
            client.queue(numbered(n))
            os.write(offered, f"{n}\n".encode())
            while client.pending > 4 * callers:
                time.sleep(0.001)

        each(range(first, first + count), callers, queue_one)
        flush(client)
        return {"refused": lines_of(folder / "queue.refused"), "queued": client.pending}


def end(folder: pathlib.Path, count: int, callers: int) -> dict[str, int]:
    """Queue events. The client is never closed."""
    client = Client(timeout=1.5, retry=RETRY)
    each(range(count), callers, lambda n: client.queue(numbered(n)) and None)
    return {"offered": count}


def fork(folder: pathlib.Path, count: int, callers: int) -> dict[str, int]:
    """Send every fifth event here, and the others in four children that are forked in the meantime."""
    client = Client(timeout=1.5, retry=RETRY)

    def send_one(n: int) -> None:
        signed = client.sign(numbered(n))
        while True:
            try:
                client.send(signed)
                return
            except (Refused, Unreachable) as why:
                if getattr(why, "final", False):
                    return

    own = threading.Thread(target=each, args=(range(4, count, 5), callers, send_one))
    own.start()
    children = []
    for first in range(4):
        child = os.fork()
        if child == 0:
            each(range(first, count, 5), callers, send_one)
            os._exit(0)
        children.append(child)
    own.join()
    ended = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert ended == [0] * 4, ended
    return {"offered": count}


if __name__ == "__main__":
    modes = {"send": send, "queue": queue, "end": end, "fork": fork}
    print(json.dumps(modes[sys.argv[1]](pathlib.Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))))
