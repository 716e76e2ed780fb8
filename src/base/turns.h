/* Fair queue: round-robin among owners. The items of an owner keep their order, and the owner
 * served least recently is served next. So an item at the head of its owner's queue waits for at
 * most one item of each other owner. Every operation takes constant time. Items belong to the
 * caller and must live until they are taken. One thread at a time. */
#ifndef BASE_TURNS_H
#define BASE_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TURNS_BUCKETS 256 /* a power of two */

struct turns_owner;

/* To be embedded in the queued item. */
struct turn {
	struct turn *next;
	struct turns_owner *owner;
};

struct turns_owner {
	uint64_t id;
	size_t waiting;
	size_t busy; /* taken items that count until turns_end */
	/* Private to turns.c: */
	struct turn *first;
	struct turn **end;
	struct turn **from; /* where the current run continues; earlier items were not chosen */
	uint64_t run;
	struct turns_owner *next, *previous; /* ring of owners with queued items */
	struct turns_owner *chain;           /* hash chain, or free list */
};

struct turns {
	size_t length; /* queued items */
	size_t owners; /* owners with queued items */
	struct turns_owner ring;
	struct turns_owner nobody; /* owner 0, and owners without a record for lack of memory */
	struct turns_owner *spare;
	uint64_t run;
	struct turns_owner *buckets[TURNS_BUCKETS];
};

void turns_init(struct turns *turns);
/* Frees the queue, which must be empty. */
void turns_free(struct turns *turns);
/* Adds an item at the end of its owner's queue. `owner` is any number. Without memory the item is
 * added to owner 0. */
void turns_add(struct turns *turns, struct turn *turn, uint64_t owner);
/* Returns whether the owner may add an item if `max` items may be queued in total. An owner may
 * have as many items as there is free room. So a single owner fills at most half, and a new owner
 * always finds room. */
bool turns_has_room(const struct turns *turns, uint64_t owner, size_t max);

enum turn_choice {
	TURN_TAKEN,
	TURN_LEFT,       /* it keeps its place; the owner's next item is offered */
	TURN_OWNER_LEFT, /* it and all later items of its owner keep their place */
};
/* Decides whether an item is taken. */
typedef enum turn_choice turns_choose(void *context, struct turn *turn);
/* Takes up to `max` items: one of each owner, then another of each owner that has more, and so on.
 * Returns the number taken. */
size_t turns_take(struct turns *turns, size_t max, turns_choose *choose, void *context);
/* Ends a taken item that was counted in `busy`. */
void turns_end(struct turns *turns, struct turns_owner *owner);

#endif
