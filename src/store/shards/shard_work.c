#include "store/shards/shard_work.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/tuned.h"

/* How long a result is used. Certifications and deliveries have several steps, each of which is
 * found by asking again. Other work may wait for hours and is not urgent. */
#define FRESH_IDLE_US (2 * US_PER_SECOND)
#define FRESH_BUSY_US INT64_C(500000)

#define ACCOUNTS_OF(rows) "SELECT DISTINCT account FROM " rows
static const char *const texts[WORK_KINDS] = {
	[WORK_UNSEALED] = ACCOUNTS_OF("{unsealed_chains}"),
	[WORK_AUDIT_LOG] = ACCOUNTS_OF("{unsealed_acts}"),
	[WORK_CERTIFICATIONS] = ACCOUNTS_OF("{certifications} WHERE status = 'processing'"),
	[WORK_EVIDENCE] = ACCOUNTS_OF("{evidence_queue}"),
	[WORK_DELIVERIES] = ACCOUNTS_OF("{webhook_endpoints} WHERE next_at IS NOT NULL"),
	[WORK_MAILS] = ACCOUNTS_OF("{mails} WHERE state = 'waiting'"),
	[WORK_TOPUPS] = "SELECT t.account FROM {topups} t JOIN {accounts} a ON a.account = t.account"
					" WHERE t.enabled = 1 AND t.purchase IS NULL AND a.balance < t.threshold"
					" AND a.disabled = 0",
	[WORK_PAYMENTS] = ACCOUNTS_OF("{payments} WHERE state <> 'over'"),
};

struct work_found {
	pthread_mutex_t mutex;
	int64_t asked_us; /* monotonic clock; 0: never */
	struct db_shard_query_result asked;
	bool busy;
	struct db_array accounts[WORK_KINDS];
	struct db_shard_part parts[WORK_KINDS];
	/* The first of the accounts that are the last ones within the limits of their shards. */
	struct db_nullable last[WORK_KINDS];
};

int shard_work_open(struct store *store)
{
	store->work = calloc(1, sizeof *store->work);
	if (!store->work)
		return ERR_NO_MEMORY;
	pthread_mutex_init(&store->work->mutex, NULL);
	for (int i = 0; i < WORK_KINDS && db_is_sharded(store->db); i++)
		db_array_init(&store->work->accounts[i], DB_INTEGERS);
	for (int i = 0; i < WORK_KINDS; i++)
		store->work->parts[i] = (struct db_shard_part){
			.text = texts[i], .limit = tuned("work_accounts", DB_PART_ACCOUNTS_MAX)};
	return OK;
}

void shard_work_close(struct store *store)
{
	if (!store->work)
		return;
	for (int i = 0; i < WORK_KINDS; i++)
		db_array_free(&store->work->accounts[i]);
	pthread_mutex_destroy(&store->work->mutex);
	free(store->work);
}

static bool is_before(int64_t from, int64_t one, int64_t other)
{
	bool starts_over = one < from;
	return starts_over == (other < from) ? one < other : !starts_over;
}

static void note(void *context, size_t part, int64_t account, bool is_limit)
{
	struct work_found *found = context;
	struct db_nullable *last = &found->last[part];
	db_array_add_integer(&found->accounts[part], account);
	found->busy = found->busy || part == WORK_CERTIFICATIONS || part == WORK_DELIVERIES;
	if (is_limit && (last->is_null || is_before(found->parts[part].from, account, last->value)))
		*last = (struct db_nullable){account, false};
}

/* The next query continues where the first shard stopped, so that each account has its turn. */
static void continue_after(struct work_found *found)
{
	for (int i = 0; i < WORK_KINDS; i++)
		found->parts[i].from = found->last[i].is_null ? 0 : found->last[i].value + 1;
}

/* Concurrent callers wait for the result instead of asking again. */
static int refresh(struct store *store, struct error *error)
{
	struct work_found *found = store->work;
	int64_t now_us = clock_monotonic_us();
	int64_t fresh_us = found->busy ? FRESH_BUSY_US : FRESH_IDLE_US;
	if (found->asked_us && now_us - found->asked_us < fresh_us)
		return OK;
	for (int i = 0; i < WORK_KINDS; i++) {
		db_array_clear(&found->accounts[i]);
		found->last[i] = (struct db_nullable){.is_null = true};
	}
	found->busy = false;
	int result =
		db_query_shards(store->db, found->parts, WORK_KINDS, note, found, &found->asked, error);
	for (int i = 0; i < WORK_KINDS && !result; i++)
		result = buf_check(&found->accounts[i].wire);
	if (!result)
		continue_after(found);
	found->asked_us = result ? 0 : clock_monotonic_us();
	return result;
}

int shard_work_find(struct store *store, enum work kind, struct work_accounts *ret,
                    struct error *error)
{
	struct work_found *found = store->work;
	*ret = (struct work_accounts){.all = !db_is_sharded(store->db)};
	if (ret->all)
		return OK;
	db_array_init(&ret->accounts, DB_INTEGERS);
	pthread_mutex_lock(&found->mutex);
	int result = refresh(store, error);
	ret->all = !found->asked.distributed;
	if (!result) {
		buf_add(&ret->accounts.wire, found->accounts[kind].wire.data + ret->accounts.wire.size,
		        found->accounts[kind].wire.size - ret->accounts.wire.size);
		ret->accounts.count = found->accounts[kind].count;
		result = buf_check(&ret->accounts.wire);
	}
	pthread_mutex_unlock(&found->mutex);
	return result;
}

void shard_work_free(struct work_accounts *of)
{
	db_array_free(&of->accounts);
}

void work_invalidate(struct store *store)
{
	if (!db_is_sharded(store->db))
		return;
	pthread_mutex_lock(&store->work->mutex);
	store->work->asked_us = 0;
	pthread_mutex_unlock(&store->work->mutex);
}

bool work_is_complete(struct store *store)
{
	if (!db_is_sharded(store->db))
		return true;
	struct work_found *found = store->work;
	pthread_mutex_lock(&found->mutex);
	bool all = refresh(store, NULL) == OK && (!found->asked.distributed || found->asked.all);
	pthread_mutex_unlock(&found->mutex);
	return all;
}

bool store_is_whole(struct store *store)
{
	return work_is_complete(store);
}

void shard_work_bind(struct db_query *query, struct work_accounts *of)
{
	if (!of->all)
		db_bind_array(query, &of->accounts);
}
