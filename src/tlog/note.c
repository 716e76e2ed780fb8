#include "tlog/note.h"

#include <assert.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdio.h>

#include "base/base64.h"
#include "base/utf8.h"

#define SIGNATURE_START "\xe2\x80\x94 " /* em dash, space */
#define KEY_BYTES (1 + NOTE_KEY_SIZE)   /* of the last part of a vkey */
#define TIME_SIZE 8
#define TIME_S_MAX INT64_C(253402300799) /* the end of the year 9999 */
/* Signatures of other algorithms may be larger; they are ignored, but their lines are read. */
#define SIGNATURE_BYTES_MAX 16384
#define COSIGNATURE_LINE_MAX 512 /* a name, and 76 bytes in base64 */

static int refuse(struct error *error, const char *why)
{
	return error_cause(error, ERR_INVALID_EVIDENCE, "%s", why);
}

static bool starts_with(struct slice text, const char *start)
{
	size_t size = strlen(start);
	return text.size >= size && memcmp(text.data, start, size) == 0;
}

static struct slice after(struct slice text, size_t size)
{
	assert(size <= text.size);
	return slice_make(text.data + size, text.size - size);
}

static struct slice before(struct slice text, const char *end)
{
	return slice_make(text.data, (size_t)(end - text.data));
}

/* ---- keys ---- */

/* White space of Unicode, in UTF-8. */
static bool has_space(struct slice text)
{
	static const char *const spaces[] = {" ",
	                                     "\t",
	                                     "\n",
	                                     "\v",
	                                     "\f",
	                                     "\r",
	                                     "\xc2\x85",
	                                     "\xc2\xa0",
	                                     "\xe1\x9a\x80",
	                                     "\xe2\x80\x80",
	                                     "\xe2\x80\x81",
	                                     "\xe2\x80\x82",
	                                     "\xe2\x80\x83",
	                                     "\xe2\x80\x84",
	                                     "\xe2\x80\x85",
	                                     "\xe2\x80\x86",
	                                     "\xe2\x80\x87",
	                                     "\xe2\x80\x88",
	                                     "\xe2\x80\x89",
	                                     "\xe2\x80\x8a",
	                                     "\xe2\x80\xa8",
	                                     "\xe2\x80\xa9",
	                                     "\xe2\x80\xaf",
	                                     "\xe2\x81\x9f",
	                                     "\xe3\x80\x80"};
	for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
		if (memmem(text.data, text.size, spaces[i], strlen(spaces[i])))
			return true;
	return false;
}

const char *note_check_name(struct slice name)
{
	bool good = name.size >= 1 && name.size <= NOTE_NAME_MAX &&
	            !memchr(name.data, '+', name.size) && utf8_valid(name) && !has_space(name) &&
	            !utf8_has_control(name);
	return good ? NULL : "must have 1 to 255 bytes of UTF-8, without spaces and plus signs";
}

struct note_key note_key_make(const char *name, enum note_key_type type,
                              const uint8_t key[NOTE_KEY_SIZE])
{
	struct note_key made = {.type = type};
	size_t size = strlen(name);
	assert(!note_check_name(slice_of(name)));
	memcpy(made.name, name, size + 1);
	memcpy(made.key, key, NOTE_KEY_SIZE);
	uint8_t named[NOTE_NAME_MAX + 1 + KEY_BYTES];
	memcpy(named, name, size);
	named[size] = '\n';
	named[size + 1] = (uint8_t)type;
	memcpy(named + size + 2, key, NOTE_KEY_SIZE);
	const struct sha256 hash = sha256_of(named, size + 1 + KEY_BYTES);
	memcpy(made.id, hash.bytes, sizeof made.id);
	return made;
}

