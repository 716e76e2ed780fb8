#include "store/events/segments.h"

#include "store/transaction.h"

/* ---- chains with unsealed events ---- */

int store_list_unsealed(struct store *store, int64_t after_account, int64_t after_chain,
                        size_t limit, struct unsealed_chain *ret_chains, size_t *ret_count,
                        struct error *error)
{
	struct db_connection *connection;
	int result = begin_read(store, &connection, error);
	if (result)
		return result;
	struct db_query *query = db_query(
		connection, "SELECT u.account, u.chain, channel_id, last_sequence, sealed_sequence,"
					" sealed_segment, seal_hash, last_received_at FROM unsealed_chains u"
					" JOIN chains c ON c.account = u.account AND c.chain = u.chain"
					" JOIN channels h ON h.account = u.account AND h.channel = u.chain / 2"
					" WHERE (u.account, u.chain) > ($1, $2) AND last_sequence > sealed_sequence"
					" ORDER BY u.account, u.chain LIMIT $3");
	db_bind_integer(query, after_account);
	db_bind_integer(query, after_chain);
	db_bind_integer(query, (int64_t)limit);
	size_t count = 0;
	for (; count < limit && db_step(query); count++) {
		struct unsealed_chain *chain = &ret_chains[count];
		*chain = (struct unsealed_chain){
			.account = db_integer(query, 0),
			.chain = db_integer(query, 1),
			.last_sequence = db_integer(query, 3),
			.last_received_at_us = db_integer(query, 7),
			.sealed_sequence = db_integer(query, 4),
			.sealed_segment = db_integer(query, 5),
			.seal_hash = store_sha256(db_blob(query, 6)),
		};
		store_copy_id(chain->channel_id, db_text(query, 2));
	}
	result = end_read(connection, db_end(query, error));
	if (!result)
		*ret_count = count;
	return result;
}

/* ---- what a round reads ---- */

static int read_genesis_hash(struct db_connection *connection, int64_t account, int64_t chain,
                             struct sha256 *ret_hash, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT genesis_hash FROM chains WHERE account = $1 AND chain = $2");
	db_bind_integer(query, account);
	db_bind_integer(query, chain);
	bool found = db_step(query);
	if (found)
		*ret_hash = store_sha256(db_blob(query, 0));
	int result = db_end(query, error);
	return result ? result : found ? OK : ERR_NOT_FOUND;
}

static int read_event_hashes(struct db_connection *connection, int64_t account, int64_t chain,
                             int64_t first, int64_t last, struct sha256 *ret_hashes,
                             struct error *error)
{
	struct db_query *query =
		db_query_long(connection, "SELECT event, chain_hash FROM events"
	                              " WHERE account = $1 AND event BETWEEN $2 AND $3 ORDER BY event");
	db_bind_integer(query, account);
	db_bind_integer(query, event_number(chain, first));
	db_bind_integer(query, event_number(chain, last));
	int64_t next = first;
	for (; next <= last && db_step(query); next++) {
		struct slice hash = db_blob(query, 1);
		if (db_integer(query, 0) != event_number(chain, next) || hash.size != SHA256_SIZE)
			break;
		ret_hashes[next - first] = store_sha256(hash);
	}
	int result = db_end(query, error);
	if (result)
		return result;
	return next > last ? OK
	                   : error_cause(error, ERR_CORRUPT, "chain %lld: event %lld is missing",
	                                 (long long)chain, (long long)next);
}

int store_read_chain_hashes(struct store *store, int64_t account, int64_t chain, int64_t first,
                            int64_t last, struct sha256 *ret_hashes, struct error *error)
{
	struct db_connection *connection;
	int result = begin_read(store, &connection, error);
	if (result)
		return result;
	if (first == 0)
		result = read_genesis_hash(connection, account, chain, ret_hashes++, error);
	if (!result)
		result = read_event_hashes(connection, account, chain, first ? first : 1, last, ret_hashes,
		                           error);
	return end_read(connection, result);
}

/* ---- writing a round ---- */

