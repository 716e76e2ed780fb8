/* Acceptance of certifications: the checks, the fee and the new rows. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "store/accounts/account_bounds.h"
#include "store/certifications/certifications.h"
#include "store/certifications/idempotency.h"
#include "store/shards/shard_routing.h"
#include "store/transaction.h"
#include "store/usage/count.h"

#define ACCEPT_MEMORY_MAX                                                                          \
	((size_t)4 << 20) /* an account's thresholds and the notices they give                         \
	                   */
#define OPEN_RETRY_SECONDS 30

static int refuse_numbers(int year, struct error *error)
{
	char most[24], this_year[16], next_year[16];
	snprintf(most, sizeof most, "%d", CERTIFICATION_NUMBER_MAX);
	snprintf(this_year, sizeof this_year, "%d", year);
	snprintf(next_year, sizeof next_year, "%d", year + 1);
	return error_set(error, ERR_FULL, MSG_STORE_CERTIFICATIONS_FULL, most, this_year, next_year,
	                 NULL);
}

/* Checks whether take_number would succeed. */
static int check_numbers(struct db_connection *connection,
                         const struct certification *certification, struct error *error)
{
	int year = time_year(certification->requested_at_us);
	struct db_query *query =
		db_query(connection, "SELECT 1 FROM certification_numbers WHERE year = $1 AND mode = $2"
	                         " AND last_number >= $3");
	db_bind(query, year, mode_text(certification->mode), CERTIFICATION_NUMBER_MAX);
	bool full = db_step(query);
	int result = db_end(query, error);
	return result || !full ? result : refuse_numbers(year, error);
}

static int take_number(struct db_connection *connection, struct certification *certification,
                       struct error *error)
{
	int year = time_year(certification->requested_at_us);
	struct db_query *query =
		db_query(connection, "INSERT INTO certification_numbers (year, mode, last_number)"
	                         " VALUES ($1, $2, 1) ON CONFLICT (year, mode)"
	                         " DO UPDATE SET last_number = certification_numbers.last_number + 1"
	                         " RETURNING last_number");
	db_bind(query, year, mode_text(certification->mode));
	int64_t number = db_step(query) ? db_integer(query, 0) : 0;
	int result = db_execute(query, NULL, error);
	if (!result && number > CERTIFICATION_NUMBER_MAX)
		return refuse_numbers(year, error);
	if (!result)
		snprintf(certification->certification_id, ID_SIZE, "CERT-%s%d-%07" PRId64,
		         certification->mode == MODE_TEST ? "TEST-" : "", year, number);
	return result;
}

static void make_code(const char *prefix, const struct certification *certification,
                      char code[VERIFICATION_CODE_SIZE])
{
	/* Without characters that are easily confused. */
	static const char alphabet[] = "23456789ABCDEFGHJKMNPQRSTVWXYZ";
	enum { LETTERS = sizeof alphabet - 1, FAIR = 256 / LETTERS * LETTERS };
	char letters[8];
	for (size_t i = 0; i < sizeof letters;) {
		uint8_t random;
		random_bytes(&random, sizeof random);
		if (random < FAIR)
			letters[i++] = alphabet[random % LETTERS];
	}
	int size = snprintf(code, VERIFICATION_CODE_SIZE, "%.10s-%s%d-%.4s-%.4s", prefix,
	                    certification->mode == MODE_TEST ? "TEST-" : "",
	                    time_year(certification->requested_at_us), letters, letters + 4);
	assert(size > 0 && size < VERIFICATION_CODE_SIZE); /* a cut one is easier to guess */
}

static int ask_code(struct db_connection *connection, const char *code, bool *ret_taken,
                    struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT 1 FROM certifications WHERE verification_code = $1");
	db_bind_string(query, code);
	*ret_taken = db_step(query);
	return db_end(query, error);
}

/* With several servers each is asked individually, so that acceptance does not wait for one that
 * hangs. An unavailable server is skipped: the probability that it has this code is that of
 * guessing it, about 1 in 10^11 for each of its certifications of the year. */
static int ask_servers(struct db_connection *connection, const char *code, bool *ret_taken,
                       struct error *error)
{
	int64_t account;
	int result =
		routing_locate(db_of(connection), &ROUTING_PLACE("certifications", "verification_code"),
	                   slice_of(code), &account, error);
	*ret_taken = !result;
	if (result == ERR_USAGE)
		return ask_code(connection, code, ret_taken, error);
	return result == ERR_NOT_FOUND || result == ERR_UNAVAILABLE ? OK : result;
}

