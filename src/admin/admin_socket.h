/* The administration socket: a Unix socket, mode 0600, for callers with this process's user id or
 * root's.
 *
 * A connection carries one exchange: a request line
 *   {"arguments":{…},"claimed":"alice","operation":"account create"}
 * of at most ADMIN_REQUEST_MAX bytes, and an answer line, either
 *   {"result":…} or {"error":{"code":…,"exit":…,"message":…,"cause":…}}
 * of at most ADMIN_RESULT_MAX bytes and some. */
#ifndef ADMIN_ADMIN_SOCKET_H
#define ADMIN_ADMIN_SOCKET_H

#include "admin/admin.h"

#define ADMIN_REQUEST_MAX ((size_t)64 * 1024)

struct admin_server;

/* Replaces a socket that an ended process left (the store's lock says that none is running) and
 * serves from threads of its own, at most 8 exchanges at a time. `admin` must live until
 * admin_server_stop. ERR_IO with the cause. */
int admin_server_start(struct admin *admin, const char *path, struct admin_server **ret_server,
                       struct error *error) MUST_CHECK;
/* Removes the socket, lets running exchanges finish, frees. NULL-safe. */
void admin_server_stop(struct admin_server *server);

/* Sends one request line (without the line feed) and appends the answer line. ERR_NOT_FOUND: no
 * service listens there. ERR_REFUSED: it is not this user's to administer. ERR_UNAVAILABLE: the
 * exchange was cut short. ERR_IO otherwise. */
int admin_exchange(const char *path, struct slice request, struct buf *answer, struct error *error)
	MUST_CHECK;

#endif
