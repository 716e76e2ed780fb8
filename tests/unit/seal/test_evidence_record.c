#include "support.h"

#include <openssl/err.h>

#include "base/clock.h"
#include "seal/evidence_asn1.h"
#include "seal/signed_data.h"
#include "seal/validation_set.h"
#include "stride.h"
#include "time_authority.h"
#include "token_parts.h"

#define MINUTE (60 * US_PER_SECOND)
#define DATA "what the record is of"

/* Successive certificates, each valid for ten minutes. */
static struct time_authority first, second, third;
static int64_t start_us;
static struct buf trust;

static int make_authorities(void **state)
{
	start_us = INT64_C(1790000000) * US_PER_SECOND;
	time_authority_make(&first, "First authority", start_us, start_us + 10 * MINUTE);
	time_authority_make(&second, "Second authority", start_us + 5 * MINUTE, start_us + 15 * MINUTE);
	time_authority_make(&third, "Third authority", start_us + 10 * MINUTE, start_us + 20 * MINUTE);
	buf_init(&trust, 65536);
	time_authority_trust(&first, &trust);
	time_authority_trust(&second, &trust);
	time_authority_trust(&third, &trust);
	return 0;
}

static int drop_authorities(void **state)
{
	time_authority_free(&first);
	time_authority_free(&second);
	time_authority_free(&third);
	buf_free(&trust);
	return 0;
}

struct moment {
	const struct time_authority *authority;
	int64_t at_us;
};

static int stamp(void *context, const struct digest *imprint, struct buf *token,
                 struct error *error)
{
	const struct moment *moment = context;

	(void)error;
	time_authority_stamp(moment->authority, imprint, moment->at_us, token);
	return 0;
}

static void renew(struct evidence_record *record, const struct digest *data,
                  const struct time_authority *authority, int64_t at_us)
{
	struct moment moment = {authority, at_us};
	struct error error = {0};

	if (evidence_records_renew(&(struct evidence_renewal){record, data}, 1, stamp, &moment,
	                           &error) != 0)
		fail_msg("%s", error.cause);
}

static struct evidence_record *create(const struct tree_proof *proof, int64_t at_us)
{
	struct evidence_record *record = NULL;
	struct sha256 root = tree_proof_root(proof);
	struct digest imprint = digest_of_sha256(&root);
	struct error error = {0};
	BUF_AUTO struct buf token = {.limit = TIMESTAMP_RESPONSE_MAX};

	time_authority_stamp(&first, &imprint, at_us, &token);
	if (evidence_record_create(proof, buf_slice(&token), &record, &error) != 0)
		fail_msg("%s", error.cause);
	return record;
}

/* Makes a record of DATA and two other leaves, at the start. */
static struct evidence_record *create_sample(void)
{
	struct sha256 leaves[3] = {sha256_of("a", 1), sha256_of(DATA, strlen(DATA)), sha256_of("b", 1)};
	TREE_AUTO struct hash_tree *tree = NULL;
	struct tree_proof proof;

	assert_int_equal(tree_build(leaves, 3, &tree), 0);
	tree_prove(tree, 1, &proof);
	return create(&proof, start_us);
}

static struct digest data_by(enum digest_algorithm algorithm)
{
	return digest_by(algorithm, DATA, strlen(DATA));
}

/* Encodes the record and verifies its DER. */
static int verify_data(const struct evidence_record *record, const char *data, int64_t at_us,
                       struct evidence_facts *facts, struct arena *arena, struct error *error)
{
	struct evidence_query question = {.roots_pem = buf_slice(&trust), .at_us = at_us};
	struct digest digests[DIGEST_ALGORITHM_COUNT];
	EVIDENCE_RECORD_AUTO struct evidence_record *read = NULL;
	BUF_AUTO struct buf der = {.limit = EVIDENCE_RECORD_MAX};

	for (int i = 0; i < DIGEST_ALGORITHM_COUNT; i++)
		digests[i] = digest_by((enum digest_algorithm)i, data, strlen(data));
	assert_int_equal(evidence_record_write(record, &der), 0);
	int result = evidence_record_parse(buf_slice(&der), &read, error);
	return result ? result : evidence_record_verify(read, digests, &question, arena, facts, error);
}

static int verify(const struct evidence_record *record, int64_t at_us, struct evidence_facts *facts,
                  struct arena *arena, struct error *error)
{
	return verify_data(record, DATA, at_us, facts, arena, error);
}

static void assert_valid(const struct evidence_record *record, int64_t at_us)
{
	ARENA_AUTO struct arena arena = {.limit = (size_t)1 << 20};
	struct evidence_facts facts;
	struct error error = {0};

	if (verify(record, at_us, &facts, &arena, &error) != 0)
		fail_msg("not valid: %s", error.cause);
	assert_true(facts.trusted);
}

static void assert_refused(const struct evidence_record *record, int64_t at_us, const char *cause)
{
	ARENA_AUTO struct arena arena = {.limit = (size_t)1 << 20};
	struct evidence_facts facts;
	struct error error = {0};

	assert_int_equal(verify(record, at_us, &facts, &arena, &error), ERR_INVALID_EVIDENCE);
	if (!strstr(error.cause, cause))
		fail_msg("refused, but not for '%s': %s", cause, error.cause);
}

/* ---- making ---- */

