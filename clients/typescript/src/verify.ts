// Verification of an evidence archive: here what can be computed, and by the program `constancia verify`,
// where it is there, what needs certificates.

import { spawn } from "node:child_process";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { Archive, type Certified, type Note } from "./archive.js";
import { Wrong } from "./asn1.js";
import type { Source } from "./files.js";
import { Receipts, type GivenReceipts } from "./given.js";
import type { CallOptions } from "./http.js";
import { rfc3339, type Time } from "./json.js";
import { Parts } from "./parts.js";
import { Bytes } from "./zip.js";

export interface ArchiveOptions extends CallOptions {
  /** Receipts that the archive has to agree with. Each of them: give those of its range. */
  receipts?: GivenReceipts;
  /** Certificates that you accept above the signer and the timestamp authorities, or their own: the path
   * of a PEM file, or PEM. Obtain them from the authorities, not from the service. */
  trust?: string;
  /** Paths of its content parts. */
  parts?: readonly string[];
  /** Accept signatures of these certificates alone, by their SHA-256. For the program. */
  signer?: readonly string[];
  /** Path of the service's signed list of its certificates (`signerList`). */
  signers?: string;
  /** As of this time instead of now. */
  at?: Time;
  /** Of the verifier, which checks signatures and certificates; false: it is not asked. By default
   * `constancia`, if there is one. */
  program?: string | false;
}

export interface Finding {
  /** One of docs/verify/findings.md; `client.*` are this client's own. */
  code: string;
  severity: "wrong" | "unchecked" | "unestablished" | "warning";
  where: string;
  what: string;
  /** Who found it. */
  by: "client" | "program";
}

/** As `constancia verify` has them. New ones may be added: `verdict` tells what they amount to. */
export type VerdictCode = "valid" | "not_valid" | "could_not_check" | "signer_not_established" |
  "authority_not_established" | "existence_only";

export interface ArchiveCheck {
  /** `valid`: all is intact, and signer and authorities lead to a certificate that you trust; never
   * without the program. `origin_not_established`: nothing is wrong, but something is open. */
  verdict: "valid" | "invalid" | "origin_not_established";
  code: VerdictCode;
  /** Why it is not valid: the first 1,000. */
  findings: Finding[];
  warnings: Finding[];
  /** `program`: who signed was judged by the program. `client`: only that the keys of the certificates
   * inside made the signatures and timestamps. Undefined: that neither. */
  signaturesBy?: "program" | "client";
  /** What was checked here, and what by the program. */
  checked: { client: string[]; program: string[] };
  /** Also what was not given, which does not change the verdict. */
  notChecked: string[];
  /** Undefined where something is wrong. */
  archive?: Certified;
  /** How many were given, and how many the archive agrees with. */
  receipts: { given: number; matched: number };
}

const HERE = ["the ZIP's shape and CRCs", "the SHA-256 of every file", "genesis and configurations",
  "the chain of events", "segments and their roots", "imprints and times of the timestamps",
  "the values of signatures and timestamps, by the certificates inside"];
const BY_PROGRAM = ["certificates of the signer and the timestamp authorities, up to the trusted ones",
  "revocation", "attributes of signatures and timestamps", "the list of signers in the archive"];
const PARTS = "content parts";
const LOG = "places of segments in the log, and that its checkpoints are of one history";
// What is never checked here, or was not given. The clients for other languages use the same words.
const LOG_SIGNATURES =
  "log: the signatures of the log and of its witnesses, which constancia verify --log-key checks";
const RECEIPTS_NOT_GIVEN = "receipts: not given";
const CONTENT_NOT_GIVEN = "content parts: not all given";
const REPORTS_NOT_GIVEN = "reports: not given"; // none can be: the program checks them
const ORDER: VerdictCode[] = ["not_valid", "could_not_check", "signer_not_established",
  "authority_not_established", "existence_only"];
const FINDINGS_MAX = 1000;
const OUTPUT_MAX = 64 << 20;

/** Verifies an archive. It does not need the service. Memory does not grow with the archive, but with
 * the receipts of its channel. Throws where the archive, or a file that is given with it, cannot be
 * read. */
