#include "seal/signer_log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/durable.h"
#include "base/file.h"
#include "base/json.h"

#define BLOCK_SIZE 65536
#define LINE_MEMORY_MAX 65536
#define TAIL_SIZE 16384 /* exceeds a last line and the page in which it begins */
#define LOCK_TIMEOUT_US (5 * US_PER_SECOND)

/* ---- reader ---- */

struct reader {
	signer_log_visit *visit;
	void *context;
	struct signer_log_facts facts;
	struct arena arena;
	int64_t file_size;
	bool chained;
	bool torn; /* the bytes from facts.size on are a torn line */
	struct error *error;
};

static int corrupt(const struct reader *reader, const char *what)
{
	return error_cause(reader->error, ERR_CORRUPT, SIGNER_LOG_NAME ", line %lld: %s",
	                   (long long)reader->facts.lines + 1, what);
}

/* Parses a line; returns false for any other text. */
static bool parse(struct reader *reader, struct slice text, struct signer_log_entry *entry,
                  struct slice *previous)
{
	struct json *json = NULL;
	struct slice digest;

	*entry = (struct signer_log_entry){0};
	*previous = slice_make(NULL, 0);
	arena_reset(&reader->arena);
	if (text.size > SIGNER_LOG_LINE_MAX || json_parse(&reader->arena, text, NULL, &json, NULL) ||
	    !json_get_text(json, "purpose", &entry->purpose) ||
	    !json_get_text(json, "sha256", &digest) ||
	    !hex_decode(digest, entry->sha256.bytes, SHA256_SIZE))
		return false;
	if (json_get_text(json, "store", &entry->store) &&
	    (!json_get_integer(json, "round", &entry->round) || entry->round < 0))
		return false;
	(void)json_get_text(json, "previous", previous);
	return true;
}

/* Processes a line including its line feed. */
static int take_line(struct reader *reader, struct slice line)
{
	struct signer_log_facts *facts = &reader->facts;
	struct signer_log_entry entry;
	struct slice previous;
	struct sha256 named;

	if (!parse(reader, slice_make(line.data, line.size - 1), &entry, &previous)) {
		/* The pages of a torn line may have been written in any order, so it may contain line
		 * feeds. */
		reader->torn = reader->file_size - facts->size <= SIGNER_LOG_LINE_MAX;
		return reader->torn ? OK : corrupt(reader, "not a line of the log");
	}
	if (!previous.data && reader->chained)
		return corrupt(reader, "it does not name the previous line");
	if (previous.data &&
	    (!hex_decode(previous, named.bytes, SHA256_SIZE) || !sha256_equal(&named, &facts->last)))
		return corrupt(reader, "its hash does not match the previous line");
	reader->chained |= previous.data != NULL;
	int result = reader->visit ? reader->visit(reader->context, &entry) : OK;
	if (result)
		return result;
	facts->last = sha256_of(line.data, line.size);
	facts->size += (int64_t)line.size;
	facts->lines++;
	return OK;
}

/* Processes all complete lines of a block; *ret_used: their size. */
static int take_lines(struct reader *reader, struct slice block, size_t *ret_used)
{
	int result = OK;
	size_t used = 0;

	while (!result && !reader->torn) {
		const char *start = block.data + used;
		const char *end = memchr(start, '\n', block.size - used);
		if (!end)
			break;
		size_t size = (size_t)(end - start) + 1;
		result = take_line(reader, slice_make(start, size));
		if (!reader->torn)
			used += size;
	}
	*ret_used = used;
	return result;
}

/* Returns whether a valid line follows the first line feed, which is impossible after a torn last
 * line. */
static bool line_follows(struct reader *reader, struct slice rest)
{
	const char *end = memchr(rest.data, '\n', rest.size);

	while (end) {
		struct signer_log_entry entry;
		struct slice previous;
		rest = slice_make(end + 1, rest.size - (size_t)(end + 1 - rest.data));
		end = memchr(rest.data, '\n', rest.size);
		size_t size = end ? (size_t)(end - rest.data) : rest.size;
		if (parse(reader, slice_make(rest.data, size), &entry, &previous))
			return true;
	}
	return false;
}

