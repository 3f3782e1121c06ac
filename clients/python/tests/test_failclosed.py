"""An act runs only after a decision that allows it: any other answer, or none, prevents it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from decimal import Decimal
from typing import Any
from unittest import mock

from fakeservice import TOKEN, FakeService, Reply, accept, answer, store_lines, stored
from harness import HERE, free_port

from agentledger import (
    AsyncClient,
    Client,
    Denied,
    FailedBefore,
    Journal,
    KeyReused,
    LedgerError,
    Malformed,
    NotAsked,
    NotDecided,
    Options,
    OutcomeUnknown,
    Retry,
)

FAST = Retry(attempts=2, base=0.001, most=0.002)
ALLOW_IN_WORDS = b'{"policy_decision":"allow","status":"created"}'


def replies(body: bytes) -> dict[str, Reply]:
    """Return the replies that are not a permission, by name."""
    other = {**stored(body), "event_id": "evt_other"}
    return {
        "no answer": None,
        "401": answer(401, {"error": "Invalid API key"}),
        "403": answer(403, {"error": "Organization mismatch for API key"}),
        "403 agent": answer(403, {"error": "The ingest key is not for this agent"}),
        "clock off": answer(422, {"error": "emitted_at is too far in the future"}),
        "429 cap": answer(429, {"error": "Monthly event limit reached", "code": "plan_limit"}),
        "429 pace": answer(429, {"error": "later", "code": "rate_limited"}, Retry_After="0"),
        "500": answer(500, {"error": "Internal error", "request_id": "r1"}),
        "502": (502, {}, b"<html>bad gateway</html>"),
        "503": answer(503, {"error": "frozen", "code": "frozen"}),
        "204": (204, {"Content-Length": "0"}, b""),
        "302": (302, {"Location": "http://127.0.0.1:1/"}, b""),
        "not JSON": (201, {}, b"yes"),
        "a list": answer(201, [stored(body)]),
        "empty": (201, {}, b""),
        "another event": answer(201, other),
        "no event": (201, {}, ALLOW_IN_WORDS),
        "unknown decision": answer(201, stored(body, policy_decision="maybe")),
        "unknown status": answer(201, stored(body, status="kept")),
        "no number": answer(201, stored(body, sequence_num=None)),
        "replay without decision": answer(200, {"event_id": json.loads(body)["event_id"], "status": "replayed"}),
        "obligation without approval": answer(201, stored(body, policy_decision="allow_with_obligation")),
        "approval in words": answer(201, stored(body, policy_decision="allow_with_obligation", approval="apr_1")),
        "approval of another act": answer(
            201,
            stored(
                body,
                policy_decision="allow_with_obligation",
                approval={"approval_id": "apr_1", "status": "approved", "action_digest": "0" * 64},
            ),
        ),
        "deny": answer(201, stored(body, policy_decision="deny", reason="no")),
        "cut short": (201, {"Content-Length": "4000", "Connection": "close"}, json.dumps(stored(body)).encode()),
    }


NAMES = list(replies(b'{"event_id":"evt_1"}'))


def service_with(name: str) -> FakeService:
    return FakeService(
        lambda method, path, body: replies(body)[name] if path.endswith("/events") else store_lines(body)
    )


class FailClosed(unittest.TestCase):
    def test_blocking(self) -> None:
        for name in NAMES:
            service = service_with(name)
            c = Client(**service.settings(), retry=FAST, timeout=2.0)
            with self.subTest(name), self.assertRaises((NotDecided, Denied)) as failed:
                c.act("acme.x", {}, lambda permit: self.fail("it ran"), key="k", options=Options(attempts=2))
            self.assertNotIn(TOKEN, str(failed.exception))
            self.assertEqual(name == "deny", isinstance(failed.exception, Denied), name)
            c.close()
            service.close()

    def test_asyncio(self) -> None:
        async def attempt(service: FakeService) -> None:
            async with AsyncClient(**service.settings(), retry=FAST, timeout=2.0) as c:
                await c.act("acme.x", {}, lambda permit: self.fail("it ran"), options=Options(attempts=2))

        for name in NAMES:
            service = service_with(name)
            with self.subTest(name), self.assertRaises((NotDecided, Denied)):
                asyncio.run(attempt(service))
            service.close()

    def test_no_server(self) -> None:
        settings = FakeService(accept).settings()
        settings["url"] = f"http://127.0.0.1:{free_port()}"
        with Client(**settings, retry=FAST) as c, self.assertRaises(NotDecided):
            c.act("acme.x", {}, lambda permit: self.fail("it ran"), options=Options(attempts=2))

    def test_a_missing_answer_times_out(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            settings = FakeService(accept).settings()
            settings["url"] = f"http://127.0.0.1:{silent.getsockname()[1]}"
            with Client(**settings, retry=FAST, timeout=0.1) as c, self.assertRaises(NotDecided):
                c.act("acme.x", {}, lambda permit: self.fail("it ran"), options=Options(attempts=1))

    def test_the_same_event_is_sent_until_it_is_decided(self) -> None:
        service = service_with("500")
        with Client(**service.settings(), retry=FAST) as c:
            for _ in range(2):
                with self.assertRaises(NotDecided):
                    c.act("acme.x", {"a": 1}, lambda permit: self.fail("it ran"), key="k", options=Options(attempts=1))
            service.script = accept
            self.assertEqual("ran", c.act("acme.x", {"a": 1}, lambda permit: "ran", key="k"))
            events = {json.loads(body)["event_id"] for _, path, body, _ in service.requests if path.endswith("/events")}
            self.assertEqual(1, len(events))
        service.close()

    def test_only_a_refusal_by_the_service_makes_another_intent(self) -> None:
        by_the_service = answer(422, {"error": "emitted_at is too far in the future"}, X_Request_Id="req_1")
        by_an_ingress = answer(404, {"error": "Not found"})
        for refusal, intents in ((by_the_service, 2), (by_an_ingress, 1)):
            service = FakeService(lambda method, path, body: refusal)
            with Client(**service.settings(), retry=FAST) as c:
                with self.assertRaises(NotDecided):
                    c.act("acme.x", {}, lambda permit: self.fail("it ran"), key="k")
                service.script = accept
                self.assertEqual("ran", c.act("acme.x", {}, lambda permit: "ran", key="k"))
                events = [json.loads(body) for _, path, body, _ in service.requests if path.endswith("/events")]
                self.assertEqual(intents, len({e["event_id"] for e in events if e["payload"]["phase"] == "intent"}))
            service.close()

    def test_a_token_without_the_scope_approvals_learns_the_decision(self) -> None:
        service = FakeService(accept)
        with Client(**service.settings(), retry=FAST) as c:
            refusal = answer(
                403, {"error": "The ingest key does not have the scope approvals"}, X_Request_Id="req_1"
            )
            headers = iter([refusal])
            service.script = lambda *request: next(headers, None) or accept(*request)
            self.assertEqual("ran", c.act("acme.x", {}, lambda permit: "ran"))
            self.assertEqual(
                ["1", None], [h.get("X-Request-Approval") for _, p, _, h in service.requests if p.endswith("s")]
            )
        service.close()

    def test_a_403_of_a_proxy_is_no_answer_about_the_scope(self) -> None:
        service = FakeService(lambda method, path, body: (403, {}, b"<html>"))
        with Client(**service.settings(), retry=FAST) as c:
            with self.assertRaisesRegex(NotDecided, "403"):
                c.act("acme.x", {}, lambda permit: self.fail("it ran"))
            self.assertEqual(["1"], [headers.get("X-Request-Approval") for _, _, _, headers in service.requests])
        service.close()

    def test_nothing_is_signed_for_arguments_that_json_does_not_have(self) -> None:
        service = FakeService(accept)
        with Client(**service.settings()) as c:
            for payload in ({"a": float("nan")}, {"a": (1,)}, {"phase": "result"}, {"salt": 1}, {"input_digest": ""},
                            {"$tagged": True}, {"a": 10**128 + 1}, {"a": Decimal("NaN")}, {"a": Decimal("1e10000")}):
                with self.subTest(payload), self.assertRaises(Malformed):
                    c.act("acme.x", payload, lambda permit: self.fail("it ran"))
        self.assertEqual([], service.requests)
        service.close()


class AtMostOnce(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.service = FakeService(accept)
        self.addCleanup(self.service.close)

    def open(self) -> Client:
        return Client(**self.service.settings(), retry=FAST, journal=Journal(self.folder / "journal"))

    def results(self) -> list[dict[str, Any]]:
        """Return the payloads of the results that arrived, each event once."""
        lines = [x for _, path, body, _ in self.service.requests if path.endswith("/batch") for x in body.splitlines()]
        events = {e["event_id"]: e["payload"] for e in map(json.loads, lines)}
        return [payload for payload in events.values() if payload.get("phase") == "result"]

    def test_an_interrupted_act_is_not_repeated_and_is_unknown(self) -> None:
        program = f"""