int note_key_parse(struct slice vkey, struct note_key *ret, struct error *error)
{
	/* The base64 of the key may have plus signs. */
	const char *name_end = vkey.size > 0 ? memchr(vkey.data, '+', vkey.size) : NULL;
	if (!name_end)
		return refuse(error, "not of the form NAME+ID+KEY");
	struct slice name = before(vkey, name_end), rest = after(vkey, name.size + 1);
	const char *wrong_name = note_check_name(name);
	if (wrong_name)
		return error_cause(error, ERR_INVALID_EVIDENCE, "the name %s", wrong_name);
	uint8_t id[4], key[KEY_BYTES];
	size_t size = 0;
	if (rest.size < 9 || rest.data[8] != '+' ||
	    !hex_decode(slice_make(rest.data, 8), id, sizeof id))
		return refuse(error, "the id must be 8 hexadecimal digits between two plus signs");
	if (!base64_decode(after(rest, 9), key, sizeof key, &size) || size < 1)
		return refuse(error, "the key must be base64 of a type and 32 bytes");
	if (key[0] != NOTE_ED25519 && key[0] != NOTE_COSIGNATURE)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "the key has type %d, and the types 1 (Ed25519) and 4 (Ed25519 "
		                   "cosignatures) are supported",
		                   key[0]);
	if (size != sizeof key)
		return refuse(error, "the key must be base64 of a type and 32 bytes");
	char text[NOTE_NAME_MAX + 1];
	memcpy(text, name.data, name.size);
	text[name.size] = '\0';
	*ret = note_key_make(text, (enum note_key_type)key[0], key + 1);
	if (memcmp(id, ret->id, sizeof id) != 0)
		return refuse(error, "the id is not that of the name and the key");
	return OK;
}

void note_key_write(const struct note_key *key, char vkey[NOTE_VKEY_SIZE])
{
	uint8_t bytes[KEY_BYTES];
	char id[9], text[BASE64_SIZE(KEY_BYTES) + 1];
	bytes[0] = (uint8_t)key->type;
	memcpy(bytes + 1, key->key, NOTE_KEY_SIZE);
	hex_encode(key->id, sizeof key->id, id);
	base64_encode(bytes, sizeof bytes, text);
	snprintf(vkey, NOTE_VKEY_SIZE, "%s+%s+%s", key->name, id, text);
}

bool note_key_equal(const struct note_key *a, const struct note_key *b)
{
	return a->type == b->type && memcmp(a->key, b->key, NOTE_KEY_SIZE) == 0 &&
	       strcmp(a->name, b->name) == 0;
}

/* ---- reading ---- */

static int parse_signature(struct arena *arena, struct slice line, struct note_signature *ret,
                           struct error *error)
{
	struct slice rest = slice_make(line.data, line.size - 1);
	if (!starts_with(rest, SIGNATURE_START))
		return refuse(error, "a signature line must begin with a dash (U+2014) and a space");
	rest = after(rest, strlen(SIGNATURE_START));
	const char *space = memchr(rest.data, ' ', rest.size);
	if (!space)
		return refuse(error, "a signature line must have a name and a signature");
	ret->line = line;
	ret->name = before(rest, space);
	rest = after(rest, ret->name.size + 1);
	if (note_check_name(ret->name))
		return refuse(error, "the name of a signature is not valid");
	size_t size = 0, size_max = rest.size / 4 * 3 + 3;
	char *bytes = size_max <= SIGNATURE_BYTES_MAX ? arena_alloc(arena, size_max) : NULL;
	if (!bytes)
		return size_max <= SIGNATURE_BYTES_MAX ? ERR_NO_MEMORY
		                                       : refuse(error, "a signature is too long");
	if (rest.size % 4 != 0 || !base64_decode(rest, bytes, size_max, &size) ||
	    size <= sizeof ret->id)
		return refuse(error, "a signature must be base64 of a key id and more");
	memcpy(ret->id, bytes, sizeof ret->id);
	ret->bytes = slice_make(bytes + sizeof ret->id, size - sizeof ret->id);
	return OK;
}

static size_t count_lines(struct slice text)
{
	size_t count = 0;
	for (size_t i = 0; i < text.size; i++)
		count += text.data[i] == '\n';
	return count;
}

