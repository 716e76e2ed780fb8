/* What revocation_client remembers: data, and places that failed. In memory, bounded, the longest
 * unused goes first. Thread safe. Inside src/seal only. */
#ifndef SEAL_REVOCATION_CACHE_H
#define SEAL_REVOCATION_CACHE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/digest.h"
#include "seal/revocation_data.h"

struct revocation_cache;
/* NULL without memory. */
struct revocation_cache *revocation_cache_create(void) MUST_CHECK;
void revocation_cache_free(struct revocation_cache *cache); /* NULL-safe */

/* One question to one place. */
struct revocation_question {
	const char *url;
	struct slice request; /* empty: a CRL */
};

enum revocation_kept {
	REVOCATION_KEPT_NOTHING,
	REVOCATION_KEPT_OLDER, /* current still; there may be a newer one that was issued at the time */
	REVOCATION_KEPT_FRESH, /* asking again would not help */
};
/* Appends what is kept, if it is current at `now_us`. */
enum revocation_kept revocation_cache_get(struct revocation_cache *cache,
                                          const struct revocation_question *question,
                                          int64_t time_us, int64_t now_us, struct buf *out);
/* What does not fit, or for want of memory, is not kept. */
void revocation_cache_put(struct revocation_cache *cache,
                          const struct revocation_question *question, struct slice der,
                          const struct revocation_facts *facts, int64_t now_us);

/* Whether the place is to be left alone, and the reason of its last failure. */
bool revocation_cache_is_left_alone(struct revocation_cache *cache, const char *url,
                                    char reason[REVOCATION_CAUSE_SIZE]);
void revocation_cache_note_failure(struct revocation_cache *cache, const char *url,
                                   const char *reason);
void revocation_cache_note_success(struct revocation_cache *cache, const char *url);

#endif