static void assert_covers(const struct tree_proof *proof, const char *name)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *record = create(proof, start_us);
	ARENA_AUTO struct arena arena = {.limit = (size_t)1 << 20};
	struct evidence_facts facts;
	struct error error = {0};

	if (verify_data(record, name, start_us, &facts, &arena, &error) != 0)
		fail_msg("%s: %s", name, error.cause);
	assert_int_equal(facts.exists_since_us, start_us);
	assert_int_equal(verify_data(record, "another", start_us, &facts, &arena, &error),
	                 ERR_INVALID_EVIDENCE);
	assert_non_null(strstr(error.cause, "archive timestamp 1 of chain 1: it does not cover the"));
}

/* Complete trees of every small size, and random ones of more leaves. */
TEST_CASE(test_every_leaf)
{
	srandom(4998);
	for (size_t count = 1; count <= 300; count += count < 17 ? 1 : 1 + (size_t)random() % 150) {
		TREE_AUTO struct hash_tree *tree = NULL;
		struct sha256 leaves[300];
		char name[32];
		for (size_t i = 0; i < count; i++) {
			snprintf(name, sizeof name, "object %zu", i);
			leaves[i] = sha256_of(name, strlen(name));
		}
		assert_int_equal(tree_build(leaves, count, &tree), 0);
		for (size_t i = 0; i < count; i += count < 17 ? 1 : 1 + (size_t)random() % 40) {
			struct tree_proof proof;
			tree_prove(tree, i, &proof);
			snprintf(name, sizeof name, "object %zu", i);
			assert_covers(&proof, name);
		}
	}
}

TEST_CASE(test_token_over_something_else)
{
	struct evidence_record *record = NULL;
	struct tree_proof proof = {.leaf = sha256_of(DATA, strlen(DATA))};
	struct digest other = digest_by(DIGEST_SHA256, "other", 5);
	struct error error = {0};
	BUF_AUTO struct buf token = {.limit = TIMESTAMP_RESPONSE_MAX};

	time_authority_stamp(&first, &other, start_us, &token);
	assert_int_equal(evidence_record_create(&proof, buf_slice(&token), &record, &error),
	                 ERR_INVALID_EVIDENCE);
	assert_non_null(strstr(error.cause, "not the root"));
	assert_int_equal(evidence_record_create(&proof, slice_of("no token"), &record, &error),
	                 ERR_INVALID_EVIDENCE);
	assert_null(record);
}

/* ---- renewals ---- */

TEST_CASE(test_three_generations)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *record = create_sample();
	struct digest by_512 = data_by(DIGEST_SHA512);
	ARENA_AUTO struct arena arena = {.limit = (size_t)1 << 20};
	struct evidence_facts facts;

	assert_valid(record, start_us + 9 * MINUTE);
	assert_refused(record, start_us + 11 * MINUTE, "archive timestamp 1 of chain 1: certificate");
	renew(record, NULL, &second, start_us + 8 * MINUTE);
	assert_valid(record, start_us + 14 * MINUTE);
	assert_refused(record, start_us + 16 * MINUTE, "archive timestamp 2 of chain 1: certificate");
	renew(record, &by_512, &third, start_us + 12 * MINUTE);
	assert_valid(record, start_us + 19 * MINUTE);
	assert_refused(record, start_us + 21 * MINUTE, "archive timestamp 1 of chain 2: certificate");

	assert_int_equal(verify(record, start_us + 19 * MINUTE, &facts, &arena, NULL), 0);
	assert_int_equal(facts.stamp_count, 3);
	assert_int_equal(facts.chain_count, 2);
	assert_int_equal(facts.exists_since_us, start_us);
	assert_int_equal(facts.valid_until_us, start_us + 20 * MINUTE);
	assert_int_equal(facts.stamps[1].number, 2);
	assert_int_equal(facts.stamps[2].chain, 2);
	assert_int_equal(facts.stamps[2].number, 1);
	assert_int_equal(facts.stamps[2].timestamp.imprint.algorithm, DIGEST_SHA512);
	assert_int_equal(facts.stamps[1].timestamp.gen_time_us, start_us + 8 * MINUTE);
	assert_string_equal(facts.stamps[1].timestamp.authority.subject, "CN=Second authority");
	assert_true(evidence_record_uses_digest(record, DIGEST_SHA256));
	assert_true(evidence_record_uses_digest(record, DIGEST_SHA512));
	assert_false(evidence_record_uses_digest(record, DIGEST_SHA384));
}

/* At a time before the newest token, the verdict is as of that token's time. */
TEST_CASE(test_as_of_before)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *record = create_sample();

	renew(record, NULL, &second, start_us + 8 * MINUTE);
	assert_valid(record, start_us - MINUTE);
}

TEST_CASE(test_renewed_too_late)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *record = create_sample();

	renew(record, NULL, &second, start_us + 11 * MINUTE);
	assert_refused(record, start_us + 12 * MINUTE, "archive timestamp 1 of chain 1: certificate");
}

TEST_CASE(test_renewed_before)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *record = create_sample();

	renew(record, NULL, &second, start_us + 6 * MINUTE);
	renew(record, NULL, &first, start_us + 5 * MINUTE);
	assert_refused(record, start_us + 9 * MINUTE,
	               "archive timestamp 2 of chain 1: its time is after that of the next archive "
	               "timestamp");
}

