/* The contract of the store, on a SQLite file in a new directory, or on two databases of a server:
 *     contract-store [postgresql://… postgresql://…] */
#include <pthread.h>

#include "testing.h"
#include "db/db.h"
#include "store/accounts/accounts.h"
#include "store/certifications/certifications.h"
#include "store/certifications/idempotency.h"
#include "store/events/segments.h"
#include "store/evidence/evidence.h"
#include "store/money/packs.h"
#include "store/money/purchases.h"
#include "store/store_internal.h"
#include "registering.h"
#include "sample.h"
#include "store/nodes/read_only_copy.h"
#include "store/nodes/sweeps.h"

#define NOW INT64_C(1767268800000000) /* 2026-01-01T12:00:00Z */

static const char *server_url; /* postgresql://…; NULL: a SQLite file */
static const char *other_url;  /* another database of that server */

struct fixture {
	struct sample sample;
	struct arena arena;
	struct channel_record channel;
	struct channel_record other;
};

static void find_channel(struct fixture *fixture, struct channel_record *ret)
{
	assert_int_equal(store_find_channel(fixture->sample.store, slice_of(fixture->sample.channel_id),
	                                    &fixture->arena, ret, NULL),
	                 OK);
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);
	arena_init(&fixture->arena, (size_t)64 << 20);
	sample_create_store(&fixture->sample, server_url);
	fixture->sample.now_us = NOW;
	fixture->sample.unpaid_limit = 3;
	sample_fill(&fixture->sample, fixture->sample.store, MODALITY_HASH_ONLY, 5);
	find_channel(fixture, &fixture->channel);
	sample_add_channel(&fixture->sample, MODALITY_HASH_ONLY);
	find_channel(fixture, &fixture->other);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	sample_close(&fixture->sample);
	arena_free(&fixture->arena);
	free(fixture);
	return 0;
}

static struct registration item_make(struct fixture *fixture, const struct channel_record *channel,
                                     enum mode mode, const char *ref)
{
	struct registration item = {.account = channel->account,
	                            .channel = channel->channel,
	                            .chain = channel->channel * 2 + mode,
	                            .key = channel->channel,
	                            .declaration = {.modality = MODALITY_HASH_ONLY,
	                                            .client_ref = slice_of(ref),
	                                            .occurred_at_us = TIME_NONE},
	                            .content_bytes = -1,
	                            .arena = &fixture->arena};
	memset(item.declaration.hash, 9, SHA256_SIZE);
	return item;
}

static void submit(struct fixture *fixture, struct registration *items, size_t count,
                   int64_t now_us)
{
	struct registration *list[64];
	for (size_t i = 0; i < count; i++)
		list[i] = &items[i];
	assert_int_equal(register_items(fixture->sample.store, list, count, now_us, NULL), OK);
}

static char told[8192]; /* problems of the last check */

static void tell_problem(void *context, const char *text)
{
	print_error("%s\n", text);
	size_t size = strlen(told);
	snprintf(told + size, sizeof told - size, "%s\n", text);
}

static struct check_report assert_clean(struct fixture *fixture)
{
	struct check_listener listener = {.problem = tell_problem};
	struct check_report report;
	assert_int_equal(store_check(fixture->sample.store, &listener, &report, NULL), OK);
	return report;
}

static void reopen(struct fixture *fixture)
{
	store_close(fixture->sample.store);
	assert_int_equal(
		store_open(&(struct db_options){.url = fixture->sample.url}, &fixture->sample.store, NULL),
		OK);
}

static void assert_same_declaration(const struct declaration *a, const struct declaration *b)
{
	assert_true(slice_equal(a->client_ref, b->client_ref));
	assert_int_equal(a->occurred_at_us, b->occurred_at_us);
	assert_int_equal(a->modality, b->modality);
	assert_int_equal(a->hash_algorithm, b->hash_algorithm);
	assert_memory_equal(a->hash, b->hash, hash_algorithm_size(a->hash_algorithm));
}

TEST_CASE_ON(registers_and_survives_reopening, struct fixture *fixture)
{
	struct registration items[] = {item_make(fixture, &fixture->channel, MODE_LIVE, "a"),
	                               item_make(fixture, &fixture->other, MODE_LIVE, "a"),
	                               item_make(fixture, &fixture->channel, MODE_TEST, "a"),
	                               item_make(fixture, &fixture->channel, MODE_LIVE, "b")};
	items[1].declaration.hash_algorithm = HASH_SHA512;
	memset(items[1].declaration.hash, 8, SHA512_SIZE);
	items[3].declaration.occurred_at_us = NOW - 1;
	submit(fixture, items, 4, NOW);
	reopen(fixture);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(items[i].result, OK);
		struct event event;
		assert_int_equal(store_get_event(fixture->sample.store, items[i].account, items[i].chain,
		                                 items[i].event->sequence, &fixture->arena, &event, NULL),
		                 OK);
		assert_string_equal(event.event_id, items[i].event->event_id);
		assert_memory_equal(event.chain_hash.bytes, items[i].event->chain_hash.bytes, 32);
		assert_int_equal(event.received_at_us, items[i].event->received_at_us);
		assert_same_declaration(&event.declaration, &items[i].declaration);
		assert_same_declaration(&event.declaration, &items[i].event->declaration);
		assert_int_equal(event.status, items[i].event->status);
	}
	struct balance balance;
	assert_int_equal(
		store_get_balance(fixture->sample.store, fixture->channel.account, &balance, NULL), OK);
	assert_int_equal(balance.balance, 2);
	struct check_report report = assert_clean(fixture);
	assert_int_equal(report.events, 4);
	assert_int_equal(report.chains, 4);
}

/* It is refused before anything is decided, and the others of the batch are registered. */
TEST_CASE_ON(one_item_without_memory_fails_alone, struct fixture *fixture)
{
	struct arena none;
	arena_init(&none, 0);
	struct registration items[] = {item_make(fixture, &fixture->channel, MODE_LIVE, "a"),
	                               item_make(fixture, &fixture->channel, MODE_LIVE, "b"),
	                               item_make(fixture, &fixture->channel, MODE_LIVE, "c"),
	                               item_make(fixture, &fixture->channel, MODE_LIVE, "a")};
	items[1].arena = &none;
	submit(fixture, items, 4, NOW);
	assert_int_equal(items[1].result, ERR_NO_MEMORY);
	assert_null(items[1].event);
	assert_int_equal(items[0].event->sequence, 1);
	assert_int_equal(items[2].event->sequence, 2);
	assert_true(items[3].replayed);
	/* A replay and a conflict need no memory of the request beyond that of the event. */
	struct event room;
	struct registration more[] = {item_make(fixture, &fixture->channel, MODE_LIVE, "a"),
	                              item_make(fixture, &fixture->channel, MODE_LIVE, "a")};
	more[0].arena = more[1].arena = &none;
	more[0].room = more[1].room = &room;
	more[1].declaration.hash[31] ^= 1;
	submit(fixture, more, 2, NOW + 5);
	assert_ptr_equal(more[0].event, &room);
	assert_string_equal(room.event_id, items[0].event->event_id);
	assert_int_equal(more[1].result, ERR_CONFLICT);
	assert_null(more[1].error);
	assert_clean(fixture);
	arena_free(&none);
}

TEST_CASE_ON(replays_and_conflicts_across_batches, struct fixture *fixture)
{
	struct registration first = item_make(fixture, &fixture->channel, MODE_LIVE, "a");
	submit(fixture, &first, 1, NOW);
	struct registration again[] = {item_make(fixture, &fixture->channel, MODE_LIVE, "a"),
	                               item_make(fixture, &fixture->channel, MODE_LIVE, "a"),
	                               item_make(fixture, &fixture->channel, MODE_LIVE, "new"),
	                               item_make(fixture, &fixture->channel, MODE_LIVE, "new"),
	                               item_make(fixture, &fixture->channel, MODE_LIVE, "new")};
	again[1].declaration.hash[31] ^= 1;
	again[4].declaration.hash[31] ^= 1;
	submit(fixture, again, 5, NOW + 5);
	assert_true(again[0].replayed);
	assert_memory_equal(again[0].event->chain_hash.bytes, first.event->chain_hash.bytes, 32);
	assert_int_equal(again[0].event->received_at_us, NOW);
	assert_int_equal(again[1].result, ERR_CONFLICT);
	assert_string_equal(again[1].original_id, first.event->event_id);
	assert_non_null(strstr(again[1].error->english, first.event->event_id));
	assert_int_equal(again[4].result, ERR_CONFLICT);
	assert_string_equal(again[4].original_id, again[2].event->event_id);
	assert_false(again[2].replayed);
	assert_true(again[3].replayed);
	assert_int_equal(again[3].event->sequence, 2);
	assert_clean(fixture);
}

/* The channel's configuration may change during a request. */
TEST_CASE_ON(refuses_what_is_not_of_the_channels_modality, struct fixture *fixture)
{
	struct registration items[] = {item_make(fixture, &fixture->channel, MODE_LIVE, "a"),
	                               item_make(fixture, &fixture->channel, MODE_LIVE, "b")};
	items[0].declaration.modality = MODALITY_CONTENT;
	items[0].content = slice_of("{}");
	items[0].content_bytes = 2;
	submit(fixture, items, 2, NOW);
	assert_int_equal(items[0].result, ERR_VALIDATION);
	assert_null(items[0].event);
	assert_int_equal(items[1].result, OK);
	assert_int_equal(items[1].event->sequence, 1);
	assert_int_equal(assert_clean(fixture).events, 1);
}

