/* Fills the totals of a store that had none, once, from the existing rows, in the migration step
 * that creates the tables. Batches are bounded, which bounds the memory and the time of each
 * statement on a server. All of it is one transaction, so that an interrupted migration starts
 * again without partial counts. */
#include <stdlib.h>

#include "base/tuned.h"
#include "store/schema/store_schemas.h"
#include "store/store_internal.h"
#include "store/usage/count.h"

#define STEP "version-0.2"
#define CHAINS_AT_ONCE 256
#define EVENTS_AT_ONCE (1 << 18)
#define RUNS_AT_ONCE 1024
#define REPORT_INTERVAL (1 << 20)

struct fill {
	struct db_connection *connection;
	const struct schema_progress *progress;
	int64_t total, done, reported;
	int64_t chains_max, events_max, runs_max; /* at once */
};

static void tell(struct fill *fill)
{
	if (!fill->progress || fill->total == 0 ||
	    (fill->done < fill->total && fill->done < fill->reported + REPORT_INTERVAL))
		return;
	fill->reported = fill->done;
	fill->progress->tell(fill->progress->context, "events counted by key and day", fill->done,
	                     fill->total);
}

static int count_all(struct fill *fill, struct error *error)
{
	struct db_query *query =
		db_query(fill->connection, "SELECT COALESCE(sum(last_sequence), 0) FROM chains");
	if (db_step(query))
		fill->total = db_integer(query, 0);
	return db_end(query, error);
}

/* ---- events ---- */

struct chain_found {
	int64_t account, chain, last_sequence;
};

static int count_portion(struct fill *fill, const struct chain_found *chain, int64_t first,
                         int64_t last, struct error *error)
{
	struct db_query *query = db_query(
		fill->connection,
		"INSERT INTO daily_usage (account, day, chain, key, events, unpaid_events, content_bytes)"
		" SELECT account, received_at / 86400000000, CAST($2 AS BIGINT), key, count(*), 0,"
		" COALESCE(sum(content_bytes), 0) FROM events"
		" WHERE account = $1 AND event >= $3 AND event <= $4"
		" GROUP BY account, received_at / 86400000000, key"
		" ON CONFLICT (account, day, chain, key) DO UPDATE SET"
		" events = daily_usage.events + excluded.events,"
		" content_bytes = daily_usage.content_bytes + excluded.content_bytes");
	db_bind(query, chain->account, chain->chain, event_number(chain->chain, first),
	        event_number(chain->chain, last));
	int64_t changes;
	int result = db_execute(query, &changes, error);
	fill->done += last - first + 1;
	return result;
}

static int count_chain(struct fill *fill, const struct chain_found *chain, struct error *error)
{
	int result = OK;
	for (int64_t first = 1; first <= chain->last_sequence && !result; first += fill->events_max) {
		int64_t last = first + fill->events_max - 1;
		result = count_portion(fill, chain, first,
		                       last < chain->last_sequence ? last : chain->last_sequence, error);
		if (!result)
			tell(fill);
	}
	return result;
}

static int next_chains(struct fill *fill, struct chain_found *chains, size_t *count,
                       struct error *error)
{
	struct chain_found after = *count ? chains[*count - 1] : (struct chain_found){-1, -1, 0};
	struct db_query *query = db_query(
		fill->connection, "SELECT account, chain, last_sequence FROM chains"
						  " WHERE (account, chain) > ($1, $2) ORDER BY account, chain LIMIT $3");
	db_bind(query, after.account, after.chain, fill->chains_max);
	*count = 0;
	while ((int64_t)*count < fill->chains_max && db_step(query))
		chains[(*count)++] =
			(struct chain_found){db_integer(query, 0), db_integer(query, 1), db_integer(query, 2)};
	return db_end(query, error);
}

static int count_events(struct fill *fill, struct error *error)
{
	struct chain_found chains[CHAINS_AT_ONCE];
	size_t count = 0;
	int result = OK;
	do {
		result = next_chains(fill, chains, &count, error);
		for (size_t i = 0; i < count && !result; i++)
			result = count_chain(fill, &chains[i], error);
	} while (!result && (int64_t)count == fill->chains_max);
	return result;
}

/* ---- events that were unpaid at registration ---- */

/* Up to which event of a live chain it is known which ones are paid. */
struct chain_paid {
	int64_t chain, last;
};

struct paid {
	int64_t account;
	struct chain_paid *chains; /* in order of their numbers */
	size_t count;
};

