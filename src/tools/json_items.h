/* The source text of the elements of an array, byte by byte as it was received, for what is signed
 * or stored unchanged. Pure. */
#ifndef TOOLS_JSON_ITEMS_H
#define TOOLS_JSON_ITEMS_H

#include "base/buf.h"
#include "base/must_check.h"

/* Passes each element of the array in the member `member` of an object. `text` must be JSON that
 * json_parse has accepted. A result other than 0 of `take` stops and is returned. */
int json_items(struct slice text, const char *member, int (*take)(void *context, struct slice item),
               void *context) MUST_CHECK;

#endif