/* Processes the bytes after the last complete line. */
static int take_rest(struct reader *reader, struct slice rest)
{
	if (rest.size > SIGNER_LOG_LINE_MAX || line_follows(reader, rest))
		return corrupt(reader, "not a line of the log");
	reader->facts.torn_size = (int64_t)rest.size;
	reader->facts.torn = sha256_of(rest.data, rest.size);
	return OK;
}

static int read_all(struct reader *reader, int file, char *block)
{
	for (;;) {
		int64_t left = reader->file_size - reader->facts.size;
		size_t wanted = left < BLOCK_SIZE ? (size_t)left : BLOCK_SIZE;
		if (!file_read_at(file, block, wanted, (uint64_t)reader->facts.size))
			return error_cause(reader->error, ERR_IO, "reading " SIGNER_LOG_NAME ": %s",
			                   errno ? strerror(errno) : "it became shorter");
		size_t used = 0;
		int result = take_lines(reader, slice_make(block, wanted), &used);
		if (result)
			return result;
		if (wanted < BLOCK_SIZE) /* end of the file */
			return take_rest(reader, slice_make(block + used, wanted - used));
		if (used == 0)
			return corrupt(reader, "not a line of the log");
	}
}

/* Reads the complete log. */
static int read_log(int file, signer_log_visit *visit, void *context,
                    struct signer_log_facts *ret_facts, struct error *error)
{
	struct reader reader = {.visit = visit, .context = context, .error = error};
	struct stat found;

	if (fstat(file, &found) != 0 || !S_ISREG(found.st_mode))
		return error_cause(error, ERR_IO, SIGNER_LOG_NAME " is not a regular file");
	char *block = malloc(BLOCK_SIZE);
	if (!block)
		return error_cause(error, ERR_NO_MEMORY, "reading " SIGNER_LOG_NAME);
	reader.file_size = found.st_size;
	arena_init(&reader.arena, LINE_MEMORY_MAX);
	int result = read_all(&reader, file, block);
	arena_free(&reader.arena);
	free(block);
	if (!result)
		*ret_facts = reader.facts;
	return result;
}

static int make_path(const char *directory, char path[PATH_MAX], struct error *error)
{
	if ((size_t)snprintf(path, PATH_MAX, "%s/" SIGNER_LOG_NAME, directory) >= PATH_MAX)
		return error_cause(error, ERR_IO, "path too long");
	return OK;
}

int signer_log_check(const char *directory, signer_log_visit *visit, void *context,
                     struct signer_log_facts *ret_facts, struct error *error)
{
	char path[PATH_MAX];
	struct stat found;

	int result = make_path(directory, path, error);
	if (result)
		return result;
	DESCRIPTOR_AUTO int file = file_open_to_read(path, O_NOFOLLOW, &found);
	if (file < 0)
		return error_cause(error, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s: %s", path,
		                   strerror(errno));
	return read_log(file, visit, context, ret_facts, error);
}

/* ---- opening ---- */

