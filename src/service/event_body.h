/* What the body of POST /events declares. Pure. */
#ifndef SERVICE_EVENT_BODY_H
#define SERVICE_EVENT_BODY_H

#include "base/arena.h"
#include "ledger/record.h"

#define PAYLOAD_MAX ((size_t)262144)     /* canonical bytes of `payload` */
#define EVENT_INLINE_MAX ((size_t)16384) /* canonical JSON up to it travels in the transaction */
#define FILE_MAX ((size_t)10485760)
#define BODY_SLACK ((size_t)16384) /* what a JSON body may have beside the payload */
#define BODY_ARENA_MAX ((size_t)48 * 1024 * 1024)
#define FILE_NAME_MAX 255

/* Most bytes of a JSON body on a channel of this modality. */
size_t event_body_limit(enum modality modality);

/* Parses a JSON body, puts the payload's canonical form into `canonical` (limit 4 MiB at least) and
 * its digest into hash. ERR_VALIDATION, also for what is not of the channel's modality,
 * ERR_TOO_LARGE or ERR_NO_MEMORY. Slices live in the arena or in `body`. */
int event_body_parse(struct slice body, enum modality channel_modality, struct arena *arena,
                     struct buf *canonical, struct declaration *ret_declaration,
                     struct error *error) MUST_CHECK;

/* 1 to 255 bytes of UTF-8 without control characters. */
int client_ref_check(struct slice client_ref, struct error *error) MUST_CHECK;
/* The last component of what the client called its file; empty when nothing is left. */
int file_name_check(struct slice file_name, struct slice *ret_name, struct error *error) MUST_CHECK;

#endif
