#include "support.h"

#include "base/json.h"
#include "seal/segment.h"

static struct seal_document sample(void)
{
	struct seal_document document = {
		.segment_id = "seg_1",
		.channel_id = "chn_1",
		.chain = "live",
		.first_sequence = 5,
		.last_sequence = 20,
		.clock = {.synchronized = true, .max_error_us = 1500, .source = "ntp_adjtime"},
	};

	memset(document.chain_hash_before.bytes, 1, SHA256_SIZE);
	memset(document.chain_hash_last.bytes, 2, SHA256_SIZE);
	return document;
}

#define HEX_4(x) x x x x
#define HEX_32(x) HEX_4(x) HEX_4(x) HEX_4(x) HEX_4(x) HEX_4(x) HEX_4(x) HEX_4(x) HEX_4(x)

TEST_CASE(test_bytes)
{
	struct seal_document document = sample();
	struct sha256 previous;
	BUF_AUTO struct buf text = {.limit = SEAL_DOCUMENT_MAX};

	seal_document_write(&document, &text);
	assert_string_equal(
		text.data,
		"{\"chain\":\"live\",\"chain_hash_before\":\"" HEX_32("01") "\",\"chain_hash_last\":\"" HEX_32(
			"02") "\",\"channel_id\":\"chn_1\","
				  "\"clock\":{\"max_error_us\":1500,\"source\":\"ntp_adjtime\","
				  "\"synchronized\":true},\"count\":16,\"first_sequence\":5,"
				  "\"last_sequence\":20,\"previous_seal_hash\":null,"
				  "\"previous_token_hash\":null,\"segment_id\":\"seg_1\",\"v\":1}");
	memset(previous.bytes, 3, SHA256_SIZE);
	document.previous_seal_hash = &previous;
	document.previous_token_hash = &previous;
	document.clock.synchronized = false;
	buf_clear(&text);
	seal_document_write(&document, &text);
	assert_non_null(strstr(text.data, "\"previous_seal_hash\":\"" HEX_32(
										  "03") "\","
	                                            "\"previous_token_hash\":\"" HEX_32("03") "\","));
	assert_non_null(strstr(text.data, "\"synchronized\":false}"));
}

/* The digest was computed independently with Python's hashlib. */
TEST_CASE(test_digest)
{
	struct seal_document document = sample();
	char hex[65];
	BUF_AUTO struct buf scratch_buf = {.limit = SEAL_DOCUMENT_MAX};

	buf_add_text(&scratch_buf, "left over");
	struct sha256 digest = seal_document_digest(&document, &scratch_buf);
	hex_encode(digest.bytes, SHA256_SIZE, hex);
	assert_string_equal(hex, "9849662a95defc56af5cdf27340100f0e59520b1d297dddd9a5b29ebf6647a0b");
}

/* The written form and its RFC 8785 form are the same bytes. */
TEST_CASE(test_is_canonical)
{
	struct seal_document document = sample();
	struct json *json = NULL;
	ARENA_AUTO struct arena arena = {.limit = 1 << 16};
	BUF_AUTO struct buf text = {.limit = SEAL_DOCUMENT_MAX};
	BUF_AUTO struct buf canonical = {.limit = SEAL_DOCUMENT_MAX};

	seal_document_write(&document, &text);
	assert_int_equal(json_parse(&arena, buf_slice(&text), NULL, &json, NULL), 0);
	json_canonical(json, &canonical);
	assert_string_equal(canonical.data, text.data);
}

#define READ_MEMORY ((size_t)1 << 16)

static int read_back(struct slice text, struct seal_document *document)
{
	static struct arena arena;
	arena_free(&arena);
	arena_init(&arena, READ_MEMORY);
	return seal_document_read(&arena, text, document, NULL);
}

TEST_CASE(test_clock_state)
{
	struct clock_state clock = clock_state_read();

	assert_string_equal(clock.source, "ntp_adjtime");
	assert_true(clock.max_error_us >= 0);
}

