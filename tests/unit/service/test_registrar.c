/* How sequencers form batches of waiting registrations. The call to the store is replaced. */
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"
#include "base/clock.h"
#include "base/log.h"
#include "ledger/receipt_statement.h"
#include "scratch.h"
#include "seal/receipt_signer.h"
#include "service/registrar.h"

#define ITEMS_MAX 9000
#define QUEUE_MAX 16384
#define BATCH_MAX 1024
#define GATHERED 128

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool closed;  /* a batch that was begun does not end */
	size_t begun; /* batches */
	size_t sizes[ITEMS_MAX];
	int64_t items[ITEMS_MAX]; /* numbers of the items, in the order in which they were written */
	size_t item_count, done;
	int64_t broken;   /* account whose registrations cannot be written; 0: none */
	int failure;      /* with this error */
	size_t refused;   /* completed with an error */
	int64_t ahead_us; /* of the local clock, relative to that of the store */
	int64_t behind;   /* chain whose last event is ahead of the local clock; 0: none */
	size_t alarms;
	enum { SOUND, UNDECIDED, WITHOUT_EVENT } fault; /* of the last item of a batch */
	int pipe;                                       /* in a child: a byte for each done */
} seen = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

int __wrap_store_register_batch(struct store *store, unsigned sequencer,
                                struct registration_batch *batch, struct error *error);
unsigned __wrap_store_sequencer_count(struct store *store);
int __wrap_store_maintain(struct store *store, struct error *error);
bool __wrap_store_is_shared(const struct store *store);
int64_t __wrap_store_latest_now_us(const struct store *store);
void __wrap_log_write(enum log_level level, const char *event, ...);

int __wrap_store_register_batch(struct store *store, unsigned sequencer,
                                struct registration_batch *batch, struct error *error)
{
	pthread_mutex_lock(&seen.mutex);
	seen.sizes[seen.begun++] = batch->count;
	for (size_t i = 0; i < batch->count; i++)
		seen.items[seen.item_count++] = batch->items[i]->declaration.occurred_at_us;
	pthread_cond_broadcast(&seen.changed);
	while (seen.closed)
		pthread_cond_wait(&seen.changed, &seen.mutex);
	static struct event registered;
	int result = OK;
	for (size_t i = 0; i < batch->count && !result; i++)
		if (seen.broken && batch->items[i]->account == seen.broken)
			result = seen.failure;
	for (size_t i = 0; i < batch->count && !result; i++) {
		struct registration *item = batch->items[i];
		bool clock_refused = ledger_clock_is_refused(&batch->clock);
		bool refused = clock_refused || item->chain == seen.behind;
		bool last = i > 0 && i + 1 == batch->count;
		if (last && seen.fault == UNDECIDED)
			break;
		item->result = refused && item->chain % 2 == MODE_LIVE ? ERR_CLOCK : OK;
		item->chain_is_ahead = item->result && !clock_refused;
		if (!item->result && !(last && seen.fault == WITHOUT_EVENT))
			item->event = &registered;
	}
	pthread_mutex_unlock(&seen.mutex);
	if (result) /* the commit failed, after the decisions */
		for (size_t i = 0; i < batch->count; i++)
			batch->items[i]->event = &registered;
	batch->decided(batch);
	return result;
}

unsigned __wrap_store_sequencer_count(struct store *store)
{
	return 1;
}

int __wrap_store_maintain(struct store *store, struct error *error)
{
	return OK;
}

bool __wrap_store_is_shared(const struct store *store)
{
	return true;
}

int64_t __wrap_store_latest_now_us(const struct store *store)
{
	return clock_now_us() - seen.ahead_us;
}

void __wrap_log_write(enum log_level level, const char *event, ...)
{
	pthread_mutex_lock(&seen.mutex);
	seen.alarms += level == LOG_ERROR;
	pthread_mutex_unlock(&seen.mutex);
}

static void note_done(struct pending_registration *pending)
{
	if (seen.pipe)
		(void)!write(seen.pipe, "", 1);
	pthread_mutex_lock(&seen.mutex);
	seen.done++;
	if (pending->registration.result)
		seen.refused++;
	pthread_cond_broadcast(&seen.changed);
	pthread_mutex_unlock(&seen.mutex);
}

