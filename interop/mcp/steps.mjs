// The steps of each kind of server. Their answers do not depend on time.
import { ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

const call = (name, args, more = {}) => (client) => client.callTool({ name, arguments: args, ...more });

const features = "demo://resource/static/document/features.md";

const everything = () => [
  ["tools", (c) => c.listTools()],
  ["prompts", (c) => c.listPrompts()],
  ["resources", async (c) => (await c.listResources()).resources.length],
  ["templates", async (c) => (await c.listResourceTemplates()).resourceTemplates.map((t) => t.name)],
  ["resource", (c) => c.readResource({ uri: features })],
  ["unknown resource", (c) => c.readResource({ uri: "demo://resource/no-such" })],
  ["updated resource", async (c) => {
    const updated = new Promise((resolve) => c.setNotificationHandler(ResourceUpdatedNotificationSchema, (n) => resolve(n.params)));
    const answers = [await c.subscribeResource({ uri: features })];
    await c.callTool({ name: "toggle-subscriber-updates", arguments: {} });
    answers.push(await updated);
    await c.callTool({ name: "toggle-subscriber-updates", arguments: {} });
    return [...answers, await c.unsubscribeResource({ uri: features })];
  }],
  ["ping", (c) => c.ping()],
  ["level", (c) => c.setLoggingLevel("error")],
  ["echo", call("echo", { message: "héllo\n\u2028 \"quoted\"" })],
  ["sum", call("get-sum", { a: 1.5, b: 2e3 })],
  ["image", call("get-tiny-image", {})],
  ["structured", call("get-structured-content", { location: "New York" })],
  ["annotated", call("get-annotated-message", { messageType: "error", includeImage: true })],
  ["link", call("get-resource-links", { count: 2 })],
  ["sampling", call("trigger-sampling-request", { prompt: "p", maxTokens: 10 })],
  ["elicitation", call("trigger-elicitation-request", {})],
  ["roots", call("get-roots-list", {})],
  ["invalid", call("get-sum", { a: "x" })],
  ["unknown tool", call("no-such-tool", {})],
  ["meta", call("echo", { message: "m" }, { _meta: { "example.com/unknown": { deep: [1, 2] } } })],
  ["progress", async (c) => {
    const seen = [];
    const result = await c.callTool({ name: "trigger-long-running-operation", arguments: { duration: 1, steps: 4 } },
      undefined, { onprogress: (p) => seen.push(p) });
    return { seen: seen.slice(0, 3), result }; // the last one races with the result
  }],
  ["cancelled", async (c) => {
    const stop = new AbortController();
    setTimeout(() => stop.abort("enough"), 200);
    return c.callTool({ name: "trigger-long-running-operation", arguments: { duration: 30, steps: 3 } }, undefined,
      { signal: stop.signal });
  }],
  ["prompt", (c) => c.getPrompt({ name: "args-prompt", arguments: { city: "Berlin" } })],
  ["completion", (c) => c.complete({
    ref: { type: "ref/prompt", name: "completable-prompt" }, argument: { name: "department", value: "E" },
  })],
  ["64 at once", async (c) => {
    const all = await Promise.all(Array.from({ length: 64 }, (_, n) => c.callTool({ name: "echo", arguments: { message: `n${n}` } })));
    return all.map((r) => r.content[0].text);
  }],
];

const files = () => {
  const dir = process.env.MCP_FILES;
  return [
    ["tools", (c) => c.listTools()],
    ["write", call("write_file", { path: `${dir}/a.txt`, content: "one\ntwo\n" })],
    ["read", call("read_text_file", { path: `${dir}/a.txt` })],
    ["edit", call("edit_file", { path: `${dir}/a.txt`, edits: [{ oldText: "two", newText: "2" }], dryRun: false })],
    ["outside", call("read_text_file", { path: "/etc/hostname" })],
    ["list", call("list_directory", { path: dir })],
    ["move", call("move_file", { source: `${dir}/a.txt`, destination: `${dir}/b.txt` })],
    ["search", call("search_files", { path: dir, pattern: "*.txt" })],
  ];
};

const memory = () => [
  ["tools", (c) => c.listTools()],
  ["create", call("create_entities", { entities: [{ name: "Ada", entityType: "person", observations: ["wrote programs"] }] })],
  ["observe", call("add_observations", { observations: [{ entityName: "Ada", contents: ["lived in London"] }] })],
  ["graph", call("read_graph", {})],
  ["search", call("search_nodes", { query: "London" })],
  ["delete", call("delete_entities", { entityNames: ["Ada"] })],
  ["empty", call("read_graph", {})],
];

const thought = (n, more = {}) => call("sequentialthinking",
  { thought: `héllo ${n}`, thoughtNumber: n, totalThoughts: 2, nextThoughtNeeded: n < 2, ...more });

const thinking = () => [
  ["tools", (c) => c.listTools()],
  ["first", thought(1)],
  ["second", thought(2, { branchFromThought: 1, branchId: "b" })],
  ["invalid", thought("x")],
];

const own = () => [
  ["tools", (c) => c.listTools()],
  ["prompts", (c) => c.listPrompts()],
  ["resources", (c) => c.listResources()],
  ["prompt", (c) => c.getPrompt({ name: "greet", arguments: { name: "Ada" } })],
  ["resource", (c) => c.readResource({ uri: "own://note" })],
  ["add", call("add", { a: 1.5, b: 2e3 })],
  ["fail", call("fail", {})],
  ["invalid", call("add", { a: "x" })],
  ["unknown tool", call("no-such-tool", {})],
];

/** Returns the named steps of a kind of server. own is the server of this package, which uses mcp-go. */
export const steps = (kind) => ({ everything, files, memory, thinking, own })[kind]();
