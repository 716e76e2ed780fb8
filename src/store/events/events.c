/* Reading of events, chain heads and balances. */
#include "base/tuned.h"
#include "store/events/digest_index.h"
#include "store/events/event_row.h"
#include "store/events/register_batch.h"

/* Streams are read in batches, each with a connection of its own, so that no long read prevents a
 * reset of the engine's log. Events never change, so the batches are consistent. */
#define BATCH_EVENTS 2000
/* Events that are looked up by a digest at once, and that are examined for one list. */
#define DIGESTS_AT_ONCE 128
#define DIGESTS_EXAMINED 256

static int get_channel_of_chain(struct db_connection *connection, int64_t account, int64_t chain,
                                struct event *ret, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT channel_id FROM channels WHERE account = $1 AND channel = $2");
	db_bind(query, account, chain / 2);
	bool found = db_step(query);
	if (found)
		store_copy_id(ret->channel_id, db_text(query, 0));
	ret->mode = chain % 2 ? MODE_TEST : MODE_LIVE;
	int result = db_end(query, error);
	return result ? result : found ? OK : ERR_NOT_FOUND;
}

#define READ_EVENT_COLUMNS "events.event, unpaid_events.number" EVENT_COLUMN_NAMES
#define CONTENT_INDEX (2 + (int)EVENT_COLUMN_COUNT) /* of `content` after them */
/* $1 account, $2 first and $3 last event number, $4 maximum number of rows; order: "" or "
 * DESC". */
#define READ_EVENTS(columns, order)                                                                \
	"SELECT " columns " FROM events "                                                              \
	"LEFT JOIN unpaid_events ON unpaid_events.event = events.event "                               \
	"AND unpaid_events.account = events.account "                                                  \
	"WHERE events.account = $1 AND events.event BETWEEN $2 AND $3 "                                \
	"ORDER BY events.event" order " LIMIT $4"
#define READ_UNPAID_EVENTS(columns, order)                                                         \
	"SELECT " columns " FROM unpaid_events "                                                       \
	"JOIN events ON events.event = unpaid_events.event "                                           \
	"AND events.account = unpaid_events.account "                                                  \
	"WHERE unpaid_events.account = $1 AND unpaid_events.event BETWEEN $2 AND $3 "                  \
	"ORDER BY unpaid_events.event" order " LIMIT $4"

/* The caller sets event->channel_id and event->mode. Slices are valid until the next step. */
static void read_event_row(struct db_query *query, bool with_content, struct event *event)
{
	struct declaration *declared = &event->declaration;
	event->sequence = db_integer(query, 0) & EVENT_SEQUENCE_MAX;
	event->status = event->mode == MODE_TEST ? STATUS_TEST
	                : db_is_null(query, 1)   ? STATUS_REGISTERED
	                                         : STATUS_UNPAID;
	event_row_read(query, 2, event);
	declared->modality = event->content_bytes < 0 ? MODALITY_HASH_ONLY : MODALITY_CONTENT;
	event->content = with_content ? db_blob(query, CONTENT_INDEX) : slice_make("", 0);
	event_id_make(event->channel_id, event->mode, event->sequence, event->event_id);
}

struct event_facts event_facts_of(const struct event *event, const struct sha256 *config_hash,
                                  const struct sha256 *previous_chain_hash)
{
	return (struct event_facts){
		.channel_id = event->channel_id,
		.chain = event->mode,
		.sequence = event->sequence,
		.event_id = slice_of(event->event_id),
		.declaration = event->declaration,
		.received_at_us = event->received_at_us,
		.config_version = event->config_version,
		.config_hash = *config_hash,
		.previous_chain_hash = *previous_chain_hash,
	};
}

/* ---- the segment of an event, cached while events are read in order ---- */

struct cover {
	struct db_connection *connection;
	int64_t account;
	int64_t chain;
	int64_t first, last; /* of the cached segment; last 0: none */
	int64_t sealed_sequence;
	int64_t sealed_at_us;
	bool is_logged;
	char segment_id[ID_SIZE];
};

