/* The call of a test event as a program of somebody who has a key. Pure functions.
 *
 * All that was typed becomes a literal of the language, in which whatever a page shows by its
 * number (template.h) is an escape: so what is copied from a page is the program. The key is never
 * part of it: it is read from CONSTANCIA_TEST_KEY. */
#ifndef CONSOLE_TRY_PROGRAM_H
#define CONSOLE_TRY_PROGRAM_H

#include "base/json.h"

struct try_call {
	const char *base_url; /* with /v1 */
	const char *prefix;   /* the settings' service.prefix */
	struct slice channel_id;
	struct slice client_ref;
	struct slice scenario;      /* empty: none */
	const struct json *payload; /* NULL: a channel of digests, for that of `text` */
	struct slice text;
};

/* Each appends a program; `out` being full is told by buf_check. */
void try_curl(const struct try_call *call, struct buf *out);
void try_python(const struct try_call *call, struct buf *out);
void try_typescript(const struct try_call *call, struct buf *out);
/* Any value as JSON, a member a line. */
void try_json(const struct json *json, struct buf *out);

#endif
