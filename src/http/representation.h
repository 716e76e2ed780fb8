/* Answers with a stored representation: conditional requests and byte ranges (RFC 9110, sections 13
 * and 14). The digest is the strong entity tag. */
#ifndef HTTP_REPRESENTATION_H
#define HTTP_REPRESENTATION_H

#include "http/exchange.h"

struct representation {
	const char *type;
	struct sha256 digest;
	const char *language;        /* NULL: unknown; the language of the request is sent */
	const char *file_name;       /* file name for saving; NULL: none */
	const char *object;          /* of the content store; NULL: `body` */
	const char *shared, *pieces; /* further parts of the object (content/composite.h); NULL: none */
	struct slice body;           /* valid as long as the exchange */
	uint64_t size;
};

/* Returns whether If-None-Match matches. The answer is then 304, and the content is not read. */
bool representation_is_cached(const struct exchange *exchange,
                              const struct representation *representation);
/* Answers 200, 206, 304 or 416. ERR_NO_MEMORY, or the error of reading the object. */
int answer_representation(struct exchange *exchange, const struct representation *representation,
                          struct error *error) MUST_CHECK;
/* Answers with `out` as the evidence record of the given identifier. */
int answer_evidence_record(struct exchange *exchange, struct slice id, struct error *error)
	MUST_CHECK;

#endif
