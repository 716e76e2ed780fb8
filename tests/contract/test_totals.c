/* The daily totals of credits, seals and deliveries over random histories, against a recount by
 * what callers were told; what lists say of them; and filled anew, as the schema's step does. On a
 * SQLite file, or on a server:
 *     contract-totals [postgresql://… postgresql://…]
 * The seed is printed; CONSTANCIA_TEST_SEED repeats a run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "registering.h"
#include "sample.h"
#include "store/certifications/certifications.h"
#include "store/events/segments.h"
#include "store/internal.h"
#include "store/nodes/quiet.h"
#include "store/notices/deliveries.h"
#include "store/notices/replay.h"
#include "store/notices/webhooks.h"
#include "store/schema/schema.h"
#include "store/usage/count.h"
#include "store/usage/totals.h"

#define START INT64_C(1767222000000000) /* 2025-12-31T23:00:00Z */
#define FIRST_DAY (START / US_PER_DAY)
#define STEPS 80
#define DAYS 60
#define ACCOUNTS 2
#define EVENTS_MAX 4000

/* Statements that were begun; with these links of the program. */
static int statements;
struct db_query *__real_db_query(struct db_connection *connection, const char *literal_sql);
struct db_query *__wrap_db_query(struct db_connection *connection, const char *literal_sql);
struct db_query *__wrap_db_query(struct db_connection *connection, const char *literal_sql)
{
	statements++;
	return __real_db_query(connection, literal_sql);
}

static const char *server_url; /* postgresql://…, NULL: a file of SQLite */

enum { SETTLED, BOUGHT, RETURNED, FEES, REFUNDS, ADJUSTED, KINDS };
struct own_day {
	int64_t paid, unpaid, kinds[KINDS];
	struct seal_day seals;
	struct delivery_day deliveries;
};
struct own_account {
	struct sample sample; /* its names and numbers */
	struct own_day days[DAYS];
	int64_t received[EVENTS_MAX]; /* by sequence - 1, of its live chain */
	int64_t registered, tests;    /* events of either chain */
	char endpoint_id[ID_SIZE];
	int64_t endpoint, balance;
	bool replayed;
};
struct history {
	struct sample sample; /* the store and the clock */
	struct arena arena;
	struct own_account accounts[ACCOUNTS];
};

static int below(int limit)
{
	return rand() % limit;
}

static struct own_day *day_of(struct own_account *account, int64_t at_us)
{
	int64_t day = at_us / US_PER_DAY - FIRST_DAY;
	assert_true(day >= 0 && day < DAYS);
	return &account->days[day];
}

static void note_delay(struct delays *delays, int64_t times, int64_t from_us, int64_t to_us)
{
	static const int64_t bounds_s[DELAY_BOUNDS] = {1, 10, 60, 600, 3600, 86400};
	int64_t ms = to_us > from_us ? (to_us - from_us) / 1000 : 0;
	delays->sum_ms += times * ms;
	delays->longest_ms = ms > delays->longest_ms ? ms : delays->longest_ms;
	for (int i = 0; i < DELAY_BOUNDS; i++)
		if (ms <= bounds_s[i] * 1000) {
			delays->within[i] += times;
			break;
		}
}

/* ---- what happens ---- */

static void step_register(struct history *history, struct own_account *account)
{
	struct registration items[12] = {0};
	struct registration *list[12];
	size_t count = (size_t)below(12) + 1;
	for (size_t i = 0; i < count; i++) {
		items[i] = (struct registration){
			.account = account->sample.account,
			.channel = account->sample.channel,
			.chain = below(5) ? account->sample.live_chain : account->sample.test_chain,
			.key = 1 + below(2),
			.declaration = {.modality = MODALITY_HASH_ONLY,
		                    .client_ref =
		                        slice_of(arena_printf(&history->arena, "r-%lld",
		                                              (long long)++history->sample.references)),
		                    .occurred_at_us = TIME_NONE},
			.content_bytes = -1,
			.arena = &history->arena,
		};
		list[i] = &items[i];
	}
	assert_int_equal(
		register_items(history->sample.store, list, count, history->sample.now_us, NULL), OK);
	for (size_t i = 0; i < count; i++) {
		if (items[i].result)
			continue;
		if (items[i].chain % 2) {
			account->tests++;
			continue;
		}
		int64_t at_us = items[i].event->received_at_us;
		bool unpaid = items[i].event->status == STATUS_UNPAID;
		struct own_day *day = day_of(account, at_us);
		*(unpaid ? &day->unpaid : &day->paid) += 1;
		account->balance -= !unpaid;
		account->received[account->registered++] = at_us;
	}
}

