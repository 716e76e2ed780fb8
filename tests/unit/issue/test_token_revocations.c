/* Missing revocation data of a round's timestamps is awaited where that can help, for a limited
 * time; data that paths share counts once. The test gives the answers. */
#include "testing.h"
#include "pki.h"
#include "sample.h"
#include "issue/issue_job.h"
#include "issue/token_revocations.h"
#include "seal/revocation_client.h"
#include "service/settings.h"

#define HOUR_US (3600 * US_PER_SECOND)
#define SHARED_SIZE ((size_t)150 << 10) /* two of them per path exceed the limit */

static struct sample sample;
static struct settings settings;
static struct service service;
static struct certification certification;
static struct issue_job work = {.service = &service, .certification = &certification};
static struct pki_identity root, leaves[TOKEN_PATHS_MAX + 1];
static struct token_revocations all;

/* Outcomes for the next path, and the data returned. */
static enum revocation_outcome of_leaf, of_root;
static struct validation_set given;

int __wrap_revocation_fetch(struct revocation_client *client, struct slice path_pem,
                            const struct revocation_moment *at, struct validation_set *set,
                            struct revocation_verdict ret_verdicts[REVOCATION_PATH_MAX],
                            size_t *ret_count, struct error *error);
int __wrap_revocation_fetch(struct revocation_client *client, struct slice path_pem,
                            const struct revocation_moment *at, struct validation_set *set,
                            struct revocation_verdict ret_verdicts[REVOCATION_PATH_MAX],
                            size_t *ret_count, struct error *error)
{
	(void)client;
	(void)at;
	*ret_count = 2;
	for (size_t i = 0; i < 2; i++) {
		ret_verdicts[i] = (struct revocation_verdict){.outcome = i == 0 ? of_leaf : of_root};
		assert_int_equal(trust_describe(path_pem, &ret_verdicts[i].certificate, error), 0);
	}
	return validation_set_add_all(set, &given, error);
}

static int make(void **state)
{
	sample_open(&sample, MODALITY_HASH_ONLY, 1);
	service.store = sample.store;
	service.settings = &settings;
	service.revocation = (struct revocation_client *)&service; /* which is never dereferenced */
	settings.certification_level = "LTA";
	settings.certification_give_up_after = 24 * HOUR_US;
	root = pki_issue(&(struct pki_certificate){.name = "Root", .extensions = pki_authority});
	for (size_t i = 0; i <= TOKEN_PATHS_MAX; i++)
		leaves[i] = pki_issue(
			&(struct pki_certificate){.name = "Leaf", .issuer = &root, .extensions = pki_leaf});
	return 0;
}

static int forget(void **state)
{
	for (size_t i = 0; i <= TOKEN_PATHS_MAX; i++)
		pki_free(&leaves[i]);
	pki_free(&root);
	sample_close(&sample);
	return 0;
}

static int begin(void **state)
{
	all = (struct token_revocations){.work = &work};
	snprintf(certification.certification_id, sizeof certification.certification_id,
	         "CERT-2026-0000001");
	certification.requested_at_us = store_now_us(service.store);
	of_leaf = of_root = REVOCATION_NOT_NEEDED;
	return 0;
}

static int end(void **state)
{
	token_revocations_free(&all);
	validation_set_free(&given);
	return 0;
}

static const struct validation_set *find(size_t leaf, struct token_prospect *ret_prospect)
{
	BUF_AUTO struct buf der = {.limit = 1 << 20};
	const struct validation_set *set = NULL;
	X509 *const path[] = {leaves[leaf].certificate, root.certificate};
	for (size_t i = 0; i < 2; i++) {
		unsigned char *bytes = NULL;
		int size = i2d_X509(path[i], &bytes);
		assert_true(size > 0);
		buf_add(&der, bytes, (size_t)size);
		OPENSSL_free(bytes);
	}
	assert_int_equal(
		token_revocations_find(&all, buf_slice(&der), clock_now_us(), &set, ret_prospect, NULL), 0);
	return set;
}

static void give_good(void)
{
	BUF_AUTO struct buf der = {.limit = 1 << 20};
	pki_crl(&der, &(struct pki_crl){.issuer = &root,
	                                .issued_us = clock_now_us(),
	                                .next_us = clock_now_us() + 24 * HOUR_US,
	                                .reason = -1});
	assert_int_equal(validation_set_add(&given, VALIDATION_CRL, buf_slice(&der), NULL), 0);
}

