/* The memory that clients can make a server hold: bodies, working memory, answers that are not read
 * yet, files that are checked. What a request or a stream holds beyond its allowance comes out of
 * http.body_memory, and of that an account, or for what needs no key an address, has a share. */
#ifndef HTTP_MEMORY_H
#define HTTP_MEMORY_H

#include <stdint.h>

#include "base/budget.h"

struct http_server;

enum memory_kind { MEMORY_BODY, MEMORY_ARENA, MEMORY_ANSWER, MEMORY_CHECK };

/* Of a connection's requests, and counted with the connection: a registration with its answer. */
#define MEMORY_ALLOWANCE ((size_t)40 * 1024)

struct memory {
	struct budget budget;
	struct http_server *server;
	uint64_t owner; /* whose share pays; 0: not known yet */
};

/* An owner is changed with memory_belongs. */
void memory_init(struct memory *memory, struct http_server *server, size_t allowance);
/* From now on, with what is granted already, unless the share has no room for that: then who had it
 * pays until it is given back. */
void memory_belongs(struct memory *memory, uint64_t owner);
/* Whether `size` bytes could be granted now. Counts a refusal. */
bool memory_expect(struct memory *memory, size_t size) MUST_CHECK;
/* The most that may be granted to one, however much others hold. */
size_t memory_largest(const struct http_server *server);

#endif