/* Waits a moment for the lock: the signing process of a stopped service may exit slightly later. */
static int lock(int file, const char *path, struct error *error)
{
	int64_t deadline_us = clock_monotonic_us() + LOCK_TIMEOUT_US;

	while (flock(file, LOCK_EX | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return error_cause(error, ERR_IO, "%s: %s", path, strerror(errno));
		if (clock_monotonic_us() > deadline_us)
			return error_cause(error, ERR_UNAVAILABLE, "%s is locked by another signing process",
			                   path);
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	}
	return OK;
}

/* Writes the end of the log again. Every line but the last was synced before the next one was
 * begun. */
static bool rewrite_tail(int file, int64_t size)
{
	char tail[TAIL_SIZE];
	size_t wanted = size < TAIL_SIZE ? (size_t)size : TAIL_SIZE;
	int64_t offset = size - (int64_t)wanted;

	return file_read_at(file, tail, wanted, (uint64_t)offset) &&
	       file_write_at(file, slice_make(tail, wanted), (uint64_t)offset);
}

static int make_durable(struct signer_log *log, const struct signer_log_facts *facts,
                        const char *directory, struct error *error)
{
	if ((facts->torn_size > 0 && ftruncate(log->file, (off_t)facts->size) != 0) ||
	    !rewrite_tail(log->file, facts->size) || !durable_sync_open(log->file))
		return error_cause(error, ERR_IO, "%s/" SIGNER_LOG_NAME " cannot be made durable: %s",
		                   directory, strerror(errno));
	int result = durable_sync(directory, error);
	if (result)
		return result;
	log->size = facts->size;
	log->last = facts->last;
	if (facts->torn_size == 0)
		return OK;
	struct signer_log_entry torn = {.purpose = slice_of("torn_line"), .sha256 = facts->torn};
	return signer_log_add(log, &torn, slice_make(NULL, 0), error);
}

int signer_log_open(const char *directory, signer_log_visit *visit, void *context,
                    struct signer_log *ret_log, struct error *error)
{
	struct signer_log_facts facts = {0};
	char path[PATH_MAX];

	int result = make_path(directory, path, error);
	if (result)
		return result;
	struct signer_log log = {.file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
	if (log.file < 0)
		return error_cause(error, ERR_IO, "%s: %s", path, strerror(errno));
	result = lock(log.file, path, error);
	if (!result)
		result = read_log(log.file, visit, context, &facts, error);
	if (!result)
		result = make_durable(&log, &facts, directory, error);
	if (!result)
		*ret_log = log;
	else
		close(log.file);
	return result;
}

/* ---- writing ---- */

static void write_line(const struct signer_log *log, const struct signer_log_entry *entry,
                       struct slice reason, struct buf *line)
{
	struct json_writer writer = {.out = line};
	json_begin_object(&writer, NULL);
	json_time(&writer, "time", clock_now_us());
	json_slice(&writer, "purpose", entry->purpose);
	if (entry->store.size > 0) {
		json_slice(&writer, "store", entry->store);
		json_integer(&writer, "round", entry->round);
	}
	json_hex(&writer, "sha256", entry->sha256.bytes, SHA256_SIZE);
	if (reason.size > 0)
		json_slice(&writer, "reason", reason);
	json_hex(&writer, "previous", log->last.bytes, SHA256_SIZE);
	json_end_object(&writer);
	buf_add_byte(line, '\n');
}

int signer_log_add(struct signer_log *log, const struct signer_log_entry *entry,
                   struct slice reason, struct error *error)
{
	BUF_AUTO struct buf line;

	buf_init(&line, SIGNER_LOG_LINE_MAX);
	write_line(log, entry, reason, &line);
	int result = buf_check(&line);
	/* Another line feed would make the log unreadable at the next start. */
	assert(result || memchr(line.data, '\n', line.size) == line.data + line.size - 1);
	if (!result && !file_write_at(log->file, buf_slice(&line), (uint64_t)log->size))
		result = file_code(errno);
	/* A partial line would be cut off at the next start, but no further line may follow it. */
	if (result == ERR_NO_SPACE && ftruncate(log->file, (off_t)log->size) != 0)
		result = ERR_IO;
	if (!result && !durable_sync_data(log->file))
		result = ERR_IO;
	if (result)
		return error_cause(error, result, "writing " SIGNER_LOG_NAME ": %s",
		                   result == ERR_NO_SPACE ? "no space left on the disk"
		                                          : "input/output error");
	log->size += (int64_t)line.size;
	log->last = sha256_of(line.data, line.size);
	return OK;
}
