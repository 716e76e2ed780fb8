/* Who has work for the jobs, where accounts' rows are on several servers: a query over all of them
 * costs each server something at every poll, and fails while one of them is away. So each server is
 * asked for itself, for all kinds of work at once, and what is listed is listed of those accounts
 * that have some. Elsewhere it is anybody's, and nobody is asked. Inside src/store only; any
 * thread.
 */
#ifndef STORE_SHARDS_WORK_H
#define STORE_SHARDS_WORK_H

#include "store/internal.h"

enum work {
	WORK_UNSEALED,       /* chains with events in no segment */
	WORK_ACTS,           /* acts in no segment */
	WORK_CERTIFICATIONS, /* that are to be issued */
	WORK_EVIDENCE,       /* documents that wait for an archive timestamp */
	WORK_DELIVERIES,
	WORK_MAILS,
	WORK_TOPUPS,
	WORK_PAYMENTS,
	WORK_KINDS
};

int work_open(struct store *store) MUST_CHECK;
void work_close(struct store *store);

struct work_of {
	bool anybodys;            /* nobody was asked: a listing is of all accounts */
	bool partial;             /* reach_find_page: a server is away that may have some, too */
	struct db_array accounts; /* else of these, if any */
};
/* As it was a moment ago. The caller frees what he got (work_free), also after a failure. */
int work_find(struct store *store, enum work kind, struct work_of *ret, struct error *error)
	MUST_CHECK;
void work_free(struct work_of *of);
#define WORK_AUTO __attribute__((cleanup(work_free)))
static inline bool work_is_nobodys(const struct work_of *of)
{
	return !of->anybodys && of->accounts.count == 0;
}
/* There is some that was not there a moment ago: whoever comes next asks anew. */
void work_forget(struct store *store);
/* Whether every server answered the last time. */
bool work_is_of_all(struct store *store);

/* A condition on a table or alias, with the number of the parameter that work_bind binds. */
#define WORK_OF(alias, parameter) " AND " alias ".account = ANY(" parameter ")"
/* Unless it is anybody's. */
void work_bind(struct db_query *query, struct work_of *of);

#endif
