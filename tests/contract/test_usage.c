/* Usage totals over random histories, compared with a recount of the results that callers received,
 * and with the totals filled by the migration step. On a SQLite file, or on a server:
 *     contract-usage [postgresql://… postgresql://…]
 * The seed is printed; CONSTANCIA_TEST_SEED repeats a run. */
#include "testing.h"
#include "base/clock.h"
#include "registering.h"
#include "sample.h"
#include "store/certifications/certifications.h"
#include "store/schema/store_schemas.h"
#include "store/store_internal.h"
#include "store/usage/usage.h"

#define START INT64_C(1767222000000000) /* 2025-12-31T23:00:00Z */
#define FIRST_DAY (START / US_PER_DAY)
#define STEPS 60
#define DAYS 40
#define CHANNELS 4
#define KEYS 3 /* per chain: 1 to 3, the same numbers on each */
#define BATCH_MAX 24

static const char *server_url; /* postgresql://…; NULL: a SQLite file */

enum { EVENTS, UNPAID, BYTES, REQUESTED, COMPLETED, FAILED, CERTIFIED, FEES, REFUNDS, COUNTS };

struct history {
	struct sample sample;
	struct arena arena;
	int64_t accounts[CHANNELS], channels[CHANNELS];
	char account_ids[CHANNELS][ID_SIZE], channel_ids[CHANNELS][ID_SIZE];
	int64_t last[CHANNELS][2];
	int64_t references;
	int64_t document_bytes[CHANNELS]; /* of the objects of documents, by account */
	bool has_whole[CHANNELS];         /* the account has a document that others can share */
	int64_t expected[DAYS][CHANNELS][2][KEYS][COUNTS];
};

static int below(int limit)
{
	return rand() % limit;
}

/* ---- steps of a history ---- */

static int64_t *counts_of(struct history *history, int64_t at_us, int channel, int mode, int key)
{
	int64_t day = at_us / US_PER_DAY - FIRST_DAY;
	assert_true(day >= 0 && day < DAYS);
	return history->expected[day][channel][mode][key];
}

static void recount(struct history *history, const struct registration *item, int channel)
{
	if (item->result || item->replayed)
		return;
	int mode = (int)(item->chain % 2);
	int64_t *counts =
		counts_of(history, item->event->received_at_us, channel, mode, (int)item->key - 1);
	counts[EVENTS]++;
	counts[UNPAID] += item->event->status == STATUS_UNPAID;
	counts[BYTES] += item->content_bytes > 0 ? item->content_bytes : 0;
	history->last[channel][mode] = item->event->sequence;
}

static void step_register(struct history *history)
{
	struct registration items[BATCH_MAX];
	struct registration *list[BATCH_MAX];
	int touched[BATCH_MAX];
	size_t count = (size_t)below(BATCH_MAX) + 1;
	for (size_t i = 0; i < count; i++) {
		int channel = touched[i] = below(CHANNELS);
		bool again = history->references > 0 && below(5) == 0;
		int64_t reference = again ? 1 + below((int)history->references) : ++history->references;
		bool content = channel % 2 == 0;
		items[i] = (struct registration){
			.account = history->accounts[channel],
			.channel = history->channels[channel],
			.chain = history->channels[channel] * 2 + (below(3) == 0),
			.key = below(KEYS) + 1,
			.declaration = {.modality = content ? MODALITY_CONTENT : MODALITY_HASH_ONLY,
		                    .client_ref = slice_of(
								arena_printf(&history->arena, "r-%lld", (long long)reference)),
		                    .occurred_at_us = TIME_NONE},
			.content_bytes = content ? 3 + reference % 7 : -1,
			.arena = &history->arena,
		};
		items[i].content =
			content ? slice_make("{\"a\":12345}", (size_t)items[i].content_bytes) : slice_of("");
		struct sha256 hash = sha256_of(items[i].content.data, items[i].content.size);
		memcpy(items[i].declaration.hash, hash.bytes, SHA256_SIZE);
		list[i] = &items[i];
	}
	/* The clock of a node may lag; its events still follow the existing ones. */
	int64_t now_us = history->sample.now_us - (below(6) ? 0 : below(3) * US_PER_DAY);
	assert_int_equal(
		register_items(history->sample.store, list, count, now_us < START ? START : now_us, NULL),
		OK);
	for (size_t i = 0; i < count; i++)
		recount(history, &items[i], touched[i]);
}