static int write_segment(struct db_connection *connection, const struct segment_record *segment,
                         int64_t round, struct error *error)
{
	struct db_query *query = db_query(
		connection, "UPDATE chains SET sealed_sequence = $3, sealed_segment = $4, seal_hash = $5"
					" WHERE account = $1 AND chain = $2 AND sealed_sequence = $6 - 1"
					" AND sealed_segment = $4 - 1 AND last_sequence >= $3");
	db_bind_integer(query, segment->account);
	db_bind_integer(query, segment->chain);
	db_bind_integer(query, segment->last_sequence);
	db_bind_integer(query, segment->number);
	db_bind_blob(query, &segment->seal_hash, sizeof segment->seal_hash);
	db_bind_integer(query, segment->first_sequence);
	int64_t changes = 0;
	int result = db_execute(query, &changes, error);
	if (!result && changes != 1)
		return error_cause(error, ERR_REFUSED, "segment %s does not continue its chain",
		                   segment->segment_id);
	if (result)
		return result;
	query = db_query(connection,
	                 "INSERT INTO segments (account, chain, number, segment_id, first_sequence,"
	                 " last_sequence, round, root, document, nodes, path)"
	                 " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)");
	db_bind_integer(query, segment->account);
	db_bind_integer(query, segment->chain);
	db_bind_integer(query, segment->number);
	db_bind_string(query, segment->segment_id);
	db_bind_integer(query, segment->first_sequence);
	db_bind_integer(query, segment->last_sequence);
	db_bind_integer(query, round);
	db_bind_blob(query, &segment->root, sizeof segment->root);
	db_bind_text(query, segment->document);
	db_bind_blob(query, segment->nodes.data, segment->nodes.size);
	/* A round of one segment has an empty path, which is not NULL. */
	db_bind_blob(query, segment->path.size ? segment->path.data : "", segment->path.size);
	result = db_execute(query, NULL, error);
	if (result)
		return result;
	query = db_query(connection, "DELETE FROM unsealed_chains WHERE account = $1 AND chain = $2"
	                             " AND EXISTS (SELECT 1 FROM chains c WHERE c.account = $1"
	                             " AND c.chain = $2 AND last_sequence = sealed_sequence)");
	db_bind_integer(query, segment->account);
	db_bind_integer(query, segment->chain);
	/* The count is what makes all of this segment show its errors now, not at the next. */
	return db_execute(query, &changes, error);
}

static int insert_round(struct db_connection *connection, const struct round_record *round,
                        struct error *error)
{
	struct db_query *query = db_query(
		connection,
		"INSERT INTO seal_rounds (round, root, authority, kind, sealed_at, obtained_at, request,"
		" response_head, token, token_hash) SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10"
		" WHERE (SELECT COALESCE(MAX(round), 0) FROM seal_rounds) = $1 - 1");
	db_bind_integer(query, round->round);
	db_bind_blob(query, &round->root, sizeof round->root);
	db_bind_string(query, round->authority);
	db_bind_string(query, round->kind);
	db_bind_integer(query, round->sealed_at_us);
	db_bind_integer(query, round->obtained_at_us);
	db_bind_blob(query, round->request.data, round->request.size);
	db_bind_blob(query, round->response_head.data, round->response_head.size);
	db_bind_blob(query, round->token.data, round->token.size);
	db_bind_blob(query, &round->token_hash, sizeof round->token_hash);
	int64_t changes = 0;
	int result = db_execute(query, &changes, error);
	if (!result && changes != 1)
		return error_cause(error, ERR_REFUSED, "round %lld is not the next one",
		                   (long long)round->round);
	return result;
}

int store_write_round(struct store *store, const struct round_record *round,
                      const struct segment_record *segments, size_t count, size_t *ret_failed,
                      struct error *error)
{
	struct db_connection *connection;
	*ret_failed = count;
	int result = begin_write(store, &connection, error);
	if (result)
		return result;
	result = insert_round(connection, round, error);
	for (size_t i = 0; i < count && !result; i++) {
		result = write_segment(connection, &segments[i], round->round, error);
		if (result)
			*ret_failed = i;
	}
	return end_write(connection, result, error);
}

/* ---- reading ---- */

int store_last_round(struct store *store, int64_t *ret_round, struct sha256 *ret_token_hash,
                     struct error *error)
{
	struct db_connection *connection;
	int result = begin_read(store, &connection, error);
	if (result)
		return result;
	struct db_query *query = db_query(
		connection, "SELECT round, token_hash FROM seal_rounds ORDER BY round DESC LIMIT 1");
	int64_t round = 0;
	struct sha256 token_hash = {{0}};
	if (db_step(query)) {
		round = db_integer(query, 0);
		token_hash = store_sha256(db_blob(query, 1));
	}
	result = end_read(connection, db_end(query, error));
	if (!result) {
		*ret_round = round;
		*ret_token_hash = token_hash;
	}
	return result;
}

int store_last_seal_time(struct store *store, int64_t *ret_sealed_at_us, struct error *error)
{
	struct db_connection *connection;
	int result = begin_read(store, &connection, error);
	if (result)
		return result;
	struct db_query *query =
		db_query(connection, "SELECT sealed_at FROM seal_rounds ORDER BY round DESC LIMIT 1");
	int64_t sealed_at_us = db_step(query) ? db_integer(query, 0) : TIME_NONE;
	result = end_read(connection, db_end(query, error));
	if (!result)
		*ret_sealed_at_us = sealed_at_us;
	return result;
}

static struct slice row_bytes(struct row *row, int column)
{
	struct slice bytes = db_blob(row->query, column);
	const char *copy = arena_copy(row->arena, bytes.data, bytes.size);
	if (!copy)
		row->failed = true;
	return slice_make(copy, copy ? bytes.size : 0);
}

