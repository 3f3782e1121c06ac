// Middleware that checks grants, for Express and Fastify. It needs Node's streams.

import { createPrivateKey, createPublicKey, sign } from "node:crypto";
import { Readable } from "node:stream";
import { base64, concat, utf8 } from "./bytes.js";
import { parseSeed } from "./client/signer.js";
import { LedgerError } from "./errors.js";
import { Checker, Refusal, maxBody, tooLarge, unread } from "./grants/check.js";
import { formatLogKey, parseLogKey } from "./log/note.js";
import { receiptText } from "./verify/receipt.js";

export { openReceipt } from "./verify/receipt.js";

/** Signs the receipts of a server. */
class ReceiptKey {
  #private;

  constructor({ name, key }) {
    const seed = parseSeed(key, "key of receipts");
    this.#private = createPrivateKey({ key: Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), seed]), format: "der", type: "pkcs8" });
    const raw = createPublicKey(this.#private).export({ format: "der", type: "spki" }).subarray(-32);
    this.verifier = parseLogKey(formatLogKey(name, new Uint8Array(raw)));
  }

  /** Returns base64 of the signed note. */
  note(receipt) {
    const text = receiptText(receipt);
    const signature = base64(concat(this.verifier.id, new Uint8Array(sign(null, utf8(text), this.#private))));
    return base64(utf8(`${text}\n\u2014 ${this.verifier.name} ${signature}\n`));
  }
}

/** Checks the grants of a server's requests. */
export class Grants {
  #checker;
  #now;
  #receipts;

  constructor(config, { now = Date.now, receipts, onBehalfOf } = {}) {
    this.#checker = new Checker(config, now, receipts !== undefined, onBehalfOf);
    this.#now = now;
    this.#receipts = receipts && new ReceiptKey(receipts);
  }

  /** The verifier key of the receipts, undefined without. */
  get receiptKey() {
    return this.#receipts?.verifier.text;
  }

  /**
   * Returns Express middleware, to be used before body parsers. A request with a grant has `grant`. If it was read, its `body` is
   * the object of the arguments, or a Buffer where the route has a host or a description.
   */
  express() {
    return (request, response, next) => {
      this.#permit(request, request, request).then(
        ({ grant, act, body, parsed }) => {
          if (act) this.#certify(response, act);
          if (act) Object.assign(request, { grant, body: parsed ?? body, _body: true });
          next();
        },
        (why) => {
          if (!(why instanceof Refusal)) return next(why);
          response.writeHead(why.status, why.headers).end(why.body);
        },
      );
    };
  }

  /** Returns Fastify's preParsing hook. A request with a grant has `grant`, and its body is parsed as usual. */
  fastify() {
    return async (request, reply, payload) => {
      try {
        const { grant, act, body } = await this.#permit(request.raw, payload, request);
        if (!act) return payload;
        this.#certify(reply.raw, act);
        request.grant = grant;
        const again = Readable.from(body.length > 0 ? [body] : [], { objectMode: false });
        again.receivedEncodedLength = body.length;
        return again;
      } catch (why) {
        if (!(why instanceof Refusal)) throw why;
        reply.code(why.status).headers(why.headers).send(why.body);
        return reply;
      }
    };
  }

  /** Adds the receipt to an answer, once its status is known. */
  #certify(response, act) {
    if (!this.#receipts) return;
    const write = response.writeHead;
    response.writeHead = (status, ...more) => {
      response.writeHead = write;
      if (status >= 200 && status <= 599) {
        response.setHeader("Agentledger-Receipt", this.#receipts.note({ ...act, status, at: this.#now() }));
      }
      return response.writeHead(status, ...more);
    };
  }

  #permit(raw, stream, request) {
    return this.#checker.check({
      method: raw.method,
      target: raw.originalUrl ?? raw.url,
      header: (name) => headerValue(raw.rawHeaders, name.toLowerCase()),
      read: () => readBody(raw, stream),
      request,
    });
  }
}

/** Returns all values of a header as one, so that a second one is never ignored. */
function headerValue(raw, name) {
  const values = [];
  for (let i = 0; i < raw.length; i += 2) if (raw[i].toLowerCase() === name) values.push(raw[i + 1]);
  return values.join(", ");
}

/**
 * Resolves to the body. Throws a Refusal as soon as it is too large. The rest is still read, to nowhere and within Node's time
 * for a request: if the connection closed at once, its reset would take the answer from a client that still writes.
 */
function readBody(raw, stream) {
  if (raw.body !== undefined || stream.readableDidRead) throw new LedgerError("grants must be checked before the body is parsed: put them first");
  if (Number(raw.headers["content-length"] ?? 0) > maxBody) throw tooLarge();
  return new Promise((resolve, reject) => {
    const parts = [];
    let size = 0;
    const end = (settle, value) => {
      stream.off("data", more).off("end", done).off("error", failed).off("close", failed);
      settle(value);
    };
    const more = (part) => {
      size += part.length;
      if (size <= maxBody) return void parts.push(part);
      end(reject, tooLarge());
    };
    const done = () => end(resolve, Buffer.concat(parts));
    const failed = () => end(reject, unread());
    stream.on("data", more).on("end", done).on("error", failed).on("close", failed);
  });
}
