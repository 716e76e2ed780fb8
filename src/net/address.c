#include "net/address_kind.h"

#include <assert.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

/* The first match counts, so single addresses precede the networks that contain them. */
static const struct {
	uint8_t bytes[4];
	unsigned bits;
	enum address_kind kind;
} ranges_v4[] = {
	{{169, 254, 169, 254}, 32, ADDRESS_METADATA}, /* most clouds */
	{{169, 254, 170, 2}, 32, ADDRESS_METADATA},   /* container credentials */
	{{100, 100, 100, 200}, 32, ADDRESS_METADATA},
	{{168, 63, 129, 16}, 32, ADDRESS_METADATA}, /* a public address, internal to a cloud */
	{{192, 0, 0, 192}, 32, ADDRESS_METADATA},
	{{0, 0, 0, 0}, 8, ADDRESS_RESERVED},
	{{10, 0, 0, 0}, 8, ADDRESS_PRIVATE},
	{{100, 64, 0, 0}, 10, ADDRESS_CARRIER_GRADE_NAT},
	{{127, 0, 0, 0}, 8, ADDRESS_LOOPBACK},
	{{169, 254, 0, 0}, 16, ADDRESS_LINK_LOCAL},
	{{172, 16, 0, 0}, 12, ADDRESS_PRIVATE},
	{{192, 0, 0, 0}, 24, ADDRESS_RESERVED},
	{{192, 0, 2, 0}, 24, ADDRESS_RESERVED},   /* documentation */
	{{192, 88, 99, 0}, 24, ADDRESS_RESERVED}, /* 6to4 relays, withdrawn */
	{{192, 168, 0, 0}, 16, ADDRESS_PRIVATE},
	{{198, 18, 0, 0}, 15, ADDRESS_RESERVED}, /* benchmarks */
	{{198, 51, 100, 0}, 24, ADDRESS_RESERVED},
	{{203, 0, 113, 0}, 24, ADDRESS_RESERVED},
	{{224, 0, 0, 0}, 4, ADDRESS_MULTICAST},
	{{240, 0, 0, 0}, 4, ADDRESS_RESERVED}, /* includes the broadcast address */
};

/* Other addresses are public inside 2000::/3 and reserved outside. */
static const struct {
	uint8_t bytes[16];
	unsigned bits;
	enum address_kind kind;
} ranges_v6[] = {
	{{0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, 0x54}, 128, ADDRESS_METADATA},
	{{0xfd, 0x20, 0x00, 0xce, [14] = 0x02, 0x54}, 128, ADDRESS_METADATA},
	{{[15] = 1}, 128, ADDRESS_LOOPBACK},
	{{0xfe, 0x80}, 10, ADDRESS_LINK_LOCAL},
	{{0xfe, 0xc0}, 10, ADDRESS_PRIVATE}, /* site-local, withdrawn */
	{{0xfc}, 7, ADDRESS_PRIVATE},
	{{0xff}, 8, ADDRESS_MULTICAST},
	{{0x20, 0x01, 0x00, 0x00}, 23, ADDRESS_RESERVED}, /* Teredo, ORCHID and other protocols */
	{{0x20, 0x01, 0x0d, 0xb8}, 32, ADDRESS_RESERVED}, /* documentation */
	{{0x3f, 0xff, 0x00}, 20, ADDRESS_RESERVED},       /* documentation */
};

static bool prefix_matches(const uint8_t *address, const uint8_t *prefix, unsigned bits)
{
	size_t whole = bits / 8;

	if (memcmp(address, prefix, whole) != 0)
		return false;
	if (bits % 8 == 0)
		return true;
	unsigned mask = 0xffU << (8 - bits % 8) & 0xffU;
	return ((unsigned)(address[whole] ^ prefix[whole]) & mask) == 0;
}