static void wait_until(const size_t *counter, size_t value)
{
	pthread_mutex_lock(&seen.mutex);
	while (*counter < value)
		pthread_cond_wait(&seen.changed, &seen.mutex);
	pthread_mutex_unlock(&seen.mutex);
}

static void close_gate(bool closed)
{
	pthread_mutex_lock(&seen.mutex);
	seen.closed = closed;
	pthread_cond_broadcast(&seen.changed);
	pthread_mutex_unlock(&seen.mutex);
}

struct fixture {
	struct settings settings;
	struct service service;
	struct pending_registration items[ITEMS_MAX];
	size_t count;
	struct arena arena; /* of all errors; used by the sequencer's thread */
};

static struct fixture *start(bool sharded)
{
	seen.begun = seen.item_count = seen.done = seen.refused = 0;
	seen.broken = seen.ahead_us = seen.behind = 0;
	struct fixture *fixture = calloc(1, sizeof *fixture);
	arena_init(&fixture->arena, (size_t)64 << 20);
	fixture->settings.store_sharded = sharded;
	fixture->settings.seal_clock_bound = US_PER_SECOND;
	fixture->service.settings = &fixture->settings;
	assert_int_equal(registrar_start(&fixture->service, &fixture->service.registrar, NULL), OK);
	return fixture;
}

static void end(struct fixture *fixture)
{
	registrar_stop(fixture->service.registrar);
	assert_int_equal(seen.done, fixture->count);
	arena_free(&fixture->arena);
	free(fixture);
}

/* If none failed, each was passed to the store once. */
static void stop(struct fixture *fixture)
{
	assert_int_equal(seen.item_count, fixture->count);
	end(fixture);
}

static struct pending_registration *prepare(struct fixture *fixture, int64_t account, int64_t chain)
{
	struct pending_registration *pending = &fixture->items[fixture->count];
	pending->registration.account = account;
	pending->registration.chain = chain;
	pending->registration.arena = &fixture->arena;
	pending->registration.declaration.occurred_at_us = (int64_t)fixture->count++;
	pending->done = note_done;
	return pending;
}

static void submit_to(struct fixture *fixture, int64_t account, int64_t chain)
{
	struct pending_registration *pending = prepare(fixture, account, chain);
	assert_int_equal(register_submit(&fixture->service, pending, NULL), OK);
}

/* Returns the number of queued ones of `count`; the others do not belong to the fixture. */
static size_t submit_all(struct fixture *fixture, int64_t account, size_t count, int expected)
{
	static struct pending_registration *pending[ITEMS_MAX];
	size_t queued;
	for (size_t i = 0; i < count; i++)
		pending[i] = prepare(fixture, account, MODE_TEST);
	assert_int_equal(register_submit_all(&fixture->service, pending, count, &queued, NULL),
	                 expected);
	assert_true(expected ? queued < count : queued == count);
	fixture->count -= count - queued;
	return queued;
}

static void submit(struct fixture *fixture, int64_t account)
{
	submit_to(fixture, account, MODE_TEST);
}

static int64_t account_at(const struct fixture *fixture, size_t place)
{
	return fixture->items[seen.items[place]].registration.account;
}

/* Every batch has one account, and every item is in one batch, in the order of its account. */
static void assert_one_account_each(const struct fixture *fixture)
{
	int64_t last[64];
	for (size_t i = 0; i < 64; i++)
		last[i] = -1;
	size_t place = 0;
	for (size_t batch = 0; batch < seen.begun; batch++) {
		assert_in_range(seen.sizes[batch], 1, BATCH_MAX);
		int64_t account = account_at(fixture, place);
		for (size_t i = 0; i < seen.sizes[batch]; i++, place++) {
			assert_int_equal(account_at(fixture, place), account);
			assert_true(seen.items[place] > last[account]);
			last[account] = seen.items[place];
		}
	}
	assert_int_equal(place, fixture->count);
}

/* One batch is in progress while the others arrive. */
static void submit_behind_one(struct fixture *fixture, size_t count, int64_t accounts)
{
	close_gate(true);
	size_t begun = seen.begun;
	submit(fixture, 1);
	wait_until(&seen.begun, begun + 1);
	for (size_t i = 0; i < count; i++)
		submit(fixture, (int64_t)i % accounts);
	close_gate(false);
	wait_until(&seen.done, fixture->count);
}

