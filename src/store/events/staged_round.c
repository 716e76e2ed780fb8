/* The staged round: staging and unstaging of its blocks of segments. */
#include <assert.h>
#include <stdlib.h>

#include "store/events/staged_round.h"
#include "store/tlog/append.h"

/* ---- a block ---- */

static int advance_chain(struct db_connection *connection, const struct segment_record *segment,
                         int64_t round, struct error *error)
{
	struct db_query *query = db_query(
		connection, "UPDATE chains SET sealed_sequence = $3, sealed_segment = $4, seal_hash = $5,"
					" sealed_before = CASE WHEN sealed_round = $7 THEN sealed_before"
					" ELSE sealed_sequence END, sealed_round = $7"
					" WHERE account = $1 AND chain = $2 AND sealed_sequence = $6 - 1"
					" AND sealed_segment = $4 - 1 AND last_sequence >= $3"
					" AND ($4 = 1 OR seal_hash = $8)");
	db_bind(query, segment->account, segment->chain, segment->last_sequence, segment->number,
	        &segment->seal_hash, segment->first_sequence, round, &segment->previous_seal_hash);
	int64_t changes = 0;
	int result = db_execute(query, &changes, error);
	if (!result && changes != 1)
		return error_cause(error, ERR_REFUSED, "segment %s does not continue its chain",
		                   segment->segment_id);
	return result;
}

static int write_segment(struct db_connection *connection, const struct segment_record *segment,
                         int64_t round, int64_t place, struct error *error)
{
	assert(segment->first_sequence <= segment->last_sequence);
	assert(segment->document.size > 0 && segment->nodes.size > 0);
	bool is_audit = is_audit_chain(segment->chain);
	int result = is_audit ? stage_audit_records(connection, segment, error)
	                      : advance_chain(connection, segment, round, error);
	if (result)
		return result;
	struct db_query *query =
		db_query(connection, "INSERT INTO segments (account, chain, number, segment_id,"
	                         " first_sequence, last_sequence, round, root, document, nodes, path,"
	                         " place) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)");
	db_bind(query, segment->account, segment->chain, segment->number, segment->segment_id,
	        segment->first_sequence, segment->last_sequence, round, &segment->root,
	        segment->document, db_bytes(segment->nodes));
	db_bind_blob(query, "", 0);
	db_bind_integer(query, place);
	int64_t inserted = 0;
	result = db_execute(query, &inserted, error);
	if (result || is_audit)
		return result;
	query = db_query(connection, "DELETE FROM unsealed_chains WHERE account = $1 AND chain = $2"
	                             " AND EXISTS (SELECT 1 FROM chains c WHERE c.account = $1"
	                             " AND c.chain = $2 AND last_sequence = sealed_sequence)");
	db_bind(query, segment->account, segment->chain);
	/* Requesting the count makes an error show now rather than at the next statement. */
	int64_t changes = 0;
	return db_execute(query, &changes, error);
}

static int refuse_staged(int64_t round, int64_t blocks, struct error *error)
{
	return error_cause(error, ERR_REFUSED, "round %lld does not have %lld staged blocks",
	                   (long long)round, (long long)blocks);
}

int take_staged(struct db_connection *connection, int64_t round, int64_t blocks, int64_t next_round,
                int64_t next_blocks, struct error *error)
{
	struct db_query *query =
		db_query(connection, "UPDATE staged_round SET round = $3, blocks = $4,"
	                         " changes = changes + 1"
	                         " WHERE (round = $1 AND blocks = $2) OR ($2 = 0 AND round < $1)");
	db_bind(query, round, blocks, next_round, next_blocks);
	int64_t changes = 0;
	int result = db_execute(query, &changes, error);
	return result || changes == 1 ? result : refuse_staged(round, blocks, error);
}

/* Reads the row: ret->round, ->blocks and ->changes. */
static int read_staged_row(struct db_connection *connection, struct staged_round *ret,
                           struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT round, blocks, changes FROM staged_round");
	bool found = db_step(query);
	if (found) {
		ret->round = db_integer(query, 0);
		ret->blocks = db_integer(query, 1);
		ret->changes = db_integer(query, 2);
	}
	int result = db_end(query, error);
	if (!result && !found)
		return error_cause(error, ERR_CORRUPT, "the row in staged_round is missing");
	return result;
}

