// WEBHOOK_SECRET=whsec_… node verify.mjs TIMESTAMP SIGNATURE < body
import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";

// timestamp and signature: the headers X-SVC-Timestamp and X-SVC-Signature; body: the raw bytes of
// the request (a Buffer), before any JSON parser has seen them.
export function verify(secret, timestamp, signature, body, tolerance = 300) {
  if (!/^\d+$/.test(timestamp) || Math.abs(Date.now() / 1000 - Number(timestamp)) > tolerance) {
    return false;
  }
  const expected = Buffer.from(
    "v1=" + createHmac("sha256", secret).update(timestamp + ".").update(body).digest("hex"));
  // After a rotation there are two signatures; one of them must be good.
  return signature.split(",").some((text) => {
    const given = Buffer.from(text.trim());
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

if (process.argv[1].endsWith("verify.mjs")) {
  const good = verify(process.env.WEBHOOK_SECRET, process.argv[2], process.argv[3], readFileSync(0));
  console.log(good ? "valid" : "invalid");
  process.exit(good ? 0 : 1);
}