static void cover_begin(struct cover *cover, struct db_connection *connection, int64_t account,
                        int64_t chain)
{
	*cover = (struct cover){.connection = connection, .account = account, .chain = chain};
	struct db_query *query = db_query(
		connection,
		"SELECT " SEALED_SEQUENCE("chains") " FROM chains WHERE account = $1 AND chain = $2");
	db_bind(query, account, chain);
	if (db_step(query))
		cover->sealed_sequence = db_integer(query, 0);
	db_release(query);
}

static void cover_event(struct cover *cover, struct event *event)
{
	event->segment_id[0] = '\0';
	event->sealed_at_us = TIME_NONE;
	event->is_logged = false;
	if (event->sequence > cover->sealed_sequence)
		return;
	if (event->sequence < cover->first || event->sequence > cover->last) {
		struct db_query *query = db_query(
			cover->connection,
			"SELECT segments.segment_id, first_sequence, last_sequence, sealed_at, log_size "
			"FROM segments JOIN seal_rounds ON seal_rounds.round = segments.round "
			"WHERE account = $1 AND chain = $2 AND first_sequence <= $3 "
			"ORDER BY first_sequence DESC LIMIT 1");
		db_bind(query, cover->account, cover->chain, event->sequence);
		if (db_step(query)) {
			store_copy_id(cover->segment_id, db_text(query, 0));
			cover->first = db_integer(query, 1);
			cover->last = db_integer(query, 2);
			cover->sealed_at_us = db_integer(query, 3);
			cover->is_logged = !db_is_null(query, 4);
		}
		db_release(query);
	}
	if (event->sequence >= cover->first && event->sequence <= cover->last) {
		memcpy(event->segment_id, cover->segment_id, ID_SIZE);
		event->sealed_at_us = cover->sealed_at_us;
		event->is_logged = cover->is_logged;
	}
}

/* ---- lists ---- */

struct listing {
	int64_t account;
	int64_t chain;
	const struct event_filter *filter;
	bool with_content;
	int (*each)(void *context, const struct event *event);
	void *context;
	int64_t first, last; /* sequences to read; none when last < first */
	int64_t left;        /* number of events still to return */
	int64_t batch_max;
};

/* A filter for unpaid events uses their index. */
static struct db_query *batch_query(struct db_connection *connection, const struct listing *listing,
                                    int64_t count)
{
	static const char *const queries[2][2][2] = {
		{{READ_EVENTS(READ_EVENT_COLUMNS, ""), READ_EVENTS(READ_EVENT_COLUMNS, " DESC")},
	     {READ_EVENTS(READ_EVENT_COLUMNS ", content", ""),
	      READ_EVENTS(READ_EVENT_COLUMNS ", content", " DESC")}},
		{{READ_UNPAID_EVENTS(READ_EVENT_COLUMNS, ""),
	      READ_UNPAID_EVENTS(READ_EVENT_COLUMNS, " DESC")},
	     {READ_UNPAID_EVENTS(READ_EVENT_COLUMNS ", content", ""),
	      READ_UNPAID_EVENTS(READ_EVENT_COLUMNS ", content", " DESC")}},
	};
	const struct event_filter *filter = listing->filter;
	struct db_query *query = db_query(
		connection, queries[filter->status == STATUS_UNPAID][listing->with_content][filter->order]);
	db_bind(query, listing->account, event_number(listing->chain, listing->first),
	        event_number(listing->chain, listing->last), count);
	return query;
}

static bool filter_passes(const struct event_filter *filter, const struct event *event)
{
	return (filter->status < 0 || (int)event->status == filter->status) &&
	       (filter->from_us == TIME_NONE || event->received_at_us >= filter->from_us) &&
	       (filter->to_us == TIME_NONE || event->received_at_us < filter->to_us);
}