TEST_CASE_ON(runs_into_debt_and_is_settled, struct fixture *fixture)
{
	static char refs[12][16];
	struct registration items[12];
	for (int i = 0; i < 12; i++) {
		snprintf(refs[i], sizeof refs[i], "r%d", i);
		items[i] =
			item_make(fixture, i % 2 ? &fixture->channel : &fixture->other, MODE_LIVE, refs[i]);
	}
	submit(fixture, items, 12, NOW);
	for (int i = 0; i < 12; i++)
		assert_int_equal(items[i].result, i < 8 ? OK : ERR_UNPAID_LIMIT);
	assert_int_equal(items[5].event->status, STATUS_UNPAID);
	struct credit_movement movement = {.credits = 2, .kind = "adjustment"};
	struct credit_outcome outcome;
	assert_int_equal(store_move_credits(fixture->sample.store, slice_of(fixture->sample.account_id),
	                                    &movement, NOW, &outcome, NULL),
	                 OK);
	assert_int_equal(outcome.settled_events, 2);
	assert_int_equal(outcome.unpaid_events, 1);
	static const enum event_status expected[] = {STATUS_REGISTERED, STATUS_REGISTERED,
	                                             STATUS_UNPAID};
	for (int i = 5; i < 8; i++) {
		struct event event;
		assert_int_equal(store_get_event(fixture->sample.store, items[i].account, items[i].chain,
		                                 items[i].event->sequence, &fixture->arena, &event, NULL),
		                 OK);
		assert_int_equal(event.status, expected[i - 5]);
	}
	assert_clean(fixture);
}

struct collected {
	int64_t sequences[64];
	size_t count;
	size_t stop_after;
};

static int collect(void *context, const struct event *event)
{
	struct collected *collected = context;
	collected->sequences[collected->count++] = event->sequence;
	return collected->count == collected->stop_after ? 77 : 0;
}

static void list_filtered(struct fixture *fixture, const struct event_filter *filter,
                          struct collected *collected)
{
	assert_int_equal(store_list_events(fixture->sample.store, fixture->channel.account,
	                                   fixture->channel.channel * 2, filter, 0, false, collect,
	                                   collected, NULL),
	                 OK);
}

#define BY(from, to, first, last, of, after)                                                       \
	{                                                                                              \
		.from_us = (from), .to_us = (to), .seq_from = (first), .seq_to = (last), .status = (of),   \
		.past = (after)                                                                            \
	}

TEST_CASE_ON(lists_by_filters, struct fixture *fixture)
{
	static char refs[8][16];
	for (int i = 0; i < 8; i++) {
		snprintf(refs[i], sizeof refs[i], "r%d", i);
		struct registration item = item_make(fixture, &fixture->channel, MODE_LIVE, refs[i]);
		submit(fixture, &item, 1, NOW + i / 2 * 10);
	}
	static const struct {
		struct event_filter filter;
		int64_t limit;
		int64_t first, last;
	} rows[] = {
		{BY(TIME_NONE, TIME_NONE, 0, 0, -1, 0), 0, 1, 8},
		{BY(TIME_NONE, TIME_NONE, 3, 5, -1, 0), 0, 3, 5},
		{BY(TIME_NONE, TIME_NONE, 3, 5, -1, 4), 0, 5, 5},
		{BY(TIME_NONE, TIME_NONE, 0, 0, -1, 2), 3, 3, 5},
		{BY(NOW + 10, NOW + 30, 0, 0, -1, 0), 0, 3, 6},
		{BY(NOW + 10, TIME_NONE, 0, 4, -1, 0), 0, 3, 4},
		{BY(TIME_NONE, NOW, 0, 0, -1, 0), 0, 1, 0},
		{BY(TIME_NONE, TIME_NONE, 0, 0, STATUS_REGISTERED, 0), 0, 1, 5},
		{BY(TIME_NONE, TIME_NONE, 0, 0, STATUS_UNPAID, 0), 2, 6, 7},
		{BY(TIME_NONE, TIME_NONE, 0, 0, STATUS_UNPAID, 6), 0, 7, 8},
		{BY(TIME_NONE, TIME_NONE, 0, 0, STATUS_TEST, 0), 0, 1, 0},
		{BY(TIME_NONE, TIME_NONE, 9, 100, -1, 0), 0, 1, 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct collected collected = {.stop_after = 0};
		assert_int_equal(store_list_events(fixture->sample.store, fixture->channel.account,
		                                   fixture->channel.channel * 2, &rows[i].filter,
		                                   rows[i].limit, false, collect, &collected, NULL),
		                 OK);
		assert_int_equal(collected.count, rows[i].last - rows[i].first + 1);
		for (size_t j = 0; j < collected.count; j++)
			assert_int_equal(collected.sequences[j], rows[i].first + (int64_t)j);
		struct event_filter filter = rows[i].filter;
		if (filter.past || rows[i].limit)
			continue;
		filter.order = ORDER_DESCENDING;
		struct collected down = {.stop_after = 0};
		list_filtered(fixture, &filter, &down);
		assert_int_equal(down.count, collected.count);
		for (size_t j = 0; j < down.count; j++)
			assert_int_equal(down.sequences[j], rows[i].last - (int64_t)j);
		filter.past = rows[i].last;
		struct collected rest = {.stop_after = 0};
		list_filtered(fixture, &filter, &rest);
		assert_int_equal(rest.count, collected.count ? collected.count - 1 : 0);
		assert_true(rest.count == 0 || rest.sequences[0] == rows[i].last - 1);
	}
	for (int i = 0; i < 8; i++) {
		struct event_filter filter = rows[0].filter;
		struct collected found = {.stop_after = 0};
		filter.client_ref = slice_of(refs[i]);
		list_filtered(fixture, &filter, &found);
		assert_int_equal(found.count, 1);
		assert_int_equal(found.sequences[0], i + 1);
		filter.seq_from = i + 2;
		struct collected none = {.stop_after = 0};
		list_filtered(fixture, &filter, &none);
		filter.seq_from = 0;
		filter.client_ref = slice_of("r8");
		list_filtered(fixture, &filter, &none);
		assert_int_equal(none.count, 0);
	}
	struct collected stopped = {.stop_after = 2};
	assert_int_equal(store_list_events(fixture->sample.store, fixture->channel.account,
	                                   fixture->channel.channel * 2, &rows[0].filter, 0, false,
	                                   collect, &stopped, NULL),
	                 77);
	assert_int_equal(stopped.count, 2);
	int64_t first;
	int64_t last;
	assert_int_equal(store_resolve_times(fixture->sample.store, fixture->channel.account,
	                                     fixture->channel.channel * 2, NOW + 1, NOW + 11, &first,
	                                     &last, NULL),
	                 OK);
	assert_int_equal(first, 3);
	assert_int_equal(last, 4);
}

/* Closes the range to `to_us` at the time of `clock`; returns where it was cut. */
static int64_t close_until(struct fixture *fixture, int64_t to_us, const struct ledger_clock *clock,
                           int expected)
{
	struct certification_range range = {.from_us = NOW, .to_us = to_us};
	int64_t cut_us = 0;
	assert_int_equal(store_close_range(fixture->sample.store, fixture->channel.account,
	                                   fixture->channel.channel * 2, &range, clock, &cut_us, NULL),
	                 expected);
	return cut_us;
}

static int64_t received_at(struct fixture *fixture, const char *ref, int64_t now_us)
{
	struct registration item = item_make(fixture, &fixture->channel, MODE_LIVE, ref);
	submit(fixture, &item, 1, now_us);
	assert_int_equal(item.result, OK);
	return item.event->received_at_us;
}

TEST_CASE_ON(a_refusal_because_of_the_clock_has_its_cause, struct fixture *fixture)
{
	(void)received_at(fixture, "a", NOW + 1000);
	for (int cause = 0; cause < 3; cause++) {
		struct registration item = item_make(fixture, &fixture->channel, MODE_LIVE, "b");
		struct registration *list[] = {&item};
		struct registration_batch batch = {
			.items = list,
			.count = 1,
			.clock = {.now_us = NOW,
		              .bound_us = 10,
		              .refused_for_us = cause == 1,
		              .ahead_us = cause == 2 ? 11 : 0},
		};
		assert_int_equal(store_register_batch(fixture->sample.store, 0, &batch, NULL), OK);
		assert_int_equal(item.result, ERR_CLOCK);
		assert_int_equal(item.chain_is_ahead, cause == 0);
	}
	assert_int_equal(assert_clean(fixture).events, 1);
}

TEST_CASE_ON(nothing_is_received_in_a_closed_range, struct fixture *fixture)
{
	struct ledger_clock clock = {.now_us = NOW + 1000, .bound_us = 10};
	assert_int_equal(received_at(fixture, "a", NOW), NOW);
	assert_int_equal(close_until(fixture, NOW + 5000, &clock, OK), NOW + 1000);
	/* By a batch that read its clock earlier, and with a cached chain head. */
	assert_int_equal(received_at(fixture, "b", NOW + 10), NOW + 1000);
	assert_int_equal(received_at(fixture, "c", NOW + 1200), NOW + 1200);
	assert_int_equal(close_until(fixture, NOW + 500, &clock, OK), NOW + 500);
	assert_int_equal(close_until(fixture, NOW + 5000, &clock, OK), NOW + 1201);
	reopen(fixture);
	assert_int_equal(received_at(fixture, "d", NOW + 20), NOW + 1201);
	/* A clock that would be relied on. */
	clock.now_us = NOW + 9000;
	clock.ahead_us = 11;
	close_until(fixture, NOW + 9000, &clock, ERR_CLOCK);
	assert_int_equal(close_until(fixture, NOW + 1000, &clock, OK), NOW + 1000);
	assert_int_equal(received_at(fixture, "e", NOW + 20), NOW + 1201);
	struct certification_range range = {.from_us = NOW, .to_us = NOW + 1};
	int64_t cut_us;
	assert_int_equal(store_close_range(fixture->sample.store, fixture->channel.account,
	                                   fixture->channel.channel * 2 + 1000, &range, &clock, &cut_us,
	                                   NULL),
	                 ERR_NOT_FOUND);
	assert_clean(fixture);
}

TEST_CASE_ON(long_lists_come_in_pieces, struct fixture *fixture)
{
	struct credit_movement movement = {.credits = 100000, .kind = "adjustment"};
	struct credit_outcome outcome;
	assert_int_equal(store_move_credits(fixture->sample.store, slice_of(fixture->sample.account_id),
	                                    &movement, NOW, &outcome, NULL),
	                 OK);
	static char refs[5000][16];
	static struct registration items[5000];
	static struct registration *list[5000];
	for (int i = 0; i < 5000; i++) {
		snprintf(refs[i], sizeof refs[i], "r%d", i);
		items[i] = item_make(fixture, &fixture->channel, MODE_LIVE, refs[i]);
		list[i] = &items[i];
	}
	assert_int_equal(register_items(fixture->sample.store, list, 5000, NOW, NULL), OK);
	assert_int_equal(assert_clean(fixture).events, 5000);
}

/* %s, if present, is replaced by the name of the table with the events. */
static void change_events(struct fixture *fixture, const char *change)
{
	const char *table = db_is_shared(fixture->sample.store->db) ? "events" : "events_arrived";
	const char *at = strstr(change, "%s");
	char sql[160];
	if (at)
		snprintf(sql, sizeof sql, "%.*s%s%s", (int)(at - change), change, table, at + 2);
	sample_change(&fixture->sample, at ? sql : change);
}

/* The contents of the files are checked, not trusted. */
TEST_CASE_ON(check_finds_changes, struct fixture *fixture)
{
	struct registration items[] = {item_make(fixture, &fixture->channel, MODE_LIVE, "a"),
	                               item_make(fixture, &fixture->channel, MODE_LIVE, "b"),
	                               item_make(fixture, &fixture->channel, MODE_LIVE, "c")};
	submit(fixture, items, 3, NOW);
	assert_clean(fixture);
	static const char *const changes[][2] = {
		{"UPDATE %s SET client_ref = 'x' WHERE client_ref = 'b'",
	     "UPDATE %s SET client_ref = 'b' WHERE client_ref = 'x'"},
		{"UPDATE %s SET received_at = received_at + 1 WHERE client_ref = 'c'",
	     "UPDATE %s SET received_at = received_at - 1 WHERE client_ref = 'c'"},
		{"UPDATE accounts SET balance = balance + 1", "UPDATE accounts SET balance = balance - 1"},
		{"UPDATE accounts SET unpaid_events = 1", "UPDATE accounts SET unpaid_events = 0"},
		{"UPDATE channel_configs SET declarant = 'x'",
	     "UPDATE channel_configs SET declarant = 'Sample & Co'"},
		{"UPDATE daily_usage SET events = events + 1",
	     "UPDATE daily_usage SET events = events - 1"},
		{"UPDATE chains SET created_at = created_at + 1",
	     "UPDATE chains SET created_at = created_at "
	     "- 1"},
	};
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		change_events(fixture, changes[i][0]);
		assert_true(sample_check(&fixture->sample) > 0);
		change_events(fixture, changes[i][1]);
		assert_clean(fixture);
	}
	change_events(fixture, "DELETE FROM %s WHERE client_ref = 'b'");
	assert_true(sample_check(&fixture->sample) > 0);
}

