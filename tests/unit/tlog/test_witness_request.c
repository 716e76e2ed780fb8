#include "testing.h"

#include "tlog/witness_request.h"

#define HASH "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"

TEST_CASE(test_requests)
{
	static const char body[] = "old 20852014\n" HASH HASH "\nexample.com/log\n1\n" HASH;
	struct witness_request request;
	BUF_AUTO struct buf written = {.limit = WITNESS_REQUEST_MAX};
	assert_int_equal(witness_request_parse(slice_of(body), &request, NULL), OK);
	assert_int_equal(request.old_size, 20852014);
	assert_int_equal(request.path.count, 2);
	assert_true(slice_is(request.checkpoint, "example.com/log\n1\n" HASH));
	witness_request_write(&request, &written);
	assert_true(slice_is(buf_slice(&written), body));
	assert_int_equal(witness_request_parse(slice_of("old 0\n\nx"), &request, NULL), OK);
	assert_int_equal(request.path.count, 0);
}

TEST_CASE(test_wrong_requests)
{
	static const char *const wrong[] = {"",
	                                    "\n",
	                                    "old 1",
	                                    "old 1\n",
	                                    "old 1\n\n",
	                                    "old \n\nx",
	                                    "old 01\n\nx",
	                                    "old -1\n\nx",
	                                    "old  1\n\nx",
	                                    "Old 1\n\nx",
	                                    "old 9007199254740993\n\nx",
	                                    "old 1 \n\nx",
	                                    "old 1\r\n\r\nx",
	                                    "old 1\nx\n\nx",
	                                    "old 1\n" HASH,
	                                    "old 1\n" HASH "x",
	                                    "old 1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2J=\n\nx"};
	struct witness_request request;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (witness_request_parse(slice_of(wrong[i]), &request, NULL) != ERR_INVALID_EVIDENCE)
			fail_msg("%s was accepted", wrong[i]);
	BUF_AUTO struct buf many = {.limit = WITNESS_REQUEST_MAX};
	buf_add_text(&many, "old 1\n");
	for (int i = 0; i < MERKLE_PATH_MAX; i++)
		buf_add_text(&many, HASH);
	size_t size = many.size;
	buf_add_text(&many, "\nx");
	assert_int_equal(witness_request_parse(buf_slice(&many), &request, NULL), OK);
	many.size = size;
	buf_add_text(&many, HASH "\nx");
	assert_int_equal(witness_request_parse(buf_slice(&many), &request, NULL), ERR_INVALID_EVIDENCE);
}

static struct checkpoint checkpoint_make(uint64_t size, const struct sha256 *root)
{
	return (struct checkpoint){.origin = "example.com/log", .size = size, .root = *root};
}

static enum witness_verdict decide(uint64_t old_size, const struct merkle_path *path,
                                   const struct checkpoint *checkpoint,
                                   const struct checkpoint *known)
{
	const struct witness_request request = {.old_size = old_size, .path = *path};
	return witness_decide(&request, checkpoint, known);
}

/* Two leaves: all answers of the specification. */
TEST_CASE(test_decisions)
{
	const struct sha256 a = merkle_leaf(slice_of("a")), b = merkle_leaf(slice_of("b"));
	const struct sha256 both = merkle_node(&a, &b), empty = merkle_empty_root();
	const struct checkpoint none = checkpoint_make(0, &empty), one = checkpoint_make(1, &a),
							other = checkpoint_make(1, &b), two = checkpoint_make(2, &both),
							odd = checkpoint_make(0, &a);
	const struct merkle_path no_path = {0}, path = {1, {b}}, wrong = {1, {a}};
	assert_int_equal(decide(0, &no_path, &none, &none), WITNESS_COSIGNS);
	assert_int_equal(decide(0, &no_path, &odd, &none), WITNESS_INCONSISTENT);
	assert_int_equal(decide(0, &no_path, &one, &none), WITNESS_COSIGNS);
	assert_int_equal(decide(0, &path, &two, &none), WITNESS_INCONSISTENT);
	assert_int_equal(decide(1, &path, &two, &one), WITNESS_COSIGNS);
	assert_int_equal(decide(1, &wrong, &two, &one), WITNESS_INCONSISTENT);
	assert_int_equal(decide(1, &path, &two, &other), WITNESS_INCONSISTENT);
	assert_int_equal(decide(0, &no_path, &two, &one), WITNESS_OTHER_SIZE);
	assert_int_equal(decide(1, &no_path, &one, &one), WITNESS_COSIGNS);
	assert_int_equal(decide(1, &no_path, &other, &one), WITNESS_INCONSISTENT);
	assert_int_equal(decide(1, &path, &one, &one), WITNESS_INCONSISTENT);
	assert_int_equal(decide(1, &no_path, &one, &two), WITNESS_OTHER_SIZE); /* a truncated log */
	assert_int_equal(decide(2, &no_path, &one, &two), WITNESS_INVALID_SIZE);
}

TEST_MAIN(NULL, NULL)
