/* ledger_register: each rule by example, then random histories against a simple model that counts
 * one request at a time. The seed is printed; CONSTANCIA_TEST_SEED repeats a run. */
#include "testing.h"
#include "ledger/ledger.h"

#define CLOCK_BOUND (5 * US_PER_SECOND)
#define NOON INT64_C(1767268800000000) /* 2026-01-01T12:00:00Z */

struct world {
	struct arena arena;
	struct ledger_account account;
	struct ledger_chain chains[3];
	struct ledger_chain *chain_list[3];
	struct ledger_limit limits[3];
	struct ledger_threshold thresholds[2];
	struct ledger_result result;
};

static void world_begin(struct world *world, int64_t balance, int64_t unpaid_limit)
{
	memset(world, 0, sizeof *world);
	arena_init(&world->arena, (size_t)64 << 20);
	world->account =
		(struct ledger_account){.account = 1, .balance = balance, .unpaid_limit = unpaid_limit};
	for (int i = 0; i < 3; i++) {
		world->chains[i] = (struct ledger_chain){.chain = i == 2 ? 3 : 2 + i * 2,
		                                         .channel = i == 1 ? 2 : 1,
		                                         .channel_id = i == 1 ? "chn_two" : "chn_one",
		                                         .mode = i == 2 ? MODE_TEST : MODE_LIVE,
		                                         .modality = MODALITY_HASH_ONLY,
		                                         .config_version = 1};
		world->chain_list[i] = &world->chains[i];
	}
	world->account.chains = world->chain_list;
	world->account.chain_count = 3;
}

static void world_end(struct world *world)
{
	arena_free(&world->arena);
}

static struct declaration *declare(struct world *world, const char *ref)
{
	struct declaration *declaration = arena_alloc(&world->arena, sizeof *declaration);
	assert_non_null(declaration);
	*declaration = (struct declaration){.client_ref = slice_of(ref),
	                                    .occurred_at_us = TIME_NONE,
	                                    .modality = MODALITY_HASH_ONLY,
	                                    .hash_algorithm = HASH_SHA256};
	memset(declaration->hash, 7, SHA256_SIZE);
	return declaration;
}

static struct ledger_request request_of(struct world *world, int chain,
                                        const struct declaration *declaration)
{
	return (struct ledger_request){
		.chain = &world->chains[chain], .key = chain + 10, .declaration = declaration};
}

static struct ledger_request request_make(struct world *world, int chain, const char *ref)
{
	return request_of(world, chain, declare(world, ref));
}

static void run_clock(struct world *world, struct ledger_request *requests, size_t count,
                      struct ledger_clock clock)
{
	struct ledger_request *list[64];
	assert_true(count <= 64);
	for (size_t i = 0; i < count; i++)
		list[i] = &requests[i];
	for (int i = 0; i < 3; i++) {
		world->chains[i].paid = NULL;
		world->chains[i].changed = false;
	}
	assert_int_equal(
		ledger_register(&world->account, list, count, &clock, &world->arena, &world->result), OK);
}

static void run_by(struct world *world, struct ledger_request *requests, size_t count,
                   int64_t now_us, int64_t ahead_us)
{
	run_clock(
		world, requests, count,
		(struct ledger_clock){.now_us = now_us, .ahead_us = ahead_us, .bound_us = CLOCK_BOUND});
}

static void run_at(struct world *world, struct ledger_request *requests, size_t count,
                   int64_t now_us)
{
	run_by(world, requests, count, now_us, 0);
}

static void run(struct world *world, struct ledger_request *requests, size_t count)
{
	run_at(world, requests, count, NOON);
}

static size_t count_notices(const struct world *world, enum notice_type type)
{
	size_t count = 0;
	for (struct ledger_notice *notice = world->result.notices; notice; notice = notice->next)
		count += notice->type == type;
	return count;
}

