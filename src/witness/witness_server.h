/* The HTTP server of a witness: plain HTTP/1.1, by one thread. TLS is for a reverse proxy.
 *
 * POST /add-checkpoint and GET /ORIGIN_HASH/checkpoint, as C2SP tlog-witness describes them. A
 * client must complete a request, and take its answer, within WITNESS_REQUEST_SECONDS of the one
 * before it, or within WITNESS_CROWDED_SECONDS while there are WITNESS_CONNECTIONS_CROWD
 * connections; then its connection ends. Connections are bounded in total and for each address,
 * other than loopback addresses, which are those of proxies. */
#ifndef WITNESS_WITNESS_SERVER_H
#define WITNESS_WITNESS_SERVER_H

#include <stdatomic.h>

#include "witness/witness.h"

#define WITNESS_REQUEST_SECONDS 30
#define WITNESS_CONNECTIONS_MAX 256
#define WITNESS_CONNECTIONS_CROWD 192
#define WITNESS_CROWDED_SECONDS 1
#define WITNESS_CONNECTIONS_PER_ADDRESS 16 /* for IPv6: per network of 64 bits */
#define WITNESS_URL_SIZE 80

struct witness_server;

/* Listens on "127.0.0.1:8080" or "[::1]:0", or on the socket `witness` of the supervisor. The
 * witness must outlive the server. ERR_VALIDATION: not an address; ERR_IO, ERR_UNAVAILABLE,
 * ERR_NO_MEMORY. */
int witness_server_open(struct witness *witness, const char *listen, struct witness_server **ret,
                        struct error *error) MUST_CHECK;
void witness_server_close(struct witness_server *server); /* NULL-safe */
/* Writes "http://127.0.0.1:8080". */
void witness_server_url(const struct witness_server *server, char url[WITNESS_URL_SIZE]);
/* Serves until `stop` is set, which a signal handler may do. ERR_IO: the witness has failed. */
int witness_server_run(struct witness_server *server, const atomic_bool *stop, struct error *error)
	MUST_CHECK;

#endif
