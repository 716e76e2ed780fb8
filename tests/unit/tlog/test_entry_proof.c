#include "testing.h"

#include "tlog/entry_proof.h"

#define HASH "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
#define START "c2sp.org/tlog-proof@v1\n"
#define NOTE "example.com/log\n3\n" HASH "\n\xe2\x80\x94 example.com/log AAAAAAA=\n"

TEST_CASE(test_proofs)
{
	struct entry_proof proof;
	BUF_AUTO struct buf written = {.limit = ENTRY_PROOF_MAX};
	static const char text[] = START "index 2\n" HASH HASH "\n" NOTE;
	assert_int_equal(entry_proof_parse(slice_of(text), &proof, NULL), OK);
	assert_int_equal(proof.index, 2);
	assert_int_equal(proof.path.count, 2);
	assert_true(slice_is(proof.checkpoint, NOTE));
	assert_int_equal(proof.extra.size, 0);
	entry_proof_write(&proof, &written);
	assert_true(slice_is(buf_slice(&written), text));
	static const char lone[] = START "extra AAAA\nindex 0\n\n" NOTE;
	assert_int_equal(entry_proof_parse(slice_of(lone), &proof, NULL), OK);
	assert_int_equal(proof.path.count, 0);
	assert_true(slice_is(proof.extra, "AAAA"));
	assert_true(slice_is(proof.checkpoint, NOTE));
	buf_clear(&written);
	entry_proof_write(&proof, &written);
	assert_true(slice_is(buf_slice(&written), lone));
}

TEST_CASE(test_texts_that_are_no_proofs)
{
	static const char *const wrong[] = {
		"",
		"\n",
		"c2sp.org/tlog-proof@v1",
		START,
		"c2sp.org/tlog-proof@v2\nindex 0\n\n" NOTE,
		START "extra AAAA\n",
		START "extra AAAA\nextra AAAA\nindex 0\n\n" NOTE,
		START "index\n\n" NOTE,
		START "index 00\n\n" NOTE,
		START "index -1\n\n" NOTE,
		START "index 9007199254740993\n\n" NOTE,
		START "index 0",
		START "index 0\n",
		START "index 0\n\n",
		START "index 0\n" HASH,
		START "index 0\n" HASH "\n",
		START "index 0\nAAAA\n\n" NOTE,
		START "index 0\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2J=\n\n" NOTE,
		START "index 0\n" NOTE,
	};
	struct entry_proof proof;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (entry_proof_parse(slice_of(wrong[i]), &proof, NULL) != ERR_INVALID_EVIDENCE)
			fail_msg("%s was accepted", wrong[i]);
}

TEST_CASE(test_paths_have_a_maximum)
{
	struct entry_proof proof;
	BUF_AUTO struct buf text = {.limit = ENTRY_PROOF_MAX};
	buf_add_text(&text, START "index 0\n");
	for (int i = 0; i < MERKLE_PATH_MAX; i++)
		buf_add_text(&text, HASH);
	size_t size = text.size;
	buf_add_text(&text, "\n" NOTE);
	assert_int_equal(entry_proof_parse(buf_slice(&text), &proof, NULL), OK);
	text.size = size;
	buf_add_text(&text, HASH "\n" NOTE);
	assert_int_equal(entry_proof_parse(buf_slice(&text), &proof, NULL), ERR_INVALID_EVIDENCE);
}

TEST_MAIN(NULL, NULL)