/* The tree over the stored nodes is the tree over all leaves, whatever their number. */
TEST_CASE(test_build)
{
	static const size_t counts[] = {2,   3,   127, 128, 129, 130, 191, 192,   255,   256,
	                                257, 300, 384, 385, 512, 513, 999, 16383, 16384, 16385};
	struct sha256 *leaves = malloc(SEGMENT_LEAVES_MAX * sizeof *leaves);
	for (size_t i = 0; i < SEGMENT_LEAVES_MAX; i++)
		leaves[i] = sha256_of(&i, sizeof i);
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		struct sha256 nodes[SEGMENT_NODES_MAX], root;
		size_t node_count;
		assert_int_equal(segment_build(leaves, counts[i], nodes, &node_count, &root), OK);
		assert_int_equal(node_count, (counts[i] + SEGMENT_NODE_LEAVES - 1) / SEGMENT_NODE_LEAVES);
		TREE_AUTO struct hash_tree *tree = NULL;
		assert_int_equal(tree_build(leaves, counts[i], &tree), OK);
		struct sha256 whole = tree_root(tree);
		assert_true(sha256_equal(&root, &whole));
	}
	free(leaves);
}

/* Every leaf leads through its node to the root, and to no other root. */
TEST_CASE(test_prove)
{
	enum { COUNT = 2 * SEGMENT_NODE_LEAVES + 3 };
	struct sha256 leaves[COUNT], nodes[SEGMENT_NODES_MAX], root;
	for (size_t i = 0; i < COUNT; i++)
		leaves[i] = sha256_of(&i, sizeof i);
	size_t node_count;
	assert_int_equal(segment_build(leaves, COUNT, nodes, &node_count, &root), OK);
	struct slice kept = slice_make(nodes, node_count * SHA256_SIZE);
	for (size_t i = 0; i < COUNT; i++) {
		size_t first = i - i % SEGMENT_NODE_LEAVES;
		size_t count = COUNT - first < SEGMENT_NODE_LEAVES ? COUNT - first : SEGMENT_NODE_LEAVES;
		struct tree_proof proof;
		assert_int_equal(segment_prove(leaves + first, count, i, kept, &root, &proof), OK);
		struct sha256 found = tree_proof_root(&proof);
		assert_true(sha256_equal(&proof.leaf, &leaves[i]) && sha256_equal(&found, &root));
	}
	struct tree_proof proof;
	const struct slice none = {"", 0}, fewer = slice_make(nodes, SHA256_SIZE);
	assert_int_equal(segment_prove(leaves, SEGMENT_NODE_LEAVES, 0, none, &root, &proof),
	                 ERR_INVALID_EVIDENCE);
	assert_int_equal(
		segment_prove(leaves, SEGMENT_NODE_LEAVES, SEGMENT_NODE_LEAVES, fewer, &root, &proof),
		ERR_INVALID_EVIDENCE);
	assert_int_equal(segment_prove(leaves, SEGMENT_NODE_LEAVES, 0, fewer, &root, &proof),
	                 ERR_INVALID_EVIDENCE);
	/* Leaves of another node. */
	assert_int_equal(segment_prove(leaves + 1, SEGMENT_NODE_LEAVES, 0, kept, &root, &proof),
	                 ERR_INVALID_EVIDENCE);
}

TEST_CASE(test_path)
{
	struct sha256 siblings[TREE_PROOF_MAX + 1] = {{{0}}};
	struct sha256 root = sha256_of("root", 4);
	struct tree_proof proof;
	siblings[1] = sha256_of("sibling", 7);
	assert_int_equal(segment_path(&root, slice_make(siblings, 2 * SHA256_SIZE), &proof), OK);
	assert_int_equal(proof.count, 2);
	assert_true(sha256_equal(&proof.leaf, &root) && sha256_equal(&proof.siblings[1], &siblings[1]));
	assert_int_equal(segment_path(&root, slice_of(""), &proof), OK);
	assert_int_equal(proof.count, 0);
	assert_int_equal(segment_path(&root, slice_make(siblings, 2 * SHA256_SIZE - 1), &proof),
	                 ERR_INVALID_EVIDENCE);
	assert_int_equal(segment_path(&root, slice_make(siblings, sizeof siblings), &proof),
	                 ERR_INVALID_EVIDENCE);
}

