#include "store/check/inspect.h"

#include <stdio.h>

#include "base/tuned.h"
#include "store/shards/shard_routing.h"
#include "store/transaction.h"

/* ---- certifications ---- */

#define BY_CERTIFICATION ROUTING_PLACE("certifications", "certification_id")

int store_locate_certification(struct store *store, struct slice certification_id,
                               int64_t *ret_account, int64_t *ret_chain, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {
		.query = routing_query_one(
			connection, BY_CERTIFICATION, certification_id,
			ROUTING_TEXTS("SELECT account, chain FROM certifications WHERE certification_id = $1",
	                      ""))};
	bool found = db_step(row.query);
	if (found) {
		*ret_account = db_integer(row.query, 0);
		*ret_chain = db_integer(row.query, 1);
	}
	return end_read(connection,
	                row_end(&row, found, MSG_STORE_NO_CERTIFICATION, certification_id, error));
}

#define RETRIED(now, of)                                                                           \
	"SELECT account, certification, status, lease IS NOT NULL AND next_attempt_at > " now          \
	" FROM certifications WHERE certification_id = $1" of

static int retry_certification(struct db_connection *connection, struct slice certification_id,
                               int64_t now_us, struct error *error)
{
	struct row row = {
		.query = routing_query_one(
			connection, BY_CERTIFICATION, certification_id,
			(struct routing_texts){RETRIED("$2", ""), RETRIED("$3", " AND account = $2")})};
	db_bind_integer(row.query, now_us);
	bool found = db_step(row.query);
	int64_t account = 0, certification = 0;
	bool over = false, leased = false;
	if (found) {
		account = db_integer(row.query, 0);
		certification = db_integer(row.query, 1);
		over = !slice_is(db_text(row.query, 2), "processing");
		leased = db_integer(row.query, 3) != 0;
	}
	int result = row_end(&row, found, MSG_STORE_NO_CERTIFICATION, certification_id, error);
	if (result)
		return result;
	if (over || leased)
		return error_set(error, ERR_REFUSED,
		                 over ? MSG_STORE_CERTIFICATION_OVER : MSG_STORE_CERTIFICATION_BUSY, NULL);
	/* The pause after the earlier failures is cancelled, so they are no longer counted. */
	struct db_query *query =
		db_query(connection, "UPDATE certifications SET next_attempt_at = $3, own_failures = 0"
	                         " WHERE account = $1 AND certification = $2");
	db_bind(query, account, certification, now_us);
	return db_execute(query, NULL, error);
}

int store_retry_certification(struct store *store, struct slice certification_id, int64_t now_us,
                              struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	now_us = due_at_once_us(connection, now_us);
	return end_write(connection, retry_certification(connection, certification_id, now_us, error),
	                 error);
}

/* ---- segments ---- */

#define SEGMENT_COLUMNS                                                                            \
	"SELECT s.segment_id, c.channel_id, s.number, s.first_sequence, s.last_sequence, s.round,"     \
	" r.authority, r.kind, r.sealed_at"
#define SEGMENT_SOURCE                                                                             \
	" FROM segments s JOIN seal_rounds r ON r.round = s.round"                                     \
	" JOIN channels c ON c.account = s.account AND c.channel = s.chain / 2"

static const struct member segment_columns[] =
	COLUMNS_OF(struct segment_summary, segment_id, channel_id, number, first_sequence,
               last_sequence, round, authority, kind, sealed_at_us);
static const struct row_type segment_type = ROW_TYPE(struct segment_summary, segment_columns, NULL);

int store_list_segments(struct store *store, struct slice channel_id, int64_t before, int64_t limit,
                        struct arena *arena, struct segment_list *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	int64_t account = 0, channel = 0;
	int result = find_channel_number(connection, channel_id, &account, &channel, error);
	if (result)
		return end_read(connection, result);
	struct row row = {.arena = arena,
	                  .query = db_query(connection, SEGMENT_COLUMNS SEGMENT_SOURCE
	                                    " WHERE s.account = $1 AND s.chain = $2 AND s.number < $3"
	                                    " ORDER BY s.number DESC LIMIT $4")};
	db_bind(row.query, account, chain_number(channel, MODE_LIVE), before ? before : INT64_MAX,
	        limit + 1);
	struct segment_list list = {0};
	result = end_read(connection, row_list(&row, &segment_type, LIST_OF(&list), limit, error));
	if (!result)
		*ret = list;
	return result;
}