TEST_CASE(test_without_roots)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *record = create_sample();
	struct digest digests[DIGEST_ALGORITHM_COUNT] = {data_by(DIGEST_SHA256)};
	struct evidence_query question = {.at_us = start_us};
	ARENA_AUTO struct arena arena = {.limit = (size_t)1 << 20};
	struct evidence_facts facts;
	struct error error = {0};

	assert_int_equal(evidence_record_verify(record, digests, &question, &arena, &facts, &error), 0);
	assert_false(facts.trusted);
	question.at_us = start_us + 11 * MINUTE;
	assert_int_equal(evidence_record_verify(record, digests, &question, &arena, &facts, &error),
	                 ERR_INVALID_EVIDENCE);
	question.roots_pem = slice_of("no roots");
	assert_int_equal(evidence_record_verify(record, digests, &question, &arena, &facts, &error),
	                 ERR_VALIDATION);
	BUF_AUTO struct buf other = {.limit = 65536};
	time_authority_trust(&second, &other);
	question = (struct evidence_query){.roots_pem = buf_slice(&other), .at_us = start_us};
	assert_int_equal(evidence_record_verify(record, digests, &question, &arena, &facts, &error),
	                 ERR_INVALID_EVIDENCE);
	question.tolerant = true;
	assert_int_equal(evidence_record_verify(record, digests, &question, &arena, &facts, &error), 0);
	assert_false(facts.trusted);
}

/* A chain for each digest: SHA-256, then SHA-384, SHA-512, each renewed once. */
TEST_CASE(test_every_algorithm)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *record = create_sample();
	struct digest by_384 = data_by(DIGEST_SHA384), by_512 = data_by(DIGEST_SHA512);

	renew(record, NULL, &first, start_us + MINUTE);
	renew(record, &by_384, &first, start_us + 2 * MINUTE);
	renew(record, NULL, &first, start_us + 3 * MINUTE);
	renew(record, &by_512, &first, start_us + 4 * MINUTE);
	renew(record, NULL, &first, start_us + 5 * MINUTE);
	assert_valid(record, start_us + 6 * MINUTE);
	assert_int_equal(sk_X509_ALGOR_num(record->asn1->digest_algorithms), 3);
}

/* One token for records of different ages; each record is valid on its own afterwards. */
TEST_CASE(test_renewed_together)
{
	for (size_t count = 1; count <= 9; count++) {
		struct evidence_record *records[9];
		struct evidence_renewal renewals[9];
		struct digest by_512[9];
		char name[32];
		for (size_t i = 0; i < count; i++) {
			snprintf(name, sizeof name, "object %zu", i);
			struct tree_proof proof = {.leaf = sha256_of(name, strlen(name))};
			records[i] = create(&proof, start_us);
			by_512[i] = digest_by(DIGEST_SHA512, name, strlen(name));
			renewals[i] = (struct evidence_renewal){records[i], NULL};
		}
		struct moment moment = {&second, start_us + 8 * MINUTE};
		assert_int_equal(evidence_records_renew(renewals, count, stamp, &moment, NULL), 0);
		moment = (struct moment){&third, start_us + 12 * MINUTE};
		for (size_t i = 0; i < count; i++)
			renewals[i].data = &by_512[i];
		assert_int_equal(evidence_records_renew(renewals, count, stamp, &moment, NULL), 0);
		for (size_t i = 0; i < count; i++) {
			ARENA_AUTO struct arena arena = {.limit = (size_t)1 << 20};
			struct evidence_facts facts;
			struct error error = {0};
			snprintf(name, sizeof name, "object %zu", i);
			if (verify_data(records[i], name, start_us + 19 * MINUTE, &facts, &arena, &error) != 0)
				fail_msg("%zu of %zu: %s", i, count, error.cause);
			snprintf(name, sizeof name, "object %zu", (i + 1) % 9);
			assert_int_equal(
				verify_data(records[i], name, start_us + 19 * MINUTE, &facts, &arena, &error),
				ERR_INVALID_EVIDENCE);
		}
		for (size_t i = 0; i < count; i++)
			evidence_record_free(records[i]);
	}
}

static int refuse_to_stamp(void *context, const struct digest *imprint, struct buf *token,
                           struct error *error)
{
	(void)context, (void)imprint, (void)token;
	return error_cause(error, ERR_AUTHORITY, "none");
}

TEST_CASE(test_renewal_refused)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *record = create_sample();
	EVIDENCE_RECORD_AUTO struct evidence_record *other = create_sample();
	struct digest by_512 = data_by(DIGEST_SHA512), leaf;
	struct evidence_renewal both[] = {{record, NULL}, {other, &by_512}};
	struct moment moment = {&second, start_us + 8 * MINUTE};
	struct error error = {0};
	BUF_AUTO struct buf token = {.limit = TIMESTAMP_RESPONSE_MAX};

	assert_int_equal(evidence_records_renew(both, 2, stamp, &moment, &error), ERR_USAGE);
	assert_int_equal(evidence_records_renew(both, 1, refuse_to_stamp, NULL, &error), ERR_AUTHORITY);
	assert_valid(record, start_us);
	assert_int_equal(evidence_record_next_leaf(record, NULL, &leaf), 0);
	time_authority_stamp(&second, &leaf, start_us + 8 * MINUTE, &token);
	struct evidence_path path = {.leaf = by_512};
	assert_int_equal(evidence_record_renew(record, NULL, &path, buf_slice(&token), &error),
	                 ERR_INVALID_EVIDENCE);
	path.leaf = leaf;
	path.siblings[path.count++] = leaf;
	assert_int_equal(evidence_record_renew(record, NULL, &path, buf_slice(&token), &error),
	                 ERR_INVALID_EVIDENCE);
	path.count = 0;
	assert_int_equal(evidence_record_renew(record, NULL, &path, buf_slice(&token), &error), 0);
	assert_valid(record, start_us + 9 * MINUTE);
}

