/* Network lists of operators, and the rules for outbound addresses. Pure functions without name
 * resolution. Thread safe.
 *
 * Addresses other than ordinary public unicast are refused unless the operator's network list
 * contains them. These are the IANA special-purpose registries (RFC 6890) and the instance metadata
 * addresses of cloud providers. An IPv4-mapped address is checked as its IPv4 address. NAT64
 * (64:ff9b::/96) and 6to4 (2002::/16) addresses are checked by the IPv4 address that they
 * contain. */
#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/setting.h"

#define ADDRESS_TEXT_SIZE 46 /* of any address as text, with NUL */

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

/* Parses a list such as "10.0.0.0/8, ::1", separated by commas with optional spaces. An entry
 * without a slash is a single address. An IPv4-mapped address or network becomes the IPv4 one that
 * it contains. An empty text gives an empty list. Returns 0 or ERR_VALIDATION: no valid address,
 * prefix out of range, host bits set, or too many entries. */
int network_list_parse(struct slice text, struct network_list *ret_list, struct error *error)
	MUST_CHECK;
/* Reports a list that cannot be parsed as a problem of `setting`. NULL counts as empty. */
void network_list_check(const char *list, const struct setting_check *check, const char *setting);
bool network_list_contains(const struct network_list *list, const struct sockaddr *address);

/* Restricts outbound connections. A zeroed guard permits only public addresses. */
struct address_guard {
	struct network_list allowed;
};

#endif
