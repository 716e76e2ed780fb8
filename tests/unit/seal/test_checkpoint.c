#include "support.h"

#include "seal/signer.h"
#include "tlog/note.h"
#include "tlog/witness_request.h"

#define ORIGIN "log.example/segments"
#define LEAVES 40

/* A log of leaves; `salt` makes another one. */
static struct sha256 leaf_number(uint64_t number, uint8_t salt)
{
	const uint8_t bytes[2] = {(uint8_t)number, salt};
	return merkle_leaf(slice_make(bytes, sizeof bytes));
}

static struct sha256 root_of(uint64_t first, uint64_t end, uint8_t salt)
{
	uint64_t half = 1;
	if (end - first == 1)
		return leaf_number(first, salt);
	while (half * 2 < end - first)
		half *= 2;
	const struct sha256 left = root_of(first, first + half, salt),
						right = root_of(first + half, end, salt);
	return merkle_node(&left, &right);
}

static int read_node(void *context, unsigned level, uint64_t index, struct sha256 *ret,
                     struct error *error)
{
	(void)error;
	*ret = root_of(index << level, (index + 1) << level, *(uint8_t *)context);
	return OK;
}

/* Requests the signature of a tree that follows the one of `old_size`, and verifies it. */
static int request(struct signer *signer, const char *origin, uint64_t old_size, uint64_t size,
                   uint8_t salt)
{
	const struct merkle_source source = {read_node, &salt};
	struct checkpoint checkpoint = {.size = size, .root = root_of(0, size, salt)};
	snprintf(checkpoint.origin, sizeof checkpoint.origin, "%s", origin);
	struct witness_request asked = {.old_size = old_size};
	BUF_AUTO struct buf text = {.limit = 4096}, body = {.limit = 8192}, note = {.limit = 8192};
	checkpoint_write(&checkpoint, &text);
	asked.checkpoint = buf_slice(&text);
	if (old_size <= size)
		assert_int_equal(merkle_prove_consistency(&source, old_size, size, &asked.path, NULL), OK);
	witness_request_write(&asked, &body);
	uint8_t signature[SIGNER_LOG_SIGNATURE_SIZE];
	int result = signer_sign_checkpoint(signer, buf_slice(&body), signature, NULL);
	if (result)
		return result;
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct note parsed;
	const struct note_key key = note_key_make(origin, NOTE_ED25519, signer_log_key(signer));
	buf_add_slice(&note, buf_slice(&text));
	buf_add_byte(&note, '\n');
	note_add_signature(&key, signature, &note);
	assert_int_equal(note_parse(&arena, buf_slice(&note), &parsed, NULL), OK);
	assert_int_equal(note_verify(&parsed, &key, NULL), NOTE_SIGNED);
	return OK;
}

static void assert_known(struct signer *signer, const char *origin, uint64_t expected)
{
	uint64_t size;
	struct sha256 root;
	assert_int_equal(signer_get_checkpoint(signer, origin, &size, &root, NULL), OK);
	const struct sha256 of = expected ? root_of(0, expected, 0) : merkle_empty_root();
	assert_int_equal(size, expected);
	assert_true(sha256_equal(&root, &of));
}

/* The process signs a tree that grows, across its restarts, and no other one. */
TEST_CASE(test_only_one_history_is_signed)
{
	struct signer *signer = development_signer();
	assert_known(signer, ORIGIN, 0);
	assert_int_equal(request(signer, ORIGIN, 0, 7, 0), OK);
	assert_int_equal(request(signer, ORIGIN, 7, 7, 0), OK);
	assert_int_equal(request(signer, ORIGIN, 7, 20, 0), OK);
	assert_known(signer, ORIGIN, 20);
	assert_int_equal(request(signer, ORIGIN, 7, 21, 0), ERR_REFUSED); /* an older size */
	assert_int_equal(request(signer, ORIGIN, 0, 21, 0), ERR_REFUSED);
	assert_int_equal(request(signer, ORIGIN, 20, 30, 1), ERR_REFUSED); /* a rewritten leaf */
	assert_int_equal(request(signer, ORIGIN, 20, 20, 1), ERR_REFUSED);
	assert_int_equal(request(signer, ORIGIN, 20, 12, 0), ERR_REFUSED); /* a truncated log */
	assert_int_equal(request(signer, "other.example", 0, 12, 1), OK);
	uint8_t key[SIGNER_LOG_KEY_SIZE];
	memcpy(key, signer_log_key(signer), sizeof key);
	signer_stop(signer);

	signer = development_signer();
	assert_memory_equal(key, signer_log_key(signer), sizeof key);
	assert_known(signer, ORIGIN, 20);
	assert_int_equal(request(signer, ORIGIN, 7, 30, 0), ERR_REFUSED);
	assert_int_equal(request(signer, ORIGIN, 20, LEAVES, 0), OK);
	signer_stop(signer);
}

TEST_CASE(test_wrong_requests)
{
	static const char *const wrong[] = {
		"x",
		"old 0\n\n",
		"old 0\n\nlog.example\n1\n",
		"old 0\n\nlog.example\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\nextension\n",
		"old 0\n\nlog.example\n0\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
		"log.example\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"};
	struct signer *signer = development_signer();
	uint8_t signature[SIGNER_LOG_SIGNATURE_SIZE];
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(signer_sign_checkpoint(signer, slice_of(wrong[i]), signature, NULL),
		                 ERR_REFUSED);
	signer_stop(signer);
}

/* Nodes of one store share a key, which is never made in place of a missing one. */
TEST_CASE(test_a_given_key)
{
	const struct signer_options options = {
		.directory = scratch_path("signer"), .development = true, .log_key = "/nowhere/log.key"};
	struct signer *signer;
	assert_int_equal(signer_start(&options, &signer, NULL), ERR_REFUSED);
}

TEST_MAIN(scratch_begin, scratch_end)
