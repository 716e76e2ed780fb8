/* The formats of transparency logs (src/tlog). The input is a letter and a text: a note ('n'),
 * signature lines ('s'), a checkpoint ('c'), a verifier key ('k'), a policy ('p'), a request to a
 * witness ('w'), an entry ('e'), the proof of one ('r') or the path of a tile ('t'); or a proof
 * ('i', 'x'): two sizes of eight bytes, three hashes, and the path. What is accepted and written
 * again is the same. */
#include "fuzz.h"
#include "tlog/checkpoint.h"
#include "tlog/entry.h"
#include "tlog/entry_proof.h"
#include "tlog/policy.h"
#include "tlog/tiles.h"
#include "tlog/witness_request.h"

#define MEMORY_MAX ((size_t)16 << 20)

static void fuzz_note(struct slice text, bool whole)
{
	ARENA_AUTO struct arena arena = {.limit = MEMORY_MAX};
	struct note note;
	static const uint8_t bytes[NOTE_KEY_SIZE] = {1};
	const struct note_key log = note_key_make("log.example", NOTE_ED25519, bytes);
	const struct note_key witness = note_key_make("w.example", NOTE_COSIGNATURE, bytes);
	int64_t time_us = 0;
	if (whole ? note_parse(&arena, text, &note, NULL)
	          : note_parse_signatures(&arena, text, &note, NULL))
		return;
	require(note.count >= 1 && note.count <= NOTE_SIGNATURES_MAX, "a note has signatures");
	for (size_t i = 0; i < note.count; i++)
		require(note.signatures[i].line.size > 0 && note.signatures[i].bytes.size > 0,
		        "a signature has bytes");
	require(note_verify_text(slice_of("x\n"), &note, &log, &time_us) != NOTE_SIGNED,
	        "nobody has signed it");
	require(note_verify_text(slice_of("x\n"), &note, &witness, &time_us) != NOTE_SIGNED,
	        "nobody has cosigned it");
}

static void fuzz_checkpoint(struct slice text)
{
	BUF_AUTO struct buf again = {.limit = MEMORY_MAX};
	struct checkpoint checkpoint;
	if (checkpoint_parse(text, &checkpoint, NULL))
		return;
	checkpoint_write(&checkpoint, &again);
	require(again.size <= text.size && memcmp(again.data, text.data, again.size) == 0,
	        "a checkpoint begins as it is written");
}

static void fuzz_key(struct slice text)
{
	struct note_key key;
	char vkey[NOTE_VKEY_SIZE];
	if (note_key_parse(text, &key, NULL))
		return;
	note_key_write(&key, vkey);
	require(slice_is(text, vkey), "a key is written as it was read");
}

static void fuzz_policy(struct slice text)
{
	ARENA_AUTO struct arena arena = {.limit = MEMORY_MAX};
	struct policy policy;
	static const bool none[POLICY_WITNESSES_MAX];
	struct error error = {0};
	int result = policy_parse(&arena, text, &policy, &error);
	require(!result || result == ERR_INVALID_EVIDENCE, "a policy is accepted or rejected");
	if (result) {
		require(error.cause[0], "a rejected policy has a cause");
		return;
	}
	bool all[POLICY_WITNESSES_MAX];
	memset(all, true, sizeof all);
	require(policy_is_satisfied(&policy, all) || policy.has_quorum, "all witnesses suffice");
	require(!policy_is_satisfied(&policy, none) || policy_is_satisfied(&policy, all),
	        "more witnesses do not harm");
}

static void fuzz_request(struct slice text)
{
	BUF_AUTO struct buf again = {.limit = MEMORY_MAX};
	struct witness_request request;
	if (witness_request_parse(text, &request, NULL))
		return;
	witness_request_write(&request, &again);
	require(slice_equal(buf_slice(&again), text), "a request is written as it was read");
}

static void fuzz_entry(struct slice text)
{
	ARENA_AUTO struct arena arena = {.limit = MEMORY_MAX};
	BUF_AUTO struct buf again = {.limit = MEMORY_MAX};
	struct tlog_entry entry;
	uint8_t packed[TLOG_ENTRY_PACKED_SIZE];
	if (tlog_entry_read(&arena, text, &entry, NULL))
		return;
	tlog_entry_pack(&entry, packed);
	entry = tlog_entry_unpack(packed);
	tlog_entry_write(&entry, &again);
	require(slice_equal(buf_slice(&again), text), "an entry is written as it was read");
}

static void fuzz_entry_proof(struct slice text)
{
	BUF_AUTO struct buf again = {.limit = MEMORY_MAX};
	static const char empty[] = "c2sp.org/tlog-proof@v1\nextra \n"; /* is written without it */
	struct entry_proof proof;
	if (entry_proof_parse(text, &proof, NULL))
		return;
	entry_proof_write(&proof, &again);
	require(slice_equal(buf_slice(&again), text) || memcmp(text.data, empty, sizeof empty - 1) == 0,
	        "a proof is written as it was read");
}

static void fuzz_tile(struct slice text)
{
	struct tile_id id;
	char path[TILE_PATH_SIZE];
	if (!tile_path_parse(text, &id))
		return;
	require(id.width >= 1 && id.width <= TILE_WIDTH && id.level < TILE_LEVELS, "a tile has bounds");
	tile_path(&id, path);
	require(slice_is(text, path), "a path is written as it was read");
}

static void fuzz_proof(const uint8_t *data, size_t size, bool consistency)
{
	uint64_t numbers[2];
	struct sha256 hashes[3];
	struct merkle_path path = {0};
	if (size < sizeof numbers + sizeof hashes)
		return;
	memcpy(numbers, data, sizeof numbers);
	memcpy(hashes, data + sizeof numbers, sizeof hashes);
	data += sizeof numbers + sizeof hashes;
	size -= sizeof numbers + sizeof hashes;
	path.count = size / SHA256_SIZE < MERKLE_PATH_MAX ? size / SHA256_SIZE : MERKLE_PATH_MAX;
	memcpy(path.hashes, data, path.count * SHA256_SIZE);
	uint64_t least = numbers[0] % (MERKLE_SIZE_MAX + 1), most = numbers[1] % (MERKLE_SIZE_MAX + 1);
	if (consistency)
		(void)!merkle_is_consistent(least, &hashes[0], most, &hashes[1], &path);
	else
		(void)!merkle_is_included(&hashes[0], least, most, &path, &hashes[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	const struct slice text = slice_make((const char *)data + 1, size - 1);
	switch (data[0]) {
	case 'n':
	case 's': fuzz_note(text, data[0] == 'n'); break;
	case 'c': fuzz_checkpoint(text); break;
	case 'k': fuzz_key(text); break;
	case 'p': fuzz_policy(text); break;
	case 'w': fuzz_request(text); break;
	case 'e': fuzz_entry(text); break;
	case 'r': fuzz_entry_proof(text); break;
	case 't': fuzz_tile(text); break;
	case 'i':
	case 'x': fuzz_proof(data + 1, size - 1, data[0] == 'x'); break;
	default: break;
	}
	return 0;
}