TEST_CASE(what_waits_makes_one_batch)
{
	struct fixture *fixture = start(false);
	submit_behind_one(fixture, 60, 6);
	assert_int_equal(seen.begun, 2);
	assert_int_equal(seen.sizes[1], 60);
	for (size_t i = 0; i < 61; i++)
		assert_int_equal(seen.items[i], i);
	stop(fixture);
}

/* Registrations of one iteration of a polling thread are gathered, up to a full batch. */
TEST_CASE(what_comes_together_makes_one_batch)
{
	struct fixture *fixture = start(false);
	registrations_begin(&fixture->service);
	for (int i = 0; i < GATHERED - 1; i++)
		submit(fixture, i % 6);
	assert_int_equal(seen.begun, 0);
	registrations_end(&fixture->service);
	wait_until(&seen.done, GATHERED - 1);
	assert_int_equal(seen.begun, 1);
	registrations_begin(&fixture->service);
	for (int i = 0; i < GATHERED; i++)
		submit(fixture, i % 6);
	wait_until(&seen.done, 2 * GATHERED - 1);
	assert_int_equal(seen.begun, 2);
	submit(fixture, 1);
	registrations_end(&fixture->service);
	wait_until(&seen.done, 2 * GATHERED);
	stop(fixture);
}

/* Registrations that are submitted together do not wait for those of a polling thread. */
TEST_CASE(what_is_submitted_together_makes_one_batch)
{
	struct fixture *fixture = start(false);
	registrations_begin(&fixture->service);
	submit_all(fixture, 1, 100, OK);
	wait_until(&seen.done, 100);
	assert_int_equal(seen.begun, 1);
	registrations_end(&fixture->service);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(seen.items[i], i);
	stop(fixture);
}

/* The first ones are queued, in order, and later ones are refused. */
TEST_CASE(a_full_queue_takes_the_first_of_those_submitted_together)
{
	struct fixture *fixture = start(false);
	close_gate(true);
	submit(fixture, 1);
	wait_until(&seen.begun, 1);
	submit_all(fixture, 1, 5000, OK);
	size_t queued = submit_all(fixture, 1, 3500, ERR_UNAVAILABLE);
	assert_int_equal(5000 + queued, QUEUE_MAX / 2);
	submit(fixture, 2); /* another account has room */
	close_gate(false);
	wait_until(&seen.done, fixture->count);
	stop(fixture);
}

/* A polling thread that iterates without a pause does not delay them. */
TEST_CASE(what_a_turn_brought_does_not_wait_for_the_next)
{
	struct fixture *fixture = start(false);
	close_gate(true);
	submit(fixture, 1);
	wait_until(&seen.begun, 1);
	registrations_begin(&fixture->service);
	submit(fixture, 1);
	registrations_end(&fixture->service);
	registrations_begin(&fixture->service);
	close_gate(false);
	wait_until(&seen.done, 2);
	registrations_end(&fixture->service);
	stop(fixture);
}

TEST_CASE(who_comes_last_is_answered_at_the_end)
{
	struct fixture *fixture = start(false);
	registrations_begin(&fixture->service);
	submit(fixture, 1);
	end(fixture);
}

TEST_CASE(sharded_it_makes_one_for_each_account)
{
	struct fixture *fixture = start(true);
	submit_behind_one(fixture, 60, 6);
	assert_int_equal(seen.begun, 7);
	for (size_t i = 1; i < 7; i++)
		assert_int_equal(seen.sizes[i], 10);
	assert_int_equal(account_at(fixture, 1), 0); /* the one that has waited longest */
	assert_one_account_each(fixture);
	stop(fixture);
}

/* It takes waiting registrations together while no reader prevents the replacement of settings. */
TEST_CASE(what_settings_say_later_is_nothing_to_it)
{
	struct fixture *fixture = start(true);
	struct settings *replaced = calloc(1, sizeof *replaced);
	*replaced = fixture->settings;
	replaced->store_sharded = false;
	fixture->service.settings = replaced;
	submit_behind_one(fixture, 60, 6);
	assert_int_equal(seen.begun, 7);
	assert_one_account_each(fixture);
	stop(fixture);
	free(replaced);
}

