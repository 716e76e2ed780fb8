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

static void copy_code(char code[VERIFICATION_CODE_SIZE], struct slice text)
{
	size_t size = text.size < VERIFICATION_CODE_SIZE - 1 ? text.size : VERIFICATION_CODE_SIZE - 1;
	memcpy(code, text.data, size);
	code[size] = '\0';
}

void read_certification_row(struct row *row, struct certification *certification)
{
	struct db_query *query = row->query;
	*certification = (struct certification){
		.account = db_integer(query, 0),
		.channel = db_integer(query, 1),
		.chain = db_integer(query, 2),
		.certification = db_integer(query, 3),
		.key = db_integer(query, 4),
		.mode = db_integer(query, 2) % 2 ? MODE_TEST : MODE_LIVE,
		.progress_permille = db_integer(query, 8),
		.requested_at_us = db_integer(query, 9),
		.completed_at_us = row_time(query, 10),
		.language = slice_is(db_text(query, 11), "es") ? LANGUAGE_SPANISH : LANGUAGE_ENGLISH,
		.range = {.from_us = row_time(query, 12),
	              .to_us = row_time(query, 13),
	              .seq_from = db_integer(query, 14),
	              .seq_to = db_integer(query, 15)},
		.first_sequence = db_integer(query, 16),
		.last_sequence = db_integer(query, 17),
		.config_versions = row_string(row, 18),
		.fee = db_integer(query, 19),
		.attempts = db_integer(query, 22),
		.own_failures = db_integer(query, 25),
		.next_attempt_at_us = db_integer(query, CERTIFICATION_NEXT_ATTEMPT),
		.worked_on = db_integer(query, 26) != 0,
		.last_error = row_string(row, 23),
	};
	store_copy_id(certification->certification_id, db_text(query, 5));
	store_copy_id(certification->channel_id, db_text(query, 6));
	row_expect(row, certification_status_parse(db_text(query, 7), &certification->status), "status",
	           7, certification->certification_id);
	row_expect(row, slice_is(db_text(query, 11), "es") || slice_is(db_text(query, 11), "en"),
	           "language", 11, certification->certification_id);
	copy_code(certification->verification_code, db_text(query, 20));
	store_copy_id(certification->incident_id, db_text(query, 21));
}

int read_certification(struct row *row, struct certification *ret, struct error *error)
{
	struct certification certification;
	bool found = db_step(row->query);
	if (found)
		read_certification_row(row, &certification);
	int result = row_result(row, found, error);
	if (!result)
		*ret = certification;
	return result;
}

int store_find_certification(struct store *store, int64_t account, int64_t chain, struct slice id,
                             struct arena *arena, struct certification *ret, struct error *error)
{
	struct db_connection *connection;
	int result = begin_read(store, &connection, error);
	if (result)
		return result;
	struct row row = {.arena = arena,
	                  .query = db_query(connection,
	                                    CERTIFICATIONS " WHERE c.account = $1 AND c.chain = $2"
	                                                   " AND c.certification_id = $3")};
	db_bind_integer(row.query, account);
	db_bind_integer(row.query, chain);
	db_bind_text(row.query, id);
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
	struct db_connection *connection;
	int result = begin_read(store, &connection, error);
	if (result)
		return result;
	static const char *const queries[] = {
		[ORDER_ASCENDING] = LIST_CERTIFICATIONS(">", ""),
		[ORDER_DESCENDING] = LIST_CERTIFICATIONS("<", " DESC"),
	};
	struct row row = {.arena = arena, .query = db_query(connection, queries[page->order])};
	int64_t before_all = page->order == ORDER_ASCENDING ? 0 : INT64_MAX;
	db_bind_integer(row.query, account);
	db_bind_integer(row.query, chain);
	db_bind_integer(row.query, page->past ? page->past : before_all);
	db_bind_string(row.query, status < 0 ? "" : status_texts[status]);
	db_bind_integer(row.query, page->limit + 1);
	struct certification *items = NULL;
	struct certification *item;
	size_t count = 0;
	bool more = false;
	while (!row.failed && db_step(row.query) &&
	       (item = list_add(&row, &items, &count, &more, page->limit, sizeof *item)))
		read_certification_row(&row, item);
	result = end_read(connection, row_result(&row, true, error));
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
	db_bind_integer(query, account);
	db_bind_integer(query, event_number(chain, sequence));
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
	struct db_connection *connection;
	int result = begin_read(store, &connection, error);
	if (result)
		return result;
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
		result = db_tell_failure(connection, error);
	result = end_read(connection, result);
	if (!result)
		*ret_count = count;
	return result;
}

int store_sum_content(struct store *store, int64_t account, int64_t chain, int64_t first,
                      int64_t last, int64_t *ret_bytes, struct error *error)
{
	struct db_connection *connection;
	int result = begin_read(store, &connection, error);
	if (result)
		return result;
	struct db_query *query =
		db_query(connection, "SELECT COALESCE(SUM(content_bytes), 0) FROM events"
	                         " WHERE account = $1 AND event BETWEEN $2 AND $3");
	db_bind_integer(query, account);
	db_bind_integer(query, event_number(chain, first));
	db_bind_integer(query, event_number(chain, last));
	int64_t bytes = db_step(query) ? db_integer(query, 0) : 0;
	result = end_read(connection, db_end(query, error));
	if (!result)
		*ret_bytes = bytes;
	return result;
}

static int64_t day_received(struct db_connection *connection, int64_t account, int64_t chain,
                            int64_t sequence)
{
	struct db_query *query =
		db_query(connection, "SELECT received_at FROM events WHERE account = $1 AND event = $2");
	db_bind_integer(query, account);
	db_bind_integer(query, event_number(chain, sequence));
	int64_t day = db_step(query) ? time_day(db_integer(query, 0)) : 0;
	db_release(query);
	return day;
}

int store_estimate_content(struct store *store, int64_t account, int64_t chain, int64_t first,
                           int64_t last, struct content_estimate *ret, struct error *error)
{
	struct db_connection *connection;
	int result = begin_read(store, &connection, error);
	if (result)
		return result;
	int64_t count = last - first + 1;
	int64_t events = 0, bytes = 0;
	int64_t first_day = day_received(connection, account, chain, first);
	int64_t last_day = day_received(connection, account, chain, last);
	struct db_query *query =
		db_query(connection,
	             "SELECT COALESCE(SUM(events), 0), COALESCE(SUM(content_bytes), 0)"
	             " FROM daily_usage WHERE account = $1 AND chain = $2 AND day BETWEEN $3 AND $4");
	db_bind_integer(query, account);
	db_bind_integer(query, chain);
	db_bind_integer(query, first_day);
	db_bind_integer(query, last_day);
	if (db_step(query)) {
		events = db_integer(query, 0);
		bytes = db_integer(query, 1);
	}
	result = end_read(connection, db_end(query, error));
	if (result)
		return result;
	*ret = (struct content_estimate){bytes, bytes, events == count};
	if (events > count)
		ret->bytes = (int64_t)((double)bytes * (double)count / (double)events);
	return OK;
}