/* Reads one batch; *ret_more is false when the last requested event was reached. */
static int list_batch(struct db_connection *connection, struct listing *listing, bool *ret_more,
                      struct error *error)
{
	struct event event = {0};
	int result = get_channel_of_chain(connection, listing->account, listing->chain, &event, error);
	if (result)
		return result;
	struct cover cover;
	cover_begin(&cover, connection, listing->account, listing->chain);
	int64_t wanted = listing->left < listing->batch_max ? listing->left : listing->batch_max;
	struct db_query *query = batch_query(connection, listing, wanted);
	int64_t seen = 0;
	int answer = 0;
	while (answer == 0 && listing->left > 0 && db_step(query)) {
		read_event_row(query, listing->with_content, &event);
		seen++;
		if (listing->filter->order == ORDER_ASCENDING)
			listing->first = event.sequence + 1;
		else
			listing->last = event.sequence - 1;
		if (!filter_passes(listing->filter, &event))
			continue;
		cover_event(&cover, &event);
		listing->left--;
		answer = listing->each(listing->context, &event);
	}
	result = db_end(query, error);
	*ret_more = seen == wanted;
	return result ? result : answer;
}

static void narrow(struct listing *listing, int64_t first, int64_t last)
{
	if (listing->first < first)
		listing->first = first;
	if (listing->last > last)
		listing->last = last;
}

/* Converts time bounds to sequence bounds, because received_at never decreases along a chain. */
static int bound_by_times(struct store *store, struct listing *listing, struct error *error)
{
	const struct event_filter *filter = listing->filter;
	if (filter->from_us == TIME_NONE && filter->to_us == TIME_NONE)
		return OK;
	int64_t first;
	int64_t last;
	int result = store_resolve_times(store, listing->account, listing->chain,
	                                 filter->from_us == TIME_NONE ? INT64_MIN + 1 : filter->from_us,
	                                 filter->to_us == TIME_NONE ? INT64_MAX : filter->to_us, &first,
	                                 &last, error);
	if (result)
		return result;
	narrow(listing, first, last);
	return OK;
}

/* At most one event has the client_ref. */
static int bound_by_client_ref(struct store *store, struct listing *listing, struct error *error)
{
	int64_t sequence;
	if (!listing->filter->client_ref.data)
		return OK;
	int result = store->register_engine->look_up(store, listing->account, listing->chain,
	                                             listing->filter->client_ref, &sequence, error);
	if (!result)
		narrow(listing, sequence, sequence ? sequence : -1);
	return result;
}

/* Reads the events of consecutive sequences. */
static int list_between(struct store *store, struct listing *listing, int64_t first, int64_t last,
                        struct error *error)
{
	struct listing part = *listing;
	bool more = true;
	int result = OK;
	part.first = first;
	part.last = last;
	while (!result && more && part.left > 0 && part.first <= part.last) {
		struct db_connection *reader = db_take_reader(store->db);
		result = db_begin(reader, error);
		if (!result)
			result = list_batch(reader, &part, &more, error);
		db_give(reader);
	}
	listing->left = part.left;
	return result;
}

/* Lists the events of sequences that were found, in the order. */
static int list_found(struct store *store, struct listing *listing, const int64_t *sequences,
                      size_t count, struct error *error)
{
	int64_t step = listing->filter->order == ORDER_ASCENDING ? 1 : -1;
	int result = OK;
	for (size_t i = 0; i < count && listing->left > 0 && !result;) {
		size_t end = i + 1;
		while (end < count && sequences[end] == sequences[end - 1] + step)
			end++;
		int64_t first = step > 0 ? sequences[i] : sequences[end - 1];
		int64_t last = step > 0 ? sequences[end - 1] : sequences[i];
		result = list_between(store, listing, first, last, error);
		i = end;
	}
	return result;
}