export async function verifyArchive(archive: Source, options: ArchiveOptions = {}):
                                    Promise<ArchiveCheck> {
  options.signal?.throwIfAborted();
  const findings = new Findings();
  const note: Note = (code, severity, where, what) =>
    findings.add({ code, severity, where, what, by: "client" });
  const receipts = new Receipts(options.receipts, note);
  const parts = new Parts(options.parts ?? [], note);
  const bytes = await Bytes.of(archive);
  let certified: Certified | undefined;
  let program: Told = { codes: [], checked: [] };
  try {
    if (!await bytes.isZip()) {
      note("file.kind_unknown", "unchecked", "", "the file is no evidence archive, which is a ZIP file");
      return concluded(findings, program, receipts, options);
    }
    certified = await Archive.check(bytes, receipts, parts, note, options.signal);
    receipts.conclude();
    if (!findings.codes.has("not_valid")) {
      program = await askProgram(archive, bytes, certified, options, note);
    }
  } catch (error) {
    if (!(error instanceof Wrong)) throw error;
    note(error.code, "wrong", error.where, error.message);
    certified = undefined;
  } finally {
    await parts.close();
    await bytes.close();
  }
  return concluded(findings, program, receipts, options, certified);
}

function concluded(findings: Findings, program: Told, receipts: Receipts, options: ArchiveOptions,
                   certified?: Certified): ArchiveCheck {
  program.findings?.forEach((one) => findings.add(one));
  const code = worstOf([...findings.codes, ...program.codes]);
  const isWhole = !findings.warnings.some((one) => one.code === "part.not_given");
  const here = [...HERE, ...options.receipts ? ["receipts"] : []];
  if (certified?.hasLog) here.push(LOG);
  if (certified?.parts.length && isWhole) here.push(PARTS);
  return {
    verdict: code === "valid" ? "valid" : code === "not_valid" ? "invalid" : "origin_not_established",
    code, findings: findings.serious, warnings: findings.warnings,
    signaturesBy: program.checked.length ? "program" : certified && "client",
    checked: { client: certified ? here : [], program: program.checked },
    notChecked: [...certified ? [] : here, ...program.checked.length ? [] : BY_PROGRAM,
                 ...certified?.hasLog ? [LOG_SIGNATURES] : [],
                 ...options.receipts ? [] : [RECEIPTS_NOT_GIVEN], ...isWhole ? [] : [CONTENT_NOT_GIVEN],
                 REPORTS_NOT_GIVEN],
    archive: certified, receipts: receipts.counts,
  };
}

/** The first of them, and what all amount to. */
class Findings {
  readonly serious: Finding[] = [];
  readonly warnings: Finding[] = [];
  readonly codes = new Set<VerdictCode>();

  add(finding: Finding): void {
    const isWarning = finding.severity === "warning";
    const kept = isWarning ? this.warnings : this.serious;
    if (!isWarning) this.codes.add(codeOf(finding));
    if (kept.length >= FINDINGS_MAX) return;
    kept.push({ ...finding, where: printable(finding.where), what: printable(finding.what) });
  }
}

/** Parts of it are of the archive's maker, who may have more in mind than a text. */
function printable(text: string): string {
  return text.replace(/[\p{C}\u2028\u2029]/gu, (one) => `\\u{${one.codePointAt(0)?.toString(16)}}`);
}

function codeOf({ severity }: Finding): VerdictCode {
  return severity === "wrong" ? "not_valid"
    : severity === "unchecked" ? "could_not_check" : "authority_not_established";
}

function worstOf(codes: VerdictCode[]): VerdictCode {
  return ORDER.find((one) => codes.includes(one)) ?? (codes.includes("valid") ? "valid" : "could_not_check");
}

// ---- the program ----

/** What the program told. */
interface Told {
  codes: VerdictCode[];
  checked: string[];
  findings?: Finding[];
}

