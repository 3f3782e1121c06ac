"""A real server with two organizations, for the tests of this package."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent.parent
sys.path.insert(0, str(HERE.parent / "src"))
PASSWORD = "a-pass-phrase-for-tests-only"

POLICY = {
    "policy_id": "desk",
    "name": "Desk",
    "rules": [
        {
            "rule_id": "refunds",
            "tool": "acme.payments.refund",
            "decision": "allow_with_obligation",
            "reason": "A person looks",
            "obligations": [{"type": "human_approval"}],
        },
        {"rule_id": "customers", "tool": "acme.customers.**", "decision": "deny", "reason": "Not the agent's business"},
    ],
}


@dataclass(frozen=True)
class Organization:
    """The credentials of one organization's agent and auditor."""

    org: str
    slug: str
    log_key: str
    agent: str
    key_id: str
    key: str
    token: str
    email: str

    def settings(self, url: str) -> dict[str, str]:
        """Return a client's arguments."""
        return {
            "url": url,
            "token": self.token,
            "org": self.org,
            "agent": self.agent,
            "key_id": self.key_id,
            "key": self.key,
        }


class Server:
    """The real program on loopback, with its own data folder."""

    def __init__(self, disclosure: str = "record") -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="agentledger-py-"))
        self._disclosure = disclosure
        self.port, self.id_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._program = program("agentledger", self.folder)
        self.acme, self.boole = self._make("acme"), self._make("boole")
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def _make(self, slug: str) -> Organization:
        command = [self._program, "init", "--public-url", self.url, "--data", str(self.folder / "data"), "--json"]
        command += ["--disclosure", self._disclosure]
        command += ["--name", slug.title(), "--slug", slug, "--admin-email", f"ann@{slug}.example"]
        environment = {**os.environ, "AGENTLEDGER_ADMIN_PASSWORD": PASSWORD}
        made = json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)
        agent = made["agent"]
        return Organization(
            org=made["organization_id"],
            slug=slug,
            log_key=made["log_key"],
            agent=agent["agent_id"],
            key_id=agent["key_id"],
            key=agent["private_key_b64"],
            token=made["ingest_key"]["secret"],
            email=f"ann@{slug}.example",
        )

    def start(self) -> None:
        """Start the program and wait until it answers."""
        command = [self._program, "serve", "--public-url", self.url, "--data", str(self.folder / "data")]
        command += [
            "--listen",
            f"127.0.0.1:{self.port}",
            "--id-listen",
            f"127.0.0.1:{self.id_port}",
            "--metrics-listen",
            "",
        ]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        end = time.monotonic() + 60
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError((self.folder / "log").read_text()[-2000:])
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            return call(self.port, "GET", "/readyz")[0] == 200
        except OSError:
            return False

    def stop(self) -> None:
        """Stop the program."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
            self._process = None

    def close(self) -> None:
        """Stop the program and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder)

    def sign_in(self, organization: Organization) -> Person:
        """Return the owner of an organization, signed in."""
        body = {"email": organization.email, "password": PASSWORD}
        status, headers, text = call(self.id_port, "POST", "/v1/id/auth/login", body)
        if status != 200:
            raise RuntimeError(f"sign in: {status} {text!r}")
        return Person(self.port, headers["set-cookie"])


@dataclass(frozen=True)
class Person:
    """An owner of an organization with a console session."""

    port: int
    cookie: str

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Make a console call and return its answer."""
        status, _, text = call(self.port, method, "/v1/console" + path, body, {"Cookie": self.cookie})
        if status // 100 != 2:
            raise RuntimeError(f"{method} {path}: {status} {text!r}")
        return json.loads(text) if text else None

    def activate(self, policy: dict[str, Any]) -> None:
        """Activate a policy."""
        self.call("POST", "/policies", policy)
        self.call("POST", f"/policies/{policy['policy_id']}/activate")

    def vote(self, approval: Any, vote: str, **more: Any) -> None:
        """Vote on an approval."""
        body = {"vote": vote, "action_digest": approval.action_digest, **more}
        self.call("POST", f"/approvals/{approval.approval_id}/votes", body)


def call(
    port: int, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    """Make one HTTP request on loopback."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        text = None if body is None else json.dumps(body).encode()
        more = {"Content-Type": "application/json"} if text is not None else {}
        connection.request(method, path, text, {**more, **(headers or {})})
        answer = connection.getresponse()
        headers = {n.lower(): v for n, v in answer.getheaders()}
        cookies = [v.split(";")[0] for n, v in answer.getheaders() if n.lower() == "set-cookie"]
        headers["set-cookie"] = "; ".join(cookies)
        return answer.status, headers, answer.read()
    finally:
        connection.close()


def free_port() -> int:
    """Return a loopback port that nobody listens on, below those that systems give to connections."""
    while True:
        port = random.randrange(15_000, 30_000)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


def program(name: str, folder: pathlib.Path) -> str:
    """Return the path of a program of this repository: AGENTLEDGER_BIN or APS_BIN, or built into the folder."""
    given = os.environ.get({"agentledger": "AGENTLEDGER_BIN", "aps": "APS_BIN"}[name])
    if given:
        return given
    target = folder / name
    go = shutil.which("go") or "/usr/local/go/bin/go"
    subprocess.run([go, "build", "-o", str(target), f"./cmd/{name}"], cwd=REPOSITORY, check=True)
    return str(target)
