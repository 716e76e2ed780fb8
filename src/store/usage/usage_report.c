/* Usage reports: rows by period, account, channel, key and mode, in pages. */
#include "base/tuned.h"
#include "store/usage/usage.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "store/shards/shard_routing.h"
#include "store/transaction.h"

#define CHUNK_ACCOUNTS 100

int64_t usage_credits(const struct usage_counts *counts, enum mode mode)
{
	int64_t paid = mode == MODE_LIVE ? counts->events - counts->unpaid_events : 0;
	return paid + counts->fees - counts->refunds;
}

/* ---- cursor ---- */

/* Numbers; 0 where rows are not grouped by the level. */
struct place {
	int64_t period, account, channel, key, mode;
};

static void write_cursor(const struct place *place, char cursor[USAGE_CURSOR_SIZE])
{
	snprintf(cursor, USAGE_CURSOR_SIZE, "%" PRId64 "-%" PRId64 "-%" PRId64 "-%" PRId64 "-%" PRId64,
	         place->period, place->account, place->channel, place->key, place->mode);
}

static bool read_cursor(struct slice cursor, struct place *ret)
{
	int64_t *const numbers[] = {&ret->period, &ret->account, &ret->channel, &ret->key, &ret->mode};
	size_t number = 0;
	int digits = 0;
	*ret = (struct place){0};
	for (size_t i = 0; i < cursor.size; i++) {
		char c = cursor.data[i];
		if (c == '-' && digits > 0 && ++number < sizeof numbers / sizeof *numbers) {
			digits = 0;
			continue;
		}
		if (c < '0' || c > '9' || ++digits > 18)
			return false;
		*numbers[number] = *numbers[number] * 10 + (c - '0');
	}
	return number == sizeof numbers / sizeof *numbers - 1 && digits > 0;
}

/* ---- the query ---- */

struct question {
	const struct usage_filter *filter;
	unsigned by;
	int64_t account, channel, key; /* 0: any */
	int64_t first_day, last_day;
	int64_t period; /* first day of the month of the rows; daily rows have their own */
	struct place past;
	int64_t first_account, last_account; /* of the rows that are read in this step */
	int64_t limit;
};

static int find_key(struct db_connection *connection, struct question *question,
                    struct error *error)
{
	struct slice key_id = question->filter->key_id;
	struct row row = {.query = db_query(connection, "SELECT account, channel, key FROM api_keys"
	                                                " WHERE key_id = $1")};
	db_bind_text(row.query, key_id);
	bool found = db_step(row.query);
	int64_t account = found ? db_integer(row.query, 0) : 0;
	int64_t channel = found ? db_integer(row.query, 1) : 0;
	question->key = found ? db_integer(row.query, 2) : 0;
	found = found && (!question->account || question->account == account) &&
	        (!question->channel || question->channel == channel);
	question->account = account;
	question->channel = channel;
	return row_end(&row, found, MSG_STORE_NO_KEY, key_id, error);
}

static int find_channel(struct db_connection *connection, struct question *question,
                        struct error *error)
{
	int64_t account = 0;
	struct slice channel_id = question->filter->channel_id;
	int result = find_channel_number(connection, channel_id, &account, &question->channel, error);
	if (result)
		return result;
	char text[ID_SIZE];
	store_copy_id(text, channel_id);
	if (question->account && question->account != account)
		return error_set(error, ERR_NOT_FOUND, MSG_STORE_NO_CHANNEL, text, NULL);
	question->account = account;
	return OK;
}

static int find_numbers(struct db_connection *connection, struct question *question,
                        struct error *error)
{
	const struct usage_filter *filter = question->filter;
	int result = OK;
	if (filter->account_id.size)
		result = find_account_number(connection, filter->account_id, &question->account, error);
	if (!result && filter->channel_id.size)
		result = find_channel(connection, question, error);
	if (!result && filter->key_id.size)
		result = find_key(connection, question, error);
	question->by = filter->by;
	if (question->key)
		question->by |= USAGE_BY_KEY;
	if (question->channel || question->by & USAGE_BY_KEY)
		question->by |= USAGE_BY_CHANNEL;
	if (question->account || question->by & USAGE_BY_CHANNEL)
		question->by |= USAGE_BY_ACCOUNT;
	return result;
}

