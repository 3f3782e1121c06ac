"""The clients against the real server: events, decisions, acts, runs and the public logs of two organizations."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import unittest
from typing import Any

import harness
from agentledger import (
    ApprovalDenied,
    ApprovalRequired,
    AsyncClient,
    Client,
    Denied,
    NotDecided,
    Options,
    Refused,
    Retry,
    Signer,
    Unproved,
)
from agentledger.verify import Outcome

server: harness.Server


def setUpModule() -> None:
    global server
    server = harness.Server()
    for organization in (server.acme, server.boole):
        server.sign_in(organization).activate(harness.POLICY)


def tearDownModule() -> None:
    server.close()


def client(organization: harness.Organization | None = None, **more: Any) -> Client:
    return Client(**(organization or server.acme).settings(server.url), **more)


class Events(unittest.TestCase):
    def test_an_event_is_stored_once_and_proved(self) -> None:
        for organization in (server.acme, server.boole):
            with client(organization) as c:
                signed = c.sign({"action_kind": "llm_invocation", "payload": {"cost": 10.0, "name": "ö"}})
                first, again = c.send(signed), c.send(signed)
                self.assertEqual(("created", "replayed"), (first.status, again.status))
                result = c.log(organization.slug, organization.log_key).bundle(signed.event_id)
                self.assertEqual(Outcome.PROVED, result.outcome, result.reason)
                self.assertIn("proved, as far as checked above", str(result))

    def test_another_organization_accepts_and_proves_nothing(self) -> None:
        with client(server.acme) as acme, client(server.boole) as boole:
            with self.assertRaises(Refused) as refused:
                boole.send(acme.sign({"action_kind": "llm_invocation"}))
            self.assertEqual(403, refused.exception.status)
            stored = acme.send({"action_kind": "llm_invocation"})
            with self.assertRaises(Refused):
                boole.log("boole", server.boole.log_key).bundle(stored.event_id)
            wrong = boole.log("acme", server.boole.log_key).bundle(stored.event_id)
            self.assertIn(wrong.outcome, (Outcome.WRONG, Outcome.CANT_TELL))

    def test_many_threads_share_batches_and_keep_order(self) -> None:
        with client() as c:
            trace = "trc_order"
            stored: list[list[int]] = [[] for _ in range(8)]

            def work(number: int) -> None:
                for i in range(10):
                    answer = c.send({"action_kind": "tool_call", "trace_id": f"{trace}_{number}", "payload": {"i": i}})
                    stored[number].append(answer.sequence_num or 0)

            threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            for numbers in stored:
                self.assertEqual(10, len(numbers))
                self.assertEqual(sorted(numbers), numbers)

    def test_send_all_returns_each_outcome_in_order(self) -> None:
        with client() as c:
            events = [c.sign({"action_kind": "tool_call", "payload": {"i": i}}) for i in range(5)]
            bad = Signer(server.acme.org, server.acme.agent, "key_unknown", b"\1" * 32).sign(
                {"action_kind": "tool_call"}
            )
            outcomes = c.send_all([*events, bad, events[0]])
            self.assertEqual(["Stored"] * 5 + ["Refused", "Stored"], [type(o).__name__ for o in outcomes])
            self.assertEqual("replayed", getattr(outcomes[6], "status"))

    def test_queued_events_arrive_and_rejected_ones_are_reported(self) -> None:
        c = client()
        signed = [c.queue({"action_kind": "tool_call", "payload": {"i": i}}) for i in range(20)]
        bad = Signer(server.acme.org, server.acme.agent, "key_unknown", b"\1" * 32).sign({"action_kind": "tool_call"})
        c.queue(bad)
        self.assertEqual([bad.event_id], [event.event_id for event, _ in c.flush()])
        self.assertEqual(["replayed"] * 20, [c.send(event).status for event in signed])
        self.assertEqual([], c.close())


class Decisions(unittest.TestCase):
    def test_evaluate(self) -> None:
        with client() as c:
            self.assertEqual("deny", c.evaluate("acme.customers.delete").decision)
            self.assertEqual("allow", c.evaluate("acme.orders.read", {"order": 1}).decision)
            self.assertEqual("allow_with_obligation", c.evaluate("acme.payments.refund").decision)

    def test_an_allowed_act_runs_once_and_its_result_is_not_judged(self) -> None:
        with client() as c:
            ran: list[int] = []

            @c.guard("acme.orders.read", key=lambda payload: f"order-{payload['order']}")
            def read(order: int, note: str = "none") -> dict[str, Any]:
                ran.append(order)
                return {"order": order, "note": note}

            self.assertEqual({"order": 7, "note": "none"}, read(7))
            self.assertEqual({"order": 7, "note": "none"}, read(7))
            self.assertEqual([7], ran)
            self.assertEqual([], c.flush())

    def test_a_denied_act_does_not_run(self) -> None:
        with client() as c:
            with self.assertRaises(Denied) as denied:
                c.act("acme.customers.delete", {"customer": 1}, lambda permit: self.fail("it ran"))
            self.assertIn("Not the agent's business", str(denied.exception))

    def test_an_approved_act_runs_with_its_grant(self) -> None:
        person = server.sign_in(server.acme)
        with client() as c:
            options = Options(on_ask=lambda approval: person.vote(approval, "approve"))
            grants: list[str] = []

            def refund(permit: Any) -> str:
                grants.append(permit.grant)
                return "done"

            self.assertEqual("done", c.act("acme.payments.refund", {"amount_usd": 5}, refund, options=options))
            self.assertTrue(grants[0].startswith("agentledger/grant/v1\n"))
            self.assertEqual([], c.flush())

    def test_a_waiting_act_names_the_page_where_people_vote(self) -> None:
        person = server.sign_in(server.acme)

        class Voter(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                person.vote(c.approvals.get(record.getMessage().rpartition("/")[2]), "approve")

        with client() as c, self.assertLogs("agentledger", "WARNING") as logged:
            logging.getLogger("agentledger").addHandler(Voter())
            self.assertEqual("done", c.act("acme.payments.refund", {"amount_usd": 5.25}, lambda p: "done"))
            self.assertEqual([], c.flush())
        told = logged.records[0].getMessage()
        page = c.approvals.page_url(told.rpartition("/")[2])
        self.assertEqual(f"an act waits for an approver: {page}", told)

    def test_a_denial_has_its_comment(self) -> None:
        person = server.sign_in(server.boole)
        with client(server.boole) as c:
            options = Options(on_ask=lambda a: person.vote(a, "deny", comment="Too much", reason_code="too_much"))
            with self.assertRaises(ApprovalDenied) as denied:
                c.act("acme.payments.refund", {"amount_usd": 5}, lambda permit: self.fail("it ran"), options=options)
            self.assertEqual(("Too much", "too_much"), (denied.exception.comment, denied.exception.code))
            self.assertEqual([], c.flush())

    def test_without_waiting_the_same_question_is_found_again(self) -> None:
        person = server.sign_in(server.acme)
        with client() as c:
            act = lambda: c.act(
                "acme.payments.refund", {"amount_usd": 6}, lambda p: "done", key="r-6", options=Options(wait=0)
            )
            asked = []
            for _ in range(2):
                with self.assertRaises(ApprovalRequired) as required:
                    act()
                asked.append(required.exception.approval)
            self.assertEqual(asked[0].approval_id, asked[1].approval_id)
            person.vote(asked[0], "approve")
            self.assertEqual("done", act())

    def test_approvals_by_hand(self) -> None:
        person = server.sign_in(server.acme)
        with client() as c:
            asked = c.approvals.ask("acme.payments.refund", {"amount_usd": 8})
            with self.assertRaises(ApprovalRequired):
                c.approvals.wait(asked.approval_id, timeout=0)
            person.vote(asked, "approve")
            self.assertEqual("approved", c.approvals.wait(asked.approval_id, timeout=30).status)
            grant = c.approvals.consume(asked)
            self.assertEqual(grant, c.approvals.consume(asked))
            other = c.approvals.ask("acme.payments.refund", {"amount_usd": 9})
            c.approvals.cancel(other.approval_id)
            self.assertEqual("cancelled", c.approvals.get(other.approval_id).status)


class Runs(unittest.TestCase):
    def test_a_run_without_a_key(self) -> None:
        c = Client(url=server.url, token=server.acme.token)
        run = c.runs.start("nightly", "exec-1", planned_steps=2)
        self.assertEqual((run.run_id, True), (c.runs.start("nightly", "exec-1", planned_steps=2).run_id, True))
        self.assertTrue(c.runs.step(run.run_id, "read", "started", tool_name="acme.orders.read").may_go_on)
        denied = c.runs.step(run.run_id, "delete", "started", tool_name="acme.customers.delete")
        self.assertEqual(("deny", False), (denied.decision, denied.may_go_on))
        self.assertEqual(0, c.runs.complete(run.run_id, "succeeded")["gap"])
        c.close()


class PublicLog(unittest.TestCase):
    def test_heads_and_proofs(self) -> None:
        with client() as c:
            log = c.log("acme", server.acme.log_key)
            old = log.checkpoint()
            stored = c.send({"action_kind": "tool_call"})
            new = log.head()
            self.assertGreater(new.checkpoint.size, old.checkpoint.size)
            log.consistency(old.checkpoint, new.checkpoint)
            index = (stored.sequence_num or 0) - 1
            log.inclusion(index, bytes.fromhex(stored.event_hash or ""), new.checkpoint)
            with self.assertRaises(Unproved):
                log.inclusion(index, bytes(32), new.checkpoint)
            with self.assertRaises(Unproved):
                c.log("boole", server.acme.log_key).head()

    def test_follow(self) -> None:
        with client() as c:
            first = c.log("acme", server.acme.log_key).follow()
            c.send({"action_kind": "tool_call"})
            memory = json.loads(json.dumps(first.memory))
            log = c.log("acme", server.acme.log_key)
            second = log.follow(memory)
            self.assertGreater(second.head.checkpoint.size, first.head.checkpoint.size)
            self.assertEqual(((), []), (second.new_keys, second.memory["accepted_keys"]))
            self.assertEqual(second.head.checkpoint, log.head().checkpoint)
            for wrong in ({"checkpoint": "x"}, {"accepted_keys": [{}]}, {"checkpoint": first.memory["checkpoint"][:-9] + "AAAAAAA=\n"}):
                with self.assertRaises(Unproved):
                    c.log("acme", server.acme.log_key).follow({**memory, **wrong})
            with self.assertRaises(Unproved):
                c.log("boole", server.acme.log_key).follow()


class Asyncio(unittest.IsolatedAsyncioTestCase):
    async def test_events_acts_and_proofs(self) -> None:
        person = server.sign_in(server.boole)
        async with AsyncClient(**server.boole.settings(server.url)) as c:
            stored = await asyncio.gather(
                *(c.send({"action_kind": "tool_call", "payload": {"i": i}}) for i in range(30))
            )
            self.assertEqual(30, len({answer.sequence_num for answer in stored}))
            result = await c.log("boole", server.boole.log_key).bundle(stored[0].event_id)
            self.assertEqual(Outcome.PROVED, result.outcome, result.reason)
            log = c.log("boole", server.boole.log_key)
            followed = await log.follow((await log.follow()).memory)
            self.assertGreaterEqual(followed.head.checkpoint.size, 30)
            options = Options(on_ask=lambda approval: person.vote(approval, "approve"))

            @c.guard("acme.payments.refund", options=options)
            async def refund(amount_usd: int) -> str:
                await asyncio.sleep(0)
                return f"{amount_usd} back"

            self.assertEqual("3 back", await refund(3))
            with self.assertRaises(Denied):
                await c.act("acme.customers.read", {}, lambda permit: self.fail("it ran"))
            self.assertEqual("allow", (await c.evaluate("acme.orders.read")).decision)
            self.assertEqual([], await c.flush())


class Stopped(unittest.TestCase):
    def test_a_server_that_is_down_decides_nothing_and_the_queue_waits(self) -> None:
        retry = Retry(attempts=2, base=0.01, most=0.02)
        with client(retry=retry) as c:
            server.stop()
            try:
                key = "down-1"
                for _ in range(2):
                    with self.assertRaises(NotDecided):
                        c.act("acme.orders.read", {}, lambda permit: self.fail("it ran"), key=key)
                c.queue({"action_kind": "tool_call"})
            finally:
                server.start()
            self.assertEqual([], c.flush(60))
            self.assertEqual("ran", c.act("acme.orders.read", {}, lambda permit: "ran", key=key))


if __name__ == "__main__":
    unittest.main()
