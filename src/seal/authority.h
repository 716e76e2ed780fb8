/* Timestamps from several authorities in order of preference.
 *
 * An authority that fails is left alone for a while: 5 s, then twice as long each time, 5 minutes
 * at most, until it gives a good answer. Every try has a fresh nonce; every answer is verified in
 * full (seal/timestamp.h) before it counts, and has to agree with our clock. An authority that
 * sends its own certificate alone is right: those above are fetched from where it says
 * (seal/issuers.h). Thread safe; calls run side by side. */
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
	/* PEM: the roots of its timestamps, and what else their paths lead over; not for embedded. */
	const char *roots_path;
	const char *policy; /* dotted OID to ask for and insist on; NULL: any */
	/* Credentials, over https:// alone: Basic or a bearer token, and a certificate. */
	const char *user;
	const char *password;
	const char *bearer;
	const char *client_certificate; /* PEM files, only together */
	const char *client_key;
	const char *tls_roots_path; /* PEM; NULL: the system's */
};

struct authorities_options {
	const struct authority_options *authorities; /* in order of preference */
	size_t count;                                /* 1 to AUTHORITIES_MAX */
	struct signer *signer;                       /* for "embedded:"; outlives the object */
	struct address_guard guard;                  /* where they may stand (tsa.allow_networks) */
	int timeout_ms;                              /* each try; 0: 10,000 */
	int64_t time_bound_us;                       /* |genTime - our clock|; 0: 60 s */
};

struct authorities;

/* Loads roots. 0, ERR_VALIDATION (cause: which setting; credentials that would go over plain HTTP,
 * too), ERR_IO, ERR_NO_MEMORY. */
int authorities_create(const struct authorities_options *options,
                       struct authorities **ret_authorities, struct error *error) MUST_CHECK;
void authorities_free(struct authorities *authorities); /* NULL-safe */

/* What former ones have learnt of time and certificates, for the same addresses. Before the first
 * use. */
void authorities_inherit(struct authorities *authorities, struct authorities *former);

struct authority_result {
	char name[AUTHORITY_NAME_SIZE];
	char url[AUTHORITY_REASON_SIZE];
	enum authority_kind kind;
	struct timestamp_facts facts;
	struct buf request;  /* DER */
	struct buf response; /* DER or BER */
	struct buf token;    /* the bytes as they came; the response ends with them */
	struct buf path;     /* its certificate, its issuers', the root's: struct timestamp_path */
};
void authority_result_free(struct authority_result *result); /* NULL-safe, also when zeroed */
#define AUTHORITY_RESULT_AUTO __attribute__((cleanup(authority_result_free)))

/* What was tried before (or without) success, for the log. */
struct authority_failures {
	size_t count;
	struct {
		char name[AUTHORITY_NAME_SIZE];
		char reason[AUTHORITY_REASON_SIZE];
		bool left_alone; /* not tried: still backing off; reason is that of its last failure */
	} items[AUTHORITIES_MAX];
};

/* A timestamp over `imprint`, not from before earliest_us (TIME_NONE: any), from the first that
 * gives a good one. ret_failures may be NULL and is filled in either case. 0, or ERR_AUTHORITY when
 * none did; ERR_NO_MEMORY, which counts against none of them. */
int authorities_timestamp(struct authorities *authorities, const struct sha256 *imprint,
                          int64_t earliest_us, struct authority_result *ret_result,
                          struct authority_failures *ret_failures, struct error *error) MUST_CHECK;

/* The same over a digest by any algorithm, of any time; not from one that was rejected. What fails
 * for one algorithm leaves nobody alone for another. */
int authorities_timestamp_over(struct authorities *authorities, const struct digest *imprint,
                               struct authority_result *ret_result,
                               struct authority_failures *ret_failures, struct error *error)
	MUST_CHECK;

/* A timestamp of authorities_timestamp_over will not do, as its certificate was revoked: for a
 * while, longer with each of its timestamps by the same certificates, that one is not asked for
 * them. */
void authorities_reject(struct authorities *authorities, const struct authority_result *given,
                        const char *reason);

/* The same from any other than the one that gave `first`: a second, independent time. */
int authorities_timestamp_apart(struct authorities *authorities, const struct sha256 *imprint,
                                int64_t earliest_us, const struct authority_result *first,
                                struct authority_result *ret_result,
                                struct authority_failures *ret_failures, struct error *error)
	MUST_CHECK;

/* The latest time that it may be now by their last good timestamps, whatever our clock was set to
 * since. Before the first: by those that only our clock did not agree with; before these: by our
 * clock as it was at the creation. */
int64_t authorities_latest_now_us(struct authorities *authorities);
/* How far our clock is at least off by the last time, good or not agreed with, of that authority
 * that it agrees with best: ahead, or behind (negative). False: none has given a time yet. */
bool authorities_compare_clock(struct authorities *authorities, int64_t *ret_off_us);
/* Asks one, `index` from 0, for a timestamp of nothing, for its time; also one that is left alone:
 * it may have been our clock that was wrong. False: there is no such one. */
bool authorities_ask_time_of(struct authorities *authorities, size_t index);
/* Asks one after the other so until our clock is at most bound_us ahead of one. */
void authorities_ask_time(struct authorities *authorities, int64_t bound_us);

/* An authority's certificates, as its last good timestamp had them. */
struct authority_seen {
	char name[AUTHORITY_NAME_SIZE];
	struct certificate_facts certificate; /* its own */
	int64_t valid_until_us;               /* of all of them, up to the root */
};
/* Of one after the other, `index` from 0 to AUTHORITIES_MAX - 1; false: it has given none yet, or
 * there is no such one. `path_pem` is NULL, or gets them appended. */
bool authorities_get_seen(struct authorities *authorities, size_t index,
                          struct authority_seen *ret_seen, struct buf *path_pem);

/* How one of them did since it was created. */
struct authority_health {
	char host[AUTHORITY_NAME_SIZE]; /* and port, of its address; "embedded" */
	enum authority_kind kind;
	int64_t successes, failures;
	int64_t last_success_us;            /* by our clock; 0: none */
	bool fails;                         /* its last answer was none, or not good */
	int64_t failed_boot_us;             /* clock_boot_us of the last failure */
	char reason[AUTHORITY_REASON_SIZE]; /* of it */
};
/* Of one after the other, `index` from 0; false: there is no such one. */
bool authorities_get_health(struct authorities *authorities, size_t index,
                            struct authority_health *ret);

/* Appends the roots that a verifier has to trust, as PEM: what is self-signed in their roots_path,
 * once each, as certificates in between are trusted for nothing. 0 or ERR_NO_MEMORY. */
int authorities_trust(const struct authorities *authorities, struct buf *out, struct error *error)
	MUST_CHECK;

#endif
