/* How long a signature can be checked: the levels of a baseline signature (ETSI EN 319 122-1 and
 * EN 319 142-1, clause 6). Pure. Thread safe. */
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
	LEVEL_LT,  /* with all that validates both */
	LEVEL_LTA, /* with a timestamp over all of that */
};

/* "B", "T", "LT", "LTA". */
const char *level_text(enum level level);
bool level_parse(const char *text, enum level *ret_level) MUST_CHECK;

/* A signature that was verified, with its timestamps. Paths are DER: a certificate, its issuers',
 * the root's, one after the other. */
struct level_proof {
	struct slice signer;    /* path */
	struct slice authority; /* path, of the timestamp over the signature */
	int64_t signed_us;      /* its time */
	struct slice last;      /* path, of the timestamp over all; size 0: there is none */
	int64_t last_us;        /* its time */
};

#define LEVEL_CAUSE_SIZE ERROR_CAUSE_MAX

/* Judges a signature that has a timestamp by what is in the set: LEVEL_T with the cause when some
 * of it is missing, else LEVEL_LT or, with a last timestamp, LEVEL_LTA. What the last timestamp's
 * own authority lacks is for the next one to bring. 0, ERR_INVALID_EVIDENCE when a certificate was
 * revoked, or ERR_NO_MEMORY. */
int level_judge(const struct level_proof *proof, const struct validation_set *set,
                enum level *ret_level, char ret_cause[LEVEL_CAUSE_SIZE], struct error *error)
	MUST_CHECK;

/* Nothing is over a set inside a signature, so nothing may be in it besides what is needed, each
 * object being needed when without it some certificate would be judged worse (the order of enum
 * revocation_outcome). */
#define LEVEL_BARE_OBJECTS_MAX 16
/* Whether a set that gives LEVEL_LT is so; along the paths inside, for those that a reader's roots
 * make of them may need less. 0, ERR_INVALID_EVIDENCE with the object that is not
 * needed, or ERR_NO_MEMORY. */
int level_check_bare(const struct level_proof *proof, const struct validation_set *set,
                     struct error *error) MUST_CHECK;
/* Whether certificates of signer or timestamp say where revocation data about them is; paths that
 * cannot be judged say nothing. 0 or ERR_NO_MEMORY. */
int level_is_published(const struct level_proof *proof, bool *ret_is_published, struct error *error)
	MUST_CHECK;

struct revocation_client;

/* What is to be validated, before anything was collected for it. */
struct level_wanted {
	struct slice signer_pem; /* the signer's certificate and its issuers', up to the root */
	struct slice authority;  /* path, of the timestamp over the signature */
	int64_t signed_us;       /* its time */
	bool
		bare; /* the set goes where level_check_bare judges it, along these paths: it has to pass */
};

/* Gets into the empty set all that validates a signature and its timestamp, from where their
 * certificates name it (revocation_client.h): may wait. LEVEL_LT; or LEVEL_T with the cause where
 * some of it cannot be had, or all of it is more than a signature holds (CMS_INSIDE_SIZE_MAX): the
 * set is then empty again. 0, ERR_INVALID_EVIDENCE when a certificate was revoked, ERR_NO_MEMORY.
 */
int level_collect(struct revocation_client *client, const struct level_wanted *wanted,
                  struct validation_set *set, enum level *ret_level,
                  char ret_cause[LEVEL_CAUSE_SIZE], struct error *error) MUST_CHECK;

/* The same for a timestamp alone, by its authority's path; what can be had stays in the set where
 * it does not suffice. */
int level_collect_authority(struct revocation_client *client, struct slice authority,
                            int64_t stamped_us, struct validation_set *set, bool *ret_suffices,
                            char ret_cause[LEVEL_CAUSE_SIZE], struct error *error) MUST_CHECK;

#endif
