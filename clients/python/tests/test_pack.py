"""Evidence packs as bytes, as paths and as files: packs of the real server, one of them larger than 50 MB."""

from __future__ import annotations

import http.client
import io
import json
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
import zipfile
from typing import Any

import harness

from agentledger import Client, NotAsked
from agentledger.verify import Outcome, pack
from agentledger.verify._flaw import Flaw
from agentledger.verify._packs.archive import MAX_LINE, Member
from agentledger.verify._packs.container import Stored
from agentledger.verify._packs.events import Events
from agentledger.verify._packs.source import PORTION, Source

MEGABYTE = 10**6


def fill(server: harness.Server, own: harness.Organization, events: int) -> None:
    """Send events of 180 kB, and wait until the latest checkpoint includes them."""
    with Client(**own.settings(server.url)) as c:
        for n in range(events):
            payload = {"n": n, "text": "Größe " * 25_000}
            stored = c.send({"action_kind": "note", "payload": payload})
        c.log(own.slug, own.log_key).bundle(stored.event_id)


def export(server: harness.Server, own: harness.Organization) -> pathlib.Path:
    """Fetch the pack of an organization into a file."""
    cookie = server.sign_in(own).cookie
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    connection.request("GET", "/v1/console/evidence.zip?envelopes=1", headers={"Cookie": cookie})
    answer = connection.getresponse()
    if answer.status != 200:
        raise RuntimeError(f"evidence: {answer.status}")
    path = server.folder / f"{own.slug}.zip"
    with open(path, "wb") as out:
        shutil.copyfileobj(answer, out)
    connection.close()
    return path


def contents(raw: bytes) -> dict[str, bytes] | None:
    """Return the files of a ZIP, ignoring its checksums; None if it can't be read."""
    found = {}
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as z:
            for info in z.infolist():
                with z.open(info) as f:
                    f._expected_crc = None  # type: ignore[attr-defined]
                    found[info.filename] = f.read()
    except (ValueError, zipfile.BadZipFile, NotImplementedError):
        return None
    return found


class Counting(io.BytesIO):
    """A file that records the largest number of bytes read at once."""

    largest = 0

    def read(self, size: int | None = -1) -> bytes:
        content = super().read(size)
        self.largest = max(self.largest, len(content))
        return content


