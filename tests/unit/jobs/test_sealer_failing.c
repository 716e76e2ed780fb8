/* The sealer, with each call failing in turn: events that could not be sealed are sealed later,
 * without a gap, by rounds that verify, and no fault of the service is attributed to a chain or to
 * the store. */
#include "testing.h"
#include "failing.h"
#include "jobs/internal.h"
#include "office.h"
#include "stride.h"

static const atomic_bool stopping;
static struct office office;
static struct sealer sealer;
static struct error error;
static int64_t registered;

static int set_up(void **state)
{
	office_open(&office, MODALITY_HASH_ONLY, 1000000);
	struct lease_renewer *lease_renewer;
	assert_int_equal(lease_renewer_start(&lease_renewer, &error), OK);
	assert_int_equal(sealer_init(&sealer, &office.service, "node", lease_renewer), OK);
	registered = 0;
	return 0;
}

static int tear_down(void **state)
{
	lease_renewer_stop(sealer.lease.lease_renewer);
	sealer_free(&sealer);
	office_close(&office);
	return 0;
}

static int64_t sealed(void)
{
	struct chain_head head;
	assert_int_equal(store_get_chain(office.service.store, office.sample.account,
	                                 office.sample.live_chain, &head, &error),
	                 OK);
	return head.sealed_sequence;
}

static void run(void)
{
	sealer.not_before_us = 0; /* it is retried at once */
	assert_true(sealer_run(&sealer, &stopping) > 0);
}

/* `blames`: the failures may be faults of a chain, which is then quarantined for a while. */
static void in_turn(unsigned kinds, bool blames)
{
	for (int at = 1;; STRIDE(at)) {
		int64_t before = sealed();
		assert_int_equal(before, registered);
		sample_register(&office.sample, MODE_LIVE, 2);
		registered += 2;
		failing_arm(kinds, at);
		run();
		const char *failed = failing_disarm();
		if (sealed() != registered && sealed() != before)
			fail_msg("call %d, %s: sealed %d", at, failed ? failed : "none", (int)sealed());
		assert_false(atomic_load(&office.service.store_rolled_back));
		if (sealer.sealing.quarantine.count && !blames)
			fail_msg("call %d, %s: the chain is blamed", at, failed ? failed : "none");
		for (size_t i = 0; i < sealer.sealing.quarantine.count; i++)
			sealer.sealing.quarantine.chains[i].failed_at_us -= 3600 * US_PER_SECOND;
		run();
		if (sealed() != registered)
			fail_msg("call %d, %s: not sealed afterwards", at, failed ? failed : "none");
		assert_int_equal(sealer.sealing.quarantine.count, 0);
		if (!failed)
			break;
	}
}

/* Verifies a certification over all rounds. */
static void verify_all(void)
{
	char id[ID_SIZE];
	office_start_jobs(&office);
	office_request(&office, MODE_LIVE, 1, registered, id);
	struct certification certification = office_await_certification(&office, MODE_LIVE, id);
	assert_int_equal(certification.status, CERTIFICATION_COMPLETED);
	assert_int_equal(office_verify(&office, &certification), 0);
	office_stop_jobs(&office);
}

TEST_CASE(rounds_outlive_faults)
{
	in_turn(FAILING_MEMORY | FAILING_ARENAS, false);
	/* A failure below the table of events is a read error of the disk for this chain. */
	in_turn(FAILING_SQLITE, true);
	in_turn(FAILING_OPENSSL, false);
	verify_all();
}

TEST_CASE(rounds_outlive_parts_that_fail)
{
	in_turn(FAILING_PARTS, false);
	failing_code = ERR_NO_SPACE;
	in_turn(FAILING_PARTS, false);
	failing_code = ERR_CORRUPT;
	in_turn(FAILING_PARTS, true);
	failing_code = ERR_UNAVAILABLE;
	verify_all();
}

TEST_CASE(begins_only_with_memory)
{
	struct sealer other;
	failing_arm(FAILING_MEMORY, 1);
	assert_int_equal(sealer_init(&other, &office.service, "node", sealer.lease.lease_renewer),
	                 ERR_NO_MEMORY);
	assert_string_equal(failing_disarm(), "malloc");
	sealer_free(&other);
}

int main(void)
{
	return tests_run(office_start_signer, office_stop_signer, set_up, tear_down);
}
