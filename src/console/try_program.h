/* Writes the call of a test event as a curl command for a client with a key. Pure functions.
 *
 * All input becomes a literal. Characters that a page shows by code point (template.h) become
 * escapes, so the command can be copied from the page unchanged. The key is never included; the
 * command reads it from CONSTANCIA_TEST_KEY. */
#ifndef CONSOLE_TRY_PROGRAM_H
#define CONSOLE_TRY_PROGRAM_H

#include "base/json.h"

struct try_call {
	const char *base_url; /* with /v1 */
	const char *prefix;   /* setting service.prefix */
	struct slice channel_id;
	struct slice client_ref;
	struct slice scenario;      /* empty: none */
	const struct json *payload; /* NULL: a hash-only channel; the digest of `text` is declared */
	struct slice text;
};

/* Appends the command; buf_check tells whether `out` is full. */
void try_curl(const struct try_call *call, struct buf *out);
/* Writes any value as JSON, one member per line. */
void try_json(const struct json *json, struct buf *out);

#endif
