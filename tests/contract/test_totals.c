/* The daily totals of credits over random histories, compared with a recount of what callers
 * received, and filled by the schema's step. On a SQLite file, or on a server: contract-totals
 * [postgresql://… postgresql://…] The seed is printed; CONSTANCIA_TEST_SEED repeats a run. */
#include "testing.h"
#include "base/clock.h"
#include "registering.h"
#include "sample.h"
#include "store/certifications/certifications.h"
#include "store/schema/store_schemas.h"
#include "store/store_internal.h"
#include "store/usage/count.h"
#include "store/usage/totals.h"

#define START INT64_C(1767222000000000) /* 2025-12-31T23:00:00Z */
#define FIRST_DAY (START / US_PER_DAY)
#define STEPS 80
#define DAYS 60
#define ACCOUNTS 2

static const char *server_url; /* postgresql://…, NULL: a file of SQLite */

enum { SETTLED, BOUGHT, RETURNED, FEES, REFUNDS, ADJUSTED, KINDS };
struct own_day {
	int64_t paid, unpaid, kinds[KINDS];
};
struct own_account {
	struct sample sample; /* its names and numbers */
	struct own_day days[DAYS];
	int64_t tests; /* events of its test chain */
	int64_t balance;
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
	/* A refund settles what was unpaid, as other credits do: here nothing is. */
}

static void live(struct history *history)
{
	for (int step = 0; step < STEPS; step++) {
		struct own_account *account = &history->accounts[below(ACCOUNTS)];
		int kind = below(7);
		history->sample.now_us += below(2) ? US_PER_SECOND : below(12) * US_PER_DAY / 12;
		if (kind < 4)
			step_register(history, account);
		else if (kind < 6)
			step_credits(history, account);
		else
			step_certify(history, account);
	}
}

/* ---- balances ---- */

static void compare_balances(struct history *history, struct own_account *account)
{
	struct days days = {slice_of(account->sample.account_id), INT64_MIN, INT64_MAX};
	struct balance_list list = {.more = true};
	int64_t balance = 20, unpaid = 0, next = FIRST_DAY;
	while (list.more) {
		ARENA_AUTO struct arena arena = {.limit = (size_t)1 << 20};
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

static void compare(struct history *history)
{
	for (int i = 0; i < ACCOUNTS; i++)
		compare_balances(history, &history->accounts[i]);
}

static void refusals(struct history *history)
{
	struct days days = {slice_of("acc_none"), 0, INT64_MAX};
	struct balance_list balances;
	struct store *store = history->sample.store;
	assert_int_equal(store_list_balances(store, &days, START, 9, &history->arena, &balances, NULL),
	                 ERR_NOT_FOUND);
}

/* Recreates the state of a store of an older version at the start of the step. */
static void fill_again(struct history *history)
{
	sample_change(&history->sample,
	              "DELETE FROM daily_credits; DELETE FROM daily_usage;"
	              " DELETE FROM daily_certifications; UPDATE accounts SET stored_bytes = 0;");
	struct db_connection *writer = db_take_writer(history->sample.store->db);
	assert_int_equal(db_begin(writer, NULL), OK);
	struct error error = {0};
	int result = store_fill(writer, "999-version-0.2", NULL, &error);
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
	sample_create_store(&history.sample, server_url);
	history.sample.now_us = START;
	history.sample.unpaid_limit = 10;
	for (int i = 0; i < ACCOUNTS; i++) {
		struct own_account *account = &history.accounts[i];
		sample_fill(&history.sample, history.sample.store, MODALITY_HASH_ONLY, 20);
		account->sample = history.sample;
		account->balance = 20;
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
static void live_all(struct history *history)
{
	for (int i = 0; i < ACCOUNTS; i++) {
		struct own_account *account = &history->accounts[i];
		step_register(history, account);
		step_certify(history, account);
		step_credits(history, account);
	}
	live(history);
}

static void recount_totals(struct history *history)
{
	live_all(history);
	assert_int_equal(sample_check(&history->sample),
	                 0); /* whatever is counted of the last rounds */
	compare(history);
	refusals(history);
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

TEST_CASE_ON(old_stores_are_counted_from_what_is_there, struct history *history)
{
	live_all(history);
	compare(history);
	fill_again(history);
	compare(history);
	assert_int_equal(sample_check(&history->sample), 0);
	live(history); /* counting continues after the step */
	compare(history);
	assert_int_equal(sample_check(&history->sample), 0);
}

TEST_CASE_ON(a_check_finds_what_is_counted_wrong, struct history *history)
{
	live_all(history);
	assert_int_equal(sample_check(&history->sample), 0);
	static const char *const changes[][2] = {
		{"UPDATE daily_credits SET credits = credits + 1",
	     "UPDATE daily_credits SET credits = credits - 1"},
		{"UPDATE daily_credits SET movements = movements + 1",
	     "UPDATE daily_credits SET movements = movements - 1"},
		{"UPDATE daily_credits SET day = day + 1000", "UPDATE daily_credits SET day = day - 1000"},
		{"INSERT INTO daily_credits SELECT account, 1, 'fee', 1, 1 FROM accounts",
	     "DELETE FROM daily_credits WHERE day = 1"},
	};
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		sample_change(&history->sample, changes[i][0]);
		assert_true(sample_check(&history->sample) > 0);
		sample_change(&history->sample, changes[i][1]);
		assert_int_equal(sample_check(&history->sample), 0);
	}
}

int main(int argc, char **argv)
{
	server_url = argc > 2 ? argv[1] : NULL;
	srand((unsigned)test_seed());
	return tests_run(NULL, NULL, begin, end);
}
