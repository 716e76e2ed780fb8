/* The networks that an operator names, and what of all addresses may be connected to. Pure, no
 * look-ups, thread safe.
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

#define ADDRESS_TEXT_SIZE 46 /* of any as text, with NUL */

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

#endif