TEST_CASE(batches_have_an_end)
{
	for (int sharded = 0; sharded < 2; sharded++) {
		struct fixture *fixture = start(sharded);
		submit_behind_one(fixture, 2 * BATCH_MAX + 1, 1);
		assert_int_equal(seen.begun, 4);
		assert_int_equal(seen.sizes[1], BATCH_MAX);
		assert_int_equal(seen.sizes[3], 1);
		stop(fixture);
	}
}

/* However much an account has waiting, the next batch has space for the others. */
TEST_CASE(a_backlog_of_one_holds_up_nobody)
{
	for (int sharded = 0; sharded < 2; sharded++) {
		struct fixture *fixture = start(sharded);
		close_gate(true);
		submit(fixture, 1);
		wait_until(&seen.begun, 1);
		for (size_t i = 0; i < 3 * BATCH_MAX; i++)
			submit(fixture, 1);
		submit(fixture, 2);
		submit(fixture, 3);
		close_gate(false);
		wait_until(&seen.done, fixture->count);
		/* When sharded, after a batch of the first account, which came before. */
		size_t second = sharded ? 1 + BATCH_MAX : 2;
		assert_int_equal(account_at(fixture, second), 2);
		assert_int_equal(account_at(fixture, second + 1), 3);
		assert_int_equal(account_at(fixture, second + 2), 1);
		stop(fixture);
	}
}

/* It is refused while others are still accepted. */
TEST_CASE(no_backlog_takes_all_room)
{
	struct fixture *fixture = start(false);
	close_gate(true);
	submit(fixture, 1);
	wait_until(&seen.begun, 1);
	for (size_t i = 0; i < QUEUE_MAX / 2; i++)
		submit(fixture, 1);
	struct pending_registration one_more = {.registration = {.account = 1, .chain = MODE_TEST}};
	assert_int_equal(register_submit(&fixture->service, &one_more, NULL), ERR_UNAVAILABLE);
	submit(fixture, 2);
	close_gate(false);
	wait_until(&seen.done, fixture->count);
	stop(fixture);
}

/* In any order of submissions and completions, each is completed exactly once. */
TEST_CASE(histories_of_any_shape_end_well)
{
	unsigned seed = (unsigned)clock_now_us();
	print_message("seed %u\n", seed);
	for (int round = 0; round < 30; round++) {
		struct fixture *fixture = start(true);
		while (fixture->count < 300) {
			close_gate(rand_r(&seed) % 2);
			for (int burst = rand_r(&seed) % 40; burst > 0; burst--)
				submit(fixture, rand_r(&seed) % (1 + round));
			if (rand_r(&seed) % 3)
				continue;
			close_gate(false);
			wait_until(&seen.done, fixture->count);
		}
		close_gate(false);
		wait_until(&seen.done, fixture->count);
		assert_one_account_each(fixture);
		stop(fixture);
	}
}

static void break_account(int64_t account, int failure)
{
	pthread_mutex_lock(&seen.mutex);
	seen.broken = account;
	seen.failure = failure;
	pthread_mutex_unlock(&seen.mutex);
}

static int64_t chains_quarantined(struct fixture *fixture)
{
	struct gauges gauges;
	registrar_read_gauges(fixture->service.registrar, &gauges);
	return gauges.registration_chains_quarantined;
}

static void assert_refused(const struct fixture *fixture, size_t from, int64_t account)
{
	for (size_t i = from; i < fixture->count; i++) {
		const struct registration *item = &fixture->items[i].registration;
		assert_int_equal(item->result, item->account == account ? ERR_UNAVAILABLE : OK);
	}
}

/* A broken chain fails alone, then gets its own batches, and is accepted again when it is
 * repaired. */
