/* A chain that cannot be sealed, or not yet, does not delay others. A corrected clock is relied on
 * even when there is nothing to seal. */
#include <inttypes.h>
#include <unistd.h>

#include "testing.h"
#include "jobs/internal.h"
#include "office.h"
#include "db/db.h"
#include "seal/authority.h"
#include "store/events/segments.h"
#include "store/store_internal.h"

static struct office office;
static struct sample first, second; /* two channels; the first one's chain comes first */
static struct error error;

static _Atomic int64_t behind_us; /* the clock of this process, not that of the authority */
static atomic_int passes, times_asked;

int64_t __real_clock_now_us(void);
int64_t __wrap_clock_now_us(void);
int __wrap_signer_listing_is_due(struct service *service, bool *ret_due, struct error *why);
void __real_authorities_request_time(struct authorities *authorities, int64_t bound_us,
                                     struct authority_failures *ret_failures);
void __wrap_authorities_request_time(struct authorities *authorities, int64_t bound_us,
                                     struct authority_failures *ret_failures);
int __real_store_list_unsealed(struct store *store, int64_t after_account, int64_t after_chain,
                               size_t limit, struct unsealed_chain *ret, size_t *ret_count,
                               struct error *why);
int __wrap_store_list_unsealed(struct store *store, int64_t after_account, int64_t after_chain,
                               size_t limit, struct unsealed_chain *ret, size_t *ret_count,
                               struct error *why);

int __real_store_list_wanted(struct store *store, size_t limit, struct unsealed_chain *ret,
                             size_t *ret_count, struct error *why);
int __wrap_store_list_wanted(struct store *store, size_t limit, struct unsealed_chain *ret,
                             size_t *ret_count, struct error *why);
int __real_store_write_round(struct store *store, const struct round_record *round,
                             struct error *why);
int __wrap_store_write_round(struct store *store, const struct round_record *round,
                             struct error *why);

static atomic_bool stopping;
static bool stops_at_wanted;    /* the service stops when certifications are looked up */
static bool outcome_is_unknown; /* of a round that was written */

int __wrap_store_list_wanted(struct store *store, size_t limit, struct unsealed_chain *ret,
                             size_t *ret_count, struct error *why)
{
	if (stops_at_wanted)
		atomic_store(&stopping, true);
	return __real_store_list_wanted(store, limit, ret, ret_count, why);
}

int __wrap_store_write_round(struct store *store, const struct round_record *round,
                             struct error *why)
{
	int result = __real_store_write_round(store, round, why);
	return !result && outcome_is_unknown ? ERR_UNKNOWN_OUTCOME : result;
}

int64_t __wrap_clock_now_us(void)
{
	return __real_clock_now_us() - atomic_load(&behind_us);
}

/* Its timestamp would establish the time as well. */
int __wrap_signer_listing_is_due(struct service *service, bool *ret_due, struct error *why)
{
	*ret_due = false;
	return OK;
}

void __wrap_authorities_request_time(struct authorities *authorities, int64_t bound_us,
                                     struct authority_failures *ret_failures)
{
	atomic_fetch_add(&times_asked, 1);
	__real_authorities_request_time(authorities, bound_us, ret_failures);
}

int __wrap_store_list_unsealed(struct store *store, int64_t after_account, int64_t after_chain,
                               size_t limit, struct unsealed_chain *ret, size_t *ret_count,
                               struct error *why)
{
	atomic_fetch_add(&passes, 1);
	return __real_store_list_unsealed(store, after_account, after_chain, limit, ret, ret_count,
	                                  why);
}

static int set_up(void **state)
{
	office_open(&office, MODALITY_HASH_ONLY, 1000000);
	office.settings.seal_interval = 50000;
	first = office.sample;
	sample_add_channel(&office.sample, MODALITY_HASH_ONLY);
	second = office.sample;
	return 0;
}

static void register_in(struct sample *channel, int64_t count, int64_t now_us)
{
	channel->now_us = now_us;
	channel->references = office.sample.references;
	sample_register(channel, MODE_LIVE, count);
	office.sample.references = channel->references;
}

/* So that no event is ahead of the clock, even if that steps back a little. */
static int64_t past_us(void)
{
	return clock_now_us() - 60 * US_PER_SECOND;
}