TEST_CASE(registers_in_order_and_chains)
{
	struct world world;
	world_begin(&world, 10, 5);
	struct ledger_request requests[] = {request_make(&world, 0, "a"), request_make(&world, 1, "a"),
	                                    request_make(&world, 0, "b")};
	run(&world, requests, 3);
	assert_int_equal(requests[0].sequence, 1);
	assert_int_equal(requests[1].sequence, 1);
	assert_int_equal(requests[2].sequence, 2);
	assert_string_equal(requests[2].event_id, "evt_onel2");
	assert_memory_equal(world.chains[0].last_chain_hash.bytes, requests[2].chain_hash.bytes, 32);
	assert_memory_not_equal(requests[0].chain_hash.bytes, requests[1].chain_hash.bytes, 32);
	assert_int_equal(world.account.balance, 7);
	assert_int_equal(world.result.entries->credits, -2);
	assert_int_equal(world.result.entries->first_sequence, 1);
	assert_int_equal(world.result.entries->last_sequence, 2);
	assert_int_equal(world.result.entries->next->credits, -1);
	assert_int_equal(world.result.entries->next->balance, 7);
	world_end(&world);
}

TEST_CASE(time_never_goes_back)
{
	struct world world;
	world_begin(&world, 10, 5);
	struct ledger_request first = request_make(&world, 0, "a");
	struct ledger_request second = request_make(&world, 0, "b");
	run_at(&world, &first, 1, NOON);
	run_at(&world, &second, 1, NOON - CLOCK_BOUND);
	assert_int_equal(first.received_at_us, NOON);
	assert_int_equal(second.received_at_us, NOON);
	world_end(&world);
}

/* After an event with a future time, only that chain refuses registrations; replays are
 * answered. */
TEST_CASE(a_clock_too_far_back_is_refused)
{
	struct world world;
	world_begin(&world, 10, 5);
	struct ledger_request first[] = {request_make(&world, 0, "a"), request_make(&world, 2, "a")};
	run_at(&world, first, 2, NOON);
	struct ledger_request then[] = {request_make(&world, 0, "b"), request_make(&world, 1, "b"),
	                                request_make(&world, 2, "b"), request_make(&world, 0, "a")};
	then[3].known.sequence = 1;
	memset(then[3].known.hash, 7, SHA256_SIZE);
	then[3].known.occurred_at_us = TIME_NONE;
	int64_t back_us = NOON - CLOCK_BOUND - 1;
	run_at(&world, then, 4, back_us);
	assert_int_equal(then[0].result, ERR_CLOCK);
	assert_int_equal(then[1].result, OK);
	assert_int_equal(then[1].received_at_us, back_us);
	assert_int_equal(then[2].result, OK); /* a test chain is never sealed */
	assert_true(then[3].replayed);
	assert_int_equal(world.chains[0].last_sequence, 1);
	assert_false(world.chains[0].changed);
	assert_int_equal(world.account.balance, 8);
	world_end(&world);
}

/* Only live events, on any chain; replays are answered. */
TEST_CASE(a_clock_that_is_ahead_is_refused)
{
	struct world world;
	world_begin(&world, 10, 5);
	struct ledger_request first = request_make(&world, 0, "a");
	run_by(&world, &first, 1, NOON, CLOCK_BOUND);
	assert_int_equal(first.result, OK);
	struct ledger_request then[] = {request_make(&world, 0, "b"), request_make(&world, 1, "b"),
	                                request_make(&world, 2, "b"), request_make(&world, 0, "a")};
	then[3].known.sequence = 1;
	memset(then[3].known.hash, 7, SHA256_SIZE);
	then[3].known.occurred_at_us = TIME_NONE;
	run_by(&world, then, 4, NOON, CLOCK_BOUND + 1);
	assert_int_equal(then[0].result, ERR_CLOCK);
	assert_int_equal(then[1].result, ERR_CLOCK);
	assert_int_equal(then[2].result, OK);
	assert_true(then[3].replayed);
	assert_int_equal(world.chains[0].last_sequence, 1);
	assert_int_equal(world.chains[0].last_received_at_us, NOON);
	assert_int_equal(world.account.balance, 9);
	world_end(&world);
}

