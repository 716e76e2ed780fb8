#include "store/events/digest_runs.h"

#include <assert.h>
#include <endian.h>
#include <string.h>
#include <zlib.h>

#include "base/tuned.h"

/* ---- entries ---- */

static uint64_t rotate(uint64_t word, int bits)
{
	return word << bits | word >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] = rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] = rotate(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_round(v);
	sip_round(v);
	v[0] ^= word;
}

/* J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", 2012. The message consists of
 * whole words: the chain, and the digest in little-endian order. */
uint64_t digest_hash(const struct digest_key *key, int64_t chain, const void *digest, size_t size)
{
	assert(size % sizeof(uint64_t) == 0);
	uint64_t v[4] = {
		key->words[0] ^ UINT64_C(0x736f6d6570736575),
		key->words[1] ^ UINT64_C(0x646f72616e646f6d),
		key->words[0] ^ UINT64_C(0x6c7967656e657261),
		key->words[1] ^ UINT64_C(0x7465646279746573),
	};
	sip_word(v, (uint64_t)chain);
	for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
		uint64_t word;
		memcpy(&word, (const char *)digest + at, sizeof word);
		sip_word(v, word);
	}
	sip_word(v, (uint64_t)(size + sizeof(uint64_t)) << 56);
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(v);
	return (v[0] ^ v[1] ^ v[2] ^ v[3]) >> 16;
}

int digest_entry_compare(const struct digest_entry *left, const struct digest_entry *right)
{
	if (left->hash != right->hash)
		return left->hash < right->hash ? -1 : 1;
	return (left->position > right->position) - (left->position < right->position);
}

/* Sorts by digits of a byte, from the last to the first. Each pass keeps the order of equal digits,
 * so positions stay in ascending order. */
void digest_entries_sort(struct digest_entry *entries, struct digest_entry *other, size_t count)
{
	struct digest_entry *from = entries, *to = other;
	for (int shift = 0; shift < 48; shift += 8) {
		size_t places[257] = {0};
		for (size_t i = 0; i < count; i++)
			places[(from[i].hash >> shift & 255) + 1]++;
		for (int digit = 0; digit < 256; digit++)
			places[digit + 1] += places[digit];
		for (size_t i = 0; i < count; i++)
			to[places[from[i].hash >> shift & 255]++] = from[i];
		struct digest_entry *last = from;
		from = to;
		to = last;
	}
	assert(from == entries); /* after an even number of passes */
}

/* Big-endian, so that memcmp and both engines order them as digest_entry_compare does. */
static void pack(const struct digest_run *run, const struct digest_entry *entry,
                 uint8_t bytes[DIGEST_ENTRY_SIZE])
{
	assert(entry->hash >> 48 == 0);
	assert(entry->position >= run->first && entry->position - run->first <= DIGEST_POSITIONS_MAX);
	uint64_t offset = (uint64_t)(entry->position - run->first);
	uint64_t high = htobe64(entry->hash << 16 | offset >> 16);
	uint16_t low = htobe16((uint16_t)offset);
	memcpy(bytes, &high, sizeof high);
	memcpy(bytes + sizeof high, &low, sizeof low);
}

static struct digest_entry unpack(const struct digest_run *run,
                                  const uint8_t bytes[DIGEST_ENTRY_SIZE])
{
	uint64_t high;
	uint16_t low;
	memcpy(&high, bytes, sizeof high);
	memcpy(&low, bytes + sizeof high, sizeof low);
	high = be64toh(high);
	return (struct digest_entry){high >> 16,
	                             run->first + (int64_t)((high & 0xffff) << 16 | be16toh(low))};
}

/* ---- blocks ---- */

static int64_t checksum_of(const struct digest_series *series, const struct digest_run *run,
                           struct slice low, struct slice high, struct slice entries)
{
	const int64_t place[] = {series->account, series->chain,     run->run,
	                         run->first,      (int64_t)low.size, (int64_t)high.size};
	unsigned long sum = crc32_z(0, (const unsigned char *)place, sizeof place);
	sum = crc32_z(sum, (const unsigned char *)low.data, low.size);
	sum = crc32_z(sum, (const unsigned char *)high.data, high.size);
	return (int64_t)crc32_z(sum, (const unsigned char *)entries.data, entries.size);
}

static bool is_sorted(struct slice entries)
{
	for (size_t at = DIGEST_ENTRY_SIZE; at < entries.size; at += DIGEST_ENTRY_SIZE)
		if (memcmp(entries.data + at - DIGEST_ENTRY_SIZE, entries.data + at, DIGEST_ENTRY_SIZE) >=
		    0)
			return false;
	return true;
}

