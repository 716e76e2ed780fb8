#include "tools/remote_registration.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/utf8.h"

#define PAYLOAD_MAX ((size_t)1589248) /* of a JSON body, with every character escaped */
#define BODY_MAX (PAYLOAD_MAX + 8192)
#define NAME_SIZE 190 /* with a colon and a digest it is at most CLIENT_REF_MAX */
#define SPOOL_PIECE 65536
#define BOUNDARY_SIZE 32

int remote_channel(struct api *api, struct arena *arena, struct channel_facts *ret_channel,
                   struct error *error)
{
	struct api_answer answer;
	struct slice id, modality;
	int result = api_send(api, &(struct api_request){.path = "/channel"}, arena, &answer, error);
	if (result)
		return result;
	if (!json_get_text(answer.json, "channel_id", &id) ||
	    !json_get_text(json_member(answer.json, "current_config"), "modality", &modality) ||
	    id.size >= sizeof ret_channel->channel_id)
		return error_cause(error, ERR_NETWORK, "the answer describes no channel");
	*ret_channel = (struct channel_facts){.keeps_content = slice_is(modality, "content")};
	memcpy(ret_channel->channel_id, id.data, id.size);
	return 0;
}

/* ---- the file ---- */

/* A file that is sent: open, of a known size, readable at any offset. */
struct source {
	int file;
	const char *path;     /* for messages */
	char name[NAME_SIZE]; /* without directories, for display */
	uint64_t size;
	struct sha256 digest;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* Copies standard input to an unnamed file, because a retry reads it again. */
static int spool_input(struct source *source, struct error *error)
{
	const char *folder = getenv("TMPDIR");
	char piece[SPOOL_PIECE];
	ssize_t size;
	source->file = file_open_unnamed(folder && *folder ? folder : "/tmp");
	if (source->file < 0)
		return file_fail(error, "create a temporary file in", folder ? folder : "/tmp");
	while ((size = read(STDIN_FILENO, piece, sizeof piece)) != 0) {
		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0 || !file_write_all(source->file, slice_make(piece, (size_t)size)))
			return file_fail(error, "copy", "standard input");
	}
	return lseek(source->file, 0, SEEK_SET) == 0 ? 0 : file_fail(error, "copy", "standard input");
}

static int source_open(struct source *source, const struct file_declaration *declaration,
                       struct error *error)
{
	struct stat facts;
	const char *path = declaration->path;
	source->path = path ? path : "standard input";
	utf8_show(slice_of(path ? base_name(path) : "standard-input"), source->name, NAME_SIZE);
	if (!path && declaration->kind == DECLARE_DIGEST)
		source->file = dup(STDIN_FILENO);
	else if (!path) {
		int result = spool_input(source, error);
		if (result)
			return result;
	} else {
		source->file = file_open_to_read(path, 0, &facts);
		if (source->file >= 0 && !S_ISREG(facts.st_mode))
			return error_cause(error, ERR_IO, "%s is not a regular file", path);
	}
	if (source->file < 0)
		return file_fail(error, "open", source->path);
	return file_digest(source->file, source->path, &source->size, &source->digest, error);
}

static void source_close(struct source *source)
{
	descriptor_close(&source->file);
}

/* ---- the body ---- */

/* multipart/form-data of the texts and the file, which is read when it is sent. */
struct form {
	struct buf head, tail;
	const struct source *source;
	const struct file_declaration *declaration;
};

static void form_free(struct form *form)
{
	buf_free(&form->head);
	buf_free(&form->tail);
}

static void form_text(struct form *form, const char *boundary, const char *name, const char *value)
{
	if (value)
		buf_printf(&form->head, "--%s\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n%s\r\n",
		           boundary, name, value);
}

