#include "monitor/log_export.h"

#include <assert.h>
#include <inttypes.h>

#include "tlog/entry.h"

#define CHECKPOINT_NAME "checkpoint"
#define BUNDLE_SIZE_MAX ((size_t)TILE_WIDTH * (2 + TLOG_ENTRY_MAX))

struct log_copy {
	struct log_source *source;
	const struct log_target *target;
	uint64_t old_size, size;
	uint64_t written;
	struct tile_reader edge; /* its partial tiles, which lead to the root */
	struct tile_reader reader;
	struct error *error;
};

static int write_file(struct log_copy *copy, const char *path, struct slice data)
{
	int result = copy->target->write(copy->target->context, path, data, copy->error);
	copy->written += !result;
	return result;
}

/* ---- one tree ---- */

/* Checks that the partial tiles lead to the root, and that the tree begins with the copied one. */
static int check_tree(struct log_copy *copy, const struct checkpoint *old,
                      const struct checkpoint *checkpoint)
{
	const struct tile_store *tiles = &copy->source->tiles;
	const struct merkle_source edge = tile_reader_init(&copy->edge, tiles, copy->size);
	const struct merkle_source tree = tile_reader_init(&copy->reader, tiles, copy->size);
	struct merkle_path path = {0};
	struct sha256 root;
	int result = merkle_root(&edge, copy->size, &root, copy->error);
	if (!result && !sha256_equal(&root, &checkpoint->root))
		return error_cause(copy->error, ERR_INVALID_EVIDENCE,
		                   "the tiles do not lead to the root of the checkpoint");
	if (!result)
		result = merkle_prove_consistency(&tree, old->size, copy->size, &path, copy->error);
	if (!result && !merkle_is_consistent(old->size, &old->root, copy->size, &root, &path))
		return error_cause(copy->error, ERR_INVALID_EVIDENCE,
		                   "the tree of %" PRIu64 " entries does not begin with the copied one of "
		                   "%" PRIu64 ": the log was rewritten",
		                   copy->size, old->size);
	return result;
}

/* ---- files ---- */

/* Copies a bundle, whose entries must be the leaves of the tile beside it. */
static int copy_entries(struct log_copy *copy, const struct tile_id *tile,
                        const struct sha256 *hashes)
{
	const struct tile_id id = {TILE_ENTRIES, tile->index, tile->width};
	struct slice entries[TILE_WIDTH];
	char path[TILE_PATH_SIZE];
	BUF_AUTO struct buf bundle;
	buf_init(&bundle, BUNDLE_SIZE_MAX);
	tile_path(&id, path);
	int result = log_source_read_bundle(copy->source, id.index, id.width, entries, copy->error);
	for (unsigned i = 0; i < id.width && !result; i++) {
		const struct sha256 leaf = merkle_leaf(entries[i]);
		if (!sha256_equal(&leaf, &hashes[i]))
			return error_cause(copy->error, ERR_INVALID_EVIDENCE,
			                   "entry %u of %s is not the leaf of the tree", i, path);
		buf_add_byte(&bundle, (char)(entries[i].size >> 8));
		buf_add_byte(&bundle, (char)(entries[i].size & 0xff));
		buf_add_slice(&bundle, entries[i]);
	}
	if (!result)
		result = buf_check(&bundle);
	return result ? result : write_file(copy, path, buf_slice(&bundle));
}

static int write_tile(struct log_copy *copy, const struct tile_id *id, const struct sha256 *hashes)
{
	char path[TILE_PATH_SIZE];
	tile_path(id, path);
	int result = id->level == 0 ? copy_entries(copy, id, hashes) : OK;
	return result ? result
	              : write_file(copy, path,
	                           slice_make((const char *)hashes, id->width * sizeof *hashes));
}

/* Copies a full tile, whose root must be the hash of it in the tile above. */
static int copy_full(struct log_copy *copy, const struct tile_id *id, const struct sha256 *above,
                     struct sha256 *ret_hashes)
{
	char path[TILE_PATH_SIZE];
	int result = log_source_read_tile(copy->source, id, ret_hashes, copy->error);
	if (result)
		return result;
	const struct sha256 root = tile_root(ret_hashes);
	tile_path(id, path);
	return sha256_equal(&root, above)
	           ? write_tile(copy, id, ret_hashes)
	           : error_cause(copy->error, ERR_INVALID_EVIDENCE,
	                         "%s does not lead to the root of the checkpoint", path);
}

/* Copies the full tile of that index on the lowest level, and those above it that are not copied
 * yet. copy->reader keeps the last one of each level. */
