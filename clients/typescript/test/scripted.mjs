// A server that answers as a script has it.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";

import * as constancia from "@constancia/client";

export const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

export const say = (status, body = "", headers = {}) => (response) =>
  response.writeHead(status, { "Content-Length": Buffer.byteLength(body), ...headers }).end(body);
export const hangUp = (response) => response.socket.destroy();
/** Tells a length, and ends before, once what came was `taken`: what fetch has not handed on yet is
 * lost with the connection. */
export const cut = (body, length, { status = 200, headers = {}, taken = () => true } = {}) =>
  (response) => {
    response.writeHead(status, { "Content-Length": length, ...headers });
    response.write(body);
    const timer = setInterval(() => {
      if (!taken()) return;
      clearInterval(timer);
      response.socket.destroy();
    }, 20);
  };

/** Tells no length. */
export const chunked = (body, count = 1) => (response) => {
  response.writeHead(200, { "Transfer-Encoding": "chunked" });
  pipeline(Array.from({ length: count }, () => body), response).catch(() => undefined); // the client had enough
};

/** Answers each request with the next of `answers`. */
export async function script(use, ...answers) {
  return scriptWith({}, use, ...answers);
}

/** The same with more options of the client, which may need the folder. */
export async function scriptWith(more, use, ...answers) {
  const seen = [];
  const server = createServer((request, response) => {
    const pieces = [];
    request.on("data", (piece) => pieces.push(piece));
    request.on("end", () => {
      seen.push({ ...request.headers, url: request.url, body: Buffer.concat(pieces) });
      answers.shift()(response, request.headers, Buffer.concat(pieces));
    });
    request.on("error", () => undefined);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  const folder = await mkdtemp(join(tmpdir(), "constancia-"));
  const client = new constancia.Client({ baseUrl: url, key: "svc_test_key", userAgent: "shop/1",
                                         retry: { attempts: 4, patience: 9000 },
                                         ...(typeof more === "function" ? more(folder) : more) });
  try {
    await use({ client, url, seen, answers, folder });
    assert.equal(answers.length, 0);
  } finally {
    server.closeAllConnections?.();
    server.close();
    await rm(folder, { recursive: true });
  }
}