static int count_gap(struct fill *fill, const struct paid *paid, int64_t chain, int64_t first,
                     int64_t last, struct error *error)
{
	int result = OK;
	for (; first <= last && !result; first += fill->events_max) {
		int64_t end = first + fill->events_max - 1 < last ? first + fill->events_max - 1 : last;
		struct db_query *query = db_query(
			fill->connection,
			"INSERT INTO daily_usage"
			" (account, day, chain, key, events, unpaid_events, content_bytes)"
			" SELECT account, received_at / 86400000000, CAST($2 AS BIGINT), key, 0, count(*), 0"
			" FROM events WHERE account = $1 AND event >= $3 AND event <= $4"
			" GROUP BY account, received_at / 86400000000, key"
			" ON CONFLICT (account, day, chain, key) DO UPDATE SET"
			" unpaid_events = daily_usage.unpaid_events + excluded.unpaid_events");
		db_bind(query, paid->account, chain, event_number(chain, first), event_number(chain, end));
		result = db_execute(query, NULL, error);
	}
	return result;
}

static int read_chains(struct fill *fill, struct paid *paid, struct error *error)
{
	struct db_query *query = db_query(
		fill->connection, "SELECT count(*) FROM chains WHERE account = $1 AND chain % 2 = 0");
	db_bind_integer(query, paid->account);
	size_t count = db_step(query) ? (size_t)db_integer(query, 0) : 0;
	int result = db_end(query, error);
	if (result)
		return result;
	paid->chains = calloc(count + 1, sizeof *paid->chains);
	if (!paid->chains)
		return ERR_NO_MEMORY;
	query = db_query(fill->connection, "SELECT chain FROM chains WHERE account = $1"
	                                   " AND chain % 2 = 0 ORDER BY chain");
	db_bind_integer(query, paid->account);
	while (paid->count < count && db_step(query))
		paid->chains[paid->count++].chain = db_integer(query, 0);
	return db_end(query, error);
}

static int by_chain(const void *a, const void *b)
{
	int64_t one = ((const struct chain_paid *)a)->chain;
	int64_t other = ((const struct chain_paid *)b)->chain;
	return (one > other) - (one < other);
}

struct run {
	int64_t number, chain, first, last;
};

/* Reads entries in order of creation, in which the runs of a chain follow each other. */
static int next_runs(struct fill *fill, int64_t account, struct run *runs, size_t *count,
                     struct error *error)
{
	struct db_query *query =
		db_query(fill->connection, "SELECT number, chain, first_sequence, last_sequence"
	                               " FROM credit_entries WHERE account = $1 AND number > $2"
	                               " AND kind = 'events' ORDER BY number LIMIT $3");
	db_bind(query, account, *count ? runs[*count - 1].number : -1, fill->runs_max);
	*count = 0;
	while ((int64_t)*count < fill->runs_max && db_step(query))
		runs[(*count)++] = (struct run){db_integer(query, 0), db_integer(query, 1),
		                                db_integer(query, 2), db_integer(query, 3)};
	return db_end(query, error);
}

static int pass_run(struct fill *fill, const struct paid *paid, const struct run *run,
                    struct error *error)
{
	const struct chain_paid wanted = {.chain = run->chain};
	struct chain_paid *chain =
		bsearch(&wanted, paid->chains, paid->count, sizeof *paid->chains, by_chain);
	if (!chain)
		return error_cause(error, ERR_CORRUPT,
		                   "a credit entry refers to a chain that does not exist");
	int result = count_gap(fill, paid, run->chain, chain->last + 1, run->first - 1, error);
	chain->last = run->last;
	return result;
}

static int pass_runs(struct fill *fill, const struct paid *paid, struct error *error)
{
	struct run runs[RUNS_AT_ONCE];
	size_t count = 0;
	int result = OK;
	do {
		result = next_runs(fill, paid->account, runs, &count, error);
		for (size_t i = 0; i < count && !result; i++)
			result = pass_run(fill, paid, &runs[i], error);
	} while (!result && (int64_t)count == fill->runs_max);
	return result;
}

/* Counts the events after a chain's last run. */
static int count_tail(struct fill *fill, const struct paid *paid, const struct chain_paid *chain,
                      struct error *error)
{
	struct db_query *query = db_query(
		fill->connection, "SELECT last_sequence FROM chains WHERE account = $1 AND chain = $2");
	db_bind(query, paid->account, chain->chain);
	int64_t last = db_step(query) ? db_integer(query, 0) : 0;
	int result = db_end(query, error);
	return result ? result : count_gap(fill, paid, chain->chain, chain->last + 1, last, error);
}

/* Counts the events of live chains that no entry of kind `events` paid: the gaps between its
 * runs. */
