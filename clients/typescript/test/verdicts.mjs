// Verifies the archives that standard input names, one JSON document a line, and says what was found.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

import { verifyArchive } from "@constancia/client";

for await (const line of createInterface({ input: process.stdin })) {
  const { archive, ...options } = JSON.parse(line);
  let said;
  try {
    const { verdict, code, findings, receipts, notChecked } = await verifyArchive(archive, options);
    said = { verdict, code, receipts, notChecked, findings: findings.slice(0, 5) };
  } catch (error) {
    said = { error: String(error.stack) };
  }
  const [, peak] = /VmHWM:\s*([0-9]+) kB/.exec(readFileSync("/proc/self/status", "utf8"));
  console.log(JSON.stringify({ ...said, peak_kb: Number(peak) }));
}
