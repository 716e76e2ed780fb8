/* Finds the bytes that a file shares with an object. Small inputs are compared with rolling hashes
 * of blocks, which find moved bytes. Large inputs are read once and compared at equal offsets. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "content/composite.h"

#define CHUNK ((size_t)256 << 10)
#define BLOCK ((size_t)512)         /* compared at equal offsets */
#define WINDOW ((size_t)64)         /* hashed */
#define SHARED_MIN ((size_t)4096)   /* shorter runs are not shared */
#define PIECE_TEXT_MAX ((size_t)44) /* "@O+N" and "+N" */

struct comparing {
	const char *path, *own_path;
	int file, own;
	uint64_t size;
	struct content_difference *found;
	size_t text_size;
	/* The current piece. */
	bool is_shared;
	uint64_t offset, length;
	struct error *error;
};

/* ---- pieces ---- */

static void end_piece(struct comparing *comparing)
{
	char *text = comparing->found->pieces + comparing->text_size;
	size_t room = sizeof comparing->found->pieces - comparing->text_size;
	int size = 0;
	if (comparing->length == 0)
		return;
	if (comparing->is_shared)
		size = snprintf(text, room, "@%llu+%llu", (unsigned long long)comparing->offset,
		                (unsigned long long)comparing->length);
	else
		size = snprintf(text, room, "+%llu", (unsigned long long)comparing->length);
	comparing->text_size += (size_t)size;
	comparing->length = 0;
}

/* Returns whether the list has room for another shared piece and an own piece after it. */
static bool is_room(const struct comparing *comparing)
{
	return comparing->text_size + 2 * PIECE_TEXT_MAX < sizeof comparing->found->pieces;
}

static int add_own(struct comparing *comparing, const void *data, size_t size)
{
	if (size == 0)
		return OK;
	if (comparing->is_shared)
		end_piece(comparing);
	comparing->is_shared = false;
	comparing->length += size;
	comparing->found->own_bytes += size;
	return file_write_all(comparing->own, slice_make(data, size))
	           ? OK
	           : file_fail(comparing->error, "writing", comparing->own_path);
}

static void add_shared(struct comparing *comparing, uint64_t offset, uint64_t size)
{
	if (!comparing->is_shared || comparing->offset + comparing->length != offset) {
		end_piece(comparing);
		comparing->offset = offset;
	}
	comparing->is_shared = true;
	comparing->length += size;
}

static int read_file(struct comparing *comparing, void *data, size_t size, uint64_t offset)
{
	return file_read_at(comparing->file, data, size, offset)
	           ? OK
	           : file_fail(comparing->error, "reading", comparing->path);
}

/* Reads up to `size` bytes. Negative on error. */
static int64_t read_object(struct content_reader *reader, char *data, size_t size,
                           struct error *error)
{
	size_t used = 0;
	int64_t got = 1;
	while (used < size && got > 0) {
		got = content_read(reader, data + used, size - used, error);
		used += got > 0 ? (size_t)got : 0;
	}
	return got < 0 ? got : (int64_t)used;
}

/* ---- equal offsets ---- */

/* Equal bytes, too few so far for a shared piece. */
struct run {
	char data[SHARED_MIN];
	size_t size;
};

static int add_block(struct comparing *comparing, struct run *run, const char *mine,
                     const char *theirs, size_t size, uint64_t at)
{
	bool equal = size == BLOCK && memcmp(mine, theirs, size) == 0;
	if (equal && run->size == 0 && comparing->is_shared && comparing->length > 0) {
		add_shared(comparing, at, size);
		return OK;
	}
	if (!equal || !is_room(comparing)) {
		int result = add_own(comparing, run->data, run->size);
		run->size = 0;
		return result ? result : add_own(comparing, mine, size);
	}
	memcpy(run->data + run->size, mine, size);
	run->size += size;
	if (run->size == SHARED_MIN) {
		add_shared(comparing, at + size - run->size, run->size);
		run->size = 0;
	}
	return OK;
}

static int compare_aligned(struct comparing *comparing, struct content_reader *reader, char *mine,
                           char *theirs)
{
	struct run run = {.size = 0};
	int result = OK;
	for (uint64_t at = 0; at < comparing->size && !result;) {
		uint64_t left = comparing->size - at;
		size_t size = left < CHUNK ? (size_t)left : CHUNK;
		result = read_file(comparing, mine, size, at);
		int64_t got = !result ? read_object(reader, theirs, size, comparing->error) : result;
		if (got < 0)
			return (int)got;
		for (size_t i = 0; i < size && !result; i += BLOCK) {
			size_t block = size - i < BLOCK ? size - i : BLOCK;
			bool both = i + block <= (size_t)got;
			result = add_block(comparing, &run, mine + i, both ? theirs + i : mine + i,
			                   both ? block : 0, at + i);
			if (!result && !both)
				result = add_own(comparing, mine + i, block);
		}
		at += size;
	}
	return result ? result : add_own(comparing, run.data, run.size);
}

static int compare_large(struct comparing *comparing, struct content_reader *reader)
{
	char *mine = malloc(CHUNK), *theirs = malloc(CHUNK);
	int result = mine && theirs ? compare_aligned(comparing, reader, mine, theirs)
	                            : error_cause(comparing->error, ERR_NO_MEMORY, "comparing objects");
	free(mine);
	free(theirs);
	return result;
}

/* ---- moved bytes ---- */

#define FACTOR UINT32_C(0x01000193)

struct blocks {
	const char *data;
	size_t size;
	uint32_t *slots; /* block number + 1, by hash; 0: free */
	size_t mask;
};

