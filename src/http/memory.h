/* Accounting of the memory that clients can occupy: bodies, working memory, unread answers, and
 * files for verification. A request or stream takes memory beyond its allowance from
 * http.body_memory. An account, or an address for requests without a key, has a share of it. */
#ifndef HTTP_MEMORY_H
#define HTTP_MEMORY_H

#include <stdint.h>

#include "base/budget.h"

struct http_server;

enum memory_kind { MEMORY_BODY, MEMORY_ARENA, MEMORY_ANSWER, MEMORY_CHECK };

/* Allowance of a connection's requests, counted with the connection: sufficient for a registration
 * with its answer. */
#define MEMORY_ALLOWANCE ((size_t)40 * 1024)

struct memory {
	struct budget budget;
	struct http_server *server;
	uint64_t owner; /* owner of the share that is charged; 0: not known yet */
};

/* Initialises the accounting without an owner; memory_set_owner sets it. */
void memory_init(struct memory *memory, struct http_server *server, size_t allowance);
/* Sets the owner, and transfers memory that is already granted. If the owner's share has no
 * capacity for it, the previous owner is charged until it is released. */
void memory_set_owner(struct memory *memory, uint64_t owner);
/* Returns whether `size` bytes could be granted now. Counts a refusal. */
bool memory_is_available(struct memory *memory, size_t size) MUST_CHECK;
/* Returns the maximum that can be granted to one owner, regardless of others. */
size_t memory_largest(const struct http_server *server);

#endif