static void form_make(struct form *form, const char *client_ref, char boundary[BOUNDARY_SIZE + 1])
{
	uint8_t random[BOUNDARY_SIZE / 2];
	random_bytes(random, sizeof random);
	hex_encode(random, sizeof random, boundary);
	buf_init(&form->head, 8192);
	buf_init(&form->tail, 256);
	form_text(form, boundary, "client_ref", client_ref);
	form_text(form, boundary, "occurred_at", form->declaration->occurred_at);
	buf_printf(&form->head, "--%s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"",
	           boundary);
	for (const char *at = form->source->name; *at; at++)
		buf_add_text(&form->head, *at == '"' ? "%22" : (char[]){*at, '\0'});
	buf_add_text(&form->head, "\"\r\nContent-Type: application/octet-stream\r\n\r\n");
	buf_printf(&form->tail, "\r\n--%s--\r\n", boundary);
}

/* Copies what `from`, whose first byte is at `begin` of the body, has at `offset`. */
static size_t copy_text(const struct buf *from, uint64_t begin, uint64_t offset, void *data,
                        size_t size)
{
	size_t at = (size_t)(offset - begin), left = from->size - at;
	size_t taken = left < size ? left : size;
	memcpy(data, from->data + at, taken);
	return taken;
}

static size_t form_read(void *context, uint64_t offset, void *data, size_t size)
{
	struct form *form = context;
	uint64_t file_begin = form->head.size, file_end = file_begin + form->source->size;
	if (offset < file_begin)
		return copy_text(&form->head, 0, offset, data, size);
	if (offset >= file_end)
		return copy_text(&form->tail, file_end, offset, data, size);
	size_t left = file_end - offset < size ? (size_t)(file_end - offset) : size;
	if (!file_read_at(form->source->file, data, left, offset - file_begin))
		return 0; /* the file became shorter */
	if (form->declaration->progress)
		form->declaration->progress(form->declaration->progress_context, form->source->path,
		                            offset - file_begin + left, form->source->size);
	return left;
}

static int send_form(struct api *api, const struct file_declaration *declaration,
                     const struct source *source, const char *client_ref, struct arena *arena,
                     struct api_answer *ret_answer, struct error *error)
{
	__attribute__((cleanup(form_free))) struct form form = {.source = source,
	                                                        .declaration = declaration};
	char boundary[BOUNDARY_SIZE + 1], type[64 + BOUNDARY_SIZE];
	form_make(&form, client_ref, boundary);
	if (buf_check(&form.head) || buf_check(&form.tail))
		return ERR_NO_MEMORY;
	snprintf(type, sizeof type, "multipart/form-data; boundary=%s", boundary);
	const struct http_upload upload = {.read = form_read,
	                                   .context = &form,
	                                   .size = form.head.size + source->size + form.tail.size};
	return api_send(
		api, &(struct api_request){.path = "/events", .content_type = type, .upload = &upload},
		arena, ret_answer, error);
}

static int send_json(struct api *api, const struct file_declaration *declaration,
                     struct slice payload, const struct file_registration *registration,
                     struct arena *arena, struct api_answer *ret_answer, struct error *error)
{
	BUF_AUTO struct buf body;
	buf_init(&body, BODY_MAX);
	struct json_writer writer = {.out = &body};
	json_begin_object(&writer, NULL);
	json_text(&writer, "client_ref", registration->client_ref);
	if (!payload.size) {
		json_hex(&writer, "hash", registration->digest.bytes, SHA256_SIZE);
		json_text(&writer, "hash_alg", "sha-256");
	}
	if (declaration->occurred_at)
		json_text(&writer, "occurred_at", declaration->occurred_at);
	if (payload.size)
		json_raw(&writer, "payload", payload);
	json_end_object(&writer);
	if (buf_check(&body))
		return ERR_NO_MEMORY;
	const struct api_request request = {
		.path = "/events", .content_type = "application/json", .body = buf_slice(&body)};
	return api_send(api, &request, arena, ret_answer, error);
}

/* ---- one declaration ---- */