static uint32_t hash_of(const char *data)
{
	uint32_t hash = 0;
	for (size_t i = 0; i < WINDOW; i++)
		hash = hash * FACTOR + (uint8_t)data[i];
	return hash;
}

static size_t slot_of(const struct blocks *blocks, uint32_t hash)
{
	return ((hash ^ hash >> 15) * UINT32_C(0x85ebca6b) >> 3) & blocks->mask;
}

/* Of several blocks with the same hash only the first is indexed. */
static bool index_blocks(struct blocks *blocks)
{
	size_t count = blocks->size / WINDOW, slots = 16;
	while (slots < count * 2)
		slots *= 2;
	blocks->slots = calloc(slots, sizeof *blocks->slots);
	blocks->mask = slots - 1;
	for (size_t i = 0; i < count && blocks->slots; i++) {
		uint32_t *slot = &blocks->slots[slot_of(blocks, hash_of(blocks->data + i * WINDOW))];
		if (*slot == 0)
			*slot = (uint32_t)i + 1;
	}
	return blocks->slots;
}

/* Returns the length of the longest common run around a block with this hash, and its start in
 * both. */
static size_t find_run(const struct blocks *blocks, uint32_t hash, const char *mine, size_t size,
                       size_t at, size_t from, size_t *ret_theirs, size_t *ret_mine)
{
	uint32_t found = blocks->slots[slot_of(blocks, hash)];
	if (found == 0)
		return 0;
	size_t theirs = (size_t)(found - 1) * WINDOW, start = at;
	if (memcmp(blocks->data + theirs, mine + at, WINDOW) != 0)
		return 0;
	size_t end = at + WINDOW, their_end = theirs + WINDOW;
	while (end < size && their_end < blocks->size && mine[end] == blocks->data[their_end]) {
		end++;
		their_end++;
	}
	while (start > from && theirs > 0 && mine[start - 1] == blocks->data[theirs - 1]) {
		start--;
		theirs--;
	}
	*ret_theirs = theirs;
	*ret_mine = start;
	return end - start;
}

static int match(struct comparing *comparing, const struct blocks *blocks, const char *mine,
                 size_t size)
{
	uint32_t leaving = 1; /* FACTOR to the power of WINDOW - 1 */
	for (size_t i = 1; i < WINDOW; i++)
		leaving *= FACTOR;
	size_t done = 0;
	int result = OK;
	bool rolls = false;
	uint32_t hash = 0;
	for (size_t at = 0; at + WINDOW <= size && !result && is_room(comparing);) {
		hash = rolls ? (hash - (uint8_t)mine[at - 1] * leaving) * FACTOR +
		                   (uint8_t)mine[at + WINDOW - 1]
		             : hash_of(mine + at);
		size_t theirs = 0, start = 0;
		size_t run = find_run(blocks, hash, mine, size, at, done, &theirs, &start);
		rolls = run < SHARED_MIN;
		if (rolls) {
			at++;
			continue;
		}
		result = add_own(comparing, mine + done, start - done);
		add_shared(comparing, theirs, run);
		done = at = start + run;
	}
	return result ? result : add_own(comparing, mine + done, size - done);
}

static int compare_small(struct comparing *comparing, struct content_reader *reader,
                         size_t their_size)
{
	size_t size = (size_t)comparing->size;
	char *mine = malloc(size + 1), *theirs = malloc(their_size + 1);
	struct blocks blocks = {.data = theirs};
	int result =
		mine && theirs ? OK : error_cause(comparing->error, ERR_NO_MEMORY, "comparing objects");
	if (!result)
		result = read_file(comparing, mine, size, 0);
	int64_t got = !result ? read_object(reader, theirs, their_size, comparing->error) : 0;
	if (got < 0)
		result = (int)got;
	blocks.size = got > 0 ? (size_t)got : 0;
	if (!result && !index_blocks(&blocks))
		result = error_cause(comparing->error, ERR_NO_MEMORY, "comparing objects");
	if (!result)
		result = match(comparing, &blocks, mine, size);
	free(blocks.slots);
	free(mine);
	free(theirs);
	return result;
}

/* ---- comparison ---- */

static int compare(struct comparing *comparing, struct content_store *store, const char *shared)
{
	struct content_reader *reader = NULL;
	uint64_t size = 0;
	int result = content_read_begin(store, shared, 0, &reader, &size, comparing->error);
	if (result)
		return result;
	result = comparing->size <= CONTENT_MOVED_MAX && size <= CONTENT_MOVED_MAX
	             ? compare_small(comparing, reader, (size_t)size)
	             : compare_large(comparing, reader);
	content_read_end(reader);
	end_piece(comparing);
	if (!result && comparing->found->own_bytes > comparing->size / 2)
		return ERR_REFUSED;
	/* An object must not be empty. */
	return !result && comparing->found->own_bytes == 0 ? ERR_REFUSED : result;
}

int content_compare(struct content_store *store, const char *path, const char *shared,
                    const char *own_path, struct content_difference *ret, struct error *error)
{
	struct content_difference found = {.own_bytes = 0};
	struct comparing comparing = {
		.path = path, .own_path = own_path, .found = &found, .error = error};
	struct stat facts;
	DESCRIPTOR_AUTO int file = file_open_to_read(path, O_NOFOLLOW, &facts);
	if (file < 0)
		return file_fail(error, "opening", path);
	DESCRIPTOR_AUTO int own =
		open(own_path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (own < 0)
		return file_fail(error, "making", own_path);
	comparing.file = file;
	comparing.own = own;
	comparing.size = (uint64_t)facts.st_size;
	int result = compare(&comparing, store, shared);
	if (!result)
		*ret = found;
	return result;
}