static void step_credits(struct history *history, struct own_account *account)
{
	static const struct {
		const char *kind;
		int counted;
		int sign;
	} kinds[] = {{"adjustment", ADJUSTED, 1}, {"revert", RETURNED, -1}};
	int chosen = below(3) == 0;
	struct credit_movement movement = {kinds[chosen].sign * (1 + below(25)), kinds[chosen].kind,
	                                   "why"};
	struct credit_outcome outcome;
	struct own_day *day = day_of(account, history->sample.now_us);
	assert_int_equal(store_move_credits(history->sample.store, slice_of(account->sample.account_id),
	                                    &movement, history->sample.now_us, &outcome, NULL),
	                 OK);
	day->kinds[kinds[chosen].counted] += movement.credits;
	day->kinds[SETTLED] -= outcome.settled_events;
	account->balance += movement.credits - outcome.settled_events;
	assert_int_equal(outcome.balance, account->balance);
}

static void step_certify(struct history *history, struct own_account *account)
{
	if (!account->tests)
		return;
	struct certification asked = {
		.account = account->sample.account,
		.channel = account->sample.channel,
		.chain = account->sample.test_chain,
		.key = 1,
		.mode = MODE_TEST, /* which waits for no seal; its fee is a fee */
		.requested_at_us = history->sample.now_us,
		.range = {.from_us = TIME_NONE, .to_us = TIME_NONE, .seq_from = 1, .seq_to = 1},
		.first_sequence = 1,
		.last_sequence = account->tests,
		.config_versions = "[1]",
		.fee = 1 + below(3),
	};
	memcpy(asked.channel_id, account->sample.channel_id, ID_SIZE);
	if (store_accept_certification(history->sample.store, "SVC", 0, &asked, NULL))
		return; /* without credits */
	day_of(account, history->sample.now_us)->kinds[FEES] -= asked.fee;
	account->balance -= asked.fee;
	const struct certification_claim claim = {
		.holder = "a", .now_us = INT64_MAX / 4, .lease_us = US_PER_SECOND};
	struct certification job;
	char incident[ID_SIZE];
	assert_int_equal(
		store_claim_certification(history->sample.store, &claim, &history->arena, &job, NULL), OK);
	assert_int_equal(store_fail_certification(history->sample.store, &job, "a", "a cause",
	                                          history->sample.now_us, incident, NULL),
	                 OK);
	day_of(account, history->sample.now_us)->kinds[REFUNDS] += asked.fee;
	account->balance += asked.fee;
	/* What comes back settles what was unpaid, as other credits do: here nothing is. */
}

static struct own_account *account_of(struct history *history, int64_t number)
{
	for (int i = 0; i < ACCOUNTS; i++)
		if (history->accounts[i].sample.account == number)
			return &history->accounts[i];
	fail();
	return NULL;
}

/* A round over some events of one or both accounts' chains, whose timestamp comes a while later. */
static void step_seal(struct history *history)
{
	struct unsealed_chain chains[ACCOUNTS];
	struct segment_record segments[ACCOUNTS];
	size_t count, failed;
	assert_int_equal(store_list_unsealed(history->sample.store, 0, 0, 1 + (size_t)below(2), chains,
	                                     &count, NULL),
	                 OK);
	if (count == 0)
		return;
	struct round_record round = {.authority = "a",
	                             .kind = "development",
	                             .request = slice_of("r"),
	                             .response_head = slice_of("h"),
	                             .token = slice_of("t")};
	assert_int_equal(store_last_round(history->sample.store, &round.round, &round.token_hash, NULL),
	                 OK);
	round.round++;
	for (size_t i = 0; i < count; i++) {
		int64_t left = chains[i].last_sequence - chains[i].sealed_sequence;
		segments[i] = (struct segment_record){.account = chains[i].account,
		                                      .chain = chains[i].chain,
		                                      .number = chains[i].sealed_segment + 1,
		                                      .first_sequence = chains[i].sealed_sequence + 1,
		                                      .last_sequence =
		                                          chains[i].sealed_sequence + 1 + below((int)left),
		                                      .previous_seal_hash = chains[i].seal_hash,
		                                      .document = slice_of("d"),
		                                      .nodes = slice_of("n")};
		snprintf(segments[i].segment_id, ID_SIZE, "seg_%lld_%zu", (long long)round.round, i);
	}
	static const int64_t waits_ms[] = {0, 999, 1000, 1001, 10000, 61000, 600000, 3600001, 90000000};
	round.obtained_at_us = round.sealed_at_us =
		history->sample.now_us + waits_ms[below(9)] * 1000 - (below(9) ? 0 : 60 * US_PER_SECOND);
	history->sample.leaves_uncounted = below(3) == 0;
	assert_int_equal(sample_write_round(&history->sample, &round, segments, count, &failed, NULL),
	                 OK);
	for (size_t i = 0; i < count; i++) {
		struct own_account *account = account_of(history, segments[i].account);
		int64_t events = segments[i].last_sequence - segments[i].first_sequence + 1;
		struct seal_day *seals = &day_of(account, round.obtained_at_us)->seals;
		seals->segments++;
		seals->events += events;
		note_delay(&seals->delays, events, account->received[segments[i].first_sequence - 1],
		           round.obtained_at_us);
	}
}

