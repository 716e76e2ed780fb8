/* What the page of a channel shows: its figures, and what each sealed version changed. */
#ifndef CONSOLE_CHANNELS_H
#define CONSOLE_CHANNELS_H

#include "console/visit.h"

/* Of the channel of the path: "channel", as `channel show` has it without its versions; "current",
 * the newest version; "versions", newest first, below number `before` of the query where it has
 * one, each with "changes": the fields that differ from the version before it, with both; of the
 * first version all that it has. "older" is the number below which the page before begins. */
int channel_page(struct visit *visit, struct json_writer *data) MUST_CHECK;
/* That of the query, or the account's first; empty: it has none. */
int choose_channel(struct visit *visit, struct slice *ret_channel) MUST_CHECK;

#endif