TEST_CASE(test_no_room)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *record = create_sample();
	struct moment moment = {&first, start_us};

	for (int i = 1; i < EVIDENCE_STAMPS_MAX; i++)
		renew(record, NULL, &first, start_us);
	struct evidence_renewal renewal = {record, NULL};
	assert_int_equal(evidence_records_renew(&renewal, 1, stamp, &moment, NULL), ERR_REFUSED);
	assert_valid(record, start_us);
	struct digest data = data_by(DIGEST_SHA256);
	for (int i = 1; i < EVIDENCE_CHAINS_MAX; i++)
		renew(record, &data, &first, start_us);
	renewal.data = &data;
	assert_int_equal(evidence_records_renew(&renewal, 1, stamp, &moment, NULL), ERR_REFUSED);
	assert_valid(record, start_us);
}

/* ---- read by other verifiers ---- */

static void write_record(const struct evidence_record *record)
{
	BUF_AUTO struct buf der = {.limit = EVIDENCE_RECORD_MAX};

	assert_int_equal(evidence_record_write(record, &der), 0);
	scratch_write("record.ers", buf_slice(&der));
}

/* Runs the second verifier, which was written from the format description alone. */
static void assert_others_agree(const struct evidence_record *record, int64_t at_us, int expected)
{
	const char *script = getenv("CONSTANCIA_CHECK_RECORD");

	write_record(record);
	assert_int_equal(scratch_run("python3 '%s' --trust trust.pem --at %lld record.ers data",
	                             script ? script : "", (long long)(at_us / US_PER_SECOND)),
	                 expected);
}

/* Three chains of two archive timestamps each, all renewed together with others. */
TEST_CASE_WITH(test_others_agree, scratch_begin, scratch_end)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *record = create_sample();
	EVIDENCE_RECORD_AUTO struct evidence_record *other = create_sample();
	struct digest data[] = {data_by(DIGEST_SHA384), data_by(DIGEST_SHA512)};
	struct moment moment = {&first, start_us};

	scratch_write("data", slice_of(DATA));
	scratch_write("trust.pem", buf_slice(&trust));
	assert_others_agree(record, start_us + 9 * MINUTE, 0);
	assert_others_agree(record, start_us + 11 * MINUTE, 1);
	for (int i = 0; i < 5; i++) {
		const struct digest *by = i % 2 ? &data[i / 2] : NULL;
		struct evidence_renewal both[] = {{other, by}, {record, by}};
		moment.at_us += MINUTE;
		assert_int_equal(evidence_records_renew(both, 2, stamp, &moment, NULL), 0);
	}
	assert_valid(record, start_us + 9 * MINUTE);
	assert_others_agree(record, start_us + 9 * MINUTE, 0);
	scratch_write("data", slice_of("another"));
	assert_others_agree(record, start_us + 9 * MINUTE, 1);
}

/* ---- lost, exchanged or damaged parts ---- */

/* Makes five archive timestamps in two chains: 3 and 2. */
static struct evidence_record *create_renewed(void)
{
	struct evidence_record *record = create_sample();
	struct digest by_512 = data_by(DIGEST_SHA512);

	renew(record, NULL, &first, start_us + 4 * MINUTE);
	renew(record, NULL, &second, start_us + 8 * MINUTE);
	renew(record, &by_512, &second, start_us + 10 * MINUTE);
	renew(record, NULL, &third, start_us + 12 * MINUTE);
	assert_valid(record, start_us + 13 * MINUTE);
	return record;
}

static void drop_stamp(struct evidence_record *record, int chain, int number)
{
	ArchiveTimeStamp_free(sk_ArchiveTimeStamp_delete(evidence_chain(record, chain), number));
}

TEST_CASE(test_one_generation_lost)
{
	static const struct {
		int chain, number;
		const char *cause;
	} cases[] = {
		{0, 0, "archive timestamp 1 of chain 2: it does not cover the data object together"},
		{0, 1, "archive timestamp 1 of chain 2: it does not cover the data object together"},
		{0, 2, "archive timestamp 1 of chain 2: it does not cover the data object together"},
		{1, 0, "archive timestamp 1 of chain 2: it does not cover the data object together"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		EVIDENCE_RECORD_AUTO struct evidence_record *record = create_renewed();
		drop_stamp(record, cases[i].chain, cases[i].number);
		assert_refused(record, start_us + 13 * MINUTE, cases[i].cause);
	}
	EVIDENCE_RECORD_AUTO struct evidence_record *record = create_renewed();
	archive_chain_free(sk_ArchiveTimeStampChain_delete(record->asn1->chains, 1));
	X509_ALGOR_free(sk_X509_ALGOR_delete(record->asn1->digest_algorithms, 1));
	assert_valid(record, start_us + 13 * MINUTE);
	drop_stamp(record, 0, 1);
	assert_refused(record, start_us + 13 * MINUTE,
	               "archive timestamp 2 of chain 1: it does not cover the timestamp before it");

	EVIDENCE_RECORD_AUTO struct evidence_record *other = create_renewed();
	archive_chain_free(sk_ArchiveTimeStampChain_delete(other->asn1->chains, 0));
	X509_ALGOR_free(sk_X509_ALGOR_delete(other->asn1->digest_algorithms, 0));
	assert_refused(other, start_us + 13 * MINUTE,
	               "archive timestamp 1 of chain 1: it does not cover the data object");
}

TEST_CASE(test_exchanged)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *record = create_renewed();
	EVIDENCE_RECORD_AUTO struct evidence_record *other = create_renewed();
	ArchiveTimeStampChain *chain = evidence_chain(record, 0);

	/* The same times and authorities, but for another record. */
	ArchiveTimeStamp *own = sk_ArchiveTimeStamp_value(chain, 1);
	sk_ArchiveTimeStamp_set(chain, 1, sk_ArchiveTimeStamp_value(evidence_chain(other, 0), 1));
	assert_refused(record, start_us + 13 * MINUTE, "archive timestamp 1 of chain 2");
	sk_ArchiveTimeStamp_set(chain, 1, own);
	assert_valid(record, start_us + 13 * MINUTE);
	sk_ArchiveTimeStamp_set(chain, 1, sk_ArchiveTimeStamp_value(chain, 2));
	sk_ArchiveTimeStamp_set(chain, 2, own);
	assert_refused(record, start_us + 13 * MINUTE, "archive timestamp 1 of chain 2");
}

