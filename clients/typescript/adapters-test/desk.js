// What the examples share: a server with two organizations, and a log that is read back.

import assert from "node:assert/strict";
import { after, before } from "node:test";
import { Client } from "@agentledger/client";
import { Server } from "../test/harness.js";

/** Starts a server for a file of tests. Its members are set once tests run. */
export function openDesk() {
  const desk = {
    clientOf: (organization, more = {}) => new Client({ ...organization.client, ...more }),

    /** The calls of a tool in an organization's log: decision and phase of each event. */
    async calls(person, tool) {
      const events = (await person.call("GET", `/events?tool=${tool}&order=oldest`)).events;
      return Promise.all(events.map(async ({ event_id, effective }) => {
        const { envelope } = await person.call("GET", `/events/${event_id}`);
        const { phase, status } = JSON.parse(envelope).payload;
        return [phase, status, effective].filter(Boolean).join(" ");
      }));
    },

    /** Votes on the only pending approval. */
    async decide(person, vote, more) {
      for (let tries = 0; tries < 100; tries++) {
        const { approvals } = await person.call("GET", "/approvals?status=pending");
        if (approvals.length > 0) {
          const [{ approval_id: approvalId, action_digest: actionDigest }] = approvals;
          return person.vote({ approvalId, actionDigest }, vote, more);
        }
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      return assert.fail("nobody asked for approval");
    },
  };
  before(async () => {
    desk.server = await Server.start();
    desk.ann = await desk.server.signIn(desk.server.acme);
    desk.bob = await desk.server.signIn(desk.server.boole);
  });
  after(() => desk.server?.close());
  return desk;
}
