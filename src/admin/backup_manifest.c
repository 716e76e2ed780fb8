#include "admin/backup_manifest.h"

#include <limits.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_file.h"

#define MANIFEST_MAX ((size_t)64 * 1024)
#define FIRST_STORE_FILE "constancia.db" /* for manifests without store_file */

static void write_series_members(struct json_writer *writer, const struct backup_facts *facts)
{
	json_integer(writer, "content_linked", facts->content_linked);
	json_integer(writer, "content_lost", facts->content_lost);
	if (*facts->base)
		json_text(writer, "base", facts->base);
	if (!facts->pages.page_size)
		return;
	json_integer(writer, "page_count", facts->pages.page_count);
	json_integer(writer, "page_size", facts->pages.page_size);
	json_integer(writer, "pages_changed", facts->pages.changed_pages);
	json_hex(writer, "pages_sha256", facts->pages.digest.bytes, SHA256_SIZE);
}

int backup_write_manifest(const char *directory, const struct backup_facts *facts,
                          struct error *error)
{
	BUF_AUTO struct buf text;
	buf_init(&text, MANIFEST_MAX);
	struct json_writer writer = {.out = &text};
	json_begin_object(&writer, NULL);
	json_integer(&writer, "content_bytes", facts->content_bytes);
	if (facts->has_content_list)
		json_hex(&writer, "content_list_sha256", facts->content_list_sha256.bytes, SHA256_SIZE);
	json_integer(&writer, "content_missing", facts->content_missing);
	if (facts->has_missing_list)
		json_hex(&writer, "content_missing_sha256", facts->missing_list_sha256.bytes, SHA256_SIZE);
	json_integer(&writer, "content_objects", facts->content_objects);
	json_time(&writer, "created_at", facts->created_at_us);
	json_text(&writer, "installation", facts->installation);
	json_text(&writer, "program", "constancia " CONSTANCIA_VERSION);
	json_integer(&writer, "store_bytes", facts->store_bytes);
	json_text(&writer, "store_file", facts->store_file);
	json_hex(&writer, "store_sha256", facts->store_sha256.bytes, SHA256_SIZE);
	if (facts->has_content_list || facts->pages.page_size)
		write_series_members(&writer, facts);
	json_integer(&writer, "v", *facts->base ? BACKUP_FORMAT_INCREMENT : BACKUP_FORMAT);
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/backup.json", directory);
	return json_file_replace(path, &writer, error);
}

/* Reads a text that is a name of a file, not a path. */
static bool read_name(const struct json *json, const char *member, const char *otherwise, char *ret,
                      size_t size)
{
	struct slice text = slice_of(otherwise);
	(void)json_get_text(json, member, &text);
	if (text.size >= size || memchr(text.data, '/', text.size) || *text.data == '.')
		return false;
	snprintf(ret, size, "%.*s", (int)text.size, text.data);
	return true;
}

/* Reads the digest of a list. *ret_has is whether the backup has the list. */
static bool read_list_digest(const struct json *json, const char *member, bool *ret_has,
                             struct sha256 *ret)
{
	struct slice digest;
	*ret_has = json_get_text(json, member, &digest);
	return !*ret_has || hex_decode(digest, ret->bytes, SHA256_SIZE);
}

static bool read_series_members(const struct json *json, struct backup_facts *ret)
{
	struct slice digest;
	if (!read_name(json, "base", "", ret->base, sizeof ret->base))
		return false;
	(void)json_get_integer(json, "content_linked", &ret->content_linked);
	(void)json_get_integer(json, "content_lost", &ret->content_lost);
	(void)json_get_integer(json, "content_missing", &ret->content_missing);
	if (!json_get_text(json, "pages_sha256", &digest))
		return !*ret->base;
	return hex_decode(digest, ret->pages.digest.bytes, SHA256_SIZE) &&
	       json_get_integer(json, "page_count", &ret->pages.page_count) &&
	       json_get_integer(json, "page_size", &ret->pages.page_size) &&
	       json_get_integer(json, "pages_changed", &ret->pages.changed_pages);
}

static bool read_members(const struct json *json, struct slice *ret_created,
                         struct backup_facts *ret)
{
	struct slice digest, installation = slice_of("");
	int64_t version;
	if (!json_get_integer(json, "v", &version) || !json_get_text(json, "created_at", ret_created) ||
	    !json_get_integer(json, "store_bytes", &ret->store_bytes) ||
	    !json_get_integer(json, "content_objects", &ret->content_objects) ||
	    !json_get_integer(json, "content_bytes", &ret->content_bytes) ||
	    !json_get_text(json, "store_sha256", &digest) ||
	    !hex_decode(digest, ret->store_sha256.bytes, SHA256_SIZE))
		return false;
	(void)json_get_text(json, "installation", &installation);
	snprintf(ret->installation, sizeof ret->installation, "%.*s", (int)installation.size,
	         installation.data);
	return read_name(json, "store_file", FIRST_STORE_FILE, ret->store_file,
	                 sizeof ret->store_file) &&
	       read_list_digest(json, "content_list_sha256", &ret->has_content_list,
	                        &ret->content_list_sha256) &&
	       read_list_digest(json, "content_missing_sha256", &ret->has_missing_list,
	                        &ret->missing_list_sha256) &&
	       read_series_members(json, ret) &&
	       version == (*ret->base ? BACKUP_FORMAT_INCREMENT : BACKUP_FORMAT);
}

int backup_read_manifest(const char *directory, struct backup_facts *ret, struct error *error)
{
	char path[PATH_MAX];
	struct error why = {0};
	BUF_AUTO struct buf text;
	ARENA_AUTO struct arena arena;
	struct json *json;
	struct slice created;
	snprintf(path, sizeof path, "%s/backup.json", directory);
	buf_init(&text, MANIFEST_MAX);
	arena_init(&arena, MANIFEST_MAX);
	int result = file_read_whole(path, &text, &why);
	if (result)
		return error_cause(error, result, "this is not a complete backup: %s", why.cause);
	result = json_parse(&arena, buf_slice(&text), NULL, &json, error);
	if (result)
		return result;
	if (!read_members(json, &created, ret))
		return error_cause(error, ERR_CORRUPT, "%s is not a manifest of this program", path);
	return time_parse(created, "created_at", &ret->created_at_us, error);
}
