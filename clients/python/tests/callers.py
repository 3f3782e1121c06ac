"""Send events for the measure clients of bench, with the client's settings in APS_*: callers.py threads|tasks.

For each line "callers events" it signs the events and prints a line. For the next line it sends them through one client and
prints a line.
"""

from __future__ import annotations

import asyncio
import pathlib
import sys
import threading
from collections.abc import Callable
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "src"))

from agentledger import AsyncClient, Client, Signed  # noqa: E402


def event(i: int, callers: int) -> dict[str, Any]:
    """Return an event of about 1 KiB."""
    return {
        "action_kind": "tool_call",
        "tool_name": "acme.orders.read",
        "trace_id": f"trc-{i % callers}",
        "payload": {"i": i, "text": "x" * 600},
    }


def send_by_threads(client: Client, signed: list[Signed], callers: int) -> None:
    """Send the events from as many threads as there are callers."""

    def work(caller: int) -> None:
        for e in signed[caller::callers]:
            client.send(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(callers)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


async def send_by_tasks(client: AsyncClient, signed: list[Signed], callers: int) -> None:
    """Send the events from as many tasks as there are callers."""

    async def work(caller: int) -> None:
        for e in signed[caller::callers]:
            await client.send(e)

    await asyncio.gather(*(work(n) for n in range(callers)))


def serve(sign: Callable[[dict[str, Any]], Signed], send: Callable[[list[Signed], int], None]) -> None:
    """Sign and send for each two lines of standard input."""
    signed: list[Signed] = []
    callers = 1
    for line in sys.stdin:
        if line.strip():
            callers, count = map(int, line.split())
            signed = [sign(event(i, callers)) for i in range(count)]
        else:
            send(signed, callers)
        print("done", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "threads":
        with Client() as c:
            serve(c.sign, lambda signed, callers: send_by_threads(c, signed, callers))
    else:
        with asyncio.Runner() as runner:
            a = AsyncClient()
            serve(a.sign, lambda signed, callers: runner.run(send_by_tasks(a, signed, callers)))
            runner.run(a.close())