static void step_credits(struct history *history)
{
	struct credit_movement movement = {1 + below(30), "adjustment", "more"};
	struct credit_outcome outcome;
	assert_int_equal(store_move_credits(history->sample.store,
	                                    slice_of(history->account_ids[below(CHANNELS)]), &movement,
	                                    history->sample.now_us, &outcome, NULL),
	                 OK);
}

static bool ask(struct history *history, int channel, int mode, int key)
{
	struct certification asked = {
		.account = history->accounts[channel],
		.channel = history->channels[channel],
		.chain = history->channels[channel] * 2 + mode,
		.key = key + 1,
		.mode = mode ? MODE_TEST : MODE_LIVE,
		.requested_at_us = history->sample.now_us,
		.range = {.from_us = TIME_NONE, .to_us = TIME_NONE, .seq_from = 1, .seq_to = 1},
		.first_sequence = 1 + below((int)history->last[channel][mode]),
		.last_sequence = history->last[channel][mode],
		.config_versions = "[1]",
		.fee = 1 + below(3),
	};
	memcpy(asked.channel_id, history->channel_ids[channel], ID_SIZE);
	struct error error = {0};
	int result = store_accept_certification(history->sample.store, "SVC", 0, &asked, &error);
	if (result) { /* without credits, or over the test quota */
		assert_true(result == ERR_NOT_OPERATIONAL || result == ERR_INSUFFICIENT_BALANCE ||
		            result == ERR_TEST_QUOTA);
		return false;
	}
	int64_t *counts = counts_of(history, history->sample.now_us, channel, mode, key);
	counts[REQUESTED]++;
	counts[FEES] += asked.fee;
	return true;
}

static int channel_of(const struct history *history, int64_t number)
{
	for (int i = 0; i < CHANNELS; i++)
		if (history->channels[i] == number)
			return i;
	fail();
	return 0;
}

static int account_of(const struct history *history, int64_t number)
{
	for (int i = 0; i < CHANNELS; i++)
		if (history->accounts[i] == number)
			return i;
	fail();
	return 0;
}

/* Makes a complete document, or one that shares the object of the first complete one. */
static struct document make_document(struct history *history, int64_t number)
{
	int account = account_of(history, number);
	struct document document = {
		.kind = DOCUMENT_REPORT, .name = "report", .size_bytes = 100 + below(900)};
	bool shares = history->has_whole[account] && below(2);
	snprintf(document.object, sizeof document.object, "issued/%s%lld", shares ? "own" : "whole",
	         (long long)number);
	if (shares) {
		snprintf(document.shared, sizeof document.shared, "issued/whole%lld", (long long)number);
		snprintf(document.pieces, sizeof document.pieces, "+7@0+%lld",
		         (long long)document.size_bytes - 7);
		document.own_bytes = 7;
	}
	return document;
}

static void count_document(struct history *history, int64_t number, const struct document *document)
{
	int account = account_of(history, number);
	history->document_bytes[account] +=
		document->shared[0] ? document->own_bytes : document->size_bytes;
	history->has_whole[account] = true;
}

static void step_end(struct history *history)
{
	const struct certification_claim claim = {
		.holder = "a", .now_us = INT64_MAX / 4, .lease_us = US_PER_SECOND};
	struct certification job;
	char incident[ID_SIZE];
	int result =
		store_claim_certification(history->sample.store, &claim, &history->arena, &job, NULL);
	if (result) {
		assert_int_equal(result, ERR_NOT_FOUND);
		return;
	}
	int channel = channel_of(history, job.channel);
	int64_t *counts =
		counts_of(history, history->sample.now_us, channel, (int)(job.chain % 2), (int)job.key - 1);
	struct document document = make_document(history, job.account);
	if (below(3)) {
		assert_int_equal(store_complete_certification(history->sample.store, &job, "a",
		                                              history->sample.now_us, &document, 1, NULL),
		                 OK);
		count_document(history, job.account, &document);
		counts[COMPLETED]++;
		counts[CERTIFIED] += job.last_sequence - job.first_sequence + 1;
	} else {
		assert_int_equal(store_fail_certification(history->sample.store, &job, "a", "a cause",
		                                          history->sample.now_us, incident, NULL),
		                 OK);
		counts[FAILED]++;
		counts[REFUNDS] += job.fee;
	}
}

