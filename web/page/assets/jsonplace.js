// Finds the place of a member in a JSON text, and the place where a text is no JSON.

// A place is the characters of a text from begin on, up to end.
const token = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[{}[\],:]/y;
const space = /[ \t\r\n]*/y;

class Wrong extends Error {
  constructor(at) {
    super("not JSON");
    this.at = at;
  }
}

class Reader {
  constructor(text, path) {
    this.text = text;
    this.path = path;
    this.at = 0;
    this.best = null;
    this.depth = 0;
  }

  peek() {
    space.lastIndex = this.at;
    space.test(this.text);
    this.at = space.lastIndex;
    return this.text[this.at] ?? "";
  }

  take(kinds) {
    const first = this.peek();
    token.lastIndex = this.at;
    if (first === "" || !kinds.includes(kindOf(first)) || !token.test(this.text)) throw new Wrong(this.at);
    const begin = this.at;
    this.at = token.lastIndex;
    return { begin, end: this.at, text: this.text.slice(begin, this.at) };
  }

  // note keeps the place of a step on the way to the member.
  note(depth, place) {
    if (depth > this.depth) {
      this.depth = depth;
      this.best = { begin: place.begin, end: place.end };
    }
  }

  // value reads a value. depth is how many steps of the path lead to it, -1 for none.
  value(depth) {
    const start = this.take("{[\"0tfn");
    if (start.text === "{") this.within("}", (first) => {
      const name = this.take('"');
      this.take(":");
      return this.step(depth, JSON.parse(name.text), name);
    });
    if (start.text === "[") {
      let n = 0;
      this.within("]", () => {
        this.peek();
        return this.step(depth, String(n++), { begin: this.at, end: this.at + 1 });
      });
    }
  }

  within(close, member) {
    if (this.peek() === close) {
      this.take(close);
      return;
    }
    for (;;) {
      member();
      if (this.take("," + close).text === close) return;
    }
  }

  step(depth, name, place) {
    const on = depth >= 0 && this.path[depth] === name ? depth + 1 : -1;
    if (on > 0) this.note(on, place);
    this.value(on);
  }
}

function kindOf(first) {
  if (first === "-" || (first >= "0" && first <= "9")) return "0";
  return first;
}

/**
 * Returns the place of a member, or of the nearest value around it; null when its first step is not there. A text that
 * is no JSON has the place where that shows, with wrong set.
 */
export function findPlace(text, path) {
  const reader = new Reader(text, path);
  try {
    reader.value(0);
    if (reader.peek() !== "") throw new Wrong(reader.at);
  } catch (error) {
    if (!(error instanceof Wrong)) throw error;
    return { begin: error.at, end: Math.min(error.at + 1, text.length), wrong: true };
  }
  return reader.best;
}

/** Returns the steps of the member that a message begins with: rules[0].when, or Member "rules/0/when". */
export function placeOf(message) {
  const quoted = /^Member "([^"]*)"/.exec(message);
  if (quoted) return quoted[1].split("/");
  const member = /^([^ :]*)[ :]/.exec(message);
  return member ? member[1].replaceAll("]", "").split(/[.[]/) : [];
}

/** Returns the number of the line in which a character stands, from 1. */
export function lineAt(text, at) {
  return text.slice(0, at).split("\n").length;
}