TEST_CASE_ON(one_process_at_a_time, struct fixture *fixture)
{
	struct store *second;
	struct error error = {0};
	if (server_url)
		skip();
	assert_int_equal(store_open(&(struct db_options){.url = fixture->sample.url}, &second, &error),
	                 ERR_UNAVAILABLE);
	assert_non_null(strstr(error_message(&error, LANGUAGE_ENGLISH), "in use"));
}

TEST_CASE_ON(secrets_last, struct fixture *fixture)
{
	struct sha256 first;
	struct sha256 second;
	struct sha256 other;
	assert_int_equal(store_get_secret(fixture->sample.store, "a", &first, NULL), OK);
	reopen(fixture);
	assert_int_equal(store_get_secret(fixture->sample.store, "a", &second, NULL), OK);
	assert_int_equal(store_get_secret(fixture->sample.store, "b", &other, NULL), OK);
	assert_memory_equal(first.bytes, second.bytes, SHA256_SIZE);
	assert_memory_not_equal(first.bytes, other.bytes, SHA256_SIZE);
}

/* Sweep tokens belong to the database: a copy has only the earlier ones. */
TEST_CASE_ON(sweeps_take_turns, struct fixture *fixture)
{
	struct sweep_grant first, again, second, late;
	assert_int_equal(store_take_sweep_token(fixture->sample.store, "", 0, &first, NULL), OK);
	assert_int_equal(first.accepted_us, 0);
	reopen(fixture);
	assert_int_equal(store_take_sweep_token(fixture->sample.store, first.token, 0, &second, NULL),
	                 OK);
	assert_string_not_equal(first.token, second.token);
	/* The location still has the first token, because the second was not written there. */
	assert_int_equal(store_take_sweep_token(fixture->sample.store, first.token, 0, &again, NULL),
	                 OK);
	assert_string_equal(again.token, second.token);
	static const char *const alien[] = {"disputed", "a", "0123456789abcdef0123456789abcdef"};
	for (size_t i = 0; i < sizeof alien / sizeof *alien; i++)
		assert_int_equal(store_take_sweep_token(fixture->sample.store, alien[i], 0, &late, NULL),
		                 ERR_REFUSED);
	struct accepted_rollback rollback = {
		.accepted_at_us = NOW, .node = "one", .reason = slice_of("tested")};
	assert_int_equal(store_record_rollback(fixture->sample.store, &rollback, NULL), OK);
	assert_int_equal(store_take_sweep_token(fixture->sample.store, alien[2], 0, &late, NULL), OK);
	assert_int_equal(late.accepted_us, NOW);
	assert_int_equal(store_take_sweep_token(fixture->sample.store, alien[2], NOW, &late, NULL),
	                 ERR_REFUSED);
}

/* A limit that is set in the middle of its period counts the earlier events; its notice is written
 * once; the next period starts at zero. */
TEST_CASE_ON(limits_hold_across_batches_and_periods, struct fixture *fixture)
{
	struct registration items[] = {item_make(fixture, &fixture->channel, MODE_LIVE, "a"),
	                               item_make(fixture, &fixture->channel, MODE_LIVE, "b"),
	                               item_make(fixture, &fixture->channel, MODE_LIVE, "c"),
	                               item_make(fixture, &fixture->channel, MODE_LIVE, "d")};
	submit(fixture, &items[0], 1, NOW);
	char limit_id[ID_SIZE];
	assert_int_equal(store_create_limit(fixture->sample.store,
	                                    slice_of(fixture->channel.channel_id), slice_of(""),
	                                    PERIOD_DAY, 2, true, NOW, limit_id, NULL),
	                 OK);
	submit(fixture, &items[1], 2, NOW + 1);
	assert_int_equal(items[1].result, OK);
	assert_int_equal(items[2].result, ERR_LIMIT_BLOCKED);
	submit(fixture, &items[2], 1, NOW + 2);
	assert_int_equal(items[2].result, ERR_LIMIT_BLOCKED);
	assert_int_equal(sample_number(&fixture->sample, "SELECT count(*) FROM notices WHERE type = "
	                                                 "'consumption.limit_reached'"),
	                 1);
	submit(fixture, &items[2], 2, NOW + US_PER_DAY / 2);
	assert_int_equal(items[2].result, OK);
	assert_int_equal(items[3].result, OK);
	assert_int_equal(sample_number(&fixture->sample, "SELECT count(*) FROM notices WHERE type = "
	                                                 "'consumption.limit_reached'"),
	                 2);
	assert_clean(fixture);
}

static void lower(struct fixture *fixture, int64_t credits, int64_t now_us)
{
	struct credit_movement movement = {.credits = credits, .kind = "adjustment"};
	struct credit_outcome outcome;
	assert_int_equal(store_move_credits(fixture->sample.store, slice_of(fixture->sample.account_id),
	                                    &movement, now_us, &outcome, NULL),
	                 OK);
}

