"""Events per second: 64 callers of one client compared with raw batches of presigned events. Not a test.

    ../interpreter bench.py [SECONDS]

Starts the real server on loopback (AGENTLEDGER_BIN, or built) and exits by itself.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import harness

from agentledger import AsyncClient, Client, Signed
from agentledger._calls import send_batch

CALLERS = 64
ROUNDS = 5


def event(n: int) -> dict[str, Any]:
    """Return an event of about 1 KiB."""
    return {"action_kind": "tool_call", "trace_id": f"trc_{n % CALLERS}", "payload": {"n": n, "text": "x" * 400}}


def raw(c: Client, seconds: float) -> float:
    """Send signed events in batches of CALLERS, one request after the other, and return the events per second."""
    signed = [c.sign(event(n)) for n in range(int(20_000 * seconds))]
    return paced(lambda n: send(c, signed[n * CALLERS : n * CALLERS + CALLERS]), seconds) * CALLERS


def signed_raw(c: Client, seconds: float) -> float:
    """Do the same, signing the events while sending."""

    def sign_and_send(n: int) -> None:
        send(c, [c.sign(event(n * CALLERS + i)) for i in range(CALLERS)])

    return paced(sign_and_send, seconds) * CALLERS


def send(c: Client, part: list[Signed]) -> None:
    """Send one batch."""
    outcomes = c.run(send_batch(c.settings, part))
    assert part and all(getattr(o, "status", "") == "created" for o in outcomes)


def paced(call: Callable[[int], None], seconds: float) -> float:
    """Call for that long and return the calls per second."""
    begin, n = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        call(n)
        n += 1
    return n / (time.perf_counter() - begin)


def threads(c: Client, seconds: float) -> float:
    """Sign and send from CALLERS threads, and return the events per second."""
    begin, counts = time.perf_counter(), [0] * CALLERS

    def work(number: int) -> None:
        while time.perf_counter() - begin < seconds:
            c.send(event(number))
            counts[number] += 1

    workers = [threading.Thread(target=work, args=(n,)) for n in range(CALLERS)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    return sum(counts) / (time.perf_counter() - begin)


async def tasks(c: AsyncClient, seconds: float) -> float:
    """Sign and send from CALLERS tasks, and return the events per second."""
    begin, counts = time.perf_counter(), [0] * CALLERS

    async def work(number: int) -> None:
        while time.perf_counter() - begin < seconds:
            await c.send(event(number))
            counts[number] += 1

    await asyncio.gather(*(work(n) for n in range(CALLERS)))
    return sum(counts) / (time.perf_counter() - begin)


async def measure_tasks(settings: dict[str, str], seconds: float) -> float:
    """Return the events per second of one AsyncClient."""
    async with AsyncClient(**settings) as c:
        return await tasks(c, seconds)


def main(seconds: float) -> None:
    """Measure in turns and print the medians."""
    os.environ["AGENTLEDGER_PLANS"] = "free=0;enterprise=0"  # no monthly cap
    server = harness.Server()
    found: dict[str, list[float]] = {"raw batches": [], "raw, signing": [], "threads": [], "tasks": []}
    try:
        settings = server.acme.settings(server.url)
        with Client(**settings) as c:
            for _ in range(ROUNDS):
                found["raw batches"].append(raw(c, seconds))
                found["raw, signing"].append(signed_raw(c, seconds))
                found["threads"].append(threads(c, seconds))
                found["tasks"].append(asyncio.run(measure_tasks(settings, seconds)))
    finally:
        server.close()
    best = statistics.median(found["raw batches"])
    for name, rates in found.items():
        rate = statistics.median(rates)
        print(
            f"{name:<12} {rate:8.0f} events/s  {rate / best:.2f} of raw batches  ({min(rates):.0f} to {max(rates):.0f})"
        )


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 3.0)
