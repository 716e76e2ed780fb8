#include "support.h"

#include "seal/tree.h"

static struct sha256 leaf_number(size_t number)
{
	uint32_t value = (uint32_t)number;

	return sha256_of(&value, sizeof value);
}

static struct sha256 *make_leaves(size_t count)
{
	struct sha256 *leaves = calloc(count, sizeof *leaves);

	assert_non_null(leaves);
	for (size_t i = 0; i < count; i++)
		leaves[i] = leaf_number(i);
	return leaves;
}

static struct sha256 root_of(const struct sha256 *leaves, size_t count)
{
	TREE_AUTO struct hash_tree *tree = NULL;

	assert_int_equal(tree_build(leaves, count, &tree), 0);
	return tree_root(tree);
}

static void assert_hex(struct sha256 hash, const char *expected)
{
	char text[65];

	hex_encode(hash.bytes, SHA256_SIZE, text);
	assert_string_equal(text, expected);
}

/* Roots over SHA-256("A"), SHA-256("B"), …, computed independently with Python's hashlib. */
TEST_CASE(test_known_roots)
{
	struct sha256 leaves[5];

	for (size_t i = 0; i < 5; i++)
		leaves[i] = sha256_of(&"ABCDE"[i], 1);
	assert_hex(root_of(leaves, 1),
	           "559aead08264d5795d3909718cdd05abd49572e84fe55590eef31a88a08fdffd");
	assert_hex(root_of(leaves, 2),
	           "63956f0ce48edc48a0d528cb0b5d58e4d625afb14d63ca1bb9950eb657d61f40");
	assert_hex(root_of(leaves, 3),
	           "dbe11e36aa89a963103de7f8ad09c1100c06ccd5c5ad424ca741efb0689dc427");
	assert_hex(root_of(leaves, 5),
	           "7b7fde2e3d60b488869103a319033a6879d82c33a5fba499d4ef96bc63623da8");
}

static void assert_every_proof(size_t count, size_t step)
{
	TREE_AUTO struct hash_tree *tree = NULL;
	struct sha256 *leaves = make_leaves(count);

	assert_int_equal(tree_build(leaves, count, &tree), 0);
	struct sha256 root = tree_root(tree);
	for (size_t i = 0; i < count; i += step) {
		struct tree_proof proof;
		tree_prove(tree, i, &proof);
		assert_memory_equal(proof.leaf.bytes, leaves[i].bytes, SHA256_SIZE);
		struct sha256 reached = tree_proof_root(&proof);
		if (!sha256_equal(&reached, &root))
			fail_msg("leaf %zu of %zu", i, count);
		assert_true(count == 1 || proof.count > 0);
		proof.leaf = leaf_number(i + 1);
		reached = tree_proof_root(&proof);
		/* Because of sorting, both of a pair have the same proof. */
		bool is_sibling = (i ^ 1) == i + 1 && i + 1 < count;
		assert_false(!is_sibling && sha256_equal(&reached, &root));
	}
	free(leaves);
}

TEST_CASE(test_every_leaf_is_proven)
{
	for (size_t count = 1; count <= 70; count++)
		assert_every_proof(count, 1);
	assert_every_proof(16385, 1);
	assert_every_proof(100000, 997);
	assert_every_proof(TREE_LEAVES_MAX, 4099);
}

TEST_CASE(test_path_lengths)
{
	static const struct {
		size_t count, index, length;
	} cases[] = {
		{1, 0, 0}, {2, 0, 1},      {3, 2, 1},         {5, 4, 1},      {5, 0, 3},
		{6, 5, 2}, {16384, 0, 14}, {16385, 16384, 1}, {16385, 0, 15}, {TREE_LEAVES_MAX, 5, 17}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		TREE_AUTO struct hash_tree *tree = NULL;
		struct sha256 *leaves = make_leaves(cases[i].count);
		struct tree_proof proof;
		assert_int_equal(tree_build(leaves, cases[i].count, &tree), 0);
		tree_prove(tree, cases[i].index, &proof);
		assert_int_equal(proof.count, cases[i].length);
		free(leaves);
	}
}