static void assert_never_valid(char *der, size_t size, const struct digest *digests,
                               const char *what, size_t place)
{
	struct evidence_query question = {.roots_pem = buf_slice(&trust),
	                                  .at_us = start_us + 13 * MINUTE};
	EVIDENCE_RECORD_AUTO struct evidence_record *read = NULL;
	ARENA_AUTO struct arena arena = {.limit = (size_t)1 << 20};
	struct evidence_facts facts;

	int result = evidence_record_parse(slice_make(der, size), &read, NULL);
	if (!result)
		result = evidence_record_verify(read, digests, &question, &arena, &facts, NULL);
	if (result != ERR_INVALID_EVIDENCE)
		fail_msg("%s: %zu: result %d", what, place, result);
}

TEST_CASE(test_every_flipped_byte)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *record = create_sample();
	struct digest by_512 = data_by(DIGEST_SHA512);
	struct digest digests[DIGEST_ALGORITHM_COUNT];
	BUF_AUTO struct buf der = {.limit = EVIDENCE_RECORD_MAX};

	renew(record, NULL, &second, start_us + 8 * MINUTE);
	renew(record, &by_512, &third, start_us + 12 * MINUTE);
	assert_valid(record, start_us + 13 * MINUTE);
	for (int i = 0; i < DIGEST_ALGORITHM_COUNT; i++)
		digests[i] = data_by((enum digest_algorithm)i);
	assert_int_equal(evidence_record_write(record, &der), 0);
	for (size_t i = 0; i < der.size; STRIDE(i)) {
		char flip = (char)(1 << i % 8);
		der.data[i] = (char)(der.data[i] ^ flip);
		assert_never_valid(der.data, der.size, digests, "byte flipped", i);
		der.data[i] = (char)(der.data[i] ^ flip);
	}
	for (size_t size = 0; size < der.size; size += size < der.size - 40 ? 13 : 1)
		assert_never_valid(der.data, size, digests, "cut off at", size);
	buf_add_byte(&der, 0);
	assert_never_valid(der.data, der.size, digests, "longer", der.size);
}

/* ---- refused forms ---- */

static ArchiveTimeStamp *stamp_of(struct evidence_record *record)
{
	return sk_ArchiveTimeStamp_value(evidence_chain(record, 0), 0);
}

static PartialHashtree *list_of(struct evidence_record *record, int at)
{
	return sk_PartialHashtree_value(stamp_of(record)->reduced_hashtree, at);
}

static void add_hash(PartialHashtree *list, int size)
{
	uint8_t bytes[DIGEST_SIZE_MAX] = {0};
	ASN1_OCTET_STRING *hash = ASN1_OCTET_STRING_new();

	assert_int_equal(ASN1_OCTET_STRING_set(hash, bytes, size), 1);
	assert_true(sk_ASN1_OCTET_STRING_push(list, hash) > 0);
}

static void set_algorithm(X509_ALGOR *algorithm, int nid, int type)
{
	assert_int_equal(X509_ALGOR_set0(algorithm, OBJ_nid2obj(nid), type, NULL), 1);
}

