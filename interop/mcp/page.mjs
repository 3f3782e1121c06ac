// A web page of an origin, which calls each tool "buy" that it sees and prints their names, or the status of a refusal.
// Arguments: the address of the gateway, and the origin ("" for none).
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [address, origin] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${process.env.MCP_TOKEN}`, ...(origin && { Origin: origin }) };
const client = new Client({ name: "page", version: "1" });
try {
  await client.connect(new StreamableHTTPClientTransport(new URL(address), { requestInit: { headers } }));
  const bought = [];
  let cursor;
  do {
    const page = await client.listTools({ cursor });
    for (const { name } of page.tools.filter((tool) => tool.name.endsWith("buy"))) {
      const result = await client.callTool({ name, arguments: { item: "tea" } });
      if (result.isError || result.content[0].text !== "sold tea") throw new Error(JSON.stringify(result));
      bought.push(name);
    }
    cursor = page.nextCursor;
  } while (cursor);
  console.log(JSON.stringify(bought));
} catch (error) {
  console.log(error.code ?? error.stack);
}
await client.close();
