#include "base/fair_queue.h"

#include <assert.h>
#include <stdlib.h>

void fair_queue_init(struct fair_queue *turns)
{
	*turns = (struct fair_queue){0};
	turns->ring.next = turns->ring.previous = &turns->ring;
	turns->ownerless.end = &turns->ownerless.first;
}

void fair_queue_free(struct fair_queue *turns)
{
	assert(turns->length == 0);
	while (turns->spare) {
		struct fair_queue_owner *owner = turns->spare;
		turns->spare = owner->chain;
		free(owner);
	}
}

/* ---- owners ---- */

static struct fair_queue_owner **find(const struct fair_queue *turns, uint64_t id)
{
	size_t bucket = (size_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (FAIR_QUEUE_BUCKETS - 1);
	struct fair_queue_owner *const *at = &turns->buckets[bucket];
	while (*at && (*at)->id != id)
		at = &(*at)->chain;
	return (struct fair_queue_owner **)at;
}

/* Owner records are reused, so that an owner that often queues a single item causes no
 * allocation. */
static struct fair_queue_owner *find_or_make(struct fair_queue *turns, uint64_t id)
{
	if (id == 0)
		return &turns->ownerless;
	struct fair_queue_owner **at = find(turns, id);
	if (*at)
		return *at;
	struct fair_queue_owner *made = turns->spare;
	if (made)
		turns->spare = made->chain;
	else if (!(made = malloc(sizeof *made)))
		return &turns->ownerless;
	*made = (struct fair_queue_owner){.id = id};
	made->end = &made->first;
	*at = made;
	return made;
}

static void leave_ring(struct fair_queue_owner *owner)
{
	owner->previous->next = owner->next;
	owner->next->previous = owner->previous;
}

static void join_ring(struct fair_queue *turns, struct fair_queue_owner *owner)
{
	owner->next = &turns->ring;
	owner->previous = turns->ring.previous;
	owner->previous->next = turns->ring.previous = owner;
}

static void forget_idle(struct fair_queue *turns, struct fair_queue_owner *owner)
{
	if (owner->waiting > 0 || owner->busy > 0 || owner == &turns->ownerless)
		return;
	struct fair_queue_owner **at = find(turns, owner->id);
	*at = owner->chain;
	owner->chain = turns->spare;
	turns->spare = owner;
}

/* ---- items ---- */

void fair_queue_add(struct fair_queue *turns, struct fair_queue_item *turn, uint64_t owner)
{
	struct fair_queue_owner *of = find_or_make(turns, owner);
	turn->owner = of;
	turn->next = NULL;
	*of->end = turn;
	of->end = &turn->next;
	turns->length++;
	if (of->waiting++ > 0)
		return;
	join_ring(turns, of);
	turns->owners++;
}

bool fair_queue_has_room(const struct fair_queue *turns, uint64_t owner, size_t max)
{
	const struct fair_queue_owner *of = owner ? *find(turns, owner) : &turns->ownerless;
	return turns->length < max && (!of || of->waiting < max - turns->length);
}

/* Takes the owner's first item that is chosen. An item that was not chosen is not offered again in
 * the same run. */
static bool take_next(struct fair_queue *turns, struct fair_queue_owner *owner,
                      fair_queue_choose *choose, void *context)
{
	if (owner->run != turns->run) {
		owner->run = turns->run;
		owner->from = &owner->first;
	}
	struct fair_queue_item *turn;
	while ((turn = *owner->from)) {
		enum fair_queue_choice choice = choose(context, turn);
		if (choice == FAIR_QUEUE_TAKEN)
			break;
		if (choice == FAIR_QUEUE_OWNER_SKIPPED && owner != &turns->ownerless)
			return false;
		owner->from = &turn->next;
	}
	if (!turn)
		return false;
	*owner->from = turn->next;
	if (owner->end == &turn->next)
		owner->end = owner->from;
	assert(turns->length > 0 && owner->waiting > 0);
	turns->length--;
	owner->waiting--;
	return true;
}

/* A served owner moves to the end of the ring. So the owners of a round are adjacent there, and the
 * next round begins with the first of them that has more items. */
size_t fair_queue_take(struct fair_queue *turns, size_t max, fair_queue_choose *choose,
                       void *context)
{
	size_t taken = 0;
	struct fair_queue_owner *begin = turns->ring.next;
	size_t count = turns->owners;
	turns->run++;
	while (count > 0 && taken < max) {
		struct fair_queue_owner *again = NULL, *next;
		size_t again_count = 0;
		for (struct fair_queue_owner *at = begin; count > 0 && taken < max; at = next, count--) {
			next = at->next;
			if (!take_next(turns, at, choose, context))
				continue;
			taken++;
			leave_ring(at);
			if (at->waiting == 0) {
				assert(turns->owners > 0);
				turns->owners--;
				forget_idle(turns, at);
				continue;
			}
			join_ring(turns, at);
			again = again ? again : at;
			again_count++;
		}
		begin = again;
		count = taken < max ? again_count : 0;
	}
	return taken;
}

void fair_queue_end(struct fair_queue *turns, struct fair_queue_owner *owner)
{
	assert(owner->busy > 0);
	owner->busy--;
	forget_idle(turns, owner);
}