int store_inspect_segment(struct store *store, struct slice segment_id, struct arena *arena,
                          struct segment_summary *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {
		.arena = arena,
		.query = routing_query_one(connection, ROUTING_PLACE("segments", "segment_id"), segment_id,
	                               ROUTING_TEXTS(SEGMENT_COLUMNS ", s.document" SEGMENT_SOURCE
	                                                             " WHERE s.segment_id = $1",
	                                             "s."))};
	struct segment_summary summary;
	bool found = db_step(row.query);
	if (found) {
		row_read(&row, &segment_type, 0, &summary);
		summary.document = row_string(&row, 9);
	}
	int result =
		end_read(connection, row_end(&row, found, MSG_STORE_NO_SEGMENT, segment_id, error));
	if (!result)
		*ret = summary;
	return result;
}

/* ---- named objects ---- */

#define OBJECT_PAGE 500
#define OBJECT_PAGE_MEMORY_MAX ((size_t)1 << 20)

struct object_page {
	struct arena arena;
	struct named_object *items;
	size_t count;
	int64_t most;
	bool more;
	/* Start of the next page. */
	int64_t account;
	int64_t number; /* of an event or a certification */
	const char *name;
};

static struct db_query *page_query(struct db_connection *connection, enum object_source source,
                                   const struct object_page *page, const char *after_name)
{
	struct db_query *query;
	if (source == OBJECTS_OF_EVENTS) {
		query =
			db_query(connection,
		             "SELECT account, event, content_object, content_object, content_bytes, hash,"
		             " NULL, NULL, NULL FROM events WHERE content_object > $1"
		             " ORDER BY content_object LIMIT $2");
	} else {
		query =
			db_query(connection,
		             "SELECT i.account, i.certification, i.name, i.object, i.size_bytes,"
		             " i.sha256, c.certification_id, i.shared_object, i.pieces FROM issued_files i"
		             " JOIN certifications c ON c.account = i.account"
		             " AND c.certification = i.certification"
		             " WHERE (i.account, i.certification, i.name) > ($1, $2, $3)"
		             " ORDER BY i.account, i.certification, i.name LIMIT $4");
		db_bind(query, page->account, page->number);
	}
	db_bind(query, after_name, page->most + 1);
	return query;
}

static int read_page(struct store *store, enum object_source source, struct object_page *page,
                     struct error *error)
{
	char after_name[256];
	snprintf(after_name, sizeof after_name, "%s", page->name ? page->name : "");
	arena_reset(&page->arena);
	page->items = NULL;
	page->count = 0;
	page->more = false;
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {.arena = &page->arena,
	                  .query = page_query(connection, source, page, after_name)};
	struct named_object *item;
	while (!row.failed && db_step(row.query) &&
	       (item = list_add(&row, &page->items, &page->count, &page->more, page->most,
	                        sizeof *item))) {
		page->account = db_integer(row.query, 0);
		page->number = db_integer(row.query, 1);
		page->name = row_string(&row, 2);
		*item = (struct named_object){.name = row_string(&row, 3),
		                              .owner = row_string(&row, 6),
		                              .size_bytes = db_integer(row.query, 4),
		                              .sha256 = store_sha256(db_blob(row.query, 5)),
		                              .shared = row_string(&row, 7),
		                              .pieces = row_string(&row, 8)};
	}
	return end_read(connection, row_end(&row, true, MSG_NONE, slice_of(""), error));
}

int store_list_objects(struct store *store, enum object_source source,
                       int (*each)(void *context, const struct named_object *object), void *context,
                       struct error *error)
{
	struct object_page page = {.more = true, .most = tuned_up_to("objects_listed", OBJECT_PAGE)};
	arena_init(&page.arena, OBJECT_PAGE_MEMORY_MAX);
	int result = OK;
	while (!result && page.more) {
		result = read_page(store, source, &page, error);
		for (size_t i = 0; !result && i < page.count; i++)
			result = each(context, &page.items[i]);
	}
	arena_free(&page.arena);
	return result;
}
