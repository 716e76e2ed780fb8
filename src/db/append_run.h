/* Index of the append log: finds runs of rows by key in a table that is stored in insertion order
 * (struct schema_append_log in schema.h).
 *
 * Each run of a group refers to the run before it and, by a jump pointer, to an earlier one. Any
 * run is found from the last one in a logarithmic number of steps, although written rows never
 * change (E. W. Myers, "An applicative random-access stack", Information Processing Letters 17,
 * 1983). */
#ifndef DB_APPEND_RUN_H
#define DB_APPEND_RUN_H

#include <stdbool.h>
#include <stdint.h>

struct append_run {
	int64_t arrival;  /* of its first row; 0: no run */
	int64_t key;      /* of its first row */
	int64_t count;    /* number of rows, at least 1 */
	int64_t place;    /* position among the runs of its group, from 1 */
	int64_t previous; /* arrival of the previous run; 0: none */
	/* The target of the jump pointer; 0: before the first run. */
	int64_t jump, jump_key, jump_place;
};

/* Returns the key of the last row, which may be INT64_MAX. */
static inline int64_t append_run_last_key(const struct append_run *run)
{
	return run->key + (run->count - 1);
}

/* Sets the pointers of a new run. `previous` is the last run of the group, `beyond` the target of
 * its jump pointer; {0}: none. */
static inline void append_run_link(struct append_run *run, const struct append_run *previous,
                                   const struct append_run *beyond)
{
	run->place = previous->place + 1;
	run->previous = previous->arrival;
	/* Two consecutive jumps of equal length are combined. */
	bool alike = previous->place > 0 && previous->place - previous->jump_place ==
	                                        previous->jump_place - beyond->jump_place;
	run->jump = alike ? beyond->jump : previous->arrival;
	run->jump_key = alike ? beyond->jump_key : previous->key;
	run->jump_place = alike ? beyond->jump_place : previous->place;
}

/* Returns the arrival of the next run to visit in a search for the last run that begins at or
 * before `key`, from a run that begins after it; 0: no such run. */
static inline int64_t append_run_step(const struct append_run *run, int64_t key)
{
	return run->jump && run->jump_key > key ? run->jump : run->previous;
}

#endif