/* Limits the days to those with rows, so that empty months are skipped. */
static int clip_days(struct db_connection *connection, struct question *question,
                     struct error *error)
{
	struct db_query *query =
		question->account
			? db_query(connection,
	                   "SELECT min(day), max(day) FROM (SELECT min(day) AS day FROM daily_usage"
	                   " WHERE account = $1 UNION ALL SELECT max(day) FROM daily_usage"
	                   " WHERE account = $1 UNION ALL SELECT min(day) FROM daily_certifications"
	                   " WHERE account = $1 UNION ALL SELECT max(day) FROM daily_certifications"
	                   " WHERE account = $1) AS ends")
			: db_query(connection,
	                   "SELECT min(day), max(day) FROM (SELECT min(day) AS day FROM daily_usage"
	                   " WHERE account > $1 UNION ALL SELECT max(day) FROM daily_usage"
	                   " WHERE account > $1 UNION ALL SELECT min(day) FROM daily_certifications"
	                   " WHERE account > $1 UNION ALL SELECT max(day) FROM daily_certifications"
	                   " WHERE account > $1) AS ends");
	db_bind_integer(query, question->account);
	question->first_day = question->filter->first_day;
	question->last_day = question->filter->last_day;
	bool some = db_step(query) && !db_is_null(query, 0);
	if (some && question->first_day < db_integer(query, 0))
		question->first_day = db_integer(query, 0);
	if (some && question->last_day > db_integer(query, 1))
		question->last_day = db_integer(query, 1);
	if (!some)
		question->last_day = question->first_day - 1;
	return db_end(query, error);
}

/* ---- rows ---- */

#define GROUPED                                                                                    \
	"CASE WHEN $9 <> 0 THEN day ELSE $10 END AS period,"                                           \
	" CASE WHEN $11 <> 0 THEN account ELSE 0 END AS account,"                                      \
	" CASE WHEN $12 <> 0 THEN chain / 2 ELSE 0 END AS channel,"                                    \
	" CASE WHEN $13 <> 0 THEN key ELSE 0 END AS key, chain % 2 AS mode,"
#define CHOSEN(accounts)                                                                           \
	" WHERE " accounts " AND day >= $2 AND day <= $3"                                              \
	" AND ($4 = 0 OR chain / 2 = $4) AND ($5 = 0 OR key = $5) AND ($6 < 0 OR chain % 2 = $6)"
/* Aggregates first and then reads the names, when there are few rows. */
#define USAGE(accounts, of)                                                                        \
	"SELECT g.period, g.account, g.channel, g.key, g.mode, g.events, g.unpaid, g.bytes,"           \
	" g.requested, g.completed, g.failed, g.certified, g.fees, g.refunds,"                         \
	" COALESCE(a.account_id, ''), COALESCE(a.name, ''), COALESCE(c.channel_id, ''),"               \
	" COALESCE(f.name, ''), COALESCE(k.key_id, ''), COALESCE(k.name, '') FROM"                     \
	" (SELECT period, account, channel, key, mode, sum(events) AS events, sum(unpaid) AS unpaid,"  \
	" sum(bytes) AS bytes, sum(requested) AS requested, sum(completed) AS completed,"              \
	" sum(failed) AS failed, sum(certified) AS certified, sum(fees) AS fees,"                      \
	" sum(refunds) AS refunds FROM"                                                                \
	" (SELECT " GROUPED " events, unpaid_events AS unpaid, content_bytes AS bytes,"                \
	" 0 AS requested, 0 AS completed, 0 AS failed, 0 AS certified, 0 AS fees, 0 AS refunds"        \
	" FROM daily_usage" CHOSEN(                                                                    \
		accounts) " UNION ALL SELECT " GROUPED " 0, 0, 0, requested, completed, failed,"           \
				  " events, fees, refunds FROM daily_certifications" CHOSEN(                       \
					  accounts) ") AS u"                                                           \
								" WHERE (period, account, channel, key, mode) > ($7, $8, $14,"     \
								" $15, $16) GROUP BY period, account, channel, key, mode"          \
								" ORDER BY period, account, channel, key, mode LIMIT $17) AS g"    \
								" LEFT JOIN accounts a ON a.account = " of                         \
								" LEFT JOIN channels c ON c.account = " of                         \
								" AND c.channel = g.channel"                                       \
								" LEFT JOIN channel_configs f ON f.account = " of                  \
								" AND f.channel = g.channel AND f.version = c.config_version"      \
								" LEFT JOIN api_keys k ON k.key = g.key"                           \
								" AND k.account = g.account"                                       \
								" ORDER BY g.period, g.account, g.channel, g.key, g.mode"

