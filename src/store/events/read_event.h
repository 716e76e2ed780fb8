/* Reading rows of `events`, shared by the files of src/store alone. */
#ifndef STORE_READ_EVENT_H
#define STORE_READ_EVENT_H

#include "store/internal.h"

#define READ_EVENT_COLUMNS                                                                         \
	"events.event, client_ref, received_at, occurred_at, hash, config_version, chain_hash, "       \
	"content_object, file_name, content_bytes, key, unpaid_events.number"
/* $1 account, $2 first and $3 last number of events, $4 most rows. */
#define READ_EVENTS(columns)                                                                       \
	"SELECT " columns " FROM events "                                                              \
	"LEFT JOIN unpaid_events ON unpaid_events.event = events.event "                               \
	"AND unpaid_events.account = events.account "                                                  \
	"WHERE events.account = $1 AND events.event BETWEEN $2 AND $3 "                                \
	"ORDER BY events.event LIMIT $4"
#define READ_UNPAID_EVENTS(columns)                                                                \
	"SELECT " columns " FROM unpaid_events "                                                       \
	"JOIN events ON events.event = unpaid_events.event "                                           \
	"AND events.account = unpaid_events.account "                                                  \
	"WHERE unpaid_events.account = $1 AND unpaid_events.event BETWEEN $2 AND $3 "                  \
	"ORDER BY unpaid_events.event LIMIT $4"

/* event->channel_id and event->mode are filled already; slices live until the next step. */
void read_event_row(struct db_query *query, bool with_content, struct event *event);
/* A whole event, copied into the arena, with its status and timestamp as they stand. */
int read_event(struct db_connection *connection, int64_t account, int64_t chain, int64_t sequence,
               struct arena *arena, struct event *ret, struct error *error) MUST_CHECK;

#endif
