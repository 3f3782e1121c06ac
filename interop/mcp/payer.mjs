// Pays the rent through a gateway and prints, one JSON value a line: the names of the tools, the answer to a theft, and for
// each call that pays its progress and its answer, until one does not wait for people.
// Arguments: how often to call, then the command of the gateway.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [calls, command, ...args] = process.argv.slice(2);
const client = new Client({ name: "payer", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" }));
const print = (value) => process.stdout.write(JSON.stringify(value) + "\n");
const tell = (kind, { isError = false, content, _meta }) =>
  print({ kind, isError, text: content[0].text, status: _meta?.["agentledger/call"]?.status ?? "" });

print({ kind: "tools", names: (await client.listTools()).tools.map((tool) => tool.name) });
tell("theft", await client.callTool({ name: "left__steal", arguments: { item: "rent" } }));
for (let n = 0; n < Number(calls); n++) {
  const result = await client.callTool({ name: "left__pay", arguments: { item: "rent" } }, undefined,
    { onprogress: ({ message }) => print({ kind: "progress", text: message }), resetTimeoutOnProgress: true });
  tell("payment", result);
  if (!result.isError) break;
}
await client.close();