/* The blocks may have been removed and replaced by the same number of others. One change is that of
 * this transaction, which excludes all others. */
int check_staged_changes(struct db_connection *connection, const struct round_record *round,
                         struct error *error)
{
	struct staged_round row = {0};
	int result = read_staged_row(connection, &row, error);
	if (!result && row.changes != round->staged_changes + 1)
		return error_cause(error, ERR_REFUSED,
		                   "round %lld: the staged blocks were changed in the meantime",
		                   (long long)round->round);
	return result;
}

/* What the segments of a block add to the rounds and to the log. */
struct block_rows {
	struct sha256 roots[ROUND_BLOCK_SEGMENTS_MAX];
	uint8_t entries[ROUND_BLOCK_SEGMENTS_MAX][TLOG_ENTRY_PACKED_SIZE];
	struct sha256 leaves[ROUND_BLOCK_SEGMENTS_MAX]; /* of the entries */
};

static struct block_rows *make_rows(const struct segment_record *segments, size_t count)
{
	BUF_AUTO struct buf scratch;
	buf_init(&scratch, TLOG_ENTRY_MAX);
	struct block_rows *rows = malloc(sizeof *rows);
	for (size_t i = 0; rows && i < count; i++) {
		const struct tlog_entry entry = {segments[i].tag, segments[i].first_sequence,
		                                 segments[i].last_sequence, segments[i].chain_hash_last,
		                                 segments[i].seal_hash};
		rows->roots[i] = segments[i].root;
		tlog_entry_pack(&entry, rows->entries[i]);
		if (tlog_entry_leaf(&entry, &scratch, &rows->leaves[i])) {
			free(rows);
			rows = NULL;
		}
	}
	return rows;
}

static int insert_block(struct db_connection *connection, const struct round_block *block,
                        const struct block_rows *rows, size_t count,
                        const struct log_position *position, struct error *error)
{
	struct db_query *query = db_query(
		connection, "INSERT INTO round_blocks (round, block, roots, events, latest_received_at,"
					" log_first, log_entries) SELECT $1, $2, $3, $4, $5, $6, $7"
					" WHERE (SELECT COALESCE(MAX(round), 0) FROM seal_rounds) = $1 - 1");
	db_bind(query, block->round, block->number);
	db_bind_blob(query, rows->roots, count * sizeof *rows->roots);
	db_bind(query, block->events, block->latest_received_at_us,
	        db_value_if(position->is_open, (int64_t)position->size),
	        db_bytes(position->is_open ? slice_make(rows->entries, count * sizeof *rows->entries)
	                                   : slice_make(NULL, 0)));
	int64_t changes = 0;
	int result = db_execute(query, &changes, error);
	if (!result && changes != 1)
		return error_cause(error, ERR_REFUSED, "round %lld is not the next round",
		                   (long long)block->round);
	return result;
}

static int add_block(struct db_connection *connection, const struct round_block *block,
                     const struct block_rows *rows, size_t count, struct error *error)
{
	struct log_position position;
	int result = log_find_position(connection, block->round, block->number, &position, error);
	if (!result)
		result = insert_block(connection, block, rows, count, &position, error);
	if (!result && position.is_open)
		result = log_append(connection, position.size, rows->leaves, count, error);
	return result;
}

/* Checks whether take_staged would succeed; the row does not change while the writer lock is
 * held. */
static int check_staged(struct db_connection *connection, int64_t round, int64_t blocks,
                        struct error *error)
{
	struct staged_round row = {0};
	int result = read_staged_row(connection, &row, error);
	bool found = (row.round == round && row.blocks == blocks) || (blocks == 0 && row.round < round);
	return result || found ? result : refuse_staged(round, blocks, error);
}