/* Receivers order notices by created_at. Neither a clock that was set back nor two notices of one
 * transaction disturb that order. */
TEST_CASE_ON(each_notice_of_an_account_is_created_after_the_one_before, struct fixture *fixture)
{
	struct balance balance;
	char id[ID_SIZE];
	assert_int_equal(
		store_get_balance(fixture->sample.store, fixture->sample.account, &balance, NULL), OK);
	for (int64_t credits = 1; credits <= 3; credits++)
		assert_int_equal(store_create_threshold(fixture->sample.store,
		                                        slice_of(fixture->sample.account_id),
		                                        balance.balance - credits, id, NULL),
		                 OK);
	lower(fixture, -1, NOW);
	lower(fixture, -2, NOW - US_PER_DAY);
	lower(fixture, 3, NOW + 1);
	lower(fixture, -3, NOW + 1000);
	assert_int_equal(sample_number(&fixture->sample, "SELECT COUNT(*) FROM notices"), 6);
	assert_int_equal(sample_number(&fixture->sample, "SELECT MIN(created_at) FROM notices"), NOW);
	assert_int_equal(sample_number(&fixture->sample, "SELECT MAX(created_at) FROM notices"),
	                 NOW + 1002);
	assert_int_equal(sample_number(&fixture->sample,
	                               "SELECT COUNT(*) FROM notices a JOIN notices b"
	                               " ON b.account = a.account AND b.notice > a.notice"
	                               " WHERE b.created_at <= a.created_at"),
	                 0);
}

static void add_late_one(struct registration_batch *batch, const int64_t *accounts,
                         size_t account_count)
{
	struct registration *late = batch->context;
	assert_int_equal(account_count, 1);
	assert_int_equal(accounts[0], late->account);
	batch->items[batch->count++] = late;
	batch->clock.now_us = NOW + 7;
}

/* When a batch may have to wait for accounts, items that arrive in the meantime join it and have a
 * later time. */
TEST_CASE_ON(a_batch_grows_while_it_waits, struct fixture *fixture)
{
	struct registration first = item_make(fixture, &fixture->channel, MODE_LIVE, "a");
	struct registration late = item_make(fixture, &fixture->channel, MODE_LIVE, "b");
	struct registration *list[2] = {&first};
	struct registration_batch batch = {
		.items = list, .count = 1, .clock.now_us = NOW, .grow = add_late_one, .context = &late};
	assert_int_equal(store_register_batch(fixture->sample.store, 0, &batch, NULL), OK);
	bool grown = db_is_shared(fixture->sample.store->db);
	assert_int_equal(batch.count, grown ? 2 : 1);
	assert_int_equal(first.event->sequence, 1);
	assert_int_equal(first.event->received_at_us, grown ? NOW + 7 : NOW);
	if (grown)
		assert_int_equal(late.event->sequence, 2);
	assert_int_equal(assert_clean(fixture).events, grown ? 2 : 1);
}

struct decision {
	struct fixture *fixture;
	size_t count; /* of calls */
};

/* The outcomes are there, and nothing is committed. */
static void note_decision(struct registration_batch *batch)
{
	struct decision *decision = batch->context;
	struct fixture *fixture = decision->fixture;
	ARENA_AUTO struct arena arena = {.limit = 65536};
	struct event seen;
	decision->count++;
	assert_int_equal(batch->count, 3);
	assert_int_equal(batch->items[0]->event->sequence, 1);
	assert_true(batch->items[0]->replayed);
	assert_int_equal(batch->items[1]->result, ERR_CONFLICT);
	const struct event *fresh = batch->items[2]->event;
	assert_int_equal(fresh->sequence, 2);
	assert_int_equal(store_get_event(fixture->sample.store, fixture->channel.account,
	                                 fixture->channel.channel * 2, 2, &arena, &seen, NULL),
	                 ERR_NOT_FOUND);
}

TEST_CASE_ON(a_batch_is_decided_before_it_is_committed, struct fixture *fixture)
{
	struct registration first = item_make(fixture, &fixture->channel, MODE_LIVE, "a");
	submit(fixture, &first, 1, NOW);
	struct registration items[] = {item_make(fixture, &fixture->channel, MODE_LIVE, "a"),
	                               item_make(fixture, &fixture->channel, MODE_LIVE, "a"),
	                               item_make(fixture, &fixture->channel, MODE_LIVE, "b")};
	struct registration *list[] = {&items[0], &items[1], &items[2]};
	struct decision decision = {.fixture = fixture};
	struct registration_batch batch = {.items = list,
	                                   .count = 3,
	                                   .clock.now_us = NOW + 1,
	                                   .decided = note_decision,
	                                   .context = &decision};
	items[1].declaration.hash[0] ^= 1;
	assert_int_equal(store_register_batch(fixture->sample.store, 0, &batch, NULL), OK);
	assert_int_equal(decision.count, 1);
	/* One that fails before has no decision. */
	items[2].chain = 1000;
	items[2].channel = 500;
	assert_int_equal(store_register_batch(fixture->sample.store, 0, &batch, NULL), ERR_CORRUPT);
	assert_int_equal(decision.count, 1);
	assert_int_equal(assert_clean(fixture).events, 2);
}

/* A batch that cannot be written completely leaves nothing behind. */
TEST_CASE_ON(a_failed_batch_leaves_nothing, struct fixture *fixture)
{
	struct registration good = item_make(fixture, &fixture->channel, MODE_LIVE, "a");
	struct registration bad = item_make(fixture, &fixture->channel, MODE_LIVE, "b");
	bad.chain = 1000;
	bad.channel = 500;
	struct registration *list[] = {&good, &bad};
	assert_int_equal(register_items(fixture->sample.store, list, 2, NOW, NULL), ERR_CORRUPT);
	assert_int_equal(assert_clean(fixture).events, 0);
	submit(fixture, &good, 1, NOW);
	assert_int_equal(good.event->sequence, 1);
}

/* A copy made while the store is open is complete, can be restored into an empty place, completely
 * or not at all, and continues without a gap. */
TEST_CASE_ON(a_backup_goes_on, struct fixture *fixture)
{
	struct registration items[] = {item_make(fixture, &fixture->channel, MODE_LIVE, "a"),
	                               item_make(fixture, &fixture->channel, MODE_LIVE, "b"),
	                               item_make(fixture, &fixture->channel, MODE_LIVE, "b")};
	submit(fixture, &items[0], 1, NOW);
	char copy[128], damaged[160];
	struct sample other = fixture->sample;
	struct db *source = fixture->sample.store->db;
	char mark_text[COPY_MARK_SIZE];
	const struct db_mark mark = copy_mark("brought back", 5, mark_text);
	struct quiet quiet;
	snprintf(copy, sizeof copy, "%s/%s", fixture->sample.directory, db_backup_name(source));
	snprintf(damaged, sizeof damaged, "%s.damaged", copy);
	assert_int_equal(db_backup(source, copy, NULL), OK);
	submit(fixture, &items[1], 1, NOW);
	struct db_options here = {.url = fixture->sample.url}, there = {.url = other.url};
	assert_int_equal(db_check_vacant(&here, NULL), ERR_REFUSED);
	assert_int_equal(db_restore(&here, copy, &mark, NULL), ERR_REFUSED);
	assert_int_equal(assert_clean(fixture).events, 2);
	store_close(fixture->sample.store);
	if (server_url)
		sample_create_schema(&other, other_url);
	else
		snprintf(other.url, sizeof other.url, "sqlite:%s/other/store.db", other.directory);
	assert_string_equal(db_backup_name_of(other.url), strrchr(copy, '/') + 1);
	assert_int_not_equal(db_restore(&there, damaged, &mark, NULL), OK);
	assert_int_equal(db_check_vacant(&there, NULL), OK);
	assert_int_equal(db_restore(&there, copy, &mark, NULL), OK);
	assert_int_equal(db_restore(&there, copy, &mark, NULL), ERR_REFUSED);
	assert_int_equal(store_open(&there, &fixture->sample.store, NULL), OK);
	assert_int_equal(assert_clean(fixture).events, 1);
	assert_int_equal(store_get_copy_state(fixture->sample.store, &quiet, NULL), OK);
	assert_true(quiet.is && quiet.since_us == 5 && quiet.woken_us == 0 && quiet.copied_us == 0);
	assert_string_equal(quiet.reason, "brought back");
	assert_int_equal(store_resume_copy(fixture->sample.store, 7, NULL), OK);
	assert_int_equal(store_get_copy_state(fixture->sample.store, &quiet, NULL), OK);
	assert_true(!quiet.is && quiet.woken_us == 7 && quiet.copied_us == 5);
	assert_int_equal(store_mark_copy(fixture->sample.store, "again", 8, NULL), OK);
	assert_int_equal(store_resume_copy(fixture->sample.store, 9, NULL), OK);
	assert_int_equal(store_get_copy_state(fixture->sample.store, &quiet, NULL), OK);
	assert_true(!quiet.is && quiet.woken_us == 9 && quiet.copied_us == 5);
	/* As left by a restore with --live that was killed after the data was complete. */
	sample_change(&fixture->sample, "CREATE TABLE " DB_RESTORING " (name TEXT, value TEXT)");
	sample_change(&fixture->sample, "INSERT INTO " DB_RESTORING " VALUES ('woken', '11')");
	assert_int_equal(store_get_copy_state(fixture->sample.store, &quiet, NULL), OK);
	assert_true(!quiet.is && quiet.woken_us == 11 && quiet.copied_us == 5);
	submit(fixture, &items[2], 1, NOW);
	assert_int_equal(items[2].event->sequence, 2);
	assert_memory_equal(items[2].event->chain_hash.bytes, items[1].event->chain_hash.bytes, 32);
	assert_clean(fixture);
}