static void step_certify(struct history *history)
{
	int channel = below(CHANNELS);
	int mode = below(2);
	if (history->last[channel][mode])
		ask(history, channel, mode, below(KEYS));
	step_end(history);
}

/* ---- comparison ---- */

static void read_row(struct history *history, struct db_query *query, int first, int count,
                     int64_t found[DAYS][CHANNELS][2][KEYS][COUNTS])
{
	int64_t day = db_integer(query, 1) - FIRST_DAY;
	int channel = channel_of(history, db_integer(query, 2) / 2);
	int64_t key = db_integer(query, 3) - 1;
	assert_true(day >= 0 && day < DAYS && key >= 0 && key < KEYS);
	assert_int_equal(db_integer(query, 0), history->accounts[channel]);
	int64_t *counts = found[day][channel][db_integer(query, 2) % 2][key];
	for (int i = 0; i < count; i++)
		counts[first + i] = db_integer(query, 4 + i);
}

/* After any sequence of steps: content and documents, each object once. */
static void compare_stored(struct history *history, struct db_connection *connection)
{
	for (int i = 0; i < CHANNELS; i++) {
		int64_t expected = history->document_bytes[account_of(history, history->accounts[i])];
		for (int cell = 0; cell < DAYS * CHANNELS * 2 * KEYS; cell++) {
			int channel = cell / (2 * KEYS) % CHANNELS;
			if (history->accounts[channel] == history->accounts[i])
				expected += history->expected[cell / (CHANNELS * 2 * KEYS)][channel]
				                             [cell / KEYS % 2][cell % KEYS][BYTES];
		}
		struct db_query *query =
			db_query(connection, "SELECT stored_bytes FROM accounts WHERE account = $1");
		db_bind_integer(query, history->accounts[i]);
		assert_true(db_step(query));
		assert_int_equal(db_integer(query, 0), expected);
		assert_int_equal(db_end(query, NULL), OK);
	}
}

static void compare(struct history *history)
{
	static int64_t found[DAYS][CHANNELS][2][KEYS][COUNTS];
	memset(found, 0, sizeof found);
	struct db_connection *reader = db_take_reader(history->sample.store->db);
	struct db_query *query = db_query(reader, "SELECT account, day, chain, key, events,"
	                                          " unpaid_events, content_bytes FROM daily_usage");
	while (db_step(query))
		read_row(history, query, EVENTS, 3, found);
	assert_int_equal(db_end(query, NULL), OK);
	query = db_query(reader, "SELECT account, day, chain, key, requested, completed, failed,"
	                         " events, fees, refunds FROM daily_certifications");
	while (db_step(query))
		read_row(history, query, REQUESTED, 6, found);
	assert_int_equal(db_end(query, NULL), OK);
	compare_stored(history, reader);
	db_give(reader);
	assert_memory_equal(found, history->expected, sizeof found);
}

/* ---- lists ---- */

#define ROWS_MAX (DAYS * CHANNELS * 2 * KEYS)
#define QUESTIONS 60

/* A row of the recount; 0 for levels by which rows are not grouped. */
struct own_row {
	int64_t period, account, channel, key, mode;
	int64_t counts[COUNTS];
	bool listed;
};

static int64_t period_of(unsigned by, int64_t day)
{
	int64_t first, last;
	time_month_days(day * US_PER_DAY, &first, &last);
	return by & USAGE_BY_DAY ? day : by & USAGE_BY_MONTH ? first : 0;
}

static struct own_row *find_own(struct own_row *rows, size_t *count, const struct own_row *wanted)
{
	for (size_t i = 0; i < *count; i++)
		if (rows[i].period == wanted->period && rows[i].account == wanted->account &&
		    rows[i].channel == wanted->channel && rows[i].key == wanted->key &&
		    rows[i].mode == wanted->mode)
			return &rows[i];
	rows[*count] = *wanted;
	return &rows[(*count)++];
}

static bool any_of(const int64_t counts[COUNTS])
{
	int64_t sum = 0;
	for (int i = 0; i < COUNTS; i++)
		sum += counts[i];
	return sum > 0;
}