/* On each live chain, until it has been compared; not in test mode. */
TEST_CASE(a_clock_that_was_not_compared_is_refused)
{
	struct world world;
	world_begin(&world, 10, 5);
	const struct ledger_clock refused = {
		.now_us = NOON, .bound_us = CLOCK_BOUND, .refused_for_us = 1};
	struct ledger_request first[] = {request_make(&world, 0, "a"), request_make(&world, 1, "a"),
	                                 request_make(&world, 2, "a")};
	run_clock(&world, first, 3, refused);
	assert_int_equal(first[0].result, ERR_CLOCK);
	assert_int_equal(first[1].result, ERR_CLOCK);
	assert_int_equal(first[2].result, OK);
	assert_int_equal(world.account.balance, 10);
	assert_int_equal(world.chains[0].last_sequence, 0);
	struct ledger_request again = request_make(&world, 0, "b");
	again.known.sequence = 1;
	memset(again.known.hash, 7, SHA256_SIZE);
	again.known.occurred_at_us = TIME_NONE;
	run_clock(&world, &again, 1, refused);
	assert_true(again.replayed);
	struct ledger_request then = request_make(&world, 0, "c");
	run_at(&world, &then, 1, NOON);
	assert_int_equal(then.result, OK);
	world_end(&world);
}

TEST_CASE(same_ref_replays_or_conflicts)
{
	struct world world;
	world_begin(&world, 10, 5);
	struct declaration *other_hash = declare(&world, "a");
	other_hash->hash[0] ^= 1;
	struct declaration *other_time = declare(&world, "a");
	other_time->occurred_at_us = NOON;
	struct ledger_request requests[] = {request_make(&world, 0, "a"), request_make(&world, 0, "a"),
	                                    request_of(&world, 0, other_hash),
	                                    request_of(&world, 0, other_time),
	                                    request_make(&world, 0, "known")};
	requests[4].known.sequence = 77;
	memset(requests[4].known.hash, 7, SHA256_SIZE);
	requests[4].known.occurred_at_us = TIME_NONE;
	run(&world, requests, 5);
	assert_false(requests[0].replayed);
	assert_true(requests[1].replayed);
	assert_int_equal(requests[1].original, requests[0].sequence);
	assert_int_equal(requests[2].result, ERR_CONFLICT);
	assert_int_equal(requests[3].result, ERR_CONFLICT);
	assert_true(requests[4].replayed);
	assert_int_equal(requests[2].original, requests[0].sequence);
	assert_int_equal(requests[3].original, requests[0].sequence);
	assert_int_equal(requests[4].original, 77);
	assert_int_equal(world.account.balance, 9);
	assert_int_equal(world.chains[0].last_sequence, 1);

	struct declaration *other_algorithm = declare(&world, "known");
	other_algorithm->hash_algorithm = HASH_SHA512;
	struct ledger_request conflict = request_of(&world, 0, other_algorithm);
	conflict.known = requests[4].known;
	run(&world, &conflict, 1);
	assert_int_equal(conflict.result, ERR_CONFLICT);
	world_end(&world);
}

/* A replay is answered with 200 whatever the balance, the limits and the quotas are now. */
TEST_CASE(replay_ignores_limits)
{
	struct world world;
	world_begin(&world, 0, 0);
	world.limits[0] = (struct ledger_limit){
		.limit_id = "lim_a", .channel = 1, .block = true, .max_events = 1, .used = 1};
	world.account.limits = world.limits;
	world.account.limit_count = 1;
	struct ledger_request known = request_make(&world, 0, "a");
	known.known.sequence = 1;
	memset(known.known.hash, 7, SHA256_SIZE);
	known.known.occurred_at_us = TIME_NONE;
	run(&world, &known, 1);
	assert_int_equal(known.result, OK);
	assert_true(known.replayed);
	world_end(&world);
}

