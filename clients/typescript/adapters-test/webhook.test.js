// Deliveries to an endpoint are accepted by the reference library of Standard Webhooks, also while keys are rotated.

import assert from "node:assert/strict";
import http from "node:http";
import { after, test } from "node:test";
import { Webhook } from "standardwebhooks";
import { openDesk } from "./desk.js";

const desk = openDesk();
const arrived = [];
const receiver = http.createServer((request, response) => {
  let body = "";
  request.on("data", (part) => (body += part));
  request.on("end", () => {
    arrived.push({ headers: request.headers, body });
    response.end();
  });
});
after(() => receiver.close());

async function next() {
  for (let tries = 0; tries < 600; tries++) {
    if (arrived.length > 0) return arrived.shift();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return assert.fail("nothing was delivered");
}

test("the reference library accepts deliveries", async () => {
  await new Promise((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${receiver.address().port}/`;
  const made = await desk.ann.call("POST", "/webhooks", { url, events: ["approval.*"] });
  const delivery = async () => {
    await desk.ann.call("POST", `/webhooks/${made.endpoint_id}/test`, {});
    return next();
  };
  const first = await delivery();
  assert.equal(new Webhook(made.secret).verify(first.body, first.headers).type, "webhook.test");
  assert.throws(() => new Webhook(made.secret).verify(first.body + " ", first.headers));

  const rotated = await desk.ann.call("POST", `/webhooks/${made.endpoint_id}/rotate`, {});
  const during = await delivery();
  for (const secret of [made.secret, rotated.secret]) new Webhook(secret).verify(during.body, during.headers);

  const newest = await desk.ann.call("POST", `/webhooks/${made.endpoint_id}/rotate`, { overlap_hours: 0 });
  const later = await delivery();
  new Webhook(newest.secret).verify(later.body, later.headers);
  for (const secret of [made.secret, rotated.secret]) {
    assert.throws(() => new Webhook(secret).verify(later.body, later.headers));
  }
});
