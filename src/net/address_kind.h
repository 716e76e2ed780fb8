/* Internal to net: classification of addresses by the rules of address.h. */
#ifndef NET_ADDRESS_KIND_H
#define NET_ADDRESS_KIND_H

#include "net/address.h"

enum address_kind {
	ADDRESS_PUBLIC,
	ADDRESS_LOOPBACK,
	ADDRESS_PRIVATE,
	ADDRESS_LINK_LOCAL,
	ADDRESS_CARRIER_GRADE_NAT,
	ADDRESS_METADATA,
	ADDRESS_MULTICAST,
	ADDRESS_RESERVED, /* all others, also families other than IPv4 and IPv6 */
};

/* Returns "public", "loopback", … for messages. */
const char *address_kind_text(enum address_kind kind);

enum address_kind address_classify(const struct sockaddr *address);

/* Writes "192.0.2.1", "2001:db8::1", or "?" for other families. Always NUL-terminated. */
void address_text(const struct sockaddr *address, char text[ADDRESS_TEXT_SIZE]);

/* Returns whether the guard permits the address. A NULL guard is the same as a zeroed one. */
bool address_guard_permits(const struct address_guard *guard, const struct sockaddr *address);

#endif
