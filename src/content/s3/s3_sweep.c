/* Listings: old objects and unfinished multipart uploads. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/percent.h"
#include "base/tuned.h"
#include "content/s3/s3.h"
#include "content/s3/s3_xml.h"

#define PAGE_MEMORY_MAX ((size_t)16 << 20)
#define TOKEN_MAX 2048
/* Some services truncate times to whole seconds. */
#define TIME_ROUNDING_US US_PER_SECOND

struct sweep {
	struct s3_store *store;
	const struct content_range *range;
	char prefix[S3_PREFIX_MAX + CONTENT_NAME_MAX]; /* of keys: store and area */
	int (*visit)(void *context, const char *name);
	void *context;
	struct arena arena;
	int64_t listed_max; /* per answer; S3_LIST_MAX, less in tests */
	struct error *error;
};

static void add_parameter(struct buf *query, const char *name, const char *value)
{
	if (!value)
		return;
	buf_printf(query, "%s%s=", query->size ? "&" : "", name);
	buf_add_percent(query, slice_of(value), "");
}

static void add_number(struct buf *query, const char *name, int64_t value)
{
	char text[24];
	snprintf(text, sizeof text, "%lld", (long long)value);
	add_parameter(query, name, text);
}

static int list(struct sweep *sweep, struct buf *query, struct s3_listing *ret_listing)
{
	S3_ANSWER_AUTO struct s3_answer answer = {0};
	if (buf_check(query))
		return error_cause(sweep->error, ERR_IO, "content: a listing's marker is too long");
	struct s3_request request = {
		.method = "GET", .query = query->data, .expected_bytes = S3_ANSWER_MAX};
	int result = s3_send(sweep->store, &request, &answer, sweep->error);
	if (!result)
		result = s3_xml_listing(buf_slice(&answer.http.body), S3_LIST_MAX, &sweep->arena,
		                        ret_listing, sweep->error);
	/* Lets the caller detect a service without this listing. */
	return result && strcmp(answer.code, "NotImplemented") == 0 ? ERR_METHOD : result;
}

/* Returns the object's name, or NULL if the key is not in this store. */
static const char *own_name(const struct sweep *sweep, const struct s3_listed *item)
{
	const char *prefix = sweep->store->place.prefix;
	size_t size = strlen(prefix);
	if (strncmp(item->key, prefix, size) != 0 || !content_name_valid(item->key + size))
		return NULL;
	return item->changed_us >= sweep->range->since_us &&
	               item->changed_us + TIME_ROUNDING_US < sweep->range->before_us
	           ? item->key + size
	           : NULL;
}

/* Copies the marker out of the arena; refuses a marker that does not advance. */
static int next_marker(struct sweep *sweep, const char *marker, char kept[TOKEN_MAX])
{
	if (strlen(marker) >= TOKEN_MAX)
		return error_cause(sweep->error, ERR_IO, "content: a listing's marker is too long");
	if (strcmp(marker, kept) == 0)
		return s3_protocol_error(sweep->error, "a listing that does not advance");
	memcpy(kept, marker, strlen(marker) + 1);
	return OK;
}

static int sweep_objects(struct sweep *sweep)
{
	char token[TOKEN_MAX] = "";
	struct s3_listing listing = {.truncated = true};
	int result = OK;
	while (!result && listing.truncated) {
		BUF_AUTO struct buf query;
		buf_init(&query, S3_QUERY_MAX);
		add_parameter(&query, "continuation-token", *token ? token : NULL);
		add_parameter(&query, "encoding-type", "url");
		add_parameter(&query, "list-type", "2");
		add_number(&query, "max-keys", sweep->listed_max);
		add_parameter(&query, "prefix", sweep->prefix);
		arena_reset(&sweep->arena);
		result = list(sweep, &query, &listing);
		for (size_t i = 0; i < listing.count && !result; i++) {
			const char *name = own_name(sweep, &listing.items[i]);
			if (name)
				result = sweep->visit(sweep->context, name);
		}
		if (!result && listing.truncated)
			result = next_marker(sweep, listing.token, token);
	}
	return result == ERR_METHOD ? ERR_IO : result;
}

