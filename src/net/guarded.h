/* Internal to net: common part of all exchanges. libcurl is initialized before its first handle is
 * created. Sockets are opened only to addresses that the guard permits. The guard checks the
 * address actually connected to, regardless of earlier name resolution. */
#ifndef NET_GUARDED_H
#define NET_GUARDED_H

#include "net/address_kind.h"
#include "libcurl.h"

/* The sockets of one exchange. */
struct guarded_sockets {
	const struct address_guard *guard;
	bool opened;  /* at least one address was permitted */
	bool refused; /* at least one was not; the following are of the last */
	char refused_address[ADDRESS_TEXT_SIZE];
	enum address_kind refused_kind;
};

/* Initializes libcurl. Call it before any other use of libcurl; any thread, any number of times.
 * ERR_UNAVAILABLE: libcurl is missing; ERR_NO_MEMORY. */
int guarded_start(struct error *error) MUST_CHECK;
/* Initializes libcurl and creates a handle. Errors as guarded_start. */
int guarded_handle(CURL **ret_easy, struct error *error) MUST_CHECK;
/* Sets the common options: guarded sockets, no proxy, no signals, TLS 1.2 or later, and no wait for
 * a hanging resolver. `sockets` must live as long as the exchange. */
CURLcode guarded_set_options(CURL *easy, struct guarded_sockets *sockets) MUST_CHECK;
/* Checks why an exchange failed. Returns `code`, with the address in the cause, if no address was
 * permitted and nothing was sent; otherwise OK. */
int guarded_check(const struct guarded_sockets *sockets, int code, struct error *error) MUST_CHECK;
/* Returns what a failed exchange is about. `reason`: the text of libcurl. */
enum error_blame guarded_fault(CURL *easy, CURLcode code, const char *reason);

#endif
