"""An agent that is killed at random: no act runs twice, each has its intent and one result, and an interrupted act is
recorded as unknown."""

from __future__ import annotations

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import unittest
from typing import Any
from urllib.parse import quote

import harness

ACTS = 150
KILLS = 8
AGENT = pathlib.Path(__file__).resolve().parent / "agent.py"


def start(folder: pathlib.Path, server: harness.Server) -> subprocess.Popen[bytes]:
    """Start the agent of the organization acme."""
    acme = server.acme
    (folder / "key").write_text(acme.key)
    settings = {"APS_URL": server.url, "APS_TOKEN": acme.token, "APS_ORG": acme.org, "APS_AGENT": acme.agent}
    settings |= {"APS_KEY_ID": acme.key_id, "APS_KEY_FILE": str(folder / "key")}
    command = [sys.executable, str(AGENT), str(folder), str(ACTS)]
    return subprocess.Popen(command, env={**os.environ, **settings}, stderr=subprocess.PIPE)


def done(folder: pathlib.Path) -> list[int]:
    """Return the acts that ran, in order."""
    file = folder / "done"
    return [int(line) for line in file.read_text().splitlines()] if file.exists() else []


def wait_for_acts(folder: pathlib.Path, agent: subprocess.Popen[bytes]) -> None:
    """Wait until some more acts have run and a random moment of the next one is reached, or the agent has exited."""
    target = len(done(folder)) + random.randint(5, 14)
    while agent.poll() is None and len(done(folder)) < target:
        time.sleep(0.001)
    time.sleep(random.random() / 200)


def payloads(server: harness.Server) -> list[dict[str, Any]]:
    """Return the payload of each event of the acts."""
    person, events, after = server.sign_in(server.acme), [], ""
    while True:
        page = person.call("GET", "/events?tool=acme.mail.send&limit=100" + after)
        events += page["events"]
        if not page.get("next"):
            break
        after = "&after=" + quote(str(page["next"]))
    found = []
    for event in events:
        _, _, text = harness.call(server.port, "GET", f"/v1/public/orgs/acme/verify/{event['event_id']}")
        found.append(json.loads(json.loads(text)["envelope"])["payload"])
    return found


class Killed(unittest.TestCase):
    def test_nothing_is_done_twice_or_left_out(self) -> None:
        server = harness.Server(disclosure="full")
        self.addCleanup(server.close)
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        folder = pathlib.Path(temporary.name)
        for _ in range(KILLS):
            with start(folder, server) as agent:
                wait_for_acts(folder, agent)
                agent.kill()
        with start(folder, server) as agent:
            _, errors = agent.communicate(timeout=120)
        self.assertEqual(0, agent.returncode, errors.decode())
        acts = done(folder)
        self.assertEqual(len(set(acts)), len(acts), "an act was done twice")
        self.check_events(payloads(server), set(acts))

    def check_events(self, found: list[dict[str, Any]], acts: set[int]) -> None:
        intents = {p["call_id"]: p["n"] for p in found if p["phase"] == "intent"}
        results = [(intents[p["call_id"]], p["status"]) for p in found if p["phase"] == "result"]
        self.assertEqual(2 * ACTS, len(found))
        self.assertEqual(list(range(ACTS)), sorted(n for n, _ in results))
        for n, status in results:
            self.assertIn(status, ("ok", "unknown"))
            if status == "ok":
                self.assertIn(n, acts)
        self.assertLessEqual(sum(status == "unknown" for _, status in results), 4 * KILLS)


if __name__ == "__main__":
    unittest.main()
