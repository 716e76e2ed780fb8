/* The signing process, which holds the keys.
 *
 * signer_start forks. The child loads (in development: first creates) the keys, opens its log,
 * drops all system calls except those needed for signing and logging (base/confine.h), and serves
 * typed requests over a socket pair, one at a time, of at most SIGNER_BYTES_MAX bytes each. Before
 * it returns a signature it appends a line to DIRECTORY/signer.log and syncs it (signer_log.h);
 * what it cannot log it does not sign. It exits when writing the log fails for any reason other
 * than lack of space, when its parent exits, or when the socket is closed. It ignores SIGINT and
 * SIGTERM, so that a draining parent can still sign.
 *
 * The log also records the last sealed round of each store, so that a rollback of a store is
 * detected from outside the store.
 *
 * signer_start must be called from the main thread before other threads exist: the child dies with
 * the thread that forked it. All other functions may be called from any thread. */
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

/* Purpose of a signature; recorded in the log. */
enum signer_purpose { SIGNER_REPORT, SIGNER_ARCHIVE, SIGNER_LIST };

/* Indexes of the keys. At most one is active; SIGNER_PRESENT is active at the start. */
enum { SIGNER_NO_KEY = -1, SIGNER_PRESENT, SIGNER_NEXT, SIGNER_KEYS };

struct signer_options {
	const char *directory; /* for the log and the development keys; created with mode 0700 */
	/* Creates missing development files (mode 0600) and loads them: for reports and for timestamps
	 * each a root, a certificate with its key, and those of the root's OCSP responder
	 * (development.h). */
	bool development;
	/* PEM file with the Ed25519 key of the log; NULL: DIRECTORY/log.key, which is made if it is
	 * missing. Nodes of one store need the same key. */
	const char *log_key;
	/* In production: the key that signs reports and archives, and its successor. */
	struct key_source key, next;
	int words;  /* above 0: descriptor that becomes the child's standard error */
	bool trial; /* set by signer_check_start */
};

/* Starts the child. Returns 0 once it responds; ERR_IO; ERR_PIN (seal/key.h); ERR_REFUSED with the
 * cause: a key that is unusable or not fit (seal/key.h), or no key valid at this time. */
int signer_start(const struct signer_options *options, struct signer **ret_signer,
                 struct error *error) MUST_CHECK;
/* Checks whether the signer would start with these keys, in a child that exits at once; creates and
 * logs nothing. Results as for signer_start; only signer_get_key and signer_stop may be called on
 * *ret_signer. */
int signer_check_start(const struct signer_options *options, struct signer **ret_signer,
                       struct error *error) MUST_CHECK;
/* Stops the child and frees. NULL-safe. */
void signer_stop(struct signer *signer);

/* The following requests return ERR_REFUSED when the child refuses, ERR_NO_SPACE when its log has
 * no space, and ERR_UNAVAILABLE once the child has exited. A child that does not respond within
 * SIGNER_TIMEOUT_S is killed, since a late response could not be matched to a request. The caller
 * may then stop this signer and start another, if it can fork. */
#define SIGNER_TIMEOUT_S 20

/* Signs with SHA-256 (ECDSA or RSA PKCS#1 v1.5, depending on the key) and appends the signature
 * value. The bytes must be the DER SET of signed attributes that cms_create writes: content-type
 * id-data, a SHA-256 message-digest, the signing-certificate-v2 of the active certificate, and
 * optionally a signing-time. ERR_UNAVAILABLE also means that no key is active, that the attributes
 * name another key, that a certificate of the path is not valid now, or that the key holder does
 * not sign. */
int signer_sign(struct signer *signer, enum signer_purpose purpose, struct slice bytes,
                struct buf *out, struct error *error) MUST_CHECK;
/* Checks by a trial signature, which is not logged, whether the active key signs again after a
 * failure. ERR_UNAVAILABLE: it does not. */
int signer_probe(struct signer *signer, struct error *error) MUST_CHECK;
/* The embedded development timestamp authority: takes a DER request and appends a DER response. */
int signer_timestamp(struct signer *signer, struct slice request, struct buf *out,
                     struct error *error) MUST_CHECK;

/* The development authorities' OCSP responder: takes a DER request about one certificate and
 * appends a DER response. */
int signer_ocsp(struct signer *signer, struct slice request, struct buf *out, struct error *error)
	MUST_CHECK;

/* The mark of a store: its last sealed round; 0 with zeros: none. Stores are identified by
 * SIGNER_STORE_ID_SIZE hex digits; the log keeps the marks of the SIGNER_STORES_MAX most recently
 * used stores. */
