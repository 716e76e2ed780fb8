/* The issuer, with each call failing in turn: a fault of the service delays a certification but
 * never fails it. No incomplete document is handed out, and in the end it is issued and valid. */
#include <sys/stat.h>

#include "testing.h"
#include "failing.h"
#include "jobs/internal.h"
#include "office.h"
#include "seal/signer.h"
#include "store/check/inspect.h"

#define FEE 7

static const atomic_bool stopping;
static struct office office;
static struct issuer issuer;
static struct error error;
static char directory[128], id[ID_SIZE];

static int set_up(void **state)
{
	char object[CONTENT_NAME_MAX];
	office_open(&office, MODALITY_CONTENT, 1000000);
	office.settings.certification_fee = FEE;
	/* The document that fails shares bytes with an issued one. */
	office.settings.certification_share_within = US_PER_DAY;
	sample_register(&office.sample, MODE_LIVE, 2);
	office_register_object(&office, slice_of("any bytes"), "a.bin", object);
	sample_register(&office.sample, MODE_LIVE, 2);
	office_start_jobs(&office);
	office_request(&office, MODE_LIVE, 2, 4, id);
	assert_int_equal(office_await_certification(&office, MODE_LIVE, id).status,
	                 CERTIFICATION_COMPLETED);
	office_stop_jobs(&office);
	struct lease_renewer *lease_renewer;
	assert_int_equal(lease_renewer_start(&lease_renewer, &error), OK);
	snprintf(directory, sizeof directory, "%s/work", office.sample.directory);
	issuer_init(&issuer, &office.service, "node", directory, 0, lease_renewer);
	return 0;
}

static int tear_down(void **state)
{
	lease_renewer_stop(issuer.lease_renewer);
	office_close(&office);
	return 0;
}

static struct certification look(struct arena *arena)
{
	struct certification found;
	assert_int_equal(store_find_certification(office.service.store, office.sample.account,
	                                          office.sample.live_chain, slice_of(id), arena, &found,
	                                          &error),
	                 OK);
	return found;
}

static int64_t balance(void)
{
	struct balance found;
	assert_int_equal(store_get_balance(office.service.store, office.sample.account, &found, &error),
	                 OK);
	return found.balance;
}

/* Makes it due now, however long it was to wait. */
static void make_due(void)
{
	assert_int_equal(store_retry_certification(office.service.store, slice_of(id),
	                                           store_now_us(office.service.store), &error),
	                 OK);
}

/* Returns the next call to fail. After the first ones it steps by a tenth: every kind of call
 * fails, but not every call. */
static int next(int at)
{
	return at + 1 + at / 10;
}

static void in_turn(unsigned kinds, int result)
{
	failing_code = result;
	office_request(&office, MODE_LIVE, 2, 4, id);
	for (int at = 1;; at = next(at)) {
		ARENA_AUTO struct arena arena = {.limit = 1 << 20};
		int64_t before = balance();
		failing_arm(kinds, at);
		(void)issuer_run(&issuer, &stopping);
		const char *failed = failing_disarm();
		struct certification found = look(&arena);
		if (found.status == CERTIFICATION_FAILED)
			fail_msg("call %d, %s: %s", at, failed ? failed : "none", found.last_error);
		assert_int_equal(balance(), before);
		struct stat there;
		if (!failed || kinds == FAILING_PARTS)
			assert_int_not_equal(stat(issuer.directory, &there), 0);
		assert_int_equal(atomic_load(&office.service.issuing_bytes), 0);
		if (signer_ready(office.service.signer, NULL))
			break; /* an interrupted exchange ends the process; the node is then restarted */
		if (found.status == CERTIFICATION_PROCESSING) {
			make_due();
			assert_non_null(failed);
			continue;
		}
		assert_int_equal(office_verify(&office, &found), 0);
		if (!failed)
			break;
		office_request(&office, MODE_LIVE, 2, 4, id);
	}
	failing_code = ERR_UNAVAILABLE;
}

TEST_CASE(parts_that_fail_delay_it)
{
	in_turn(FAILING_PARTS, ERR_UNAVAILABLE);
}

TEST_CASE(memory_that_fails_delays_it)
{
	in_turn(FAILING_MEMORY | FAILING_ARENAS, ERR_UNAVAILABLE);
	in_turn(FAILING_SQLITE | FAILING_OPENSSL, ERR_UNAVAILABLE);
}

TEST_CASE(disks_that_fail_delay_it)
{
	in_turn(FAILING_FILES | FAILING_SYSTEM, ERR_UNAVAILABLE);
}

int main(void)
{
	return tests_run(office_start_signer, office_stop_signer, set_up, tear_down);
}