/* A leaf of a segment, through the round over the roots of several segments. */
TEST_CASE(test_composition)
{
	for (size_t roots_count = 1; roots_count <= 5; roots_count++) {
		TREE_AUTO struct hash_tree *segment = NULL;
		TREE_AUTO struct hash_tree *round_tree = NULL;
		struct tree_proof lower, upper, whole;
		struct sha256 *leaves = make_leaves(7);
		struct sha256 roots[5];

		assert_int_equal(tree_build(leaves, 7, &segment), 0);
		for (size_t i = 0; i < roots_count; i++)
			roots[i] = leaf_number(1000 + i);
		roots[roots_count - 1] = tree_root(segment);
		assert_int_equal(tree_build(roots, roots_count, &round_tree), 0);
		tree_prove(segment, 3, &lower);
		tree_prove(round_tree, roots_count - 1, &upper);
		assert_int_equal(tree_proof_compose(&lower, &upper, &whole), 0);
		struct sha256 reached = tree_proof_root(&whole);
		struct sha256 root = tree_root(round_tree);
		assert_memory_equal(reached.bytes, root.bytes, SHA256_SIZE);
		assert_int_equal(whole.count, lower.count + upper.count);

		upper.leaf.bytes[0] ^= 1;
		assert_int_equal(tree_proof_compose(&lower, &upper, &whole), ERR_INVALID_EVIDENCE);
		free(leaves);
	}
}

TEST_CASE(test_composition_limit)
{
	struct tree_proof lower = {.count = TREE_PROOF_MAX};
	struct tree_proof upper = {.count = 1};
	struct tree_proof whole;

	upper.leaf = tree_proof_root(&lower);
	assert_int_equal(tree_proof_compose(&lower, &upper, &whole), ERR_INVALID_EVIDENCE);
	upper.count = 0;
	assert_int_equal(tree_proof_compose(&lower, &upper, &whole), 0);
}

static struct json *parse(struct arena *arena, struct slice text)
{
	struct json *json = NULL;

	assert_int_equal(json_parse(arena, text, NULL, &json, NULL), 0);
	return json;
}

/* The root that a reducedHashtree leads to (RFC 4998 section 4.3); each list must be ascending, and
 * the first one must hold the leaf. */
static struct sha256 reduced_root(const struct json *lists, const struct sha256 *leaf)
{
	struct sha256 node = *leaf;

	for (const struct json *list = lists->first; list; list = list->next) {
		struct sha256 hashes[2];
		size_t count = 0;
		bool has_node = false;
		for (const struct json *item = list->first; item; item = item->next, count++) {
			assert_true(count < 2);
			assert_true(hex_decode(item->text, hashes[count].bytes, SHA256_SIZE));
			has_node = has_node || sha256_equal(&hashes[count], &node);
		}
		if (list == lists->first)
			assert_true(count == 2 && has_node && memcmp(&hashes[0], &hashes[1], SHA256_SIZE) <= 0);
		else
			assert_int_equal(count, 1);
		if (count == 1) {
			bool node_first = memcmp(&node, &hashes[0], SHA256_SIZE) <= 0;
			hashes[node_first] = hashes[0];
			hashes[!node_first] = node;
		}
		node = sha256_of(hashes, sizeof hashes);
	}
	return node;
}

TEST_CASE(test_json)
{
	for (size_t count = 1; count <= 9; count++) {
		TREE_AUTO struct hash_tree *tree = NULL;
		struct sha256 *leaves = make_leaves(count);
		assert_int_equal(tree_build(leaves, count, &tree), 0);
		for (size_t i = 0; i < count; i++) {
			struct tree_proof proof;
			ARENA_AUTO struct arena arena = {.limit = 1 << 20};
			BUF_AUTO struct buf text = {.limit = 65536};
			struct json_writer writer = {.out = &text};
			tree_prove(tree, i, &proof);
			tree_proof_write(&proof, &writer, NULL);
			struct json *json = parse(&arena, buf_slice(&text));
			assert_int_equal(json->count, proof.count);
			struct sha256 root = tree_root(tree), reached = reduced_root(json, &leaves[i]);
			assert_true(sha256_equal(&reached, &root));
		}
		free(leaves);
	}
}

TEST_MAIN(NULL, NULL)