static void deform(struct evidence_record *record, int how)
{
	STACK_OF(X509_ALGOR) *algorithms = record->asn1->digest_algorithms;
	ArchiveTimeStamp *stamp = stamp_of(record);

	switch (how) {
	case 0: ASN1_INTEGER_set(record->asn1->version, 2); break;
	case 1: set_algorithm(sk_X509_ALGOR_value(algorithms, 0), NID_sha512, V_ASN1_UNDEF); break;
	case 2: sk_X509_ALGOR_push(algorithms, evidence_algorithm_new(DIGEST_SHA256)); break;
	case 3: sk_X509_ALGOR_push(algorithms, evidence_algorithm_new(DIGEST_SHA512)); break;
	case 4: X509_ALGOR_free(sk_X509_ALGOR_pop(algorithms)); break;
	case 5: set_algorithm(sk_X509_ALGOR_value(algorithms, 0), NID_sha1, V_ASN1_UNDEF); break;
	case 6: record->asn1->crypto_infos = sk_X509_ATTRIBUTE_new_null(); break;
	case 7: archive_chain_free(sk_ArchiveTimeStampChain_pop(record->asn1->chains)); break;
	case 8: ArchiveTimeStamp_free(sk_ArchiveTimeStamp_pop(evidence_chain(record, 0))); break;
	case 9: set_algorithm(stamp->digest_algorithm, NID_sha512, V_ASN1_UNDEF); break;
	case 10: set_algorithm(stamp->digest_algorithm, NID_sha1, V_ASN1_UNDEF); break;
	case 11: ASN1_TYPE_set(stamp->token, V_ASN1_NULL, NULL); break;
	case 12:
		for (int i = 0; i < 2; i++)
			ASN1_OCTET_STRING_free(sk_ASN1_OCTET_STRING_pop(list_of(record, 0)));
		break;
	case 13: ASN1_OCTET_STRING_free(sk_ASN1_OCTET_STRING_pop(list_of(record, 1))); break;
	case 14: add_hash(list_of(record, 1), 31); break;
	case 15: add_hash(list_of(record, 1), 64); break;
	case 16:
		for (int i = 0; i < EVIDENCE_HASHES_MAX; i++)
			add_hash(list_of(record, 1), SHA256_SIZE);
		break;
	case 17:
		while (sk_PartialHashtree_num(stamp->reduced_hashtree) > 0)
			partial_hashtree_free(sk_PartialHashtree_pop(stamp->reduced_hashtree));
		break;
	default:
		for (int i = 0; i < EVIDENCE_LISTS_MAX; i++) {
			PartialHashtree *list = sk_ASN1_OCTET_STRING_new_null();
			add_hash(list, SHA256_SIZE);
			sk_PartialHashtree_push(stamp->reduced_hashtree, list);
		}
	}
}

TEST_CASE(test_form)
{
	static const char *const causes[] = {
		"version 1",
		"those of the chains",
		"one twice",
		"those of the chains",
		"of the chains",
		"not accepted",
		"cryptoInfos",
		"no chain",
		"no archive",
		"its token's imprint",
		"not accepted",
		"not a ContentInfo",
		"no hash",
		"no hash",
		"does not have the length",
		"does not have the length",
		"too many",
		"no list",
		"no list or too many",
	};

	for (int how = 0; how < (int)(sizeof causes / sizeof *causes); how++) {
		EVIDENCE_RECORD_AUTO struct evidence_record *record = create_sample();
		deform(record, how);
		assert_refused(record, start_us, causes[how]);
	}
}

/* Forms of other writers: no digestAlgorithm, NULL parameters, longer lists in any order,
 * cryptoInfos. */
TEST_CASE(test_other_forms)
{
	struct sha256 leaf = sha256_of(DATA, strlen(DATA));
	struct digest hashes[3] = {digest_of_sha256(&leaf), digest_by(DIGEST_SHA256, "a", 1),
	                           digest_by(DIGEST_SHA256, "b", 1)};
	struct digest sorted[3] = {hashes[0], hashes[1], hashes[2]};
	struct digest root;
	EVIDENCE_RECORD_AUTO struct evidence_record *record = create_sample();
	ArchiveTimeStamp *stamp = stamp_of(record);
	BUF_AUTO struct buf token = {.limit = TIMESTAMP_RESPONSE_MAX};

	assert_int_equal(evidence_node(sorted, 3, &root), 0);
	partial_hashtree_free(sk_PartialHashtree_pop(stamp->reduced_hashtree));
	PartialHashtree *list = list_of(record, 0);
	ASN1_OCTET_STRING_free(sk_ASN1_OCTET_STRING_pop(list));
	for (int i = 0; i < 3; i++) {
		if (i > 0)
			add_hash(list, SHA256_SIZE);
		ASN1_OCTET_STRING_set(sk_ASN1_OCTET_STRING_value(list, i), sorted[(i + 1) % 3].bytes,
		                      SHA256_SIZE);
	}
	time_authority_stamp(&first, &root, start_us, &token);
	ASN1_STRING_set(stamp->token->value.sequence, token.data, (int)token.size);
	set_algorithm(sk_X509_ALGOR_value(record->asn1->digest_algorithms, 0), NID_sha256, V_ASN1_NULL);
	X509_ALGOR_free(stamp->digest_algorithm);
	stamp->digest_algorithm = NULL;
	X509at_add1_attr_by_txt(&record->asn1->crypto_infos, "1.2.3.4", V_ASN1_UTF8STRING,
	                        (const unsigned char *)"x", 1);
	assert_valid(record, start_us);
	renew(record, NULL, &first, start_us);
	assert_valid(record, start_us);
}

/* Replaces the tree of an archive timestamp by lists of one hash each, and its token by one over
 * `imprint`. */
static void set_single_lists(ArchiveTimeStamp *stamp, const struct digest *hashes, size_t count,
                             const struct digest *imprint)
{
	BUF_AUTO struct buf token = {.limit = TIMESTAMP_RESPONSE_MAX};

	sk_PartialHashtree_pop_free(stamp->reduced_hashtree, partial_hashtree_free);
	stamp->reduced_hashtree = sk_PartialHashtree_new_null();
	for (size_t i = 0; i < count; i++) {
		PartialHashtree *list = sk_ASN1_OCTET_STRING_new_null();
		ASN1_OCTET_STRING *hash = ASN1_OCTET_STRING_new();
		ASN1_OCTET_STRING_set(hash, hashes[i].bytes, (int)digest_size(hashes[i].algorithm));
		sk_ASN1_OCTET_STRING_push(list, hash);
		sk_PartialHashtree_push(stamp->reduced_hashtree, list);
	}
	time_authority_stamp(&first, imprint, start_us, &token);
	ASN1_STRING_set(stamp->token->value.sequence, token.data, (int)token.size);
}