static void give_notice(struct history *history, struct own_account *account)
{
	struct ledger_notice notice = {.type = NOTICE_BALANCE_LOW, .data = slice_of("{}")};
	struct db_connection *writer = db_take_writer(history->sample.store->db);
	assert_int_equal(db_begin(writer, NULL), OK);
	assert_int_equal(store_write_notices(writer, account->sample.account, &notice, MODE_LIVE,
	                                     history->sample.now_us, NULL),
	                 OK);
	assert_int_equal(db_commit(writer, NULL), OK);
	db_give(writer);
}

/* One of what is due is tried; its replay may be asked for meanwhile, and it may be told twice. */
static void step_deliver(struct history *history, struct own_account *account, bool replays)
{
	struct delivery_batch batch;
	give_notice(history, account);
	assert_int_equal(store_load_deliveries(history->sample.store, account->sample.account,
	                                       account->endpoint, INT64_MAX / 4, 5, &history->arena,
	                                       &batch, NULL),
	                 OK);
	if (batch.count == 0)
		return;
	struct delivery *tried = &batch.items[below((int)batch.count)];
	for (size_t i = 0; i < batch.count && replays && !tried->tries; i++)
		tried = &batch.items[i];
	if (replays && below(2) == 0) {
		assert_int_equal(store_replay_notice(history->sample.store, slice_of(tried->notice_id),
		                                     slice_of(account->endpoint_id), history->sample.now_us,
		                                     NULL),
		                 OK);
		account->replayed = true;
	}
	struct attempt_record record = {
		.account = account->sample.account,
		.endpoint = account->endpoint,
		.notice = tried->notice,
		.attempts = tried->attempts,
		.tries = tried->tries,
		.end = (enum delivery_end)below(3),
		.since_us = tried->since_us,
		.at_us = history->sample.now_us,
		.duration_us = below(20) * US_PER_SECOND,
		.next_at_us = history->sample.now_us,
		.http_status = 200,
	};
	bool stands = !account->replayed || tried->tries == 0;
	int times = 1 + (below(3) == 0);
	for (int i = 0; i < times; i++)
		assert_int_equal(store_record_attempts(history->sample.store, &record, 1, 1000000,
		                                       history->sample.now_us, NULL),
		                 OK);
	account->replayed = false;
	struct delivery_day *day = &day_of(account, record.at_us)->deliveries;
	day->attempts++;
	if (!stands)
		return;
	day->failed += record.end == DELIVERY_USED_UP;
	if (record.end == DELIVERY_DONE) {
		day->delivered++;
		note_delay(&day->delays, 1, record.since_us, record.at_us + record.duration_us);
	}
}

static void live(struct history *history, bool replays)
{
	for (int step = 0; step < STEPS; step++) {
		struct own_account *account = &history->accounts[below(ACCOUNTS)];
		int kind = below(12);
		history->sample.now_us += below(2) ? US_PER_SECOND : below(12) * US_PER_DAY / 12;
		if (kind < 4)
			step_register(history, account);
		else if (kind < 6)
			step_credits(history, account);
		else if (kind < 7)
			step_certify(history, account);
		else if (kind < 9)
			step_seal(history);
		else
			step_deliver(history, account, replays);
	}
}

/* ---- what stands ---- */

