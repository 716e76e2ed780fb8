#include "monitor/log_source.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"

#define TIMEOUT_MS 30000
#define CONNECT_TIMEOUT_MS 10000
#define ATTEMPTS 3    /* an audit of a large log takes thousands of exchanges */
#define LENGTH_SIZE 2 /* of an entry in a bundle */
#define TILE_BYTES ((size_t)TILE_WIDTH * SHA256_SIZE)
#define BUNDLE_BYTES ((size_t)TILE_WIDTH * (LENGTH_SIZE + TLOG_ENTRY_MAX))

static int read_as_store(void *context, const struct tile_id *id, struct sha256 *ret_hashes,
                         struct error *error)
{
	return log_source_read_tile(context, id, ret_hashes, error);
}

int log_source_open(struct log_source *ret, const struct log_place *place, struct error *error)
{
	const char *prefix = place->url ? place->url : place->directory;
	*ret = (struct log_source){.place = *place, .prefix_size = strlen(prefix)};
	ret->tiles = (struct tile_store){.read = read_as_store, .context = ret};
	buf_init(&ret->body, 0);
	while (ret->prefix_size > 1 && prefix[ret->prefix_size - 1] == '/')
		ret->prefix_size--;
	if (!place->url)
		return OK;
	int result = http_url_check(slice_of(place->url), true, "--url", error);
	ret->guard.allowed.count = 2;
	ret->guard.allowed.networks[0] = (struct network){.family = AF_INET};
	ret->guard.allowed.networks[1] = (struct network){.family = AF_INET6};
	ret->session = result ? NULL : http_session_open();
	return result || ret->session ? result : ERR_NO_MEMORY;
}

void log_source_close(struct log_source *source)
{
	http_session_close(source->session);
	buf_free(&source->body);
	*source = (struct log_source){0};
}

/* ---- files ---- */

static int too_large(const char *path, size_t limit, struct error *error)
{
	return error_cause(error, ERR_TOO_LARGE, "%s has more than %zu bytes", path, limit);
}

static int read_directory(struct log_source *source, const char *path, size_t limit,
                          struct error *error)
{
	char name[PATH_MAX];
	struct stat facts;
	if (snprintf(name, sizeof name, "%.*s/%s", (int)source->prefix_size, source->place.directory,
	             path) >= (int)sizeof name)
		return error_cause(error, ERR_VALIDATION, "--dir is too long");
	DESCRIPTOR_AUTO int file = file_open_to_read(name, 0, &facts);
	if (file < 0)
		return errno == ENOENT || errno == ENOTDIR
		           ? error_cause(error, ERR_NOT_FOUND, "%s is missing", path)
		           : file_fail(error, "opening", name);
	if (!S_ISREG(facts.st_mode))
		return error_cause(error, ERR_IO, "%s is no regular file", name);
	if ((uint64_t)facts.st_size > limit)
		return too_large(path, limit, error);
	char *to = buf_extend(&source->body, (size_t)facts.st_size);
	if (!to)
		return ERR_NO_MEMORY;
	return file_read_at(file, to, (size_t)facts.st_size, 0) ? OK
	                                                        : file_fail(error, "reading", name);
}

static int read_url(struct log_source *source, const char *path, size_t limit, struct error *error)
{
	char url[HTTP_URL_MAX + 1];
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	struct error detail = {0};
	if (snprintf(url, sizeof url, "%.*s/%s", (int)source->prefix_size, source->place.url, path) >=
	    (int)sizeof url)
		return error_cause(error, ERR_VALIDATION, "--url is too long");
	/* A cache on the way may keep an old checkpoint, with which promises look broken. */
	static const char *const fresh[] = {"Cache-Control: no-cache"};
	const struct http_request request = {.url = url,
	                                     .headers = fresh,
	                                     .header_count = strcmp(path, "checkpoint") == 0,
	                                     .session = source->session,
	                                     .timeout_ms = TIMEOUT_MS,
	                                     .connect_timeout_ms = CONNECT_TIMEOUT_MS,
	                                     .answer_limit = limit,
	                                     .allow_http = true,
	                                     .authority_file = source->place.tls_roots,
	                                     .guard = &source->guard};
	int result = http_send(&request, &answer, &detail);
	if (result == ERR_TOO_LARGE)
		return too_large(path, limit, error);
	if (result == ERR_NO_MEMORY)
		return result;
	if (result)
		return error_cause(error, ERR_NETWORK, "%s: %.*s", path, ERROR_CAUSE_MAX / 2,
		                   error_reason(&detail, result));
	if (answer.status == 404 || answer.status == 410)
		return error_cause(error, ERR_NOT_FOUND, "%s is missing", path);
	if (answer.status != 200)
		return error_cause(error, ERR_NETWORK, "%s: the answer has status %d", path, answer.status);
	buf_add_slice(&source->body, buf_slice(&answer.body));
	return buf_check(&source->body);
}

