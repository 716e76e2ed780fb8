/* Samples of notices, with which developers try their receivers. */
#ifndef SERVICE_NOTICE_SAMPLE_H
#define SERVICE_NOTICE_SAMPLE_H

#include "base/buf.h"
#include "ledger/ledger.h"

#define NOTICE_SAMPLE_MAX 1024 /* bytes of JSON */

/* Finds a type by its name. Returns false if there is none. */
bool notice_sample_find_type(struct slice name, enum notice_type *ret_type) MUST_CHECK;
/* Appends the names of all types, separated by ", ". */
void notice_sample_list_types(struct buf *out);
/* Appends the sample data of a type, a JSON object that names the channel. */
void notice_sample_write(enum notice_type type, const char *channel_id, struct buf *out);

#endif
