/* Archive timestamps and the leaves staged for them. */
#include <assert.h>

#include "store/evidence/evidence_rows.h"
#include "store/notices/subscribers.h"

static const char *const algorithm_texts[DIGEST_ALGORITHM_COUNT] = {"sha-256", "sha-384",
                                                                    "sha-512"};

const char *evidence_algorithm_text(enum digest_algorithm algorithm)
{
	assert((unsigned)algorithm < DIGEST_ALGORITHM_COUNT);
	return algorithm_texts[algorithm];
}

bool evidence_algorithm_of(struct slice text, enum digest_algorithm *ret_algorithm)
{
	for (int i = 0; i < DIGEST_ALGORITHM_COUNT; i++)
		if (slice_is(text, algorithm_texts[i])) {
			*ret_algorithm = (enum digest_algorithm)i;
			return true;
		}
	return false;
}

/* ---- staging ---- */

static int read_staged(struct db_connection *connection, struct staged_stamp *ret,
                       struct error *error)
{
	struct db_query *query = db_query(
		connection, "SELECT n.next, (SELECT COUNT(*) FROM archive_timestamp_blocks b"
					" WHERE b.stamp = n.next),"
					" (SELECT MIN(b.algorithm) FROM archive_timestamp_blocks b"
					" WHERE b.stamp = n.next), (SELECT MAX(b.algorithm)"
					" FROM archive_timestamp_blocks b WHERE b.stamp = n.next)"
					" FROM (SELECT COALESCE(MAX(stamp), 0) + 1 AS next FROM archive_timestamps) n");
	bool found = db_step(query);
	if (found) {
		enum digest_algorithm last = DIGEST_SHA256;
		*ret = (struct staged_stamp){
			.stamp = db_integer(query, 0), .blocks = db_integer(query, 1), .algorithm = last};
		ret->is_damaged =
			ret->blocks > 0 &&
			(!evidence_algorithm_of(db_text(query, 2), &ret->algorithm) ||
		     !evidence_algorithm_of(db_text(query, 3), &last) || ret->algorithm != last);
	}
	int result = db_end(query, error);
	if (!result && !found)
		return error_cause(error, ERR_CORRUPT, "the staged archive timestamp cannot be read");
	return result;
}

int store_get_staged_stamp(struct store *store, struct staged_stamp *ret, struct error *error)
{
	struct staged_stamp staged;
	struct db_connection *connection = begin_read(store, &error);
	int result = end_read(connection, read_staged(connection, &staged, error));
	if (!result)
		*ret = staged;
	return result;
}

/* In a write transaction, which excludes all others. */
static int check_staged(struct db_connection *connection, int64_t stamp, int64_t blocks,
                        struct error *error)
{
	struct staged_stamp found;
	int result = read_staged(connection, &found, error);
	if (!result && (found.stamp != stamp || found.blocks != blocks))
		return error_cause(error, ERR_REFUSED,
		                   "archive timestamp %lld does not have %lld staged blocks",
		                   (long long)stamp, (long long)blocks);
	return result;
}

static int insert_block(struct db_connection *connection, const struct staged_stamp *staged,
                        const struct evidence_leaf *leaves, size_t count, int64_t now_us,
                        struct error *error)
{
	BUF_AUTO struct buf hashes;
	buf_init(&hashes, EVIDENCE_LEAVES_MAX * DIGEST_SIZE_MAX);
	for (size_t i = 0; i < count; i++) {
		assert(leaves[i].digest.algorithm == staged->algorithm); /* a block is cut by its size */
		buf_add_slice(&hashes, digest_slice(&leaves[i].digest));
	}
	int result = buf_check(&hashes);
	if (result)
		return result;
	assert(hashes.size == count * digest_size(staged->algorithm));
	struct db_query *query =
		db_query(connection, "INSERT INTO archive_timestamp_blocks (stamp, block, algorithm,"
	                         " leaves, staged_at) VALUES ($1, $2, $3, $4, $5)");
	db_bind(query, staged->stamp, staged->blocks, evidence_algorithm_text(staged->algorithm),
	        db_bytes(buf_slice(&hashes)), now_us);
	int64_t changes = 0;
	return db_execute(query, &changes, error);
}

int store_stage_leaves(struct store *store, const struct staged_stamp *staged,
                       const struct evidence_leaf *leaves, size_t count, int64_t now_us,
                       size_t *ret_failed, struct error *error)
{
	*ret_failed = count;
	if (count < 1 || count > EVIDENCE_LEAVES_MAX)
		return error_cause(error, ERR_USAGE, "a block cannot have %zu leaves", count);
	assert(staged->stamp >= 1 && staged->blocks >= 0);
	assert(staged->blocks < INT64_MAX / EVIDENCE_LEAVES_MAX); /* places are packed of both */
	struct db_connection *connection = begin_write(store, &error);
	int result = check_staged(connection, staged->stamp, staged->blocks, error);
	if (!result)
		result = insert_block(connection, staged, leaves, count, now_us, error);
	for (size_t i = 0; i < count && !result; i++) {
		const struct evidence_leaf *leaf = &leaves[i];
		int64_t place = staged->blocks * EVIDENCE_LEAVES_MAX + (int64_t)i;
		result = leaf->is_token
		             ? cover_token(connection, &leaf->token, staged->stamp, place, error)
		             : write_evidence_chain(connection, &leaf->chain, staged->stamp, place, error);
		if (result)
			*ret_failed = i;
	}
	return end_write(connection, result, error);
}