static struct db_query *ask(struct db_connection *connection, const struct question *question)
{
	struct db_query *query =
		question->account
			? db_query_long(connection, USAGE("account = $1 AND account <= $18", "$1"))
			: db_query_long(connection, USAGE("account >= $1 AND account <= $18", "g.account"));
	const int64_t values[] = {
		question->first_account,
		question->first_day,
		question->last_day,
		question->channel,
		question->key,
		question->filter->mode,
		question->past.period,
		question->past.account,
		(question->by & USAGE_BY_DAY) != 0,
		question->period,
		(question->by & USAGE_BY_ACCOUNT) != 0,
		(question->by & USAGE_BY_CHANNEL) != 0,
		(question->by & USAGE_BY_KEY) != 0,
		question->past.channel,
		question->past.key,
		question->past.mode,
		question->limit,
		question->last_account,
	};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		db_bind_integer(query, values[i]);
	return query;
}

static void read_usage(struct row *row, const struct question *question, struct usage_row *ret)
{
	struct db_query *query = row->query;
	struct place place = {db_integer(query, 0), db_integer(query, 1), db_integer(query, 2),
	                      db_integer(query, 3), db_integer(query, 4)};
	*ret = (struct usage_row){
		.mode = place.mode ? MODE_TEST : MODE_LIVE,
		.counts = {db_integer(query, 5), db_integer(query, 6), db_integer(query, 7),
	               db_integer(query, 8), db_integer(query, 9), db_integer(query, 10),
	               db_integer(query, 11), db_integer(query, 12), db_integer(query, 13)},
	};
	write_cursor(&place, ret->cursor);
	if (question->by & (USAGE_BY_DAY | USAGE_BY_MONTH))
		period_key(question->by & USAGE_BY_DAY ? PERIOD_DAY : PERIOD_MONTH,
		           place.period * US_PER_DAY, ret->period);
	if (question->by & USAGE_BY_ACCOUNT) {
		ret->account_id = row_string(row, 14);
		ret->account_name = row_string(row, 15);
	}
	if (question->by & USAGE_BY_CHANNEL) {
		ret->channel_id = row_string(row, 16);
		ret->channel_name = row_string(row, 17);
	}
	if (question->by & USAGE_BY_KEY) {
		ret->key_id = row_string(row, 18);
		ret->key_name = row_string(row, 19);
	}
}

static int add_span(struct db_connection *connection, struct question *question,
                    struct arena *arena, int64_t limit, struct usage_list *list,
                    struct error *error)
{
	question->limit = limit + 1 - (int64_t)list->count;
	struct row row = {.arena = arena, .query = ask(connection, question)};
	struct usage_row *item;
	while (!row.failed && db_step(row.query) &&
	       (item = list_add(&row, &list->items, &list->count, &list->more, limit, sizeof *item)))
		read_usage(&row, question, item);
	return row_end(&row, true, MSG_NONE, slice_of(""), error);
}

