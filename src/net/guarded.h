/* The folder's own: what all exchanges have in common. libcurl is started before its first handle,
 * and a socket is opened to an address only that the guard permits: the one really connected to,
 * whatever a name resolved to before. */
#ifndef NET_GUARDED_H
#define NET_GUARDED_H

#include "net/address_kind.h"
#include "net/libcurl.h"

/* The sockets of one exchange. */
struct guarded_sockets {
	const struct address_guard *guard;
	bool opened;  /* at least one address was permitted */
	bool refused; /* at least one was not: the last of them */
	char refused_address[ADDRESS_TEXT_SIZE];
	enum address_kind refused_kind;
};

/* Before anything else of libcurl; any number of times, from any thread. ERR_UNAVAILABLE: there is
 * no libcurl; ERR_NO_MEMORY. */
int guarded_start(struct error *error) MUST_CHECK;
/* Started, and a handle, of libcurl. Errors likewise. */
int guarded_handle(CURL **ret_easy, struct error *error) MUST_CHECK;
/* Has the handle open its sockets here; no proxy, no signals, TLS 1.2 at least, and nobody held by
 * a resolver that hangs. `sockets` lives as long as the exchange. */
CURLcode guarded_set_options(CURL *easy, struct guarded_sockets *sockets) MUST_CHECK;
/* Of an exchange that failed: `code`, with the address in the cause, if no address was permitted
 * and so nothing was sent; OK: that was not why. */
int guarded_check(const struct guarded_sockets *sockets, int code, struct error *error) MUST_CHECK;

#endif