async function askProgram(archive: Source, bytes: Bytes, certified: Certified, options: ArchiveOptions,
                          note: Note): Promise<Told> {
  // Windows would look for it in the current folder, where anybody may have put one.
  const program = options.program ?? (process.platform === "win32" ? false : "constancia");
  const none = (why: string): Told => {
    note("client.signatures_not_checked", "unchecked", "",
         `certificates were not checked, as ${why}: who signed is not established`);
    return { codes: [], checked: [] };
  };
  if (program === false) return none("the program was not to be asked");
  const folder = await mkdtemp(join(tmpdir(), "constancia-verify-"));
  try {
    let path = typeof archive === "string" ? resolve(archive) : join(folder, "evidence.zip");
    if (typeof archive !== "string") await write(path, bytes.pieces());
    const words = ["verify", path, ...(options.parts ?? []).map((part) => resolve(part)), "--json",
                   "--config", ""];
    if (options.trust !== undefined) words.push("--trust", await trustFile(options.trust, folder));
    for (const one of options.signer ?? []) words.push("--signer", one);
    if (options.signers !== undefined) words.push("--signers", resolve(options.signers));
    if (options.at !== undefined) words.push("--at", rfc3339(options.at));
    const done = await run(program, words, options.signal);
    if (!done) return none(`there is no program ${program}`);
    return told(done, certified, none);
  } finally {
    await rm(folder, { force: true, recursive: true });
  }
}

function told({ status, output }: Done, certified: Certified, none: (why: string) => Told): Told {
  let result: any;
  try {
    result = JSON.parse(output);
  } catch {
    return none("the program could not do it");
  }
  const code = result?.verdict?.code;
  const agrees = [0, 1, 2].includes(status as number) && typeof code === "string"
    && (status === 0) === (code === "valid") && (status === 0) === (result.valid === true)
    && (status === 1) === (code === "not_valid");
  if (!agrees || !Array.isArray(result.findings)) return none("the program answered something else");
  const files = Array.isArray(result.files) ? result.files : [];
  if (status === 0 && !files.some((one: any) => one.kind === "archive" && one.sha256 === certified.sha256)) {
    return none("the program checked another file");
  }
  const found = [...result.findings, ...Array.isArray(result.warnings) ? result.warnings : []];
  const findings = found.map((one: any): Finding => ({
    code: String(one.code), where: String(one.where || one.path || ""), what: String(one.what), by: "program",
    severity: ["wrong", "unchecked", "unestablished"].includes(one.severity) ? one.severity : "warning",
  }));
  const known = [...ORDER, "valid" as const].find((one) => one === code) ?? "could_not_check";
  return { codes: [known], checked: BY_PROGRAM, findings };
}

async function trustFile(trust: string, folder: string): Promise<string> {
  if (!trust.includes("-----BEGIN ")) return resolve(trust);
  const path = join(folder, "trust.pem");
  await write(path, [new TextEncoder().encode(trust)]);
  return path;
}

async function write(path: string, pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    for await (const piece of pieces) {
      for (let done = 0; done < piece.length;) {
        done += (await file.write(piece, done, piece.length - done, null)).bytesWritten;
      }
    }
  } finally {
    await file.close();
  }
}

interface Done {
  status: number | null;
  output: string;
}

/** Undefined where there is no such program. */
function run(program: string, words: string[], signal?: AbortSignal): Promise<Done | undefined> {
  return new Promise((resolve_, reject) => {
    signal?.throwIfAborted();
    const child = spawn(program, words, { stdio: ["ignore", "pipe", "pipe"], env: process.env });
    const pieces: Uint8Array[] = [];
    let size = 0;
    const stop = () => child.kill("SIGKILL");
    signal?.addEventListener("abort", stop);
    child.stdout.on("data", (piece) => {
      pieces.push(piece);
      if ((size += piece.length) > OUTPUT_MAX) stop();
    });
    child.stderr.on("data", () => undefined);
    child.on("error", (error) => {
      signal?.removeEventListener("abort", stop);
      if (["ENOENT", "EACCES", "ENOEXEC"].includes(error.code ?? "")) resolve_(undefined);
      else reject(error);
    });
    child.on("close", (status) => {
      signal?.removeEventListener("abort", stop);
      if (signal?.aborted) reject(signal.reason);
      else resolve_({ status, output: new TextDecoder().decode(Buffer.concat(pieces)) });
    });
  });
}
