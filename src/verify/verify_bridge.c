/* Seal documents of segments that are in no archive. Each seal document names the one before it by
 * its hash, so a run of them connects the archives at its ends to one history. A run is a given
 * file, or the stream history/ of an archive, which begins at the first segment of the chain. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "verify/verify_chain.h"

#define BLOCK_SIZE ((size_t)64 * 1024)
#define DOCUMENT_MEMORY_MAX ((size_t)256 * 1024)

/* ---- the run ---- */

int verify_walk_seal(struct seal_walk *walk, const struct seal_document *seal,
                     const struct sha256 *seal_hash, struct error *error)
{
	bool begins = walk->count == 0;
	if (strcmp(seal->chain, mode_text(MODE_LIVE)) != 0 || strlen(seal->channel_id) >= ID_SIZE ||
	    (!begins && strcmp(seal->channel_id, walk->channel_id) != 0))
		return finding_fail(error, FINDING_BRIDGE_CHAIN);
	bool continues = begins ? (seal->first_sequence == 1) == !seal->previous_seal_hash
	                        : seal->first_sequence == walk->last_sequence + 1 &&
	                              seal->previous_seal_hash &&
	                              sha256_equal(seal->previous_seal_hash, &walk->seal_hash) &&
	                              sha256_equal(&seal->chain_hash_before, &walk->chain_hash);
	if (!continues)
		return finding_fail(error, FINDING_BRIDGE_BROKEN, seal->first_sequence,
		                    seal->last_sequence);
	if (begins) {
		memcpy(walk->channel_id, seal->channel_id, strlen(seal->channel_id) + 1);
		walk->first_sequence = seal->first_sequence;
	}
	walk->last_sequence = seal->last_sequence;
	walk->chain_hash = seal->chain_hash_last;
	walk->seal_hash = *seal_hash;
	walk->count++;
	return 0;
}

/* Reads a line and continues the run with it. */
static int read_document(struct arena *arena, struct slice line, struct seal_walk *walk,
                         struct seal_document *ret_seal, struct error *error)
{
	arena_reset(arena);
	int result = seal_document_read(arena, line, ret_seal, error);
	if (result)
		return finding_set_step(error, FINDING_BRIDGE_MALFORMED, result);
	const struct sha256 hash = sha256_of(line.data, line.size);
	return verify_walk_seal(walk, ret_seal, &hash, error);
}

/* ---- given files ---- */

struct bridge_reader {
	int file;
	bool ended;
	char *block;
	size_t used, size;
	uint64_t line; /* number of the line last read */
};

/* Reads more of the file after the unread bytes. */
static int fill(struct bridge_reader *reader, struct error *error)
{
	memmove(reader->block, reader->block + reader->used, reader->size - reader->used);
	reader->size -= reader->used;
	reader->used = 0;
	ssize_t got;
	do
		got = read(reader->file, reader->block + reader->size, BLOCK_SIZE - reader->size);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return error_cause(error, ERR_IO, "read error: %s", strerror(errno));
	reader->size += (size_t)got;
	reader->ended = got == 0;
	return 0;
}

/* Returns 1 with a line, or 0 at the end. The last line may lack its line feed. */
static int next_line(struct bridge_reader *reader, struct slice *ret_line, struct error *error)
{
	for (;;) {
		char *from = reader->block + reader->used;
		size_t left = reader->size - reader->used;
		const char *end = left ? memchr(from, '\n', left) : NULL;
		if (!end && !reader->ended && left <= SEAL_DOCUMENT_MAX) {
			int result = fill(reader, error);
			if (result)
				return result;
			continue;
		}
		if (left == 0)
			return 0;
		size_t size = end ? (size_t)(end - from) : left;
		*ret_line = slice_make(from, size);
		reader->used += size + (end ? 1 : 0);
		reader->line++;
		return 1;
	}
}

static int read_lines(struct run *run, struct bridge *bridge, struct bridge_reader *reader,
                      bool compares, struct error *error)
{
	ARENA_AUTO struct arena arena;
	struct seal_document seal;
	struct slice line;
	int result;
	arena_init(&arena, DOCUMENT_MEMORY_MAX);
	bridge->walk = (struct seal_walk){0};
	while ((result = next_line(reader, &line, error)) == 1) {
		result = read_document(&arena, line, &bridge->walk, &seal, error);
		if (result)
			return result;
		if (compares)
			verify_point_bridge(run, bridge, &seal, &bridge->walk.seal_hash);
		if (compares)
			run->result->checked.bridge_segments++;
	}
	return result;
}

