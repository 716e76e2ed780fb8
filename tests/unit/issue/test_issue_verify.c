/* Documents are verified with the roots of the service's keys and authorities before they are
 * handed out, as a relying party would, and no finding is ignored. */
#include "testing.h"
#include "office.h"
#include "issue/issue_job.h"
#include "seal/signer.h"
#include "store/evidence/signer_records.h"
#include "store/evidence/timestamp_root_records.h"
#include "verify/verify.h"

static struct office office;

/* Roots used in the place of the service's own; NULL: its own. */
static const char *signers_instead, *timestamps_instead;
static int runs, runs_by_authorities, runs_by_authorities_of_before;
static struct slice root_of_before;
static bool key_is_ended; /* during the verification */

int __real_verify_paths(const char *const *paths, size_t count, const struct trust_roots *roots,
                        const struct verify_options *options, struct verify_result *ret_result,
                        struct error *error);
int __wrap_verify_paths(const char *const *paths, size_t count, const struct trust_roots *roots,
                        const struct verify_options *options, struct verify_result *ret_result,
                        struct error *error);

int __wrap_verify_paths(const char *const *paths, size_t count, const struct trust_roots *roots,
                        const struct verify_options *options, struct verify_result *ret_result,
                        struct error *error)
{
	struct trust_roots given = roots ? *roots : (struct trust_roots){0};
	runs++;
	runs_by_authorities += given.timestamps.size > 0;
	runs_by_authorities_of_before +=
		root_of_before.size > 0 && memmem(given.timestamps.data, given.timestamps.size,
	                                      root_of_before.data, root_of_before.size);
	if (signers_instead && given.signers.size > 0)
		given.signers = slice_of(signers_instead);
	if (timestamps_instead && given.timestamps.size > 0)
		given.timestamps = slice_of(timestamps_instead);
	int result = __real_verify_paths(paths, count, &given, options, ret_result, error);
	if (!result && given.signers.size > 0 && given.timestamps.size > 0 && !signers_instead &&
	    !timestamps_instead)
		assert_true(ret_result->trusted);
	if (key_is_ended)
		assert_int_equal(store_end_signer(office.service.store, slice_of("stolen"), NULL), OK);
	key_is_ended = false;
	return result;
}

static int set_up(void **state)
{
	office_open(&office, MODALITY_HASH_ONLY, 1000);
	signers_instead = timestamps_instead = NULL;
	runs = runs_by_authorities = runs_by_authorities_of_before = 0;
	root_of_before = slice_make(NULL, 0);
	key_is_ended = false;
	return 0;
}

static void request(char id[ID_SIZE])
{
	sample_register(&office.sample, MODE_LIVE, 3);
	office_seal(&office);
	office_request(&office, MODE_LIVE, 1, 3, id);
	office_start_jobs(&office);
}

TEST_CASE(the_services_own_roots_are_used)
{
	char id[ID_SIZE];
	request(id);
	assert_int_equal(office_await_certification(&office, MODE_LIVE, id).status,
	                 CERTIFICATION_COMPLETED);
	assert_int_equal(runs, 1);
	assert_int_equal(runs_by_authorities, 1);
}

/* Its rounds were sealed by an authority that is no longer used but whose root is recorded. */
TEST_CASE(roots_on_record_are_used)
{
	BUF_AUTO struct buf root = {.limit = 1 << 20};
	char id[ID_SIZE];
	assert_int_equal(trust_add_roots(signer_certificates(office.service.signer), &root, NULL), OK);
	root_of_before = buf_slice(&root);
	struct sha256 name = sha256_of(root.data, root.size);
	assert_int_equal(store_add_timestamp_root(office.service.store, &name, root_of_before, NULL),
	                 OK);
	request(id);
	assert_int_equal(office_await_certification(&office, MODE_LIVE, id).status,
	                 CERTIFICATION_COMPLETED);
	assert_int_equal(runs, 1);
	assert_int_equal(runs_by_authorities_of_before, 1);
}

static void waits_because(const char *id, const char *why)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct certification found = {0};
	struct error error;
	int64_t end_us = clock_monotonic_us() + 120 * US_PER_SECOND;
	while (!found.last_error && clock_monotonic_us() < end_us) {
		arena_reset(&arena);
		assert_int_equal(store_find_certification(office.service.store, office.sample.account,
		                                          office.sample.live_chain, slice_of(id), &arena,
		                                          &found, &error),
		                 OK);
	}
	office_stop_jobs(&office);
	assert_non_null(found.last_error);
	assert_non_null(strstr(found.last_error, why));
	assert_int_equal(found.status, CERTIFICATION_PROCESSING);
}

TEST_CASE(a_certification_without_configurations_fails)
{
	ARENA_AUTO struct arena arena;
	struct certification found;
	struct error error;
	char id[ID_SIZE];
	arena_init(&arena, 1 << 20);
	sample_register(&office.sample, MODE_LIVE, 3);
	office_seal(&office);
	office_request(&office, MODE_LIVE, 1, 3, id);
	sample_change(&office.sample, "UPDATE certifications SET config_versions = '[]'");
	office_start_jobs(&office);
	assert_int_equal(office_await_certification(&office, MODE_LIVE, id).status,
	                 CERTIFICATION_FAILED);
	assert_int_equal(store_find_certification(office.service.store, office.sample.account,
	                                          office.sample.live_chain, slice_of(id), &arena,
	                                          &found, &error),
	                 OK);
	assert_non_null(strstr(found.last_error, "has no configuration version"));
}

/* A root of one kind does not vouch for the other. */
TEST_CASE(a_timestamp_that_leads_to_no_known_root_is_not_handed_out)
{
	BUF_AUTO struct buf roots = {.limit = 1 << 20};
	char id[ID_SIZE];
	assert_int_equal(trust_add_roots(signer_certificates(office.service.signer), &roots, NULL), OK);
	assert_true(roots.size > 0);
	timestamps_instead = roots.data;
	request(id);
	waits_because(id, "add its authority's root to tsa.roots");
	assert_int_equal(runs, 1);
	assert_int_equal(runs_by_authorities, 1);
}

/* Its timestamp may be later than the end of the key. */
TEST_CASE(a_key_that_was_ended_meanwhile_signs_nothing)
{
	char id[ID_SIZE];
	key_is_ended = true;
	request(id);
	waits_because(id, "is no longer in force");
}

TEST_CASE(a_signature_of_another_is_not_handed_out)
{
	BUF_AUTO struct buf roots = {.limit = 1 << 20};
	char id[ID_SIZE];
	buf_add_slice(&roots, signer_timestamp_roots(office.service.signer));
	signers_instead = roots.data;
	request(id);
	waits_because(id, "the certification does not verify");
}

int main(void)
{
	return tests_run(office_start_signer, office_stop_signer, set_up, office_tear_down);
}
