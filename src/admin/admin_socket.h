/* The administration socket: a Unix socket, mode 0600, for callers with the user id of this process
 * or of root.
 *
 * A connection carries one exchange. The request is one line of at most ADMIN_REQUEST_MAX bytes:
 *    {"arguments":{…},"claimed":"alice","operation":"account create"}
 * The response is one line, ADMIN_RESULT_MAX bytes plus a small overhead at most, with one of:
 *    {"result":…}
 *    {"error":{"code":…,"exit":…,"message":…,"cause":…}} */
#ifndef ADMIN_ADMIN_SOCKET_H
#define ADMIN_ADMIN_SOCKET_H

#include "admin/admin.h"

#define ADMIN_REQUEST_MAX ((size_t)64 * 1024)

struct admin_server;

/* Replaces the socket of a process that has ended (the caller holds the store's lock, so no other
 * process is running). Serves at most 8 exchanges at a time from its own threads. `admin` must live
 * until admin_server_stop. ERR_IO with the cause. */
int admin_server_start(struct admin *admin, const char *path, struct admin_server **ret_server,
                       struct error *error) MUST_CHECK;
/* Removes the socket, waits for running exchanges and frees the server. NULL-safe. */
void admin_server_stop(struct admin_server *server);

/* Sends one request line (without the line feed) and appends the response line. ERR_NOT_FOUND: no
 * service listens there. ERR_REFUSED: this user has no access. ERR_UNAVAILABLE: the connection was
 * closed early. ERR_IO otherwise. */
int admin_exchange(const char *path, struct slice request, struct buf *answer, struct error *error)
	MUST_CHECK;

#endif