TEST_CASE(credits_run_out)
{
	struct world world;
	world_begin(&world, 1, 2);
	struct ledger_request requests[5];
	char refs[5][16];
	for (int i = 0; i < 5; i++) {
		snprintf(refs[i], sizeof refs[i], "r%d", i);
		requests[i] = request_make(&world, i % 2, refs[i]);
	}
	run(&world, requests, 5);
	assert_int_equal(requests[0].status, STATUS_REGISTERED);
	assert_int_equal(requests[1].status, STATUS_UNPAID);
	assert_int_equal(requests[2].status, STATUS_UNPAID);
	assert_int_equal(requests[3].result, ERR_UNPAID_LIMIT);
	assert_int_equal(requests[4].result, ERR_UNPAID_LIMIT);
	assert_int_equal(world.account.unpaid_events, 2);
	assert_int_equal(count_notices(&world, NOTICE_BALANCE_EXHAUSTED), 1);
	assert_int_equal(count_notices(&world, NOTICE_UNPAID_LIMIT_REACHED), 1);
	assert_string_equal(world.result.notices->data.data, "{\"channel_id\":\"chn_two\"}");
	assert_string_equal(world.result.notices->next->data.data,
	                    "{\"unpaid_limit\":2,\"unpaid_events\":2,\"unpaid_credits\":2}");
	world_end(&world);
}

TEST_CASE(unpaid_limit_zero_means_none)
{
	struct world world;
	world_begin(&world, 0, 0);
	struct ledger_request request = request_make(&world, 0, "a");
	run(&world, &request, 1);
	assert_int_equal(request.result, ERR_UNPAID_LIMIT);
	assert_null(world.result.notices);
	world_end(&world);
}

TEST_CASE(consumption_limits)
{
	struct world world;
	world_begin(&world, 100, 5);
	world.limits[0] = (struct ledger_limit){
		.limit_id = "lim_warn", .channel = 1, .channel_id = "chn_one", .max_events = 2};
	world.limits[1] = (struct ledger_limit){.limit_id = "lim_block",
	                                        .channel = 1,
	                                        .channel_id = "chn_one",
	                                        .key = 10,
	                                        .key_id = "key_x",
	                                        .period = PERIOD_MONTH,
	                                        .block = true,
	                                        .max_events = 3,
	                                        .used = 0};
	world.account.limits = world.limits;
	world.account.limit_count = 2;
	struct ledger_request requests[5];
	char refs[5][16];
	for (int i = 0; i < 5; i++) {
		snprintf(refs[i], sizeof refs[i], "r%d", i);
		requests[i] = request_make(&world, 0, refs[i]);
	}
	run(&world, requests, 5);
	assert_int_equal(requests[2].result, OK);
	assert_int_equal(requests[3].result, ERR_LIMIT_BLOCKED);
	assert_int_equal(requests[4].result, ERR_LIMIT_BLOCKED);
	assert_int_equal(count_notices(&world, NOTICE_CONSUMPTION_LIMIT_REACHED), 2);
	assert_string_equal(world.result.notices->data.data,
	                    "{\"limit_id\":\"lim_warn\",\"scope\":\"channel\",\"channel_id\":"
	                    "\"chn_one\",\"key_id\":null,\"period\":\"day\",\"period_key\":"
	                    "\"2026-01-01\",\"max_events\":2,\"action\":\"warn\"}");
	assert_string_equal(world.result.notices->next->data.data,
	                    "{\"limit_id\":\"lim_block\",\"scope\":\"key\",\"channel_id\":"
	                    "\"chn_one\",\"key_id\":\"key_x\",\"period\":\"month\",\"period_key\":"
	                    "\"2026-01\",\"max_events\":3,\"action\":\"block\"}");

	/* Test events neither count nor are refused; other channels are not affected. */
	struct ledger_request free[] = {request_make(&world, 2, "t"), request_make(&world, 1, "o")};
	run(&world, free, 2);
	assert_int_equal(free[0].result, OK);
	assert_int_equal(free[1].result, OK);
	assert_null(world.result.notices);
	world_end(&world);
}

static struct ledger_limit limit_of(const char *id, enum period period, bool block, int64_t used)
{
	return (struct ledger_limit){.limit_id = id,
	                             .channel = 1,
	                             .max_events = 1,
	                             .used = used,
	                             .period = period,
	                             .block = block};
}

static int64_t time_of(const char *text)
{
	int64_t time_us = 0;
	struct error error = {0};
	assert_int_equal(time_parse(slice_of(text), "time", &time_us, &error), OK);
	return time_us;
}

/* Until the last of the blocking limits has its next period: not of those that warn, have events
 * left, or are of another key. */