static int count_unpaid(struct fill *fill, int64_t account, struct error *error)
{
	struct paid paid = {.account = account};
	int result = read_chains(fill, &paid, error);
	if (!result)
		result = pass_runs(fill, &paid, error);
	for (size_t i = 0; i < paid.count && !result; i++)
		result = count_tail(fill, &paid, &paid.chains[i], error);
	free(paid.chains);
	return result;
}

/* Finds the next account with a chain; 0: none. Whether its credits ever ran out is not checked
 * first, because that would read the same entries. */
static int next_account(struct fill *fill, int64_t after, int64_t *ret_account, struct error *error)
{
	struct db_query *query = db_query(
		fill->connection, "SELECT COALESCE(min(account), 0) FROM chains WHERE account > $1");
	db_bind_integer(query, after);
	*ret_account = db_step(query) ? db_integer(query, 0) : 0;
	return db_end(query, error);
}

static int count_all_unpaid(struct fill *fill, struct error *error)
{
	int64_t account = 0;
	int result = next_account(fill, 0, &account, error);
	while (!result && account) {
		result = count_unpaid(fill, account, error);
		if (!result)
			result = next_account(fill, account, &account, error);
	}
	return result;
}

/* ---- certifications ---- */

static int count_certifications(struct fill *fill, int64_t account, struct error *error)
{
	struct db_query *query = db_query(
		fill->connection,
		"INSERT INTO daily_certifications (account, day, chain, key, requested, completed, failed,"
		" events, fees, refunds)"
		" SELECT account, day, chain, key, sum(requested), sum(completed), sum(failed),"
		" sum(events), sum(fees), sum(refunds) FROM"
		" (SELECT account, requested_at / 86400000000 AS day, chain, key, 1 AS requested,"
		" 0 AS completed, 0 AS failed, 0 AS events, fee AS fees, 0 AS refunds FROM certifications"
		" WHERE account = $1"
		" UNION ALL SELECT account, completed_at / 86400000000, chain, key, 0,"
		" CASE status WHEN 'completed' THEN 1 ELSE 0 END,"
		" CASE status WHEN 'failed' THEN 1 ELSE 0 END, CASE status WHEN 'completed'"
		" THEN last_sequence - first_sequence + 1 ELSE 0 END, 0,"
		" CASE status WHEN 'failed' THEN fee ELSE 0 END FROM certifications"
		" WHERE account = $1 AND status <> 'processing') AS counted"
		" GROUP BY account, day, chain, key");
	db_bind_integer(query, account);
	return db_execute(query, NULL, error);
}

/* Finds the next account with a certification; 0: none. */
static int next_certified(struct fill *fill, int64_t after, int64_t *ret_account,
                          struct error *error)
{
	struct db_query *query =
		db_query(fill->connection,
	             "SELECT COALESCE(min(account), 0) FROM certifications WHERE account > $1");
	db_bind_integer(query, after);
	*ret_account = db_step(query) ? db_integer(query, 0) : 0;
	return db_end(query, error);
}

static int count_all_certifications(struct fill *fill, struct error *error)
{
	int64_t account = 0;
	int result = next_certified(fill, 0, &account, error);
	while (!result && account) {
		result = count_certifications(fill, account, error);
		if (!result)
			result = next_certified(fill, account, &account, error);
	}
	return result;
}

/* ---- stored bytes ---- */

static int count_stored(struct fill *fill, int64_t account, struct error *error)
{
	int64_t bytes = 0;
	int result = stored_bytes_of(fill->connection, account, &bytes, error);
	if (result)
		return result;
	struct db_query *query =
		db_query(fill->connection, "UPDATE accounts SET stored_bytes = $2 WHERE account = $1");
	db_bind(query, account, bytes);
	return db_execute(query, NULL, error);
}

static int count_all_stored(struct fill *fill, struct error *error)
{
	int64_t account = 0;
	int result = next_account(fill, 0, &account, error);
	while (!result && account) {
		result = count_stored(fill, account, error);
		if (!result)
			result = next_account(fill, account, &account, error);
	}
	return result;
}

int store_fill(struct db_connection *connection, const char *step,
               const struct schema_progress *progress, struct error *error)
{
	struct fill fill = {.connection = connection,
	                    .progress = progress,
	                    .chains_max = tuned_up_to("filled", CHAINS_AT_ONCE),
	                    .events_max = tuned_up_to("filled", EVENTS_AT_ONCE),
	                    .runs_max = tuned_up_to("filled", RUNS_AT_ONCE)};
	const char *name = step + strspn(step, "0123456789-");
	if (strcmp(name, STEP) != 0)
		return OK;
	return count_all(&fill, error)
		?: count_events(&fill, error)
		?: count_all_unpaid(&fill, error)
		?: count_all_certifications(&fill, error)
		?: fill_totals(connection, error)
		?: count_all_stored(&fill, error);
}
