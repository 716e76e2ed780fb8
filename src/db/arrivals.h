/* How runs of rows that are kept in order of arrival are found by their keys (struct
 * schema_arrivals in schema.h).
 *
 * Each run of a group leads to the one before it, and by a jump to one further back, such that any
 * is found from the last one in a number of steps that grows with the logarithm of theirs, though
 * nothing that was written is ever changed (E. W. Myers, "An applicative random-access stack",
 * Information Processing Letters 17, 1983). */
#ifndef DB_ARRIVALS_H
#define DB_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

struct arrival_run {
	int64_t arrival;  /* of its first row; 0: no run */
	int64_t key;      /* of its first row */
	int64_t count;    /* of its rows, 1 or more */
	int64_t place;    /* among its group's runs, from 1 */
	int64_t previous; /* arrival of the run before; 0: none */
	/* Of the run that it jumps to, 0: none, past the first. */
	int64_t jump, jump_key, jump_place;
};

/* The key of its last row, which may be the greatest number that there is. */
static inline int64_t arrival_run_last_key(const struct arrival_run *run)
{
	return run->key + (run->count - 1);
}

/* Fills where a new run leads: `previous` is the group's last one, `beyond` the one that jumps from
 * there; {0}: none. */
static inline void arrival_run_link(struct arrival_run *run, const struct arrival_run *previous,
                                    const struct arrival_run *beyond)
{
	run->place = previous->place + 1;
	run->previous = previous->arrival;
	/* Two jumps of one length one behind the other are taken as one. */
	bool alike = previous->place > 0 && previous->place - previous->jump_place ==
	                                        previous->jump_place - beyond->jump_place;
	run->jump = alike ? beyond->jump : previous->arrival;
	run->jump_key = alike ? beyond->jump_key : previous->key;
	run->jump_place = alike ? beyond->jump_place : previous->place;
}

/* Where to look next for the last run that begins at `key` or before it, from one that begins
 * behind it; 0: nowhere. */
static inline int64_t arrival_run_step(const struct arrival_run *run, int64_t key)
{
	return run->jump && run->jump_key > key ? run->jump : run->previous;
}

#endif
