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
