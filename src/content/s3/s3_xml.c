#include "content/s3/s3_xml.h"

#include <expat.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/percent.h"

#define PATH_TEXT_MAX 512

/* State of the parser: the path of the current element, "ListBucketResult/Contents/Key", and its
 * text. `leave` is called at the end of each element; returning false stops the parser. */
struct reading {
	XML_Parser parser;
	char path[PATH_TEXT_MAX];
	size_t path_size;
	unsigned depth;
	struct buf text;
	bool refused;
	bool (*enter)(void *context, const char *path); /* may be NULL */
	bool (*leave)(void *context, const char *path, struct slice text);
	void *context;
};

static void refuse(struct reading *reading)
{
	reading->refused = true;
	XML_StopParser(reading->parser, XML_FALSE);
}

static void XMLCALL start(void *context, const XML_Char *name, const XML_Char **attributes)
{
	struct reading *reading = context;
	size_t size = strlen(name);
	(void)attributes;
	if (reading->refused)
		return;
	if (++reading->depth > S3_XML_DEPTH_MAX || reading->path_size + size + 2 > PATH_TEXT_MAX) {
		refuse(reading);
		return;
	}
	if (reading->path_size)
		reading->path[reading->path_size++] = '/';
	memcpy(reading->path + reading->path_size, name, size + 1);
	reading->path_size += size;
	buf_clear(&reading->text);
	if (reading->enter && !reading->enter(reading->context, reading->path))
		refuse(reading);
}

static void XMLCALL end(void *context, const XML_Char *name)
{
	struct reading *reading = context;
	if (reading->refused)
		return;
	if (buf_check(&reading->text) ||
	    !reading->leave(reading->context, reading->path, buf_slice(&reading->text))) {
		refuse(reading);
		return;
	}
	reading->depth--;
	size_t size = strlen(name);
	reading->path_size -= reading->path_size > size ? size + 1 : size;
	reading->path[reading->path_size] = '\0';
	buf_clear(&reading->text);
}

static void XMLCALL characters(void *context, const XML_Char *text, int size)
{
	struct reading *reading = context;
	if (!reading->refused)
		buf_add(&reading->text, text, (size_t)size);
}

static void XMLCALL doctype(void *context, const XML_Char *name, const XML_Char *system_id,
                            const XML_Char *public_id, int internal)
{
	(void)name, (void)system_id, (void)public_id, (void)internal;
	refuse(context);
}

/* Services send blanks before the document to keep the connection open. */
static struct slice without_blanks(struct slice text)
{
	while (text.size && strchr(" \t\r\n", *text.data))
		text = slice_make(text.data + 1, text.size - 1);
	return text;
}

/* Returns 0, ERR_IO or ERR_NO_MEMORY. */
static int read_document(struct reading *reading, struct slice text)
{
	text = without_blanks(text);
	reading->parser = XML_ParserCreate(NULL);
	if (!reading->parser)
		return ERR_NO_MEMORY;
	buf_init(&reading->text, S3_XML_TEXT_MAX);
	XML_SetUserData(reading->parser, reading);
	XML_SetElementHandler(reading->parser, start, end);
	XML_SetCharacterDataHandler(reading->parser, characters);
	XML_SetStartDoctypeDeclHandler(reading->parser, doctype);
	bool good = text.size > 0 && text.size <= INT32_MAX &&
	            XML_Parse(reading->parser, text.data, (int)text.size, 1) == XML_STATUS_OK &&
	            !reading->refused;
	bool no_memory = (reading->text.failed && !reading->text.full) ||
	                 XML_GetErrorCode(reading->parser) == XML_ERROR_NO_MEMORY;
	XML_ParserFree(reading->parser);
	buf_free(&reading->text);
	if (no_memory)
		return ERR_NO_MEMORY;
	return good ? OK : ERR_IO;
}

/* Copies a text. Returns false if it does not fit or has a NUL. */
static bool keep(struct slice text, char *to, size_t size)
{
	if (text.size >= size || memchr(text.data, '\0', text.size))
		return false;
	memcpy(to, text.data, text.size);
	to[text.size] = '\0';
	return true;
}

/* ---- errors ---- */

static bool enter_error(void *context, const char *path)
{
	(void)context;
	return strcmp(path, "Error") == 0 || strncmp(path, "Error/", 6) == 0;
}

static bool leave_error(void *context, const char *path, struct slice text)
{
	struct s3_error *error = context;
	if (strcmp(path, "Error/Code") == 0)
		return keep(text, error->code, sizeof error->code);
	if (strcmp(path, "Error/Message") == 0)
		snprintf(error->message, sizeof error->message, "%.*s", (int)text.size, text.data);
	return true;
}

int s3_xml_error(struct slice text, struct s3_error *ret_error)
{
	struct s3_error found = {0};
	struct reading reading = {.enter = enter_error, .leave = leave_error, .context = &found};
	int result = read_document(&reading, text);
	if (!result)
		*ret_error = found;
	return result;
}

/* ---- one value ---- */

struct wanted {
	const char *path;
	char *to;
	size_t size;
	bool found;
};

static bool leave_wanted(void *context, const char *path, struct slice text)
{
	struct wanted *wanted = context;
	if (strcmp(path, wanted->path) != 0)
		return true;
	bool first = !wanted->found;
	wanted->found = text.size > 0 && keep(text, wanted->to, wanted->size);
	return first && wanted->found;
}

