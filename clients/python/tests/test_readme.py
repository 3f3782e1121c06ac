"""The README's own text: its commands and its first program, from an empty folder, against the real server."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import harness

README = harness.HERE.parent / "README.md"


class Readme(unittest.TestCase):
    def test_from_an_empty_folder_to_a_proved_event(self) -> None:
        text = README.read_text(encoding="utf-8")
        program, commands = re.findall(r"```(?:python)?\n(.*?)```", text, re.S)[:2]
        self.assertLessEqual(len(program.splitlines()), 12)
        self.assertEqual(3, len(commands.splitlines()))
        server = harness.Server()
        self.addCleanup(server.close)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "first.py").write_text(program, encoding="utf-8")
            clone = folder / "clone" / "clients" / "python"  # pip writes to the folder that it installs from
            shutil.copytree(README.parent, clone, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
            (folder / "key").write_text(server.acme.key, encoding="ascii")
            run = subprocess.run(
                ["sh", "-euc", commands],
                cwd=folder,
                env=self.environment(server, folder),
                capture_output=True,
                text=True,
            )
        self.assertEqual(0, run.returncode, run.stderr)
        self.assertTrue(run.stdout.rstrip().endswith("proved, as far as checked above"), run.stdout)

    def environment(self, server: harness.Server, folder: pathlib.Path) -> dict[str, str]:
        """Return the agent's settings. pip builds with the installed packages, without an index."""
        o = server.acme
        settings = {"URL": server.url, "TOKEN": o.token, "ORG": o.org, "AGENT": o.agent, "KEY_ID": o.key_id}
        pip = {
            "PIP_NO_INDEX": "1",
            "PIP_NO_BUILD_ISOLATION": "0",
            "PIP_NO_DEPS": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        return {
            "PATH": "/usr/bin:" + os.environ["PATH"],
            "HOME": str(folder),
            "AGENTLEDGER": str(folder / "clone"),
            "LOG_KEY": o.log_key,
            **pip,
            **{f"APS_{name}": value for name, value in settings.items()},
            "APS_KEY_FILE": str(folder / "key"),
        }


if __name__ == "__main__":
    unittest.main()
