#include "net/url.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#define PORT_MAX 65535
#define SCHEME_MAX 40
#define NOT_IN_A_NAME "/:#?!@{}[]\\$'\"^`*<>=;,+&()%|"

static bool is_letter(char c)
{
	return ((c | 0x20) >= 'a') && ((c | 0x20) <= 'z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t scheme_size(struct slice text)
{
	size_t size = 0;
	while (size < text.size && size < SCHEME_MAX &&
	       (is_letter(text.data[size]) ||
	        (size && (is_digit(text.data[size]) || strchr("+-.", text.data[size])))))
		size++;
	return size;
}

static bool is_port(struct slice text)
{
	unsigned port = 0;
	for (size_t i = 0; i < text.size; i++) {
		if (!is_digit(text.data[i]))
			return false;
		port = port * 10 + (unsigned)(text.data[i] - '0');
		if (port > PORT_MAX)
			return false;
	}
	return true;
}

static bool is_six(struct slice text)
{
	char address[INET6_ADDRSTRLEN];
	struct in6_addr six;
	if (text.size >= sizeof address)
		return false;
	memcpy(address, text.data, text.size);
	address[text.size] = '\0';
	return inet_pton(AF_INET6, address, &six) == 1;
}

/* HOST[:PORT]; the port may be empty. */
static bool is_authority(struct slice text)
{
	const char *end = text.data + text.size, *at = text.data;
	if (text.size && *at == '[') {
		at = memchr(at, ']', text.size);
		if (!at || !is_six(slice_make(text.data + 1, (size_t)(at - text.data - 1))))
			return false;
		at++;
	} else {
		while (at < end && !strchr(NOT_IN_A_NAME, *at))
			at++;
		if (at == text.data)
			return false;
	}
	return at == end || (*at == ':' && is_port(slice_make(at + 1, (size_t)(end - at - 1))));
}

bool url_read(struct slice text, struct url *ret_url)
{
	for (size_t i = 0; i < text.size; i++)
		if (text.data[i] <= 0x20 || text.data[i] >= 0x7f || text.data[i] == '#')
			return false;
	struct slice scheme = slice_make(text.data, scheme_size(text));
	struct slice rest = slice_make(text.data + scheme.size, text.size - scheme.size);
	if (!scheme.size || rest.size < 3 || memcmp(rest.data, "://", 3) != 0)
		return false;
	rest = slice_make(rest.data + 3, rest.size - 3);
	size_t size = 0;
	while (size < rest.size && rest.data[size] != '/' && rest.data[size] != '?')
		size++;
	if (!is_authority(slice_make(rest.data, size)))
		return false;
	*ret_url = (struct url){scheme, slice_make(rest.data + size, rest.size - size)};
	return true;
}

bool url_has_scheme(const struct url *url, const char *scheme)
{
	return strlen(scheme) == url->scheme.size &&
	       strncasecmp(url->scheme.data, scheme, url->scheme.size) == 0;
}
