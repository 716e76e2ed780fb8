#include "store/certifications/certifications.h"

#include <inttypes.h>
#include <stdio.h>

#include "store/certifications/read_certification.h"

static const char *const status_texts[] = {"processing", "completed", "failed"};

const char *certification_status_text(enum certification_status status)
{
	return status_texts[status];
}

bool certification_status_parse(struct slice text, enum certification_status *ret_status)
{
	for (size_t i = 0; i < sizeof status_texts / sizeof *status_texts; i++) {
		if (slice_is(text, status_texts[i])) {
			*ret_status = (enum certification_status)i;
			return true;
		}
	}
	return false;
}

/* ---- rows ---- */

static const struct member columns[] =
	COLUMNS_OF(struct certification, account, channel, chain, certification, key, certification_id,
               channel_id, status, progress_permille, requested_at_us, completed_at_us, language,
               range.from_us, range.to_us, range.seq_from, range.seq_to, first_sequence,
               last_sequence, config_versions, fee, verification_code, incident_id, attempts,
               last_error, next_attempt_at_us, own_failures, worked_on, fails, seal_history);

static void complete(struct row *row, void *to)
{
	struct certification *certification = to;
	struct slice language = db_text(row->query, 11);
	certification->mode = certification->chain % 2 ? MODE_TEST : MODE_LIVE;
	certification->language = slice_is(language, "es") ? LANGUAGE_SPANISH : LANGUAGE_ENGLISH;
	row_expect(row, certification_status_parse(db_text(row->query, 7), &certification->status),
	           "status", 7, certification->certification_id);
	row_expect(row, slice_is(language, "es") || slice_is(language, "en"), "language", 11,
	           certification->certification_id);
}

const struct row_type certification_type = ROW_TYPE(struct certification, columns, complete);

int read_certification(struct row *row, struct certification *ret, struct error *error)
{
	struct certification certification;
	bool found = db_step(row->query);
	if (found)
		row_read(row, &certification_type, 0, &certification);
	int result = row_result(row, found, error);
	if (!result)
		*ret = certification;
	return result;
}

int store_find_certification(struct store *store, int64_t account, int64_t chain, struct slice id,
                             struct arena *arena, struct certification *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {.arena = arena,
	                  .query = db_query(connection,
	                                    CERTIFICATIONS " WHERE c.account = $1 AND c.chain = $2"
	                                                   " AND c.certification_id = $3")};
	db_bind(row.query, account, chain, id);
	return end_read(connection, read_certification(&row, ret, error));
}

#define LIST_CERTIFICATIONS(behind, order)                                                         \
	CERTIFICATIONS " WHERE c.account = $1 AND c.chain = $2 AND c.certification " behind            \
				   " $3 AND ($4 = '' OR c.status = $4) ORDER BY c.certification" order " LIMIT $5"

int store_list_certifications(struct store *store, int64_t account, int64_t chain, int status,
                              const struct list_page *page, struct arena *arena,
                              struct certification **ret_items, size_t *ret_count, bool *ret_more,
                              struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	static const char *const queries[] = {
		[ORDER_ASCENDING] = LIST_CERTIFICATIONS(">", ""),
		[ORDER_DESCENDING] = LIST_CERTIFICATIONS("<", " DESC"),
	};
	struct row row = {.arena = arena, .query = db_query(connection, queries[page->order])};
	int64_t before_all = page->order == ORDER_ASCENDING ? 0 : INT64_MAX;
	db_bind(row.query, account, chain, page->past ? page->past : before_all,
	        status < 0 ? "" : status_texts[status], page->limit + 1);
	struct certification *items = NULL;
	size_t count = 0;
	bool more = false;
	int result = end_read(
		connection, row_list(&row, &certification_type, &items, &count, &more, page->limit, error));
	if (result)
		return result;
	*ret_items = items;
	*ret_count = count;
	*ret_more = more;
	return OK;
}