TEST_CASE(test_read)
{
	struct seal_document document = sample(), read;
	struct sha256 previous = sha256_of("token", 5);
	document.previous_token_hash = &previous;
	BUF_AUTO struct buf text = {.limit = SEAL_DOCUMENT_MAX + 1};
	BUF_AUTO struct buf again = {.limit = SEAL_DOCUMENT_MAX};
	seal_document_write(&document, &text);
	assert_int_equal(read_back(buf_slice(&text), &read), OK);
	assert_null(read.previous_seal_hash);
	assert_true(sha256_equal(read.previous_token_hash, &previous));
	seal_document_write(&read, &again);
	assert_string_equal(again.data, text.data);
	static const char *const altered[][2] = {
		{"{\"chain\"", " {\"chain\""},
		{"\"live\"", "\"LIVE\""},
		{"\"clock\":{", "\"clock\":{\"a\":1,"},
		{"\"max_error_us\":1500", "\"max_error_us\":-1"},
		{"\"synchronized\":true", "\"synchronized\":1"},
		{"\"count\":16", "\"count\":17"},
		{"\"first_sequence\":5,\"last_sequence\":20", "\"last_sequence\":20,\"first_sequence\":5"},
		{"\"first_sequence\":5", "\"first_sequence\":4"},
		{"\"last_sequence\":20", "\"last_sequence\":4"},
		{"\"previous_seal_hash\":null,", ""},
		{"\"previous_seal_hash\":null", "\"previous_seal_hash\":\"00\""},
		{"\"segment_id\":\"seg_1\"", "\"segment_id\":null"},
		{"\"v\":1}", "\"v\":2}"},
		{"\"v\":1}", "\"v\":1} "},
		{"\"v\":1}", "\"v\":1,\"w\":1}"},
		{"\"v\":1}", "\"v\":1"},
	};
	for (size_t i = 0; i < sizeof altered / sizeof *altered; i++) {
		const char *at = strstr(text.data, altered[i][0]);
		assert_non_null(at);
		buf_clear(&again);
		buf_add(&again, text.data, (size_t)(at - text.data));
		buf_add_text(&again, altered[i][1]);
		buf_add_text(&again, at + strlen(altered[i][0]));
		if (read_back(buf_slice(&again), &read) != ERR_INVALID_EVIDENCE)
			fail_msg("%s", again.data);
	}
	static const char *const refused[] = {"", "{}", "[]"};
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		assert_int_equal(read_back(slice_of(refused[i]), &read), ERR_INVALID_EVIDENCE);
}

/* Longer than any document ever written: reported as damage even when there is no memory to read
 * it. */
TEST_CASE(test_too_long)
{
	static char id[2 * READ_MEMORY];
	struct seal_document document = sample(), read;
	BUF_AUTO struct buf text = {.limit = 4 * READ_MEMORY};
	seal_document_write(&document, &text);
	size_t room = SEAL_DOCUMENT_MAX - (text.size - strlen(document.segment_id));
	memset(id, 'x', sizeof id - 1);
	const size_t sizes[] = {room, room + 1, sizeof id - 1};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		document.segment_id = id + (sizeof id - 1 - sizes[i]);
		buf_clear(&text);
		seal_document_write(&document, &text);
		int result = read_back(buf_slice(&text), &read);
		assert_int_equal(result, sizes[i] == room ? OK : ERR_INVALID_EVIDENCE);
	}
}

TEST_MAIN(NULL, NULL)
