// What is used of Node beyond what it shares with browsers, so that compiling needs nothing else.

declare module "node:crypto" {
  interface Hash {
    update(data: Uint8Array | string, encoding?: "hex"): Hash;
    digest(): Uint8Array;
    digest(encoding: "hex"): string;
  }
  export function createHash(algorithm: string): Hash;
  export function createHmac(algorithm: string, key: string): Hash;
  export function timingSafeEqual(one: Uint8Array, other: Uint8Array): boolean;
  export function randomUUID(): string;
  export class X509Certificate {
    constructor(der: Uint8Array);
    readonly publicKey: object;
  }
  export const constants: { RSA_PKCS1_PSS_PADDING: number; RSA_PSS_SALTLEN_AUTO: number };
  export function createPublicKey(key: { key: Uint8Array; format: "der"; type: "spki" }): object;
  export function verify(digest: string | null, data: Uint8Array,
                         key: { key: object; padding?: number; saltLength?: number },
                         signature: Uint8Array): boolean;
}

declare module "node:fs/promises" {
  interface Stats {
    size: number;
    ino: number;
    dev: number;
    nlink: number;
    uid: number;
    isFile(): boolean;
    isDirectory(): boolean;
  }
  export interface FileHandle {
    read(buffer: Uint8Array, offset: number, length: number, position: number):
      Promise<{ bytesRead: number }>;
    /** position null: where the file is, at its end for one that is opened to append. */
    write(buffer: Uint8Array, offset: number, length: number, position: number | null):
      Promise<{ bytesWritten: number }>;
    stat(): Promise<Stats>;
    truncate(length: number): Promise<void>;
    sync(): Promise<void>;
    close(): Promise<void>;
  }
  export const constants: { O_RDWR: number; O_NOFOLLOW?: number; O_NONBLOCK?: number };
  export function open(path: string, flags: string | number, mode?: number): Promise<FileHandle>;
  export function readdir(path: string): Promise<string[]>;
  export function rename(from: string, to: string): Promise<void>;
  export function rm(path: string, options: { force: boolean; recursive?: boolean }): Promise<void>;
  export function stat(path: string): Promise<Stats>;
  export function lstat(path: string): Promise<Stats>;
  export function mkdir(path: string, options: { recursive: boolean }): Promise<unknown>;
  export function mkdtemp(prefix: string): Promise<string>;
}

declare module "node:stream" {
  export class Readable {
    static from(pieces: AsyncIterable<Uint8Array>, options?: { objectMode?: boolean }): Readable;
    on(event: "error", listener: (error: Error) => void): this;
    pipe(to: object): object;
    destroy(error?: Error): void;
  }
}

declare module "node:zlib" {
  export function createInflateRaw(): AsyncIterable<Uint8Array> & {
    bytesWritten: number;
    destroy(error?: Error): void;
  };
  /** Of Node 20.15 and 22.2 on. */
  export const crc32: ((bytes: Uint8Array, before: number) => number) | undefined;
}

declare module "node:child_process" {
  interface Stream {
    on(event: "data", listener: (piece: Uint8Array) => void): void;
  }
  interface Child {
    stdout: Stream;
    stderr: Stream;
    on(event: "error", listener: (error: Error & { code?: string }) => void): void;
    on(event: "close", listener: (status: number | null) => void): void;
    kill(signal: string): void;
  }
  export function spawn(program: string, words: string[], options: {
    stdio: ["ignore", "pipe", "pipe"]; env: Record<string, string | undefined>;
  }): Child;
}

declare module "node:os" {
  export function tmpdir(): string;
}

declare module "node:path" {
  export function basename(path: string): string;
  export function dirname(path: string): string;
  export function join(...parts: string[]): string;
  export function resolve(...parts: string[]): string;
}

declare module "node:timers/promises" {
  export function setTimeout(milliseconds: number, value?: undefined, options?: { signal?: AbortSignal }):
    Promise<void>;
}

declare const process: {
  version: string; platform: string; env: Record<string, string | undefined>; geteuid?(): number;
};

declare const Buffer: {
  from(text: string, encoding: "base64" | "hex"): Uint8Array & { toString(encoding: "base64"): string };
  concat(parts: Uint8Array[]): Uint8Array;
};
