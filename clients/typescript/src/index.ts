export type { Declaration, Registered } from "./batches.js";
export * from "./client.js";
export * from "./errors.js";
export { digest, type Algorithm, type Progress, type Source } from "./files.js";
export type { Attempt, CallOptions, Hooks, Retry } from "./http.js";
export type { Time } from "./json.js";
export {
  ReceiptFile, receiptFiles, type Receipt, type ReceiptFileOptions, type ReceiptSink,
} from "./receipts.js";
export {
  verifyNotice, type Notice, type NoticeHeaders, type VerifyOptions,
} from "./webhooks.js";
export type { components, operations, paths } from "./api.js";