/* The second timestamp of a round, for one of which data may still arrive. */
static int check_beside(enum revocation_outcome other_leaf, enum revocation_outcome other_root)
{
	struct token_prospect tokens[2];
	of_leaf = REVOCATION_MISSING;
	assert_int_equal(find(0, &tokens[0])->count, 0);
	of_leaf = other_leaf;
	of_root = other_root;
	if (other_leaf == REVOCATION_GOOD_AFTER)
		give_good();
	(void)find(1, &tokens[1]);
	return token_revocations_check_round(&all, tokens, 2, NULL);
}

TEST_CASE(what_may_come_is_waited_for_a_while)
{
	static const enum revocation_outcome outcomes[] = {REVOCATION_MISSING, REVOCATION_UNKNOWN,
	                                                   REVOCATION_TOO_OLD};
	for (size_t i = 0; i < 3; i++) {
		struct token_prospect token;
		of_leaf = outcomes[i];
		(void)find(i, &token);
		certification.requested_at_us = store_now_us(service.store) - HOUR_US / 2;
		assert_int_equal(token_revocations_check_round(&all, &token, 1, NULL), ERR_UNAVAILABLE);
		certification.requested_at_us -= HOUR_US / 2;
		assert_int_equal(token_revocations_check_round(&all, &token, 1, NULL), 0);
	}
}

TEST_CASE(never_until_it_is_given_up)
{
	struct token_prospect token;
	of_leaf = REVOCATION_MISSING;
	(void)find(0, &token);
	settings.certification_give_up_after = HOUR_US / 2;
	assert_int_equal(token_revocations_check_round(&all, &token, 1, NULL), ERR_UNAVAILABLE);
	certification.requested_at_us -= HOUR_US / 4;
	assert_int_equal(token_revocations_check_round(&all, &token, 1, NULL), 0);
	settings.certification_give_up_after = 24 * HOUR_US;
}

TEST_CASE(not_where_less_is_asked_for)
{
	static const char *const levels[] = {"", "B", "T", "LT"};
	struct token_prospect token;
	of_leaf = REVOCATION_MISSING;
	(void)find(0, &token);
	for (size_t i = 0; i < 4; i++) {
		settings.certification_level = levels[i];
		assert_int_equal(token_revocations_check_round(&all, &token, 1, NULL),
		                 i == 3 ? ERR_UNAVAILABLE : 0);
	}
	settings.certification_level = "LTA";
}

TEST_CASE(not_beside_one_that_is_good)
{
	assert_int_equal(check_beside(REVOCATION_GOOD_AFTER, REVOCATION_NOT_NEEDED), 0);
}

TEST_CASE(not_beside_one_that_nobody_publishes_of)
{
	assert_int_equal(check_beside(REVOCATION_UNPUBLISHED, REVOCATION_NOT_NEEDED), 0);
}

TEST_CASE(also_beside_one_without_its_root)
{
	assert_int_equal(check_beside(REVOCATION_UNPUBLISHED, REVOCATION_MISSING), ERR_UNAVAILABLE);
}

TEST_CASE(also_beside_one_of_which_it_may_come)
{
	assert_int_equal(check_beside(REVOCATION_MISSING, REVOCATION_NOT_NEEDED), ERR_UNAVAILABLE);
}

TEST_CASE(about_the_topmost_nobody_can_be_asked)
{
	struct token_prospect token;
	of_root = REVOCATION_MISSING;
	(void)find(0, &token);
	assert_false(token.suffices);
	assert_int_equal(token_revocations_check_round(&all, &token, 1, NULL), 0);
}

TEST_CASE(what_was_revoked_is_not_waited_for)
{
	struct token_prospect token;
	of_leaf = REVOCATION_REVOKED;
	(void)find(0, &token);
	assert_int_equal(token_revocations_check_round(&all, &token, 1, NULL), 0);
}

TEST_CASE(what_paths_share_counts_once)
{
	static char bytes[SHARED_SIZE];
	struct token_prospect token;
	for (size_t i = 0; i < 2; i++) {
		memset(bytes, 'a' + (int)i, sizeof bytes);
		assert_int_equal(
			validation_set_add(&given, VALIDATION_CRL, slice_make(bytes, sizeof bytes), NULL), 0);
	}
	for (size_t i = 0; i <= TOKEN_PATHS_MAX; i++)
		(void)find(i, &token);
	assert_true(2 * sizeof bytes * TOKEN_PATHS_MAX > TOKEN_REVOCATIONS_BYTES_MAX);
	assert_int_equal(all.size_bytes, 2 * sizeof bytes);
	assert_int_equal(all.count, TOKEN_PATHS_MAX);
	for (size_t i = 0; i < TOKEN_PATHS_MAX; i++)
		assert_int_equal(all.paths[i].set.count, 2);
}

int main(void)
{
	return tests_run(make, forget, begin, end);
}