static int take_code(struct db_connection *connection, const char *prefix,
                     struct certification *certification, struct error *error)
{
	bool taken = true;
	while (taken) {
		make_code(prefix, certification, certification->verification_code);
		const char *code = certification->verification_code;
		int result = db_is_sharded(db_of(connection)) ? ask_servers(connection, code, &taken, error)
		                                              : ask_code(connection, code, &taken, error);
		if (result)
			return result;
	}
	return OK;
}

static int refuse_quota(const struct certification *certification, struct error *error)
{
	int result = error_set(error, ERR_TEST_QUOTA, MSG_NONE, NULL);
	int64_t now_us = certification->requested_at_us;
	if (error)
		error->retry_after_seconds =
			(int)((time_next_day(now_us) - now_us + US_PER_SECOND - 1) / US_PER_SECOND);
	return result;
}

static int count_test(struct db_connection *connection, const struct certification *certification,
                      struct error *error)
{
	char day[11];
	time_day_key(certification->requested_at_us, day);
	struct db_query *query = db_query(
		connection, "INSERT INTO test_usage (account, day, certifications) VALUES ($1, $2, 1)"
					" ON CONFLICT (account, day) DO UPDATE SET"
					" certifications = test_usage.certifications + 1"
					" WHERE test_usage.certifications < $3");
	db_bind(query, certification->account, day, TEST_CERTIFICATIONS_PER_DAY);
	int64_t changes = 0;
	int result = db_execute(query, &changes, error);
	return result || changes == 1 ? result : refuse_quota(certification, error);
}

/* Checks whether count_test would succeed. */
static int check_quota(struct db_connection *connection, const struct certification *certification,
                       struct error *error)
{
	char day[11];
	time_day_key(certification->requested_at_us, day);
	struct db_query *query = db_query(connection, "SELECT 1 FROM test_usage WHERE account = $1"
	                                              " AND day = $2 AND certifications >= $3");
	db_bind(query, certification->account, day, TEST_CERTIFICATIONS_PER_DAY);
	bool full = db_step(query);
	int result = db_end(query, error);
	return result || !full ? result : refuse_quota(certification, error);
}

static int check_credits(const struct certification *certification, int64_t unpaid_events,
                         int64_t balance, struct error *error)
{
	if (unpaid_events > 0 || balance < 0)
		return error_set(error, ERR_NOT_OPERATIONAL, MSG_NONE, NULL);
	if (balance < certification->fee)
		return error_set(error, ERR_INSUFFICIENT_BALANCE, MSG_NONE, NULL);
	return OK;
}

static int charge(struct db_connection *connection, const struct certification *certification,
                  struct ledger_account *account, struct arena *arena, struct error *error)
{
	struct ledger_result moved = {0};
	int64_t settled = 0;
	if (certification->fee == 0)
		return OK;
	assert(certification->mode == MODE_LIVE && certification->fee > 0);
	int result =
		ledger_move_credits(account, -certification->fee, "fee", certification->certification_id,
	                        arena, &moved, &settled, error);
	if (!result) {
		assert(settled == 0 && account->balance >= 0); /* check_credits, under the same lock */
		result = store_write_entries(connection, account, moved.entries,
		                             certification->requested_at_us, error);
	}
	if (!result)
		result = store_write_notices(connection, account->account, moved.notices, MODE_LIVE,
		                             certification->requested_at_us, error);
	return result;
}

static int insert_certification(struct db_connection *connection,
                                struct certification *certification, struct error *error)
{
	struct db_query *query = db_query(
		connection,
		"INSERT INTO certifications (account, channel, chain, certification_id, key, status,"
		" requested_at, language, range_from, range_to, range_seq_from, range_seq_to,"
		" first_sequence, last_sequence, config_versions, fee, verification_code,"
		" next_attempt_at, idempotency_key, expected_bytes, fails, seal_history)"
		" VALUES ($1, $2, $3, $4, $5, 'processing', $6, $7, $8, $9, $10, $11, $12, $13, $14, $15,"
		" $16, $17, $18, $19, $20, $21)"
		" RETURNING certification");
	db_bind(
		query, certification->account, certification->channel, certification->chain,
		certification->certification_id, certification->key, certification->requested_at_us,
		certification->language == LANGUAGE_SPANISH ? "es" : "en",
		db_null_if(certification->range.from_us, TIME_NONE),
		db_null_if(certification->range.to_us, TIME_NONE),
		db_null_if(certification->range.seq_from, 0), db_null_if(certification->range.seq_to, 0),
		certification->first_sequence, certification->last_sequence, certification->config_versions,
		certification->fee, certification->verification_code,
		certification->not_before_us ? certification->not_before_us
									 : due_at_once_us(connection, certification->requested_at_us),
		certification->idempotency_key, certification->expected_bytes, certification->fails,
		certification->seal_history);
	if (db_step(query))
		certification->certification = db_integer(query, 0);
	return db_execute(query, NULL, error);
}