int store_read_leaves(struct store *store, int64_t stamp, int64_t block, struct arena *arena,
                      struct slice *ret_leaves, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {.arena = arena,
	                  .query = db_query(connection, "SELECT leaves FROM archive_timestamp_blocks"
	                                                " WHERE stamp = $1 AND block = $2")};
	db_bind(row.query, stamp, block);
	bool found = db_step(row.query);
	struct slice leaves = found ? row_bytes(&row, 0) : slice_make(NULL, 0);
	int result = end_read(connection, row_result(&row, found, error));
	if (!result)
		*ret_leaves = leaves;
	return result;
}

/* ---- the archive timestamp ---- */

int store_strongest_stamp(struct store *store, enum digest_algorithm *ret_algorithm,
                          struct error *error)
{
	enum digest_algorithm strongest = DIGEST_SHA256;
	struct db_connection *connection = begin_read(store, &error);
	/* The alphabetical order of the names is the order of strength. */
	struct db_query *query = db_query(connection, "SELECT MAX(algorithm) FROM archive_timestamps"
	                                              " WHERE algorithm IN ('sha-256', 'sha-512')");
	bool known = !db_step(query) || db_is_null(query, 0) ||
	             evidence_algorithm_of(db_text(query, 0), &strongest);
	int result = end_read(connection, db_end(query, error));
	if (!result && !known)
		return error_cause(error, ERR_CORRUPT,
		                   "an archive timestamp has an unknown digest algorithm");
	if (!result)
		*ret_algorithm = strongest;
	return result;
}

static int insert_stamp(struct db_connection *connection, const struct archive_timestamp *stamp,
                        struct error *error)
{
	struct db_query *query = db_query(
		connection, "INSERT INTO archive_timestamps (stamp, algorithm, authority, kind, stamped_at,"
					" obtained_at, request, token, blocks)"
					" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)");
	db_bind(query, stamp->stamp, evidence_algorithm_text(stamp->algorithm), stamp->authority,
	        stamp->kind, stamp->stamped_at_us, stamp->obtained_at_us, db_bytes(stamp->request),
	        db_bytes(stamp->token), db_bytes(stamp->blocks));
	int64_t changes = 0;
	return db_execute(query, &changes, error);
}

/* A token that expired between staging and now is not preserved by a token that came too late. A
 * token that is valid for longer than the new one is retried when half of its remaining time has
 * passed, because a later archive timestamp may last longer. */
static int uncover_others(struct db_connection *connection, const struct archive_timestamp *stamp,
                          struct error *error)
{
	struct db_query *query =
		db_query(connection, "UPDATE tokens_at_rest SET stamp = NULL, place = NULL,"
	                         " next_attempt_at = $2 + (valid_until - $2) / 2"
	                         " WHERE stamp = $1 AND (valid_until < $2 OR valid_until > $3)");
	db_bind(query, stamp->stamp, stamp->stamped_at_us, stamp->valid_until_us);
	int64_t changes = 0;
	return db_execute(query, &changes, error);
}

int store_write_archive_timestamp(struct store *store, const struct archive_timestamp *stamp,
                                  int64_t blocks, struct error *error)
{
	const struct renewable_token own = {.source = TOKEN_STAMP,
	                                    .number = stamp->stamp,
	                                    .stamped_at_us = stamp->stamped_at_us,
	                                    .valid_until_us = stamp->valid_until_us};
	assert(blocks >= 1 && stamp->token.size > 0);
	assert(stamp->blocks.size == (size_t)blocks * digest_size(stamp->algorithm));
	struct db_connection *connection = begin_write(store, &error);
	int result = check_staged(connection, stamp->stamp, blocks, error)
		?: insert_stamp(connection, stamp, error)
		?: uncover_others(connection, stamp, error)
		?: write_renewable_token(connection, &own, error)
		?: write_evidence_notices(connection, stamp->stamp, stamp->stamped_at_us, error);
	return end_write(connection, result, error);
}

int store_get_archive_timestamp(struct store *store, int64_t stamp, struct arena *arena,
                                struct archive_timestamp *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {
		.arena = arena,
		.query = db_query(connection, "SELECT algorithm, authority, kind, stamped_at, obtained_at,"
	                                  " request, token, blocks FROM archive_timestamps"
	                                  " WHERE stamp = $1")};
	db_bind_integer(row.query, stamp);
	bool found = db_step(row.query), known = true;
	struct archive_timestamp read = {.stamp = stamp, .valid_until_us = TIME_NONE};
	if (found) {
		known = evidence_algorithm_of(db_text(row.query, 0), &read.algorithm);
		read.authority = row_string(&row, 1);
		read.kind = row_string(&row, 2);
		read.stamped_at_us = db_integer(row.query, 3);
		read.obtained_at_us = db_integer(row.query, 4);
		read.request = row_bytes(&row, 5);
		read.token = row_bytes(&row, 6);
		read.blocks = row_bytes(&row, 7);
	}
	int result = end_read(connection, row_result(&row, found, error));
	if (!result && !known)
		return error_cause(error, ERR_CORRUPT, "archive timestamp %lld cannot be read",
		                   (long long)stamp);
	if (!result)
		*ret = read;
	return result;
}