TEST_CASE(blocked_until_the_next_period)
{
	static const struct {
		const char *now, *last_received, *until;
		bool by_day, by_month;
	} cases[] = {
		{"2026-01-01T00:00:00Z", NULL, "2026-01-02T00:00:00Z", true, false},
		{"2026-01-31T23:59:59.999999Z", NULL, "2026-02-01T00:00:00Z", true, false},
		{"2026-01-01T00:00:00Z", NULL, "2026-02-01T00:00:00Z", false, true},
		{"2028-02-29T12:00:00Z", NULL, "2028-03-01T00:00:00Z", false, true},
		{"2026-12-31T12:00:00Z", NULL, "2027-01-01T00:00:00Z", true, true},
		{"2026-12-30T12:00:00Z", NULL, "2027-01-01T00:00:00Z", true, true},
		/* The chain is ahead of the clock. */
		{"2026-01-31T23:59:59Z", "2026-02-01T00:00:01Z", "2026-03-01T00:00:00Z", true, true},
		{"2026-01-31T23:59:59Z", "2026-02-01T00:00:01Z", "2026-02-02T00:00:00Z", true, false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct world world;
		world_begin(&world, 100, 5);
		struct ledger_request request = request_make(&world, 0, "a");
		if (cases[i].last_received)
			request.chain->last_received_at_us = time_of(cases[i].last_received);
		struct ledger_limit limits[] = {
			limit_of("warns", PERIOD_MONTH, false, 1),
			limit_of("month", PERIOD_MONTH, true, cases[i].by_month),
			limit_of("day", PERIOD_DAY, true, cases[i].by_day),
			limit_of("other key", PERIOD_MONTH, true, 1),
		};
		limits[3].key = 11;
		world.account.limits = limits;
		world.account.limit_count = 4;
		run_at(&world, &request, 1, time_of(cases[i].now));
		assert_int_equal(request.result, ERR_LIMIT_BLOCKED);
		assert_int_equal(request.blocked_until_us, time_of(cases[i].until));
		world_end(&world);
	}
}

TEST_CASE(test_quotas)
{
	struct world world;
	world_begin(&world, 0, 0);
	world.account.test_events_today = TEST_EVENTS_PER_DAY - 1;
	struct ledger_request requests[] = {request_make(&world, 2, "a"), request_make(&world, 2, "b")};
	run(&world, requests, 2);
	assert_int_equal(requests[0].result, OK);
	assert_int_equal(requests[0].status, STATUS_TEST);
	assert_int_equal(requests[1].result, ERR_TEST_QUOTA);
	assert_int_equal(world.result.test_events_added, 1);

	world.account.test_events_today = 0;
	world.account.test_bytes_today = TEST_CONTENT_BYTES_PER_DAY - 5;
	struct ledger_request sized[] = {request_make(&world, 2, "c"), request_make(&world, 2, "d")};
	sized[0].content_bytes = 6;
	sized[1].content_bytes = 5;
	run(&world, sized, 2);
	assert_int_equal(sized[0].result, ERR_TEST_QUOTA);
	assert_int_equal(sized[1].result, OK);
	assert_int_equal(world.result.test_bytes_added, 5);
	assert_int_equal(world.account.balance, 0);
	world_end(&world);
}

TEST_CASE(test_stored_bytes)
{
	struct world world;
	world_begin(&world, 100, 5);
	world.account.stored_max = 1000;
	world.account.stored_bytes = 900;
	struct ledger_request requests[] = {request_make(&world, 0, "a"), request_make(&world, 0, "b"),
	                                    request_make(&world, 1, "c"), request_make(&world, 2, "d"),
	                                    request_make(&world, 0, "a"), request_make(&world, 0, "e")};
	static const int64_t sizes[] = {60, 41, 0, 40, 60, 1};
	static const int results[] = {OK, ERR_FULL, OK, OK, OK, ERR_FULL};
	for (int i = 0; i < 6; i++)
		requests[i].content_bytes = sizes[i];
	run(&world, requests, 6);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(requests[i].result, results[i]);
		assert_int_equal(requests[i].beyond_stored, results[i] == ERR_FULL);
	}
	assert_true(requests[4].replayed);
	assert_int_equal(world.account.stored_bytes, 1000);
	assert_int_equal(world.account.balance, 98); /* a refused request costs nothing */
	assert_int_equal(world.chains[0].last_sequence, 1);
	/* A limit below the present amount refuses only content; without a limit nothing is refused. */
	world.account.stored_max = 10;
	struct ledger_request more[] = {request_make(&world, 0, "f"), request_make(&world, 0, "g")};
	more[0].content_bytes = 1;
	run(&world, more, 2);
	assert_int_equal(more[0].result, ERR_FULL);
	assert_int_equal(more[1].result, OK);
	world.account.stored_max = 0;
	struct ledger_request any = request_make(&world, 0, "h");
	any.content_bytes = INT64_C(1) << 40;
	run(&world, &any, 1);
	assert_int_equal(any.result, OK);
	assert_int_equal(world.account.stored_bytes, 1000 + (INT64_C(1) << 40));
	world_end(&world);
}

