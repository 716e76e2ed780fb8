#include "tlog/tiles.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

unsigned tile_width(int level, uint64_t index, uint64_t size)
{
	unsigned height = level > 0 ? (unsigned)level * TILE_HEIGHT : 0;
	assert(level < TILE_LEVELS && size <= MERKLE_SIZE_MAX);
	uint64_t nodes = size >> height, before = index * TILE_WIDTH;
	if (index > MERKLE_SIZE_MAX || nodes <= before)
		return 0;
	return nodes - before < TILE_WIDTH ? (unsigned)(nodes - before) : TILE_WIDTH;
}

/* ---- paths ---- */

/* Writes an index in elements of three digits, all but the last of which begin with an x. */
static void add_index(uint64_t index, char path[TILE_PATH_SIZE])
{
	unsigned elements[8];
	size_t count = 0;
	do {
		assert(count < sizeof elements / sizeof *elements);
		elements[count++] = (unsigned)(index % 1000);
		index /= 1000;
	} while (index > 0);
	for (size_t size = strlen(path); count > 0; size = strlen(path)) {
		count--;
		snprintf(path + size, TILE_PATH_SIZE - size, "/%s%03u", count > 0 ? "x" : "",
		         elements[count]);
	}
}

void tile_path(const struct tile_id *id, char path[TILE_PATH_SIZE])
{
	assert(id->level < TILE_LEVELS && id->width >= 1 && id->width <= TILE_WIDTH);
	assert(id->index <= MERKLE_SIZE_MAX);
	if (id->level == TILE_ENTRIES)
		snprintf(path, TILE_PATH_SIZE, "tile/entries");
	else
		snprintf(path, TILE_PATH_SIZE, "tile/%d", id->level);
	add_index(id->index, path);
	size_t size = strlen(path);
	if (id->width < TILE_WIDTH)
		snprintf(path + size, TILE_PATH_SIZE - size, ".p/%u", id->width);
}

static bool take(struct slice *rest, const char *text)
{
	size_t size = strlen(text);
	if (rest->size < size || memcmp(rest->data, text, size) != 0)
		return false;
	*rest = slice_make(rest->data + size, rest->size - size);
	return true;
}

/* Reads up to `most` digits. */
static bool take_number(struct slice *rest, size_t most, uint64_t *ret)
{
	size_t used = 0;
	*ret = 0;
	for (; used < rest->size && used < most; used++) {
		char digit = rest->data[used];
		if (digit < '0' || digit > '9')
			break;
		*ret = *ret * 10 + (uint64_t)(digit - '0');
	}
	*rest = slice_make(rest->data + used, rest->size - used);
	return used > 0;
}

/* Too lenient about zeros and x: the caller compares with what tile_path writes. */
static bool take_index(struct slice *rest, uint64_t *ret)
{
	uint64_t element;
	*ret = 0;
	do {
		bool inner = take(rest, "x");
		if (!take_number(rest, 3, &element) || *ret > MERKLE_SIZE_MAX / 1000)
			return false;
		*ret = *ret * 1000 + element;
		if (!inner)
			return true;
	} while (take(rest, "/"));
	return false;
}

bool tile_path_parse(struct slice path, struct tile_id *ret)
{
	struct slice rest = path;
	uint64_t level = 0, width = TILE_WIDTH;
	*ret = (struct tile_id){.level = TILE_ENTRIES};
	if (!take(&rest, "tile/"))
		return false;
	if (!take(&rest, "entries/")) {
		if (!take_number(&rest, 2, &level) || level >= TILE_LEVELS || !take(&rest, "/"))
			return false;
		ret->level = (int)level;
	}
	if (!take_index(&rest, &ret->index) || ret->index > MERKLE_SIZE_MAX)
		return false;
	if (take(&rest, ".p/") && (!take_number(&rest, 3, &width) || width >= TILE_WIDTH))
		return false;
	if (width < 1 || rest.size > 0)
		return false;
	ret->width = (unsigned)width;
	char canonical[TILE_PATH_SIZE];
	tile_path(ret, canonical);
	return slice_is(path, canonical);
}

/* ---- reading ---- */