/* Finds the last of the next accounts; the maximum number when there are no more. */
static int find_chunk(struct db_connection *connection, int64_t first, int64_t *ret_last,
                      struct error *error)
{
	struct db_query *query = db_query(connection, "SELECT account FROM accounts WHERE account >= $1"
	                                              " ORDER BY account LIMIT 1 OFFSET $2");
	db_bind(query, first, tuned_up_to("accounts_reported", CHUNK_ACCOUNTS) - 1);
	*ret_last = db_step(query) ? db_integer(query, 0) : INT64_MAX;
	return db_end(query, error);
}

/* Adds the rows of one span of days. When accounts are the first sort key, they are read in batches
 * from the cursor on. */
static int add_rows(struct db_connection *connection, struct question *question,
                    struct arena *arena, int64_t limit, struct usage_list *list,
                    struct error *error)
{
	bool in_chunks =
		!question->account && question->by & USAGE_BY_ACCOUNT && !(question->by & USAGE_BY_DAY);
	question->first_account = question->account;
	question->last_account = question->account ? question->account : INT64_MAX;
	if (!in_chunks)
		return add_span(connection, question, arena, limit, list, error);
	if (question->period == question->past.period)
		question->first_account = question->past.account;
	int result = OK;
	for (bool ends = false; !ends && !list->more && !result;) {
		result = find_chunk(connection, question->first_account, &question->last_account, error);
		if (!result)
			result = add_span(connection, question, arena, limit, list, error);
		ends = question->last_account == INT64_MAX;
		question->first_account = ends ? INT64_MAX : question->last_account + 1;
	}
	return result;
}

/* Adds the rows of each month, which is represented by its first day. */
static int add_months(struct db_connection *connection, struct question *question,
                      struct arena *arena, int64_t limit, struct usage_list *list,
                      struct error *error)
{
	const struct question whole = *question;
	int64_t first, last;
	int result = OK;
	time_month_days(whole.first_day * US_PER_DAY, &first, &last);
	while (first <= whole.last_day && !list->more && !result) {
		if (first >= whole.past.period) {
			question->period = first;
			question->first_day = first > whole.first_day ? first : whole.first_day;
			question->last_day = last < whole.last_day ? last : whole.last_day;
			result = add_rows(connection, question, arena, limit, list, error);
		}
		time_month_days((last + 1) * US_PER_DAY, &first, &last);
	}
	return result;
}

static int list_usage(struct db_connection *connection, struct question *question,
                      struct arena *arena, int64_t limit, struct usage_list *list,
                      struct error *error)
{
	int result = find_numbers(connection, question, error);
	if (!question->account)
		routing_require_all(connection);
	if (!result)
		result = clip_days(connection, question, error);
	if (question->by & USAGE_BY_DAY && question->first_day < question->past.period)
		question->first_day = question->past.period;
	if (result || question->last_day < question->first_day)
		return result;
	return question->by & USAGE_BY_MONTH
	           ? add_months(connection, question, arena, limit, list, error)
	           : add_rows(connection, question, arena, limit, list, error);
}

int store_list_usage(struct store *store, const struct usage_filter *filter, struct slice after,
                     int64_t limit, struct arena *arena, struct usage_list *ret,
                     struct error *error)
{
	/* before all rows, whose mode is at least 0 */
	struct question question = {.filter = filter, .past = {.mode = -1}};
	if (after.size && !read_cursor(after, &question.past))
		return error_set(error, ERR_USAGE, MSG_ADMIN_BAD_CURSOR, NULL);
	struct db_connection *connection = begin_read(store, &error);
	struct usage_list list = {0};
	int result =
		end_read(connection, list_usage(connection, &question, arena, limit, &list, error));
	if (!result)
		*ret = list;
	return result;
}
