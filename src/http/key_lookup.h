/* Look-ups of keys that the cache does not know: the request is suspended before its body comes,
 * and a worker asks the store. Requests with one key share one look-up, unless it began before
 * something was forgotten, or longer ago than the cache believes what it was told. A request that
 * has waited for its deadline leaves; the look-up goes on without it. All of it belongs to the
 * loop's thread. */
#ifndef HTTP_KEY_LOOKUP_H
#define HTTP_KEY_LOOKUP_H

#include "http/exchange.h"

/* Suspends the request until exchange->key_result (and `key`, `error`) is what the store says of
 * exchange->question. ERR_UNAVAILABLE: too many look-ups are under way; it is not suspended
 * then. */
int key_lookup_begin(struct exchange *exchange, struct error *error) MUST_CHECK;
/* The request goes on without an answer, with ERR_UNAVAILABLE. */
void key_lookup_leave(struct exchange *exchange);

#endif
