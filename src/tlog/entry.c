#include "tlog/entry.h"

#include <assert.h>
#include <stdio.h>

#include "base/json_reader.h"
#include "tlog/merkle.h"

#define TAG_PREFIX "constancia-tag/1"

bool tlog_tag(const char *channel_id, const char *chain, struct sha256 *ret)
{
	char named[sizeof TAG_PREFIX + 2 * (1 + TLOG_CHAIN_NAME_MAX)];
	if (strlen(channel_id) > TLOG_CHAIN_NAME_MAX || strlen(chain) > TLOG_CHAIN_NAME_MAX)
		return false;
	int size = snprintf(named, sizeof named, TAG_PREFIX "\n%s\n%s", channel_id, chain);
	*ret = sha256_of(named, (size_t)size);
	return true;
}

/* Members are in canonical order. */
void tlog_entry_write(const struct tlog_entry *entry, struct buf *out)
{
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_hex(&writer, "chain_hash_last", entry->chain_hash_last.bytes, SHA256_SIZE);
	json_integer(&writer, "first_sequence", entry->first_sequence);
	json_integer(&writer, "last_sequence", entry->last_sequence);
	json_hex(&writer, "seal_hash", entry->seal_hash.bytes, SHA256_SIZE);
	json_hex(&writer, "tag", entry->tag.bytes, SHA256_SIZE);
	json_integer(&writer, "v", 1);
	json_end_object(&writer);
}

int tlog_entry_read(struct arena *arena, struct slice text, struct tlog_entry *ret,
                    struct error *error)
{
	if (text.size > TLOG_ENTRY_MAX)
		return error_cause(error, ERR_INVALID_EVIDENCE, "it is longer than any entry");
	struct json_reader reader = json_reader_parse(arena, text, NULL, error);
	struct tlog_entry entry = {.chain_hash_last = json_take_hash(&reader, "chain_hash_last")};
	entry.first_sequence = json_take_integer(&reader, "first_sequence", 1);
	entry.last_sequence = json_take_integer(&reader, "last_sequence", entry.first_sequence);
	entry.seal_hash = json_take_hash(&reader, "seal_hash");
	entry.tag = json_take_hash(&reader, "tag");
	json_require_integer(&reader, "v", 1);
	if (reader.result)
		return reader.result;
	BUF_AUTO struct buf again;
	buf_init(&again, TLOG_ENTRY_MAX + 1);
	tlog_entry_write(&entry, &again);
	int result = buf_check(&again);
	if (result)
		return result;
	if (!slice_equal(buf_slice(&again), text))
		return error_cause(error, ERR_INVALID_EVIDENCE, "it is not in canonical form");
	*ret = entry;
	return OK;
}

int tlog_entry_leaf(const struct tlog_entry *entry, struct buf *scratch, struct sha256 *ret)
{
	buf_clear(scratch);
	tlog_entry_write(entry, scratch);
	if (buf_check(scratch))
		return ERR_NO_MEMORY;
	*ret = merkle_leaf(buf_slice(scratch));
	return OK;
}

/* ---- the stored form ---- */

static uint8_t *put_number(uint8_t *at, int64_t number)
{
	for (int i = 0; i < 8; i++)
		at[i] = (uint8_t)((uint64_t)number >> (56 - 8 * i));
	return at + 8;
}

static int64_t get_number(const uint8_t *at)
{
	uint64_t number = 0;
	for (int i = 0; i < 8; i++)
		number = number << 8 | at[i];
	return (int64_t)number;
}

void tlog_entry_pack(const struct tlog_entry *entry, uint8_t packed[TLOG_ENTRY_PACKED_SIZE])
{
	const struct sha256 *const hashes[] = {&entry->tag, &entry->chain_hash_last, &entry->seal_hash};
	uint8_t *at = packed;
	for (int i = 0; i < 3; i++, at += SHA256_SIZE)
		memcpy(at, hashes[i]->bytes, SHA256_SIZE);
	at = put_number(at, entry->first_sequence);
	at = put_number(at, entry->last_sequence);
	assert(at == packed + TLOG_ENTRY_PACKED_SIZE);
}

struct tlog_entry tlog_entry_unpack(const uint8_t packed[TLOG_ENTRY_PACKED_SIZE])
{
	struct tlog_entry entry = {.first_sequence = get_number(packed + 3 * SHA256_SIZE),
	                           .last_sequence = get_number(packed + 3 * SHA256_SIZE + 8)};
	struct sha256 *const hashes[] = {&entry.tag, &entry.chain_hash_last, &entry.seal_hash};
	for (int i = 0; i < 3; i++)
		memcpy(hashes[i]->bytes, packed + i * SHA256_SIZE, SHA256_SIZE);
	return entry;
}
