/* Tokens that expired before they were renewed. A million rows may depend on one. They are
 * corrected in many short transactions, before the one that gives the token up. */
#include "base/tuned.h"
#include "store/evidence/evidence_rows.h"
#include "store/shards/shard_work.h"

#define ROWS_AT_ONCE 1024

/* The archive timestamps that are lost with $1 at time $2: itself, and those that it renewed,
 * directly or indirectly, and that have expired since. */
#define WITH_LOST                                                                                  \
	"WITH RECURSIVE gone(stamp) AS (SELECT CAST($1 AS BIGINT) UNION SELECT t.number"               \
	" FROM tokens_at_rest t JOIN gone g ON t.stamp = g.stamp WHERE t.source = 'stamp'"             \
	" AND t.valid_until < $2) "

static int list_ended(struct store *store, int64_t ended_us, size_t limit,
                      struct renewable_token *ret_tokens, size_t *ret_count, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		db_query(connection, "SELECT source, number, stamped_at, valid_until FROM tokens_at_rest"
	                         " WHERE stamp IS NULL AND lost_at IS NULL AND valid_until < $1"
	                         " ORDER BY valid_until LIMIT $2");
	db_bind(query, ended_us, (int64_t)limit);
	size_t count = 0;
	bool known = true;
	while (db_step(query) && count < limit)
		known = read_renewable_token(query, &ret_tokens[count++]) && known;
	*ret_count = count;
	int result = end_read(connection, db_end(query, error));
	return !result && !known ? refuse_token_source(error) : result;
}

/* A token that is still valid without the lost renewal is to be renewed by another archive
 * timestamp. */
static int uncover_valid(struct store *store, const struct renewable_token *lost, int64_t ended_us,
                         int64_t most, int64_t *ret_count, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query =
		db_query(connection, "UPDATE tokens_at_rest SET stamp = NULL, place = NULL"
	                         " WHERE (source, number) IN (" WITH_LOST
	                         "SELECT source, number FROM tokens_at_rest WHERE valid_until >= $2"
	                         " AND stamp IN (SELECT stamp FROM gone) LIMIT $3)");
	db_bind(query, lost->number, ended_us, most);
	return end_write(connection, db_execute(query, ret_count, error), error);
}

struct dependent_record {
	int64_t account, certification;
};

/* Lists the lost archive timestamps, including the first one. With shards a separate statement,
 * because they do not support the recursion. */
static void list_lost(struct db_connection *connection, const struct renewable_token *lost,
                      int64_t ended_us, struct db_array *ret)
{
	struct db_query *query = db_query(connection, WITH_LOST "SELECT stamp FROM gone");
	db_bind(query, lost->number, ended_us);
	while (db_step(query))
		db_array_add_integer(ret, db_integer(query, 0));
	db_release(query);
}

#define DEPENDENT(stamps)                                                                          \
	"SELECT e.account, e.certification FROM evidence_chains e"                                     \
	" WHERE (e.stamp " stamps " OR (e.after_stamp = $1 AND e.stamp NOT IN"                         \
	" (SELECT a.stamp FROM archive_timestamps a WHERE a.stamped_at <= $3)))"                       \
	" AND NOT EXISTS (SELECT 1 FROM evidence_queue q WHERE q.account = e.account"                  \
	" AND q.certification = e.certification AND q.reason = 'lost')"                                \
	" AND" EVIDENCE_CHAIN_IS_LAST " LIMIT $4"

/* Also lists certifications whose hash-tree renewal came after the expiry. */
static int list_dependents(struct store *store, const struct renewable_token *lost,
                           int64_t ended_us, int64_t most, struct dependent_record *ret_items,
                           int64_t *ret_count, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_array gone;
	db_array_init(&gone, DB_INTEGERS);
	struct db_query *query;
	if (db_is_sharded(db_of(connection))) {
		list_lost(connection, lost, ended_us, &gone);
		query = db_query(connection, DEPENDENT("= ANY($2)"));
	} else {
		query = db_query(connection, WITH_LOST DEPENDENT("IN (SELECT stamp FROM gone)"));
	}
	db_bind_integer(query, lost->number);
	if (gone.count)
		db_bind_array(query, &gone);
	else
		db_bind_integer(query, ended_us);
	db_bind(query, lost->valid_until_us, most);
	int64_t count = 0;
	while (count < most && db_step(query))
		ret_items[count++] = (struct dependent_record){db_integer(query, 0), db_integer(query, 1)};
	*ret_count = count;
	int result = end_read(connection, db_end(query, error));
	db_array_free(&gone);
	return result;
}

static int queue_lost(struct store *store, const struct dependent_record *items, int64_t count,
                      int64_t now_us, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	int result = OK;
	for (int64_t i = 0; i < count && !result; i++) {
		struct db_query *query = db_query(
			connection, "INSERT INTO evidence_queue (account, certification, reason, since,"
						" next_attempt_at, attempts) VALUES ($1, $2, 'lost', $3, 0, 0)"
						" ON CONFLICT (account, certification) DO UPDATE SET reason = 'lost'");
		db_bind(query, items[i].account, items[i].certification, now_us);
		result = db_execute(query, NULL, error);
	}
	result = end_write(connection, result, error);
	if (!result)
		work_invalidate(store);
	return result;
}

static int detach_dependents(struct store *store, const struct renewable_token *lost,
                             int64_t ended_us, int64_t now_us, int64_t *certifications,
                             struct error *error)
{
	struct dependent_record items[ROWS_AT_ONCE];
	const int64_t most = tuned_up_to("lost_at_once", ROWS_AT_ONCE);
	int64_t count = most;
	int result = OK;
	while (!result && count == most)
		result = uncover_valid(store, lost, ended_us, most, &count, error);
	count = most;
	while (!result && count == most) {
		result = list_dependents(store, lost, ended_us, most, items, &count, error);
		if (!result && count > 0)
			result = queue_lost(store, items, count, now_us, error);
		*certifications += !result ? count : 0;
	}
	return result;
}

static int mark(struct db_connection *connection, const struct renewable_token *token,
                int64_t now_us, struct error *error)
{
	struct db_query *query = db_query(connection, "UPDATE tokens_at_rest SET lost_at = $3"
	                                              " WHERE source = $1 AND number = $2");
	db_bind(query, token_source_text(token->source), token->number, now_us);
	return db_execute(query, NULL, error);
}

static int mark_all(struct store *store, const struct renewable_token *tokens, size_t count,
                    int64_t now_us, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	int result = OK;
	for (size_t i = 0; i < count && !result; i++)
		result = mark(connection, &tokens[i], now_us, error);
	return end_write(connection, result, error);
}

int store_give_up_tokens(struct store *store, int64_t ended_us, int64_t now_us, size_t limit,
                         struct lost_tokens *ret, struct error *error)
{
	struct renewable_token tokens[EVIDENCE_LEAVES_MAX];
	struct lost_tokens lost = {0};
	size_t count = 0;
	limit = limit < EVIDENCE_LEAVES_MAX ? limit : EVIDENCE_LEAVES_MAX;
	int result = list_ended(store, ended_us, limit, tokens, &count, error);
	for (size_t i = 0; i < count && !result; i++) {
		bool is_stamp = tokens[i].source == TOKEN_STAMP;
		lost.stamps += is_stamp;
		lost.rounds += !is_stamp;
		if (is_stamp)
			result =
				detach_dependents(store, &tokens[i], ended_us, now_us, &lost.certifications, error);
	}
	if (!result && count > 0)
		result = mark_all(store, tokens, count, now_us, error);
	if (!result)
		*ret = lost;
	return result;
}