/* Computes the rows that the list should have; account and channel are indices, -1: any. */
static size_t count_own(struct history *history, const struct usage_filter *filter, unsigned by,
                        int account, int channel, struct own_row rows[ROWS_MAX])
{
	size_t count = 0;
	for (int cell = 0; cell < ROWS_MAX; cell++) {
		int day = cell / (CHANNELS * 2 * KEYS), c = cell / (2 * KEYS) % CHANNELS;
		int mode = cell / KEYS % 2, key = cell % KEYS;
		const int64_t *counts = history->expected[day][c][mode][key];
		if (!any_of(counts) || FIRST_DAY + day < filter->first_day ||
		    FIRST_DAY + day > filter->last_day || (filter->mode >= 0 && mode != filter->mode) ||
		    (channel >= 0 && c != channel) ||
		    (account >= 0 && history->accounts[c] != history->accounts[account]))
			continue;
		struct own_row wanted = {
			.period = period_of(by, FIRST_DAY + day),
			.account = by & USAGE_BY_ACCOUNT ? history->accounts[c] : 0,
			.channel = by & USAGE_BY_CHANNEL ? history->channels[c] : 0,
			.key = by & USAGE_BY_KEY ? key + 1 : 0,
			.mode = mode,
		};
		struct own_row *row = find_own(rows, &count, &wanted);
		for (int i = 0; i < COUNTS; i++)
			row->counts[i] += counts[i];
	}
	return count;
}

static void compare_row(struct history *history, const struct usage_row *row, unsigned by,
                        struct own_row *rows, size_t count, struct own_row *last)
{
	long long at[5];
	char period[PERIOD_KEY_SIZE] = "";
	assert_int_equal(
		sscanf(row->cursor, "%lld-%lld-%lld-%lld-%lld", &at[0], &at[1], &at[2], &at[3], &at[4]), 5);
	struct own_row wanted = {at[0], at[1], at[2], at[3], at[4], {0}, false};
	size_t before = count;
	struct own_row *own = find_own(rows, &count, &wanted);
	assert_int_equal(count, before); /* it was returned before */
	assert_false(own->listed);
	own->listed = true;
	assert_memory_equal(&row->counts, own->counts, sizeof own->counts);
	assert_int_equal(row->mode, own->mode);
	const int64_t places[2][5] = {
		{last->period, last->account, last->channel, last->key, last->mode},
		{at[0], at[1], at[2], at[3], at[4]}};
	int differs = 0;
	while (differs < 4 && places[0][differs] == places[1][differs])
		differs++;
	assert_true(places[0][differs] < places[1][differs]); /* rows are in order */
	*last = wanted;
	if (by & (USAGE_BY_DAY | USAGE_BY_MONTH))
		period_key(by & USAGE_BY_DAY ? PERIOD_DAY : PERIOD_MONTH, at[0] * US_PER_DAY, period);
	assert_string_equal(row->period, period);
	assert_true((row->account_id != NULL) == ((by & USAGE_BY_ACCOUNT) != 0));
	assert_true((row->channel_id != NULL) == ((by & USAGE_BY_CHANNEL) != 0));
	assert_true((row->key_id != NULL) == ((by & USAGE_BY_KEY) != 0));
	if (row->channel_id)
		assert_string_equal(row->channel_id, history->channel_ids[channel_of(history, at[2])]);
}

static void compare_pages(struct history *history, const struct usage_filter *filter, unsigned by,
                          struct own_row *rows, size_t count)
{
	char after[USAGE_CURSOR_SIZE] = "";
	struct own_row last = {.mode = -1};
	struct usage_list list = {.more = true};
	size_t listed = 0;
	int64_t limit = 1 + below(30);
	while (list.more) {
		ARENA_AUTO struct arena arena = {.limit = (size_t)16 << 20};
		assert_int_equal(store_list_usage(history->sample.store, filter, slice_of(after), limit,
		                                  &arena, &list, NULL),
		                 OK);
		assert_true(list.count <= (size_t)limit && (!list.more || list.count == (size_t)limit));
		for (size_t i = 0; i < list.count; i++)
			compare_row(history, &list.items[i], by, rows, count, &last);
		listed += list.count;
		if (list.count)
			memcpy(after, list.items[list.count - 1].cursor, sizeof after);
	}
	assert_int_equal(listed, count);
}