int note_parse_signatures(struct arena *arena, struct slice lines, struct note *ret,
                          struct error *error)
{
	size_t count = count_lines(lines);
	*ret = (struct note){0};
	if (count < 1 || lines.data[lines.size - 1] != '\n')
		return refuse(error, "a note must have signature lines, and the last one its end");
	if (count > NOTE_SIGNATURES_MAX)
		return refuse(error, "a note may have 64 signatures at most");
	ret->signatures = arena_alloc(arena, count * sizeof *ret->signatures);
	if (!ret->signatures)
		return ERR_NO_MEMORY;
	int result = OK;
	for (struct slice rest = lines; !result && rest.size > 0; ret->count++) {
		const char *end = memchr(rest.data, '\n', rest.size);
		struct slice line = before(rest, end + 1);
		result = parse_signature(arena, line, &ret->signatures[ret->count], error);
		rest = after(rest, line.size);
	}
	return result;
}

static bool has_signature_of(const struct note_signature *signatures, size_t count,
                             const struct note_signature *one)
{
	for (size_t i = 0; i < count; i++)
		if (slice_equal(signatures[i].name, one->name) &&
		    memcmp(signatures[i].id, one->id, sizeof one->id) == 0)
			return true;
	return false;
}

int note_add_readable(struct slice lines, struct buf *out)
{
	struct note_signature kept[NOTE_COSIGNATURES_MAX];
	size_t count = 0;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, NOTE_SIZE_MAX);
	while (lines.size > 0 && count < NOTE_COSIGNATURES_MAX) {
		const char *end = memchr(lines.data, '\n', lines.size);
		if (!end)
			break;
		struct slice line = before(lines, end + 1);
		lines = after(lines, line.size);
		arena_reset(&arena); /* names and ids are not in it */
		int result = line.size > COSIGNATURE_LINE_MAX
		                 ? ERR_INVALID_EVIDENCE
		                 : parse_signature(&arena, line, &kept[count], NULL);
		if (result == ERR_NO_MEMORY)
			return result;
		if (result || kept[count].bytes.size != TIME_SIZE + NOTE_SIGNATURE_SIZE ||
		    has_signature_of(kept, count, &kept[count]))
			continue;
		buf_add_slice(out, line);
		count++;
	}
	return buf_check(out);
}

static bool has_other_control(struct slice text)
{
	for (size_t i = 0; i < text.size; i++)
		if ((unsigned char)text.data[i] < 0x20 && text.data[i] != '\n')
			return true;
	return false;
}

/* Returns the last empty line: where the second of two line ends is. */
static const char *find_separator(struct slice text)
{
	for (size_t i = text.size; i >= 2; i--)
		if (text.data[i - 1] == '\n' && text.data[i - 2] == '\n')
			return text.data + i - 1;
	return NULL;
}

int note_parse(struct arena *arena, struct slice text, struct note *ret, struct error *error)
{
	if (text.size > NOTE_SIZE_MAX)
		return refuse(error, "a note may have 65,536 bytes at most");
	if (!utf8_valid(text) || has_other_control(text))
		return refuse(error, "a note must be UTF-8 without control characters");
	const char *separator = find_separator(text);
	if (!separator)
		return refuse(error, "a note must have an empty line before its signatures");
	struct slice body = before(text, separator);
	int result = note_parse_signatures(arena, after(text, body.size + 1), ret, error);
	ret->text = body;
	return result;
}

/* ---- signatures ---- */

int note_verify_bytes(const uint8_t key[NOTE_KEY_SIZE], struct slice message,
                      struct slice signature, bool *ret_valid)
{
	EVP_PKEY *public = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, NOTE_KEY_SIZE);
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	bool ready = public && context && EVP_DigestVerifyInit(context, NULL, NULL, NULL, public) == 1;
	*ret_valid = ready && signature.size == NOTE_SIGNATURE_SIZE &&
	             EVP_DigestVerify(context, (const unsigned char *)signature.data, signature.size,
	                              (const unsigned char *)message.data, message.size) == 1;
	EVP_MD_CTX_free(context);
	EVP_PKEY_free(public);
	ERR_clear_error();
	return ready ? OK : ERR_NO_MEMORY;
}

void note_cosigned_message(struct slice text, int64_t time_s, struct buf *out)
{
	buf_add_text(out, "cosignature/v1\ntime ");
	buf_add_signed(out, time_s);
	buf_add_byte(out, '\n');
	buf_add_slice(out, text);
}

