/* Cross-origin requests of browsers (the CORS protocol of the Fetch standard): which origins may
 * read an answer, and answers to preflights.
 *
 * Resources without a key are for every origin. Operations with a key are for the origins of
 * http.cors_origins. All other resources, such as the console, are for their own origin only.
 * Credentials of browsers are never allowed: a key is in a header that the page sets. */
#ifndef HTTP_CORS_H
#define HTTP_CORS_H

#include <stdbool.h>

#include "net/origin.h"

struct exchange;

enum cors {
	CORS_NEVER,  /* no origin but its own */
	CORS_LISTED, /* the origins of http.cors_origins */
	CORS_ANY,    /* every origin */
};

/* Bytes of these headers in an answer, except to preflights. */
#define CORS_HEAD_MAX ((size_t)768)
#define CORS_HEADERS_MAX 2

struct cors_headers {
	const char *names[CORS_HEADERS_MAX][2]; /* name and value */
	int count;
	bool varies; /* the answer depends on Origin */
	char origin[ORIGIN_SIZE];
};
/* Gets the headers of an answer. Values are literals or in *ret. In the thread of the loop. */
void cors_headers(const struct exchange *exchange, struct cors_headers *ret);

/* Returns whether the request is a preflight of an origin that may use the route: OPTIONS with
 * Origin and Access-Control-Request-Method. Call after route_find. */
bool cors_is_preflight(const struct exchange *exchange, const char *method);

#endif