static bool is_bound(struct slice bound)
{
	return bound.size == 0 || bound.size == DIGEST_ENTRY_SIZE;
}

static void cursor_corrupt(struct digest_cursor *cursor, const char *what)
{
	if (cursor->result)
		return;
	cursor->count = cursor->at = 0;
	cursor->at_end = true;
	cursor->result =
		db_failure(cursor->connection)
			?: error_cause(cursor->error, ERR_CORRUPT,
	                       "index of digests, series %lld/%lld, run %lld: %s",
	                       (long long)cursor->series->account, (long long)cursor->series->chain,
	                       (long long)cursor->run->run, what);
}

/* Takes the block of a query: low, high, entries, checksum. */
static void take_block(struct digest_cursor *cursor, struct db_query *query)
{
	bool found = db_step(query);
	struct slice low = {0}, high = {0}, entries = {0};
	if (found) {
		low = db_blob(query, 0);
		high = db_blob(query, 1);
		entries = db_blob(query, 2);
	}
	bool whole =
		found && is_bound(low) && is_bound(high) && entries.size &&
		entries.size % DIGEST_ENTRY_SIZE == 0 && entries.size <= sizeof cursor->entries &&
		db_integer(query, 3) == checksum_of(cursor->series, cursor->run, low, high, entries) &&
		is_sorted(entries);
	if (whole) {
		cursor->low_size = low.size;
		cursor->high_size = high.size;
		memcpy(cursor->low, low.size ? low.data : "", low.size);
		memcpy(cursor->high, high.size ? high.data : "", high.size);
		memcpy(cursor->entries, entries.data, entries.size);
		cursor->count = entries.size / DIGEST_ENTRY_SIZE;
	}
	db_release(query);
	if (!whole)
		cursor_corrupt(cursor, found ? "a block is damaged" : "a block is missing");
}

#define BLOCK                                                                                      \
	"SELECT low, high, entries, checksum FROM digest_blocks"                                       \
	" WHERE account = $1 AND chain = $2 AND run = $3 AND low "

static struct db_query *bind_block(const struct digest_cursor *cursor, struct db_query *query,
                                   const uint8_t *low, size_t size)
{
	db_bind(query, cursor->series->account, cursor->series->chain, cursor->run->run);
	db_bind_blob(query, size ? (const void *)low : "", size);
	return query;
}

/* Loads the block that contains the key. */
static void load_block_of(struct digest_cursor *cursor, const uint8_t key[DIGEST_ENTRY_SIZE])
{
	cursor->at_end = false;
	take_block(cursor,
	           bind_block(cursor,
	                      db_query(cursor->connection, BLOCK "<= $4 ORDER BY low DESC LIMIT 1"),
	                      key, DIGEST_ENTRY_SIZE));
	if (!cursor->result && cursor->high_size && memcmp(key, cursor->high, DIGEST_ENTRY_SIZE) >= 0)
		cursor_corrupt(cursor, "a block is missing");
}

static void load_next(struct digest_cursor *cursor)
{
	cursor->at = 0;
	cursor->count = 0;
	cursor->at_end = cursor->high_size == 0;
	if (cursor->at_end)
		return;
	uint8_t low[DIGEST_ENTRY_SIZE];
	memcpy(low, cursor->high, sizeof low);
	take_block(cursor,
	           bind_block(cursor, db_query(cursor->connection, BLOCK "= $4"), low, sizeof low));
}

static void load_previous(struct digest_cursor *cursor)
{
	cursor->at_end = cursor->low_size == 0;
	cursor->count = cursor->at = 0;
	if (cursor->at_end)
		return;
	uint8_t low[DIGEST_ENTRY_SIZE];
	memcpy(low, cursor->low, sizeof low);
	take_block(cursor,
	           bind_block(cursor,
	                      db_query(cursor->connection, BLOCK "< $4 ORDER BY low DESC LIMIT 1"), low,
	                      sizeof low));
	if (!cursor->result &&
	    (cursor->high_size != sizeof low || memcmp(cursor->high, low, sizeof low) != 0))
		cursor_corrupt(cursor, "a block is missing");
	else if (!cursor->result)
		cursor->at = cursor->count - 1;
}

