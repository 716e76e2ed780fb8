/* What is checked of every request before its body: framing, path and method, key, state, rate,
 * forced scenario's name and query, in this order. */
#ifndef HTTP_GUARD_H
#define HTTP_GUARD_H

#include <sys/socket.h>

#include "http/exchange.h"

/* What counts as one address, salted. */
uint64_t guard_address_id(const struct http_server *server, const struct sockaddr *address);
/* The address of the request's client, as trusted proxies tell it; once its head has been read.
 * False: they tell none, and it is that of the connection. */
bool guard_client_address(const struct exchange *exchange, struct sockaddr_storage *ret);
/* Whose the request is, once its head has been checked: its key's account, or its address. */
uint64_t guard_owner_id(const struct exchange *exchange);
uint64_t guard_account_id(int64_t account); /* the same of an account */
/* Takes a token of what a user may send of such forms of the console, from wherever he does:
 * seconds until there is one, 0: it was there. For any thread. */
int64_t guard_user_wait(const struct exchange *exchange, const char *user_id);
/* Before a verification code is looked up: ERR_RATE_LIMITED while the request's address has sent
 * too many wrong ones. For the thread that has the exchange. */
int guard_check_code(struct exchange *exchange, struct error *error) MUST_CHECK;
/* Counts one that was wrong: ERR_RATE_LIMITED when another request used up the last that was free
 * meanwhile. Then not even that it was wrong is said. */
int guard_count_wrong_code(struct exchange *exchange, struct error *error) MUST_CHECK;
#define GUARD_LOOK_UP 1 /* the key has to be looked up: exchange->question */
/* 0, ERR_* or GUARD_LOOK_UP; fills route, operation, key, rate and parameters. */
int guard_check(struct exchange *exchange, const char *method, struct error *error) MUST_CHECK;
/* The rest, after GUARD_LOOK_UP; `result` is what came out. */
int guard_check_found(struct exchange *exchange, int result, struct error *error) MUST_CHECK;
/* What a forced scenario makes of a request that was found valid: 0 or ERR_*. For an operation that
 * `validates`, which calls it before it looks anything up; any thread. */
int guard_forced(const struct exchange *exchange, struct error *error) MUST_CHECK;

#endif
