"""Tokens and keys as editors, password managers and Kubernetes write them."""

import base64
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import harness
from agentledger._errors import NotAsked
from agentledger._settings import Retry, Settings, read_settings

ORG = "018f3c1e-7a52-7cc3-8f7e-0123456789ab"
KEY = base64.b64encode(b"\7" * 32).decode()


def settings_of(token: str, key_file: pathlib.Path) -> Settings:
    environment = {"APS_URL": "http://localhost", "APS_TOKEN": token, "APS_KEY_FILE": str(key_file)}
    return read_settings(
        None, None, ORG, "agt_1", "key_1", None, timeout=1, retry=Retry(), convert=None, environment=environment
    )


class LineEnds(unittest.TestCase):
    def test_a_token_and_a_key_may_have_one_line_end_after_them(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "key"
            for end in ("", "\n", "\r\n"):
                file.write_bytes((KEY + end).encode())
                settings = settings_of("apl_live_x" + end, file)
                self.assertEqual(settings.token, "apl_live_x", repr(end))
                self.assertIsNotNone(settings.signer)
            for token in ("s3cret\n\n", "s3cret\nx", "\ns3cret", "s3 cret"):
                with self.assertRaisesRegex(NotAsked, "line ends") as raised:
                    settings_of(token, file)
                self.assertNotIn("s3", str(raised.exception))


class KeyOfTheEnvironment(unittest.TestCase):
    def test_the_key_itself_may_be_in_the_environment(self) -> None:
        environment = {"APS_URL": "http://localhost", "APS_KEY": KEY}
        for more, signs in (({}, True), ({"APS_KEY": ""}, False)):
            settings = read_settings(
                None, None, ORG, "agt_1", "key_1", None, timeout=1, retry=Retry(), convert=None, environment=environment | more
            )
            self.assertEqual(settings.signer is not None, signs, str(more))
        for wrong in ({"APS_KEY": KEY[:8]}, {"APS_KEY_FILE": "/no/such/file"}):
            with self.assertRaises(NotAsked) as raised:
                read_settings(
                    None, None, ORG, "agt_1", "key_1", None, timeout=1, retry=Retry(), convert=None, environment=environment | wrong
                )
            self.assertNotIn(KEY[:8], str(raised.exception))

    def test_the_key_of_a_file_that_a_shell_runs_signs_or_is_missing_or_is_refused_by_its_name(self) -> None:
        cases = json.loads((harness.REPOSITORY / "testdata" / "settings.json").read_text("utf-8"))["cases"]
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "agent.env"
            for case in cases:
                if "value" not in case:
                    continue
                file.write_text(case["text"], "utf-8")
                command = ["sh", "-euc", '. "$0"; printf %s "${APS_KEY-}"', str(file)]
                key = subprocess.run(command, env={"PATH": os.environ["PATH"]}, check=True, capture_output=True).stdout.decode()
                self.assertEqual(key, case["value"], case["name"])
                self.assertEqual(self.outcome({"APS_KEY": key}), case["client"], case["name"])
            file.write_text("no key", "ascii")
            with self.assertRaisesRegex(NotAsked, r"^key file \(APS_KEY_FILE\) must be base64 of 32 bytes$"):
                self.outcome({"APS_KEY_FILE": str(file)})

    def outcome(self, key: dict[str, str]) -> str:
        environment = {"APS_URL": "http://localhost"} | key
        try:
            settings = read_settings(
                None, None, ORG, "agt_1", "key_1", None, timeout=1, retry=Retry(), convert=None, environment=environment
            )
        except NotAsked as why:
            if not str(why).startswith("key (APS_KEY) "):
                raise
            self.assertNotIn(key["APS_KEY"], str(why))
            return "refused"
        return "none" if settings.signer is None else "signs"