static int64_t sealed_of(const struct sample *channel)
{
	struct chain_head head;
	assert_int_equal(
		store_get_chain(office.service.store, channel->account, channel->live_chain, &head, &error),
		OK);
	return head.sealed_sequence;
}

static void await_seal_of(const struct sample *channel, int64_t sequence)
{
	office.sample = *channel;
	office_await_seal(&office, sequence);
}

static void await_counter(const atomic_int_fast64_t *counter, int64_t value)
{
	int64_t end_us = clock_monotonic_us() + 120 * US_PER_SECOND;
	while (atomic_load(counter) != value && clock_monotonic_us() < end_us)
		usleep(5000);
	assert_int_equal(atomic_load(counter), value);
}

/* A chain that cannot be read. */
TEST_CASE(a_damaged_chain_is_set_apart)
{
	register_in(&first, 5, past_us());
	register_in(&second, 5, past_us());
	sample_change(
		&office.sample,
		"CREATE TABLE kept AS SELECT event, chain_hash FROM events;"
		"UPDATE events_arrived SET chain_hash = x'00' WHERE event = (SELECT min(event) + 2 FROM events)");
	office_start_jobs(&office);
	await_seal_of(&second, 5);
	assert_int_equal(sealed_of(&first), 0);
	await_counter(&office.service.counters.chains_quarantined, 1);
	register_in(&second, 5, past_us());
	await_seal_of(&second, 10);
	assert_int_equal(atomic_load(&office.service.counters.seal_failures), 0);

	sample_change(&office.sample,
	              "UPDATE events_arrived SET chain_hash = "
	              "(SELECT chain_hash FROM kept WHERE kept.event = events_arrived.event) "
	              "WHERE length(chain_hash) = 1");
	await_seal_of(&first, 5);
	await_counter(&office.service.counters.chains_quarantined, 0);
}

/* A damaged row of one chain stops neither the process nor other chains. */
TEST_CASE(a_chain_sealed_up_to_no_event_is_set_apart)
{
	char damage[128];
	register_in(&first, 5, past_us());
	register_in(&second, 5, past_us());
	snprintf(damage, sizeof damage, "UPDATE chains SET sealed_sequence = -1 WHERE chain = %" PRId64,
	         first.live_chain);
	sample_change(&office.sample, damage);
	office_start_jobs(&office);
	await_seal_of(&second, 5);
	await_counter(&office.service.counters.chains_quarantined, 1);
	sample_change(&office.sample,
	              "UPDATE chains SET sealed_sequence = 0 WHERE sealed_sequence = -1");
	await_seal_of(&first, 5);
	await_counter(&office.service.counters.chains_quarantined, 0);
}

static void run_once(struct sealer *sealer)
{
	atomic_store(&stopping, false);
	sealer->not_before_us = 0;
	sealer_run(sealer, &stopping);
}

/* A chain that cannot be written. */
TEST_CASE(a_segment_that_cannot_be_written_is_set_apart)
{
	register_in(&first, 5, past_us());
	office_start_jobs(&office);
	await_seal_of(&first, 5);
	office_stop_jobs(&office);
	sample_change(
		&office.sample,
		"INSERT INTO segments SELECT account, chain, 2, 'seg_other', 6, 6, round, root, document,"
		" nodes, path, place FROM segments");
	register_in(&first, 5, past_us());
	register_in(&second, 5, past_us());
	office_start_jobs(&office);
	await_seal_of(&second, 5);
	register_in(&second, 5, past_us());
	await_seal_of(&second, 10);
	assert_int_equal(sealed_of(&first), 5);
	await_counter(&office.service.counters.chains_quarantined, 1);

	sample_change(&office.sample, "DELETE FROM segments WHERE segment_id = 'seg_other'");
	await_seal_of(&first, 10);
	await_counter(&office.service.counters.chains_quarantined, 0);
}

/* A fault that affects many chains is hardly their own: a pass quarantines a few, reports a
 * failure, and the next one continues from there. Earlier chains are sealed, and in the end all
 * intact ones are. */
