/* A stored thing on its way to a client: what it holds already is not sent again, and of the rest
 * what it asks for (RFC 9110, sections 13 and 14). The digest is the strong entity tag. */
#ifndef HTTP_REPRESENTATION_H
#define HTTP_REPRESENTATION_H

#include "http/exchange.h"

struct representation {
	const char *type;
	struct sha256 digest;
	const char *language;        /* NULL: not known, told as that of the request */
	const char *file_name;       /* under which it is saved; NULL: none */
	const char *object;          /* of the content store; NULL: `body` */
	const char *shared, *pieces; /* with it (content/composite.h); NULL: it is all */
	struct slice body;           /* lives as long as the exchange */
	uint64_t size;
};

/* Whether If-None-Match says that the client has it: the answer is 304, and the bytes are not
 * looked at. */
bool representation_is_held(const struct exchange *exchange,
                            const struct representation *representation);
/* 200, 206, 304 or 416. ERR_NO_MEMORY, or why the object cannot be read. */
int answer_representation(struct exchange *exchange, const struct representation *representation,
                          struct error *error) MUST_CHECK;
/* `out` as the evidence record of what has that identifier. */
int answer_evidence_record(struct exchange *exchange, struct slice id, struct error *error)
	MUST_CHECK;

#endif
