/* Levels of a baseline signature, which determine how long it can be verified (ETSI EN 319 122-1
 * and EN 319 142-1, clause 6). Thread safe. */
#ifndef SEAL_LEVEL_H
#define SEAL_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct validation_set;

enum level {
	LEVEL_B,   /* a signature */
	LEVEL_T,   /* with a timestamp over it */
	LEVEL_LT,  /* with the validation data of both */
	LEVEL_LTA, /* with a timestamp over all of it */
};

/* "B", "T", "LT", "LTA". */
const char *level_text(enum level level);
bool level_parse(const char *text, enum level *ret_level) MUST_CHECK;

/* A verified signature and its timestamps. Paths are concatenated DER: a certificate, its issuers
 * and the root. */
struct level_proof {
	struct slice signer;    /* path */
	struct slice authority; /* path, of the timestamp over the signature */
	int64_t signed_us;      /* its time */
	struct slice last;      /* path, of the timestamp over everything; size 0: none */
	int64_t last_us;        /* its time */
};

#define LEVEL_CAUSE_SIZE ERROR_CAUSE_MAX

/* Determines the level of a signature with a timestamp from the validation data in the set: LEVEL_T
 * with the cause when some is missing, otherwise LEVEL_LT or, with a last timestamp, LEVEL_LTA.
 * Missing data of the last timestamp's own authority does not count, since the next timestamp adds
 * it. Returns 0, ERR_INVALID_EVIDENCE when a certificate was revoked, or ERR_NO_MEMORY. */
int level_judge(const struct level_proof *proof, const struct validation_set *set,
                enum level *ret_level, char ret_cause[LEVEL_CAUSE_SIZE], struct error *error)
	MUST_CHECK;

/* Nothing protects a set inside a signature, so it may contain only objects that are needed. An
 * object is needed if without it the outcome of a certificate would be worse (order of enum
 * revocation_outcome). */
#define LEVEL_OBJECTS_MAX 16
/* Checks this rule for a set that gives LEVEL_LT. Uses the paths within the signature, since the
 * paths to a verifier's roots may need fewer objects. Returns 0, ERR_INVALID_EVIDENCE with the
 * object that is not needed, or ERR_NO_MEMORY. */
int level_check_minimal(const struct level_proof *proof, const struct validation_set *set,
                        struct error *error) MUST_CHECK;
/* Finds out whether a certificate of the signer or the timestamp names a source of revocation data;
 * false for paths that cannot be evaluated. Returns 0 or ERR_NO_MEMORY. */
int level_is_published(const struct level_proof *proof, bool *ret_is_published, struct error *error)
	MUST_CHECK;

struct revocation_client;

/* A signature whose validation data is to be collected. */
struct level_request {
	struct slice signer_pem; /* the signer's certificate and its issuers, up to the root */
	struct slice authority;  /* path, of the timestamp over the signature */
	int64_t signed_us;       /* its time */
	bool bare;               /* the set must pass level_check_minimal with these paths */
};

/* Collects into the empty set everything that validates a signature and its timestamp, from the
 * URLs in their certificates (revocation_client.h); may block. Sets LEVEL_LT, or LEVEL_T with the
 * cause when some data is unavailable or the data exceeds CMS_VALIDATION_SIZE_MAX; the set is then
 * empty again. Returns 0, ERR_INVALID_EVIDENCE when a certificate was revoked, or ERR_NO_MEMORY. */
int level_collect(struct revocation_client *client, const struct level_request *wanted,
                  struct validation_set *set, enum level *ret_level,
                  char ret_cause[LEVEL_CAUSE_SIZE], struct error *error) MUST_CHECK;

/* The same for a timestamp only, by its authority's path. Incomplete data stays in the set. */
int level_collect_authority(struct revocation_client *client, struct slice authority,
                            int64_t stamped_us, struct validation_set *set, bool *ret_suffices,
                            char ret_cause[LEVEL_CAUSE_SIZE], struct error *error) MUST_CHECK;

#endif
