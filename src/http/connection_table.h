/* The connections of a listener by address: who may connect, and who gives way when there is no
 * room. Thread safe; an entry belongs to one thread at a time, and only that thread passes it.
 *
 * Room is made, oldest first, by
 * 1. a head that is not whole, of the address that has most of them, if these are more than a
 *    client has on their way at a time;
 * 2. any other such head that is a second old;
 * 3. a request whose body comes slowly, or whose answer is read slowly, of the address that has
 *    most of them, if these are very many, and more than any address has idle connections;
 * 4. an idle connection, of the address that has most of them;
 * 5. any other head that is not whole;
 * 6. a slow request of the address that has most of them, if these are many;
 * 7. the same if it has another one, and this one has been slow for ten seconds.
 * The connections of a trusted proxy are many clients': they give way last. No address
 * makes room for one that has more connections than itself: that one's own give way. What the
 * service itself is at is never cut. */
#ifndef HTTP_CONNECTION_TABLE_H
#define HTTP_CONNECTION_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must_check.h"

enum connection_kind {
	CONNECTION_UNFINISHED, /* no whole head has come yet */
	CONNECTION_IDLE,       /* between two requests */
	CONNECTION_SLOW,       /* a request that waits for its client */
	CONNECTION_BUSY,       /* the service works on it: it does not give way */
};
#define CONNECTION_KINDS CONNECTION_BUSY /* that give way */

struct connection_holder;

/* In what its owner has of the connection. */
struct connection_entry {
	struct connection_holder *holder; /* NULL: not in the table, or cut */
	enum connection_kind kind;
	int descriptor; /* to be shut down; -1: another time */
	int64_t since_us;
	struct connection_entry *previous, *next; /* of its address and kind, the oldest first */
	struct connection_entry *older, *younger; /* the same of all addresses, for unfinished ones */
	_Atomic bool is_cut;
};

struct connection_table;

/* `cut` (may be NULL) counts the connections that are cut. NULL without memory. */
struct connection_table *connection_table_create(size_t connections_max, _Atomic int64_t *cut)
	MUST_CHECK;
void connection_table_free(struct connection_table *table); /* NULL-safe */

struct connection_origin {
	uint64_t address; /* any well-mixed number */
	bool is_proxy;    /* a trusted one: its connections are not limited */
	int64_t limit;    /* connections of the address */
};
/* An unfinished one with that descriptor, if necessary in the place of another, which is cut.
 * ERR_RATE_LIMITED: its address has as many as it may; ERR_BUSY: there is no room; ERR_NO_MEMORY.
 * `now_us` is monotonic. */
int connection_enter(struct connection_table *table, struct connection_entry *entry,
                     const struct connection_origin *origin, int descriptor, int64_t now_us)
	MUST_CHECK;
/* What is cut meanwhile is shut down as soon as there is a descriptor again. False: it is cut. */
bool connection_set_descriptor(struct connection_table *table, struct connection_entry *entry,
                               int descriptor);
/* False: it is cut, and stays what it was. */
bool connection_become(struct connection_table *table, struct connection_entry *entry,
                       enum connection_kind kind, int64_t now_us);
/* Sends `text` if that does not wait and ends the connection; its owner sees that of the socket.
 * False: it was cut already. */
bool connection_cut(struct connection_table *table, struct connection_entry *entry,
                    const char *text);
/* Cuts the one that is to give way next. False: there is none. */
bool connection_make_room(struct connection_table *table, int64_t now_us);
/* Before its descriptor is closed, or means something else. Also of one that is not in the table.
 */
void connection_leave(struct connection_table *table, struct connection_entry *entry);

/* How many there are of each kind. */
void connection_count(struct connection_table *table, size_t ret_counts[CONNECTION_KINDS + 1]);

/* A request under way that a trusted proxy sent for this address. ERR_RATE_LIMITED for more than
 * `limit`, ERR_NO_MEMORY. */
int connection_forward(struct connection_table *table, uint64_t address, int64_t limit) MUST_CHECK;
void connection_forward_end(struct connection_table *table, uint64_t address);

#endif
