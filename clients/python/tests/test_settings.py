"""Tokens and keys as editors, password managers and Kubernetes write them."""

import base64
import pathlib
import tempfile
import unittest

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