static int read_tile(struct tile_reader *reader, int level, uint64_t index, struct error *error)
{
	struct tile_id id = {level, index, tile_width(level, index, reader->size)};
	assert(id.width > 0);
	if (reader->kept[level].width == id.width && reader->kept[level].index == index)
		return OK;
	reader->kept[level].width = 0;
	int result =
		reader->store->read(reader->store->context, &id, reader->kept[level].hashes, error);
	if (!result) {
		reader->kept[level].width = id.width;
		reader->kept[level].index = index;
	}
	return result;
}

static int read_node(void *context, unsigned level, uint64_t index, struct sha256 *ret,
                     struct error *error)
{
	struct tile_reader *reader = context;
	unsigned above = level % TILE_HEIGHT;
	int tile_level = (int)(level / TILE_HEIGHT);
	uint64_t first = index << above; /* of the nodes that the tile has */
	int result = read_tile(reader, tile_level, first / TILE_WIDTH, error);
	if (result)
		return result;
	struct sha256 hashes[TILE_WIDTH / 2];
	const struct sha256 *from = &reader->kept[tile_level].hashes[first % TILE_WIDTH];
	assert(first % TILE_WIDTH + (UINT64_C(1) << above) <= reader->kept[tile_level].width);
	for (size_t count = (size_t)1 << above; count > 1; from = hashes) {
		count /= 2;
		for (size_t i = 0; i < count; i++)
			hashes[i] = merkle_node(&from[2 * i], &from[2 * i + 1]);
	}
	*ret = from[0];
	return OK;
}

struct merkle_source tile_reader_init(struct tile_reader *reader, const struct tile_store *store,
                                      uint64_t size)
{
	assert(size <= MERKLE_SIZE_MAX);
	reader->store = store;
	reader->size = size;
	for (int level = 0; level < TILE_LEVELS; level++)
		reader->kept[level].width = 0;
	return (struct merkle_source){read_node, reader};
}

/* ---- appending ---- */

struct sha256 tile_root(const struct sha256 hashes[TILE_WIDTH])
{
	struct sha256 level[TILE_WIDTH / 2];
	const struct sha256 *from = hashes;
	for (size_t count = TILE_WIDTH; count > 1; from = level) {
		count /= 2;
		for (size_t i = 0; i < count; i++)
			level[i] = merkle_node(&from[2 * i], &from[2 * i + 1]);
	}
	return level[0];
}

/* Appends nodes to one level. Writes the roots of the tiles that it fills over `nodes`, and returns
 * their number. */
static int append_level(const struct tile_store *store, int level, uint64_t nodes_before,
                        struct sha256 *nodes, size_t *count, struct error *error)
{
	struct sha256 hashes[TILE_WIDTH];
	size_t used = 0, filled = 0;
	struct tile_id id = {level, nodes_before / TILE_WIDTH, nodes_before % TILE_WIDTH};
	int result = id.width > 0 ? store->read(store->context, &id, hashes, error) : OK;
	while (!result && used < *count) {
		size_t room = TILE_WIDTH - id.width;
		size_t taken = *count - used < room ? *count - used : room;
		memcpy(hashes + id.width, nodes + used, taken * sizeof *nodes);
		used += taken;
		id.width += (unsigned)taken;
		result = store->write(store->context, &id, hashes, error);
		if (id.width == TILE_WIDTH) {
			assert(filled < used);
			nodes[filled++] = tile_root(hashes);
			id.index++;
			id.width = 0;
		}
	}
	*count = filled;
	return result;
}

int tiles_append(const struct tile_store *store, uint64_t size, const struct sha256 *leaves,
                 size_t count, struct error *error)
{
	assert(size <= MERKLE_SIZE_MAX && count <= MERKLE_SIZE_MAX - size);
	struct sha256 *nodes = malloc((count + 1) * sizeof *nodes);
	if (!nodes)
		return ERR_NO_MEMORY;
	memcpy(nodes, leaves, count * sizeof *nodes);
	int result = OK;
	for (int level = 0; !result && count > 0; level++)
		result = append_level(store, level, size >> (level * TILE_HEIGHT), nodes, &count, error);
	free(nodes);
	return result;
}