/* A restore that fails in the middle leaves nothing behind. */
TEST_CASE_ON(half_a_backup_does_not_come_back, struct fixture *fixture)
{
	struct registration item = item_make(fixture, &fixture->channel, MODE_LIVE, "a");
	submit(fixture, &item, 1, NOW);
	if (!server_url)
		skip(); /* a SQLite file is not parsed: backup.c compares its digest */
	char copy[128], command[300];
	struct sample other = fixture->sample;
	snprintf(copy, sizeof copy, "%s/copy", fixture->sample.directory);
	assert_int_equal(db_backup(fixture->sample.store->db, copy, NULL), OK);
	snprintf(command, sizeof command, "truncate -s -4000 %s", copy);
	assert_int_equal(system(command), 0);
	sample_create_schema(&other, other_url);
	struct db_options there = {.url = other.url};
	struct error error = {0};
	const struct db_mark mark = {"quiet", "5"};
	assert_int_equal(db_restore(&there, copy, &mark, &error), ERR_UNAVAILABLE);
	assert_non_null(strstr(error_message(&error, LANGUAGE_ENGLISH), "pg_restore"));
	assert_int_equal(db_check_vacant(&there, NULL), OK);
}

static int64_t sealed_of(struct fixture *fixture)
{
	struct chain_head head;
	assert_int_equal(store_get_chain(fixture->sample.store, fixture->sample.account,
	                                 fixture->sample.live_chain, &head, NULL),
	                 OK);
	return head.sealed_sequence;
}

static size_t list_unsealed(struct fixture *fixture, struct unsealed_chain *ret_chain)
{
	size_t count;
	assert_int_equal(store_list_unsealed(fixture->sample.store, 0, 0, 1, ret_chain, &count, NULL),
	                 OK);
	return count;
}

/* Stages the next `events` events of the chain as block `number` of round 1. */
static int stage(struct fixture *fixture, int64_t number, int64_t events)
{
	struct unsealed_chain chain;
	size_t failed;
	assert_int_equal(list_unsealed(fixture, &chain), 1);
	struct round_block block = {
		.round = 1, .number = number, .events = events, .latest_received_at_us = NOW + number};
	struct segment_record segment = {.account = chain.account,
	                                 .chain = chain.chain,
	                                 .number = chain.sealed_segment + 1,
	                                 .first_sequence = chain.sealed_sequence + 1,
	                                 .last_sequence = chain.sealed_sequence + events,
	                                 .previous_seal_hash = chain.seal_hash,
	                                 .root = sha256_of(&number, sizeof number),
	                                 .document = slice_of("document"),
	                                 .nodes = slice_of("nodes")};
	segment.seal_hash = sha256_of("document", 8);
	snprintf(segment.segment_id, ID_SIZE, "seg_%lld", (long long)segment.number);
	return store_stage_block(fixture->sample.store, &block, &segment, 1, &failed, NULL);
}

/* Blocks of a round take effect when the round is written, and can be removed until then. */
TEST_CASE_ON(rounds_are_written_in_blocks, struct fixture *fixture)
{
	struct store *store = fixture->sample.store;
	struct unsealed_chain chain;
	struct staged_round staged;
	struct slice roots;
	int64_t events;
	sample_register(&fixture->sample, MODE_LIVE, 5);
	assert_int_equal(stage(fixture, 1, 2), ERR_REFUSED); /* not the first block */
	assert_int_equal(stage(fixture, 0, 2), OK);
	assert_int_equal(stage(fixture, 0, 2), ERR_REFUSED);
	assert_int_equal(stage(fixture, 1, 2), OK);
	assert_int_equal(stage(fixture, 2, 1), OK);
	assert_int_equal(list_unsealed(fixture, &chain), 0);
	assert_int_equal(sealed_of(fixture), 0);
	assert_int_equal(store_get_staged_round(store, &staged, NULL), OK);
	assert_int_equal(staged.round, 1);
	assert_int_equal(staged.blocks, 3);
	assert_int_equal(staged.latest_received_at_us, NOW + 2);
	assert_false(staged.has_previous);

	assert_int_equal(store_unstage_block(store, 1, 1, NULL), ERR_REFUSED); /* not the last block */
	assert_int_equal(store_unstage_block(store, 1, 2, NULL), OK);
	assert_int_equal(store_unstage_block(store, 1, 1, NULL), OK);
	assert_int_equal(list_unsealed(fixture, &chain), 1);
	assert_int_equal(chain.sealed_sequence, 2);
	assert_int_equal(chain.sealed_segment, 1);
	struct sha256 document = sha256_of("document", 8);
	assert_true(sha256_equal(&chain.seal_hash, &document));
	assert_int_equal(stage(fixture, 1, 3), OK);
	assert_int_equal(store_read_block(store, 1, 1, &fixture->arena, &roots, &events, NULL), OK);
	assert_int_equal(roots.size, SHA256_SIZE);
	assert_int_equal(events, 3);
	assert_int_equal(store_read_block(store, 1, 2, &fixture->arena, &roots, &events, NULL),
	                 ERR_NOT_FOUND);

	struct sha256 blocks[2] = {sha256_of("a", 1), sha256_of("b", 1)};
	struct round_token second = {.authority = "b",
	                             .kind = "qualified",
	                             .sealed_at_us = NOW + 7,
	                             .request = slice_of("r"),
	                             .response_head = slice_of("h"),
	                             .token = slice_of("second")};
	struct round_record round = {.round = 1,
	                             .authority = "a",
	                             .kind = "development",
	                             .sealed_at_us = NOW + 9,
	                             .request = slice_of("r"),
	                             .response_head = slice_of("h"),
	                             .token = slice_of("t"),
	                             .blocks = slice_make(blocks, sizeof blocks),
	                             .staged_changes = staged.changes,
	                             .second = &second};
	assert_int_equal(store_write_round(store, &round, NULL),
	                 ERR_REFUSED); /* a block was replaced */
	assert_int_equal(store_get_staged_round(store, &staged, NULL), OK);
	round.staged_changes = staged.changes;
	round.blocks = slice_make(blocks, sizeof *blocks);
	assert_int_equal(store_write_round(store, &round, NULL),
	                 ERR_REFUSED); /* one block is missing */
	assert_int_equal(sealed_of(fixture), 0);
	round.blocks = slice_make(blocks, sizeof blocks);
	assert_int_equal(store_write_round(store, &round, NULL), OK);
	assert_int_equal(sealed_of(fixture), 5);
	assert_int_equal(store_write_round(store, &round, NULL), ERR_REFUSED);
	assert_int_equal(store_unstage_block(store, 1, 1, NULL), ERR_REFUSED);
	struct round_record read;
	struct round_token token;
	assert_int_equal(store_get_round(store, 1, &fixture->arena, &read, NULL), OK);
	assert_true(slice_equal(read.blocks, round.blocks));
	assert_int_equal(store_get_second_token(store, 1, &fixture->arena, &token, NULL), OK);
	assert_true(slice_is(token.token, "second"));
	assert_string_equal(token.kind, "qualified");
	assert_int_equal(token.sealed_at_us, NOW + 7);
	assert_int_equal(store_get_second_token(store, 2, &fixture->arena, &token, NULL),
	                 ERR_NOT_FOUND);
}

static void check_with(struct fixture *fixture, const char *sql, int expected)
{
	struct check_listener listener = {.problem = tell_problem};
	struct check_report report = {0};
	sample_change(&fixture->sample, sql);
	told[0] = '\0';
	assert_int_equal(store_check(fixture->sample.store, &listener, &report, NULL), expected);
}

/* ---- idempotency keys ---- */

#define KEYS_AT_ONCE 8

static struct certification asked(const struct fixture *fixture, enum mode mode, int64_t last,
                                  int64_t now_us, const char *key)
{
	const struct sample *sample = &fixture->sample;
	struct certification certification = {
		.account = sample->account,
		.channel = sample->channel,
		.chain = mode == MODE_TEST ? sample->test_chain : sample->live_chain,
		.key = 1,
		.mode = mode,
		.requested_at_us = now_us,
		.range = {.from_us = TIME_NONE, .to_us = TIME_NONE, .seq_from = 1, .seq_to = last},
		.first_sequence = 1,
		.last_sequence = last,
		.config_versions = "[1]",
		.fee = mode == MODE_TEST ? 0 : 1,
		.idempotency_key = key,
	};
	memcpy(certification.channel_id, sample->channel_id, ID_SIZE);
	return certification;
}

static int ask_for(const struct fixture *fixture, struct certification *certification)
{
	return store_accept_certification(fixture->sample.store, "SVC", 0, certification, NULL);
}

