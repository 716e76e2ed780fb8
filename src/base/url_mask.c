#include "base/url_mask.h"

#define MASK "********"

static size_t find(struct slice text, size_t from, const char *any)
{
	while (from < text.size && !strchr(any, text.data[from]))
		from++;
	return from;
}

static void mask_query(struct slice query, struct buf *out)
{
	for (size_t at = 0; at < query.size; at++) {
		size_t end = find(query, at, "&;");
		size_t equals = find(query, at, "=&;");
		if (equals < end)
			buf_add(out, query.data + at, equals + 1 - at);
		if (equals == end ? end > at : end > equals + 1)
			buf_add_text(out, MASK);
		if (end < query.size)
			buf_add_byte(out, query.data[end]);
		at = end;
	}
}

void url_mask(struct slice url, struct buf *out)
{
	size_t colon = find(url, 0, ":/?#");
	bool has_authority = colon + 2 < url.size && memcmp(url.data + colon, "://", 3) == 0;
	size_t authority = has_authority ? colon + 3 : 0;
	size_t path = find(url, authority, "/?#");
	size_t host = authority;
	/* Uses the last '@': libcurl accepts an unescaped one in a password. */
	for (size_t i = authority; i < path; i++)
		if (url.data[i] == '@')
			host = i;
	size_t query = find(url, path, "?#");
	size_t fragment = find(url, query, "#");
	buf_add(out, url.data, authority);
	if (host > authority)
		buf_add_text(out, MASK);
	buf_add(out, url.data + host, query - host);
	if (query < fragment) {
		buf_add_byte(out, '?');
		mask_query(slice_make(url.data + query + 1, fragment - query - 1), out);
	}
	if (fragment < url.size)
		buf_add_text(out, "#" MASK);
}
