// Calls an MCP server through the official client and prints what it answers, one JSON value a line.
// Arguments: the kind of server (a name of steps.mjs), then the command of the server.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import {
  CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema, LoggingMessageNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { steps } from "./steps.mjs";

const [kind, command, ...args] = process.argv.slice(2);
const heard = [];
const client = new Client({ name: "caller", version: "1" },
  { capabilities: { sampling: {}, elicitation: {}, roots: { listChanged: true } } });
client.setRequestHandler(CreateMessageRequestSchema, async (request) => {
  heard.push(["sampling", request.params.messages]);
  return { model: "m", role: "assistant", content: { type: "text", text: "sampled" } };
});
client.setRequestHandler(ElicitRequestSchema, async (request) => {
  heard.push(["elicitation", request.params.message]);
  return { action: "decline" };
});
client.setRequestHandler(ListRootsRequestSchema, async () => ({ roots: [{ uri: "file:///tmp", name: "tmp" }] }));
client.setNotificationHandler(LoggingMessageNotificationSchema, () => {}); // comes by a clock

const transport = new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
await client.connect(transport);
const print = (name, value) => process.stdout.write(JSON.stringify([name, value]) + "\n");
print("capabilities", client.getServerCapabilities());
print("version", client.getServerVersion());
print("instructions", client.getInstructions() ?? null);
for (const [name, step] of steps(kind)) {
  try {
    print(name, await step(client));
  } catch (error) {
    print(name, { error: error.message, code: error.code ?? null });
  }
}
print("heard", heard);
await client.close();