/* Reads the time of a cosignature; false: none that a verifier takes. */
static bool read_time(struct slice bytes, int64_t *ret_time_s)
{
	uint64_t time_s = 0;
	if (bytes.size != TIME_SIZE + NOTE_SIGNATURE_SIZE)
		return false;
	for (size_t i = 0; i < TIME_SIZE; i++)
		time_s = time_s << 8 | (uint8_t)bytes.data[i];
	*ret_time_s = (int64_t)time_s;
	return time_s <= TIME_S_MAX;
}

static int verify_cosignature(const struct note_key *key, struct slice text, struct slice bytes,
                              bool *ret_valid, int64_t *ret_time_us)
{
	int64_t time_s;
	*ret_valid = false;
	if (!read_time(bytes, &time_s))
		return OK;
	BUF_AUTO struct buf message;
	buf_init(&message, NOTE_SIZE_MAX + 64);
	note_cosigned_message(text, time_s, &message);
	*ret_time_us = time_s * US_PER_SECOND;
	int result = buf_check(&message);
	return result ? result
	              : note_verify_bytes(key->key, buf_slice(&message), after(bytes, TIME_SIZE),
	                                  ret_valid);
}

bool note_signature_is_of(const struct note_signature *signature, const struct note_key *key)
{
	return slice_is(signature->name, key->name) &&
	       memcmp(signature->id, key->id, sizeof key->id) == 0;
}

enum note_verdict note_verify_text(struct slice text, const struct note *note,
                                   const struct note_key *key, int64_t *ret_time_us)
{
	int64_t time_us = TIME_NONE;
	size_t i = 0;
	while (i < note->count && !note_signature_is_of(&note->signatures[i], key))
		i++;
	enum note_verdict verdict = NOTE_UNSIGNED;
	if (i < note->count) {
		const struct note_signature *signature = &note->signatures[i];
		bool good;
		int result = key->type == NOTE_COSIGNATURE
		                 ? verify_cosignature(key, text, signature->bytes, &good, &time_us)
		                 : note_verify_bytes(key->key, text, signature->bytes, &good);
		verdict = result ? NOTE_NOT_CHECKED : good ? NOTE_SIGNED : NOTE_FALSE;
	}
	if (ret_time_us)
		*ret_time_us = verdict == NOTE_SIGNED ? time_us : TIME_NONE;
	return verdict;
}

enum note_verdict note_verify(const struct note *note, const struct note_key *key,
                              int64_t *ret_time_us)
{
	return note_verify_text(note->text, note, key, ret_time_us);
}

static void add_line(const struct note_key *key, const uint8_t *bytes, size_t size, struct buf *out)
{
	uint8_t with_id[sizeof key->id + TIME_SIZE + NOTE_SIGNATURE_SIZE];
	assert(sizeof key->id + size <= sizeof with_id);
	memcpy(with_id, key->id, sizeof key->id);
	memcpy(with_id + sizeof key->id, bytes, size);
	buf_add_text(out, SIGNATURE_START);
	buf_add_text(out, key->name);
	buf_add_byte(out, ' ');
	buf_add_base64(out, slice_make(with_id, sizeof key->id + size));
	buf_add_byte(out, '\n');
}

void note_add_signature(const struct note_key *key, const uint8_t signature[NOTE_SIGNATURE_SIZE],
                        struct buf *out)
{
	assert(key->type == NOTE_ED25519);
	add_line(key, signature, NOTE_SIGNATURE_SIZE, out);
}

void note_add_cosignature(const struct note_key *key, int64_t time_s,
                          const uint8_t signature[NOTE_SIGNATURE_SIZE], struct buf *out)
{
	uint8_t bytes[TIME_SIZE + NOTE_SIGNATURE_SIZE];
	assert(key->type == NOTE_COSIGNATURE && time_s >= 0);
	for (int i = 0; i < TIME_SIZE; i++)
		bytes[i] = (uint8_t)((uint64_t)time_s >> (8 * (TIME_SIZE - 1 - i)));
	memcpy(bytes + TIME_SIZE, signature, NOTE_SIGNATURE_SIZE);
	add_line(key, bytes, sizeof bytes, out);
}