static void compare_lists(struct history *history)
{
	static struct own_row rows[ROWS_MAX];
	for (int i = 0; i < QUESTIONS; i++) {
		int account = below(3) ? -1 : below(CHANNELS);
		int channel = account >= 0 && below(2) ? account : -1;
		bool all = below(2);
		struct usage_filter filter = {
			.first_day = all ? INT64_MIN : FIRST_DAY + below(DAYS / 2),
			.last_day = all ? INT64_MAX : FIRST_DAY + DAYS / 4 + below(DAYS),
			.mode = below(3) - 1,
			.by = (unsigned)below(32),
		};
		if (filter.by & USAGE_BY_DAY)
			filter.by &= ~(unsigned)USAGE_BY_MONTH;
		if (account >= 0)
			filter.account_id = slice_of(history->account_ids[account]);
		if (channel >= 0)
			filter.channel_id = slice_of(history->channel_ids[channel]);
		unsigned by = filter.by;
		by |= channel >= 0 || by & USAGE_BY_KEY ? USAGE_BY_CHANNEL : 0;
		by |= account >= 0 || by & USAGE_BY_CHANNEL ? USAGE_BY_ACCOUNT : 0;
		memset(rows, 0, sizeof rows);
		size_t count = count_own(history, &filter, by, account, channel, rows);
		compare_pages(history, &filter, by, rows, count);
	}
}

static bool compare_estimate(struct history *history, int channel, int mode, int64_t first,
                             int64_t last)
{
	const int64_t account = history->accounts[channel],
				  chain = history->channels[channel] * 2 + mode;
	struct content_estimate estimate;
	int64_t sum;
	assert_int_equal(
		store_estimate_content(history->sample.store, account, chain, first, last, &estimate, NULL),
		OK);
	assert_int_equal(
		store_sum_content(history->sample.store, account, chain, first, last, &sum, NULL), OK);
	if (estimate.exact)
		assert_int_equal(estimate.bytes, sum);
	assert_true(estimate.most >= sum);
	return estimate.exact;
}

/* Of all ranges, exactly those with an exact total are reported as exact. */
static void compare_estimates(struct history *history)
{
	int exact = 0, total = 0;
	for (int channel = 0; channel < CHANNELS; channel++)
		for (int mode = 0; mode < 2; mode++) {
			const int64_t last = history->last[channel][mode];
			if (last > 0)
				assert_true(compare_estimate(history, channel, mode, 1, last));
			for (int i = 0; i < QUESTIONS && last > 0; i++) {
				int64_t from = 1 + below((int)last);
				int64_t to = from + below((int)(last - from) + 1);
				exact += compare_estimate(history, channel, mode, from, to);
				total++;
			}
		}
	assert_true(exact < total);
}

static void refusals(struct history *history)
{
	static const char *const cursors[] = {"x",          "1-2-3-4",  "1-2-3-4-5-6",
	                                      "1--2-3-4-5", "1-2-3-4-", "1-2-3-4-9999999999999999999"};
	struct usage_list list;
	struct usage_filter filter = {.last_day = INT64_MAX, .mode = -1};
	for (size_t i = 0; i < sizeof cursors / sizeof *cursors; i++)
		assert_int_equal(store_list_usage(history->sample.store, &filter, slice_of(cursors[i]), 10,
		                                  &history->arena, &list, NULL),
		                 ERR_USAGE);
	filter.account_id = slice_of(history->account_ids[0]);
	filter.channel_id = slice_of(history->channel_ids[3]); /* of the other account */
	assert_int_equal(store_list_usage(history->sample.store, &filter, slice_of(""), 10,
	                                  &history->arena, &list, NULL),
	                 ERR_NOT_FOUND);
	filter.account_id = filter.channel_id = slice_of("");
	filter.key_id = slice_of("key_none");
	assert_int_equal(store_list_usage(history->sample.store, &filter, slice_of(""), 10,
	                                  &history->arena, &list, NULL),
	                 ERR_NOT_FOUND);
}

static void note_progress(void *context, const char *what, int64_t done, int64_t total)
{
	int64_t *last = context;
	assert_non_null(what);
	assert_true(done > 0 && done <= total);
	*last = done == total ? total : -1;
}

