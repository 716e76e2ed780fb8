/* The connections of a listener by address. The table decides which clients may connect, and which
 * connection is evicted if the table is full. Thread safe; an entry belongs to one thread at a
 * time, and only that thread passes it.
 *
 * Connections are evicted in this order, oldest first:
 * 1. an unfinished head of the address with most of them, if it has more than a client normally
 *    sends at a time;
 * 2. any other unfinished head that is at least one second old;
 * 3. a request with a slow body or a slowly read answer, of the address with most of them, if it
 *    has very many, and more than any address has idle connections;
 * 4. an idle connection of the address with most of them;
 * 5. any other unfinished head;
 * 6. a slow request of the address with most of them, if it has many;
 * 7. a slow request of an address with at least two of them, if this one has been slow for ten
 *    seconds.
 *
 * Connections of a trusted proxy belong to many clients and are evicted last. If the
 * new connection's address has at least as many connections as that of the chosen one, one of its
 * own is evicted instead. Connections on which the service itself works are never cut. */
#ifndef HTTP_CONNECTION_TABLE_H
#define HTTP_CONNECTION_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must_check.h"

enum connection_kind {
	CONNECTION_UNFINISHED, /* no complete head has arrived yet */
	CONNECTION_IDLE,       /* between two requests */
	CONNECTION_SLOW,       /* a request that waits for the client */
	CONNECTION_BUSY,       /* the service works on its request: never evicted */
};
#define CONNECTION_KINDS CONNECTION_BUSY /* kinds that can be evicted */

struct connection_address;

/* Embedded in the owner's state of the connection. */
struct connection_entry {
	struct connection_address *holder; /* NULL: not in the table, or cut */
	enum connection_kind kind;
	int descriptor; /* shut down when cut; -1: not set at present */
	int64_t since_us;
	struct connection_entry *previous, *next; /* of the same address and kind, oldest first */
	struct connection_entry *older, *younger; /* unfinished heads of all addresses by age */
	_Atomic bool is_cut;
};

struct connection_table;

/* Creates a table. `cut` (may be NULL) counts the connections that are cut. NULL without memory. */
struct connection_table *connection_table_create(size_t connections_max, _Atomic int64_t *cut)
	MUST_CHECK;
void connection_table_free(struct connection_table *table); /* NULL-safe */

struct connection_origin {
	uint64_t address; /* any well-mixed number */
	bool is_proxy;    /* a trusted proxy: its connections are not limited */
	int64_t limit;    /* maximum connections of the address */
};
/* Adds an unfinished connection with that descriptor; if the table is full, evicts another one.
 * ERR_RATE_LIMITED: the address has reached its limit; ERR_BUSY: the table is full; ERR_NO_MEMORY.
 * `now_us` is monotonic. */
int connection_add(struct connection_table *table, struct connection_entry *entry,
                   const struct connection_origin *origin, int descriptor, int64_t now_us)
	MUST_CHECK;
/* Sets the descriptor. If the connection was cut meanwhile, it is shut down now. False: it is
 * cut. */
bool connection_set_descriptor(struct connection_table *table, struct connection_entry *entry,
                               int descriptor);
/* Changes the kind of the connection. False: it is cut, and its kind is unchanged. */
bool connection_set_kind(struct connection_table *table, struct connection_entry *entry,
                         enum connection_kind kind, int64_t now_us);
/* Sends `text` without blocking and shuts down the connection; the owner notices this at the
 * socket. False: it was already cut. */
bool connection_cut(struct connection_table *table, struct connection_entry *entry,
                    const char *text);
/* Cuts the connection that is first in the eviction order. False: there is none. */
bool connection_evict(struct connection_table *table, int64_t now_us);
/* Removes the connection. Call before its descriptor is closed or reused. The entry need not be in
 * the table. */
void connection_remove(struct connection_table *table, struct connection_entry *entry);

/* Returns the number of connections of each kind. */
void connection_count(struct connection_table *table, size_t ret_counts[CONNECTION_KINDS + 1]);

/* Counts a request in progress that a trusted proxy forwarded for this address. ERR_RATE_LIMITED:
 * more than `limit`; ERR_NO_MEMORY. */
int connection_forward(struct connection_table *table, uint64_t address, int64_t limit) MUST_CHECK;
void connection_forward_end(struct connection_table *table, uint64_t address);

#endif