int store_stage_block(struct store *store, const struct round_block *block,
                      const struct segment_record *segments, size_t count, size_t *ret_failed,
                      struct error *error)
{
	*ret_failed = count;
	if (count < 1 || count > ROUND_BLOCK_SEGMENTS_MAX)
		return error_cause(error, ERR_USAGE, "a block cannot have %zu segments", count);
	assert(block->round >= 1 && block->number >= 0 && block->events >= 0);
	assert(block->number < INT64_MAX / ROUND_BLOCK_SEGMENTS_MAX); /* places are packed of both */
	struct block_rows *rows = make_rows(segments, count);
	if (!rows)
		return ERR_NO_MEMORY;
	struct db_connection *connection = begin_write(store, &error);
	int result = check_staged(connection, block->round, block->number, error);
	for (size_t i = 0; i < count && !result; i++) {
		int64_t place = block->number * ROUND_BLOCK_SEGMENTS_MAX + (int64_t)i;
		result = write_segment(connection, &segments[i], block->round, place, error);
		if (result)
			*ret_failed = i;
	}
	/* After everything that may wait for other servers, because all accounts share these rows. */
	if (!result)
		result = add_block(connection, block, rows, count, error);
	if (!result)
		result = take_staged(connection, block->round, block->number, block->round,
		                     block->number + 1, error);
	free(rows);
	return end_write(connection, result, error);
}

/* ---- unstaging a block ---- */

struct staged_segment {
	int64_t account, chain, number, first_sequence;
};

/* Lists the segments of a block, the last one of a chain first. */
static int list_block(struct db_connection *connection, int64_t round, int64_t number,
                      struct staged_segment *ret_segments, size_t *ret_count, struct error *error)
{
	struct db_query *query =
		db_query_long(connection, "SELECT account, chain, number, first_sequence FROM segments"
	                              " WHERE round = $1 AND place BETWEEN $2 AND $3"
	                              " ORDER BY account, chain, number DESC");
	db_bind(query, round, number * ROUND_BLOCK_SEGMENTS_MAX,
	        (number + 1) * ROUND_BLOCK_SEGMENTS_MAX - 1);
	size_t count = 0;
	for (; count < ROUND_BLOCK_SEGMENTS_MAX && db_step(query); count++)
		ret_segments[count] = (struct staged_segment){db_integer(query, 0), db_integer(query, 1),
		                                              db_integer(query, 2), db_integer(query, 3)};
	*ret_count = count;
	return db_end(query, error);
}

/* Computes the digest of the previous segment's seal document. */
static int read_seal_hash(struct db_connection *connection, const struct staged_segment *segment,
                          struct sha256 *ret_hash, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT document FROM segments WHERE account = $1 AND chain = $2"
	                         " AND number = $3 - 1");
	db_bind(query, segment->account, segment->chain, segment->number);
	bool found = db_step(query);
	if (found) {
		struct slice document = db_text(query, 0);
		*ret_hash = sha256_of(document.data, document.size);
	}
	int result = db_end(query, error);
	if (!result && !found)
		return error_cause(error, ERR_CORRUPT, "chain %lld: segment %lld is missing",
		                   (long long)segment->chain, (long long)segment->number - 1);
	return result;
}

static int run_of_segment(struct db_connection *connection, const char *literal_sql,
                          const struct staged_segment *segment, bool with_number,
                          struct error *error)
{
	struct db_query *query = db_query(connection, literal_sql);
	db_bind(query, segment->account, segment->chain);
	if (with_number)
		db_bind_integer(query, segment->number);
	return db_execute(query, NULL, error);
}

static int unstage_segment(struct db_connection *connection, const struct staged_segment *segment,
                           struct error *error)
{
	struct sha256 hash;
	if (is_audit_chain(segment->chain))
		return unstage_audit_records(connection, segment->account, segment->chain, segment->number,
		                             segment->first_sequence, error);
	int result = segment->number > 1 ? read_seal_hash(connection, segment, &hash, error) : OK;
	if (result)
		return result;
	struct db_query *query = db_query(
		connection, "UPDATE chains SET sealed_sequence = $4 - 1, sealed_segment = $3 - 1,"
					" seal_hash = $5 WHERE account = $1 AND chain = $2 AND sealed_segment = $3");
	db_bind(query, segment->account, segment->chain, segment->number, segment->first_sequence,
	        segment->number > 1 ? &hash : NULL);
	int64_t changes = 0;
	result = db_execute(query, &changes, error);
	if (!result && changes != 1)
		return error_cause(error, ERR_REFUSED, "chain %lld: segment %lld is not the last segment",
		                   (long long)segment->chain, (long long)segment->number);
	if (!result)
		result = run_of_segment(connection,
		                        "DELETE FROM segments WHERE account = $1"
		                        " AND chain = $2 AND number = $3",
		                        segment, true, error);
	if (!result)
		result = run_of_segment(connection,
		                        "INSERT INTO unsealed_chains (account, chain)"
		                        " VALUES ($1, $2) ON CONFLICT DO NOTHING",
		                        segment, false, error);
	return result;
}

