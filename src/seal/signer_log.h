/* The signing process's log, DIRECTORY/signer.log: all that was signed, and how far each store had
 * come, as a chain of hashes.
 *
 * A line is a JSON object, at most SIGNER_LOG_LINE_MAX bytes with its line feed:
 *   time      when it was written
 *   purpose   "report", "archive", "receipt" (of a purchase), "signers" (their list),
 *             "timestamp": something was
 *             signed; sha256 is the digest of the signed attributes, of a timestamp its imprint
 *             "ocsp": the development responder answered; sha256 is the digest of the ResponseData
 *             "round": a store was seen at this round; store, round, sha256: the round's root
 *             "rollback_accepted": the same, and from here on it counts although the store had been
 *             further; reason
 *             "torn_line": bytes behind the last line were cut off; sha256 is their digest
 *   previous  SHA-256 of the line before with its line feed, 64 zeros in the first line
 * Lines older than the chain have no `previous`; none may follow one that has. Each line is synced
 * before what it tells of is done. What a power cut left of a last line was therefore never acted
 * upon: what follows the last line, whatever bytes, line feeds too, is cut off when the log is
 * opened, and a line says so. More than SIGNER_LOG_LINE_MAX bytes of it are no last line.
 *
 * Not thread safe. Writing is for the signing process alone. */
#ifndef SEAL_SIGNER_LOG_H
#define SEAL_SIGNER_LOG_H

#include "base/buf.h"
#include "base/digest.h"
#include "base/error.h"

#define SIGNER_LOG_NAME "signer.log"
#define SIGNER_LOG_LINE_MAX 2048
#define SIGNER_LOG_REASON_MAX 200 /* bytes */

struct signer_log_entry {
	struct slice purpose;
	struct sha256 sha256;
	struct slice store; /* empty unless it is about one */
	int64_t round;
};
/* Not 0 ends the reading and is given back. */
typedef int signer_log_visit(void *context, const struct signer_log_entry *entry);

struct signer_log_facts {
	int64_t lines;
	int64_t size;       /* bytes up to and with the last whole line */
	int64_t torn_size;  /* bytes after it, at most SIGNER_LOG_LINE_MAX */
	struct sha256 torn; /* their digest */
	struct sha256 last; /* digest of the last line; zeros: there is none */
};

/* Reads the log of a directory from its start, while it may be written, and checks its chain;
 * `visit` may be NULL. ERR_CORRUPT with the number of the line in the cause; ERR_NOT_FOUND when
 * there is none; ERR_IO. */
int signer_log_check(const char *directory, signer_log_visit *visit, void *context,
                     struct signer_log_facts *ret_facts, struct error *error) MUST_CHECK;

struct signer_log {
	int file; /* -1: not open */
	int64_t size;
	struct sha256 last;
};

/* Opens or creates the log (mode 0600) for this process alone and reads it. What was read is made
 * durable before this returns: pages that an earlier process failed to sync look clean, and only
 * writing them again brings them to the disk. It stays open, and held, to the process's end.
 * ERR_UNAVAILABLE: another process holds it. ERR_CORRUPT, ERR_IO, ERR_NO_SPACE. */
int signer_log_open(const char *directory, signer_log_visit *visit, void *context,
                    struct signer_log *ret_log, struct error *error) MUST_CHECK;
/* Appends a line and syncs it. `reason` is NULL unless a rollback is accepted. ERR_NO_SPACE: the
 * disk is full; nothing was appended, and it may be tried again. ERR_IO: what the log holds is not
 * known any more, the process must end. */
int signer_log_add(struct signer_log *log, const struct signer_log_entry *entry,
                   struct slice reason, struct error *error) MUST_CHECK;

#endif
