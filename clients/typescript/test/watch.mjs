// Watches the logs that standard input names, one JSON document a line, and says what was found.
import { createInterface } from "node:readline";

import { watchLog } from "@constancia/client";

for await (const line of createInterface({ input: process.stdin })) {
  const { url, ...options } = JSON.parse(line);
  let said;
  try {
    said = await watchLog(url, { ...options, retry: { attempts: 1 } });
  } catch (error) {
    said = { error: error.name, message: error.message };
  }
  console.log(JSON.stringify(said));
}