TEST_CASE(many_are_not_set_apart_at_once)
{
	enum { BROKEN = 20 };
	register_in(&first, 5, past_us());
	register_in(&second, 5, past_us());
	struct sample last;
	for (int i = 1; i <= BROKEN; i++) {
		sample_add_channel(&office.sample, MODALITY_HASH_ONLY);
		last = office.sample;
		register_in(&last, 5, past_us());
	}
	char sql[200];
	snprintf(sql, sizeof sql,
	         "UPDATE events_arrived SET chain_hash = x'00' WHERE event / 1099511627776"
	         " BETWEEN %lld AND %lld",
	         (long long)second.live_chain, (long long)last.live_chain - 1);
	sample_change(&office.sample, sql);
	struct counters *counters = &office.service.counters;
	struct sealer sealer;
	struct lease_renewer *lease_renewer;
	assert_int_equal(lease_renewer_start(&lease_renewer, &error), OK);
	assert_int_equal(sealer_init(&sealer, &office.service, "node", lease_renewer), OK);
	run_once(&sealer);
	assert_int_equal(atomic_load(&counters->chains_quarantined), 8);
	assert_int_equal(atomic_load(&counters->seal_failures), 1);
	assert_int_equal(sealed_of(&first), 5);
	assert_int_equal(sealed_of(&last), 0);
	run_once(&sealer);
	assert_int_equal(atomic_load(&counters->chains_quarantined), 16);
	run_once(&sealer);
	assert_int_equal(atomic_load(&counters->chains_quarantined), BROKEN);
	assert_int_equal(atomic_load(&counters->seal_failures), 2);
	assert_int_equal(sealed_of(&last), 5);
	sealer_free(&sealer);
	lease_renewer_stop(lease_renewer);
}

/* More broken chains than the quarantine holds do not prevent the sealing of the chains after
 * them. */
TEST_CASE(broken_chains_starve_nobody)
{
	enum { BROKEN = QUARANTINE_MAX + 44, PASSES_MAX = BROKEN / 8 + 2 };
	struct sample last;
	for (int i = 0; i <= BROKEN; i++) {
		sample_add_channel(&office.sample, MODALITY_HASH_ONLY);
		last = office.sample;
		register_in(&last, 1, past_us());
	}
	char sql[200];
	snprintf(sql, sizeof sql,
	         "UPDATE events_arrived SET chain_hash = x'00' WHERE event / 1099511627776"
	         " < %lld",
	         (long long)last.live_chain);
	sample_change(&office.sample, sql);
	struct sealer sealer;
	struct lease_renewer *lease_renewer;
	assert_int_equal(lease_renewer_start(&lease_renewer, &error), OK);
	assert_int_equal(sealer_init(&sealer, &office.service, "node", lease_renewer), OK);
	for (int i = 0; i < PASSES_MAX && sealed_of(&last) == 0; i++)
		run_once(&sealer);
	assert_int_equal(sealed_of(&last), 1);
	sealer_free(&sealer);
	lease_renewer_stop(lease_renewer);
}

static int set_up_behind(void **state)
{
	atomic_store(&behind_us, 3600 * US_PER_SECOND);
	return set_up(state);
}

/* The clock then seems to be ahead of the last timestamp, and the next interval is far away. */
TEST_CASE_WITH(a_clock_that_is_set_forward_is_relied_on_again, set_up_behind, office_tear_down)
{
	office.settings.seal_interval = US_PER_DAY;
	atomic_store(&passes, 0);
	atomic_store(&times_asked, 0);
	office_start_jobs(&office);
	while (atomic_load(&passes) == 0)
		usleep(5000);
	assert_int_equal(atomic_load(&times_asked), 0);
	assert_int_equal(service_clock_ready(&office.service, &error), OK);
	atomic_store(&behind_us, 0);
	int64_t end_us = clock_monotonic_us() + 120 * US_PER_SECOND;
	while (atomic_load(&times_asked) == 0 && clock_monotonic_us() < end_us)
		usleep(5000);
	while (service_clock_ready(&office.service, &error) && clock_monotonic_us() < end_us)
		usleep(5000);
	assert_true(atomic_load(&times_asked) > 0);
	assert_int_equal(service_clock_ready(&office.service, &error), OK);
}

static int64_t last_round(void)
{
	int64_t round;
	struct sha256 token_hash;
	assert_int_equal(store_last_round(office.service.store, &round, &token_hash, &error), OK);
	return round;
}