/* Returns the identifier of the certification that such a request at that time finds; "": none. */
static const char *led_to(struct fixture *fixture, const struct certification *certification)
{
	static struct certification found;
	struct error error = {0};
	int result = store_find_repeated(fixture->sample.store, certification->account,
	                                 certification->chain, certification->idempotency_key,
	                                 certification->requested_at_us, &certification->range,
	                                 certification->seal_history, &fixture->arena, &found, &error);
	if (result == ERR_CONFLICT)
		return strstr(error.english, "another range") ? "another" : "?";
	assert_true(result == OK || result == ERR_NOT_FOUND);
	return result ? "" : found.certification_id;
}

static int64_t balance_of(const struct fixture *fixture)
{
	struct balance balance;
	assert_int_equal(
		store_get_balance(fixture->sample.store, fixture->sample.account, &balance, NULL), OK);
	return balance.balance;
}

static int64_t keys_left(const struct fixture *fixture)
{
	return sample_number(&fixture->sample, "SELECT count(*) FROM certifications"
	                                       " WHERE idempotency_key IS NOT NULL");
}

struct asker {
	pthread_t thread;
	const struct fixture *fixture;
	pthread_barrier_t *barrier;
	int result;
};

static void *ask_at_once(void *context)
{
	struct asker *asker = context;
	struct certification certification = asked(asker->fixture, MODE_LIVE, 1, NOW, "key");
	pthread_barrier_wait(asker->barrier);
	asker->result = ask_for(asker->fixture, &certification);
	return NULL;
}

/* ---- evidence records ---- */

static void complete_live(struct fixture *fixture)
{
	struct certification accepted = {
		.account = fixture->sample.account,
		.channel = fixture->sample.channel,
		.chain = fixture->sample.live_chain,
		.key = 1,
		.mode = MODE_LIVE,
		.requested_at_us = NOW,
		.range = {.from_us = TIME_NONE, .to_us = TIME_NONE, .seq_from = 1, .seq_to = 1},
		.first_sequence = 1,
		.last_sequence = 1,
		.config_versions = "[1]",
	};
	const struct document documents[] = {
		{.kind = DOCUMENT_REPORT, .name = "report", .object = "issued/a", .size_bytes = 1},
		{.kind = DOCUMENT_EVIDENCE, .name = "archive", .object = "issued/b", .size_bytes = 1}};
	const struct certification_claim claim = {
		.holder = "a", .now_us = INT64_MAX / 4, .lease_us = US_PER_SECOND};
	struct certification job;
	memcpy(accepted.channel_id, fixture->sample.channel_id, ID_SIZE);
	assert_int_equal(store_accept_certification(fixture->sample.store, "SVC", 0, &accepted, NULL),
	                 OK);
	assert_int_equal(
		store_claim_certification(fixture->sample.store, &claim, &fixture->arena, &job, NULL), OK);
	assert_int_equal(
		store_complete_certification(fixture->sample.store, &job, "a", NOW, documents, 2, NULL),
		OK);
}

static struct evidence_leaf chain_leaf(struct fixture *fixture, int64_t certification,
                                       int64_t chain, int64_t after_stamp)
{
	static const char hashes[2 * SHA256_SIZE] = "of both documents";
	return (struct evidence_leaf){
		.digest = digest_by(DIGEST_SHA256, "chain", 5),
		.chain = {.account = fixture->sample.account,
	              .certification = certification,
	              .record = 1,
	              .chain = chain,
	              .after_stamp = after_stamp,
	              .hashes = slice_make(hashes, sizeof hashes)},
	};
}

static void stage_leaves(struct fixture *fixture, const struct evidence_leaf *leaves, size_t count)
{
	struct staged_stamp staged;
	size_t failed;
	assert_int_equal(store_get_staged_stamp(fixture->sample.store, &staged, NULL), OK);
	staged.algorithm = DIGEST_SHA256;
	assert_int_equal(
		store_stage_leaves(fixture->sample.store, &staged, leaves, count, NOW, &failed, NULL), OK);
}

static void write_stamp(struct fixture *fixture, int64_t number)
{
	static const char blocks[SHA256_SIZE] = "the root of a block";
	const struct archive_timestamp stamp = {.stamp = number,
	                                        .algorithm = DIGEST_SHA256,
	                                        .authority = "authority",
	                                        .kind = "qualified",
	                                        .stamped_at_us = NOW + number,
	                                        .obtained_at_us = NOW + number,
	                                        .valid_until_us = NOW + US_PER_DAY,
	                                        .request = slice_of("request"),
	                                        .token = slice_of("token"),
	                                        .blocks = slice_make(blocks, sizeof blocks)};
	assert_int_equal(store_write_archive_timestamp(fixture->sample.store, &stamp, 1, NULL), OK);
}

/* Certifications 1 and 2 under one archive timestamp, which a second one renews together with the
 * round's token; 1 also by hash tree; a staged block; 3 is queued. */
static void fill_evidence(struct fixture *fixture)
{
	struct store *store = fixture->sample.store;
	static const char root[SHA256_SIZE] = "the root of a block";
	struct staged_round staged_round;
	struct round_record round = {.round = 1,
	                             .authority = "authority",
	                             .kind = "qualified",
	                             .sealed_at_us = NOW,
	                             .request = slice_of("request"),
	                             .response_head = slice_of("head"),
	                             .token = slice_of("token"),
	                             .blocks = slice_make(root, sizeof root)};
	struct renewable_token token = {
		.source = TOKEN_ROUND, .number = 1, .stamped_at_us = NOW, .valid_until_us = NOW + 9};
	sample_register(&fixture->sample, MODE_LIVE, 2);
	assert_int_equal(stage(fixture, 0, 2), OK);
	assert_int_equal(store_get_staged_round(store, &staged_round, NULL), OK);
	round.staged_changes = staged_round.changes;
	assert_int_equal(store_write_round(store, &round, NULL), OK);
	assert_int_equal(store_register_tokens(store, &token, 1, NULL), OK);
	for (int i = 0; i < 3; i++)
		complete_live(fixture);
	struct evidence_leaf first[] = {chain_leaf(fixture, 1, 1, 0), chain_leaf(fixture, 2, 1, 0)};
	stage_leaves(fixture, first, 2);
	write_stamp(fixture, 1);
	size_t queued = 0;
	struct evidence_cursor cursor = {0};
	assert_int_equal(store_rehash_evidence(store, DIGEST_SHA512, NOW, &cursor, &queued, NULL), OK);
	assert_int_equal(queued, 2);
	struct evidence_leaf renewals[] = {
		chain_leaf(fixture, 1, 2, 1),
		{.is_token = true, .token = token},
		{.is_token = true, .token = {.source = TOKEN_STAMP, .number = 1}}};
	stage_leaves(fixture, renewals, 3);
	write_stamp(fixture, 2);
	struct evidence_leaf staged = chain_leaf(fixture, 2, 2, 2);
	stage_leaves(fixture, &staged, 1);
}

