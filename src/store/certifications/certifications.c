#include "store/certifications/certifications.h"

#include <inttypes.h>
#include <stdio.h>

#include "store/certifications/idempotency.h"
#include "store/certifications/read_certification.h"

#define ACCEPT_MEMORY_MAX                                                                          \
	((size_t)4 << 20) /* an account's thresholds and the notices they give                         \
	                   */
#define NUMBERS_PER_YEAR 9999999
#define OPEN_RETRY_SECONDS 30

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

/* The first event after `sequence` with a later version, `last + 1` when there is none: by halving,
 * since versions never decrease along a chain. */
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
			result =
				error_cause(error, ERR_TOO_LARGE, "more than %zu configuration versions", limit);
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

/* ---- acceptance ---- */

static int take_number(struct db_connection *connection, struct certification *certification,
                       struct error *error)
{
	int year = time_year(certification->requested_at_us);
	struct db_query *query =
		db_query(connection, "INSERT INTO certification_numbers (year, mode, last_number)"
	                         " VALUES ($1, $2, 1) ON CONFLICT (year, mode)"
	                         " DO UPDATE SET last_number = certification_numbers.last_number + 1"
	                         " RETURNING last_number");
	db_bind_integer(query, year);
	db_bind_string(query, mode_text(certification->mode));
	int64_t number = db_step(query) ? db_integer(query, 0) : 0;
	/* Stepping to the end is what makes the change complete. */
	int result = db_execute(query, NULL, error);
	if (!result && number > NUMBERS_PER_YEAR)
		return error_cause(error, ERR_INTERNAL, "certification numbers of %d are used up", year);
	if (!result)
		snprintf(certification->certification_id, ID_SIZE, "CERT-%s%d-%07" PRId64,
		         certification->mode == MODE_TEST ? "TEST-" : "", year, number);
	return result;
}

static void make_code(const char *prefix, const struct certification *certification,
                      char code[VERIFICATION_CODE_SIZE])
{
	/* Without digits and letters that are read for one another. */
	static const char alphabet[] = "23456789ABCDEFGHJKMNPQRSTVWXYZ";
	enum { LETTERS = sizeof alphabet - 1, FAIR = 256 / LETTERS * LETTERS };
	char letters[8];
	for (size_t i = 0; i < sizeof letters;) {
		uint8_t random;
		random_bytes(&random, sizeof random);
		if (random < FAIR)
			letters[i++] = alphabet[random % LETTERS];
	}
	snprintf(code, VERIFICATION_CODE_SIZE, "%.10s-%s%d-%.4s-%.4s", prefix,
	         certification->mode == MODE_TEST ? "TEST-" : "",
	         time_year(certification->requested_at_us), letters, letters + 4);
}

static int take_code(struct db_connection *connection, const char *prefix,
                     struct certification *certification, struct error *error)
{
	bool taken = true;
	while (taken) {
		make_code(prefix, certification, certification->verification_code);
		struct db_query *query =
			db_query(connection, "SELECT 1 FROM certifications WHERE verification_code = $1");
		db_bind_string(query, certification->verification_code);
		taken = db_step(query);
		int result = db_end(query, error);
		if (result)
			return result;
	}
	return OK;
}

static int count_test(struct db_connection *connection, const struct certification *certification,
                      const char *day, struct error *error)
{
	struct db_query *query = db_query(
		connection, "INSERT INTO test_usage (account, day, certifications) VALUES ($1, $2, 1)"
					" ON CONFLICT (account, day) DO UPDATE SET"
					" certifications = test_usage.certifications + 1"
					" WHERE test_usage.certifications < $3");
	db_bind_integer(query, certification->account);
	db_bind_string(query, day);
	db_bind_integer(query, TEST_CERTIFICATIONS_PER_DAY);
	int64_t changes = 0;
	int result = db_execute(query, &changes, error);
	if (result || changes == 1)
		return result;
	result = error_set(error, ERR_TEST_QUOTA, MSG_NONE, NULL);
	int64_t now_us = certification->requested_at_us;
	if (error)
		error->retry_after_seconds =
			(int)((time_next_day(now_us) - now_us + US_PER_SECOND - 1) / US_PER_SECOND);
	return result;
}

static int charge(struct db_connection *connection, const struct certification *certification,
                  struct ledger_account *account, struct arena *arena, struct error *error)
{
	if (account->unpaid_events > 0 || account->balance < 0)
		return error_set(error, ERR_NOT_OPERATIONAL, MSG_NONE, NULL);
	if (certification->fee == 0)
		return OK;
	if (account->balance < certification->fee)
		return error_set(error, ERR_INSUFFICIENT_BALANCE, MSG_NONE, NULL);
	struct ledger_result moved = {0};
	int64_t settled = 0;
	int result =
		ledger_move_credits(account, -certification->fee, "fee", certification->certification_id,
	                        arena, &moved, &settled, error);
	if (!result)
		result = store_write_entries(connection, account, moved.entries,
		                             certification->requested_at_us, error);
	if (!result)
		result = store_write_notices(connection, account->account, moved.notices, MODE_LIVE,
		                             certification->requested_at_us, error);
	return result;
}

