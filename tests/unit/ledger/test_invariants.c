/* Each broken invariant of the ledger ends the process before anything is written. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"
#include "ledger/invariants.h"

#define START INT64_C(1767222000000000)

/* A batch of one request, and the values before it. */
struct batch {
	struct ledger_account account;
	struct ledger_chain chain;
	struct ledger_request request;
	struct ledger_request *requests[1];
	struct ledger_entry entry;
	struct ledger_clock clock;
	struct ledger_values before;
};

static void make_batch(struct batch *batch)
{
	memset(batch, 0, sizeof *batch);
	batch->clock = (struct ledger_clock){.now_us = START, .bound_us = 1000000};
	batch->chain = (struct ledger_chain){.chain = 2,
	                                     .mode = MODE_LIVE,
	                                     .last_sequence = 7,
	                                     .last_received_at_us = START - 5,
	                                     .last_chain_hash = sha256_of("7", 1)};
	batch->account = (struct ledger_account){
		.balance = 3, .unpaid_limit = 2, .stored_bytes = 40, .stored_max = 100};
	batch->before = ledger_values_of(&batch->account, &batch->chain);
	batch->request = (struct ledger_request){.chain = &batch->chain};
	batch->requests[0] = &batch->request;
}

/* The state after ledger_register for a paid event of 60 bytes. */
static void register_paid(struct batch *batch)
{
	batch->request.content_bytes = 60;
	batch->request.sequence = batch->chain.last_sequence = 8;
	batch->request.received_at_us = batch->chain.last_received_at_us = START;
	batch->request.chain_hash = batch->chain.last_chain_hash = sha256_of("8", 1);
	batch->request.status = STATUS_REGISTERED;
	batch->entry = (struct ledger_entry){.credits = -1};
	batch->account.balance = 2;
	batch->account.stored_bytes = 100;
}

static void register_unpaid(struct batch *batch)
{
	register_paid(batch);
	batch->account.balance = batch->before.balance = 0;
	batch->account.unpaid_events = 2;
	batch->before.unpaid_events = 1;
	batch->request.status = STATUS_UNPAID;
	batch->entry.credits = 0;
}

static void check_appended(const struct batch *batch)
{
	assert_appended(&batch->before, &batch->account, &batch->request, &batch->clock);
	assert_batch(&batch->before, &batch->account, batch->requests, 1, &batch->entry);
}

static void check_unchanged(const struct batch *batch)
{
	assert_unchanged(&batch->before, &batch->account, &batch->request);
}

static void check_moved(const struct batch *batch)
{
	assert_moved(&batch->before, &batch->account, &batch->entry, 1);
}

static bool aborts(void (*check)(const struct batch *batch), const struct batch *batch)
{
	int status = 0;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_DUMPABLE, 0);
		signal(SIGABRT, SIG_DFL);
		if (!freopen("/dev/null", "w", stderr))
			_exit(2);
		check(batch);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

#define BREAKS(begin, check, change)                                                               \
	do {                                                                                           \
		struct batch batch;                                                                        \
		make_batch(&batch);                                                                        \
		begin(&batch);                                                                             \
		assert_false(aborts(check, &batch));                                                       \
		change;                                                                                    \
		if (!aborts(check, &batch))                                                                \
			fail_msg("%s is not noticed", #change);                                                \
	} while (0)

TEST_CASE(an_event_that_does_not_continue_its_chain_aborts)
{
	BREAKS(register_paid, check_appended, batch.request.sequence++);
	BREAKS(register_paid, check_appended, batch.chain.last_sequence--);
	BREAKS(register_paid, check_appended, batch.chain.last_received_at_us++);
	BREAKS(register_paid, check_appended,
	       batch.request.received_at_us = batch.chain.last_received_at_us = START - 6);
	BREAKS(register_paid, check_appended, batch.chain.last_chain_hash = sha256_of("9", 1));
	BREAKS(register_paid, check_appended,
	       batch.request.chain_hash = batch.chain.last_chain_hash = batch.before.last_chain_hash);
	BREAKS(register_paid, check_appended, batch.chain.chain = CHAIN_MAX + 1);
}

TEST_CASE(an_account_that_changes_by_anything_else_aborts)
{
	BREAKS(register_paid, check_appended, batch.account.balance++);
	BREAKS(register_paid, check_appended, batch.entry.credits--);
	BREAKS(register_paid, check_appended, batch.account.unpaid_events++);
	BREAKS(register_paid, check_appended, batch.account.test_events_today++);
	BREAKS(register_paid, check_appended, batch.request.status = STATUS_TEST);
	BREAKS(register_paid, check_appended, batch.account.stored_bytes++);
	BREAKS(register_paid, check_appended, batch.account.stored_max = 99);
	BREAKS(register_unpaid, check_appended, batch.account.unpaid_events--);
	BREAKS(register_unpaid, check_appended, batch.account.unpaid_limit = 1);
}

TEST_CASE(a_live_event_by_a_wrong_clock_aborts)
{
	BREAKS(register_paid, check_appended, batch.clock.ahead_us = batch.clock.bound_us + 1);
	BREAKS(register_paid, check_appended, batch.clock.refused_for_us = 1);
	BREAKS(register_paid, check_appended, batch.clock.now_us = START - 2000000);
}

static void refuse(struct batch *batch)
{
	batch->request.result = ERR_UNPAID_LIMIT;
}

static void replay(struct batch *batch)
{
	batch->request.replayed = true;
	batch->request.original = 5;
}

TEST_CASE(a_refusal_that_changes_anything_aborts)
{
	BREAKS(refuse, check_unchanged, batch.account.balance--);
	BREAKS(refuse, check_unchanged, batch.account.unpaid_events++);
	BREAKS(refuse, check_unchanged, batch.account.test_bytes_today++);
	BREAKS(refuse, check_unchanged, batch.account.stored_bytes++);
	BREAKS(replay, check_unchanged, batch.chain.last_sequence++);
	BREAKS(replay, check_unchanged, batch.chain.last_received_at_us++);
	BREAKS(replay, check_unchanged, batch.chain.last_chain_hash.bytes[31] ^= 1);
	BREAKS(replay, check_unchanged, batch.request.original = 0);
}

static void settle(struct batch *batch)
{
	batch->before.unpaid_events = 2;
	batch->account.unpaid_events = 1;
	batch->account.balance = 0;
	batch->before.balance = -4;
	batch->entry.credits = 4;
}

TEST_CASE(credits_that_do_not_add_up_abort)
{
	BREAKS(settle, check_moved, batch.entry.credits++);
	BREAKS(settle, check_moved, batch.account.unpaid_events = 2);
	BREAKS(settle, check_moved, batch.before.unpaid_events = batch.account.unpaid_events = 0);
	BREAKS(settle, check_moved, batch.account.balance = batch.before.balance = -1);
}

TEST_MAIN(NULL, NULL)
