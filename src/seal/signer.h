/* The process that holds the keys.
 *
 * signer_start forks. The child loads (in development: first makes) the keys, opens its log, gives
 * up every system call but those that signing and logging need (base/confine.h), and answers typed
 * requests over a socket pair, one at a time, each at most SIGNER_BYTES_MAX bytes. Before it hands
 * out a signature it appends a line to DIRECTORY/signer.log and syncs it (signer_log.h); what it
 * cannot log it does not sign. When its log fails otherwise than for want of space, it ends. It
 * ends, too, when its parent does, or when the socket closes; it ignores SIGINT and SIGTERM, so
 * that a draining parent can still sign.
 *
 * In the same log it keeps how far each store had come, so that a store that went back is noticed
 * by something that did not go back with it.
 *
 * Start it from the main thread before other threads exist: the child dies with the thread that
 * forked it. All other functions may be called from any thread. */
#ifndef SEAL_SIGNER_H
#define SEAL_SIGNER_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/error.h"
#include "seal/key_source.h"
#include "seal/trust.h"

#define SIGNER_BYTES_MAX 32768

struct signer;

/* What a signature is for; goes into the log. */
enum signer_purpose { SIGNER_REPORT, SIGNER_ARCHIVE, SIGNER_RECEIPT, SIGNER_LIST };

/* The keys that it has. One of them is in force; it begins with the present one. */
enum { SIGNER_NO_KEY = -1, SIGNER_PRESENT, SIGNER_NEXT, SIGNER_KEYS };

struct signer_options {
	const char *directory; /* for the log, and the development keys; is created, mode 0700 */
	/* Makes what is missing and then loads it, each file mode 0600: for reports and for timestamps
	 * a root, a certificate with its key, and those of the root's OCSP responder (development.h).
	 */
	bool development;
	/* A real deployment: the key that signs reports and archives, and the one to come. */
	struct key_source key, next;
	int words;  /* above 0: open to write, its standard error */
	bool trial; /* signer_try's own */
};

/* 0 when the child answers; ERR_IO, ERR_PIN (seal/key.h), ERR_REFUSED with the cause: a key that
 * cannot be used, or is not fit (seal/key.h), or of which neither's time is now. */
int signer_start(const struct signer_options *options, struct signer **ret_signer,
                 struct error *error) MUST_CHECK;
/* Whether it would start with these keys, in a child that ends at once: nothing is made or logged.
 * Like signer_start; of what it gives, signer_get_key and signer_stop may be called. */
int signer_try(const struct signer_options *options, struct signer **ret_signer,
               struct error *error) MUST_CHECK;
/* Ends the child and frees. NULL-safe. */
void signer_stop(struct signer *signer);

/* Each answers ERR_REFUSED when the child declines, ERR_NO_SPACE when its log has no room, and
 * ERR_UNAVAILABLE once the child is gone. One that does not answer within SIGNER_TIMEOUT_S is
 * killed: what it might answer later belongs to nobody. The caller may then stop this signer and
 * start another, if it is in a state to fork. */
#define SIGNER_TIMEOUT_S 20

/* Signs with SHA-256 (ECDSA or RSA PKCS#1 v1.5, as the key is). The bytes must be the DER SET of
 * signed attributes that cms_create writes: content-type id-data, a SHA-256 message-digest, the
 * signing-certificate-v2 of the certificate in force, at most a signing-time besides. Appends the
 * signature value. ERR_UNAVAILABLE, too, when no key is in force, or another than the attributes
 * say, when a certificate of its path is not valid now, or what holds the key does not sign. */
int signer_sign(struct signer *signer, enum signer_purpose purpose, struct slice bytes,
                struct buf *out, struct error *error) MUST_CHECK;
/* Whether the key in force signs again, after it failed: by a trial signature, which is on no
 * record. ERR_UNAVAILABLE: it does not. */