static int check_not_written(struct db_connection *connection, int64_t round, struct error *error)
{
	struct db_query *query = db_query(connection, "SELECT 1 FROM seal_rounds WHERE round = $1");
	db_bind_integer(query, round);
	bool found = db_step(query);
	int result = db_end(query, error);
	if (!result && found)
		return error_cause(error, ERR_REFUSED, "round %lld is already written", (long long)round);
	return result;
}

/* The block's own row may be missing, so the segments show what is staged. */
static int delete_block(struct db_connection *connection, int64_t round, int64_t number,
                        struct error *error)
{
	int result = check_not_written(connection, round, error);
	if (result)
		return result;
	struct db_query *query =
		db_query(connection, "DELETE FROM round_blocks WHERE round = $1 AND block = $2");
	db_bind(query, round, number);
	return db_execute(query, NULL, error);
}

int store_unstage_block(struct store *store, int64_t round, int64_t number, struct error *error)
{
	struct staged_segment *segments = calloc(ROUND_BLOCK_SEGMENTS_MAX, sizeof *segments);
	if (!segments)
		return ERR_NO_MEMORY;
	size_t count = 0;
	struct db_connection *connection = begin_write(store, &error);
	int result = take_staged(connection, round, number + 1, round, number, error)
		?: delete_block(connection, round, number, error)
		?: list_block(connection, round, number, segments, &count, error);
	for (size_t i = 0; i < count && !result; i++)
		result = unstage_segment(connection, &segments[i], error);
	free(segments);
	return end_write(connection, result, error);
}

/* ---- reading ---- */

/* A node that does not know the staged round writes rounds without updating the row. */
static int adjust_to_last_round(struct staged_round *staged, int64_t last, struct error *error)
{
	if (last < 0 || staged->blocks < 0)
		return error_cause(error, ERR_CORRUPT, "round %lld: %lld staged blocks, after round %lld",
		                   (long long)staged->round, (long long)staged->blocks, (long long)last);
	if (staged->round > last + 1)
		return error_cause(error, ERR_CORRUPT, "round %lld is staged, but the last round is %lld",
		                   (long long)staged->round, (long long)last);
	if (staged->round <= last)
		staged->blocks = 0;
	staged->round = last + 1;
	staged->has_previous = last > 0;
	return OK;
}

static int read_blocks(struct db_connection *connection, struct staged_round *staged,
                       struct error *error)
{
	struct db_query *query = db_query(connection, "SELECT COALESCE(MAX(latest_received_at), 0),"
	                                              " COUNT(*) - COUNT(log_first) FROM round_blocks"
	                                              " WHERE round = $1 AND block < $2");
	db_bind(query, staged->round, staged->blocks);
	if (db_step(query)) {
		staged->latest_received_at_us = db_integer(query, 0);
		staged->unlogged = db_integer(query, 1);
	}
	return db_end(query, error);
}

int store_get_staged_round(struct store *store, struct staged_round *ret, struct error *error)
{
	struct staged_round staged = {.latest_received_at_us = TIME_NONE};
	int64_t last;
	struct db_connection *connection = begin_read(store, &error);
	int result = read_last_round(connection, &last, &staged.previous_token_hash, error)
		?: read_staged_row(connection, &staged, error)
		?: adjust_to_last_round(&staged, last, error);
	if (!result && staged.blocks > 0)
		result = read_blocks(connection, &staged, error);
	result = end_read(connection, result);
	if (!result)
		*ret = staged;
	return result;
}

int store_read_block(struct store *store, int64_t round, int64_t number, struct arena *arena,
                     struct slice *ret_roots, int64_t *ret_events, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {.arena = arena,
	                  .query = db_query(connection, "SELECT roots, events FROM round_blocks"
	                                                " WHERE round = $1 AND block = $2")};
	db_bind(row.query, round, number);
	struct slice roots = {0};
	int64_t events = 0;
	bool found = db_step(row.query);
	if (found) {
		roots = row_bytes(&row, 0);
		events = db_integer(row.query, 1);
	}
	int result = end_read(connection, row_result(&row, found, error));
	if (!result) {
		*ret_roots = roots;
		*ret_events = events;
	}
	return result;
}