/* The account is locked, so that the count does not change. */
static int check_open(struct db_connection *connection, const struct certification *certification,
                      int64_t open_max, struct error *error)
{
	if (open_max == 0)
		return OK;
	struct db_query *query =
		db_query(connection, "SELECT COUNT(*) FROM certifications WHERE account = $1"
	                         " AND status = 'processing' AND chain % 2 = $2");
	db_bind(query, certification->account, certification->mode);
	int64_t open = db_step(query) ? db_integer(query, 0) : 0;
	int result = db_end(query, error);
	if (result || open < open_max)
		return result;
	char most[24];
	snprintf(most, sizeof most, "%" PRId64, open_max);
	result = error_set(error, ERR_RATE_LIMITED, MSG_STORE_OPEN_CERTIFICATIONS, most, NULL);
	if (error)
		error->retry_after_seconds = OPEN_RETRY_SECONDS;
	return result;
}

static int refuse_stored(int64_t stored_bytes, int64_t stored_max, int64_t more,
                         struct error *error)
{
	char stored[24], most[24], needed[24];
	snprintf(stored, sizeof stored, "%" PRId64, stored_bytes);
	snprintf(most, sizeof most, "%" PRId64, stored_max);
	snprintf(needed, sizeof needed, "%" PRId64, more);
	return error_set(error, ERR_FULL, MSG_STORE_STORED_FULL, stored, most, needed, NULL);
}

/* The maximum sizes of certifications in processing are counted as used. */
static int check_stored(struct db_connection *connection, const struct certification *certification,
                        int64_t stored_bytes, int64_t own_max, struct error *error)
{
	int64_t stored_max = own_max ? own_max : certification->stored_max;
	if (stored_max == 0)
		return OK;
	struct db_query *query =
		db_query(connection, "SELECT COALESCE(SUM(expected_bytes), 0) FROM certifications"
	                         " WHERE account = $1 AND status = 'processing'");
	db_bind_integer(query, certification->account);
	int64_t taken = db_step(query) ? db_integer(query, 0) : 0;
	int result = db_end(query, error);
	if (result || ledger_may_store(stored_bytes + taken, stored_max, certification->expected_bytes))
		return result;
	return refuse_stored(stored_bytes + taken, stored_max, certification->expected_bytes, error);
}

static int check_day(struct db_connection *connection, const struct certification *certification,
                     struct error *error)
{
	if (certification->mode != MODE_LIVE)
		return OK;
	return check_certifications_of_day(connection, certification->account, certification->daily_max,
	                                   certification->requested_at_us, error);
}

/* The account is locked, so that no other request takes the key in the meantime. */
static int check_key(struct db_connection *connection, const struct certification *certification,
                     struct error *error)
{
	if (!certification->idempotency_key)
		return OK;
	struct db_query *query =
		db_query(connection, "UPDATE certifications SET idempotency_key = NULL WHERE account = $1"
	                         " AND chain = $2 AND idempotency_key = $3 AND requested_at <= $4");
	db_bind(query, certification->account, certification->chain, certification->idempotency_key,
	        certification->requested_at_us - IDEMPOTENCY_KEPT_US);
	int result = db_execute(query, NULL, error);
	if (result)
		return result;
	query = db_query(connection, "SELECT 1 FROM certifications WHERE account = $1"
	                             " AND chain = $2 AND idempotency_key = $3");
	db_bind(query, certification->account, certification->chain, certification->idempotency_key);
	bool taken = db_step(query);
	result = db_end(query, error);
	return result || !taken ? result : error_set(error, ERR_CONFLICT, MSG_NONE, NULL);
}

static int refuse_changed(enum message message, int64_t one, int64_t other, struct error *error)
{
	char first[24], second[24];
	snprintf(first, sizeof first, "%" PRId64, one);
	snprintf(second, sizeof second, "%" PRId64, other);
	return error_set(error, ERR_REFUSED, message, first, second, NULL);
}

