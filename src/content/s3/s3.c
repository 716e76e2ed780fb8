/* Driver s3: opening, closing, deleting and download links. */
#include "content/s3/s3.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/percent.h"
#include "base/tuned.h"

#define TIMEOUT_DEFAULT_MS 10000

static void free_secret(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

static void close_store(struct content_store *base)
{
	struct s3_store *store = (struct s3_store *)base;
	for (size_t i = 0; i < store->session_count; i++)
		http_session_close(store->sessions[i]);
	pthread_mutex_destroy(&store->lock);
	free_secret(store->secret_key);
	free(store->access_key);
	free(store->spool_directory);
	free(store);
}

static bool is_given(const char *text)
{
	return text && *text;
}

static int fill(struct s3_store *store, const struct content_options *options, const char *place,
                struct error *error)
{
	int result = s3_place_parse(place, &store->place, error);
	if (result)
		return result;
	if (!is_given(options->access_key) || !is_given(options->secret_key))
		return error_set(error, ERR_VALIDATION, MSG_CONTENT_S3_KEYS, NULL);
	result = network_list_parse(slice_of(options->allow_networks), &store->guard.allowed, error);
	if (result)
		return result;
	store->access_key = strdup(options->access_key);
	store->secret_key = strdup(options->secret_key);
	store->spool_directory = strdup(options->spool_directory ? options->spool_directory : "/tmp");
	snprintf(store->signature, sizeof store->signature, "aws:amz:%s:s3", store->place.region);
	store->timeout_ms = options->timeout > 0 ? (int)(options->timeout / 1000) : TIMEOUT_DEFAULT_MS;
	if (!store->access_key || !store->secret_key || !store->spool_directory)
		return error_cause(error, ERR_NO_MEMORY, "content: no memory for a store");
	return OK;
}

static int open_store(const struct content_options *options, const char *place,
                      struct content_store **ret_store, struct error *error)
{
	struct s3_store *store = calloc(1, sizeof *store);
	if (!store)
		return error_cause(error, ERR_NO_MEMORY, "content: no memory for a store");
	store->base.driver = &content_s3_driver;
	pthread_mutex_init(&store->lock, NULL);
	store->sessions_max = (size_t)tuned_up_to("s3_sessions", S3_SESSIONS_MAX);
	int result = fill(store, options, place, error);
	if (result) {
		close_store(&store->base);
		return result;
	}
	*ret_store = &store->base;
	return OK;
}

static int check_place(const char *place, struct error *error)
{
	struct s3_place parsed;
	return s3_place_parse(place, &parsed, error);
}

static void check_settings(const struct content_options *options, bool chosen,
                           const struct setting_check *check)
{
	if (chosen && check->serving && !*options->access_key)
		setting_fault(check, "content.access_key", "must be set for an s3: address");
	if (chosen && check->serving && !*options->secret_key)
		setting_fault(check, "content.secret_key", "must be set for an s3: address");
	if (!chosen && options->presigned_links)
		setting_fault(check, "content.presigned_links", "requires an s3: address in content.url");
	network_list_check(options->allow_networks, check, "content.allow_networks");
	setting_check_range(check, "content.timeout", options->timeout / US_PER_SECOND, 1, 600);
}

static int delete_object(struct content_store *base, const char *name, struct error *error)
{
	S3_ANSWER_AUTO struct s3_answer answer;
	struct s3_request request = {.method = "DELETE", .name = name};
	int result = s3_send((struct s3_store *)base, &request, &answer, error);
	return result == ERR_NOT_FOUND ? OK : result;
}

static int make_link(struct content_store *base, const char *name, const struct content_link *link,
                     struct buf *out, struct error *error)
{
	const struct s3_store *store = (const struct s3_store *)base;
	struct s3_signing signing = {.access_key = store->access_key,
	                             .secret_key = store->secret_key,
	                             .region = store->place.region,
	                             .now_us = link->now_us};
	BUF_AUTO struct buf overrides;
	BUF_AUTO struct buf path;
	BUF_AUTO struct buf disposition;
	buf_init(&overrides, S3_QUERY_MAX);
	buf_init(&path, S3_URL_MAX);
	buf_init(&disposition, S3_QUERY_MAX);
	buf_printf(&disposition, "attachment; filename=\"%s\"", link->file_name);
	buf_add_text(&overrides, "response-content-disposition=");
	buf_add_percent(&overrides, buf_slice(&disposition), "");
	buf_add_text(&overrides, "&response-content-type=");
	buf_add_percent(&overrides, slice_of(link->content_type), "");
	s3_add_path(&store->place, name, &path);
	if (buf_check(&overrides) || buf_check(&path) || buf_check(&disposition))
		return error_cause(error, ERR_NO_MEMORY, "content: no memory for a link");
	int64_t lifetime_us = link->lifetime_us < CONTENT_LINK_LIFETIME_MAX_US
	                          ? link->lifetime_us
	                          : CONTENT_LINK_LIFETIME_MAX_US;
	buf_printf(out, "%s%s?", store->place.links, path.data);
	s3_presign(&signing, strstr(store->place.links, "://") + 3, path.data, overrides.data,
	           lifetime_us / US_PER_SECOND, out);
	return buf_check(out);
}

const struct content_driver content_s3_driver = {
	.scheme = "s3:",
	.remote = true,
	.open = open_store,
	.check_place = check_place,
	.check_settings = check_settings,
	.close = close_store,
	.ready = s3_ready,
	.write_begin = s3_write_begin,
	.write = s3_write,
	.write_commit = s3_write_commit,
	.write_abort = s3_write_abort,
	.put = s3_put,
	.read_begin = s3_read_begin,
	.read = s3_read,
	.read_end = s3_read_end,
	.make_link = make_link,
	.delete = delete_object,
	.now_us = s3_now_us,
	.list = s3_list,
	.tidy = s3_tidy,
};