void digest_cursor_seek(struct digest_cursor *cursor, const struct digest_entry *entry)
{
	uint8_t key[DIGEST_ENTRY_SIZE];
	pack(cursor->run, entry, key);
	load_block_of(cursor, key);
	cursor->at = 0;
	while (cursor->at < cursor->count &&
	       memcmp(cursor->entries + cursor->at * DIGEST_ENTRY_SIZE, key, sizeof key) < 0)
		cursor->at++;
	if (!cursor->result && cursor->at == cursor->count)
		load_next(cursor);
}

void digest_cursor_seek_back(struct digest_cursor *cursor, const struct digest_entry *entry)
{
	uint8_t key[DIGEST_ENTRY_SIZE];
	pack(cursor->run, entry, key);
	load_block_of(cursor, key);
	size_t after = 0;
	while (after < cursor->count &&
	       memcmp(cursor->entries + after * DIGEST_ENTRY_SIZE, key, sizeof key) <= 0)
		after++;
	cursor->at = after;
	if (!cursor->result)
		digest_cursor_previous(cursor);
}

bool digest_cursor_peek(const struct digest_cursor *cursor, struct digest_entry *ret)
{
	if (cursor->result || cursor->at_end)
		return false;
	assert(cursor->at < cursor->count);
	*ret = unpack(cursor->run, cursor->entries + cursor->at * DIGEST_ENTRY_SIZE);
	return true;
}

void digest_cursor_next(struct digest_cursor *cursor)
{
	if (!cursor->result && !cursor->at_end && ++cursor->at == cursor->count)
		load_next(cursor);
}

void digest_cursor_previous(struct digest_cursor *cursor)
{
	if (cursor->result || cursor->at_end)
		return;
	if (cursor->at > 0)
		cursor->at--;
	else
		load_previous(cursor);
}

/* ---- writing ---- */

static void write_block(struct digest_writer *writer, const uint8_t *high, size_t high_size)
{
	struct slice low = slice_make((const char *)writer->low, writer->low_size);
	struct slice next = slice_make(high_size ? (const char *)high : "", high_size);
	struct slice entries =
		slice_make((const char *)writer->entries, writer->count * DIGEST_ENTRY_SIZE);
	struct db_query *query = db_query(
		writer->connection, "INSERT INTO digest_blocks (account, chain, run, low, high, entries,"
							" checksum) VALUES ($1, $2, $3, $4, $5, $6, $7)");
	db_bind(query, writer->series->account, writer->series->chain, writer->run->run, db_bytes(low),
	        db_bytes(next), db_bytes(entries),
	        checksum_of(writer->series, writer->run, low, next, entries));
	writer->result = db_execute(query, NULL, writer->error);
	writer->written += (int64_t)writer->count;
	writer->blocks++;
	writer->count = 0;
	writer->low_size = high_size;
	memcpy(writer->low, next.data, high_size);
}

struct digest_writer digest_writer_make(struct db_connection *connection,
                                        const struct digest_series *series,
                                        const struct digest_run *run, struct error *error)
{
	return (struct digest_writer){
		.connection = connection,
		.series = series,
		.run = run,
		.error = error,
		.block_max = (size_t)tuned_up_to("digest_block", DIGEST_BLOCK_MAX),
	};
}

void digest_writer_add(struct digest_writer *writer, const struct digest_entry *entry)
{
	uint8_t bytes[DIGEST_ENTRY_SIZE];
	if (writer->result)
		return;
	pack(writer->run, entry, bytes);
	if (writer->count == writer->block_max)
		write_block(writer, bytes, sizeof bytes);
	memcpy(writer->entries + writer->count++ * DIGEST_ENTRY_SIZE, bytes, sizeof bytes);
}

void digest_writer_finish(struct digest_writer *writer)
{
	if (!writer->result && writer->count)
		write_block(writer, NULL, 0);
}

/* ---- series ---- */

static int64_t key_check_of(const struct digest_key *key)
{
	return (int64_t)digest_hash(key, -1, "", 0);
}

static int check_series(const struct digest_series *series, const struct digest_key *key,
                        struct error *error)
{
	int64_t covered = 0;
	bool whole = !series->exists || series->key_check == key_check_of(key);
	for (size_t i = 0; i < series->count && whole; i++) {
		const struct digest_run *run = &series->runs[i];
		if (run->state == DIGEST_RUN_DELETED)
			continue;
		whole = run->first > 0 && run->last >= run->first && run->run <= series->last_run &&
		        run->last - run->first <= DIGEST_POSITIONS_MAX;
		if (run->state == DIGEST_RUN_MERGING)
			continue;
		whole = whole && run->state == DIGEST_RUN_USED && run->first == covered + 1;
		covered = run->last;
	}
	if (whole && covered == series->indexed)
		return OK;
	return error_cause(error, ERR_CORRUPT,
	                   "index of digests, series %lld/%lld: its runs do not cover it or were made "
	                   "with another key",
	                   (long long)series->account, (long long)series->chain);
}

