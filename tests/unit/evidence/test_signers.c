/* When the next key is used, what a rotation refuses, and how a failing key is monitored. The
 * clock, the keys and the store come from the test. */
#include "testing.h"
#include "base/log.h"
#include "evidence/signers.h"
#include "seal/signer.h"
#include "store/evidence/signer_records.h"

#define NOW (INT64_C(20000) * US_PER_DAY)

static struct {
	struct signer_key keys[SIGNER_KEYS];
	bool has_next, fails, probe_fails, unusable;
	int in_force, probes;
	struct sha256 stored; /* the one in force there */
	bool replaced;
} world;
static char told[256]; /* events, each followed by a blank */
static struct settings settings;
static struct service service;
static struct error error;

int64_t __wrap_clock_now_us(void);
const struct signer_key *__wrap_signer_get_key(const struct signer *signer, int index);
int __wrap_signer_active_key(const struct signer *signer);
int __wrap_signer_activate_key(struct signer *signer, int index, struct error *cause);
bool __wrap_signer_is_key_failing(const struct signer *signer);
int __wrap_signer_probe(struct signer *signer, struct error *cause);
bool __wrap_signer_is_development(const struct signer *signer);
int __wrap_signer_check_key(struct signer *signer, int64_t now_us, struct error *cause);
int __wrap_store_get_signer(struct store *store, struct sha256 *ret_sha256, bool *ret_any,
                            struct error *cause);
int __wrap_store_join_signers(struct store *store, const struct signer_candidate *candidates,
                              size_t count, size_t *ret_index, struct error *cause);
int __wrap_store_replace_signer(struct store *store, const struct signer_candidate *next,
                                const struct sha256 *former, struct slice reason,
                                struct error *cause);
void __wrap_log_write(enum log_level level, const char *event, ...);

int64_t __wrap_clock_now_us(void)
{
	return NOW;
}

const struct signer_key *__wrap_signer_get_key(const struct signer *signer, int index)
{
	return index == SIGNER_PRESENT || (index == SIGNER_NEXT && world.has_next) ? &world.keys[index]
	                                                                           : NULL;
}

int __wrap_signer_active_key(const struct signer *signer)
{
	return world.in_force;
}

int __wrap_signer_activate_key(struct signer *signer, int index, struct error *cause)
{
	world.in_force = index;
	return OK;
}

bool __wrap_signer_is_key_failing(const struct signer *signer)
{
	return world.fails;
}

int __wrap_signer_probe(struct signer *signer, struct error *cause)
{
	world.probes++;
	world.fails = world.probe_fails;
	return world.probe_fails ? error_cause(cause, ERR_UNAVAILABLE, "no token") : OK;
}

bool __wrap_signer_is_development(const struct signer *signer)
{
	return false;
}

int __wrap_signer_check_key(struct signer *signer, int64_t now_us, struct error *cause)
{
	return world.unusable ? error_cause(cause, ERR_UNAVAILABLE, "expired") : OK;
}

int __wrap_store_get_signer(struct store *store, struct sha256 *ret_sha256, bool *ret_any,
                            struct error *cause)
{
	*ret_sha256 = world.stored;
	*ret_any = true;
	return OK;
}

int __wrap_store_join_signers(struct store *store, const struct signer_candidate *candidates,
                              size_t count, size_t *ret_index, struct error *cause)
{
	world.stored = candidates[0].sha256;
	*ret_index = 0;
	return OK;
}

int __wrap_store_replace_signer(struct store *store, const struct signer_candidate *next,
                                const struct sha256 *former, struct slice reason,
                                struct error *cause)
{
	world.stored = next->sha256;
	world.replaced = true;
	return OK;
}

void __wrap_log_write(enum log_level level, const char *event, ...)
{
	strcat(strcat(told, event), " ");
}

static int set_up(void **state)
{
	memset(&world, 0, sizeof world);
	memset(&service, 0, sizeof service);
	service.settings = &settings;
	service.signer = (struct signer *)&world;
	world.keys[SIGNER_PRESENT] = (struct signer_key){
		.certificate = {.sha256 = sha256_of("present", 7)},
		.valid_from_us = NOW - US_PER_DAY,
		.valid_until_us = NOW + 400 * US_PER_DAY,
	};
	world.keys[SIGNER_NEXT] = (struct signer_key){
		.certificate = {.sha256 = sha256_of("next", 4)},
		.valid_from_us = NOW - US_PER_DAY,
		.valid_until_us = NOW + 800 * US_PER_DAY,
	};
	world.has_next = true;
	world.stored = world.keys[SIGNER_PRESENT].certificate.sha256;
	told[0] = '\0';
	return 0;
}