static void fill_again(struct history *history)
{
	struct schema_progress progress;
	int64_t told = 0;
	progress = (struct schema_progress){note_progress, &told};
	sample_change(&history->sample,
	              "DELETE FROM daily_usage; DELETE FROM daily_certifications;"
	              " DELETE FROM daily_credits; UPDATE accounts SET stored_bytes = 5;");
	struct db_connection *writer = db_take_writer(history->sample.store->db);
	assert_int_equal(db_begin(writer, NULL), OK);
	assert_int_equal(store_fill(writer, "999-another-step", &progress, NULL), OK);
	assert_int_equal(told, 0);
	assert_int_equal(store_fill(writer, "017-version-0.2", &progress, NULL), OK);
	assert_int_equal(db_commit(writer, NULL), OK);
	db_give(writer);
	int64_t events = 0;
	for (int i = 0; i < CHANNELS; i++)
		events += history->last[i][0] + history->last[i][1];
	assert_int_equal(told, events);
}

/* ---- histories ---- */

static int begin(void **state)
{
	static struct history history;
	memset(&history, 0, sizeof history);
	arena_init(&history.arena, (size_t)256 << 20);
	sample_create_store(&history.sample, server_url);
	history.sample.now_us = START;
	history.sample.unpaid_limit = 10;
	for (int i = 0; i < CHANNELS; i++) {
		enum modality modality = i % 2 ? MODALITY_HASH_ONLY : MODALITY_CONTENT;
		if (i % 2 == 0) /* two accounts, two channels each */
			sample_fill(&history.sample, history.sample.store, modality, 20);
		else
			sample_add_channel(&history.sample, modality);
		history.accounts[i] = history.sample.account;
		history.channels[i] = history.sample.channel;
		memcpy(history.account_ids[i], history.sample.account_id, ID_SIZE);
		memcpy(history.channel_ids[i], history.sample.channel_id, ID_SIZE);
	}
	*state = &history;
	return 0;
}

static int end(void **state)
{
	struct history *history = *state;
	sample_close(&history->sample);
	arena_free(&history->arena);
	return 0;
}

static void live(struct history *history)
{
	for (int step = 0; step < STEPS; step++) {
		int kind = below(10);
		history->sample.now_us += below(2) ? US_PER_SECOND : below(12) * US_PER_DAY / 12;
		if (kind < 6)
			step_register(history);
		else if (kind < 8)
			step_credits(history);
		else
			step_certify(history);
	}
}

static void recount_totals(struct history *history)
{
	for (int i = 0; i < CHANNELS; i++) /* one of each kind before random ones */
		history->sample.now_us += US_PER_SECOND, step_register(history);
	live(history);
	compare(history);
	compare_lists(history);
	compare_estimates(history);
	refusals(history);
	assert_int_equal(sample_check(&history->sample), 0);
	fill_again(history);
	compare(history);
	assert_int_equal(sample_check(&history->sample), 0);
}

TEST_CASE_ON(totals_of_a_first_history_are_what_a_recount_finds, struct history *history)
{
	recount_totals(history);
}

TEST_CASE_ON(totals_of_another_history_are_what_a_recount_finds, struct history *history)
{
	recount_totals(history);
}

TEST_CASE_ON(totals_of_a_third_history_are_what_a_recount_finds, struct history *history)
{
	recount_totals(history);
}

TEST_CASE_ON(a_check_finds_what_is_counted_wrong, struct history *history)
{
	live(history);
	history->sample.now_us += US_PER_SECOND;
	while (!history->last[0][0])
		step_register(history);
	while (!ask(history, 0, 0, 0))
		step_credits(history);
	assert_int_equal(sample_check(&history->sample), 0);
	static const char *const changes[][2] = {
		{"UPDATE daily_usage SET events = events + 1",
	     "UPDATE daily_usage SET events = events - 1"},
		{"UPDATE daily_usage SET unpaid_events = unpaid_events + 1",
	     "UPDATE daily_usage SET unpaid_events = unpaid_events - 1"},
		{"UPDATE daily_usage SET content_bytes = content_bytes + 1",
	     "UPDATE daily_usage SET content_bytes = content_bytes - 1"},
		{"UPDATE daily_usage SET day = day + 1000", "UPDATE daily_usage SET day = day - 1000"},
		{"UPDATE daily_usage SET key = key + 1000", "UPDATE daily_usage SET key = key - 1000"},
		{"INSERT INTO daily_usage SELECT account, 1, 999999, 1, 1, 0, 0 FROM accounts",
	     "DELETE FROM daily_usage WHERE chain = 999999"},
		{"INSERT INTO daily_usage SELECT account, 1, chain, 1, 0, 0, 5 FROM chains",
	     "DELETE FROM daily_usage WHERE day = 1"},
		{"UPDATE daily_certifications SET requested = requested + 1",
	     "UPDATE daily_certifications SET requested = requested - 1"},
		{"UPDATE daily_certifications SET fees = fees + 1",
	     "UPDATE daily_certifications SET fees = fees - 1"},
		{"UPDATE daily_certifications SET day = day + 1000",
	     "UPDATE daily_certifications SET day = day - 1000"},
		{"UPDATE daily_certifications SET events = events + 1, refunds = refunds + 1",
	     "UPDATE daily_certifications SET events = events - 1, refunds = refunds - 1"},
	};
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		sample_change(&history->sample, changes[i][0]);
		assert_true(sample_check(&history->sample) > 0);
		sample_change(&history->sample, changes[i][1]);
		assert_int_equal(sample_check(&history->sample), 0);
	}
}

