export * from "./client.js";
export * from "./errors.js";
export { digest, type Algorithm, type Progress, type Source } from "./files.js";
export type { Retry } from "./http.js";
export {
  verifyNotice, type Notice, type NoticeHeaders, type VerifyOptions,
} from "./webhooks.js";
export type { components, operations, paths } from "./api.js";