int store_get_round(struct store *store, int64_t round, struct arena *arena,
                    struct round_record *ret_round, struct error *error)
{
	struct db_connection *connection;
	int result = begin_read(store, &connection, error);
	if (result)
		return result;
	struct row row = {
		.arena = arena,
		.query = db_query(connection,
	                      "SELECT root, authority, kind, sealed_at, obtained_at, request,"
	                      " response_head, token, token_hash FROM seal_rounds WHERE round = $1")};
	db_bind_integer(row.query, round);
	struct round_record record = {.round = round};
	bool found = db_step(row.query);
	if (found) {
		record.root = store_sha256(db_blob(row.query, 0));
		record.authority = row_string(&row, 1);
		record.kind = row_string(&row, 2);
		record.sealed_at_us = db_integer(row.query, 3);
		record.obtained_at_us = db_integer(row.query, 4);
		record.request = row_bytes(&row, 5);
		record.response_head = row_bytes(&row, 6);
		record.token = row_bytes(&row, 7);
		record.token_hash = store_sha256(db_blob(row.query, 8));
	}
	result = end_read(connection, row_result(&row, found, error));
	if (!result)
		*ret_round = record;
	return result;
}

#define SEGMENT_COLUMNS                                                                            \
	"SELECT account, chain, number, segment_id, first_sequence, last_sequence, round, root,"       \
	" document, nodes, path FROM segments"

static int read_segment(struct row *row, struct segment_record *ret_segment, struct error *error)
{
	struct segment_record segment = {0};
	bool found = db_step(row->query);
	if (found) {
		segment.account = db_integer(row->query, 0);
		segment.chain = db_integer(row->query, 1);
		segment.number = db_integer(row->query, 2);
		store_copy_id(segment.segment_id, db_text(row->query, 3));
		segment.first_sequence = db_integer(row->query, 4);
		segment.last_sequence = db_integer(row->query, 5);
		segment.round = db_integer(row->query, 6);
		segment.root = store_sha256(db_blob(row->query, 7));
		segment.document = row_bytes(row, 8);
		segment.nodes = row_bytes(row, 9);
		segment.path = row_bytes(row, 10);
	}
	int result = row_result(row, found, error);
	if (!result)
		*ret_segment = segment;
	return result;
}

int store_find_segment(struct store *store, int64_t account, int64_t chain, int64_t sequence,
                       struct arena *arena, struct segment_record *ret_segment, struct error *error)
{
	struct db_connection *connection;
	int result = begin_read(store, &connection, error);
	if (result)
		return result;
	struct row row = {.arena = arena,
	                  .query = db_query(connection,
	                                    SEGMENT_COLUMNS " WHERE account = $1 AND chain = $2"
	                                                    " AND first_sequence <= $3"
	                                                    " ORDER BY first_sequence DESC LIMIT 1")};
	db_bind_integer(row.query, account);
	db_bind_integer(row.query, chain);
	db_bind_integer(row.query, sequence);
	struct segment_record segment;
	result = end_read(connection, read_segment(&row, &segment, error));
	if (!result && segment.last_sequence < sequence)
		return ERR_NOT_FOUND;
	if (!result)
		*ret_segment = segment;
	return result;
}

int store_get_segment(struct store *store, int64_t account, int64_t chain, int64_t number,
                      struct arena *arena, struct segment_record *ret_segment, struct error *error)
{
	struct db_connection *connection;
	int result = begin_read(store, &connection, error);
	if (result)
		return result;
	struct row row = {.arena = arena,
	                  .query =
	                      db_query(connection, SEGMENT_COLUMNS " WHERE account = $1 AND chain = $2"
	                                                           " AND number = $3")};
	db_bind_integer(row.query, account);
	db_bind_integer(row.query, chain);
	db_bind_integer(row.query, number);
	return end_read(connection, read_segment(&row, ret_segment, error));
}

int store_read_segment_rounds(struct store *store, int64_t account, int64_t chain, int64_t first,
                              int64_t last, int64_t *ret_rounds, struct error *error)
{
	struct db_connection *connection;
	int result = begin_read(store, &connection, error);
	if (result)
		return result;
	struct db_query *query =
		db_query_long(connection, "SELECT number, round FROM segments WHERE account = $1"
	                              " AND chain = $2 AND number BETWEEN $3 AND $4 ORDER BY number");
	db_bind_integer(query, account);
	db_bind_integer(query, chain);
	db_bind_integer(query, first);
	db_bind_integer(query, last);
	int64_t next = first;
	for (; next <= last && db_step(query) && db_integer(query, 0) == next; next++)
		ret_rounds[next - first] = db_integer(query, 1);
	result = db_end(query, error);
	if (!result && next <= last)
		result = error_cause(error, ERR_CORRUPT, "chain %lld: segment %lld is missing",
		                     (long long)chain, (long long)next);
	return end_read(connection, result);
}
