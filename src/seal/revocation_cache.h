/* Cache of revocation_client: data, and sources that failed. In memory, bounded, least recently
 * used entries are evicted. Thread safe. For src/seal only. */
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

/* A request to a source. */
struct revocation_request {
	const char *url;
	struct slice request; /* empty: a CRL */
};

enum revocation_cache_state {
	REVOCATION_CACHE_MISS,
	REVOCATION_CACHE_OLDER, /* still current; newer data may exist that was issued after the time in
	                          question */
	REVOCATION_CACHE_FRESH, /* a new request would not return better data */
};
/* Appends the cached data if it is current at `now_us`. time_us is the time in question. */
enum revocation_cache_state revocation_cache_get(struct revocation_cache *cache,
                                                 const struct revocation_request *question,
                                                 int64_t time_us, int64_t now_us, struct buf *out);
/* Caches data; does nothing if it is too large or memory is exhausted. */
void revocation_cache_put(struct revocation_cache *cache, const struct revocation_request *question,
                          struct slice der, const struct revocation_facts *facts, int64_t now_us);

/* Returns whether the source is in back-off, and the reason of its last failure. */
bool revocation_cache_is_in_backoff(struct revocation_cache *cache, const char *url,
                                    char reason[REVOCATION_CAUSE_SIZE]);
void revocation_cache_note_failure(struct revocation_cache *cache, const char *url,
                                   const char *reason);
void revocation_cache_note_success(struct revocation_cache *cache, const char *url);

#endif