static void compare_delays(const struct delays *told, const struct delays *own)
{
	assert_int_equal(told->sum_ms, own->sum_ms);
	assert_int_equal(told->longest_ms, own->longest_ms);
	for (int i = 0; i < DELAY_BOUNDS; i++)
		assert_int_equal(told->within[i], own->within[i]);
}

static void compare_balances(struct history *history, struct own_account *account)
{
	struct days days = {slice_of(account->sample.account_id), INT64_MIN, INT64_MAX};
	struct balance_list list = {.more = true};
	int64_t balance = 20, unpaid = 0, next = FIRST_DAY;
	while (list.more) {
		ARENA_AUTO struct arena arena;
		arena_init(&arena, (size_t)1 << 20);
		assert_int_equal(store_list_balances(history->sample.store, &days, history->sample.now_us,
		                                     1 + below(20), &arena, &list, NULL),
		                 OK);
		for (size_t i = 0; i < list.count; i++) {
			const struct balance_day *told = &list.items[i];
			const struct own_day *own = &account->days[next - FIRST_DAY];
			assert_int_equal(told->day, next++);
			for (int kind = 0; kind < KINDS; kind++)
				balance += own->kinds[kind];
			balance -= own->paid;
			unpaid += own->unpaid + own->kinds[SETTLED];
			assert_int_equal(told->balance, balance);
			assert_int_equal(told->unpaid_events, unpaid);
			assert_int_equal(told->events, -own->paid);
			assert_int_equal(told->settlements, own->kinds[SETTLED]);
			assert_int_equal(told->purchases, own->kinds[BOUGHT]);
			assert_int_equal(told->returns, own->kinds[RETURNED]);
			/* The first credits of all were given when it was made. */
			assert_int_equal(told->adjustments,
			                 own->kinds[ADJUSTED] + (told->day == FIRST_DAY ? 20 : 0));
			assert_int_equal(told->fees, own->kinds[FEES]);
			assert_int_equal(told->fee_refunds, own->kinds[REFUNDS]);
		}
		days.first_day = next;
	}
	assert_int_equal(balance, account->balance);
	assert_int_equal(next - 1, history->sample.now_us / US_PER_DAY);
}

static void compare_seals(struct history *history, struct own_account *account)
{
	struct days days = {slice_of(account->sample.account_id), FIRST_DAY, FIRST_DAY + DAYS};
	struct seal_list list = {.more = true};
	int64_t next = FIRST_DAY;
	while (list.more) {
		assert_int_equal(store_list_seals(history->sample.store, &days, 1 + below(5),
		                                  &history->arena, &list, NULL),
		                 OK);
		for (size_t i = 0; i < list.count; i++) {
			for (; next < list.items[i].day; next++)
				assert_int_equal(account->days[next - FIRST_DAY].seals.segments, 0);
			const struct seal_day *own = &account->days[next++ - FIRST_DAY].seals;
			assert_int_equal(list.items[i].segments, own->segments);
			assert_int_equal(list.items[i].events, own->events);
			compare_delays(&list.items[i].delays, &own->delays);
		}
		days.first_day = next;
	}
	for (; next < FIRST_DAY + DAYS; next++)
		assert_int_equal(account->days[next - FIRST_DAY].seals.segments, 0);
}

static void compare_deliveries(struct history *history, struct own_account *account)
{
	struct days days = {slice_of(account->sample.account_id), FIRST_DAY, FIRST_DAY + DAYS};
	struct delivery_day_list list = {.more = true};
	int64_t next = FIRST_DAY, behind = 0;
	while (list.more) {
		assert_int_equal(store_list_delivery_days(history->sample.store, &days,
		                                          slice_of(below(2) ? account->endpoint_id : ""),
		                                          behind, 1 + below(5), &history->arena, &list,
		                                          NULL),
		                 OK);
		for (size_t i = 0; i < list.count; i++) {
			const struct delivery_day *told = &list.items[i];
			for (; next < told->day; next++)
				assert_int_equal(account->days[next - FIRST_DAY].deliveries.attempts, 0);
			const struct delivery_day *own = &account->days[next++ - FIRST_DAY].deliveries;
			assert_string_equal(told->endpoint_id, account->endpoint_id);
			assert_int_equal(told->attempts, own->attempts);
			assert_int_equal(told->delivered, own->delivered);
			assert_int_equal(told->failed, own->failed);
			compare_delays(&told->delays, &own->delays);
			days.first_day = told->day;
			behind = told->endpoint;
		}
	}
	for (; next < FIRST_DAY + DAYS; next++)
		assert_int_equal(account->days[next - FIRST_DAY].deliveries.attempts, 0);
}