/* Over all accounts: a page reads some from its cursor on, and neither the earlier ones nor those
 * far after them. The sums of the others would overflow if they were read. */
TEST_CASE_ON(a_page_reads_a_few_accounts, struct history *history)
{
	struct sample *sample = &history->sample;
	const struct usage_filter filter = {.mode = -1, .by = USAGE_BY_ACCOUNT, .last_day = INT64_MAX};
	struct usage_list list;
	char after[USAGE_CURSOR_SIZE] = "";
	int64_t rows = 0;
	for (int i = 0; i < 350; i++)
		sample_fill(sample, sample->store, MODALITY_HASH_ONLY, 0);
	sample_change(sample, "INSERT INTO daily_usage SELECT account, 5, 2, 1, 1, 0, 0 FROM accounts");
	do {
		assert_int_equal(store_list_usage(sample->store, &filter, slice_of(after), 20,
		                                  &history->arena, &list, NULL),
		                 OK);
		rows += (int64_t)list.count;
		memcpy(after, list.items[list.count - 1].cursor, sizeof after);
		if (rows == 100) {
			sample_change(sample, "UPDATE daily_usage SET events = 9223372036854775807"
			                      " WHERE account < 50 OR account > 300");
			sample_change(sample, "INSERT INTO daily_usage SELECT account, 6, 2, 1, events, 0, 0"
			                      " FROM daily_usage WHERE account < 50 OR account > 300");
		}
		if (rows == 160)
			sample_change(sample, "UPDATE daily_usage SET events = 1");
	} while (list.more);
	assert_int_equal(rows, 352);
}

/* Accounts are read in batches. When few of them have rows, one page takes several batches, and no
 * account at a batch boundary is missed. */
TEST_CASE_ON(a_page_leaves_no_account_out, struct history *history)
{
	struct sample *sample = &history->sample;
	static const unsigned by[] = {USAGE_BY_ACCOUNT, USAGE_BY_ACCOUNT | USAGE_BY_MONTH};
	for (int i = 0; i < 350; i++)
		sample_fill(sample, sample->store, MODALITY_HASH_ONLY, 0);
	for (int left = 0; left < 100; left += 33) {
		sample_change(sample, "DELETE FROM daily_usage");
		char fill[160];
		snprintf(fill, sizeof fill,
		         "INSERT INTO daily_usage SELECT account, 5, 2, 1, 1, 0, 0 FROM accounts"
		         " WHERE account %% 100 >= %d",
		         left);
		sample_change(sample, fill);
		for (size_t i = 0; i < 2 * sizeof by / sizeof *by; i++) {
			const struct usage_filter filter = {.mode = -1, .by = by[i / 2], .last_day = INT64_MAX};
			struct usage_list list;
			char after[USAGE_CURSOR_SIZE] = "";
			int64_t rows = 0;
			do {
				assert_int_equal(store_list_usage(sample->store, &filter, slice_of(after),
				                                  i % 2 ? 1000 : 90, &history->arena, &list, NULL),
				                 OK);
				rows += (int64_t)list.count;
				memcpy(after, list.items[list.count - 1].cursor, sizeof after);
			} while (list.more);
			assert_int_equal(rows, sample_number(sample, "SELECT count(*) FROM daily_usage"));
		}
	}
}

int main(int argc, char **argv)
{
	server_url = argc > 2 ? argv[1] : NULL;
	srand((unsigned)test_seed());
	return tests_run(NULL, NULL, begin, end);
}
