#include "store/certifications/idempotency.h"

#include "base/tuned.h"
#include "store/certifications/read_certification.h"

#define BATCH_KEYS 500 /* keys per transaction */

/* ---- repeated requests ---- */

static bool same_range(const struct certification_range *one,
                       const struct certification_range *other)
{
	return one->from_us == other->from_us && one->to_us == other->to_us &&
	       one->seq_from == other->seq_from && one->seq_to == other->seq_to;
}

int store_find_repeated(struct store *store, int64_t account, int64_t chain, const char *key,
                        int64_t now_us, const struct certification_range *range, bool seal_history,
                        struct arena *arena, struct certification *ret, struct error *error)
{
	struct certification found;
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {.arena = arena,
	                  .query = db_query(connection, CERTIFICATIONS
	                                    " WHERE c.account = $1 AND c.chain = $2"
	                                    " AND c.idempotency_key = $3 AND c.requested_at > $4")};
	db_bind(row.query, account, chain, key, now_us - IDEMPOTENCY_KEPT_US);
	int result = end_read(connection, read_certification(&row, &found, error));
	if (result)
		return result;
	if (!same_range(&found.range, range) || found.seal_history != seal_history)
		return error_set(error, ERR_CONFLICT, MSG_STORE_IDEMPOTENCY_KEY, found.certification_id,
		                 NULL);
	/* The first request may still be waiting for a standby, so its commit is confirmed here. */
	result = store_confirm_account(store, account, error);
	if (!result)
		*ret = found;
	return result;
}

/* ---- housekeeping ---- */

struct place {
	int64_t account, certification;
};

static int find_old(struct store *store, int64_t before_us, struct place places[BATCH_KEYS],
                    size_t *ret_count, struct error *error)
{
	const int64_t most = tuned_up_to("forgotten", BATCH_KEYS);
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		db_query(connection, "SELECT account, certification FROM certifications"
	                         " WHERE idempotency_key IS NOT NULL AND requested_at <= $1"
	                         " ORDER BY requested_at LIMIT $2");
	db_bind(query, before_us, most);
	size_t count = 0;
	while ((int64_t)count < most && db_step(query))
		places[count++] = (struct place){db_integer(query, 0), db_integer(query, 1)};
	*ret_count = count;
	return end_read(connection, db_end(query, error));
}

static int forget(struct store *store, const struct place *places, size_t count,
                  struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	int result = OK;
	for (size_t i = 0; i < count && !result; i++) {
		struct db_query *query =
			db_query(connection, "UPDATE certifications SET idempotency_key = NULL"
		                         " WHERE account = $1 AND certification = $2");
		db_bind(query, places[i].account, places[i].certification);
		result = db_execute(query, NULL, error);
	}
	return end_write(connection, result, error);
}

int store_forget_idempotency_keys(struct store *store, int64_t now_us, int64_t most,
                                  int64_t *ret_removed, struct error *error)
{
	struct place places[BATCH_KEYS];
	size_t count = 1;
	int64_t removed = 0;
	int result = OK;
	while (!result && count > 0 && removed < most) {
		result = find_old(store, now_us - IDEMPOTENCY_KEPT_US, places, &count, error);
		if (!result && count > 0)
			result = forget(store, places, count, error);
		removed += result ? 0 : (int64_t)count;
	}
	*ret_removed = removed;
	return result;
}