TEST_CASE(a_broken_chain_fails_alone)
{
	struct fixture *fixture = start(false);
	break_account(3, ERR_CORRUPT);
	submit_behind_one(fixture, 60, 6);
	assert_refused(fixture, 0, 3);
	assert_int_equal(seen.refused, 10);
	assert_int_equal(chains_quarantined(fixture), 1);

	size_t begun = seen.begun, refused = seen.refused, count = fixture->count;
	submit_behind_one(fixture, 60, 6);
	assert_refused(fixture, count, 3);
	assert_int_equal(seen.refused, refused + 10);
	assert_int_equal(seen.begun, begun + 3); /* the first one, the others, the broken one */

	break_account(0, OK);
	count = fixture->count;
	submit_behind_one(fixture, 60, 6);
	assert_refused(fixture, count, -1);
	assert_int_equal(chains_quarantined(fixture), 0);
	begun = seen.begun;
	submit_behind_one(fixture, 60, 6);
	assert_int_equal(seen.begun, begun + 2);
	end(fixture);
}

/* A store that cannot write is not a fault of a chain: no batch is divided and no chain
 * quarantined. */
TEST_CASE(a_store_that_fails_is_not_asked_again)
{
	static const int failures[] = {ERR_UNAVAILABLE, ERR_UNKNOWN_OUTCOME, ERR_NO_SPACE,
	                               ERR_NO_MEMORY};
	for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
		struct fixture *fixture = start(false);
		break_account(3, failures[i]);
		submit_behind_one(fixture, 60, 6);
		assert_int_equal(seen.begun, 2);
		assert_int_equal(seen.refused, 60);
		assert_int_equal(fixture->items[1].registration.result, failures[i]);
		assert_int_equal(chains_quarantined(fixture), 0);
		/* The last batch failed, too, which determines readiness. */
		assert_int_equal(atomic_load(&fixture->service.lacks_space), failures[i] == ERR_NO_SPACE);
		end(fixture);
	}
}

static size_t refusals_of(struct fixture *fixture, size_t count, bool *ret_of_chains)
{
	size_t refused = seen.refused;
	for (size_t i = 0; i < count; i++)
		submit_to(fixture, 1, i % 2 ? 6 : 4);
	wait_until(&seen.done, fixture->count);
	struct gauges gauges;
	registrar_read_gauges(fixture->service.registrar, &gauges);
	*ret_of_chains = gauges.clock_refuses;
	return seen.refused - refused;
}

/* The batch was decided while the clock was compared; the comparison ends before its answers. */
TEST_CASE(a_refusal_is_logged_by_the_clock_of_its_batch)
{
	struct fixture *fixture = start(false);
	struct gauges gauges;
	seen.alarms = 0;
	atomic_store(&fixture->service.comparison.state, CLOCK_COMPARING);
	close_gate(true);
	submit_to(fixture, 1, 4);
	wait_until(&seen.begun, 1);
	atomic_store(&fixture->service.comparison.state, CLOCK_COMPARED);
	close_gate(false);
	wait_until(&seen.done, 1);
	assert_int_equal(fixture->items[0].registration.result, ERR_CLOCK);
	registrar_read_gauges(fixture->service.registrar, &gauges);
	assert_false(gauges.clock_refuses);
	assert_int_equal(seen.alarms, 0);
	end(fixture);
}

TEST_CASE(a_batch_that_is_being_written_has_an_age)
{
	struct fixture *fixture = start(false);
	struct gauges gauges;
	registrar_read_gauges(fixture->service.registrar, &gauges);
	assert_int_equal(gauges.writing_us, 0);
	close_gate(true);
	int64_t begun_us = clock_monotonic_us();
	submit(fixture, 1);
	wait_until(&seen.begun, 1);
	usleep(1000);
	registrar_read_gauges(fixture->service.registrar, &gauges);
	assert_in_range(gauges.writing_us, 1000, clock_monotonic_us() - begun_us);
	close_gate(false);
	wait_until(&seen.done, 1);
	registrar_read_gauges(fixture->service.registrar, &gauges);
	assert_int_equal(gauges.writing_us, 0);
	end(fixture);
}

/* One alarm when it begins, however many are refused. */
TEST_CASE(of_the_clock_the_log_hears_once)
{
	struct fixture *fixture = start(false);
	bool of_chains;
	seen.alarms = 0;
	for (int times = 1; times <= 2; times++) {
		seen.ahead_us = 1000 * US_PER_SECOND;
		for (int i = 0; i < 3; i++)
			assert_int_equal(refusals_of(fixture, 20, &of_chains), 20);
		assert_false(of_chains);
		assert_int_equal(seen.alarms, times);
		assert_int_equal(service_clock_ready(&fixture->service, NULL), ERR_CLOCK);
		seen.ahead_us = US_PER_SECOND - 1;
		assert_int_equal(service_clock_ready(&fixture->service, NULL), OK);
		assert_false(service_watch_clock(&fixture->service));
		assert_int_equal(refusals_of(fixture, 20, &of_chains), 0);
	}
	seen.behind = 6;
	for (int i = 0; i < 3; i++)
		assert_int_equal(refusals_of(fixture, 20, &of_chains), 10);
	assert_true(of_chains);
	assert_int_equal(seen.alarms, 3);
	end(fixture);
}

