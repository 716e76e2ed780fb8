/* Timestamps from several authorities in order of preference.
 *
 * After a failure an authority is in back-off: 5 s, doubled by each further failure up to 5
 * minutes, until it returns a valid timestamp. Each attempt has a new nonce. A response counts only
 * after full verification (seal/timestamp.h) and if its time agrees with the local clock. An
 * authority may send its own certificate only; its issuers are then fetched from the URLs that the
 * certificates name (seal/issuers.h). Thread safe; calls run concurrently. */
#ifndef SEAL_AUTHORITY_H
#define SEAL_AUTHORITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/error.h"
#include "net/address.h"
#include "seal/signer.h"
#include "seal/timestamp.h"

#define AUTHORITIES_MAX 8
#define AUTHORITY_NAME_SIZE 128
#define AUTHORITY_REASON_SIZE 512
#define AUTHORITY_EMBEDDED_URL "embedded:"

enum authority_kind { AUTHORITY_DEVELOPMENT, AUTHORITY_NON_QUALIFIED, AUTHORITY_QUALIFIED };

const char *authority_kind_text(enum authority_kind kind); /* "development", … "qualified" */
bool authority_kind_parse(struct slice text, enum authority_kind *ret_kind) MUST_CHECK;

/* Texts are copied. */
struct authority_options {
	const char *name; /* NULL: the URL */
	const char *url;  /* http://, https://, or "embedded:" (always of kind development) */
	enum authority_kind kind;
	/* PEM file: trusted roots of its timestamps, and further certificates for their paths; unused
	 * for embedded. */
	const char *roots_path;
	const char *policy; /* dotted OID to request and require; NULL: any */
	/* Credentials, for https:// only: Basic or a bearer token, and a client certificate. */
	const char *user;
	const char *password;
	const char *bearer;
	const char *client_certificate; /* PEM files; both or none */
	const char *client_key;
	const char *tls_roots_path; /* PEM; NULL: the system's roots */
};

struct authorities_options {
	const struct authority_options *authorities; /* in order of preference */
	size_t count;                                /* 1 to AUTHORITIES_MAX */
	struct signer *signer;                       /* for "embedded:"; must outlive the object */
	struct address_guard guard;                  /* permitted addresses (tsa.allow_networks) */
	int timeout_ms;                              /* per attempt; 0: 10,000 */
	int64_t time_bound_us;                       /* |genTime - our clock|; 0: 60 s */
};

struct authorities;

/* Loads the trusted roots. Returns 0, ERR_VALIDATION (the cause names the setting; also for
 * credentials without https://), ERR_IO or ERR_NO_MEMORY. */
int authorities_create(const struct authorities_options *options,
                       struct authorities **ret_authorities, struct error *error) MUST_CHECK;
void authorities_free(struct authorities *authorities); /* NULL-safe */

/* Copies from replaced authorities what they know about time and certificates, for equal URLs. To
 * be called before the first use. */
void authorities_inherit(struct authorities *authorities, struct authorities *former);

struct authority_result {
	char name[AUTHORITY_NAME_SIZE];
	char url[AUTHORITY_REASON_SIZE];
	enum authority_kind kind;
	struct timestamp_facts facts;
	struct buf request;  /* DER */
	struct buf response; /* DER or BER */
	struct buf token;    /* unchanged bytes; the response ends with them */
	struct buf path;     /* its certificate, its issuers and the root: struct timestamp_path */
};
void authority_result_free(struct authority_result *result); /* NULL-safe, also when zeroed */
#define AUTHORITY_RESULT_AUTO __attribute__((cleanup(authority_result_free)))

/* Failed attempts before success, or without success; for the log. */
struct authority_failures {
	size_t count;
	struct {
		char name[AUTHORITY_NAME_SIZE];
		char reason[AUTHORITY_REASON_SIZE];
		bool in_backoff; /* not attempted, in back-off; `reason` is that of the last failure */
		enum error_blame fault; /* of an attempt */
	} items[AUTHORITIES_MAX];
};

