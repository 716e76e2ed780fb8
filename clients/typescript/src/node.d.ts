// What is used of Node beyond what it shares with browsers, so that compiling needs nothing else.

declare module "node:crypto" {
  interface Hash {
    update(data: Uint8Array | string): Hash;
    digest(): Uint8Array;
    digest(encoding: "hex"): string;
  }
  export function createHash(algorithm: string): Hash;
  export function createHmac(algorithm: string, key: string): Hash;
  export function timingSafeEqual(one: Uint8Array, other: Uint8Array): boolean;
  export function randomUUID(): string;
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
  export function rm(path: string, options: { force: boolean }): Promise<void>;
  export function stat(path: string): Promise<Stats>;
  export function lstat(path: string): Promise<Stats>;
  export function mkdir(path: string, options: { recursive: boolean }): Promise<unknown>;
}

declare module "node:path" {
  export function basename(path: string): string;
  export function dirname(path: string): string;
  export function join(...parts: string[]): string;
}

declare module "node:timers/promises" {
  export function setTimeout(milliseconds: number, value?: undefined, options?: { signal?: AbortSignal }):
    Promise<void>;
}

declare const process: { version: string; platform: string; geteuid?(): number };