TEST_CASE(balance_low_once_per_crossing)
{
	struct world world;
	world_begin(&world, 4, 5);
	world.thresholds[0] =
		(struct ledger_threshold){.threshold_id = "thr_a", .credits = 2, .armed = true};
	world.account.thresholds = world.thresholds;
	world.account.threshold_count = 1;
	struct ledger_request requests[] = {request_make(&world, 0, "a"), request_make(&world, 0, "b"),
	                                    request_make(&world, 0, "c")};
	run(&world, requests, 3);
	assert_int_equal(count_notices(&world, NOTICE_BALANCE_LOW), 1);
	assert_string_equal(world.result.notices->data.data,
	                    "{\"threshold_id\":\"thr_a\",\"threshold\":2,\"balance\":2}");
	struct ledger_request more = request_make(&world, 0, "d");
	run(&world, &more, 1);
	assert_int_equal(count_notices(&world, NOTICE_BALANCE_LOW), 0);
	world_end(&world);
}

TEST_CASE(a_full_chain_takes_no_more)
{
	for (int chain = 0; chain < 3; chain += 2) {
		struct world world;
		world_begin(&world, 10, 5);
		world.chains[chain].last_sequence = EVENT_SEQUENCE_MAX - 1;
		struct ledger_request requests[] = {
			request_make(&world, chain, "a"), request_make(&world, chain, "b"),
			request_make(&world, chain, "a"), request_make(&world, 1, "b")};
		run(&world, requests, 4);
		assert_int_equal(requests[0].result, OK);
		assert_int_equal(requests[0].sequence, EVENT_SEQUENCE_MAX);
		assert_int_equal(
			event_id_sequence(slice_of(requests[0].event_id), "chn_one", world.chains[chain].mode),
			EVENT_SEQUENCE_MAX);
		assert_int_equal(requests[1].result, ERR_FULL);
		assert_true(requests[2].replayed);
		assert_int_equal(requests[2].original, EVENT_SEQUENCE_MAX);
		assert_int_equal(requests[3].result, OK);
		assert_int_equal(world.chains[chain].last_sequence, EVENT_SEQUENCE_MAX);
		assert_memory_equal(&world.chains[chain].last_chain_hash, &requests[0].chain_hash, 32);
		assert_int_equal(world.account.balance, chain == 2 ? 9 : 8);
		assert_int_equal(world.result.test_events_added, chain == 2);
		world_end(&world);
	}
}

TEST_CASE(a_chain_beyond_the_last_takes_nothing)
{
	for (int beyond = 0; beyond < 2; beyond++) {
		struct world world;
		world_begin(&world, 10, 5);
		world.chains[0].chain = CHAIN_MAX + beyond;
		struct ledger_request request = request_make(&world, 0, "a");
		run(&world, &request, 1);
		assert_int_equal(request.result, beyond ? ERR_FULL : OK);
		assert_int_equal(world.account.balance, beyond ? 10 : 9);
		assert_int_equal(world.chains[0].last_sequence, !beyond);
		world_end(&world);
	}
}

/* ---- random histories ---- */

struct model {
	int64_t balance, unpaid, unpaid_limit, sequences[3], entries_sum, exhausted, limit_reached;
	int64_t limit_used[2], limit_notices[2];
	int64_t received[3];    /* of each chain's last event; 0: none */
	char registered[3][64]; /* by number of client_ref: its content, 0: none */
};
#define NEAR_END 20 /* remaining capacity of some chains, in events */

