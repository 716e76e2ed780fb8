#include "testing.h"

#include <stdlib.h>

#include "tlog/tiles.h"

#define LEAVES 70000
#define KEPT_LEVELS 3
#define KEPT_TILES 274

/* Tiles in memory. */
struct memory {
	struct {
		unsigned width;
		struct sha256 hashes[TILE_WIDTH];
	} tiles[KEPT_LEVELS][KEPT_TILES];
	size_t writes;
};

static int read_tile(void *context, const struct tile_id *id, struct sha256 *ret_hashes,
                     struct error *error)
{
	struct memory *memory = context;
	(void)error;
	assert_true(id->level < KEPT_LEVELS && id->index < KEPT_TILES);
	assert_true(id->width >= 1 && id->width <= memory->tiles[id->level][id->index].width);
	memcpy(ret_hashes, memory->tiles[id->level][id->index].hashes, id->width * sizeof *ret_hashes);
	return OK;
}

static int write_tile(void *context, const struct tile_id *id, const struct sha256 *hashes,
                      struct error *error)
{
	struct memory *memory = context;
	(void)error;
	assert_true(id->level < KEPT_LEVELS && id->index < KEPT_TILES);
	unsigned known = memory->tiles[id->level][id->index].width;
	assert_true(id->width > known && id->width <= TILE_WIDTH);
	assert_memory_equal(memory->tiles[id->level][id->index].hashes, hashes, known * sizeof *hashes);
	memcpy(memory->tiles[id->level][id->index].hashes, hashes, id->width * sizeof *hashes);
	memory->tiles[id->level][id->index].width = id->width;
	memory->writes++;
	return OK;
}

static struct sha256 leaf_number(uint64_t number)
{
	return merkle_leaf(slice_make(&number, sizeof number));
}

/* The root by the definition of RFC 6962. */
static struct sha256 root_of(const struct sha256 *leaves, size_t count)
{
	size_t half = 1;
	if (count == 0)
		return merkle_empty_root();
	if (count == 1)
		return leaves[0];
	while (half * 2 < count)
		half *= 2;
	const struct sha256 left = root_of(leaves, half), right = root_of(leaves + half, count - half);
	return merkle_node(&left, &right);
}

static struct sha256 *make_leaves(void)
{
	struct sha256 *leaves = malloc(LEAVES * sizeof *leaves);
	assert_non_null(leaves);
	for (size_t i = 0; i < LEAVES; i++)
		leaves[i] = leaf_number(i);
	return leaves;
}

static void assert_root(const struct tile_store *store, const struct sha256 *leaves, size_t size)
{
	static struct tile_reader reader;
	const struct merkle_source source = tile_reader_init(&reader, store, size);
	const struct sha256 expected = root_of(leaves, size);
	struct sha256 root;
	assert_int_equal(merkle_root(&source, size, &root, NULL), OK);
	assert_true(sha256_equal(&root, &expected));
}

/* Leaves come in runs of every kind of size, and the tree of each size is right. */
TEST_CASE(test_appending)
{
	static const size_t runs[] = {1, 1, 3, 250, 1, 1, 255, 256, 257, 5000, 59999};
	static struct memory memory;
	const struct tile_store store = {read_tile, write_tile, &memory};
	struct sha256 *leaves = make_leaves();
	size_t size = 0;
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
		size_t before = memory.writes;
		assert_int_equal(tiles_append(&store, size, leaves + size, runs[i], NULL), OK);
		size += runs[i];
		/* Each tile that changes is written once. */
		assert_true(memory.writes - before <= runs[i] / TILE_WIDTH + runs[i] / 65536 + 6);
		assert_root(&store, leaves, size);
	}
	/* The example of the specification: 273 full tiles and one of 112, one full tile and one of 17,
	 * one of 1. */
	assert_int_equal(tiles_append(&store, size, leaves + size, LEAVES - size, NULL), OK);
	assert_int_equal(memory.tiles[0][273].width, 112);
	assert_int_equal(memory.tiles[1][0].width, 256);
	assert_int_equal(memory.tiles[1][1].width, 17);
	assert_int_equal(memory.tiles[2][0].width, 1);
	free(leaves);
}