/* ---- configuration versions of a range ---- */

static int64_t config_version_at(struct db_connection *connection, int64_t account, int64_t chain,
                                 int64_t sequence)
{
	struct db_query *query =
		db_query(connection, "SELECT config_version FROM events WHERE account = $1 AND event = $2");
	db_bind(query, account, event_number(chain, sequence));
	int64_t version = db_step(query) ? db_integer(query, 0) : 0;
	db_release(query);
	return version;
}

/* Returns the first event after `sequence` with a later version, or `last + 1` when there is none.
 * Binary search, because versions never decrease along a chain. */
static int64_t next_version_at(struct db_connection *connection, int64_t account, int64_t chain,
                               int64_t sequence, int64_t version, int64_t last)
{
	int64_t low = sequence + 1;
	int64_t high = last + 1;
	while (low < high) {
		int64_t middle = low + (high - low) / 2;
		if (config_version_at(connection, account, chain, middle) > version)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

int store_list_config_versions(struct store *store, int64_t account, int64_t chain, int64_t first,
                               int64_t last, size_t limit, int64_t *ret_versions, size_t *ret_count,
                               struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	int result = OK;
	size_t count = 0;
	int64_t highest = config_version_at(connection, account, chain, last);
	for (int64_t at = first; at <= last && !db_failure(connection);) {
		if (count == limit) {
			result = error_cause(error, ERR_TOO_LARGE,
			                     "the range has more than %zu configuration versions", limit);
			break;
		}
		int64_t version = config_version_at(connection, account, chain, at);
		ret_versions[count++] = version;
		at = version == highest ? last + 1
		                        : next_version_at(connection, account, chain, at, version, last);
	}
	if (!result && db_failure(connection))
		result = db_get_failure(connection, error);
	result = end_read(connection, result);
	if (!result)
		*ret_count = count;
	return result;
}

int store_sum_content(struct store *store, int64_t account, int64_t chain, int64_t first,
                      int64_t last, int64_t *ret_bytes, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		db_query(connection, "SELECT COALESCE(SUM(content_bytes), 0) FROM events"
	                         " WHERE account = $1 AND event BETWEEN $2 AND $3");
	db_bind(query, account, event_number(chain, first), event_number(chain, last));
	int64_t bytes = db_step(query) ? db_integer(query, 0) : 0;
	int result = end_read(connection, db_end(query, error));
	if (!result)
		*ret_bytes = bytes;
	return result;
}

static int64_t day_received(struct db_connection *connection, int64_t account, int64_t chain,
                            int64_t sequence)
{
	struct db_query *query =
		db_query(connection, "SELECT received_at FROM events WHERE account = $1 AND event = $2");
	db_bind(query, account, event_number(chain, sequence));
	int64_t day = db_step(query) ? time_day(db_integer(query, 0)) : 0;
	db_release(query);
	return day;
}

int store_estimate_content(struct store *store, int64_t account, int64_t chain, int64_t first,
                           int64_t last, struct content_estimate *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	int64_t count = last - first + 1;
	int64_t events = 0, bytes = 0;
	int64_t first_day = day_received(connection, account, chain, first);
	int64_t last_day = day_received(connection, account, chain, last);
	struct db_query *query =
		db_query(connection,
	             "SELECT COALESCE(SUM(events), 0), COALESCE(SUM(content_bytes), 0)"
	             " FROM daily_usage WHERE account = $1 AND chain = $2 AND day BETWEEN $3 AND $4");
	db_bind(query, account, chain, first_day, last_day);
	if (db_step(query)) {
		events = db_integer(query, 0);
		bytes = db_integer(query, 1);
	}
	int result = end_read(connection, db_end(query, error));
	if (result)
		return result;
	*ret = (struct content_estimate){bytes, bytes, events == count};
	if (events > count)
		ret->bytes = (int64_t)((double)bytes * (double)count / (double)events);
	return OK;
}