/* Each with the statement that repairs it. */
static const char *const evidence_changes[][2] = {
	{"UPDATE archive_timestamps SET stamp = 7 WHERE stamp = 1",
     "UPDATE archive_timestamps SET stamp = 1 WHERE stamp = 7"},
	{"UPDATE archive_timestamps SET algorithm = 'md5' WHERE stamp = 2",
     "UPDATE archive_timestamps SET algorithm = 'sha-256' WHERE stamp = 2"},
	{"UPDATE archive_timestamps SET algorithm = 'sha-512' WHERE stamp = 2",
     "UPDATE archive_timestamps SET algorithm = 'sha-256' WHERE stamp = 2"},
	{"UPDATE tokens_at_rest SET number = 9 WHERE source = 'stamp' AND number = 2",
     "UPDATE tokens_at_rest SET number = 2 WHERE source = 'stamp' AND number = 9"},
	{"UPDATE tokens_at_rest SET number = 9 WHERE source = 'round'",
     "UPDATE tokens_at_rest SET number = 1 WHERE source = 'round'"},
	{"UPDATE tokens_at_rest SET source = 'second' WHERE source = 'round'",
     "UPDATE tokens_at_rest SET source = 'round' WHERE source = 'second'"},
	{"UPDATE tokens_at_rest SET place = 3 WHERE source = 'round'",
     "UPDATE tokens_at_rest SET place = 1 WHERE source = 'round'"},
	{"UPDATE tokens_at_rest SET place = NULL WHERE source = 'round'",
     "UPDATE tokens_at_rest SET place = 1 WHERE source = 'round'"},
	{"UPDATE tokens_at_rest SET stamp = 5 WHERE source = 'round'",
     "UPDATE tokens_at_rest SET stamp = 2 WHERE source = 'round'"},
	{"UPDATE tokens_at_rest SET stamp = 1, place = 0 WHERE source = 'stamp' AND number = 1",
     "UPDATE tokens_at_rest SET stamp = 2, place = 2 WHERE source = 'stamp' AND number = 1"},
	{"UPDATE archive_timestamp_blocks SET stamp = 8 WHERE stamp = 1",
     "UPDATE archive_timestamp_blocks SET stamp = 1 WHERE stamp = 8"},
	{"UPDATE archive_timestamp_blocks SET stamp = 8 WHERE stamp = 3",
     "UPDATE archive_timestamp_blocks SET stamp = 3 WHERE stamp = 8"},
	{"UPDATE archive_timestamp_blocks SET block = 1 WHERE stamp = 3",
     "UPDATE archive_timestamp_blocks SET block = 0 WHERE stamp = 3"},
	{"UPDATE archive_timestamp_blocks SET block = 1 WHERE stamp = 2",
     "UPDATE archive_timestamp_blocks SET block = 0 WHERE stamp = 2"},
	{"UPDATE archive_timestamp_blocks SET algorithm = 'sha-512' WHERE stamp = 3",
     "UPDATE archive_timestamp_blocks SET algorithm = 'sha-256' WHERE stamp = 3"},
	{"UPDATE evidence_chains SET stamp = 9 WHERE certification = 2 AND chain = 2",
     "UPDATE evidence_chains SET stamp = 3 WHERE certification = 2 AND chain = 2"},
	{"UPDATE evidence_chains SET place = 2 WHERE certification = 2 AND chain = 1",
     "UPDATE evidence_chains SET place = 1 WHERE certification = 2 AND chain = 1"},
	{"UPDATE evidence_chains SET place = 1024 WHERE certification = 2 AND chain = 1",
     "UPDATE evidence_chains SET place = 1 WHERE certification = 2 AND chain = 1"},
	{"UPDATE evidence_chains SET certification = 77 WHERE certification = 1",
     "UPDATE evidence_chains SET certification = 1 WHERE certification = 77"},
	{"UPDATE evidence_chains SET chain = 3 WHERE certification = 1 AND chain = 2",
     "UPDATE evidence_chains SET chain = 2 WHERE certification = 1 AND chain = 3"},
	{"UPDATE evidence_chains SET after_stamp = NULL WHERE certification = 1 AND chain = 2",
     "UPDATE evidence_chains SET after_stamp = 1 WHERE certification = 1 AND chain = 2"},
	{"UPDATE evidence_chains SET after_stamp = 2 WHERE certification = 1 AND chain = 2",
     "UPDATE evidence_chains SET after_stamp = 1 WHERE certification = 1 AND chain = 2"},
	{"UPDATE evidence_queue SET reason = 'none'", "UPDATE evidence_queue SET reason = 'first'"},
	{"UPDATE evidence_queue SET certification = 78", "UPDATE evidence_queue SET certification = 3"},
	{"UPDATE evidence_queue SET account = 78",
     "UPDATE evidence_queue SET account = (SELECT account FROM evidence_chains LIMIT 1)"},
	{"UPDATE certifications SET chain = chain + 1 WHERE certification = 2",
     "UPDATE certifications SET chain = chain - 1 WHERE certification = 2"},
};
/* Not repaired: each causes a problem of its own. */
static const char *const evidence_ends[][2] = {
	{"DELETE FROM evidence_queue", "it has no evidence and is not queued for it"},
	{"UPDATE tokens_at_rest SET number = 9 WHERE source = 'round'",
     "its timestamp is not registered for renewal"},
	{"DELETE FROM evidence_chains WHERE certification = 2 AND chain = 1",
     "it does not continue the previous chain"},
	{"DELETE FROM tokens_at_rest WHERE source = 'stamp' AND number = 2",
     "its token is not registered for renewal"},
	{"UPDATE archive_timestamp_blocks SET leaves = substr(leaves, 1, 31) WHERE stamp = 3",
     "its leaves are not a list of hashes"},
	{"UPDATE evidence_chains SET hashes = substr(hashes, 1, 31) WHERE certification = 1",
     "its hashes have the wrong size"},
	{"UPDATE archive_timestamps SET blocks = substr(blocks, 1, 31) WHERE stamp = 1",
     "its blocks do not match the block roots that it covers"},
	{"DELETE FROM archive_timestamps WHERE stamp = 1", "the previous archive timestamp is missing"},
};

TEST_CASE_ON(evidence_is_checked, struct fixture *fixture)
{
	fill_evidence(fixture);
	assert_clean(fixture);
	for (size_t i = 0; i < sizeof evidence_changes / sizeof *evidence_changes; i++) {
		check_with(fixture, evidence_changes[i][0], ERR_CORRUPT);
		check_with(fixture, evidence_changes[i][1], OK);
	}
	for (size_t i = 0; i < sizeof evidence_ends / sizeof *evidence_ends; i++) {
		assert_null(strstr(told, evidence_ends[i][1]));
		check_with(fixture, evidence_ends[i][0], ERR_CORRUPT);
		assert_non_null(strstr(told, evidence_ends[i][1]));
	}
}

/* ---- purchases ---- */

static void set_account(struct fixture *fixture, const char *name, int64_t tax_rate)
{
	struct slice account = slice_of(fixture->sample.account_id);
	struct account_change change = ACCOUNT_UNCHANGED;
	struct billing_change billing = {.country = "ES", .tax_rate = tax_rate};
	change.name = name;
	assert_int_equal(store_change_account(fixture->sample.store, account, &change, NOW, NULL), OK);
	assert_int_equal(store_change_billing(fixture->sample.store, account, &billing, NULL), OK);
}

static void find_sale(struct fixture *fixture, const char *sale_id, struct purchase_record *ret)
{
	assert_int_equal(
		store_find_purchase(fixture->sample.store, slice_of(sale_id), &fixture->arena, ret, NULL),
		OK);
}

/* Buyer and tax rate are those at the creation of the purchase; a purchase of an older version has
 * neither. */
TEST_CASE_ON(a_purchase_keeps_who_bought_at_what_rate, struct fixture *fixture)
{
	struct store *store = fixture->sample.store;
	char pack_id[ID_SIZE], sale_id[ID_SIZE];
	struct purchase_record sale;
	struct pack_record pack = {
		.name = "Pack", .credits = 10, .amount_minor = 100, .currency = CURRENCY_EUR};
	assert_int_equal(store_create_pack(store, &pack, NOW, pack_id, NULL), OK);
	set_account(fixture, "Señal, S.L.", 525);
	assert_int_equal(store_create_purchase(store, slice_of(fixture->sample.account_id),
	                                       slice_of(pack_id), "manual", NOW, sale_id, NULL),
	                 OK);
	set_account(fixture, "Another", 2100);
	struct purchase_order order = {.act = PURCHASE_PAY, .sale_id = slice_of(sale_id)};
	struct purchase_outcome outcome;
	assert_int_equal(store_change_purchase(store, &order, NOW, &outcome, NULL), OK);
	find_sale(fixture, sale_id, &sale);
	assert_string_equal(sale.account_name, "Señal, S.L.");
	assert_string_equal(sale.country, "ES");
	assert_int_equal(sale.tax_rate, 525);
	assert_int_equal(sale.tax_minor, 5);
	check_with(fixture, "UPDATE purchases SET tax_rate = 600", ERR_CORRUPT);
	assert_non_null(strstr(told, "the tax amount does not match the tax rate"));
	check_with(fixture, "UPDATE purchases SET tax_rate = -1", ERR_CORRUPT);
	check_with(fixture, "UPDATE purchases SET tax_rate = NULL, account_name = NULL", OK);
	find_sale(fixture, sale_id, &sale);
	assert_null(sale.account_name);
	assert_int_equal(sale.tax_rate, -1);
}

/* The segments themselves are unchanged here; only complete blocks and the row of the round are
 * checked. */
TEST_CASE(the_staged_round_is_checked)
{
	static const char *const changes[][2] = {
		{"UPDATE staged_round SET blocks = 1", "UPDATE staged_round SET blocks = 2"},
		{"UPDATE staged_round SET blocks = 3", "UPDATE staged_round SET blocks = 2"},
		{"UPDATE staged_round SET round = 2", "UPDATE staged_round SET round = 1"},
		{"UPDATE staged_round SET round = 0", "UPDATE staged_round SET round = 1"},
		{"UPDATE round_blocks SET round = 7 WHERE block = 1",
	     "UPDATE round_blocks SET round = 1 WHERE block = 1"},
		{"DELETE FROM staged_round",
	     "INSERT INTO staged_round (round, blocks, changes) VALUES (1, 2, 2)"},
		{"DELETE FROM round_blocks WHERE block = 0", NULL},
	};
	struct fixture *fixture = *state;
	sample_register(&fixture->sample, MODE_LIVE, 5);
	assert_int_equal(stage(fixture, 0, 2), OK);
	assert_int_equal(stage(fixture, 1, 2), OK);
	assert_clean(fixture);
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		check_with(fixture, changes[i][0], ERR_CORRUPT);
		if (changes[i][1])
			check_with(fixture, changes[i][1], OK);
	}
	/* After the missing block is staged again the check succeeds. */
	assert_int_equal(store_unstage_block(fixture->sample.store, 1, 1, NULL), OK);
	assert_int_equal(store_unstage_block(fixture->sample.store, 1, 0, NULL), OK);
	assert_clean(fixture);
	assert_int_equal(stage(fixture, 0, 4), OK);
	assert_clean(fixture);
}

