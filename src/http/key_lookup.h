/* Lookups of keys that are not in the cache. The request is suspended before its body arrives, and
 * a worker queries the store. Requests with the same key share a lookup, unless it started before a
 * cache invalidation, or longer ago than the lifetime of a cache entry. A request whose deadline
 * passes leaves the lookup, which continues. All functions run in the thread of the loop. */
#ifndef HTTP_KEY_LOOKUP_H
#define HTTP_KEY_LOOKUP_H

#include "http/exchange.h"

/* Suspends the request until the lookup of exchange->question has set exchange->lookup_result,
 * `key` and `error`. ERR_UNAVAILABLE: too many lookups are in progress; the request is not
 * suspended. */
int key_lookup_begin(struct exchange *exchange, struct error *error) MUST_CHECK;
/* Resumes the request with ERR_UNAVAILABLE, without a result. */
void key_lookup_abort(struct exchange *exchange);

#endif