int digest_series_read(struct db_connection *connection, const struct digest_key *key,
                       struct digest_series *series, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT version, indexed, last_run, key_check FROM digest_series"
	                         " WHERE account = $1 AND chain = $2");
	db_bind(query, series->account, series->chain);
	series->exists = db_step(query);
	series->version = series->exists ? db_integer(query, 0) : 0;
	series->indexed = series->exists ? db_integer(query, 1) : 0;
	series->last_run = series->exists ? db_integer(query, 2) : 0;
	series->key_check = series->exists ? db_integer(query, 3) : 0;
	db_release(query);
	query = db_query(connection, "SELECT run, level, state, first, last, entries FROM digest_runs"
	                             " WHERE account = $1 AND chain = $2 ORDER BY first, run");
	db_bind(query, series->account, series->chain);
	series->count = 0;
	while (db_step(query) && series->count < DIGEST_RUNS_MAX)
		series->runs[series->count++] = (struct digest_run){
			.run = db_integer(query, 0),
			.level = db_integer(query, 1),
			.state = (enum digest_run_state)db_integer(query, 2),
			.first = db_integer(query, 3),
			.last = db_integer(query, 4),
			.entries = db_integer(query, 5),
		};
	int result = db_end(query, error);
	return result ? result : check_series(series, key, error);
}

int digest_series_lock(struct db_connection *connection, const struct digest_key *key,
                       const struct digest_series *series, bool *ret_same, struct error *error)
{
	int64_t changes = 0;
	struct db_query *query;
	*ret_same = false;
	if (!series->exists) {
		query = db_query(connection, "INSERT INTO digest_series (account, chain, version, indexed,"
		                             " last_run, key_check) VALUES ($1, $2, 0, 0, 0, $3)"
		                             " ON CONFLICT (account, chain) DO NOTHING");
		db_bind(query, series->account, series->chain, key_check_of(key));
		int result = db_execute(query, &changes, error);
		*ret_same = changes == 1;
		return result;
	}
	query = db_query(connection, "SELECT version FROM digest_series"
	                             " WHERE account = $1 AND chain = $2 FOR UPDATE");
	db_bind(query, series->account, series->chain);
	*ret_same = db_step(query) && db_integer(query, 0) == series->version;
	return db_end(query, error);
}

int digest_series_write(struct db_connection *connection, const struct digest_key *key,
                        const struct digest_series *series, struct error *error)
{
	struct db_query *query =
		db_query(connection, "UPDATE digest_series SET version = $3, indexed = $4, last_run = $5,"
	                         " key_check = $6 WHERE account = $1 AND chain = $2");
	db_bind(query, series->account, series->chain, series->version + 1, series->indexed,
	        series->last_run, key_check_of(key));
	return db_execute(query, NULL, error);
}

int digest_run_write(struct db_connection *connection, const struct digest_series *series,
                     const struct digest_run *run, struct error *error)
{
	struct db_query *query = db_query(
		connection, "INSERT INTO digest_runs (account, chain, run, level, state, first, last,"
					" entries) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
					" ON CONFLICT (account, chain, run) DO UPDATE"
					" SET state = excluded.state, entries = excluded.entries");
	db_bind(query, series->account, series->chain, run->run, run->level, run->state, run->first,
	        run->last, run->entries);
	return db_execute(query, NULL, error);
}

/* ---- merging ---- */

/* Returns whether a run is one of those that are merged into `merged`. */
static bool is_source(const struct digest_run *run, const struct digest_run *merged)
{
	return run->state == DIGEST_RUN_USED && run->level + 1 == merged->level &&
	       run->first >= merged->first && run->last <= merged->last;
}

