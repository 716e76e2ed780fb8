/* Tokens registered for renewal, and which archive timestamp renewed them. */
#include "store/evidence/evidence_rows.h"
#include "store/shards/shard_work.h"

static const char *const source_texts[] = {
	[TOKEN_ROUND] = "round",
	[TOKEN_SECOND] = "second",
	[TOKEN_STAMP] = "stamp",
};

const char *token_source_text(enum token_source source)
{
	return source_texts[source];
}

static bool token_source_of(struct slice text, enum token_source *ret_source)
{
	for (size_t i = 0; i < sizeof source_texts / sizeof *source_texts; i++)
		if (slice_is(text, source_texts[i])) {
			*ret_source = (enum token_source)i;
			return true;
		}
	return false;
}

/* ---- registration ---- */

int write_renewable_token(struct db_connection *connection, const struct renewable_token *token,
                          struct error *error)
{
	struct db_query *query =
		db_query(connection, "INSERT INTO tokens_at_rest (source, number, stamped_at, valid_until)"
	                         " VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING");
	db_bind(query, token_source_text(token->source), token->number, token->stamped_at_us,
	        token->valid_until_us);
	return db_execute(query, NULL, error);
}

int store_register_tokens(struct store *store, const struct renewable_token *tokens, size_t count,
                          struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	int result = OK;
	for (size_t i = 0; i < count && !result; i++)
		result = write_renewable_token(connection, &tokens[i], error);
	return end_write(connection, result, error);
}

int store_last_registered_round(struct store *store, int64_t *ret_round, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		db_query(connection, "SELECT COALESCE(MAX(number), 0) FROM tokens_at_rest"
	                         " WHERE source = 'round'");
	int64_t round = db_step(query) ? db_integer(query, 0) : 0;
	int result = end_read(connection, db_end(query, error));
	if (!result)
		*ret_round = round;
	return result;
}

/* ---- renewal ---- */

bool read_renewable_token(struct db_query *query, struct renewable_token *ret)
{
	ret->number = db_integer(query, 1);
	ret->stamped_at_us = db_integer(query, 2);
	ret->valid_until_us = db_integer(query, 3);
	return token_source_of(db_text(query, 0), &ret->source);
}

int refuse_token_source(struct error *error)
{
	return error_cause(error, ERR_CORRUPT, "a token has an unknown source");
}

int store_list_tokens_to_renew(struct store *store, enum digest_algorithm algorithm, int64_t now_us,
                               int64_t before_us, size_t limit, struct renewable_token *ret_tokens,
                               size_t *ret_count, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	/* Rounds use SHA-256. */
	struct db_query *query = db_query(
		connection, "SELECT t.source, t.number, t.stamped_at, t.valid_until, t.attempts"
					" FROM tokens_at_rest t"
					" WHERE t.stamp IS NULL AND t.lost_at IS NULL AND t.valid_until >= $1"
					" AND t.valid_until <= $1 + $2 AND t.next_attempt_at <= $1"
					" AND t.stamped_at + (t.valid_until - t.stamped_at) / 2 <= $1"
					" AND $3 = CASE WHEN t.source = 'stamp' THEN (SELECT a.algorithm"
					" FROM archive_timestamps a WHERE a.stamp = t.number) ELSE 'sha-256' END"
					" ORDER BY t.valid_until LIMIT $4");
	db_bind(query, now_us, before_us, evidence_algorithm_text(algorithm), (int64_t)limit);
	size_t count = 0;
	bool known = true;
	for (; db_step(query) && count < limit; count++) {
		known = read_renewable_token(query, &ret_tokens[count]) && known;
		ret_tokens[count].attempts = db_integer(query, 4);
	}
	int result = end_read(connection, db_end(query, error));
	if (!result && !known)
		return refuse_token_source(error);
	if (!result)
		*ret_count = count;
	return result;
}

int store_delay_token(struct store *store, const struct renewable_token *token, int64_t next_us,
                      struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query = db_query(
		connection, "UPDATE tokens_at_rest SET attempts = attempts + 1, next_attempt_at = $3"
					" WHERE source = $1 AND number = $2");
	db_bind(query, token_source_text(token->source), token->number, next_us);
	return end_write(connection, db_execute(query, NULL, error), error);
}

