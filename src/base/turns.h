/* Whose turn it is, where many wait for the same: a queue that owners take turns in. Each owner's
 * items keep their order; who was served longest ago is served next, so that however much one has
 * waiting, another's first item waits for one of each owner at most. Every operation takes the same
 * time whatever waits. An item is the caller's and lives until it is taken. One thread at a time.
 */
#ifndef BASE_TURNS_H
#define BASE_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TURNS_BUCKETS 256 /* a power of two */

struct turns_owner;

/* To be embedded in what waits. */
struct turn {
	struct turn *next;
	struct turns_owner *owner;
};

struct turns_owner {
	uint64_t id;
	size_t waiting;
	size_t busy; /* items that were taken and count until turns_end */
	/* Of turns.c alone: */
	struct turn *first;
	struct turn **end;
	struct turn **from; /* in the present run: what stands before was not wanted */
	uint64_t run;
	struct turns_owner *next, *previous; /* the ring of those that have something waiting */
	struct turns_owner *chain;           /* of the table, or of those to be used again */
};

struct turns {
	size_t length; /* items that wait */
	size_t owners; /* that have some */
	struct turns_owner ring;
	struct turns_owner nobody; /* 0, and all for whom there was no memory */
	struct turns_owner *spare;
	uint64_t run;
	struct turns_owner *buckets[TURNS_BUCKETS];
};

void turns_init(struct turns *turns);
/* Nothing may wait. */
void turns_free(struct turns *turns);
/* Behind what waits of that owner (any number). Without memory it waits as nobody's (0). */
void turns_add(struct turns *turns, struct turn *turn, uint64_t owner);
/* Whether the owner may have another wait, where `max` may wait in all: it may have as many as
 * there is room left for others. So one alone fills half, and a newcomer always finds a place. */
bool turns_has_room(const struct turns *turns, uint64_t owner, size_t max);

enum turn_choice {
	TURN_TAKEN,
	TURN_LEFT,       /* it keeps its place; what its owner has behind it is asked for next */
	TURN_OWNER_LEFT, /* and so does all that its owner has */
};
/* Whether it is taken now. */
typedef enum turn_choice turns_choose(void *context, struct turn *turn);
/* Takes up to `max`: one of each owner, another of each that has more, and so on. How many. */
size_t turns_take(struct turns *turns, size_t max, turns_choose *choose, void *context);
/* One that its taker counted in `busy` has ended. */
void turns_end(struct turns *turns, struct turns_owner *owner);

#endif
