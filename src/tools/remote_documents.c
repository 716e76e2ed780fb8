/* The documents of a certification as files, and the receipts of its range. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/receipt.h"
#include "base/durable.h"
#include "base/file.h"
#include "base/percent.h"
#include "tools/remote_certification.h"
#include "tools/receipt_file.h"

#define DOCUMENTS_MAX 9000 /* fewer than the verifier takes at once */
#define NAME_SIZE 200
#define STALL_MS 60000
#define TOTAL_MS (24 * 3600 * 1000)
#define CONNECT_MS 10000

struct document {
	char name[NAME_SIZE];
	const char *url; /* in the arena */
	uint64_t size;
	struct sha256 digest;
};

/* ---- download ---- */

struct download {
	int file;
	const struct document *document;
	struct digest_stream *digest;
	uint64_t size;
	bool local_failure; /* errno has the reason */
};

static bool take_part(void *context, struct slice part)
{
	struct download *download = context;
	download->size += part.size;
	if (download->size > download->document->size)
		return false;
	digest_add(download->digest, part.data, part.size);
	if (file_write_all(download->file, part))
		return true;
	download->local_failure = true;
	return false;
}

static int fetch(struct api *api, struct download *download, struct error *error)
{
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	const struct http_request request = {.url = download->document->url,
	                                     .take = take_part,
	                                     .take_context = download,
	                                     .session = api->session,
	                                     .timeout_ms = TOTAL_MS,
	                                     .connect_timeout_ms = CONNECT_MS,
	                                     .stall_timeout_ms = STALL_MS,
	                                     .cut_over_limit = true,
	                                     .allow_http = true,
	                                     .authority_file = api->tls_roots,
	                                     .guard = &api->guard};
	int result = http_send(&request, &answer, error);
	if (download->local_failure)
		return file_fail(error, "write", download->document->name);
	if (!result && answer.status != 200)
		result = error_cause(error, ERR_NETWORK, "the service did not deliver %s (%d)",
		                     download->document->name, answer.status);
	return result;
}

/* Downloads from the beginning to the file `path`, which it truncates. */
static int download_once(struct api *api, const struct document *document, const char *path,
                         struct error *error)
{
	DESCRIPTOR_AUTO int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	struct download download = {.file = file, .document = document};
	if (file < 0)
		return file_fail(error, "create", path);
	download.digest = digest_begin();
	if (!download.digest)
		return ERR_NO_MEMORY;
	int result = fetch(api, &download, error);
	struct sha256 digest = digest_end(download.digest);
	if (result)
		return result;
	if (download.size != document->size || !sha256_equal(&digest, &document->digest))
		return error_cause(error, ERR_NETWORK, "%s does not have the digest on record",
		                   document->name);
	return durable_sync_open(file) ? 0 : file_fail(error, "write", path);
}

static bool is_there(const char *path, const struct document *document)
{
	uint64_t size;
	struct sha256 digest;
	DESCRIPTOR_AUTO int file = open(path, O_RDONLY | O_CLOEXEC);
	return file >= 0 && file_digest(file, path, &size, &digest, NULL) == 0 &&
	       sha256_equal(&digest, &document->digest);
}

static int save_document(struct api *api, const struct document *document, const char *path,
                         struct error *error)
{
	char partial[PATH_MAX];
	if (is_there(path, document))
		return 0;
	if (snprintf(partial, sizeof partial, "%s.partial", path) >= (int)sizeof partial)
		return error_cause(error, ERR_IO, "path too long: %s", path);
	for (unsigned attempt = 1;; attempt++) {
		error_clear(error);
		int result = download_once(api, document, partial, error);
		if (!result && rename(partial, path) != 0)
			result = file_fail(error, "rename", partial);
		if (result)
			(void)unlink(partial);
		if (result != ERR_NETWORK || attempt >= api->attempts)
			return result;
		api_sleep_us(api_pause_us(attempt, 0));
	}
}

/* ---- the list of documents ---- */

/* Reads the name of the document from its link. Names become files, so that only letters, digits,
 * '-', '_' and '.' are accepted, and no '.' at the beginning. */