int cover_token(struct db_connection *connection, const struct renewable_token *token,
                int64_t stamp, int64_t place, struct error *error)
{
	struct db_query *query =
		db_query(connection, "UPDATE tokens_at_rest SET stamp = $3, place = $4"
	                         " WHERE source = $1 AND number = $2 AND stamp IS NULL"
	                         " AND lost_at IS NULL");
	db_bind(query, token_source_text(token->source), token->number, stamp, place);
	int64_t changes = 0;
	int result = db_execute(query, &changes, error);
	if (!result && changes != 1)
		return error_cause(error, ERR_REFUSED,
		                   "token %lld of a %s is already covered by an archive timestamp",
		                   (long long)token->number, token_source_text(token->source));
	return result;
}

int store_find_renewable_token(struct store *store, enum token_source source, int64_t number,
                               struct renewable_token *ret, int64_t *ret_stamp, int64_t *ret_place,
                               struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query = db_query(
		connection, "SELECT t.source, t.number, t.stamped_at, t.valid_until, a.stamp, t.place"
					" FROM tokens_at_rest t LEFT JOIN archive_timestamps a ON a.stamp = t.stamp"
					" WHERE t.source = $1 AND t.number = $2");
	db_bind(query, token_source_text(source), number);
	bool found = db_step(query);
	struct renewable_token token = {0};
	int64_t stamp = 0, place = 0;
	bool known = !found || read_renewable_token(query, &token);
	if (found && !db_is_null(query, 4)) {
		stamp = db_integer(query, 4);
		place = db_integer(query, 5);
	}
	int result = end_read(connection, db_end(query, error));
	if (result || !found || !known)
		return result ? result : !found ? ERR_NOT_FOUND : refuse_token_source(error);
	*ret = token;
	*ret_stamp = stamp;
	*ret_place = place;
	return OK;
}

/* ---- state for monitoring ---- */

#define STATE                                                                                      \
	"SELECT (SELECT MIN(staged_at) FROM archive_timestamp_blocks WHERE stamp >"                    \
	" (SELECT COALESCE(MAX(stamp), 0) FROM archive_timestamps)),"                                  \
	" (SELECT MIN(valid_until) FROM tokens_at_rest WHERE stamp IS NULL AND lost_at IS NULL),"      \
	" (SELECT stamped_at FROM archive_timestamps ORDER BY stamp DESC LIMIT 1),"                    \
	" (SELECT COUNT(*) FROM tokens_at_rest WHERE lost_at IS NOT NULL)"
#define QUEUED "SELECT MIN(since) FROM evidence_queue"

static int64_t queued_since_us(struct db_connection *connection, struct work_accounts *of)
{
	if (work_is_empty(of))
		return TIME_NONE;
	struct db_query *query = of->all ? db_query(connection, QUEUED)
	                                 : db_query(connection, QUEUED " WHERE account = ANY($1)");
	shard_work_bind(query, of);
	int64_t since_us = db_step(query) ? row_time(query, 0) : TIME_NONE;
	db_release(query);
	return since_us;
}

static int read_evidence_state(struct store *store, struct work_accounts *of,
                               struct evidence_state *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct evidence_state state = {TIME_NONE, TIME_NONE, TIME_NONE, 0};
	int64_t queued_us = queued_since_us(connection, of);
	struct db_query *query = db_query(connection, STATE);
	if (db_step(query)) {
		int64_t staged_us = row_time(query, 0);
		bool staged_first =
			queued_us == TIME_NONE || (staged_us != TIME_NONE && staged_us < queued_us);
		state = (struct evidence_state){staged_first ? staged_us : queued_us, row_time(query, 1),
		                                row_time(query, 2), db_integer(query, 3)};
	}
	int result = end_read(connection, db_end(query, error));
	if (!result)
		*ret = state;
	return result;
}

int store_read_evidence_state(struct store *store, struct evidence_state *ret, struct error *error)
{
	struct work_accounts of;
	int result = shard_work_find(store, WORK_EVIDENCE, &of, error);
	if (!result)
		result = read_evidence_state(store, &of, ret, error);
	shard_work_free(&of);
	return result;
}

int store_evidence_due_since(struct store *store, int64_t now_us, int64_t before_us,
                             int64_t *ret_since_us, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query = db_query(
		connection, "SELECT MIN(valid_until - CASE WHEN (valid_until - stamped_at) / 2 < $2"
					" THEN (valid_until - stamped_at) / 2 ELSE $2 END) FROM tokens_at_rest"
					" WHERE stamp IS NULL AND lost_at IS NULL AND valid_until <= $1 + $2"
					" AND stamped_at + (valid_until - stamped_at) / 2 <= $1");
	db_bind(query, now_us, before_us);
	int64_t since_us = db_step(query) ? row_time(query, 0) : TIME_NONE;
	int result = end_read(connection, db_end(query, error));
	if (!result)
		*ret_since_us = since_us;
	return result;
}
