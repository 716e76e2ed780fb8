#include "http/request_text.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>

#define CUT "…"
#define SHOWN_MAX 512 /* bytes of a segment or a parameter that can be shown */
#define PREFIX_MAX 64

/* ---- keys ---- */

static int digit_of(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : (tolower((unsigned char)c) - 'a' + 10);
}

/* Decodes in place. What is no valid escape stays. */
static size_t decode(char *text, size_t size)
{
	size_t decoded = 0;
	for (size_t i = 0; i < size; i++) {
		bool escape = text[i] == '%' && i + 2 < size && isxdigit((unsigned char)text[i + 1]) &&
		              isxdigit((unsigned char)text[i + 2]);
		text[decoded++] =
			escape ? (char)(digit_of(text[i + 1]) << 4 | digit_of(text[i + 2])) : text[i];
		i += escape ? 2 : 0;
	}
	return decoded;
}

static bool contains(const char *text, size_t size, const char *prefix)
{
	static const char *const modes[] = {"live", "test"};
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		char begin[PREFIX_MAX];
		int length = snprintf(begin, sizeof begin, "%s_%s_", prefix, modes[i]);
		for (size_t at = 0; at + (size_t)length <= size; at++)
			if (strncasecmp(text + at, begin, (size_t)length) == 0)
				return true;
	}
	return memmem(text, size, "mac=", 4) != NULL; /* of a link to a document */
}

/* Returns whether the text has what gives access, however often it is percent-encoded. Only the
 * beginning matters, because the rest is not shown. */
static bool contains_secret(struct slice text, const char *prefix)
{
	char copy[SHOWN_MAX];
	size_t size = text.size < sizeof copy ? text.size : sizeof copy;
	memcpy(copy, text.data, size);
	size_t before;
	do {
		if (contains(copy, size, prefix))
			return true;
		before = size;
		size = decode(copy, size);
	} while (size < before);
	return false;
}

/* ---- writing ---- */

struct writer {
	const char *prefix;
	char *text;
	size_t size, used;
	bool full;
};

static struct writer begin(const char *prefix, char *text, size_t size)
{
	assert(size > sizeof CUT && size <= SHOWN_MAX && strlen(prefix) + sizeof "_live_" < PREFIX_MAX);
	return (struct writer){.prefix = prefix, .text = text, .size = size - sizeof CUT};
}

static void put(struct writer *out, struct slice text)
{
	for (size_t i = 0; i < text.size && !out->full; i++) {
		char c = text.data[i];
		out->full = out->used == out->size;
		if (!out->full)
			out->text[out->used++] = c > ' ' && c < 0x7f ? c : '?';
	}
}

static void end(struct writer *out)
{
	memcpy(out->text + out->used, out->full ? CUT : "", out->full ? sizeof CUT : 1);
}

/* Takes what is before the separator, or all of it. */
static struct slice take(struct slice *rest, char separator, bool *ret_more)
{
	const char *at = rest->size ? memchr(rest->data, separator, rest->size) : NULL;
	size_t size = at ? (size_t)(at - rest->data) : rest->size;
	struct slice taken = slice_make(rest->data, size);
	*ret_more = at != NULL;
	*rest = slice_make(rest->data + size + *ret_more, rest->size - size - *ret_more);
	return taken;
}

void request_path_write(const char *prefix, struct slice path, char *ret, size_t size)
{
	struct writer out = begin(prefix, ret, size);
	bool more = path.size > 0;
	while (more && !out.full) {
		struct slice segment = take(&path, '/', &more);
		put(&out, contains_secret(segment, prefix) ? slice_of(REQUEST_TEXT_HIDDEN) : segment);
		put(&out, slice_of(more ? "/" : ""));
	}
	end(&out);
}

static bool is_listed(const char *const *names, struct slice name)
{
	for (; names && *names; names++)
		if (slice_is(name, *names))
			return true;
	return false;
}

static void put_parameter(struct writer *out, struct slice parameter, const char *const *names)
{
	bool has_value;
	struct slice value = parameter, name = take(&value, '=', &has_value);
	if (contains_secret(name, out->prefix)) {
		put(out, slice_of(REQUEST_TEXT_HIDDEN));
		return;
	}
	put(out, name);
	if (!has_value)
		return;
	bool shown = is_listed(names, name) && !contains_secret(value, out->prefix);
	put(out, slice_of("="));
	put(out, shown ? value : slice_of(REQUEST_TEXT_HIDDEN));
}

void request_query_write(const char *prefix, struct slice query, const char *const *names,
                         char *ret, size_t size)
{
	struct writer out = begin(prefix, ret, size);
	bool more = query.size > 0;
	while (more && !out.full) {
		put_parameter(&out, take(&query, '&', &more), names);
		put(&out, slice_of(more ? "&" : ""));
	}
	end(&out);
}