/* Proofs from tiles, of the whole tree and of earlier sizes. */
TEST_CASE(test_proofs)
{
	static struct memory memory;
	static struct tile_reader reader;
	const struct tile_store store = {read_tile, write_tile, &memory};
	struct sha256 *leaves = make_leaves();
	assert_int_equal(tiles_append(&store, 0, leaves, LEAVES, NULL), OK);
	for (size_t size = 1; size <= LEAVES; size = size * 3 + 1) {
		const struct merkle_source source = tile_reader_init(&reader, &store, size);
		const struct sha256 root = root_of(leaves, size);
		for (size_t index = 0; index < size; index += 1 + size / 50) {
			const struct sha256 old_root = root_of(leaves, index + 1);
			struct merkle_path path;
			assert_int_equal(merkle_prove_inclusion(&source, index, size, &path, NULL), OK);
			assert_true(merkle_is_included(&leaves[index], index, size, &path, &root));
			assert_int_equal(merkle_prove_consistency(&source, index + 1, size, &path, NULL), OK);
			assert_true(merkle_is_consistent(index + 1, &old_root, size, &root, &path));
		}
	}
	free(leaves);
}

TEST_CASE(test_widths)
{
	assert_int_equal(tile_width(0, 0, 0), 0);
	assert_int_equal(tile_width(0, 0, 1), 1);
	assert_int_equal(tile_width(0, 0, 256), 256);
	assert_int_equal(tile_width(0, 1, 256), 0);
	assert_int_equal(tile_width(1, 0, 255), 0);
	assert_int_equal(tile_width(1, 0, 256), 1);
	assert_int_equal(tile_width(TILE_ENTRIES, 273, 70000), 112);
	assert_int_equal(tile_width(0, 273, 70000), 112);
	assert_int_equal(tile_width(1, 1, 70000), 17);
	assert_int_equal(tile_width(2, 0, 70000), 1);
	assert_int_equal(tile_width(3, 0, 70000), 0);
	assert_int_equal(tile_width(6, 31, MERKLE_SIZE_MAX), 0);
	assert_int_equal(tile_width(6, 0, MERKLE_SIZE_MAX), 32);
}

static void assert_path(struct tile_id id, const char *expected)
{
	char path[TILE_PATH_SIZE];
	struct tile_id parsed;
	tile_path(&id, path);
	assert_string_equal(path, expected);
	assert_true(tile_path_parse(slice_of(path), &parsed));
	assert_int_equal(parsed.level, id.level);
	assert_int_equal(parsed.index, id.index);
	assert_int_equal(parsed.width, id.width);
}

TEST_CASE(test_paths)
{
	assert_path((struct tile_id){0, 0, 256}, "tile/0/000");
	assert_path((struct tile_id){0, 999, 1}, "tile/0/999.p/1");
	assert_path((struct tile_id){6, 1000, 255}, "tile/6/x001/000.p/255");
	assert_path((struct tile_id){1, 1234067, 256}, "tile/1/x001/x234/067");
	assert_path((struct tile_id){TILE_ENTRIES, 1234067, 8}, "tile/entries/x001/x234/067.p/8");
	assert_path((struct tile_id){TILE_ENTRIES, MERKLE_SIZE_MAX, 256},
	            "tile/entries/x009/x007/x199/x254/x740/992");
	static const char *const wrong[] = {"",
	                                    "tile",
	                                    "tile/",
	                                    "tile/0",
	                                    "tile/0/",
	                                    "tile/0/0",
	                                    "tile/0/00",
	                                    "tile/0/0000",
	                                    "tile/0/001/",
	                                    "tile/00/001",
	                                    "tile/7/000",
	                                    "tile/63/000",
	                                    "tile/-1/000",
	                                    "tile/0/x000/001",
	                                    "tile/0/001/002",
	                                    "tile/0/x001",
	                                    "tile/0/x001/x002",
	                                    "tile/0/000.p/0",
	                                    "tile/0/000.p/256",
	                                    "tile/0/000.p/08",
	                                    "tile/0/000.p/",
	                                    "tile/0/000.p",
	                                    "tile/0/000.p/1/",
	                                    "tile/0/000 ",
	                                    "/tile/0/000",
	                                    "tile/entries/0",
	                                    "tile/entry/000",
	                                    "tile/0/x009/x007/x199/x254/x740/993",
	                                    "tile/0/x999/x999/x999/x999/x999/x999/x999/999"};
	struct tile_id id;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (tile_path_parse(slice_of(wrong[i]), &id))
			fail_msg("%s was accepted", wrong[i]);
}

TEST_MAIN(NULL, NULL)