/* Gets a timestamp over `imprint`, not older than earliest_us (TIME_NONE: any time), from the first
 * authority that returns a valid one. Fills ret_failures (may be NULL) in any case. Returns 0;
 * ERR_AUTHORITY when all failed; ERR_NO_MEMORY, which does not count as a failure of an
 * authority. */
int authorities_timestamp(struct authorities *authorities, const struct sha256 *imprint,
                          int64_t earliest_us, struct authority_result *ret_result,
                          struct authority_failures *ret_failures, struct error *error) MUST_CHECK;

/* The same over a digest of any algorithm, without a limit on the time, and skipping rejected
 * authorities. Back-off applies per digest algorithm. */
int authorities_timestamp_over(struct authorities *authorities, const struct digest *imprint,
                               struct authority_result *ret_result,
                               struct authority_failures *ret_failures, struct error *error)
	MUST_CHECK;

/* Rejects a timestamp of authorities_timestamp_over because its certificate was revoked. The
 * authority is skipped for such timestamps for a while; the time grows with each rejected timestamp
 * of the same certificates. */
void authorities_reject(struct authorities *authorities, const struct authority_result *given,
                        const char *reason);

/* The same as authorities_timestamp, from another authority than that of `first`: a second,
 * independent time. */
int authorities_timestamp_independent(struct authorities *authorities, const struct sha256 *imprint,
                                      int64_t earliest_us, const struct authority_result *first,
                                      struct authority_result *ret_result,
                                      struct authority_failures *ret_failures, struct error *error)
	MUST_CHECK;

/* Returns the latest possible current time according to the last valid timestamps, independent of
 * later changes of the local clock. Before the first valid timestamp: according to timestamps that
 * only disagreed with the local clock; before these, according to the local clock at creation. */
int64_t authorities_latest_time_us(struct authorities *authorities);
/* Computes the minimum error of the local clock against the last known time of the authority that
 * agrees best with it: positive: ahead, negative: behind. Returns false if no authority has given a
 * time. */
bool authorities_compare_clock(struct authorities *authorities, int64_t *ret_off_us);
/* Requests a timestamp of random data from one authority (`index` from 0) to learn its time.
 * Ignores back-off, since the local clock may have caused the failures. Adds a failure to
 * *failures. Returns false: there is no such authority. */
bool authorities_request_time_of(struct authorities *authorities, size_t index,
                                 struct authority_failures *failures);
/* Does so for each authority in turn, until the local clock is at most bound_us ahead of one. */
void authorities_request_time(struct authorities *authorities, int64_t bound_us,
                              struct authority_failures *ret_failures);

/* The certificates of an authority, from its last valid timestamp. */
struct authority_certificates {
	char name[AUTHORITY_NAME_SIZE];
	struct certificate_facts certificate; /* its own */
	int64_t valid_until_us;               /* of all of them, up to the root */
};
/* Describes the certificates of authority `index` (0 to AUTHORITIES_MAX - 1) and appends them to
 * path_pem unless that is NULL. Returns false: no timestamp yet, or no such authority. */
bool authorities_get_certificates(struct authorities *authorities, size_t index,
                                  struct authority_certificates *ret_seen, struct buf *path_pem);

/* State of an authority since its creation. */
struct authority_health {
	char host[AUTHORITY_NAME_SIZE]; /* host and port of its URL; "embedded" */
	enum authority_kind kind;
	int64_t successes, failures;
	int64_t last_success_us;            /* by our clock; 0: none */
	bool fails;                         /* the last attempt failed */
	int64_t failed_boot_us;             /* clock_boot_us of the last failure */
	char reason[AUTHORITY_REASON_SIZE]; /* of the last failure */
};
/* Returns the state of authority `index` (from 0); false: there is no such authority. */
bool authorities_get_health(struct authorities *authorities, size_t index,
                            struct authority_health *ret);

/* Appends the roots that a verifier must trust, as PEM: the self-signed certificates of all
 * roots_path files, without duplicates. Intermediate certificates are omitted, since they are not
 * trusted. Returns 0 or ERR_NO_MEMORY. */
int authorities_trust(const struct authorities *authorities, struct buf *out, struct error *error)
	MUST_CHECK;

#endif