static int read_value(struct slice text, const char *path, char *to, size_t size,
                      struct error *error)
{
	char value[S3_XML_TEXT_MAX];
	struct wanted wanted = {
		.path = path, .to = value, .size = size < sizeof value ? size : sizeof value};
	struct reading reading = {.leave = leave_wanted, .context = &wanted};
	int result = read_document(&reading, text);
	if (!result && !wanted.found)
		result = ERR_IO;
	if (result)
		return error_cause(error, result, "content: the response has no valid %s", path);
	memcpy(to, value, strlen(value) + 1);
	return OK;
}

int s3_xml_upload_id(struct slice text, char *upload_id, size_t size, struct error *error)
{
	return read_value(text, "InitiateMultipartUploadResult/UploadId", upload_id, size, error);
}

int s3_xml_completion(struct slice text, char *etag, size_t size, struct error *error)
{
	return read_value(text, "CompleteMultipartUploadResult/ETag", etag, size, error);
}

/* ---- lists ---- */

struct listing_reading {
	struct arena *arena;
	struct s3_listing *listing;
	struct s3_listed item;
	size_t most;
	bool uploads;
	bool no_memory;
};

/* Some services ignore encoding-type and return unescaped keys. */
static const char *unescape(struct listing_reading *list, struct slice text)
{
	const char *same = arena_copy(list->arena, text.data, text.size);
	char *to = arena_alloc(list->arena, text.size + 1);
	size_t size;
	list->no_memory |= !same || !to;
	if (!same || !to || !percent_decode(text, to, text.size, &size))
		return same;
	to[size] = '\0';
	return to;
}

static const char *plain(struct listing_reading *list, struct slice text)
{
	const char *copy = arena_copy(list->arena, text.data, text.size);
	list->no_memory |= !copy;
	return copy;
}

static bool add_item(struct listing_reading *list)
{
	struct s3_listing *listing = list->listing;
	bool whole = list->item.key && list->item.changed_us != TIME_NONE &&
	             (!list->uploads || list->item.upload_id);
	if (!whole || listing->count == list->most)
		return false;
	listing->items[listing->count++] = list->item;
	list->item = (struct s3_listed){.changed_us = TIME_NONE};
	return true;
}

static bool item_member(struct listing_reading *list, const char *member, struct slice text)
{
	if (strcmp(member, "Key") == 0)
		return (list->item.key = unescape(list, text)) != NULL;
	if (strcmp(member, "UploadId") == 0)
		return (list->item.upload_id = plain(list, text)) != NULL;
	if (strcmp(member, "LastModified") == 0 || strcmp(member, "Initiated") == 0)
		return !time_parse(text, member, &list->item.changed_us, NULL);
	return true;
}

static bool list_member(struct listing_reading *list, const char *member, struct slice text)
{
	struct s3_listing *listing = list->listing;
	if (strcmp(member, "IsTruncated") == 0)
		listing->truncated = slice_is(text, "true");
	else if (strcmp(member, "NextContinuationToken") == 0)
		listing->token = plain(list, text);
	else if (strcmp(member, "NextKeyMarker") == 0)
		listing->key_marker = unescape(list, text);
	else if (strcmp(member, "NextUploadIdMarker") == 0)
		listing->upload_marker = plain(list, text);
	else if (strcmp(member, list->uploads ? "Upload" : "Contents") == 0)
		return add_item(list);
	return !list->no_memory;
}

static bool enter_list(void *context, const char *path)
{
	struct listing_reading *list = context;
	if (!strchr(path, '/'))
		list->uploads = strcmp(path, "ListMultipartUploadsResult") == 0;
	const char *root = list->uploads ? "ListMultipartUploadsResult" : "ListBucketResult";
	size_t size = strlen(root);
	return strncmp(path, root, size) == 0 && (path[size] == '\0' || path[size] == '/');
}

static bool leave_list(void *context, const char *path, struct slice text)
{
	struct listing_reading *list = context;
	const char *member = strchr(path, '/');
	if (!member)
		return true;
	const char *item = list->uploads ? "Upload/" : "Contents/";
	member++;
	if (strncmp(member, item, strlen(item)) == 0)
		return item_member(list, member + strlen(item), text);
	return list_member(list, member, text);
}

int s3_xml_listing(struct slice text, size_t most, struct arena *arena,
                   struct s3_listing *ret_listing, struct error *error)
{
	struct s3_listing listing = {.items = arena_alloc(arena, most * sizeof *listing.items)};
	struct listing_reading list = {
		.arena = arena, .listing = &listing, .item = {.changed_us = TIME_NONE}, .most = most};
	struct reading reading = {.enter = enter_list, .leave = leave_list, .context = &list};
	int result = listing.items ? read_document(&reading, text) : ERR_NO_MEMORY;
	bool has_next = list.uploads ? listing.key_marker != NULL : listing.token != NULL;
	if (list.no_memory)
		result = ERR_NO_MEMORY;
	else if (!result && listing.truncated && !has_next)
		result = ERR_IO;
	if (result)
		return error_cause(error, result, "content: a listing is not valid");
	*ret_listing = listing;
	return OK;
}