static struct digest hash_again(const struct digest *hash)
{
	return digest_by(hash->algorithm, hash->bytes, digest_size(hash->algorithm));
}

/* A first list of one hash: some implementations use it unchanged, RFC 4998 section 4.3 hashes
 * it. */
TEST_CASE_WITH(test_one_hash, scratch_begin, scratch_end)
{
	struct digest leaf = data_by(DIGEST_SHA256), other = digest_by(DIGEST_SHA256, "a", 1);
	struct digest again = hash_again(&leaf), twice = hash_again(&again);
	struct digest both[] = {leaf, other},
				  roots[] = {evidence_pair(&leaf, &other), evidence_pair(&again, &other)};
	const struct {
		const struct digest *lists;
		size_t count;
		const struct digest *imprint;
		const char *cause; /* NULL: valid */
	} cases[] = {
		{&leaf, 1, &leaf, NULL},
		{&leaf, 1, &again, NULL},
		{both, 2, &roots[0], NULL},
		{both, 2, &roots[1], NULL},
		{&leaf, 1, &twice, "its hash tree does not lead to the imprint of its token"},
		{&leaf, 1, &other, "its hash tree does not lead to the imprint of its token"},
		{both, 2, &leaf, "its hash tree does not lead to the imprint of its token"},
		{both, 2, &other, "its hash tree does not lead to the imprint of its token"},
		{&other, 1, &other, "it does not cover the data object"},
		{&again, 1, &again, "it does not cover the data object"},
	};

	scratch_write("data", slice_of(DATA));
	scratch_write("trust.pem", buf_slice(&trust));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		EVIDENCE_RECORD_AUTO struct evidence_record *record = create_sample();
		set_single_lists(stamp_of(record), cases[i].lists, cases[i].count, cases[i].imprint);
		if (cases[i].cause)
			assert_refused(record, start_us, cases[i].cause);
		else
			assert_valid(record, start_us);
		assert_others_agree(record, start_us, cases[i].cause != NULL);
	}
}

/* The same for an earlier timestamp and for a hash-tree renewal. */
TEST_CASE_WITH(test_one_hash_renewed, scratch_begin, scratch_end)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *record = create_sample();
	struct digest by_512 = data_by(DIGEST_SHA512), leaf;

	scratch_write("data", slice_of(DATA));
	scratch_write("trust.pem", buf_slice(&trust));
	assert_int_equal(evidence_record_next_leaf(record, NULL, &leaf), 0);
	renew(record, NULL, &first, start_us);
	set_single_lists(sk_ArchiveTimeStamp_value(evidence_chain(record, 0), 1), &leaf, 1, &leaf);
	assert_valid(record, start_us);
	assert_int_equal(evidence_record_next_leaf(record, &by_512, &leaf), 0);
	renew(record, &by_512, &first, start_us);
	set_single_lists(sk_ArchiveTimeStamp_value(evidence_chain(record, 1), 0), &leaf, 1, &leaf);
	assert_valid(record, start_us);
	assert_others_agree(record, start_us, 0);
	set_single_lists(sk_ArchiveTimeStamp_value(evidence_chain(record, 1), 0), &by_512, 1, &by_512);
	assert_refused(record, start_us, "archive timestamp 1 of chain 2: it does not cover the data");
	assert_others_agree(record, start_us, 1);
}

static void add_ocsp(struct buf *token)
{
	static const unsigned char response[] = "\xa1\x0f\x06\x08\x2b\x06\x01\x05\x05\x07\x10\x02"
											"\x30\x03\x0a\x01\x06";
	SIGNED_CONTENT_AUTO SignedContent *content = NULL;
	const unsigned char *position = response;

	assert_int_equal(signed_content_parse_ber(buf_slice(token), &content, NULL), 0);
	content->data->revocations = sk_ASN1_TYPE_new_null();
	sk_ASN1_TYPE_push(content->data->revocations,
	                  d2i_ASN1_TYPE(NULL, &position, sizeof response - 1));
	ASN1_INTEGER_set(content->data->version, 5);
	buf_clear(token);
	assert_int_equal(signed_content_write(content, token), 0);
}

/* Tokens of other authorities with an attribute certificate, or with an OCSP response among the
 * CRLs, also where a renewal covers them. */
TEST_CASE_WITH(test_more_inside, scratch_begin, scratch_end)
{
	scratch_write("data", slice_of(DATA));
	scratch_write("trust.pem", buf_slice(&trust));
	for (int ocsp = 0; ocsp < 2; ocsp++) {
		EVIDENCE_RECORD_AUTO struct evidence_record *record = create_sample();
		ASN1_STRING *held = stamp_of(record)->token->value.sequence;
		BUF_AUTO struct buf token = {.limit = TIMESTAMP_RESPONSE_MAX};
		buf_add(&token, ASN1_STRING_get0_data(held), (size_t)ASN1_STRING_length(held));
		if (ocsp)
			add_ocsp(&token);
		else
			token_add_choice(&token, 4, slice_make("\xa2\x06\x06\x02\x2a\x03\x05\x00", 8));
		ASN1_STRING_set(held, token.data, (int)token.size);
		assert_valid(record, start_us);
		assert_others_agree(record, start_us, 0);
		renew(record, NULL, &second, start_us + 8 * MINUTE);
		assert_valid(record, start_us + 14 * MINUTE);
		assert_others_agree(record, start_us + 14 * MINUTE, 0);
		assert_others_agree(record, start_us + 16 * MINUTE, 1);
	}
}

