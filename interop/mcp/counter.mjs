// An MCP server that writes each call into a file, synced, before it answers.
import { openSync, writeSync, fsyncSync } from "node:fs";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const file = openSync(process.argv[2], "a");
const server = new McpServer({ name: "counter", version: "1" });
server.registerTool("count", { inputSchema: { n: z.number() } }, async ({ n }) => {
  writeSync(file, `${n}\n`);
  fsyncSync(file);
  return { content: [{ type: "text", text: `counted ${n}` }] };
});
await server.connect(new StdioServerTransport());
