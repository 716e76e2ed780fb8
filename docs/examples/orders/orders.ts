// Declares orders and a contract, has them certified, and verifies the evidence with the receipts.
//
// usage: node orders.js ORDERS.ndjson CONTRACT FOLDER ROOTS.pem
// CONSTANCIA_URL and CONSTANCIA_KEY: the interface and a live key. Run it again after any failure: nothing is done twice.
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { Client } from "@constancia/client";

const [orders, contract, folder, trust] = process.argv.slice(2);
const receipts = join(folder, "receipts.ndjson");
const client = new Client({ baseUrl: process.env.CONSTANCIA_URL!, key: process.env.CONSTANCIA_KEY, receipts });

const declared = (await readFile(orders, "utf8")).trim().split("\n").map((line) => JSON.parse(line))
  .map((payload) => ({ clientRef: `order ${payload.number}`, payload }));
const events = [await client.registerFile(`contract of ${basename(orders)}`, contract)];
for await (const { event, error } of client.registerMany(declared)) {
  if (error) throw error;
  events.push(event);
}
const sequences = events.map((event) => event.sequence);
const [seq_from, seq_to] = [Math.min(...sequences), Math.max(...sequences)];
const asked = await client.certify({ seq_from, seq_to }, { idempotencyKey: `orders-${seq_from}-${seq_to}` });
const files = await client.save(await client.wait(asked), folder);
const [archive, ...parts] = files.filter((path) => path.endsWith(".zip"));
const check = await client.verifyArchive(archive, { receipts, trust, parts });
console.log(check.verdict, check.receipts.matched, "receipts", ...check.findings);
process.exitCode = check.verdict === "valid" ? 0 : 1;
