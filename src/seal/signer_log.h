/* The signing process's log, DIRECTORY/signer.log: all signatures, and the last sealed round of
 * each store, as a hash chain.
 *
 * Each line is a JSON object of at most SIGNER_LOG_LINE_MAX bytes including its line feed:
 *   time      when the line was written
 *   purpose   "report", "archive", "signers" (list of signers): a signature; sha256 is the digest
 *             of the signed attributes
 *             "timestamp": a timestamp; sha256 is its imprint
 *             "not_signed": the key failed, so the latest signature or timestamp with this sha256
 *             was not made
 *             "ocsp": a response of the development responder; sha256 is the digest of the
 *             ResponseData
 *             "key_taken", "key_laid_down": a key became active or inactive; sha256 is the digest
 *             of its certificate
 *             "round": a store was seen at a round; store, round, and sha256: the round's root
 *             "rollback_accepted": the same, valid from here on although the store had been
 *             further; reason
 *             "torn_line": bytes after the last line were cut off; sha256 is their digest
 *   previous  SHA-256 of the previous line with its line feed; 64 zeros in the first line
 * Lines written before the chain was introduced have no `previous`; none may follow a line that has
 * one. Each line is synced before the action that it records takes effect. A partial last line left
 * by a power failure therefore belongs to no completed action. Any bytes after the last line,
 * including line feeds, are cut off when the log is opened, and a line records it. More than
 * SIGNER_LOG_LINE_MAX such bytes are an error.
 *
 * Not thread safe. Only the signing process may write. */
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
	struct slice store; /* empty unless the line is about a store */
	int64_t round;
};
/* A result other than 0 stops the reading and is returned. */
typedef int signer_log_visit(void *context, const struct signer_log_entry *entry);

struct signer_log_facts {
	int64_t lines;
	int64_t size;       /* bytes up to the end of the last complete line */
	int64_t torn_size;  /* bytes after it, at most SIGNER_LOG_LINE_MAX */
	struct sha256 torn; /* their digest */
	struct sha256 last; /* digest of the last line; zeros: no line */
};

/* Reads the log of a directory from the start and checks its chain; the log may be written
 * meanwhile. `visit` may be NULL. ERR_CORRUPT with the line number in the cause; ERR_NOT_FOUND: no
 * log; ERR_IO. */
int signer_log_check(const char *directory, signer_log_visit *visit, void *context,
                     struct signer_log_facts *ret_facts, struct error *error) MUST_CHECK;

struct signer_log {
	int file; /* -1: not open */
	int64_t size;
	struct sha256 last;
};

/* Opens or creates the log (mode 0600), locks it for this process and reads it. Makes the content
 * durable before it returns: pages that an earlier process failed to sync may look clean, and only
 * writing them again brings them to the disk. The log stays open and locked until the process
 * exits. ERR_UNAVAILABLE: locked by another process. ERR_CORRUPT, ERR_IO, ERR_NO_SPACE. */
int signer_log_open(const char *directory, signer_log_visit *visit, void *context,
                    struct signer_log *ret_log, struct error *error) MUST_CHECK;
/* Appends a line and syncs it. `reason` is empty except for an accepted rollback. ERR_NO_SPACE: the
 * disk is full; nothing was appended and a retry is safe. ERR_IO: the content of the log is unknown
 * and the process must exit. */
int signer_log_add(struct signer_log *log, const struct signer_log_entry *entry,
                   struct slice reason, struct error *error) MUST_CHECK;

#endif
