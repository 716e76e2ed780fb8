/* Checks of every request before its body: framing, path and method, key, state, rate, name of a
 * forced scenario, and query, in this order. */
#ifndef HTTP_GUARD_H
#define HTTP_GUARD_H

#include <sys/socket.h>

#include "http/exchange.h"

/* Returns the salted identifier of an address. An IPv6 /56 counts as one address. */
uint64_t guard_address_id(const struct http_server *server, const struct sockaddr *address);
/* Returns the client address as reported by trusted proxies. Call after the head was read. False:
 * they report none, and the address is that of the connection. */
bool guard_client_address(const struct exchange *exchange, struct sockaddr_storage *ret);
/* Returns the identifier of the owner of a checked request: the account of its key, or the client
 * address. */
uint64_t guard_owner_id(const struct exchange *exchange);
uint64_t guard_account_id(int64_t account); /* the identifier of an account */
/* Takes a token from the user's bucket for console forms of this operation, which all addresses of
 * the user share. Returns the seconds until one is available; 0: taken. Any thread. */
int64_t guard_user_wait(const struct exchange *exchange, const char *user_id);
/* Checks the limit on wrong verification codes before a lookup. ERR_RATE_LIMITED: the client
 * address has sent too many wrong codes. In the thread that owns the exchange. */
int guard_check_code(struct exchange *exchange, struct error *error) MUST_CHECK;
/* Counts a wrong code. ERR_RATE_LIMITED: another request used the last remaining attempt meanwhile;
 * the answer must then not reveal that the code was wrong. */
int guard_count_wrong_code(struct exchange *exchange, struct error *error) MUST_CHECK;
/* Charges tokens to the key's rate, in addition to the one that guard_check took, and updates the
 * state of the rate. They may exceed the tokens left (rate_charge_both). Any thread. */
void guard_charge(struct exchange *exchange, int64_t tokens);
#define GUARD_KEY_LOOKUP 1 /* a key lookup is required: exchange->question */
/* Checks the request. Returns 0, ERR_* or GUARD_KEY_LOOKUP; sets route, operation, key, rate and
 * parameters. */
int guard_check(struct exchange *exchange, const char *method, struct error *error) MUST_CHECK;
/* Completes the checks after GUARD_KEY_LOOKUP; `result` is the result of the lookup. */
int guard_check_looked_up(struct exchange *exchange, int result, struct error *error) MUST_CHECK;
/* Returns the error that a forced scenario requires for a valid request: 0 or ERR_*. An operation
 * that `validates` calls it before any lookup. Any thread. */
int guard_forced_error(struct exchange *exchange, struct error *error) MUST_CHECK;

#endif