static int check_expected(const struct certification *certification, struct error *error)
{
	const struct certification_expected *expected = certification->expected;
	if (!expected)
		return OK;
	int64_t first = certification->first_sequence, last = certification->last_sequence;
	if ((expected->first_sequence >= 0 && expected->first_sequence != first) ||
	    (expected->last_sequence >= 0 && expected->last_sequence != last))
		return refuse_changed(MSG_STORE_RANGE_CHANGED, first, last, error);
	if (expected->fee >= 0 && expected->fee != certification->fee)
		return refuse_changed(MSG_STORE_FEE_CHANGED, certification->fee, expected->fee, error);
	return OK;
}

/* All reasons to refuse a request. A test certification is also counted here. */
static int judge(struct db_connection *connection, int64_t open_max,
                 const struct certification *certification, struct arena *arena,
                 struct ledger_account *account, struct error *error)
{
	int result = store_load_account(connection, certification->account, arena, account, error);
	if (!result)
		result = check_key(connection, certification, error);
	if (!result)
		result = check_expected(certification, error);
	if (!result)
		result = check_open(connection, certification, open_max, error);
	if (!result)
		result = check_stored(connection, certification, account->stored_bytes, account->stored_max,
		                      error);
	if (!result)
		result = check_day(connection, certification, error);
	if (!result)
		result =
			certification->mode == MODE_TEST
				? count_test(connection, certification, error)
				: check_credits(certification, account->unpaid_events, account->balance, error);
	return result;
}

static int accept(struct db_connection *connection, const char *prefix, int64_t open_max,
                  struct certification *certification, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, ACCEPT_MEMORY_MAX);
	struct ledger_account account;
	int result = judge(connection, open_max, certification, &arena, &account, error)
		?: take_number(connection, certification, error)
		?: charge(connection, certification, &account, &arena, error)
		?: store_save_account(connection, &account, certification->requested_at_us, error)
		?: take_code(connection, prefix, certification, error)
		?: insert_certification(connection, certification, error)
		?: count_certification(connection, certification, CERTIFICATION_PROCESSING,
		                       certification->requested_at_us, error);
	if (!result)
		audit_add_created(connection, "certification_id", certification->certification_id);
	return result;
}

int store_accept_certification(struct store *store, const char *prefix, int64_t open_max,
                               struct certification *certification, struct error *error)
{
	struct certification accepted = *certification;
	accepted.status = CERTIFICATION_PROCESSING;
	accepted.progress_permille = 0;
	accepted.completed_at_us = TIME_NONE;
	accepted.incident_id[0] = '\0';
	accepted.attempts = 0;
	accepted.last_error = NULL;
	if (accepted.mode == MODE_TEST)
		accepted.fee = 0;
	assert(accepted.first_sequence >= 1 && accepted.first_sequence <= accepted.last_sequence);
	assert(accepted.chain == chain_number(accepted.channel, accepted.mode) && accepted.fee >= 0);
	struct db_connection *connection = begin_write(store, &error);
	int result =
		end_write(connection, accept(connection, prefix, open_max, &accepted, error), error);
	if (!result)
		work_invalidate(store);
	if (!result)
		*certification = accepted;
	return result;
}

static int check_balance(struct db_connection *connection,
                         const struct certification *certification, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT unpaid_events, balance FROM accounts WHERE account = $1");
	db_bind_integer(query, certification->account);
	bool found = db_step(query);
	int64_t unpaid_events = found ? db_integer(query, 0) : 0;
	int64_t balance = found ? db_integer(query, 1) : 0;
	int result = db_end(query, error);
	if (result || !found)
		return result ? result : ERR_NOT_FOUND;
	return check_credits(certification, unpaid_events, balance, error);
}

static int judge_stored(struct db_connection *connection, const struct certification *certification,
                        struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT stored_bytes, COALESCE(bound_stored_bytes, 0) FROM accounts"
	                         " WHERE account = $1");
	db_bind_integer(query, certification->account);
	bool found = db_step(query);
	int64_t stored_bytes = found ? db_integer(query, 0) : 0;
	int64_t own_max = found ? db_integer(query, 1) : 0;
	int result = db_end(query, error);
	return result ? result : check_stored(connection, certification, stored_bytes, own_max, error);
}

int store_check_certification(struct store *store, int64_t open_max,
                              const struct certification *certification, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	int result = check_open(connection, certification, open_max, error);
	if (!result)
		result = judge_stored(connection, certification, error);
	if (!result)
		result = check_day(connection, certification, error);
	if (!result)
		result = certification->mode == MODE_TEST ? check_quota(connection, certification, error)
		                                          : check_balance(connection, certification, error);
	if (!result)
		result = check_numbers(db_side_connection(connection), certification, error);
	return end_read(connection, result);
}
