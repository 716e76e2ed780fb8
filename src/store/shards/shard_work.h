/* Shard work: which accounts have work for the jobs, when the rows of accounts are on several
 * servers. A query over all servers would load each of them at every poll and would fail while one
 * is unavailable. Therefore each server is asked individually, for all kinds of work at once, and
 * lists are restricted to the accounts that have work. Without shards nothing is asked and lists
 * cover all accounts. Private to src/store; any thread. */
#ifndef STORE_SHARDS_SHARD_WORK_H
#define STORE_SHARDS_SHARD_WORK_H

#include "store/store_internal.h"

enum work {
	WORK_UNSEALED,       /* chains with events that are in no segment */
	WORK_AUDIT_LOG,      /* audit records that are in no segment */
	WORK_CERTIFICATIONS, /* in processing */
	WORK_EVIDENCE,       /* documents queued for an archive timestamp */
	WORK_DELIVERIES,
	WORK_MAILS,
	WORK_TOPUPS,
	WORK_PAYMENTS,
	WORK_KINDS
};

int shard_work_open(struct store *store) MUST_CHECK;
void shard_work_close(struct store *store);

struct work_accounts {
	bool all;                 /* nothing was asked: a list covers all accounts */
	bool partial;             /* routing_find_page: incomplete, a shard server is unavailable */
	struct db_array accounts; /* else the accounts with work, possibly none */
};
/* Finds the accounts with work, as of a moment ago. The caller frees *ret with shard_work_free,
 * also after a failure. */
int shard_work_find(struct store *store, enum work kind, struct work_accounts *ret,
                    struct error *error) MUST_CHECK;
void shard_work_free(struct work_accounts *of);
#define SHARD_WORK_AUTO __attribute__((cleanup(shard_work_free)))
static inline bool work_is_empty(const struct work_accounts *of)
{
	return !of->all && of->accounts.count == 0;
}
/* There is new work: the next caller asks the servers again. */
void work_invalidate(struct store *store);
/* Returns whether every server answered the last time. */
bool work_is_complete(struct store *store);

/* SQL condition on a table or alias, with the number of the parameter that shard_work_bind binds.
 */
#define WORK_ACCOUNTS(alias, parameter) " AND " alias ".account = ANY(" parameter ")"
/* Binds the accounts, unless the list covers all accounts. */
void shard_work_bind(struct db_query *query, struct work_accounts *of);

#endif