int signer_probe(struct signer *signer, struct error *error) MUST_CHECK;
/* The embedded development timestamp authority: DER request in, DER response appended. */
int signer_timestamp(struct signer *signer, struct slice request, struct buf *out,
                     struct error *error) MUST_CHECK;

/* The development authorities' OCSP responder: DER request about one certificate in, DER response
 * appended. */
int signer_ocsp(struct signer *signer, struct slice request, struct buf *out, struct error *error)
	MUST_CHECK;

/* How far a store had come: its last sealed round; 0 with zeros: none. Stores are named by their
 * id, SIGNER_STORE_ID_SIZE hex digits; the log of a signing process remembers SIGNER_STORES_MAX of
 * them, the latest. */
#define SIGNER_STORE_ID_SIZE 32
#define SIGNER_STORES_MAX 64
struct signer_mark {
	int64_t round;
	struct sha256 root;
};
int signer_get_mark(struct signer *signer, const char *store_id, struct signer_mark *ret_mark,
                    struct error *error) MUST_CHECK;
/* Moves the mark on, durably. ERR_REFUSED when the store had been further, or at the same round
 * with another root. */
int signer_set_mark(struct signer *signer, const char *store_id, const struct signer_mark *mark,
                    struct error *error) MUST_CHECK;
/* Sets it back, for the reason an operator gives (at most SIGNER_LOG_REASON_MAX bytes, one line);
 * on record. */
int signer_accept_mark(struct signer *signer, const char *store_id, const struct signer_mark *mark,
                       struct slice reason, struct error *error) MUST_CHECK;

/* The same, read from the log of a directory, while it may be written: no process is asked. As
 * signer_log_check: ERR_CORRUPT, ERR_NOT_FOUND, ERR_IO. */
int signer_look_mark(const char *directory, const char *store_id, struct signer_mark *ret_mark,
                     struct error *error) MUST_CHECK;
/* Whether the child has ended; it stays to be collected by signer_stop. */
bool signer_has_ended(const struct signer *signer);
/* ERR_UNAVAILABLE with the cause when the child has ended, or has not answered a request for a
 * quarter of its time. Waits for nothing. */
int signer_ready(const struct signer *signer, struct error *error) MUST_CHECK;

/* One of its keys, constant during the signer's life. */
struct signer_key {
	struct slice certificates; /* PEM: its own first, then its issuers */
	struct certificate_facts certificate;
	int64_t valid_from_us, valid_until_us; /* of all of them together */
};
/* NULL: there is none, as of SIGNER_NO_KEY. */
const struct signer_key *signer_get_key(const struct signer *signer, int index);
/* The certificate of a development key that a directory has, as PEM, appended; nothing when there
 * is none. */
int signer_look_development(const char *directory, struct buf *out, struct error *error) MUST_CHECK;
/* ERR_UNAVAILABLE with the cause: its certificates are not valid at that time. */
int signer_key_check_time(const struct signer_key *key, int64_t now_us, struct error *error)
	MUST_CHECK;
/* Brings another into force, or none with SIGNER_NO_KEY; on record in the log. ERR_REFUSED: there
 * is none. */
int signer_use(struct signer *signer, int index, struct error *error) MUST_CHECK;
int signer_in_force(const struct signer *signer); /* an index, or SIGNER_NO_KEY */
/* ERR_UNAVAILABLE with the cause: no key is in force, or not valid at that time, or what holds it
 * did not sign when it was last asked. No request. */
int signer_check_key(struct signer *signer, int64_t now_us, struct error *error) MUST_CHECK;
/* Whether what holds the key in force did not sign when it was last asked. */
bool signer_key_fails(const struct signer *signer);
bool signer_is_development(const struct signer *signer);

/* PEM, kept by the signer; no request to the child. */
struct slice signer_certificates(
	const struct signer *signer);                       /* in force; else the present key's */
struct slice signer_trust(const struct signer *signer); /* all roots that its keys have */
struct slice signer_timestamp_roots(const struct signer *signer); /* of the embedded authority */

#endif
