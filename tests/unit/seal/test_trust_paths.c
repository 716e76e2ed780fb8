/* What certificates state, together and individually, and which of them are roots. */
#include "pki.h"
#include "support.h"

#include "seal/trust.h"

#define YEAR (365 * US_PER_DAY)

static struct pki_identity root, leaf;
static int64_t now_us;
static struct error error;

static int make(void **state)
{
	now_us = clock_now_us() / US_PER_SECOND * US_PER_SECOND;
	root = pki_issue(&(struct pki_certificate){.name = "Root",
	                                           .extensions = pki_authority,
	                                           .from_us = now_us - 9 * YEAR,
	                                           .to_us = now_us + 2 * YEAR});
	leaf = pki_issue(&(struct pki_certificate){.name = "Leaf",
	                                           .issuer = &root,
	                                           .extensions = pki_leaf,
	                                           .from_us = now_us - YEAR,
	                                           .to_us = now_us + 5 * YEAR});
	return 0;
}

static int forget(void **state)
{
	pki_free(&root);
	pki_free(&leaf);
	return 0;
}

TEST_CASE(test_a_path_is_valid_while_all_of_it_is)
{
	BUF_AUTO struct buf pem = {.limit = 65536};
	struct certificate_facts facts;
	int64_t from_us, until_us;

	pki_path(&pem, (const struct pki_identity *[]){&leaf, &root}, 2);
	assert_int_equal(trust_describe_path(buf_slice(&pem), &facts, &from_us, &until_us, &error), 0);
	assert_string_equal(facts.subject, "CN=Leaf");
	assert_string_equal(facts.issuer, "CN=Root");
	assert_int_equal(facts.not_after_us, now_us + 5 * YEAR);
	assert_int_equal(from_us, now_us - YEAR);
	assert_int_equal(until_us, now_us + 2 * YEAR);
	assert_int_equal(trust_describe(buf_slice(&pem), &facts, &error), 0);
	assert_string_equal(facts.subject, "CN=Leaf");
	assert_int_equal(trust_describe_path(slice_of("nothing"), &facts, &from_us, &until_us, &error),
	                 ERR_VALIDATION);
}

TEST_CASE(test_a_path_of_der_becomes_pem)
{
	BUF_AUTO struct buf der = {.limit = 65536};
	BUF_AUTO struct buf pem = {.limit = 65536};
	BUF_AUTO struct buf wanted = {.limit = 65536};

	pki_ders(&der, (const struct pki_identity *[]){&leaf, &root}, 2);
	pki_path(&wanted, (const struct pki_identity *[]){&leaf, &root}, 2);
	assert_int_equal(trust_path_to_pem(buf_slice(&der), &pem, &error), 0);
	assert_true(slice_equal(buf_slice(&pem), buf_slice(&wanted)));
	assert_int_not_equal(trust_path_to_pem(slice_make(der.data, der.size - 1), &pem, &error), 0);
}

TEST_CASE(test_roots_are_added_once)
{
	BUF_AUTO struct buf pem = {.limit = 65536};
	BUF_AUTO struct buf alone = {.limit = 65536};
	BUF_AUTO struct buf out = {.limit = 65536};

	pki_path(&pem, (const struct pki_identity *[]){&leaf, &root}, 2);
	pki_path(&alone, (const struct pki_identity *[]){&root}, 1);
	assert_int_equal(trust_add_roots(buf_slice(&pem), &out, &error), 0);
	assert_true(slice_equal(buf_slice(&out), buf_slice(&alone)));
	assert_int_equal(trust_add_roots(buf_slice(&alone), &out, &error), 0);
	assert_true(slice_equal(buf_slice(&out), buf_slice(&alone)));
}

TEST_MAIN(make, forget)