static void pause_before(unsigned attempt)
{
	const struct timespec pause = {.tv_sec = attempt - 1, .tv_nsec = 500000000};
	(void)nanosleep(&pause, NULL);
}

int log_source_read(struct log_source *source, const char *path, size_t limit,
                    struct slice *ret_body, struct error *error)
{
	int result = ERR_NETWORK;
	source->body.limit = limit + 1;
	for (unsigned attempt = 0; attempt < ATTEMPTS && result == ERR_NETWORK; attempt++) {
		if (attempt > 0)
			pause_before(attempt);
		buf_clear(&source->body);
		result = source->place.url ? read_url(source, path, limit, error)
		                           : read_directory(source, path, limit, error);
	}
	if (!result)
		*ret_body = buf_slice(&source->body);
	return result;
}

/* ---- tiles ---- */

/* Reads a file of the tile, or the full tile if the partial one is gone: logs may remove it. */
static int read_tile_file(struct log_source *source, const struct tile_id *id, size_t limit,
                          char path[TILE_PATH_SIZE], struct slice *ret_body, struct error *error)
{
	struct error missing = {0};
	tile_path(id, path);
	int result = log_source_read(source, path, limit, ret_body, error);
	if (result != ERR_NOT_FOUND || id->width == TILE_WIDTH)
		return result;
	const struct tile_id full = {id->level, id->index, TILE_WIDTH};
	char full_path[TILE_PATH_SIZE];
	tile_path(&full, full_path);
	result = log_source_read(source, full_path, limit, ret_body, &missing);
	if (result == ERR_NOT_FOUND)
		return result; /* the error names the partial one */
	memcpy(path, full_path, TILE_PATH_SIZE);
	if (result && error)
		*error = missing;
	return result;
}

int log_source_read_tile(struct log_source *source, const struct tile_id *id,
                         struct sha256 *ret_hashes, struct error *error)
{
	char path[TILE_PATH_SIZE], exact[TILE_PATH_SIZE];
	struct slice body;
	tile_path(id, exact);
	int result = read_tile_file(source, id, TILE_BYTES, path, &body, error);
	if (result)
		return result;
	size_t size = id->width * sizeof *ret_hashes;
	bool is_exact = strcmp(path, exact) == 0;
	if (body.size != (is_exact ? size : TILE_BYTES))
		return error_cause(error, ERR_INVALID_EVIDENCE, "%s has %zu bytes, and must have %zu", path,
		                   body.size, is_exact ? size : TILE_BYTES);
	memcpy(ret_hashes, body.data, size);
	return OK;
}

/* Takes the next entry of a bundle. */
static bool take_entry(struct slice *rest, struct slice *ret_entry)
{
	if (rest->size < LENGTH_SIZE)
		return false;
	const unsigned char *length = (const unsigned char *)rest->data;
	size_t size = (size_t)length[0] << 8 | length[1];
	if (rest->size - LENGTH_SIZE < size || size > TLOG_ENTRY_MAX)
		return false;
	*ret_entry = slice_make(rest->data + LENGTH_SIZE, size);
	*rest = slice_make(ret_entry->data + size, rest->size - LENGTH_SIZE - size);
	return true;
}

int log_source_read_bundle(struct log_source *source, uint64_t index, unsigned width,
                           struct slice ret_entries[TILE_WIDTH], struct error *error)
{
	const struct tile_id id = {TILE_ENTRIES, index, width};
	char path[TILE_PATH_SIZE], exact[TILE_PATH_SIZE];
	struct slice rest;
	tile_path(&id, exact);
	int result = read_tile_file(source, &id, BUNDLE_BYTES, path, &rest, error);
	if (result)
		return result;
	unsigned count = strcmp(path, exact) == 0 ? width : TILE_WIDTH;
	for (unsigned i = 0; i < count; i++)
		if (!take_entry(&rest, &ret_entries[i]))
			return error_cause(error, ERR_INVALID_EVIDENCE,
			                   "%s has fewer than %u entries, or one of more than %d bytes", path,
			                   count, TLOG_ENTRY_MAX);
	return rest.size == 0 ? OK
	                      : error_cause(error, ERR_INVALID_EVIDENCE, "%s has more than %u entries",
	                                    path, count);
}