static uint64_t random_state;
static uint32_t random_below(uint32_t bound)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(random_state >> 33) % bound;
}

/* The expected result of one request, by the rules of the interface. */
static int model_step(struct model *model, struct world *world, int chain, int ref, char content,
                      int64_t now_us, int64_t ahead_us)
{
	char *known = &model->registered[chain][ref];
	if (*known)
		return *known == content ? 1 : ERR_CONFLICT;
	if (chain != 2) {
		if (ahead_us > CLOCK_BOUND || model->received[chain] - CLOCK_BOUND > now_us)
			return ERR_CLOCK;
		for (int i = 0; i < 2; i++)
			if (world->limits[i].block &&
			    world->limits[i].channel == world->chains[chain].channel &&
			    model->limit_used[i] >= world->limits[i].max_events)
				return ERR_LIMIT_BLOCKED;
		if (model->balance <= 0 && model->unpaid >= model->unpaid_limit)
			return ERR_UNPAID_LIMIT;
	}
	if (model->sequences[chain] == EVENT_SEQUENCE_MAX)
		return ERR_FULL;
	if (chain != 2) {
		for (int i = 0; i < 2; i++)
			if (world->limits[i].channel == world->chains[chain].channel &&
			    ++model->limit_used[i] == world->limits[i].max_events)
				model->limit_notices[i]++;
		if (model->balance > 0) {
			model->balance--;
			model->entries_sum--;
		} else {
			model->exhausted += ++model->unpaid == 1;
			model->limit_reached += model->unpaid == model->unpaid_limit;
		}
	}
	*known = content;
	model->sequences[chain]++;
	if (model->received[chain] < now_us)
		model->received[chain] = now_us;
	return OK;
}

static void random_batch(struct world *world, struct model *model, int64_t now_us, int64_t ahead_us)
{
	static char refs[64][16];
	struct ledger_request requests[64];
	int expected[64];
	size_t count = 1 + random_below(64);
	for (size_t i = 0; i < count; i++) {
		int chain = (int)random_below(3);
		int ref = (int)random_below(64);
		char content = (char)(1 + random_below(2));
		snprintf(refs[i], sizeof refs[i], "ref%d", ref);
		struct declaration *declaration = declare(world, refs[i]);
		memset(declaration->hash, content, SHA256_SIZE);
		requests[i] = request_of(world, chain, declaration);
		char known = model->registered[chain][ref];
		/* The store knows what an earlier batch registered. */
		if (known) {
			requests[i].known.sequence = 1;
			memset(requests[i].known.hash, known, SHA256_SIZE);
			requests[i].known.occurred_at_us = TIME_NONE;
		}
	}
	for (size_t i = 0; i < count; i++) {
		int chain = (int)(requests[i].chain - world->chains);
		expected[i] = model_step(model, world, chain, atoi(refs[i] + 3),
		                         (char)requests[i].declaration->hash[0], now_us, ahead_us);
	}
	int64_t before[3];
	for (int i = 0; i < 3; i++)
		before[i] = world->chains[i].last_sequence;
	run_by(world, requests, count, now_us, ahead_us);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(requests[i].result, expected[i] == 1 ? OK : expected[i]);
		assert_int_equal(requests[i].replayed, expected[i] == 1);
		if (!expected[i])
			assert_int_equal(requests[i].sequence, ++before[requests[i].chain - world->chains]);
		if (!expected[i] && requests[i].chain->mode == MODE_LIVE)
			assert_true(requests[i].received_at_us - now_us <= CLOCK_BOUND);
	}
}

static void check_against_model(const struct world *world, const struct model *model,
                                const int64_t notices[2])
{
	assert_int_equal(world->account.balance, model->balance);
	assert_int_equal(world->account.unpaid_events, model->unpaid);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(world->chains[i].last_sequence, model->sequences[i]);
		assert_int_equal(world->chains[i].last_received_at_us, model->received[i]);
	}
	assert_int_equal(notices[0], model->exhausted);
	assert_int_equal(notices[1], model->limit_reached);
}

