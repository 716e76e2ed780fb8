/* Fair queue: round-robin among owners. The items of an owner keep their order, and the owner
 * served least recently is served next. So an item at the head of its owner's queue waits for at
 * most one item of each other owner. Every operation takes constant time. Items belong to the
 * caller and must live until they are taken. One thread at a time. */
#ifndef BASE_FAIR_QUEUE_H
#define BASE_FAIR_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAIR_QUEUE_BUCKETS 256 /* a power of two */

struct fair_queue_owner;

/* To be embedded in the queued item. */
struct fair_queue_item {
	struct fair_queue_item *next;
	struct fair_queue_owner *owner;
};

struct fair_queue_owner {
	uint64_t id;
	size_t waiting;
	size_t busy; /* taken items that count until fair_queue_end */
	/* Private to fair_queue.c: */
	struct fair_queue_item *first;
	struct fair_queue_item **end;
	struct fair_queue_item *
		*from; /* where the current run continues; earlier items were not chosen */
	uint64_t run;
	struct fair_queue_owner *next, *previous; /* ring of owners with queued items */
	struct fair_queue_owner *chain;           /* hash chain, or free list */
};

struct fair_queue {
	size_t length; /* queued items */
	size_t owners; /* owners with queued items */
	struct fair_queue_owner ring;
	struct fair_queue_owner ownerless; /* owner 0, and owners without a record for lack of memory */
	struct fair_queue_owner *spare;
	uint64_t run;
	struct fair_queue_owner *buckets[FAIR_QUEUE_BUCKETS];
};

void fair_queue_init(struct fair_queue *turns);
/* Frees the queue, which must be empty. */
void fair_queue_free(struct fair_queue *turns);
/* Adds an item at the end of its owner's queue. `owner` is any number. Without memory the item is
 * added to owner 0. */
void fair_queue_add(struct fair_queue *turns, struct fair_queue_item *turn, uint64_t owner);
/* Returns whether the owner may add an item if `max` items may be queued in total. An owner may
 * have as many items as there is free room. So a single owner fills at most half, and a new owner
 * always finds room. */
bool fair_queue_has_room(const struct fair_queue *turns, uint64_t owner, size_t max);

enum fair_queue_choice {
	FAIR_QUEUE_TAKEN,
	FAIR_QUEUE_SKIPPED,       /* it keeps its place; the owner's next item is offered */
	FAIR_QUEUE_OWNER_SKIPPED, /* it and all later items of its owner keep their place */
};
/* Decides whether an item is taken. */
typedef enum fair_queue_choice fair_queue_choose(void *context, struct fair_queue_item *turn);
/* Takes up to `max` items: one of each owner, then another of each owner that has more, and so on.
 * Returns the number taken. */
size_t fair_queue_take(struct fair_queue *turns, size_t max, fair_queue_choose *choose,
                       void *context);
/* Ends a taken item that was counted in `busy`. */
void fair_queue_end(struct fair_queue *turns, struct fair_queue_owner *owner);

#endif