class Packs(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.server = harness.Server()
        cls.addClassCleanup(cls.server.close)
        cls.acme, cls.boole = cls.server.acme, cls.server.boole
        fill(cls.server, cls.acme, 300)
        fill(cls.server, cls.boole, 3)
        cls.large, cls.small = export(cls.server, cls.acme), export(cls.server, cls.boole)

    def test_the_memory_does_not_grow_with_the_size(self) -> None:
        self.assertGreater(self.large.stat().st_size, 50 * MEGABYTE)
        more = {}
        for path, own, events in ((self.large, self.acme, 300), (self.small, self.boole, 3)):
            command = [sys.executable, str(harness.HERE / "packchild.py"), str(path), own.log_key]
            report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            self.assertEqual("PROVED", report["outcome"], report["reason"])
            self.assertGreaterEqual(report["envelopes"], events)
            more[own.slug] = report["more"]
        self.assertLess(more["acme"] - more["boole"], 16 * MEGABYTE, more)

    def test_each_form_of_a_pack_has_the_same_result(self) -> None:
        raw = self.small.read_bytes()
        counting = Counting(self.large.read_bytes())
        self.assertTrue(pack(counting, key=self.acme.log_key).proved)
        self.assertLessEqual(counting.largest, PORTION)
        with open(self.small, "rb") as file, open(self.small, "rb", buffering=0) as unbuffered:
            forms: dict[str, Any] = {"bytes": raw, "array": bytearray(raw), "path": self.small, "text": str(self.small)}
            forms |= {"file": file, "unbuffered": unbuffered, "memory": io.BytesIO(raw)}
            for name, form in forms.items():
                with self.subTest(name):
                    self.assertTrue(pack(form, key=self.boole.log_key).proved)
                    self.assertIs(Outcome.CANT_TELL, pack(form, key=self.acme.log_key).outcome)
            self.assertFalse(file.closed)

    def test_malformed_packs_are_reported(self) -> None:
        with self.assertRaises(FileNotFoundError):
            pack(self.small.with_name("none"), key=self.boole.log_key)
        with open(self.small, encoding="latin-1") as text, self.assertRaises(NotAsked):
            pack(text, key=self.boole.log_key)  # type: ignore[arg-type]
        a, b = socket.socketpair()
        with a, b, a.makefile("rb") as stream, self.assertRaises(NotAsked):
            pack(stream, key=self.boole.log_key)
        for raw in (b"", b"PK", b"PK\3\4", b"no pack"):
            self.assertFalse(pack(raw, key=self.boole.log_key).proved)

    def test_a_changed_byte_and_a_missing_one_are_found_wherever_they_are(self) -> None:
        raw = self.small.read_bytes()
        whole = contents(raw)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "pack"
            for at in [*range(0, len(raw), len(raw) // 25), *range(len(raw) - 70, len(raw), 7)]:
                for changed in (raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :], raw[:at] + raw[at + 1 :]):
                    path.write_bytes(changed)
                    self.assertTrue(not pack(path, key=self.boole.log_key).proved or contents(changed) == whole, at)

    def test_a_folder_and_a_pack_of_another_program(self) -> None:
        raw, key = self.small.read_bytes(), self.boole.log_key
        want = pack(raw, key=key)
        with tempfile.TemporaryDirectory() as name:
            top = pathlib.Path(name)
            with zipfile.ZipFile(self.small) as z, zipfile.ZipFile(top / "again.zip", "w", zipfile.ZIP_DEFLATED) as again:
                z.extractall(top / "folder" / "november")
                for info in z.infolist():
                    again.writestr("november/" + info.filename, z.read(info))
            (top / "folder" / ".DS_Store").touch()
            for form in (top / "folder", str(top / "folder" / "november"), top / "again.zip"):
                with self.subTest(form):
                    got = pack(form, key=key)
                    self.assertEqual((want.outcome, str(want)), (got.outcome, str(got)))
            self.assertIn("its carrier may have repacked it", str(want))
            known = pack(raw, key=key, manifest=want.facts.manifest_sha256)
            self.assertNotIn("repacked", str(known))
            (top / "folder" / "link").symlink_to("/etc/passwd")
            self.check_unreadable(top / "folder", "a symbolic link or a special file")
            (top / "folder" / "link").unlink()
            (top / "folder" / "manifest.json").touch()
            self.check_unreadable(top / "folder", "two files manifest.json")
            self.check_unreadable(top, "two files manifest.json")
            (top / "empty").mkdir()
            self.check_unreadable(top / "empty", "no file manifest.json")
            for n in range(4097):
                (top / "empty" / f".{n}").touch()
            self.check_unreadable(top / "empty", "number of files")

    def check_unreadable(self, folder: pathlib.Path, words: str) -> None:
        got = pack(folder, key=self.boole.log_key)
        self.assertIs(Outcome.CANT_TELL, got.outcome)
        self.assertEqual(f"can't tell: the files of the pack can't be read: {words}", got.reason)


def lines_of(raw: bytes, most: int | None = None) -> list[str]:
    return list(Member(Stored(Source(io.BytesIO(raw)), 0, len(raw))).lines("a", most))


class Lines(unittest.TestCase):
    def test_lines_match_split(self) -> None:
        long = "ü" * (MAX_LINE // 2 - 1) + "a"
        for lines in ([], ["a"], ["a", "bc", "ü"], [long, "a", long], ["Größe von 32 bytes und mehr"] * 70_000):
            self.assertEqual(lines, lines_of("".join(line + "\n" for line in lines).encode()))
        self.assertEqual(7, len(lines_of(b"a\n" * 7, 7)))

    def test_malformed_lines_are_rejected(self) -> None:
        long = b"x" * MAX_LINE
        for raw in (b"a\nb", b"a\n\nb\n", b"\na\n", long + b"\n", long, long + b"aa", b"\xff\n"):
            with self.subTest(raw[:9]), self.assertRaises(Flaw):
                lines_of(raw)
        with self.assertRaises(Flaw):
            lines_of(b"a\n" * 8, 7)


class Marks(unittest.TestCase):
    def test_marks_match_sets(self) -> None:
        r = random.Random(11)
        for _ in range(300):
            begin = r.randrange(50)
            end = begin + r.randrange(40)
            events = Events(begin, end, lambda at, size: b"")
            shown = {n: (r.random() < 0.7, r.random() < 0.5) for n in range(begin + 1, end + 1) if r.random() < 0.6}
            for n, (of_agent, canonical) in shown.items():
                events.show(n, of_agent, canonical)
            erased: set[int] = set()
            for _ in range(r.randrange(4)):
                first = r.randrange(100)
                last = first + 1 + r.randrange(20)
                found = {n for n, (of_agent, _) in shown.items() if of_agent and first < n <= last}
                self.assertEqual(bool(found), events.erase(first, last))
                erased |= found
            canonical_ones = {n for n, (_, canonical) in shown.items() if canonical}
            self.assertEqual((len(shown), len(erased)), (events.shown, events.erased))
            self.assertEqual(erased, {n for n in shown if events.is_erased(n)})
            self.assertEqual(len(canonical_ones), events.unchecked(False))
            self.assertEqual(len(canonical_ones & erased), events.unchecked(True))
            self.assertEqual(set(range(begin + 1, end + 1)), {n for n in range(130) if events.has(n)})


if __name__ == "__main__":
    unittest.main()
