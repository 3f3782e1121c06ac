"""A full disk under the queue's file and the journal: no act runs without its entry, and no event is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from typing import Any

from harness import HERE

SMALL = 'mount -t tmpfs -o size=256k none "$1" && exec "$2" "$3" "$1"'


def own_mounts() -> list[str]:
    """Return the command that runs a program with separate mounts, which end with it: as root, or else in a namespace."""
    return ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--user", "--map-root-user"]


class FullDisk(unittest.TestCase):
    def agent(self) -> dict[str, Any]:
        """Run the agent on a volume of 256 KiB and return its report."""
        with tempfile.TemporaryDirectory() as folder:
            command = [*own_mounts(), "sh", "-c", SMALL, "sh", folder, sys.executable, str(HERE / "disk.py")]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.assertEqual(0, done.returncode, done.stderr)
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    def test_a_volume_that_fills_up(self) -> None:
        report = self.agent()
        self.assertEqual(["before", "full", "filled by the act"], report["ran"], "an act ran twice, or without room")
        why = "the journal can't be written: No space left on device: make room in its folder"
        self.assertEqual(f"{why}. The act was not done: the same call is safe to repeat", report["act"])
        self.assertRegex(report["queue"], r"^the queue /.*/queue can't be written: No space left on device\. ")
        self.assertTrue(report["queue"].endswith("The events are not queued: make room, and queue them again"))
        self.assertEqual([], report["lost"])
        begun = "the act that filled the disk is begun at the restart"
        self.assertEqual(["ok"] * 3 + ["unknown"], report["results"], begun)
        self.assertTrue(any("can't note the end of an act" in text for text in report["logged"]), report["logged"])


if __name__ == "__main__":
    unittest.main()