static int copy_column(struct log_copy *copy, uint64_t index)
{
	const struct sha256 *above = NULL;
	int result = OK;
	for (int level = TILE_LEVELS - 1; level >= 0 && !result; level--) {
		const uint64_t at = index >> (TILE_HEIGHT * level);
		const struct tile_id id = {level, at, tile_width(level, at, copy->size)};
		if (id.width == 0)
			continue;
		bool is_full = id.width == TILE_WIDTH;
		struct sha256 *hashes =
			is_full ? copy->reader.kept[level].hashes : copy->edge.kept[level].hashes;
		if (is_full &&
		    (copy->reader.kept[level].width == 0 || copy->reader.kept[level].index != at)) {
			assert(above);
			result = copy_full(copy, &id, &above[at % TILE_WIDTH], hashes);
			copy->reader.kept[level].width = id.width;
			copy->reader.kept[level].index = at;
		}
		above = hashes;
	}
	return result;
}

/* Copies the partial tile of a level, if it has one that is not copied yet. */
static int copy_edge(struct log_copy *copy, int level)
{
	const uint64_t index = copy->size >> (TILE_HEIGHT * (level + 1));
	const struct tile_id id = {level, index, tile_width(level, index, copy->size)};
	if (id.width == 0 || id.width == tile_width(level, index, copy->old_size))
		return OK;
	assert(copy->edge.kept[level].index == index && copy->edge.kept[level].width == id.width);
	return write_tile(copy, &id, copy->edge.kept[level].hashes);
}

/* Copies what the tree has and the copy does not. */
static int copy_tiles(struct log_copy *copy)
{
	int result = OK;
	(void)tile_reader_init(&copy->reader, &copy->source->tiles, copy->size); /* keeps none */
	for (uint64_t i = copy->old_size / TILE_WIDTH; i < copy->size / TILE_WIDTH && !result; i++)
		result = copy_column(copy, i);
	for (int level = 0; level < TILE_LEVELS && !result; level++)
		result = copy_edge(copy, level);
	return result;
}

/* Reads the checkpoint of the copy, whose signature is not checked; size 0 if there is none. */
static int read_old(struct log_copy *copy, struct arena *arena, struct log_head *ret)
{
	BUF_AUTO struct buf note;
	buf_init(&note, NOTE_SIZE_MAX);
	*ret = (struct log_head){.checkpoint = {.root = merkle_empty_root()}};
	int result = copy->target->read(copy->target->context, CHECKPOINT_NAME, &note, copy->error);
	if (result == ERR_NOT_FOUND) {
		error_clear(copy->error);
		return OK;
	}
	return result ? result : log_head_judge(arena, buf_slice(&note), NULL, ret, copy->error);
}

static int check_heads(const struct log_copy *copy, const struct log_head *old,
                       const struct checkpoint *checkpoint)
{
	const uint64_t old_size = old->checkpoint.size;
	char name[LOG_HEAD_NAME_SIZE];
	if (old_size > 0 && strcmp(old->checkpoint.origin, checkpoint->origin) != 0)
		return error_cause(copy->error, ERR_REFUSED,
		                   "the target has the log %.100s; each log needs a place of its own",
		                   log_head_name(old, name));
	return old_size <= checkpoint->size
	           ? OK
	           : error_cause(copy->error, ERR_INVALID_EVIDENCE,
	                         "the target has %" PRIu64 " entries, more than the log's %" PRIu64,
	                         old_size, checkpoint->size);
}

int log_export(struct log_source *source, const struct policy *policy,
               const struct log_target *target, struct arena *arena, struct log_export_result *ret,
               struct error *error)
{
	struct log_copy *copy = arena_alloc(arena, sizeof *copy);
	struct log_head old;
	char name[LOG_HEAD_NAME_SIZE];
	if (!copy)
		return ERR_NO_MEMORY;
	*copy = (struct log_copy){.source = source, .target = target, .error = error};
	int result = log_head_read(arena, source, policy, &ret->head, error);
	if (!result && policy && !ret->head.is_signed)
		return error_cause(error, ERR_REFUSED,
		                   "the checkpoint is not signed by the given key of %s",
		                   log_head_name(&ret->head, name));
	if (!result)
		result = read_old(copy, arena, &old);
	if (!result)
		result = check_heads(copy, &old, &ret->head.checkpoint);
	if (result)
		return result;
	copy->old_size = old.checkpoint.size;
	copy->size = ret->head.checkpoint.size;
	result = check_tree(copy, &old.checkpoint, &ret->head.checkpoint);
	if (!result)
		result = copy_tiles(copy);
	if (!result)
		result = write_file(copy, CHECKPOINT_NAME, ret->head.note);
	ret->size_before = copy->old_size;
	ret->files_written = copy->written;
	return result;
}