static void bind_time(struct db_query *query, int64_t time_us)
{
	if (time_us == TIME_NONE)
		db_bind_null(query);
	else
		db_bind_integer(query, time_us);
}

static void bind_sequence(struct db_query *query, int64_t sequence)
{
	bind_time(query, sequence ? sequence : TIME_NONE);
}

static int insert_certification(struct db_connection *connection,
                                struct certification *certification, struct error *error)
{
	struct db_query *query = db_query(
		connection,
		"INSERT INTO certifications (account, channel, chain, certification_id, key, status,"
		" requested_at, language, range_from, range_to, range_seq_from, range_seq_to,"
		" first_sequence, last_sequence, config_versions, fee, verification_code,"
		" next_attempt_at, idempotency_key) VALUES ($1, $2, $3, $4, $5, 'processing', $6, $7, $8, $9,"
		" $10, $11, $12, $13, $14, $15, $16, $17, $18) RETURNING certification");
	db_bind_integer(query, certification->account);
	db_bind_integer(query, certification->channel);
	db_bind_integer(query, certification->chain);
	db_bind_string(query, certification->certification_id);
	db_bind_integer(query, certification->key);
	db_bind_integer(query, certification->requested_at_us);
	db_bind_string(query, certification->language == LANGUAGE_SPANISH ? "es" : "en");
	bind_time(query, certification->range.from_us);
	bind_time(query, certification->range.to_us);
	bind_sequence(query, certification->range.seq_from);
	bind_sequence(query, certification->range.seq_to);
	db_bind_integer(query, certification->first_sequence);
	db_bind_integer(query, certification->last_sequence);
	db_bind_string(query, certification->config_versions);
	db_bind_integer(query, certification->fee);
	db_bind_string(query, certification->verification_code);
	db_bind_integer(query, due_at_once_us(connection, certification->requested_at_us));
	db_bind_string(query, certification->idempotency_key);
	if (db_step(query))
		certification->certification = db_integer(query, 0);
	return db_execute(query, NULL, error);
}

/* The account is locked, so the count stands still. */
static int check_open(struct db_connection *connection, const struct certification *certification,
                      int64_t open_max, struct error *error)
{
	if (open_max == 0)
		return OK;
	struct db_query *query =
		db_query(connection, "SELECT COUNT(*) FROM certifications WHERE account = $1"
	                         " AND status = 'processing' AND chain % 2 = $2");
	db_bind_integer(query, certification->account);
	db_bind_integer(query, certification->mode);
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

/* The account is locked, so nobody else takes the key meanwhile. */
static int check_key(struct db_connection *connection, const struct certification *certification,
                     struct error *error)
{
	if (!certification->idempotency_key)
		return OK;
	struct db_query *query =
		db_query(connection, "UPDATE certifications SET idempotency_key = NULL WHERE account = $1"
	                         " AND chain = $2 AND idempotency_key = $3 AND requested_at <= $4");
	db_bind_integer(query, certification->account);
	db_bind_integer(query, certification->chain);
	db_bind_string(query, certification->idempotency_key);
	db_bind_integer(query, certification->requested_at_us - IDEMPOTENCY_KEPT_US);
	int result = db_execute(query, NULL, error);
	if (result)
		return result;
	query = db_query(connection, "SELECT 1 FROM certifications WHERE account = $1"
	                             " AND chain = $2 AND idempotency_key = $3");
	db_bind_integer(query, certification->account);
	db_bind_integer(query, certification->chain);
	db_bind_string(query, certification->idempotency_key);
	bool taken = db_step(query);
	result = db_end(query, error);
	return result || !taken ? result : error_set(error, ERR_CONFLICT, MSG_NONE, NULL);
}

static int accept(struct db_connection *connection, const char *prefix, int64_t open_max,
                  struct certification *certification, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, ACCEPT_MEMORY_MAX);
	char day[11];
	time_day_key(certification->requested_at_us, day);
	struct ledger_account account;
	int result = store_load_account(connection, certification->account, &arena, &account, error);
	if (!result)
		result = check_key(connection, certification, error);
	if (!result)
		result = check_open(connection, certification, open_max, error);
	if (!result)
		result = take_number(connection, certification, error);
	if (!result)
		result = certification->mode == MODE_TEST
		             ? count_test(connection, certification, day, error)
		             : charge(connection, certification, &account, &arena, error);
	if (!result)
		result = store_save_account(connection, &account, certification->requested_at_us, error);
	if (!result)
		result = take_code(connection, prefix, certification, error);
	if (!result)
		result = insert_certification(connection, certification, error);
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
	struct db_connection *connection;
	int result = begin_write(store, &connection, error);
	if (result)
		return result;
	result = end_write(connection, accept(connection, prefix, open_max, &accepted, error), error);
	if (!result)
		*certification = accepted;
	return result;
}