/* Any number of chains, any of them broken: the others are written in order. */
TEST_CASE(whichever_is_broken_the_others_are_written)
{
	unsigned seed = (unsigned)clock_now_us();
	print_message("seed %u\n", seed);
	for (int round = 0; round < 40; round++) {
		struct fixture *fixture = start(round % 2);
		int64_t accounts = 2 + rand_r(&seed) % 60;
		int64_t broken = 1 + rand_r(&seed) % (accounts - 1);
		break_account(broken, ERR_INTERNAL);
		submit_behind_one(fixture, 1 + (size_t)rand_r(&seed) % 200, accounts);
		assert_refused(fixture, 0, broken);
		end(fixture);
	}
}

/* The halves of a failed batch are signed as they were committed, and what failed has no receipt,
 * although the signer was asked for it. */
TEST_CASE(only_what_was_committed_has_a_receipt)
{
	char directory[SCRATCH_MAX];
	struct receipt_signer *signer = NULL;
	scratch_make(directory);
	assert_int_equal(receipt_signer_start(directory, 0, &signer, NULL), OK);
	struct fixture *fixture = start(false);
	fixture->service.receipt_signer = signer;
	break_account(3, ERR_CORRUPT);
	submit_behind_one(fixture, 60, 6);
	assert_refused(fixture, 0, 3);
	size_t signed_ = 0, largest = 0;
	for (size_t i = 0; i < fixture->count; i++) {
		const struct registration *item = &fixture->items[i].registration;
		assert_int_equal(item->receipt == NULL, item->account == 3);
		if (!item->receipt)
			continue;
		signed_++;
		assert_in_range(item->receipt->index, 0, item->receipt->tree_size - 1);
		if ((size_t)item->receipt->tree_size > largest)
			largest = (size_t)item->receipt->tree_size;
	}
	assert_int_equal(signed_, 51);
	assert_in_range(largest, 10, 30); /* of a half */
	assert_int_equal(fixture->service.counters.receipts_unsigned, 0);
	end(fixture);
	receipt_signer_stop(signer);
	scratch_remove(directory);
}

/* ---- assertions ---- */

static void leave_one_undecided(void)
{
	seen.fault = UNDECIDED;
	submit_behind_one(start(false), 60, 6);
}

static void give_one_no_event(void)
{
	seen.fault = WITHOUT_EVENT;
	submit_behind_one(start(false), 60, 6);
}

static void submit_one_twice(void)
{
	struct fixture *fixture = start(false);
	close_gate(true);
	submit(fixture, 1);
	wait_until(&seen.begun, 1);
	submit(fixture, 1);
	(void)!register_submit(&fixture->service, &fixture->items[1], NULL);
}

/* Returns how many of the child's requests were answered before it was ended by an assertion. */
static ssize_t count_answers(void (*run)(void))
{
	int ends[2], status = 0;
	char answers[ITEMS_MAX];
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_DUMPABLE, 0);
		signal(SIGABRT, SIG_DFL);
		if (!freopen("/dev/null", "w", stderr))
			_exit(2);
		seen.pipe = ends[1];
		run();
		_exit(0);
	}
	close(ends[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	ssize_t count = read(ends[0], answers, sizeof answers);
	close(ends[0]);
	return count;
}

/* The process ends before any request of the batch has its answer. */
TEST_CASE(an_invariant_that_breaks_acknowledges_nothing)
{
	const size_t earlier = 1; /* of the batch before it */
	assert_int_equal(count_answers(leave_one_undecided), earlier);
	assert_int_equal(count_answers(give_one_no_event), earlier);
	assert_int_equal(count_answers(submit_one_twice), 0);
}

TEST_MAIN(NULL, NULL)