const char *address_kind_text(enum address_kind kind)
{
	static const char *const names[] = {
		[ADDRESS_PUBLIC] = "public",
		[ADDRESS_LOOPBACK] = "loopback",
		[ADDRESS_PRIVATE] = "private",
		[ADDRESS_LINK_LOCAL] = "link-local",
		[ADDRESS_CARRIER_GRADE_NAT] = "carrier-grade NAT",
		[ADDRESS_METADATA] = "metadata",
		[ADDRESS_MULTICAST] = "multicast",
		[ADDRESS_RESERVED] = "reserved",
	};
	assert((size_t)kind < sizeof names / sizeof *names);
	return names[kind];
}

static enum address_kind classify_v4(const uint8_t bytes[4])
{
	for (size_t i = 0; i < sizeof ranges_v4 / sizeof *ranges_v4; i++)
		if (prefix_matches(bytes, ranges_v4[i].bytes, ranges_v4[i].bits))
			return ranges_v4[i].kind;
	return ADDRESS_PUBLIC;
}

static const uint8_t mapped_prefix[12] = {[10] = 0xff, [11] = 0xff};
static const uint8_t nat64_prefix[12] = {0x00, 0x64, 0xff, 0x9b};

static enum address_kind classify_v6(const uint8_t bytes[16])
{
	if (prefix_matches(bytes, mapped_prefix, 96) || prefix_matches(bytes, nat64_prefix, 96))
		return classify_v4(bytes + 12);
	if (bytes[0] == 0x20 && bytes[1] == 0x02)
		return classify_v4(bytes + 2);
	for (size_t i = 0; i < sizeof ranges_v6 / sizeof *ranges_v6; i++)
		if (prefix_matches(bytes, ranges_v6[i].bytes, ranges_v6[i].bits))
			return ranges_v6[i].kind;
	return (bytes[0] & 0xe0) == 0x20 ? ADDRESS_PUBLIC : ADDRESS_RESERVED;
}

/* Gets family and bytes; an IPv4-mapped address becomes its IPv4 address. Returns false for other
 * families. */
