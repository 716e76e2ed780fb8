#include "net/origin.h"

#include <assert.h>
#include <string.h>

#include "base/buf.h"

static void put_lower(char *to, const char *text, size_t size)
{
	assert(size < ORIGIN_SIZE);
	for (size_t i = 0; i < size; i++)
		to[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
	to[size] = '\0';
}

bool origin_read(const char *address, struct origin *ret)
{
	bool secure = strncasecmp(address, "https://", 8) == 0;
	size_t scheme = secure ? 8 : strncasecmp(address, "http://", 7) == 0 ? 7 : 0;
	const char *host = address + scheme;
	size_t authority = strcspn(host, "/?#");
	size_t name = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/?#");
	if (!scheme || !name || name > authority || scheme + authority >= ORIGIN_SIZE ||
	    memchr(host, '@', authority))
		return false;
	struct slice port = slice_make(host + name, authority - name);
	bool usual = slice_is(port, ":") || slice_is(port, secure ? ":443" : ":80");
	put_lower(ret->text, address, scheme + (usual ? name : authority));
	put_lower(ret->host, host, name);
	ret->secure = secure;
	return true;
}

/* ---- lists ---- */

static struct slice trim(struct slice text)
{
	while (text.size && *text.data == ' ')
		text = slice_make(text.data + 1, text.size - 1);
	while (text.size && text.data[text.size - 1] == ' ')
		text.size--;
	return text;
}

/* Takes the next entry without surrounding spaces. */
static struct slice take_entry(const char **list)
{
	size_t size = strcspn(*list, ",");
	struct slice entry = trim(slice_make(*list, size));
	*list += size + ((*list)[size] == ',');
	return entry;
}

static bool is_number_of_port(const char *text)
{
	size_t size = strlen(text);
	if (!size || size > 5 || strspn(text, "0123456789") != size || *text == '0')
		return false;
	int value = 0;
	for (; *text; text++)
		value = 10 * value + (*text - '0');
	return value <= 65535;
}

/* An entry that no browser sends would have no effect, so that its author would search for the
 * cause. "null" is the origin of every sandboxed page and every file. */
static bool is_origin(struct slice entry)
{
	char text[ORIGIN_SIZE];
	struct origin origin;
	if (!entry.size || entry.size >= sizeof text)
		return false;
	memcpy(text, entry.data, entry.size);
	text[entry.size] = '\0';
	if (strlen(text) != entry.size || !origin_read(text, &origin) || strcmp(origin.text, text) != 0)
		return false;
	bool literal = *origin.host == '[';
	const char *wanted =
		literal ? "[]:.0123456789abcdef" : "-._0123456789abcdefghijklmnopqrstuvwxyz";
	const char *port = strstr(text, "//") + 2 + strlen(origin.host);
	return strspn(origin.host, wanted) == strlen(origin.host) &&
	       (!*port || (*port == ':' && is_number_of_port(port + 1)));
}

bool origin_list_is_valid(const char *list, struct slice *ret_wrong)
{
	bool more = *list;
	while (more) {
		more = strchr(list, ',');
		struct slice entry = take_entry(&list);
		if (is_origin(entry))
			continue;
		*ret_wrong = entry;
		return false;
	}
	return true;
}

bool origin_list_has(const char *list, struct slice origin)
{
	while (*list && origin.size) {
		struct slice entry = take_entry(&list);
		if (entry.size == origin.size && memcmp(entry.data, origin.data, entry.size) == 0)
			return is_origin(entry);
	}
	return false;
}