static void count_sealed(struct history *history)
{
	for (bool more = true; more;)
		assert_int_equal(store_count_sealed(history->sample.store, &more, NULL), OK);
}

static void compare(struct history *history)
{
	count_sealed(history);
	for (int i = 0; i < ACCOUNTS; i++) {
		compare_balances(history, &history->accounts[i]);
		compare_seals(history, &history->accounts[i]);
		compare_deliveries(history, &history->accounts[i]);
	}
}

static void refusals(struct history *history)
{
	struct days days = {slice_of("acc_none"), 0, INT64_MAX};
	struct balance_list balances;
	struct seal_list seals;
	struct delivery_day_list deliveries;
	struct store *store = history->sample.store;
	assert_int_equal(store_list_balances(store, &days, START, 9, &history->arena, &balances, NULL),
	                 ERR_NOT_FOUND);
	assert_int_equal(store_list_seals(store, &days, 9, &history->arena, &seals, NULL),
	                 ERR_NOT_FOUND);
	assert_int_equal(store_list_delivery_days(store, &days, slice_of(""), 0, 9, &history->arena,
	                                          &deliveries, NULL),
	                 ERR_NOT_FOUND);
	days.account_id = slice_of(history->accounts[0].sample.account_id);
	assert_int_equal(store_list_delivery_days(store, &days,
	                                          slice_of(history->accounts[1].endpoint_id), 0, 9,
	                                          &history->arena, &deliveries, NULL),
	                 ERR_NOT_FOUND);
}

static int64_t number_of(struct history *history, const char *sql)
{
	struct db_connection *reader = db_take_reader(history->sample.store->db);
	struct db_query *query = db_query(reader, sql);
	assert_true(db_step(query));
	int64_t number = db_integer(query, 0);
	assert_int_equal(db_end(query, NULL), OK);
	db_give(reader);
	return number;
}

/* As a store of before stands when the step comes. */
static void fill_again(struct history *history)
{
	sample_change(&history->sample,
	              "DELETE FROM daily_credits; DELETE FROM daily_seals;"
	              " DELETE FROM daily_deliveries; UPDATE segments SET received_at = NULL;");
	struct db_connection *writer = db_take_writer(history->sample.store->db);
	assert_int_equal(db_begin(writer, NULL), OK);
	struct error error = {0};
	int result = store_fill(writer, "999-daily-totals", NULL, &error);
	if (result)
		print_message("%s\n", error_reason(&error, result));
	assert_int_equal(result, OK);
	assert_int_equal(db_commit(writer, NULL), OK);
	db_give(writer);
}

/* ---- histories ---- */