static bool read_name(struct slice url, char name[NAME_SIZE])
{
	const char *query = memchr(url.data, '?', url.size);
	size_t end = query ? (size_t)(query - url.data) : url.size, begin = end, size;
	while (begin > 0 && url.data[begin - 1] != '/')
		begin--;
	if (!percent_decode(slice_make(url.data + begin, end - begin), name, NAME_SIZE - 1, &size))
		return false;
	name[size] = '\0';
	static const char permitted[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
									"0123456789-_.";
	return size > 0 && name[0] != '.' && strspn(name, permitted) == size;
}

/* Other names could replace files of the user in an existing directory. */
static bool is_name_of(const char *id, const char *name)
{
	size_t size = strlen(id), length = strlen(name);
	const char *end = length > 4 ? name + length - 4 : "";
	return ((strncmp(name, id, size) == 0 && name[size] == '-') ||
	        strncmp(name, "content-part-", 13) == 0) &&
	       (strcmp(end, ".pdf") == 0 || strcmp(end, ".zip") == 0);
}

static bool find_document(const struct json *documents, struct document *document)
{
	struct slice name, digest;
	int64_t bytes;
	for (const struct json *at = documents ? documents->first : NULL; at; at = at->next)
		if (json_get_text(at, "name", &name) && slice_is(name, document->name) &&
		    json_get_text(at, "sha256", &digest) && json_get_integer(at, "bytes", &bytes) &&
		    bytes >= 0) {
			document->size = (uint64_t)bytes;
			return hex_decode(digest, document->digest.bytes, SHA256_SIZE);
		}
	return false;
}

struct saving {
	struct api *api;
	const char *id, *directory;
	const struct json *documents; /* of the service's verification */
	struct arena *arena;
	struct saved_documents *saved;
};

static int save_link(struct saving *saving, const struct json *link, struct error *error)
{
	struct document document;
	if (!link || link->type != JSON_STRING)
		return 0;
	if (saving->saved->count == DOCUMENTS_MAX)
		return error_cause(error, ERR_TOO_LARGE, "more than %d documents", DOCUMENTS_MAX);
	document.url = arena_copy(saving->arena, link->text.data, link->text.size);
	if (!document.url)
		return ERR_NO_MEMORY;
	if (!read_name(link->text, document.name) || !is_name_of(saving->id, document.name) ||
	    !find_document(saving->documents, &document))
		return error_cause(error, ERR_NETWORK, "a link without a digest on record");
	const char *path = arena_printf(saving->arena, "%s/%s", saving->directory, document.name);
	if (!path)
		return ERR_NO_MEMORY;
	saving->saved->paths[saving->saved->count++] = path;
	return save_document(saving->api, &document, path, error);
}

static int save_links(struct saving *saving, const struct json *certification, struct error *error)
{
	static const char *const lists[] = {"reports", "content_parts"};
	int result = save_link(saving, json_member(certification, "evidence_url"), error);
	for (size_t i = 0; i < 2; i++) {
		const struct json *list = json_member(certification, lists[i]);
		for (const struct json *at = list ? list->first : NULL; at && !result; at = at->next)
			result = save_link(saving, json_member(at, "url"), error);
	}
	return result;
}

int remote_save(struct api *api, const char *id, const char *directory, struct arena *arena,
                struct saved_documents *ret_saved, struct error *error)
{
	struct certification certification;
	struct api_answer answer;
	struct slice mode = {0};
	char path[CERTIFICATION_ID_MAX + 32];
	int result = remote_certification(api, id, arena, &certification, error);
	if (result)
		return result;
	snprintf(path, sizeof path, "/verify/%s", certification.code);
	result = api_send(api, &(struct api_request){.path = path, .is_public = true}, arena, &answer,
	                  error);
	if (result)
		return result;
	*ret_saved = (struct saved_documents){
		.paths = arena_alloc(arena, DOCUMENTS_MAX * sizeof *ret_saved->paths)};
	if (!ret_saved->paths)
		return ERR_NO_MEMORY;
	struct saving saving = {api,   id,       directory, json_member(answer.json, "documents"),
	                        arena, ret_saved};
	if (!json_get_integer(answer.json, "first_sequence", &ret_saved->first) ||
	    !json_get_integer(answer.json, "last_sequence", &ret_saved->last) ||
	    !json_get_text(answer.json, "mode", &mode))
		return error_cause(error, ERR_NETWORK, "the answer is no verification");
	ret_saved->is_test = slice_is(mode, "test");
	result = durable_make_directory(directory, error);
	if (!result)
		result = save_links(&saving, certification.json, error);
	return result ? result : durable_sync(directory, error);
}

/* ---- receipts ---- */

struct copying {
	const struct receipt_selection *selection;
	struct arena *arena;  /* of the paths */
	struct arena parsing; /* of one line */
	const char **paths;
	size_t paths_max, count;
	uint64_t receipts;
	FILE *out;
};

static bool is_in_range(const struct certified_range *range, const struct json *receipt)
{
	struct slice received;
	int64_t sequence, received_us;
	if (!range->by_time)
		return json_get_integer(receipt, "sequence", &sequence) && sequence >= range->first &&
		       sequence <= range->last;
	return json_get_text(receipt, "received_at", &received) &&
	       time_parse(received, "received_at", &received_us, NULL) == OK &&
	       received_us >= range->from_us && received_us < range->to_us;
}

static bool is_selected(const struct receipt_selection *selection, const struct json *receipt)
{
	struct slice channel, mode;
	return json_get_text(receipt, "channel_id", &channel) &&
	       slice_is(channel, selection->channel_id) && json_get_text(receipt, "mode", &mode) &&
	       slice_is(mode, selection->is_test ? "test" : "live") &&
	       is_in_range(&selection->range, receipt);
}

static int next_file(struct copying *copying, struct error *error)
{
	if (copying->out && fclose(copying->out) != 0)
		return file_fail(error, "write", copying->paths[copying->count - 1]);
	copying->out = NULL;
	if (copying->count == copying->paths_max)
		return error_cause(error, ERR_TOO_LARGE, "more than %zu receipts",
		                   copying->paths_max * RECEIPTS_MAX);
	const char *path = arena_printf(copying->arena, "%s/receipts-%zu.ndjson",
	                                copying->selection->directory, copying->count + 1);
	if (!path)
		return ERR_NO_MEMORY;
	copying->paths[copying->count++] = path;
	copying->out = fopen(path, "we");
	return copying->out ? 0 : file_fail(error, "create", path);
}

static int take_line(void *context, struct slice line, struct error *error)
{
	struct copying *copying = context;
	struct json *receipt;
	int result = 0;
	arena_reset(&copying->parsing);
	if (json_parse(&copying->parsing, line, NULL, &receipt, error))
		return tool_fail(error, ERR_VALIDATION, "%s has a line that is no receipt.",
		                 copying->selection->receipts);
	if (!is_selected(copying->selection, receipt))
		return 0;
	if (copying->receipts % RECEIPTS_MAX == 0)
		result = next_file(copying, error);
	if (!result && fprintf(copying->out, "%.*s\n", (int)line.size, line.data) < 0)
		result = file_fail(error, "write", copying->paths[copying->count - 1]);
	copying->receipts++;
	return result;
}

struct newest {
	const struct receipt_selection *selection;
	struct arena parsing; /* of one line */
	int64_t last;
};

static int take_newest(void *context, struct slice line, struct error *error)
{
	struct newest *newest = context;
	struct json *receipt;
	int64_t sequence;
	arena_reset(&newest->parsing);
	if (json_parse(&newest->parsing, line, NULL, &receipt, error))
		return tool_fail(error, ERR_VALIDATION, "%s has a line that is no receipt.",
		                 newest->selection->receipts);
	if (is_selected(newest->selection, receipt) &&
	    json_get_integer(receipt, "sequence", &sequence) && sequence > newest->last)
		newest->last = sequence;
	return OK;
}

int receipts_find_newest(const char *receipts, const char *channel_id, bool is_test,
                         int64_t *ret_last, struct error *error)
{
	const struct receipt_selection selection = {.receipts = receipts,
	                                            .channel_id = channel_id,
	                                            .range = {.first = 1, .last = INT64_MAX},
	                                            .is_test = is_test};
	struct newest newest = {.selection = &selection};
	arena_init(&newest.parsing, 16 * RECEIPT_LINE_MAX);
	int result = receipt_file_read(receipts, false, take_newest, &newest, error);
	arena_free(&newest.parsing);
	*ret_last = newest.last;
	return result;
}

int receipts_select(const struct receipt_selection *selection, struct arena *arena,
                    const char *ret_paths[], size_t paths_max, size_t *ret_count,
                    uint64_t *ret_receipts, struct error *error)
{
	struct copying copying = {
		.selection = selection, .arena = arena, .paths = ret_paths, .paths_max = paths_max};
	arena_init(&copying.parsing, 16 * RECEIPT_LINE_MAX);
	int result = receipt_file_read(selection->receipts, false, take_line, &copying, error);
	if (copying.out && fclose(copying.out) != 0 && !result)
		result = file_fail(error, "write", ret_paths[copying.count - 1]);
	arena_free(&copying.parsing);
	*ret_count = copying.count;
	*ret_receipts = copying.receipts;
	return result;
}
