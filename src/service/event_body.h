/* Parses the body of POST /events. Pure. */
#ifndef SERVICE_EVENT_BODY_H
#define SERVICE_EVENT_BODY_H

#include "base/arena.h"
#include "ledger/record.h"

#define PAYLOAD_MAX ((size_t)262144)     /* maximum bytes of `payload` in canonical form */
#define EVENT_INLINE_MAX ((size_t)16384) /* maximum canonical JSON inside the transaction */
#define FILE_MAX ((size_t)10485760)
#define BODY_SLACK ((size_t)16384) /* overhead of a JSON body in addition to the payload */
/* Maximum bytes of a JSON body with a payload: each byte of the canonical form may be sent as an
 * escape of six, such as \u0061 or \u003c. */
#define EVENT_BODY_MAX (6 * PAYLOAD_MAX + BODY_SLACK)
/* Limit of a buffer for the canonical form. Numbers can be longer in it than in the body; of a
 * payload beyond this limit the size is not determined. */
#define EVENT_CANONICAL_MAX (2 * PAYLOAD_MAX)
#define BODY_ARENA_MAX ((size_t)48 * 1024 * 1024)
#define FILE_NAME_MAX 255

/* What a client declares as text: a member of a JSON body, or a field of a form. */
struct event_text {
	const char *name;
	size_t size_max; /* bytes in a form */
	bool required;   /* and not null in JSON */
	/* Puts the checked text into the declaration, whose slices refer to it. */
	int (*read)(struct slice text, struct declaration *declaration, struct error *error);
	const char *english, *spanish; /* the type, for MSG_FIELD_TYPE */
};
/* One without a name ends the list. */
#define EVENT_TEXTS_MAX 8
extern const struct event_text event_texts[EVENT_TEXTS_MAX];
/* Copies the declaration's texts into the arena. Returns ERR_NO_MEMORY. */
int declaration_keep(struct arena *arena, struct declaration *declaration, struct error *error)
	MUST_CHECK;

/* Returns the maximum size in bytes of a JSON body on a channel of this modality. */
size_t event_body_limit(enum modality modality);

/* Parses a JSON body. Writes the canonical form of the payload to `canonical` (limit
 * EVENT_CANONICAL_MAX at least) and its digest to the declaration. ERR_VALIDATION, also for a body
 * of another modality than the channel's; ERR_TOO_LARGE; ERR_NO_MEMORY. Slices point into the arena
 * or into `body`. */
int event_body_parse(struct slice body, enum modality channel_modality, struct arena *arena,
                     struct buf *canonical, struct declaration *ret_declaration,
                     struct error *error) MUST_CHECK;

/* Checks a client_ref: 1 to 255 bytes of UTF-8 without control characters. */
int client_ref_check(struct slice client_ref, struct error *error) MUST_CHECK;
/* Returns the last path component of the client's file name; empty if nothing is left. */
int file_name_check(struct slice file_name, struct slice *ret_name, struct error *error) MUST_CHECK;

#endif
