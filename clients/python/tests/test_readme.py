"""The README's own text: its commands and its first program, in an empty folder, with the packages of the real server."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import harness

README = harness.HERE.parent / "README.md"


class Readme(unittest.TestCase):
    def test_from_an_empty_folder_to_a_proved_event(self) -> None:
        text = README.read_text(encoding="utf-8")
        program, commands = re.findall(r"```(?:python|sh)\n(.*?)```", text, re.S)[:2]
        self.assertLessEqual(len(program.splitlines()), 12)
        self.assertEqual(3, len(commands.splitlines()))
        from_source = commands.replace("-py3-none-any.whl", ".tar.gz")
        self.assertNotEqual(commands, from_source)
        server = harness.Server()
        self.addCleanup(server.close)
        for each in (commands, from_source):
            with self.subTest(each), tempfile.TemporaryDirectory() as name:
                self.follow(pathlib.Path(name), server, program, each)

    def follow(self, folder: pathlib.Path, server: harness.Server, program: str, commands: str) -> None:
        """Run the commands in a folder and check what they print and install."""
        (folder / "first.py").write_text(program, encoding="utf-8")
        (folder / "key").write_text(server.acme.key, encoding="ascii")
        show = 'from importlib.metadata import metadata; print(metadata("agentledger").get_payload(), end="")'
        run = subprocess.run(
            ["sh", "-euc", f"{commands}\n.venv/bin/python -c '{show}'"],
            cwd=folder,
            env=self.environment(server, folder),
            capture_output=True,
            text=True,
        )
        self.assertEqual(0, run.returncode, run.stderr)
        printed, found, served = run.stdout.partition("proved, as far as checked above\n")
        self.assertTrue(found, printed)
        self.assertEqual(README.read_text(encoding="utf-8"), served)

    def environment(self, server: harness.Server, folder: pathlib.Path) -> dict[str, str]:
        """Return the agent's settings. pip uses the installed packages, without an index."""
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
            "APS_SLUG": o.slug,
            "APS_LOG_KEY": o.log_key,
            **pip,
            **{f"APS_{name}": value for name, value in settings.items()},
            "APS_KEY_FILE": str(folder / "key"),
        }


if __name__ == "__main__":
    unittest.main()