/* Lists the events with the digest. With a filter that many of them do not pass it ends early. */
static int list_by_digest(struct store *store, struct listing *listing, struct error *error)
{
	int64_t sequences[DIGESTS_AT_ONCE];
	int64_t examined = 0;
	size_t count = DIGESTS_AT_ONCE;
	int result = OK;
	while (!result && listing->left > 0 && count == DIGESTS_AT_ONCE &&
	       listing->first <= listing->last) {
		if (listing->filter->ret_stopped_at && examined >= DIGESTS_EXAMINED) {
			*listing->filter->ret_stopped_at = sequences[count - 1];
			return OK;
		}
		const struct digest_lookup lookup = {
			.account = listing->account,
			.chain = listing->chain,
			.digest = (const uint8_t *)listing->filter->digest.data,
			.digest_size = listing->filter->digest.size,
			.first = listing->first,
			.last = listing->last,
			.order = listing->filter->order,
			.max = DIGESTS_AT_ONCE,
		};
		result = store_find_digest(store, &lookup, sequences, &count, error);
		if (result || count == 0)
			return result;
		result = list_found(store, listing, sequences, count, error);
		examined += (int64_t)count;
		if (lookup.order == ORDER_ASCENDING)
			listing->first = sequences[count - 1] + 1;
		else
			listing->last = sequences[count - 1] - 1;
	}
	return result;
}

int store_list_events(struct store *store, int64_t account, int64_t chain,
                      const struct event_filter *filter, int64_t limit, bool with_content,
                      int (*each)(void *context, const struct event *event), void *context,
                      struct error *error)
{
	struct listing listing = {
		.account = account,
		.chain = chain,
		.filter = filter,
		.with_content = with_content,
		.each = each,
		.context = context,
		.first = filter->seq_from > 0 ? filter->seq_from : 1,
		.last = filter->seq_to > 0 ? filter->seq_to : EVENT_SEQUENCE_MAX,
		.left = limit > 0 ? limit : INT64_MAX,
		.batch_max = tuned_up_to("events_listed", BATCH_EVENTS),
	};
	bool test = chain % 2;
	if (filter->status >= 0 && test != (filter->status == STATUS_TEST))
		return OK;
	narrow(&listing, 1, EVENT_SEQUENCE_MAX);
	if (filter->past > 0 && filter->order == ORDER_ASCENDING)
		narrow(&listing, filter->past + 1, EVENT_SEQUENCE_MAX);
	else if (filter->past > 0)
		narrow(&listing, 1, filter->past - 1);
	int result = bound_by_client_ref(store, &listing, error);
	if (!result)
		result = bound_by_times(store, &listing, error);
	if (result || listing.first > listing.last)
		return result;
	return filter->digest.data ? list_by_digest(store, &listing, error)
	                           : list_between(store, &listing, listing.first, listing.last, error);
}

/* ---- single rows ---- */

static int keep(struct arena *arena, struct event *event)
{
	event->content.data = arena_copy(arena, event->content.data, event->content.size);
	return event->content.data ? event_row_keep(arena, event) : ERR_NO_MEMORY;
}

int store_read_event(struct db_connection *connection, int64_t account, int64_t chain,
                     int64_t sequence, bool with_content, struct arena *arena, struct event *ret,
                     struct error *error)
{
	struct event event = {0};
	int result = get_channel_of_chain(connection, account, chain, &event, error);
	if (result)
		return result;
	if (sequence < 1 || sequence > EVENT_SEQUENCE_MAX)
		return ERR_NOT_FOUND;
	struct db_query *query =
		db_query(connection, with_content ? READ_EVENTS(READ_EVENT_COLUMNS ", content", "")
	                                      : READ_EVENTS(READ_EVENT_COLUMNS, ""));
	db_bind(query, account, event_number(chain, sequence), event_number(chain, sequence), 1);
	bool found = db_step(query);
	if (found) {
		read_event_row(query, with_content, &event);
		result = keep(arena, &event);
	}
	int ended = db_end(query, error);
	if (ended || result)
		return ended ? ended : result;
	if (!found)
		return ERR_NOT_FOUND;
	struct db_connection *unsharded =
		db_side_connection(connection); /* rounds belong to no account */
	struct cover cover;
	cover_begin(&cover, unsharded, account, chain);
	cover_event(&cover, &event);
	if (db_failure(unsharded))
		result = db_get_failure(unsharded, error);
	if (!result)
		*ret = event;
	return result;
}

