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
  signNotice, verifyNotice, type AutoRechargeData, type BalanceLowData, type CertificationData,
  type ConsumptionLimitData, type Envelope, type EventSealedData, type KnownNotice, type Notice, type NoticeData,
  type NoticeHeaders, type NoticeOptions, type NoticeOptions as VerifyOptions, type UnknownNotice,
  type UnpaidLimitData,
} from "./webhooks.js";
export {
  verifyArchive, type ArchiveCheck, type ArchiveOptions, type Finding, type VerdictCode,
} from "./verify.js";
export {
  watchLog, type LogFinding, type LogState, type LogWatch, type WatchLogOptions, type WatchOptions,
} from "./watch.js";
export type { Certified } from "./archive.js";
export type { GivenReceipts } from "./given.js";
export type { components, operations, paths } from "./api.js";