/* Finds where the merge continues: after the last written block. */
static int find_resumption(struct db_connection *connection, const struct digest_series *series,
                           const struct digest_run *merged, struct digest_writer *writer,
                           struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT high FROM digest_blocks WHERE account = $1 AND chain = $2"
	                         " AND run = $3 ORDER BY low DESC LIMIT 1");
	db_bind(query, series->account, series->chain, merged->run);
	if (merged->entries > 0 && db_step(query)) {
		struct slice high = db_blob(query, 0);
		if (high.size == DIGEST_ENTRY_SIZE) {
			memcpy(writer->low, high.data, high.size);
			writer->low_size = high.size;
		}
	}
	int result = db_end(query, error);
	if (!result && merged->entries > 0 && !writer->low_size)
		result =
			error_cause(error, ERR_CORRUPT, "index of digests, run %lld: no merge can continue",
		                (long long)merged->run);
	return result;
}

/* Moves a cursor of a source to the first entry of the merge that is not written yet. */
static void seek_source(struct digest_cursor *cursor, const struct digest_entry *from)
{
	struct digest_entry entry = *from;
	if (entry.position > cursor->run->last) {
		entry.hash++;
		entry.position = cursor->run->first;
	}
	if (entry.position < cursor->run->first)
		entry.position = cursor->run->first;
	cursor->at_end = entry.hash >> 48 != 0;
	if (!cursor->at_end)
		digest_cursor_seek(cursor, &entry);
}

/* The writer keeps its last block back until the next entry is known, so the step ends when a block
 * was written and one entry follows, which begins the next block. */
static int merge_sources(struct digest_cursor *cursors, size_t count, struct digest_writer *writer,
                         size_t blocks, bool *ret_done)
{
	struct digest_entry heads[DIGEST_FANOUT];
	bool has[DIGEST_FANOUT];
	for (size_t i = 0; i < count; i++)
		has[i] = digest_cursor_peek(&cursors[i], &heads[i]);
	while (!writer->result) {
		size_t least = count;
		for (size_t i = 0; i < count; i++)
			if (has[i] && (least == count || digest_entry_compare(&heads[i], &heads[least]) < 0))
				least = i;
		if (least == count)
			break;
		if (writer->blocks == blocks)
			return OK;
		digest_writer_add(writer, &heads[least]);
		digest_cursor_next(&cursors[least]);
		has[least] = digest_cursor_peek(&cursors[least], &heads[least]);
	}
	for (size_t i = 0; i < count; i++)
		if (cursors[i].result)
			return cursors[i].result;
	digest_writer_finish(writer);
	*ret_done = true;
	return writer->result;
}

int digest_run_merge(struct db_connection *connection, const struct digest_series *series,
                     struct digest_run *run, size_t blocks, bool *ret_done, struct error *error)
{
	struct digest_cursor cursors[DIGEST_FANOUT];
	struct digest_writer writer = digest_writer_make(connection, series, run, error);
	size_t count = 0;
	int64_t entries = 0;
	*ret_done = false;
	int result = find_resumption(connection, series, run, &writer, error);
	struct digest_entry from = {.position = run->first};
	if (writer.low_size)
		from = unpack(run, writer.low);
	for (size_t i = 0; i < series->count && count < DIGEST_FANOUT && !result; i++) {
		if (!is_source(&series->runs[i], run))
			continue;
		struct digest_cursor *cursor = &cursors[count++];
		*cursor = (struct digest_cursor){
			.connection = connection, .series = series, .run = &series->runs[i], .error = error};
		entries += series->runs[i].entries;
		seek_source(cursor, &from);
		result = cursor->result;
	}
	if (!result)
		result = merge_sources(cursors, count, &writer, blocks, ret_done);
	run->entries += writer.written;
	if (!result && *ret_done && run->entries != entries)
		result = error_cause(error, ERR_CORRUPT,
		                     "index of digests, run %lld: %lld entries instead of %lld",
		                     (long long)run->run, (long long)run->entries, (long long)entries);
	return result;
}

int digest_run_delete(struct db_connection *connection, const struct digest_series *series,
                      const struct digest_run *run, int64_t blocks, struct error *error)
{
	struct db_query *query = db_query(
		connection, "DELETE FROM digest_blocks WHERE account = $1 AND chain = $2"
					" AND run = $3 AND low IN (SELECT low FROM digest_blocks"
					" WHERE account = $1 AND chain = $2 AND run = $3 ORDER BY low LIMIT $4)");
	db_bind(query, series->account, series->chain, run->run, blocks);
	int64_t changes = 0;
	int result = db_execute(query, &changes, error);
	if (result || changes >= blocks)
		return result;
	query = db_query(connection,
	                 "DELETE FROM digest_runs WHERE account = $1 AND chain = $2 AND run = $3");
	db_bind(query, series->account, series->chain, run->run);
	return db_execute(query, NULL, error);
}