import os, sys
sys.path.insert(0, {str(HERE.parent / 'src')!r})
from agentledger import Client, Journal
c = Client(**{self.service.settings()!r}, journal=Journal({str(self.folder / 'journal')!r}))
c.act("acme.x", {{"a": 1}}, lambda permit: os._exit(9), key="k")
"""
        self.assertEqual(9, subprocess.run([sys.executable, "-c", program]).returncode)
        with self.open() as c:
            for _ in range(2):
                with self.assertRaises(OutcomeUnknown):
                    c.act("acme.x", {"a": 1}, lambda permit: self.fail("it ran again"), key="k")
            c.flush()
        self.assertEqual(["unknown"], [r["status"] for r in self.results()])

    def test_resume_reports_interrupted_acts(self) -> None:
        class Killed(BaseException):
            pass

        def die(permit: Any) -> Any:
            raise Killed

        with self.open() as c, self.assertRaises(Killed):
            c.act("acme.x", {}, die, key="k")
        with self.open() as c:
            self.assertEqual(1, c.resume())
            c.flush()
            self.assertEqual(0, c.resume())
        self.assertEqual(["unknown"], [r["status"] for r in self.results()])

    def test_a_done_act_succeeds_even_if_its_end_cannot_be_written(self) -> None:
        calls = iter(range(100))

        def fill_after_two(new: Any, name: Any) -> None:
            if next(calls) >= 2:
                raise OSError(28, "No space left on device")
            pathlib.Path(new).rename(name)

        with self.open() as c:
            with mock.patch("agentledger._journal.os.replace", side_effect=fill_after_two):
                self.assertEqual("ran", c.act("acme.x", {}, lambda permit: "ran", key="k"))
                c.flush()
        self.assertEqual(["ok"], [r["status"] for r in self.results()])
        with self.open() as c, self.assertRaises(OutcomeUnknown):
            c.act("acme.x", {}, lambda permit: self.fail("it ran again"), key="k")

    def test_an_idempotent_act_may_run_again(self) -> None:
        class Killed(BaseException):
            pass

        def die(permit: Any) -> Any:
            raise Killed

        with self.open() as c:
            with self.assertRaises(Killed):
                c.act("acme.x", {}, die, key="k", options=Options(idempotent=True))
        with self.open() as c:
            self.assertEqual("ran", c.act("acme.x", {}, lambda p: "ran", key="k", options=Options(idempotent=True)))

    def test_results_and_failures_are_remembered(self) -> None:
        def fail(permit: Any) -> Any:
            raise RuntimeError("broken")

        with self.open() as c:
            self.assertEqual({"n": 1}, c.act("acme.x", {}, lambda permit: {"n": 1}, key="good"))
            with self.assertRaisesRegex(RuntimeError, "broken"):
                c.act("acme.x", {}, fail, key="bad")
        with self.open() as c:
            self.assertEqual({"n": 1}, c.act("acme.x", {}, fail, key="good"))
            with self.assertRaises(FailedBefore):
                c.act("acme.x", {}, fail, key="bad")
            with self.assertRaises(KeyReused):
                c.act("acme.x", {"other": 1}, fail, key="good")
        self.assertEqual(["error", "ok"], sorted(r["status"] for r in self.results()))

    def test_a_full_disk_prevents_the_act(self) -> None:
        with self.open() as c:
            with mock.patch("agentledger._journal.os.fsync", side_effect=OSError(28, "No space left on device")):
                with self.assertRaises((OSError, LedgerError)):
                    c.act("acme.x", {}, lambda permit: self.fail("it ran"), key="k")
            self.assertEqual("ran", c.act("acme.x", {}, lambda permit: "ran", key="k"))

    def test_a_second_call_of_a_key_gets_the_output_of_the_first(self) -> None:
        """The second call waits for the first, in the same client and in another one with the same journal."""
        with Journal(self.folder / "journal") as journal:
            first = Client(**self.service.settings(), journal=journal)
            for other in (first, Client(**self.service.settings(), journal=journal)):
                key = f"key of {id(other)}"
                entered, leave, outputs = threading.Event(), threading.Event(), list[Any]()

                def hold(permit: Any) -> dict[str, int]:
                    entered.set()
                    leave.wait(30)
                    return {"ran": 1}

                def call(c: Client, act: Any) -> None:
                    outputs.append(c.act("acme.x", {}, act, key=key))

                calls = [threading.Thread(target=call, args=(first, hold))]
                calls[0].start()
                self.assertTrue(entered.wait(30))
                calls += [threading.Thread(target=call, args=(c, self.fail)) for c in (other, first)]
                for more in calls[1:]:
                    more.start()
                while len(journal._turns[key]) < 3 and all(c.is_alive() for c in calls):
                    self.assertEqual([], outputs)
                leave.set()
                for each in calls:
                    each.join(30)
                self.assertEqual([{"ran": 1}] * 3, outputs)
                self.assertEqual({}, journal._turns)
                first.flush()
                other.flush()

    def test_a_second_call_of_a_key_with_asyncio(self) -> None:
        async def use() -> None:
            async with AsyncClient(**self.service.settings()) as c:
                entered, leave = asyncio.Event(), asyncio.Event()

                async def hold(permit: Any) -> str:
                    entered.set()
                    await leave.wait()
                    return "ran"

                first = asyncio.create_task(c.act("acme.x", {}, hold, key="k"))
                await entered.wait()
                gone, second = (asyncio.create_task(c.act("acme.x", {}, self.fail, key="k")) for _ in range(2))
                while len(c._journal._turns["k"]) < 3:
                    await asyncio.sleep(0)
                gone.cancel()
                leave.set()
                self.assertEqual(["ran", "ran"], [await first, await second])
                self.assertEqual({}, c._journal._turns)

        asyncio.run(asyncio.wait_for(use(), 60))

    def test_a_second_call_after_a_failure_or_a_cancelled_first_one(self) -> None:
        async def use() -> None:
            async with AsyncClient(**self.service.settings()) as c:
                entered = asyncio.Event()

                async def hold(permit: Any) -> None:
                    entered.set()
                    await asyncio.Event().wait()

                first = asyncio.create_task(c.act("acme.x", {}, hold, key="k"))
                await entered.wait()
                second = asyncio.create_task(c.act("acme.x", {}, self.fail, key="k"))
                first.cancel()
                with self.assertRaises(OutcomeUnknown):
                    await second

        asyncio.run(asyncio.wait_for(use(), 60))

    def test_an_act_cannot_wait_for_itself(self) -> None:
        with self.open() as c, self.assertRaisesRegex(NotAsked, "this call is a part of it"):
            c.act("acme.x", {}, lambda permit: c.act("acme.x", {}, self.fail, key="k"), key="k")

    def test_one_process_has_the_journal(self) -> None:
        with self.open(), self.assertRaises(NotAsked):
            Journal(self.folder / "journal")


class Results(unittest.TestCase):
    def test_a_result_names_its_intent_and_shows_what_is_asked_for(self) -> None:
        service = FakeService(accept)
        with Client(**service.settings()) as c:
            options = Options(digest=True, shown=("amount_usd",), record_output=True)
            c.act("acme.pay", {"amount_usd": 5, "name": "Ann"}, lambda permit: {"paid": True}, options=options)
            c.flush()
        intent = json.loads(next(body for _, path, body, _ in service.requests if path.endswith("/events")))
        result = json.loads(next(body for _, path, body, _ in service.requests if path.endswith("/batch")))
        headers = next(headers for _, path, _, headers in service.requests if path.endswith("/events"))
        self.assertEqual("1", headers["X-Request-Approval"])
        self.assertEqual({"amount_usd", "call_id", "input_digest", "phase", "salt"}, intent["payload"].keys())
        self.assertEqual(32, len(intent["payload"]["salt"]))
        self.assertEqual((intent["event_id"], intent["trace_id"]), (result["parent_event_id"], result["trace_id"]))
        self.assertEqual(intent["payload"]["call_id"], result["payload"]["call_id"])
        self.assertEqual(
            ("result", "ok", {"paid": True}), tuple(result["payload"][n] for n in ("phase", "status", "output"))
        )
        self.assertEqual(64, len(result["payload"]["output_digest"]))
        service.close()

    def test_numbers_that_a_double_cannot_hold_are_recorded_with_their_digits(self) -> None:
        arguments = {"id": 1915883588174806058, "o": {"$number": "5"}, "part": Decimal("0.12345678901234567"), "n": 2**53 + 2}
        exact = '{"id":1915883588174806058,"n":9007199254740994,"o":{"$number":"5"},"part":0.12345678901234567}'
        recorded = {
            "$tagged": True, "id": {"$number": "1915883588174806058"}, "n": 2**53 + 2, "o": {"$object": {"$number": "5"}},
            "part": {"$number": "0.12345678901234567"},
        }
        for options in (Options(), Options(digest=True, shown=("id",))):
            service = FakeService(accept)
            with Client(**service.settings()) as c:
                self.assertEqual(7, c.act("acme.ads.get", arguments, lambda permit: 7, options=options))
            intent = json.loads(next(body for _, path, body, _ in service.requests if path.endswith("/events")))
            payload = intent["payload"]
            want = {n: recorded[n] for n in ("$tagged", "id")} if options.digest else recorded
            self.assertEqual(want, {n: v for n, v in payload.items() if n not in ("call_id", "phase", "salt", "input_digest")})
            if options.digest:
                self.assertEqual(hashlib.sha256(exact.encode()).hexdigest(), payload["input_digest"])
            service.close()

    def test_results_keep_such_integers(self) -> None:
        service = FakeService(accept)
        with Client(**service.settings()) as c:
            for output in ({"id": 2**53 + 1}, {"part": Decimal("0.5")}):
                self.assertEqual(output, c.act("acme.ads.get", {}, lambda permit, o=output: o, options=Options(record_output=True)))
            c.flush()
        lines = [line for _, path, body, _ in service.requests if path.endswith("/batch") for line in body.splitlines()]
        exact, without = (json.loads(line)["payload"] for line in lines)
        self.assertEqual({"id": {"$number": "9007199254740993"}}, exact["output"])
        self.assertTrue(exact["$tagged"])
        self.assertEqual(hashlib.sha256(b'{"id":9007199254740993}').hexdigest(), exact["output_digest"])
        self.assertNotIn("output", without)
        service.close()

    def test_questions_have_such_numbers_in_recorded_form(self) -> None:
        service = FakeService(lambda method, path, body: answer(422, {"error": "seen"}))
        with Client(**service.settings()) as c:
            for ask in (c.evaluate, c.approvals.ask):
                with self.assertRaises(LedgerError):
                    ask("acme.ads.get", {"id": 2**53 + 1, "n": 1.5})
            with self.assertRaises(Malformed):
                c.evaluate("acme.ads.get", {"$tagged": True})
        self.assertEqual(2, len(service.requests))
        for _, _, body, _ in service.requests:
            self.assertEqual({"$tagged": True, "id": {"$number": "9007199254740993"}, "n": 1.5}, json.loads(body)["payload"])
        service.close()

    def test_the_caller_may_say_what_becomes_of_decimals(self) -> None:
        service = FakeService(accept)
        with Client(**service.settings()) as c:
            options = Options(convert=lambda path, value: str(value))
            c.act("acme.pay", {"amount": Decimal("0.10")}, lambda permit: None, options=options)
        intent = json.loads(next(body for _, path, body, _ in service.requests if path.endswith("/events")))
        self.assertEqual("0.10", intent["payload"]["amount"])
        service.close()


if __name__ == "__main__":
    unittest.main()