static int choose_ref(struct file_registration *registration,
                      const struct file_declaration *declaration, const char *name,
                      struct error *error)
{
	char hex[2 * SHA256_SIZE + 1];
	hex_encode(registration->digest.bytes, SHA256_SIZE, hex);
	if (!declaration->client_ref) {
		snprintf(registration->client_ref, sizeof registration->client_ref, "%s:%s", name, hex);
		return 0;
	}
	struct slice given = slice_of(declaration->client_ref);
	if (!given.size || given.size > CLIENT_REF_MAX || !utf8_valid(given) || utf8_has_control(given))
		return error_set(error, ERR_VALIDATION, MSG_TOOLS_REF, NULL);
	memcpy(registration->client_ref, given.data, given.size + 1);
	return 0;
}

static int send_payload(struct api *api, const struct file_declaration *declaration,
                        struct arena *arena, struct file_registration *registration,
                        struct api_answer *ret_answer, struct error *error)
{
	BUF_AUTO struct buf text;
	BUF_AUTO struct buf canonical;
	struct json *json;
	char name[NAME_SIZE];
	buf_init(&text, PAYLOAD_MAX);
	buf_init(&canonical, 2 * PAYLOAD_MAX);
	int result = file_read_whole(declaration->path, &text, error);
	if (result)
		return text.full ? error_set(error, ERR_TOO_LARGE, MSG_TOOLS_PAYLOAD_SIZE, NULL) : result;
	result = json_parse(arena, buf_slice(&text), NULL, &json, error);
	if (!result && json->type != JSON_OBJECT)
		result = error_set(error, ERR_VALIDATION, MSG_TOOLS_PAYLOAD_TYPE, NULL);
	if (result)
		return result;
	json_canonical(json, &canonical);
	if (buf_check(&canonical))
		return ERR_NO_MEMORY;
	utf8_show(slice_of(base_name(declaration->path)), name, sizeof name);
	registration->digest = sha256_of(canonical.data, canonical.size);
	result = choose_ref(registration, declaration, name, error);
	return result ? result
	              : send_json(api, declaration, buf_slice(&text), registration, arena, ret_answer,
	                          error);
}

static int send_file(struct api *api, const struct file_declaration *declaration,
                     struct arena *arena, struct file_registration *registration,
                     struct api_answer *ret_answer, struct error *error)
{
	__attribute__((cleanup(source_close))) struct source source = {.file = -1};
	int result = source_open(&source, declaration, error);
	if (result)
		return result;
	registration->digest = source.digest;
	result = choose_ref(registration, declaration, source.name, error);
	if (!result && declaration->kind == DECLARE_FILE)
		result = send_form(api, declaration, &source, registration->client_ref, arena, ret_answer,
		                   error);
	else if (!result)
		result = send_json(api, declaration, slice_make(NULL, 0), registration, arena, ret_answer,
		                   error);
	return result;
}

int remote_register(struct api *api, const struct file_declaration *declaration,
                    struct arena *arena, struct file_registration *ret_registration,
                    struct error *error)
{
	struct api_answer answer;
	struct slice hash = {0}, ref = {0}, id;
	char hex[2 * SHA256_SIZE + 1];
	*ret_registration = (struct file_registration){0};
	int result = declaration->kind == DECLARE_PAYLOAD
	                 ? send_payload(api, declaration, arena, ret_registration, &answer, error)
	                 : send_file(api, declaration, arena, ret_registration, &answer, error);
	if (result)
		return result;
	if (!json_get_text(answer.json, "event_id", &id))
		return error_cause(error, ERR_NETWORK, "the answer is no receipt");
	hex_encode(ret_registration->digest.bytes, SHA256_SIZE, hex);
	ret_registration->replayed = answer.replayed;
	ret_registration->receipt = answer.json;
	ret_registration->matches = json_get_text(answer.json, "hash", &hash) && slice_is(hash, hex) &&
	                            json_get_text(answer.json, "client_ref", &ref) &&
	                            slice_is(ref, ret_registration->client_ref);
	return 0;
}
