// Makes the key of an agent in this browser. The service gets the public key and its proof; the private key is shown
// here, after the service has registered the public one.

import { canMakeKeys, makeKey, prove } from "./edkey.js";
import { base, call } from "./passkey.js";
import { addLocalTimes } from "./times.js";

const form = document.getElementById("key-form");
const at = (id) => document.getElementById(id);

async function register() {
  const { call: path, organization, slug, agent = "" } = form.dataset;
  const filled = (name) => form.elements[name]?.value.trim() ?? "";
  const names = { organization, agent: agent || filled("agent_id"), keyId: filled("key_id") };
  const key = await makeKey();
  const body = { public_key_b64: key.publicKey, proof_b64: await prove(key, names) };
  if (names.keyId) body.key_id = names.keyId;
  if (!agent && names.agent) body.agent_id = names.agent;
  if (!agent && filled("display_name")) body.display_name = filled("display_name");
  const made = await call(base + path, body);
  return { seed: key.seed, organization, slug, agent: made.agent?.agent_id ?? agent, keyId: (made.key ?? made).key_id };
}

/** Shows the new key in the place of the form. */
function show({ seed, organization, slug, agent, keyId }) {
  at("made-agent").textContent = agent;
  at("made-id").textContent = keyId;
  at("made-private").textContent = seed;
  at("made-file").href = URL.createObjectURL(new Blob([seed + "\n"], { type: "application/octet-stream" }));
  at("made-program").textContent = [
    `export APS_URL='${location.origin}${base}'`,
    `export APS_ORG='${organization}'`,
    `export APS_SLUG='${slug}'`,
    `export APS_AGENT='${agent}'`,
    `export APS_KEY_ID='${keyId}'`,
    'export APS_KEY_FILE="$PWD/agent.key"',
  ].join("\n");
  at("made-page").href = `${base}/console/agents/${encodeURIComponent(agent)}`;
  at("new-key").hidden = true;
  at("made-key").hidden = false;
  at("made").focus();
}

addLocalTimes(document);
if (form && (await canMakeKeys())) {
  const place = at("make-key");
  const button = place.querySelector("button");
  place.hidden = false;
  button.addEventListener("click", async () => {
    button.disabled = true;
    at("key-outcome").textContent = "";
    try {
      show(await register());
    } catch (why) {
      at("key-outcome").textContent = why.message;
      button.disabled = false;
    }
  });
}
document.documentElement.dataset.done = "yes";
