// Makes src/api.ts of the interface's description: npm run types. With --check it compares.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const description = fileURLToPath(new URL("../../../docs/openapi.yaml", import.meta.url));
const target = new URL("../src/api.ts", import.meta.url);
const digest = createHash("sha256").update(readFileSync(description)).digest("hex");
const types = execFileSync("openapi-typescript", [description], { encoding: "utf8" });
const made = `// Of docs/openapi.yaml, SHA-256 ${digest}\n${types}`;
if (!process.argv.includes("--check")) writeFileSync(target, made);
else if (readFileSync(target, "utf8") !== made) throw new Error("src/api.ts: npm run types");
