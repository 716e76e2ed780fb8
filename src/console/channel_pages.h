/* Data of the page of a channel: its figures, and the changes of each sealed version. */
#ifndef CONSOLE_CHANNEL_PAGES_H
#define CONSOLE_CHANNEL_PAGES_H

#include "console/visit.h"

/* For the channel of the path: "channel", the answer of `channel show` without versions; "current",
 * the newest version; "versions", newest first, lower than `before` of the query if present, each
 * with "changes": the fields that differ from the previous version, with both values; for the first
 * version all fields. "older" is the version number below which the next page begins. */
int channel_page(struct visit *visit, struct json_writer *data) MUST_CHECK;
/* Returns the channel of the query, or the first one of the account; empty: the account has
 * none. */
int selected_channel(struct visit *visit, struct slice *ret_channel) MUST_CHECK;

#endif