static bool address_bytes(const struct sockaddr *address, int *ret_family, uint8_t bytes[16])
{
	if (address->sa_family == AF_INET) {
		memcpy(bytes, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
		*ret_family = AF_INET;
		return true;
	}
	if (address->sa_family != AF_INET6)
		return false;
	memcpy(bytes, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, 16);
	*ret_family = AF_INET6;
	if (prefix_matches(bytes, mapped_prefix, 96)) {
		memmove(bytes, bytes + 12, 4);
		*ret_family = AF_INET;
	}
	return true;
}

enum address_kind address_classify(const struct sockaddr *address)
{
	uint8_t bytes[16];
	int family;

	if (!address_bytes(address, &family, bytes))
		return ADDRESS_RESERVED;
	return family == AF_INET ? classify_v4(bytes) : classify_v6(bytes);
}

void address_text(const struct sockaddr *address, char text[ADDRESS_TEXT_SIZE])
{
	uint8_t bytes[16];
	int family;

	if (!address_bytes(address, &family, bytes) ||
	    !inet_ntop(family, bytes, text, ADDRESS_TEXT_SIZE))
		memcpy(text, "?", 2);
}

static struct slice trim(struct slice text)
{
	while (text.size > 0 && text.data[0] == ' ')
		text = slice_make(text.data + 1, text.size - 1);
	while (text.size > 0 && text.data[text.size - 1] == ' ')
		text.size--;
	return text;
}

static bool parse_prefix(const char *text, unsigned most, unsigned *ret_bits)
{
	unsigned bits = 0;
	size_t digits = strlen(text);

	if (digits < 1 || digits > 3 || strspn(text, "0123456789") != digits)
		return false;
	for (const char *digit = text; *digit; digit++)
		bits = bits * 10 + (unsigned)(*digit - '0');
	if (bits > most)
		return false;
	*ret_bits = bits;
	return true;
}

static bool parse_network(struct slice text, struct network *ret_network)
{
	char copy[ADDRESS_TEXT_SIZE + 4];
	struct network network = {0};

	if (text.size == 0 || text.size >= sizeof copy)
		return false;
	memcpy(copy, text.data, text.size);
	copy[text.size] = 0;
	char *slash = strchr(copy, '/');
	if (slash)
		*slash = 0;
	network.family = strchr(copy, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(network.family, copy, network.bytes) != 1)
		return false;
	unsigned most = network.family == AF_INET ? 32 : 128;
	network.prefix_bits = most;
	if (slash && !parse_prefix(slash + 1, most, &network.prefix_bits))
		return false;
	for (unsigned bit = network.prefix_bits; bit < most; bit++)
		if (network.bytes[bit / 8] >> (7 - bit % 8) & 1)
			return false;
	/* Addresses are compared as IPv4 addresses if they contain one. */
	if (network.family == AF_INET6 && network.prefix_bits >= 96 &&
	    prefix_matches(network.bytes, mapped_prefix, 96)) {
		memmove(network.bytes, network.bytes + 12, 4);
		memset(network.bytes + 4, 0, 12);
		network.family = AF_INET;
		network.prefix_bits -= 96;
	}
	*ret_network = network;
	return true;
}

/* States whether the item is a network but for bits after its prefix. */
static int refuse_network(struct slice item, struct error *error)
{
	struct network network;
	const char *slash = item.size ? memchr(item.data, '/', item.size) : NULL;
	size_t size = slash ? (size_t)(slash - item.data) : item.size;
	int shown = (int)(item.size < 64 ? item.size : 64);
	bool is_prefix = slash && item.size > size + 1 && item.size < size + 5;
	for (size_t i = size + 1; is_prefix && i < item.size; i++)
		is_prefix = item.data[i] >= '0' && item.data[i] <= '9';
	if (is_prefix && parse_network(slice_make(item.data, size), &network))
		return error_cause(error, ERR_VALIDATION,
		                   "'%.*s' has bits after its prefix, or its prefix is too long; a network "
		                   "ends with zeros, as 10.0.0.0/8 does",
		                   shown, item.data);
	return error_cause(error, ERR_VALIDATION,
	                   "'%.*s' is not a network such as 10.0.0.0/8 or fd00::/8", shown, item.data);
}

int network_list_parse(struct slice text, struct network_list *ret_list, struct error *error)
{
	struct network_list list = {0};

	if (trim(text).size == 0) {
		*ret_list = list;
		return 0;
	}
	for (size_t start = 0; start <= text.size;) {
		const char *comma = memchr(text.data + start, ',', text.size - start);
		size_t end = comma ? (size_t)(comma - text.data) : text.size;
		struct slice item = trim(slice_make(text.data + start, end - start));
		if (list.count == NETWORKS_MAX)
			return error_cause(error, ERR_VALIDATION, "more than %d networks", NETWORKS_MAX);
		if (!parse_network(item, &list.networks[list.count]))
			return refuse_network(item, error);
		list.count++;
		start = end + 1;
	}
	*ret_list = list;
	return 0;
}

void network_list_check(const char *list, const struct setting_check *check, const char *setting)
{
	struct network_list networks;
	struct error error = {0};
	char what[sizeof error.cause + 128];
	if (!network_list_parse(slice_of(list ? list : ""), &networks, &error))
		return;
	snprintf(what, sizeof what, "must be a list of networks such as 10.0.0.0/8, 2001:db8::/32: %s",
	         error.cause);
	setting_fault(check, setting, what);
}

bool network_list_contains(const struct network_list *list, const struct sockaddr *address)
{
	assert(list->count <= NETWORKS_MAX);
	uint8_t bytes[16];
	int family;

	if (!address_bytes(address, &family, bytes))
		return false;
	for (size_t i = 0; i < list->count; i++) {
		const struct network *network = &list->networks[i];
		if (network->family == family &&
		    prefix_matches(bytes, network->bytes, network->prefix_bits))
			return true;
	}
	return false;
}

bool address_guard_permits(const struct address_guard *guard, const struct sockaddr *address)
{
	if (address_classify(address) == ADDRESS_PUBLIC)
		return true;
	return guard && network_list_contains(&guard->allowed, address);
}