int store_get_event(struct store *store, int64_t account, int64_t chain, int64_t sequence,
                    struct arena *arena, struct event *ret, struct error *error)
{
	struct db_connection *reader = db_take_reader(store->db);
	int result = db_begin(reader, error);
	if (!result)
		result = store_read_event(reader, account, chain, sequence, true, arena, ret, error);
	db_give(reader);
	return result;
}

int store_get_chain(struct store *store, int64_t account, int64_t chain, struct chain_head *ret,
                    struct error *error)
{
	struct db_connection *reader = db_take_reader(store->db);
	struct db_query *query =
		db_query(reader, "SELECT created_at, genesis_hash, last_sequence, last_received_at, "
	                     "last_chain_hash, " SEALED_SEQUENCE(
							 "chains") " FROM chains WHERE account = $1 AND chain = $2");
	db_bind(query, account, chain);
	bool found = db_step(query);
	if (found)
		*ret = (struct chain_head){
			.created_at_us = db_integer(query, 0),
			.genesis_hash = store_sha256(db_blob(query, 1)),
			.last_sequence = db_integer(query, 2),
			.last_received_at_us = db_integer(query, 3),
			.last_chain_hash = store_sha256(db_blob(query, 4)),
			.sealed_sequence = db_integer(query, 5),
		};
	int result = db_end(query, error);
	db_give(reader);
	return result ? result : found ? OK : ERR_NOT_FOUND;
}

int store_get_chain_hash(struct store *store, int64_t account, int64_t chain, int64_t sequence,
                         struct sha256 *ret, struct error *error)
{
	struct db_connection *reader = db_take_reader(store->db);
	struct db_query *query =
		sequence == 0
			? db_query(reader, "SELECT genesis_hash FROM chains WHERE account = $1 AND chain = $2")
			: db_query(reader, "SELECT chain_hash FROM events WHERE account = $1 AND event = $2");
	db_bind(query, account, sequence == 0 ? chain : event_number(chain, sequence));
	bool found = db_step(query);
	if (found)
		*ret = store_sha256(db_blob(query, 0));
	int result = db_end(query, error);
	db_give(reader);
	return result ? result : found ? OK : ERR_NOT_FOUND;
}

/* Returns the first sequence whose received_at is at least `time_us`, or `last + 1`. Binary search,
 * because received_at never decreases along a chain. */
static int64_t first_received_from(struct db_connection *connection, int64_t account, int64_t chain,
                                   int64_t last, int64_t time_us)
{
	int64_t low = 1;
	int64_t high = last + 1;
	while (low < high) {
		int64_t middle = low + (high - low) / 2;
		struct db_query *query = db_query(
			connection, "SELECT received_at FROM events WHERE account = $1 AND event = $2");
		db_bind(query, account, event_number(chain, middle));
		bool before = db_step(query) && db_integer(query, 0) < time_us;
		if (db_end(query, NULL))
			return last + 1;
		if (before)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int store_resolve_times(struct store *store, int64_t account, int64_t chain, int64_t from_us,
                        int64_t to_us, int64_t *ret_first, int64_t *ret_last, struct error *error)
{
	struct chain_head head;
	int result = store_get_chain(store, account, chain, &head, error);
	if (result)
		return result;
	struct db_connection *reader = db_take_reader(store->db);
	result = db_begin(reader, error);
	if (!result) {
		*ret_first = first_received_from(reader, account, chain, head.last_sequence, from_us);
		*ret_last = first_received_from(reader, account, chain, head.last_sequence, to_us) - 1;
		result = db_failure(reader);
	}
	db_give(reader);
	return result;
}

int store_get_balance(struct store *store, int64_t account, struct balance *ret,
                      struct error *error)
{
	struct db_connection *reader = db_take_reader(store->db);
	struct db_query *query =
		db_query(reader, "SELECT balance, unpaid_events FROM accounts WHERE account = $1");
	db_bind_integer(query, account);
	bool found = db_step(query);
	if (found)
		*ret = (struct balance){db_integer(query, 0), db_integer(query, 1)};
	int result = db_end(query, error);
	db_give(reader);
	return result ? result : found ? OK : ERR_NOT_FOUND;
}