static void random_history(void)
{
	struct world world;
	struct model model = {.balance = random_below(120), .unpaid_limit = random_below(40)};
	world_begin(&world, model.balance, model.unpaid_limit);
	for (int i = 0; i < 3; i++)
		if (random_below(4) == 0)
			world.chains[i].last_sequence = model.sequences[i] =
				EVENT_SEQUENCE_MAX - random_below(NEAR_END);
	for (int i = 0; i < 2; i++)
		world.limits[i] = (struct ledger_limit){.limit_id = "lim_x",
		                                        .channel = 1 + i,
		                                        .channel_id = "chn_x",
		                                        .block = i == 0,
		                                        .max_events = 1 + random_below(60)};
	world.account.limits = world.limits;
	world.account.limit_count = 2;
	int64_t entries = model.balance;
	int64_t notices[2] = {0};
	int64_t limit_notices = 0;
	for (int batch = 0; batch < 12; batch++) {
		/* A clock that is set forward and back, by less and by more than the limit. */
		int64_t now_us = NOON + batch + random_below(8) * (int64_t)(CLOCK_BOUND / 4);
		int64_t ahead_us = random_below(6) * (int64_t)(CLOCK_BOUND / 4);
		random_batch(&world, &model, now_us, ahead_us);
		for (struct ledger_entry *entry = world.result.entries; entry; entry = entry->next) {
			entries += entry->credits;
			assert_int_equal(entry->balance, entries);
			assert_int_equal(-entry->credits, entry->last_sequence - entry->first_sequence + 1);
		}
		notices[0] += (int64_t)count_notices(&world, NOTICE_BALANCE_EXHAUSTED);
		notices[1] += (int64_t)count_notices(&world, NOTICE_UNPAID_LIMIT_REACHED);
		limit_notices += (int64_t)count_notices(&world, NOTICE_CONSUMPTION_LIMIT_REACHED);
		check_against_model(&world, &model, notices);
		if (random_below(3) == 0) {
			int64_t credits = 1 + random_below(30);
			int64_t settled;
			assert_int_equal(ledger_move_credits(&world.account, credits, "purchase", NULL,
			                                     &world.arena, &world.result, &settled, NULL),
			                 OK);
			int64_t expected = credits < model.unpaid ? credits : model.unpaid;
			assert_int_equal(settled, expected);
			model.balance += credits - expected;
			model.unpaid -= expected;
			for (struct ledger_entry *entry = world.result.entries; entry; entry = entry->next)
				entries += entry->credits;
		}
		assert_int_equal(entries, world.account.balance);
	}
	assert_int_equal(limit_notices, model.limit_notices[0] + model.limit_notices[1]);
	world_end(&world);
}

/* Nodes on one chain, each with a clock error that is known when the clock is ahead. */
static void random_nodes(void)
{
	struct world world;
	world_begin(&world, 1000, 1000);
	int64_t true_us = NOON;
	int64_t last_us = 0;
	for (int i = 0; i < 60; i++) {
		static char references[60][16];
		snprintf(references[i], sizeof references[i], "ref%d", i);
		struct ledger_request request = request_make(&world, 0, references[i]);
		int64_t error_us = ((int64_t)random_below(17) - 8) * (int64_t)(CLOCK_BOUND / 4);
		true_us += random_below(CLOCK_BOUND / 4);
		run_by(&world, &request, 1, true_us + error_us, error_us > 0 ? error_us : 0);
		if (error_us > CLOCK_BOUND)
			assert_int_equal(request.result, ERR_CLOCK);
		if (error_us >= 0 && error_us <= CLOCK_BOUND)
			assert_int_equal(request.result, OK);
		if (request.result)
			continue;
		assert_true(request.received_at_us >= last_us);
		assert_true(request.received_at_us - true_us <= CLOCK_BOUND);
		last_us = request.received_at_us;
	}
	world_end(&world);
}

TEST_CASE(random_histories)
{
	random_state = test_seed();
	for (int i = 0; i < 500; i++)
		random_history();
	for (int i = 0; i < 500; i++)
		random_nodes();
}

TEST_MAIN(NULL, NULL)
