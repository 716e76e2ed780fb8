/* Which network addresses may be connected to: pure classification, no look-ups, thread safe.
 *
 * What is not ordinary public unicast (the IANA special-purpose registries, RFC 6890, and the
 * addresses at which clouds serve instance metadata) is refused unless the operator's list of
 * networks contains it. IPv4-mapped addresses are judged as the IPv4 address they are; NAT64
 * (64:ff9b::/96) and 6to4 (2002::/16) by the IPv4 address they carry. */
#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/error.h"

enum address_kind {
	ADDRESS_PUBLIC,
	ADDRESS_LOOPBACK,
	ADDRESS_PRIVATE,
	ADDRESS_LINK_LOCAL,
	ADDRESS_CARRIER_GRADE_NAT,
	ADDRESS_METADATA,
	ADDRESS_MULTICAST,
	ADDRESS_RESERVED, /* everything else, also families other than IPv4 and IPv6 */
};

/* "public", "loopback", … for messages. */
const char *address_kind_text(enum address_kind kind);

enum address_kind address_classify(const struct sockaddr *address);

/* "192.0.2.1", "2001:db8::1"; "?" for other families. Always terminated. */
#define ADDRESS_TEXT_SIZE 46
void address_text(const struct sockaddr *address, char text[ADDRESS_TEXT_SIZE]);

#define NETWORKS_MAX 64

struct network {
	int family; /* AF_INET or AF_INET6 */
	unsigned prefix_bits;
	uint8_t bytes[16]; /* network order, host bits zero */
};

struct network_list {
	size_t count;
	struct network networks[NETWORKS_MAX];
};

/* "10.0.0.0/8, ::1": commas, spaces around them allowed; without a slash that one address; empty
 * text gives an empty list. 0 or ERR_VALIDATION: not an address, prefix out of range, host bits
 * set, too many. */
int network_list_parse(struct slice text, struct network_list *ret_list, struct error *error)
	MUST_CHECK;
bool network_list_contains(const struct network_list *list, const struct sockaddr *address);

/* What outbound connections may reach. A zeroed guard permits public addresses alone. */
struct address_guard {
	struct network_list allowed;
};

/* A NULL guard is the zeroed one. */
bool address_guard_permits(const struct address_guard *guard, const struct sockaddr *address);

#endif
