/* `store check` of the log of segments: computes the tree of all entries, and compares it with each
 * round's size and root, and with the tiles. */
#include <inttypes.h>
#include <stdlib.h>

#include "store/check/checking.h"
#include "store/events/segments.h"
#include "store/tlog/append.h"

struct log_check {
	struct check *check;
	int64_t round;
	uint64_t size; /* entries so far */
	bool differs;  /* a problem was reported; the rest would differ, too */
	struct {
		struct tile_id id;
		struct sha256 hashes[TILE_WIDTH];
	} edge[TILE_LEVELS]; /* the last tile of each level */
	struct tile_reader reader;
	size_t count;
	struct sha256 leaves[ROUND_BLOCK_SEGMENTS_MAX]; /* of a block */
};

static void report(struct log_check *log, const char *words)
{
	check_problem(log->check, "round %lld: %s", (long long)log->round, words);
	log->differs = true;
}

/* ---- the tree ---- */

static int compare_tile(struct log_check *log, const struct tile_id *id,
                        const struct sha256 *hashes, struct error *error)
{
	struct db_query *query =
		db_query(log->check->reader, "SELECT hashes FROM log_tiles WHERE level = $1 AND tile = $2");
	db_bind(query, (int64_t)id->level, (int64_t)id->index);
	size_t size = id->width * sizeof *hashes;
	bool found = db_step(query);
	struct slice stored = found ? db_blob(query, 0) : slice_make(NULL, 0);
	bool same = stored.size >= size && memcmp(stored.data, hashes, size) == 0;
	int result = db_end(query, error);
	if (!result && !same) {
		check_problem(log->check, "the log of segments: tile %" PRIu64 " of level %d differs",
		              id->index, id->level);
		log->differs = true;
	}
	return result;
}

static int read_edge(void *context, const struct tile_id *id, struct sha256 *ret_hashes,
                     struct error *error)
{
	const struct log_check *log = context;
	(void)error;
	memcpy(ret_hashes, log->edge[id->level].hashes, id->width * sizeof *ret_hashes);
	return OK;
}

static int write_edge(void *context, const struct tile_id *id, const struct sha256 *hashes,
                      struct error *error)
{
	struct log_check *log = context;
	log->edge[id->level].id = *id;
	memcpy(log->edge[id->level].hashes, hashes, id->width * sizeof *hashes);
	return id->width == TILE_WIDTH ? compare_tile(log, id, hashes, error) : OK;
}

/* ---- rounds ---- */

/* Reads the leaves of a block. *ret_found false: the round has no such block. */
static int read_block(struct log_check *log, int64_t number, bool *ret_found, struct error *error)
{
	BUF_AUTO struct buf scratch;
	buf_init(&scratch, TLOG_ENTRY_MAX);
	struct db_query *query =
		db_query(log->check->reader, "SELECT log_first, log_entries, length(roots)"
	                                 " FROM round_blocks WHERE round = $1 AND block = $2");
	db_bind(query, log->round, number);
	bool found = db_step(query);
	int result = OK;
	if (found) {
		struct slice packed = db_is_null(query, 1) ? slice_make(NULL, 0) : db_blob(query, 1);
		log->count = packed.size / TLOG_ENTRY_PACKED_SIZE;
		bool continues = !db_is_null(query, 0) && (uint64_t)db_integer(query, 0) == log->size &&
		                 log->count <= ROUND_BLOCK_SEGMENTS_MAX &&
		                 packed.size % TLOG_ENTRY_PACKED_SIZE == 0 &&
		                 (size_t)db_integer(query, 2) == log->count * SHA256_SIZE;
		if (!continues)
			report(log, "a block does not continue the log of segments");
		for (size_t i = 0; i < log->count && continues && !result; i++) {
			const struct tlog_entry entry =
				tlog_entry_unpack((const uint8_t *)packed.data + i * TLOG_ENTRY_PACKED_SIZE);
			result = tlog_entry_leaf(&entry, &scratch, &log->leaves[i]);
		}
	}
	int ended = db_end(query, error);
	*ret_found = found;
	return result ? result : ended;
}

static int check_blocks(struct log_check *log, struct error *error)
{
	const struct tile_store tiles = {read_edge, write_edge, log};
	bool found = true;
	int result = OK;
	for (int64_t number = 0; found && !log->differs && !result; number++) {
		result = read_block(log, number, &found, error);
		if (result || !found || log->differs)
			break;
		result = tiles_append(&tiles, log->size, log->leaves, log->count, error);
		log->size += log->count;
	}
	return result;
}

static int check_round(struct log_check *log, uint64_t size, const struct sha256 *root,
                       struct error *error)
{
	const struct tile_store tiles = {.read = read_edge, .context = log};
	struct sha256 computed;
	int result = check_blocks(log, error);
	if (result || log->differs)
		return result;
	const struct merkle_source source = tile_reader_init(&log->reader, &tiles, log->size);
	result = merkle_root(&source, log->size, &computed, error);
	if (!result && (size != log->size || !sha256_equal(root, &computed)))
		report(log, "the log of segments has another size or root");
	return result;
}

/* Reads the next round with a size of the log. */
static int next_round(struct log_check *log, bool *ret_found, uint64_t *ret_size,
                      struct sha256 *ret_root, struct error *error)
{
	struct db_query *query =
		db_query(log->check->reader, "SELECT round, log_size, log_root FROM seal_rounds"
	                                 " WHERE round > $1 AND log_size IS NOT NULL"
	                                 " ORDER BY round LIMIT 1");
	db_bind_integer(query, log->round);
	*ret_found = db_step(query);
	if (*ret_found) {
		log->round = db_integer(query, 0);
		*ret_size = (uint64_t)db_integer(query, 1);
		*ret_root = store_sha256(db_blob(query, 2));
	}
	return db_end(query, error);
}

static int check_rounds(struct log_check *log, struct error *error)
{
	bool found = true;
	uint64_t size = 0;
	struct sha256 root;
	int result = OK;
	while (!result && found && !log->differs) {
		result = next_round(log, &found, &size, &root, error);
		if (!result && found)
			result = check_round(log, size, &root, error);
	}
	for (int level = 0; level < TILE_LEVELS && !result && !log->differs; level++) {
		const struct tile_id *id = &log->edge[level].id;
		if (id->width > 0)
			result = compare_tile(log, id, log->edge[level].hashes, error);
	}
	return result;
}

int check_segment_log(struct check *check, struct error *error)
{
	struct log_check *log = calloc(1, sizeof *log);
	if (!log)
		return ERR_NO_MEMORY;
	log->check = check;
	struct db_connection *reader = check_take_reader(check);
	int result = db_begin(reader, error);
	if (!result)
		result = check_rounds(log, error);
	if (!result)
		result = db_failure(reader);
	check_give_reader(check);
	free(log);
	return result;
}