static int64_t round_of(const struct sample *channel)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct segment_record segment;
	assert_int_equal(store_find_segment(office.service.store, channel->account, channel->live_chain,
	                                    1, &arena, &segment, &error),
	                 OK);
	return segment.round;
}

enum { MANY = 12 };
static struct sample many[MANY];

static void register_in_many(void)
{
	for (int i = 0; i < MANY; i++) {
		sample_add_channel(&office.sample, MODALITY_HASH_ONLY);
		many[i] = office.sample;
		register_in(&many[i], 2, past_us());
	}
}

static void seal_in_small_blocks(size_t round_blocks)
{
	struct sealer sealer;
	struct lease_renewer *lease_renewer;
	assert_int_equal(lease_renewer_start(&lease_renewer, &error), OK);
	assert_int_equal(sealer_init(&sealer, &office.service, "node", lease_renewer), OK);
	sealer.sealing.block_segments = 2;
	sealer.sealing.round_blocks = round_blocks;
	run_once(&sealer);
	sealer_free(&sealer);
	lease_renewer_stop(lease_renewer);
}

/* One timestamp for any number of chains and blocks; a second one only when a round is full. */
TEST_CASE(a_pass_takes_one_timestamp)
{
	register_in_many();
	seal_in_small_blocks(100);
	assert_int_equal(last_round(), 1);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(sealed_of(&many[i]), 2);
	for (int i = 0; i < MANY; i++)
		register_in(&many[i], 2, past_us());
	seal_in_small_blocks(4);
	assert_int_equal(last_round(), 3);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(sealed_of(&many[i]), 4);
}

static void request(const struct sample *channel)
{
	char id[ID_SIZE];
	office.sample = *channel;
	office_use_channel(&office);
	office_request(&office, MODE_LIVE, 1, 2, id);
}

/* It waits for at most one block of other chains, whether they come before or after its own. */
TEST_CASE(what_a_certification_waits_for_is_sealed_first)
{
	register_in_many();
	request(&many[MANY - 1]);
	atomic_store(&behind_us, US_PER_SECOND / 10);
	seal_in_small_blocks(100);
	atomic_store(&behind_us, 0);
	assert_int_equal(last_round(), 2);
	assert_int_equal(round_of(&many[MANY - 1]), 1);
	for (int i = 0; i < MANY - 1; i++)
		assert_int_equal(round_of(&many[i]), i < 2 ? 1 : 2);
}

static void seal_once(void)
{
	struct sealer sealer;
	struct lease_renewer *lease_renewer;
	assert_int_equal(lease_renewer_start(&lease_renewer, &error), OK);
	assert_int_equal(sealer_init(&sealer, &office.service, "node", lease_renewer), OK);
	run_once(&sealer);
	sealer_free(&sealer);
	lease_renewer_stop(lease_renewer);
}

TEST_CASE(beside_few_chains_its_round_is_the_only_one)
{
	register_in_many();
	request(&many[MANY - 1]);
	seal_once();
	assert_int_equal(last_round(), 1);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(sealed_of(&many[i]), 2);
}

/* However many certifications are waiting. */
TEST_CASE(a_stop_waits_for_no_certifications)
{
	struct staged_round staged;
	register_in_many();
	for (int i = 0; i < MANY; i++)
		request(&many[i]);
	stops_at_wanted = true;
	seal_in_small_blocks(100);
	stops_at_wanted = false;
	assert_int_equal(last_round(), 0);
	assert_int_equal(store_get_staged_round(office.service.store, &staged, &error), OK);
	assert_int_equal(staged.blocks, 1);
	seal_in_small_blocks(100);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(sealed_of(&many[i]), 2);
}

static void count_issuer(void *context, enum wake which)
{
	*(int *)context += which == WAKE_ISSUER;
}

/* The round may be stored, and certifications wait for it. */
TEST_CASE(a_round_of_unknown_outcome_wakes_the_issuer)
{
	int woken = 0;
	register_in(&first, 2, past_us());
	request(&first);
	office.service.wake = count_issuer;
	office.service.wake_context = &woken;
	outcome_is_unknown = true;
	seal_once();
	outcome_is_unknown = false;
	assert_int_equal(woken, 1);
	assert_int_equal(sealed_of(&first), 2);
	assert_int_equal(atomic_load(&office.service.counters.seal_failures), 1);
	office.service.wake = NULL;
}