static void follow(void)
{
	assert_int_equal(signers_follow(&service, &error), OK);
}

TEST_CASE(test_the_next_key_is_taken_a_day_before_the_end)
{
	world.keys[SIGNER_PRESENT].valid_until_us = NOW + US_PER_DAY + 1;
	follow();
	assert_int_equal(world.in_force, SIGNER_PRESENT);
	world.keys[SIGNER_PRESENT].valid_until_us = NOW + US_PER_DAY;
	follow();
	assert_true(world.replaced);
	assert_int_equal(world.in_force, SIGNER_NEXT);
	assert_string_equal(told, "signer_activated ");
}

TEST_CASE(test_one_that_is_no_better_is_not_taken)
{
	world.keys[SIGNER_PRESENT].valid_until_us = NOW + 10;
	world.keys[SIGNER_NEXT].valid_until_us = NOW + 9;
	follow();
	world.keys[SIGNER_NEXT].valid_until_us = NOW + 800 * US_PER_DAY;
	world.keys[SIGNER_NEXT].valid_from_us = NOW + 1;
	follow();
	world.has_next = false;
	follow();
	assert_false(world.replaced);
	assert_int_equal(world.in_force, SIGNER_PRESENT);
}

TEST_CASE(test_the_store_says_who_signs)
{
	world.stored = world.keys[SIGNER_NEXT].certificate.sha256;
	follow();
	assert_int_equal(world.in_force, SIGNER_NEXT);
	world.stored = sha256_of("another", 7);
	follow();
	assert_int_equal(world.in_force, SIGNER_NO_KEY);
	assert_string_equal(told, "signer_activated signer_not_in_force ");
}

TEST_CASE(test_a_rotation_wants_a_next_key_whose_time_it_is)
{
	struct slice reason = slice_of("yearly");
	world.keys[SIGNER_NEXT].valid_from_us = NOW + 1;
	assert_int_equal(signers_rotate(&service, service.store, reason, &error), ERR_REFUSED);
	world.keys[SIGNER_NEXT].valid_from_us = NOW - 2;
	world.keys[SIGNER_NEXT].valid_until_us = NOW - 1;
	assert_int_equal(signers_rotate(&service, service.store, reason, &error), ERR_REFUSED);
	world.keys[SIGNER_NEXT].valid_until_us = NOW + 1;
	assert_int_equal(signers_rotate(&service, service.store, reason, &error), OK);
	assert_int_equal(world.in_force, SIGNER_NEXT);
	assert_int_equal(signers_rotate(&service, service.store, reason, &error), ERR_REFUSED);
	set_up(state);
	world.has_next = false;
	assert_int_equal(signers_rotate(&service, service.store, reason, &error), ERR_REFUSED);
}

TEST_CASE(test_a_key_that_does_not_sign_is_asked_again_and_told_once)
{
	follow();
	assert_int_equal(world.probes, 0);
	world.fails = world.probe_fails = true;
	follow();
	follow();
	assert_int_equal(world.probes, 2);
	assert_string_equal(told, "signing_key_failed ");
	world.probe_fails = false;
	follow();
	follow();
	assert_int_equal(world.probes, 3);
	assert_string_equal(told, "signing_key_failed signing_key_recovered ");
	/* A successful signature in the meantime counts as a successful probe. */
	world.fails = world.probe_fails = true;
	follow();
	world.fails = false;
	follow();
	assert_string_equal(told, "signing_key_failed signing_key_recovered signing_key_failed "
	                          "signing_key_recovered ");
}

TEST_CASE(test_a_start_with_a_key_that_is_unusable_is_refused)
{
	assert_int_equal(signers_join(&service, &error), OK);
	assert_string_equal(told, "");
	world.unusable = true;
	assert_int_equal(signers_join(&service, &error), ERR_REFUSED);
}

TEST_CASE(test_a_start_that_replaces_another_key_says_so)
{
	world.stored = sha256_of("gone", 4);
	assert_int_equal(signers_join(&service, &error), OK);
	assert_string_equal(told, "development_key_replaced ");
}

TEST_MAIN_EACH(set_up, NULL)