/* Reads a bridge, and compares its documents with those of other files. */
static int read_bridge(struct run *run, struct bridge *bridge, bool compares)
{
	struct stat facts;
	struct error error = {0};
	char where[32] = "";
	struct bridge_reader reader = {.block = malloc(BLOCK_SIZE)};
	if (!reader.block)
		return ERR_NO_MEMORY;
	DESCRIPTOR_AUTO int file = file_open_to_read(bridge->path, 0, &facts);
	reader.file = file;
	int result = 0;
	if (file < 0)
		result = error_cause(&error, ERR_IO, "cannot open: %s", strerror(errno));
	else if (!S_ISREG(facts.st_mode))
		result = error_cause(&error, ERR_IO, "not a regular file");
	if (!result)
		result = read_lines(run, bridge, &reader, compares, &error);
	free(reader.block);
	bridge->usable = !result && bridge->walk.count > 0;
	if (result == ERR_INVALID_EVIDENCE)
		snprintf(where, sizeof where, "line %" PRIu64, reader.line);
	if (!result && bridge->walk.count == 0)
		verify_add(run, VERIFY_WRONG, bridge->path, "", FINDING_BRIDGE_EMPTY);
	if (!result)
		return 0;
	result = verify_add_error(run, bridge->path, where, FINDING_BRIDGE_MALFORMED, result, &error);
	return result == ERR_IO ? 0 : result;
}

int verify_bridges_load(struct run *run)
{
	size_t count = run->options ? run->options->bridge_count : 0;
	int result = 0;
	if (count == 0)
		return 0;
	run->bridges = calloc(count, sizeof *run->bridges);
	if (!run->bridges)
		return ERR_NO_MEMORY;
	for (; run->bridge_count < count && !result; run->bridge_count++) {
		struct bridge *bridge = &run->bridges[run->bridge_count];
		bridge->path = run->options->bridges[run->bridge_count];
		result = read_bridge(run, bridge, false);
	}
	return result;
}

int verify_bridges_compare(struct run *run)
{
	int result = 0;
	for (size_t i = 0; i < run->bridge_count && !result; i++)
		if (run->bridges[i].usable)
			result = read_bridge(run, &run->bridges[i], true);
	return result;
}

void verify_bridges_free(struct run *run)
{
	free(run->bridges);
}

/* ---- the history in an archive ---- */

/* Compares the run with the chain of the archive, after its first or a later line. */
static void check_history_line(struct chain *chain, const struct seal_document *seal)
{
	const struct seal_walk *walk = &chain->history;
	const struct input *archive = chain->facts->input;
	if (walk->count == 1) {
		if (seal->first_sequence != 1)
			chain_wrong_at(chain, STREAM_HISTORY, "first_sequence", FINDING_HISTORY_START);
		if (strcmp(seal->channel_id, chain->range->channel_id) != 0)
			chain_wrong_at(chain, STREAM_HISTORY, "channel_id", FINDING_BRIDGE_CHAIN);
		if (chain->facts->has_genesis &&
		    !sha256_equal(&seal->chain_hash_before, &chain->facts->genesis_hash))
			chain_wrong_at(chain, STREAM_HISTORY, "chain_hash_before", FINDING_SEGMENT_START);
	}
	verify_point_event(chain->run, archive, seal->last_sequence, &seal->chain_hash_last, TIME_NONE);
	verify_point_seal(chain->run, archive, seal->first_sequence, seal->last_sequence,
	                  &walk->seal_hash, NULL);
	chain->run->result->checked.bridge_segments++;
}

int chain_check_history(struct chain *chain)
{
	struct slice line;
	struct seal_document seal;
	int result;
	while (!chain_is_abandoned(chain) &&
	       (result = chain_next_line(chain, STREAM_HISTORY, &line)) != 0) {
		struct error error = {0};
		if (result < 0)
			return result;
		result = read_document(&chain->seal_arena, line, &chain->history, &seal, &error);
		if (result < 0)
			return chain_record_error(chain, STREAM_HISTORY, result, &error);
		check_history_line(chain, &seal);
	}
	return 0;
}