/* Nor do these exceed one round, however many they are: a larger round could never be closed. */
TEST_CASE(certifications_overfill_no_round)
{
	register_in_many();
	for (int i = 0; i < MANY; i++)
		request(&many[i]);
	seal_in_small_blocks(4);
	assert_int_equal(last_round(), 2);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(round_of(&many[i]), i < 8 ? 1 : 2);
}

/* While no authority answers, repeated passes stage nothing more. */
TEST_CASE(an_outage_makes_no_more_segments)
{
	struct staged_round staged;
	register_in_many();
	office_break_authority(&office);
	for (int i = 0; i < 3; i++) {
		seal_in_small_blocks(100);
		assert_int_equal(store_get_staged_round(office.service.store, &staged, &error), OK);
		assert_int_equal(staged.blocks, MANY / 2);
		for (int k = 0; k < MANY; k++)
			register_in(&many[k], 1, past_us());
	}
	assert_int_equal(sealed_of(&many[0]), 0);
	office_restore_authority(&office);
	seal_in_small_blocks(100);
	assert_int_equal(last_round(), 2);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(sealed_of(&many[i]), 5);
}

/* A single refusal means that another node was faster; a persistent one is a fault and must be
 * reported. */
TEST_CASE(a_refusal_that_repeats_is_told)
{
	struct counters *counters = &office.service.counters;
	struct sealer sealer;
	struct lease_renewer *lease_renewer;
	assert_int_equal(lease_renewer_start(&lease_renewer, &error), OK);
	assert_int_equal(sealer_init(&sealer, &office.service, "node", lease_renewer), OK);
	register_in(&first, 5, past_us());
	sample_change(&office.sample, "CREATE TRIGGER kept BEFORE UPDATE ON staged_round"
	                              " BEGIN SELECT RAISE(IGNORE); END");
	run_once(&sealer);
	assert_int_equal(atomic_load(&counters->seal_failures), 0);
	assert_int_equal(sealer.not_before_us, 0);
	for (int failures = 1; failures <= 3; failures++) {
		run_once(&sealer);
		assert_int_equal(atomic_load(&counters->seal_failures), failures);
		assert_int_equal(sealer.failures, failures);
	}
	sample_change(&office.sample, "DROP TRIGGER kept");
	run_once(&sealer);
	assert_int_equal(sealed_of(&first), 5);
	assert_int_equal(sealer.failures, 0);
	sealer_free(&sealer);
	lease_renewer_stop(lease_renewer);
}

/* An event with a receive time in the future stays pending until then; no other event does. */
TEST_CASE(what_is_ahead_of_the_clock_stays_pending)
{
	int64_t begin_us = clock_now_us();
	int64_t ahead_us = begin_us + 10 * US_PER_SECOND;
	office.settings.seal_clock_bound = US_PER_SECOND;
	register_in(&first, 5, begin_us);
	register_in(&first, 5, ahead_us);
	register_in(&second, 5, begin_us);
	office_start_jobs(&office);
	await_seal_of(&second, 5);
	await_seal_of(&first, 5);
	await_seal_of(&first, 10);
	assert_true(clock_now_us() >= ahead_us);
	ARENA_AUTO struct arena arena = {.limit = 4 << 20};
	struct segment_record segment;
	struct round_record round;
	assert_int_equal(store_find_segment(office.service.store, first.account, first.live_chain, 6,
	                                    &arena, &segment, &error),
	                 OK);
	assert_int_equal(segment.first_sequence, 6);
	assert_int_equal(store_get_round(office.service.store, segment.round, &arena, &round, &error),
	                 OK);
	/* The authority gives whole seconds. */
	assert_true(round.sealed_at_us > ahead_us - US_PER_SECOND);

	register_in(&first, 5, clock_now_us() + US_PER_DAY);
	await_counter(&office.service.counters.chains_ahead, 1);
	register_in(&second, 5, past_us());
	await_seal_of(&second, 10);
	assert_int_equal(sealed_of(&first), 10);
}

int main(void)
{
	return tests_run(office_start_signer, office_stop_signer, set_up, office_tear_down);
}