/* The signed data of the authority and its time are the same with added revocation lists. */
TEST_CASE(test_revocations_inside)
{
	static const char list[] = "\x30\x05\x0c\x03list";
	struct digest imprint = data_by(DIGEST_SHA256);
	VALIDATION_SET_AUTO struct validation_set set = {0}, large = {0}, broken = {0};
	struct timestamp_facts before, after;
	struct error error = {0};
	BUF_AUTO struct buf token = {.limit = TIMESTAMP_RESPONSE_MAX};
	BUF_AUTO struct buf with = {.limit = 1 << 20};

	time_authority_stamp(&first, &imprint, start_us, &token);
	struct slice der = slice_make(list, 7);
	assert_int_equal(validation_set_add(&set, VALIDATION_CRL, der, &error), 0);
	assert_int_equal(timestamp_token_add_revocations(buf_slice(&token), &set, &with, &error), 0);
	assert_true(with.size > token.size + der.size);
	assert_non_null(memmem(with.data, with.size, der.data, der.size));
	assert_int_equal(timestamp_verify_token_at(buf_slice(&token), &imprint, buf_slice(&trust), NULL,
	                                           TIME_NONE, &before, &error),
	                 0);
	assert_int_equal(timestamp_verify_token_at(buf_slice(&with), &imprint, buf_slice(&trust), NULL,
	                                           TIME_NONE, &after, &error),
	                 0);
	assert_memory_equal(&before, &after, sizeof before);

	static char much[150000] = "\x30\x83\x02\x49\xeb";
	assert_int_equal(
		validation_set_add(&large, VALIDATION_CRL, slice_make(much, sizeof much), &error), 0);
	buf_clear(&with);
	assert_int_equal(timestamp_token_add_revocations(buf_slice(&token), &large, &with, &error),
	                 ERR_TOO_LARGE);
	assert_int_equal(validation_set_add(&broken, VALIDATION_OCSP, der, &error), 0);
	assert_int_equal(timestamp_token_add_revocations(buf_slice(&token), &broken, &with, &error),
	                 ERR_INVALID_EVIDENCE);
}

static void write_whole(const struct evidence_record *record, struct buf *out)
{
	buf_clear(out);
	assert_int_equal(evidence_record_write(record, out), 0);
}

static size_t times_in(const struct buf *text, const void *what, size_t size)
{
	size_t count = 0;
	const char *at = text->data, *end = text->data + text->size;

	while ((at = memmem(at, (size_t)(end - at), what, size)) != NULL) {
		count++;
		at += size;
	}
	return count;
}

/* The newest token has its validation data; covered data stays byte for byte. */
TEST_CASE(test_completed)
{
	static const char lists[2][8] = {"\x30\x05\x0c\x03one", "\x30\x05\x0c\x03two"};
	static const unsigned char values[] = {0x06, 0x0b, 0x2a, 0x86, 0x48, 0x86, 0xf7,
	                                       0x0d, 0x01, 0x09, 0x10, 0x02, 0x18};
	static char much[150000] = "\x30\x83\x02\x49\xeb";
	VALIDATION_SET_AUTO struct validation_set none = {0}, one = {0}, two = {0}, large = {0};
	struct validation_set *const sets[] = {&one, &two};
	struct slice nothing = slice_make(NULL, 0);
	EVIDENCE_RECORD_AUTO struct evidence_record *record = create_sample();
	EVIDENCE_RECORD_AUTO struct evidence_record *theirs = create_sample();
	struct error error = {0};
	BUF_AUTO struct buf before = {.limit = EVIDENCE_RECORD_MAX};
	BUF_AUTO struct buf after = {.limit = EVIDENCE_RECORD_MAX};

	for (size_t i = 0; i < 2; i++)
		assert_int_equal(
			validation_set_add(sets[i], VALIDATION_CRL, slice_make(lists[i], 7), &error), 0);
	assert_int_equal(
		validation_set_add(&large, VALIDATION_CRL, slice_make(much, sizeof much), &error), 0);
	write_whole(record, &before);
	assert_int_equal(evidence_record_complete(record, nothing, &none, &error), 0);
	assert_int_equal(evidence_record_complete(record, nothing, &large, &error), 0);
	write_whole(record, &after);
	assert_true(slice_equal(buf_slice(&before), buf_slice(&after)));

	renew(record, NULL, &second, start_us + 7 * MINUTE);
	const ArchiveTimeStampChain *chain = evidence_chain(record, 0);
	struct slice covered = archive_timestamp_token(sk_ArchiveTimeStamp_value(chain, 0));
	buf_clear(&before);
	buf_add_slice(&before, covered);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(evidence_record_complete(record, nothing, sets[i / 2], &error), 0);
	assert_valid(record, start_us + 12 * MINUTE);
	covered = archive_timestamp_token(sk_ArchiveTimeStamp_value(chain, 0));
	assert_true(slice_equal(buf_slice(&before), covered));
	write_whole(record, &after);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(times_in(&after, lists[i], 7), 1);
	assert_int_equal(times_in(&after, values, sizeof values), 1);

	/* A record that was handed out can be renewed without changes. */
	assert_int_equal(evidence_record_complete(theirs, nothing, &one, &error), 0);
	renew(theirs, NULL, &second, start_us + 7 * MINUTE);
	assert_valid(theirs, start_us + 12 * MINUTE);
}

TEST_MAIN(make_authorities, drop_authorities)
