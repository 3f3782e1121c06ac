"""Proxies from the environment: which one is chosen, and events through tinyproxy."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import os
import pathlib
import shutil
import ssl
import subprocess
import tempfile
import unittest
from typing import Any
from unittest import mock

import harness
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from fakeservice import FakeService, accept

from agentledger import AsyncClient, Client, NotAsked, Refused, Retry, Unreachable
from agentledger._proxies import find_proxy

ONCE = Retry(attempts=1)
HOST = "0.0.0.0"
"""Reaches the loopback interface without being a loopback address, which would bypass the proxy."""
EVENT = {"action_kind": "tool_call", "payload": {"text": "x" * 200_000}}


class Choice(unittest.TestCase):
    def proxy(self, url_scheme: str, host: str, port: int, **environment: str) -> str | None:
        found = find_proxy(url_scheme, host, port, environment)
        return None if found is None else str(found)

    def test_variables(self) -> None:
        for scheme, environment, want in (
            ("https", {"HTTPS_PROXY": "http://proxy:3128"}, "proxy:3128"),
            ("https", {"HTTPS_PROXY": "proxy:3128"}, "proxy:3128"),
            ("https", {"HTTPS_PROXY": "http://proxy"}, "proxy:80"),
            ("https", {"HTTP_PROXY": "http://proxy:3128"}, None),
            ("https", {"HTTPS_PROXY": ""}, None),
            ("https", {"https_proxy": "http://a:1", "HTTPS_PROXY": "http://b:2"}, "a:1"),
            ("http", {"HTTP_PROXY": "http://proxy:3128"}, "proxy:3128"),
            ("http", {"HTTP_PROXY": "http://proxy:3128", "REQUEST_METHOD": "GET"}, None),
            ("http", {"http_proxy": "http://proxy:3128", "REQUEST_METHOD": "GET"}, "proxy:3128"),
        ):
            with self.subTest(scheme=scheme, environment=environment):
                self.assertEqual(want, self.proxy(scheme, "ledger.example", 443, **environment))

    def test_hosts_without_a_proxy(self) -> None:
        for rules, host, direct in (
            ("", "ledger.example", False),
            ("", "localhost", True),
            ("", "127.1.2.3", True),
            ("", "::1", True),
            ("*", "ledger.example", True),
            ("other.example, ledger.example", "ledger.example", True),
            ("example", "ledger.example", True),
            ("ledger.example", "a.ledger.example", True),
            (".ledger.example", "a.ledger.example", True),
            (".ledger.example", "ledger.example", False),
            ("*.ledger.example", "a.ledger.example", True),
            ("ger.example", "ledger.example", False),
            ("ledger.example:443", "ledger.example", True),
            ("ledger.example:8443", "ledger.example", False),
            ("10.1.2.3", "10.1.2.3", True),
            ("10.0.0.0/8", "10.1.2.3", True),
            ("10.0.0.0/8", "11.1.2.3", False),
            ("fd00::/8", "fd00::1", True),
            ("[fd00::1]:443", "fd00::1", True),
            ("fd00::1", "fd00::1", True),
            (", ,:", "ledger.example", False),
        ):
            with self.subTest(rules=rules, host=host):
                proxy = self.proxy("https", host, 443, HTTPS_PROXY="http://proxy:1", NO_PROXY=rules)
                self.assertEqual(None if direct else "proxy:1", proxy)

    def test_a_malformed_proxy_is_an_error_without_its_password(self) -> None:
        for url in ("https://user:secret@proxy:1", "socks5://user:secret@proxy", "http://user:secret@", "http://a b"):
            with self.subTest(url=url), self.assertRaisesRegex(NotAsked, "^HTTPS_PROXY must be http://") as raised:
                self.proxy("https", "ledger.example", 443, HTTPS_PROXY=url)
            self.assertNotIn("secret", str(raised.exception))
        found = find_proxy("https", "ledger.example", 443, {"HTTPS_PROXY": "http://user:s%40cret@proxy:1"})
        self.assertEqual({"Proxy-Authorization": "Basic dXNlcjpzQGNyZXQ="}, found.headers if found else None)
        self.assertNotIn("cret", repr(found) + str(found))


class Tinyproxy(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.port = harness.free_port()
        tls = self.certify()
        self.http = FakeService(accept)
        self.addCleanup(self.http.close)
        self.https = FakeService(accept, tls)
        self.addCleanup(self.https.close)
        self.start()

    def certify(self) -> ssl.SSLContext:
        """Make a certificate for HOST, and let clients trust it."""
        key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.utcnow()
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
        certificate = (
            x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), False)
            .sign(key, hashes.SHA256())
        )
        pem, key_file = self.folder / "cert.pem", self.folder / "key.pem"
        pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        form = serialization.PrivateFormat.PKCS8
        key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
        trusted = mock.patch.dict(os.environ, SSL_CERT_FILE=str(pem))
        trusted.start()
        self.addCleanup(trusted.stop)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem, key_file)
        return context

    def start(self) -> None:
        program = shutil.which("tinyproxy") or "/usr/sbin/tinyproxy"
        ports = f"ConnectPort {self.https.port}"  # other ports are refused
        settings = f"Port {self.port}\nListen 127.0.0.1\nBasicAuth agent s3cret\nTimeout 60\n{ports}\n"
        (self.folder / "conf").write_text(settings)
        process = subprocess.Popen([program, "-d", "-c", str(self.folder / "conf")], stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        for _ in range(600):
            try:
                harness.call(self.port, "GET", "/")
                return
            except OSError:
                self.assertIsNone(process.poll(), "tinyproxy did not start")

    def through(self, user: str = "agent:s3cret", port: int | None = None) -> Any:
        proxy = f"http://{user}@127.0.0.1:{port or self.port}"
        return mock.patch.dict(os.environ, HTTPS_PROXY=proxy, HTTP_PROXY=proxy, NO_PROXY="", no_proxy="")

    def settings(self, service: FakeService) -> dict[str, Any]:
        return {**service.settings(), "url": service.url.replace("127.0.0.1", HOST), "retry": ONCE}

    async def send_async(self, service: FakeService, port: int | None = None, event: Any = EVENT) -> list[str]:
        settings = self.settings(service)
        settings["url"] = settings["url"].replace(f":{service.port}", f":{port or service.port}")
        async with AsyncClient(**settings) as c:
            return [(await c.send(event)).status for _ in range(2)]

    def test_events_through_the_proxy(self) -> None:
        for service in (self.http, self.https):
            with self.subTest(service.url), self.through():
                with Client(**self.settings(service)) as c:
                    self.assertEqual(["created"] * 2, [c.send(EVENT).status for _ in range(2)])
                self.assertEqual(["created"] * 2, asyncio.run(self.send_async(service)))
                self.assertEqual(4, len(service.requests))
                for _, path, _, headers in service.requests:
                    self.assertEqual("/v1/ingest/events/batch", path)
                    self.assertEqual(f"{HOST}:{service.port}", headers["Host"])
                    self.assertNotIn("Proxy-Authorization", headers)
                    self.assertEqual(service is self.http, "Via" in headers, "it did not pass the proxy")

    def failure(self, service: FakeService, port: int | None = None) -> tuple[str, str]:
        """Return the errors of both clients."""
        settings = self.settings(service)
        settings["url"] = settings["url"].replace(f":{service.port}", f":{port or service.port}")
        small = {**EVENT, "payload": {}}
        with Client(**settings) as c, self.assertRaises((Unreachable, Refused)) as blocking:
            c.send(small)
        with self.assertRaises((Unreachable, Refused)) as tasks:
            asyncio.run(self.send_async(service, port, small))
        self.assertFalse(getattr(blocking.exception, "final", False))
        return str(blocking.exception), str(tasks.exception)

    def test_a_proxy_that_does_not_connect(self) -> None:
        reason = f"the service can't be reached: the proxy 127.0.0.1:{self.port} answered CONNECT with"
        with self.through(user="agent:wrong"):
            self.assertEqual((f"{reason} 401 Unauthorized",) * 2, self.failure(self.https))
            for text in self.failure(self.http):  # the proxy may close the connection before its answer is read
                self.assertRegex(text, "^401 |^the service can't be reached: ")
        with self.through():
            self.assertEqual((f"{reason} 403 Forbidden",) * 2, self.failure(self.https, self.http.port))
        nobody = harness.free_port()
        with self.through(port=nobody):
            text = f"the proxy 127.0.0.1:{nobody} can't be reached: Connection refused"
            self.assertEqual((text,) * 2, self.failure(self.https))
            self.assertEqual((text,) * 2, self.failure(self.http))


if __name__ == "__main__":
    unittest.main()