static int begin(void **state)
{
	static struct history history;
	memset(&history, 0, sizeof history);
	arena_init(&history.arena, (size_t)256 << 20);
	sample_make_store(&history.sample, server_url);
	history.sample.now_us = START;
	history.sample.unpaid_limit = 10;
	for (int i = 0; i < ACCOUNTS; i++) {
		struct own_account *account = &history.accounts[i];
		sample_fill(&history.sample, history.sample.store, MODALITY_HASH_ONLY, 20);
		account->sample = history.sample;
		account->balance = 20;
		assert_int_equal(
			store_create_webhook(history.sample.store, slice_of(account->sample.account_id),
		                         "https://example.org/", NULL, START, account->endpoint_id, NULL),
			OK);
		struct db_connection *reader = db_take_reader(history.sample.store->db);
		struct db_query *query =
			db_query(reader, "SELECT endpoint FROM webhook_endpoints WHERE endpoint_id = $1");
		db_bind_string(query, account->endpoint_id);
		assert_true(db_step(query));
		account->endpoint = db_integer(query, 0);
		assert_int_equal(db_end(query, NULL), OK);
		db_give(reader);
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

/* One of each before chance decides. */
static void live_all(struct history *history, bool replays)
{
	for (int i = 0; i < ACCOUNTS; i++) {
		struct own_account *account = &history->accounts[i];
		step_register(history, account);
		step_certify(history, account);
		step_credits(history, account);
		step_deliver(history, account, replays);
	}
	step_seal(history);
	live(history, replays);
}

static void totals_are_what_a_recount_finds(void **state)
{
	struct history *history = *state;
	live_all(history, true);
	assert_int_equal(sample_check(&history->sample),
	                 0); /* whatever is counted of the last rounds */
	compare(history);
	refusals(history);
	assert_int_equal(sample_check(&history->sample), 0);
}

static void old_stores_are_counted_from_what_is_there(void **state)
{
	struct history *history = *state;
	live_all(history, false);
	compare(history);
	fill_again(history);
	compare(history);
	assert_int_equal(sample_check(&history->sample), 0);
	live(history, false); /* and it goes on behind that */
	compare(history);
	assert_int_equal(sample_check(&history->sample), 0);
}

static void a_check_finds_what_is_counted_wrong(void **state)
{
	struct history *history = *state;
	live_all(history, true);
	count_sealed(history);
	assert_int_equal(sample_check(&history->sample), 0);
	static const char *const changes[][2] = {
		{"UPDATE daily_credits SET credits = credits + 1",
	     "UPDATE daily_credits SET credits = credits - 1"},
		{"UPDATE daily_credits SET movements = movements + 1",
	     "UPDATE daily_credits SET movements = movements - 1"},
		{"UPDATE daily_credits SET day = day + 1000", "UPDATE daily_credits SET day = day - 1000"},
		{"INSERT INTO daily_credits SELECT account, 1, 'fee', 1, 1 FROM accounts",
	     "DELETE FROM daily_credits WHERE day = 1"},
		{"UPDATE daily_seals SET events = events + 1",
	     "UPDATE daily_seals SET events = events - 1"},
		{"UPDATE daily_seals SET longest_ms = longest_ms + 1",
	     "UPDATE daily_seals SET longest_ms = longest_ms - 1"},
		{"UPDATE daily_seals SET within_10m = within_10m + 1",
	     "UPDATE daily_seals SET within_10m = within_10m - 1"},
		{"UPDATE daily_seals SET day = day + 1000", "UPDATE daily_seals SET day = day - 1000"},
		{"UPDATE daily_deliveries SET day = day + 1000",
	     "UPDATE daily_deliveries SET day = day - 1000"},
		{"UPDATE daily_deliveries SET endpoint = endpoint + 1000",
	     "UPDATE daily_deliveries SET endpoint = endpoint - 1000"},
		{"UPDATE daily_deliveries SET delivered = delivered + attempts + 1",
	     "UPDATE daily_deliveries SET delivered = delivered - attempts - 1"},
		{"UPDATE daily_deliveries SET within_1h = within_1h + attempts + 1",
	     "UPDATE daily_deliveries SET within_1h = within_1h - attempts - 1"},
	};
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		sample_change(&history->sample, changes[i][0]);
		assert_true(sample_check(&history->sample) > 0);
		sample_change(&history->sample, changes[i][1]);
		assert_int_equal(sample_check(&history->sample), 0);
	}
}

/* Tried ones, replayed ones and new ones. */
static void what_is_skipped_is_counted(void **state)
{
	struct history *history = *state;
	for (int i = 0; i < 2; i++) {
		int64_t skipped = 0;
		live_all(history, true);
		while (number_of(history, "SELECT count(*) FROM webhook_deliveries"
		                          " WHERE status = 'waiting' AND tries > 0") == 0)
			step_deliver(history, &history->accounts[0], true);
		assert_int_equal(sample_check(&history->sample), 0);
		int64_t waiting =
			number_of(history, "SELECT count(*) FROM webhook_deliveries WHERE status = 'waiting'");
		int64_t failed = number_of(history, "SELECT CAST(sum(failed) AS BIGINT)"
		                                    " + (SELECT count(*) FROM webhook_deliveries"
		                                    " WHERE status = 'waiting' AND tries > 0)"
		                                    " FROM daily_deliveries");
		assert_int_equal(
			store_skip_deliveries(history->sample.store, history->sample.now_us, &skipped, NULL),
			OK);
		assert_int_equal(skipped, waiting);
		assert_int_equal(
			number_of(history, "SELECT CAST(sum(failed) AS BIGINT) FROM daily_deliveries"), failed);
		assert_int_equal(sample_check(&history->sample), 0);
	}
}

/* ---- a round of many accounts ---- */

#define MANY 2500 /* accounts, of one segment each, in three blocks */
#define A_FEW 32

static void stage_many(struct history *history)
{
	sample_change(
		&history->sample,
		"INSERT INTO segments (account, chain, number, segment_id, first_sequence,"
		" last_sequence, round, root, document, nodes, path, place, received_at)"
		" WITH RECURSIVE more(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM more WHERE n < 2499)"
		" SELECT 1000 + n, 10000 + 2 * n, 1, 'seg_many_' || n, 1, 3, 1, '', '', '', '', n,"
		" 1767222000000000 FROM more; UPDATE staged_round SET blocks = 3");
}

static void write_many(struct history *history)
{
	struct sha256 blocks[3] = {0};
	struct round_record round = {.round = 1,
	                             .authority = "a",
	                             .kind = "development",
	                             .sealed_at_us = START,
	                             .obtained_at_us = START + US_PER_SECOND,
	                             .request = slice_of("r"),
	                             .response_head = slice_of("h"),
	                             .token = slice_of("t"),
	                             .blocks = slice_make(blocks, sizeof blocks)};
	assert_int_equal(store_write_round(history->sample.store, &round, NULL), OK);
}

/* On SQLite: what a block's segments are found by, and nothing else of the round is read. */
static void a_block_is_found_by_its_places(struct history *history)
{
	if (server_url)
		return;
	bool found = false;
	struct db_connection *reader = db_take_reader(history->sample.store->db);
	struct db_query *query = db_query(reader, "EXPLAIN QUERY PLAN " PLACED_TOTALS);
	while (db_step(query)) {
		char line[256];
		snprintf(line, sizeof line, "%.*s", (int)db_text(query, 3).size, db_text(query, 3).data);
		found = found || strstr(line, "segments_by_place (round=? AND place>? AND place<?)");
	}
	assert_int_equal(db_end(query, NULL), OK);
	db_give(reader);
	assert_true(found);
}

/* Whoever writes keeps registration waiting: the round itself is a few statements, however many
 * accounts it is of, and each transaction behind it of a block at most. */
static void a_round_of_many_accounts_is_written_at_once(void **state)
{
	struct history *history = *state;
	stage_many(history);
	statements = 0;
	write_many(history);
	assert_true(statements < A_FEW);
	assert_int_equal(number_of(history, "SELECT count(*) FROM daily_seals"), 0);
	a_block_is_found_by_its_places(history);
	bool more = true;
	int64_t counted = 0;
	for (int i = 0; i < 3; i++) {
		statements = 0;
		assert_int_equal(store_count_sealed(history->sample.store, &more, NULL), OK);
		assert_true(more && statements <= ROUND_BLOCK_SEGMENTS_MAX + A_FEW);
		counted += ROUND_BLOCK_SEGMENTS_MAX;
		assert_int_equal(number_of(history, "SELECT count(*) FROM daily_seals"),
		                 counted < MANY ? counted : MANY);
		/* It goes on from there, whoever does. */
		store_close(history->sample.store);
		assert_int_equal(store_open(&(struct db_options){.url = history->sample.url},
		                            &history->sample.store, NULL),
		                 OK);
	}
	assert_int_equal(store_count_sealed(history->sample.store, &more, NULL), OK);
	assert_false(more);
	assert_int_equal(number_of(history, "SELECT count(*) FROM daily_seals WHERE segments = 1"
	                                    " AND events = 3 AND delay_ms = 3000 AND within_1s = 3"),
	                 MANY);
	assert_int_equal(number_of(history, "SELECT count(*) FROM uncounted_rounds"), 0);
}

int main(int argc, char **argv)
{
	server_url = argc > 2 ? argv[1] : NULL;
	const char *seed = getenv("CONSTANCIA_TEST_SEED");
	unsigned number = seed ? (unsigned)strtoul(seed, NULL, 10) : (unsigned)time(NULL);
	printf("seed %u\n", number);
	srand(number);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(totals_are_what_a_recount_finds, begin, end),
		cmocka_unit_test_setup_teardown(totals_are_what_a_recount_finds, begin, end),
		cmocka_unit_test_setup_teardown(old_stores_are_counted_from_what_is_there, begin, end),
		cmocka_unit_test_setup_teardown(a_check_finds_what_is_counted_wrong, begin, end),
		cmocka_unit_test_setup_teardown(what_is_skipped_is_counted, begin, end),
		cmocka_unit_test_setup_teardown(a_round_of_many_accounts_is_written_at_once, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
