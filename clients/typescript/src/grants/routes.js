// Declared requests: "<METHOD> <path>", in which a segment {name} is a parameter, or "<METHOD> *".

import { LedgerError } from "../errors.js";

const maxRoutes = 1000;
const methodForm = /^[A-Z]{1,32}$/;
const literalForm = /^[A-Za-z0-9._~@-]+$/;
const nameForm = /^\{[A-Za-z_][A-Za-z0-9_]{0,63}\}$/;
const valueForm = /^([A-Za-z0-9._~:@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+$/;
const toolForm = /^[A-Za-z0-9_:/-]+(\.[A-Za-z0-9_:/-]+)*$/;

/** The members that a guard adds to a payload. No argument has such a name. */
export const reserved = ["phase", "call_id", "salt", "input_digest", "$tagged"];

/** Throws unless an object has no other members than these, and all of `types` have their type. */
function checkMembers(what, value, types) {
  if (value === null || typeof value !== "object") throw new LedgerError(`grants: ${what} must be an object`);
  for (const [name, member] of Object.entries(value)) {
    if (!Object.hasOwn(types, name)) throw new LedgerError(`grants: ${what}: the member ${JSON.stringify(name)} is not known`);
    const good = types[name] === "list" ? Array.isArray(member) : typeof member === types[name];
    if (!good && member !== undefined) throw new LedgerError(`grants: ${what}: ${name} has another type`);
  }
}

function parseRoute(text) {
  const fail = (why) => new LedgerError(`grants: route ${JSON.stringify(text)}: ${why}`);
  if (typeof text !== "string") throw fail("must be a text");
  const at = text.indexOf(" ");
  const [method, path] = at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
  if (!methodForm.test(method)) throw fail("must be a method, a space and a path");
  if (path === "*") return { method, segments: undefined };
  if (!path.startsWith("/")) throw fail("the path must be * or begin with /");
  const segments = path.slice(1).split("/");
  for (const [i, s] of path === "/" ? [] : segments.entries()) {
    if (nameForm.test(s)) {
      if (segments.indexOf(s) < i || reserved.includes(s.slice(1, -1))) throw fail(`the parameter ${s} is there twice or has a reserved name`);
    } else if (!literalForm.test(s) || s === "." || s === "..") {
      throw fail("a segment must be {name} or of letters, digits and ._~@-");
    }
  }
  return { method, segments };
}

/** Servers answer HEAD by the handler of GET. */
const asGet = (method) => (method === "HEAD" ? "GET" : method);

/**
 * Checks that nothing that is declared can be reached as an open request in another spelling. So a method with tools is
 * open only at paths without parameters.
 */
export function compileRoutes(config) {
  checkMembers("the configuration", config, { keys: "list", routes: "list", open: "list" });
  const { routes = [], open = [] } = config;
  if (routes.length === 0 || routes.length > maxRoutes || open.length > maxRoutes) {
    throw new LedgerError(`grants: routes: 1 to ${maxRoutes} are needed, and at most as many open ones`);
  }
  const compiled = routes.map((declared) => {
    checkMembers("a route", declared, { route: "string", tool: "string", host: "string", describe: "function", optional: "boolean" });
    const r = { ...declared, ...parseRoute(declared.route) };
    const fail = (why) => new LedgerError(`grants: route ${JSON.stringify(r.route)}: ${why}`);
    if (!r.tool === !r.host) throw fail("set either the tool or the host");
    if (r.tool && (r.tool.length > 256 || !toolForm.test(r.tool))) throw fail("not the name of a tool");
    if (r.host && r.describe) throw fail("a host goes without a description");
    if (r.tool && !r.segments && !r.describe) throw fail("a tool without a description needs a path");
    return r;
  });
  const guarded = new Set(compiled.map((r) => asGet(r.method)));
  const opened = open.map((text) => {
    const r = parseRoute(text);
    if (r.segments ? r.segments.some((s) => s.startsWith("{")) : guarded.has(asGet(r.method))) {
      throw new LedgerError(`grants: open route ${JSON.stringify(text)}: must be a path without parameters, or * for a method without tools`);
    }
    return r;
  });
  return { routes: compiled, open: opened };
}

/** Returns the first route of a request and the parameters of its path as [name, value], or undefined. */
export function matchRoute(routes, method, path) {
  const segments = path.slice(1).split("/");
  for (const route of routes) {
    if (route.method !== method) continue;
    const parameters = route.segments ? matchSegments(route.segments, segments) : [];
    if (parameters) return { route, parameters };
  }
  return undefined;
}

function matchSegments(wanted, segments) {
  if (wanted.length !== segments.length) return undefined;
  const parameters = [];
  for (const [i, want] of wanted.entries()) {
    if (!want.startsWith("{")) {
      if (want !== segments[i]) return undefined;
      continue;
    }
    const value = segmentValue(segments[i]);
    if (value === undefined) return undefined;
    parameters.push([want.slice(1, -1), value]);
  }
  return parameters;
}

/** Decodes a segment. Values that servers read in different ways are refused. */
function segmentValue(segment) {
  if (!valueForm.test(segment)) return undefined;
  let value;
  try {
    value = decodeURIComponent(segment);
  } catch {
    return undefined;
  }
  // eslint-disable-next-line no-control-regex
  return value === "." || value === ".." || /[/\\\u0000-\u001f\u007f]/.test(value) ? undefined : value;
}