/* Several uploads may have the same key. */
static int next_upload(struct sweep *sweep, const struct s3_listing *listing, char key[TOKEN_MAX],
                       char upload[TOKEN_MAX])
{
	bool same_key = strcmp(key, listing->key_marker) == 0;
	int result = same_key ? OK : next_marker(sweep, listing->key_marker, key);
	if (!result && (same_key || listing->upload_marker))
		result = next_marker(sweep, listing->upload_marker ? listing->upload_marker : "", upload);
	return result;
}

static int end_upload(struct sweep *sweep, const char *name, const char *upload_id)
{
	int wish = sweep->visit(sweep->context, name);
	if (wish)
		return wish == CONTENT_KEEP ? OK : wish;
	return s3_abort_upload(sweep->store, name, upload_id, sweep->error);
}

static int sweep_uploads(struct sweep *sweep)
{
	char key[TOKEN_MAX] = "", upload[TOKEN_MAX] = "";
	struct s3_listing listing = {.truncated = true};
	int result = OK;
	while (!result && listing.truncated) {
		BUF_AUTO struct buf query;
		buf_init(&query, S3_QUERY_MAX);
		add_parameter(&query, "encoding-type", "url");
		add_parameter(&query, "key-marker", *key ? key : NULL);
		add_number(&query, "max-uploads", sweep->listed_max);
		add_parameter(&query, "prefix", sweep->prefix);
		add_parameter(&query, "upload-id-marker", *key && *upload ? upload : NULL);
		buf_add_text(&query, "&uploads=");
		arena_reset(&sweep->arena);
		result = list(sweep, &query, &listing);
		for (size_t i = 0; i < listing.count && !result; i++) {
			const char *name = own_name(sweep, &listing.items[i]);
			if (name && content_name_is_fresh(name))
				result = end_upload(sweep, name, listing.items[i].upload_id);
		}
		if (!result && listing.truncated)
			result = next_upload(sweep, &listing, key, upload);
	}
	return result == ERR_METHOD ? OK : result;
}

static int run(struct content_store *base, const struct content_range *range,
               int (*visit)(void *context, const char *name), void *context,
               int (*each)(struct sweep *sweep), struct error *error)
{
	struct sweep sweep = {.store = (struct s3_store *)base,
	                      .range = range,
	                      .visit = visit,
	                      .context = context,
	                      .listed_max = tuned_up_to("s3_listed", S3_LIST_MAX),
	                      .error = error};
	snprintf(sweep.prefix, sizeof sweep.prefix, "%s%s%s", sweep.store->place.prefix, range->area,
	         *range->area ? "/" : "");
	arena_init(&sweep.arena, PAGE_MEMORY_MAX);
	int result = each(&sweep);
	arena_free(&sweep.arena);
	return result;
}

int s3_list(struct content_store *store, const struct content_range *range,
            int (*visit)(void *context, const char *name), void *context, struct error *error)
{
	return run(store, range, visit, context, sweep_objects, error);
}

int s3_tidy(struct content_store *store, const struct content_range *range,
            int (*visit)(void *context, const char *name), void *context, struct error *error)
{
	return run(store, range, visit, context, sweep_uploads, error);
}

int s3_now_us(struct content_store *base, int64_t *ret_now_us, struct error *error)
{
	S3_ANSWER_AUTO struct s3_answer answer;
	struct s3_request request = {.method = "HEAD"};
	int result = s3_send((struct s3_store *)base, &request, &answer, error);
	if (result)
		return result;
	char date[64];
	struct tm parts = {0};
	if (!s3_header(&answer, "Date", date, sizeof date) ||
	    !strptime(date, "%a, %d %b %Y %H:%M:%S GMT", &parts))
		return s3_protocol_error(error, "an answer without a time");
	*ret_now_us = (int64_t)timegm(&parts) * US_PER_SECOND;
	return OK;
}