/* Sums of 64-bit integers, which a server returns in another type. */
TEST_CASE_ON(sums_are_read_as_they_are, struct fixture *fixture)
{
	static const struct {
		int64_t a, b, sum;
	} rows[] = {
		{0, 0, 0},
		{1, -1, 0},
		{-1, 0, -1},
		{1, 2, 3},
		{9999, 0, 9999},
		{9999, 1, 10000},
		{-9999, -1, -10000},
		{10000, 1, 10001},
		{99990000, 10000, 100000000},
		{100000000, 0, 100000000},
		{-100000000, -1, -100000001},
		{123456789012345, 0, 123456789012345},
		{1000000000000, -1, 999999999999},
		{INT64_C(10000000000000000), 0, INT64_C(10000000000000000)},
		{INT64_MAX, 0, INT64_MAX},
		{INT64_MAX, -1, INT64_MAX - 1},
		{INT64_MIN, 0, INT64_MIN},
		{INT64_MIN, INT64_MAX, -1},
		{INT64_MIN + 1, -1, INT64_MIN},
	};
	struct db_connection *reader = db_take_reader(fixture->sample.store->db);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct db_query *query =
			db_query(reader, "SELECT sum(v), count(v), sum(w) FROM "
		                     "(SELECT $1 AS v, CASE WHEN 1 = 0 THEN $1 END AS w "
		                     "UNION ALL SELECT $2, NULL) AS given");
		db_bind_integer(query, rows[i].a);
		db_bind_integer(query, rows[i].b);
		assert_true(db_step(query));
		assert_int_equal(db_integer(query, 0), rows[i].sum);
		assert_int_equal(db_integer(query, 1), 2);
		assert_true(db_is_null(query, 2));
		assert_int_equal(db_end(query, NULL), OK);
	}
	struct db_query *query = db_query(reader, "SELECT sum(v) FROM (SELECT $1 AS v UNION ALL "
	                                          "SELECT $2) AS given");
	db_bind_integer(query, INT64_MAX);
	db_bind_integer(query, 1);
	if (db_step(query))
		db_integer(query, 0);
	assert_int_not_equal(db_end(query, NULL), OK); /* beyond 64 bits: an error */
	db_give(reader);
}

/* A search for unreferenced objects waits for transactions in progress. */
TEST_CASE_ON(what_is_being_written_is_awaited, struct fixture *fixture)
{
	struct db *db = fixture->sample.store->db;
	assert_int_equal(store_await_writes(fixture->sample.store, NULL), OK);
	if (!db_is_shared(db))
		return; /* one writer, whose commits never have an unknown outcome */
	struct db_connection *registrar = db_take_registrar(db, 0, 1);
	int64_t changes = 0;
	assert_int_equal(db_begin(registrar, NULL), OK);
	assert_int_equal(db_execute(db_query(registrar, "UPDATE settings SET value = value"
	                                                " WHERE name = 'schema'"),
	                            &changes, NULL),
	                 OK);
	assert_int_equal(changes, 1);
	struct error error = {0};
	assert_int_equal(store_await_writes(fixture->sample.store, &error), ERR_UNAVAILABLE);
	assert_non_null(strstr(error.cause, "still open"));
	db_give(registrar); /* rolls back */
	assert_int_equal(store_await_writes(fixture->sample.store, NULL), OK);
}

TEST_CASE_ON(an_idempotency_key_leads_to_its_certification, struct fixture *fixture)
{
	sample_register(&fixture->sample, MODE_LIVE, 2);
	sample_register(&fixture->sample, MODE_TEST, 1);
	struct certification first = asked(fixture, MODE_LIVE, 2, NOW, "key");
	assert_string_equal(led_to(fixture, &first), "");
	assert_int_equal(ask_for(fixture, &first), OK);
	assert_string_equal(led_to(fixture, &first), first.certification_id);
	assert_int_equal(balance_of(fixture), 5 - 2 - 1);
	/* The request is accepted, and nothing is charged or numbered for it. */
	struct certification again = asked(fixture, MODE_LIVE, 2, NOW, "key");
	assert_int_equal(ask_for(fixture, &again), ERR_CONFLICT);
	assert_int_equal(balance_of(fixture), 5 - 2 - 1);
	struct certification other = asked(fixture, MODE_LIVE, 1, NOW, "key");
	assert_string_equal(led_to(fixture, &other), "another");
	/* A request by time has another range, even if the closed range is the same. */
	other.range = (struct certification_range){.from_us = 1, .to_us = NOW + US_PER_DAY};
	assert_string_equal(led_to(fixture, &other), "another");
	/* Keys are compared byte by byte and per chain; a missing key matches none. */
	struct certification keys[] = {
		asked(fixture, MODE_LIVE, 2, NOW, "KEY"), asked(fixture, MODE_TEST, 1, NOW, "key"),
		asked(fixture, MODE_LIVE, 2, NOW, NULL), asked(fixture, MODE_TEST, 1, NOW, NULL)};
	keys[0].fee = keys[2].fee = 0;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		if (keys[i].idempotency_key)
			assert_string_equal(led_to(fixture, &keys[i]), "");
		assert_int_equal(ask_for(fixture, &keys[i]), OK);
	}
	assert_string_equal(keys[0].certification_id + strlen(keys[0].certification_id) - 7, "0000002");
	struct fixture channel = *fixture;
	sample_add_channel(&channel.sample, MODALITY_HASH_ONLY);
	struct certification elsewhere = asked(&channel, MODE_LIVE, 2, NOW, "key");
	assert_string_equal(led_to(fixture, &elsewhere), "");
	reopen(fixture);
	assert_string_equal(led_to(fixture, &again), first.certification_id);
	assert_clean(fixture);
}

TEST_CASE_ON(an_idempotency_key_is_free_after_a_day, struct fixture *fixture)
{
	sample_register(&fixture->sample, MODE_TEST, 3);
	struct certification first = asked(fixture, MODE_TEST, 1, NOW, "key");
	assert_int_equal(ask_for(fixture, &first), OK);
	struct certification later = asked(fixture, MODE_TEST, 3, NOW + US_PER_DAY - 1, "key");
	assert_string_equal(led_to(fixture, &later), "another");
	assert_int_equal(ask_for(fixture, &later), ERR_CONFLICT);
	later.requested_at_us++;
	assert_string_equal(led_to(fixture, &later), "");
	assert_int_equal(ask_for(fixture, &later), OK);
	assert_string_equal(led_to(fixture, &later), later.certification_id);
	/* Setting the clock back does not release keys. */
	first.requested_at_us -= US_PER_DAY;
	assert_string_equal(led_to(fixture, &first), "another");
	assert_clean(fixture);
}

/* In batches of 500. */
TEST_CASE_ON(idempotency_keys_are_forgotten, struct fixture *fixture)
{
	sample_register(&fixture->sample, MODE_LIVE, 1);
	for (int i = 0; i < 1003; i++) {
		char key[16];
		snprintf(key, sizeof key, "%d", i);
		struct certification one = asked(fixture, MODE_LIVE, 1, NOW + i, i % 5 ? key : NULL);
		one.fee = 0;
		assert_int_equal(ask_for(fixture, &one), OK);
	}
	struct store *store = fixture->sample.store;
	assert_int_equal(keys_left(fixture), 802);
	int64_t removed;
	assert_int_equal(store_forget_idempotency_keys(store, NOW + US_PER_DAY, 1, &removed, NULL), OK);
	assert_int_equal(removed, 0);
	assert_int_equal(
		store_forget_idempotency_keys(store, NOW + US_PER_DAY + 1000, 1, &removed, NULL), OK);
	assert_int_equal(removed, 500);
	assert_int_equal(keys_left(fixture), 302);
	assert_int_equal(
		store_forget_idempotency_keys(store, NOW + US_PER_DAY + 1000, 1000, &removed, NULL), OK);
	assert_int_equal(removed, 300);
	assert_int_equal(keys_left(fixture), 2);
	struct certification last = asked(fixture, MODE_LIVE, 1, NOW + 1002, "1002");
	assert_string_not_equal(led_to(fixture, &last), "");
}

TEST_CASE_ON(an_idempotency_key_is_taken_once, struct fixture *fixture)
{
	sample_register(&fixture->sample, MODE_LIVE, 1);
	struct asker askers[KEYS_AT_ONCE];
	pthread_barrier_t barrier;
	assert_int_equal(pthread_barrier_init(&barrier, NULL, KEYS_AT_ONCE), 0);
	for (size_t i = 0; i < KEYS_AT_ONCE; i++) {
		askers[i] = (struct asker){.fixture = fixture, .barrier = &barrier};
		assert_int_equal(pthread_create(&askers[i].thread, NULL, ask_at_once, &askers[i]), 0);
	}
	int accepted = 0;
	for (size_t i = 0; i < KEYS_AT_ONCE; i++) {
		pthread_join(askers[i].thread, NULL);
		assert_true(askers[i].result == OK || askers[i].result == ERR_CONFLICT);
		accepted += askers[i].result == OK;
	}
	pthread_barrier_destroy(&barrier);
	assert_int_equal(accepted, 1);
	assert_int_equal(balance_of(fixture), 5 - 1 - 1);
	assert_clean(fixture);
}

int main(int argc, char **argv)
{
	server_url = argc > 2 ? argv[1] : NULL;
	other_url = argc > 2 ? argv[2] : NULL;
	return tests_run(NULL, NULL, set_up, tear_down);
}