#define SIGNER_STORE_ID_SIZE 32
#define SIGNER_STORES_MAX 64
struct signer_mark {
	int64_t round;
	struct sha256 root;
};
int signer_get_mark(struct signer *signer, const char *store_id, struct signer_mark *ret_mark,
                    struct error *error) MUST_CHECK;
/* Advances the mark durably. ERR_REFUSED: the known mark is later, or has the same round with
 * another root. */
int signer_set_mark(struct signer *signer, const char *store_id, const struct signer_mark *mark,
                    struct error *error) MUST_CHECK;
/* Sets the mark back and logs the reason that the operator gives (one line of at most
 * SIGNER_LOG_REASON_MAX bytes). */
int signer_accept_mark(struct signer *signer, const char *store_id, const struct signer_mark *mark,
                       struct slice reason, struct error *error) MUST_CHECK;

/* The checkpoints of the log of segments (src/tlog). */
#define SIGNER_LOG_KEY_SIZE 32 /* Ed25519 (RFC 8032) */
#define SIGNER_LOG_SIGNATURE_SIZE 64
/* The public key of the log. */
const uint8_t *signer_log_key(const struct signer *signer);
/* Reads size and root of the last checkpoint of that origin that this process's directory knows as
 * signed; size 0 and the empty root: none. */
int signer_get_checkpoint(struct signer *signer, const char *origin, uint64_t *ret_size,
                          struct sha256 *ret_root, struct error *error) MUST_CHECK;
/* Signs the text of a checkpoint. The request (tlog/witness_request.h) proves that the tree begins
 * with the last one that was signed; ERR_REFUSED: it does not. */
int signer_sign_checkpoint(struct signer *signer, struct slice request,
                           uint8_t ret_signature[SIGNER_LOG_SIGNATURE_SIZE], struct error *error)
	MUST_CHECK;

/* Reads a mark from the log file without a signing process; the log may be written meanwhile.
 * Errors as for signer_log_check: ERR_CORRUPT, ERR_NOT_FOUND, ERR_IO. */
int signer_read_mark(const char *directory, const char *store_id, struct signer_mark *ret_mark,
                     struct error *error) MUST_CHECK;
/* Returns whether the child has exited; signer_stop reaps it. */
bool signer_has_ended(const struct signer *signer);
/* Returns ERR_UNAVAILABLE with the cause when the child has exited, or has not responded to a
 * request for a quarter of its time-out. Does not block. */
int signer_ready(const struct signer *signer, struct error *error) MUST_CHECK;

/* A key of the signer, constant during its lifetime. */
struct signer_key {
	struct slice certificates; /* PEM: the key's first, then its issuers */
	struct certificate_facts certificate;
	int64_t valid_from_us, valid_until_us; /* the period in which all are valid */
};
/* Returns a key; NULL: there is none, also for SIGNER_NO_KEY. */
const struct signer_key *signer_get_key(const struct signer *signer, int index);
/* Appends the certificate of the directory's development key as PEM; nothing if there is none. */
int signer_read_development_certificate(const char *directory, struct buf *out, struct error *error)
	MUST_CHECK;
/* Returns ERR_UNAVAILABLE with the cause when the certificates are not valid at that time. */
int signer_key_check_time(const struct signer_key *key, int64_t now_us, struct error *error)
	MUST_CHECK;
/* Activates another key, or none with SIGNER_NO_KEY, and logs it. ERR_REFUSED: there is no such
 * key. */
int signer_activate_key(struct signer *signer, int index, struct error *error) MUST_CHECK;
int signer_active_key(const struct signer *signer); /* index of the active key, or SIGNER_NO_KEY */
/* Returns ERR_UNAVAILABLE with the cause when no key is active, when it is not valid at that time,
 * or when its holder failed to sign the last time. Sends no request. */
int signer_check_key(struct signer *signer, int64_t now_us, struct error *error) MUST_CHECK;
/* Returns whether the holder of the active key failed to sign the last time. */
bool signer_is_key_failing(const struct signer *signer);
bool signer_is_development(const struct signer *signer);

/* PEM texts owned by the signer; no request is sent. */
struct slice signer_certificates(
	const struct signer *signer); /* of the active key; otherwise of the present one */
struct slice signer_trust(const struct signer *signer);           /* roots of all keys */
struct slice signer_timestamp_roots(const struct signer *signer); /* of the embedded authority */

#endif
