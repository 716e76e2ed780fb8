/* Claims of certifications by issuers, and their completion, delay and failure. */
#include "base/json.h"
#include "store/certifications/read_certification.h"
#include "store/nodes/job_claims.h"
#include "store/notices/test_copy.h"
#include "store/shards/shard_work.h"
#include "store/usage/count.h"

#define FAIL_MEMORY_MAX ((size_t)4 << 20)
#define NOTICE_DATA_MAX 1024

/* ---- claiming ---- */

#define WORKED_ON(of)                                                                              \
	" r.account = c.account" of " AND r.certification <> c.certification"                          \
	" AND r.status = 'processing' AND r.lease IS NOT NULL AND r.next_attempt_at > $1"

#define CLAIMABLE(of_others, of)                                                                             \
	CERTIFICATIONS                                                                                           \
	" JOIN chains s ON s.account = c.account AND s.chain = c.chain"                                          \
	" WHERE c.status = 'processing' AND (c.next_attempt_at <= $1"                                            \
	" OR (c.lease = $2 AND c.attempts < $3)) AND (c.chain % 2 = 1 OR " SEALED_SEQUENCE(                      \
		"s") " >= c.last_sequence)"                                                                          \
			 " AND ($4 = 0 OR (SELECT COUNT(*) FROM certifications r WHERE" WORKED_ON(                       \
				 of_others) " AND substr(r.lease, 1, length(CAST($5 AS TEXT))) = CAST($5 AS TEXT)) < $4)" of \
							" ORDER BY (SELECT COUNT(*) FROM certifications r WHERE" WORKED_ON(              \
								of_others) "),"                                                              \
										   " CASE WHEN c.account > $6 THEN 0 ELSE 1 END, c.account,"         \
										   " c.next_attempt_at LIMIT 1"
#define OF_EACH(parameter)                                                                         \
	WORK_ACCOUNTS("c", parameter) WORK_ACCOUNTS("s", parameter) WORK_ACCOUNTS("h", parameter)

/* Finds a due certification. *ret_seen_us is its next_attempt_at, which the claim compares. */
static int find_due_of(struct store *store, const struct certification_claim *claim,
                       struct work_accounts *of, struct arena *arena, struct certification *ret,
                       int64_t *ret_seen_us, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {.arena = arena,
	                  .query = of->all ? db_query(connection, CLAIMABLE("", ""))
	                                   : db_query(connection, CLAIMABLE(WORK_ACCOUNTS("r", "$7"),
	                                                                    OF_EACH("$7")))};
	db_bind(row.query, claim->now_us, claim->holder, CLAIM_RESUMED_MAX, claim->account_max,
	        claim->node ? claim->node : "", claim->after_account);
	shard_work_bind(row.query, of);
	bool found = db_step(row.query);
	struct certification certification;
	if (found) {
		row_read(&row, &certification_type, 0, &certification);
		*ret_seen_us = db_integer(row.query, CERTIFICATION_NEXT_ATTEMPT);
	}
	int result = row_result(&row, found, error);
	if (!result)
		*ret = certification;
	return end_read(connection, result);
}

static int find_due(struct store *store, const struct certification_claim *claim,
                    struct arena *arena, struct certification *ret, int64_t *ret_seen_us,
                    struct error *error)
{
	struct work_accounts of;
	int result = shard_work_find(store, WORK_CERTIFICATIONS, &of, error);
	if (!result)
		result = work_is_empty(&of)
		             ? ERR_NOT_FOUND
		             : find_due_of(store, claim, &of, arena, ret, ret_seen_us, error);
	shard_work_free(&of);
	return result;
}

int store_claim_certification(struct store *store, const struct certification_claim *claim,
                              struct arena *arena, struct certification *ret, struct error *error)
{
	struct certification certification;
	int64_t seen_us;
	int result = find_due(store, claim, arena, &certification, &seen_us, error);
	if (result)
		return result;
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query = db_query(
		connection, "UPDATE certifications SET lease = $3, next_attempt_at = $4,"
					" attempts = attempts + 1 WHERE account = $1 AND certification = $2"
					" AND status = 'processing' AND next_attempt_at = $5 AND attempts = $6");
	db_bind(query, certification.account, certification.certification, claim->holder,
	        claim->now_us + claim->lease_us, seen_us, certification.attempts);
	result = end_write_of_one(connection, query, error); /* no row: another node was faster */
	if (!result) {
		certification.attempts++;
		*ret = certification;
	}
	return result;
}

int store_renew_certification(struct store *store, const struct certification *certification,
                              const char *holder, int64_t until_us, int64_t progress_permille,
                              struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query = db_query(
		connection, "UPDATE certifications SET next_attempt_at = $4, progress_permille = $5"
					" WHERE account = $1 AND certification = $2 AND lease = $3"
					" AND status = 'processing'");
	db_bind(query, certification->account, certification->certification, holder, until_us,
	        progress_permille);
	return end_write(connection, job_claim_update(query, certification->certification_id, error),
	                 error);
}

int store_delay_certification(struct store *store, const struct certification *certification,
                              const char *holder, const struct certification_delay *delay,
                              struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query = db_query(
		connection,
		"UPDATE certifications SET next_attempt_at = $4, lease = NULL,"
		" progress_permille = 0, last_error = COALESCE($5, last_error),"
		" attempts = CASE WHEN CAST($5 AS TEXT) IS NULL THEN attempts - 1 ELSE attempts END,"
		" own_failures = CASE WHEN CAST($5 AS TEXT) IS NULL THEN own_failures"
		" WHEN $6 = 1 THEN own_failures + 1 ELSE 0 END"
		" WHERE account = $1 AND certification = $2 AND lease = $3"
		" AND status = 'processing'");
	db_bind(query, certification->account, certification->certification, holder, delay->next_us,
	        delay->cause, delay->own_failure);
	return end_write(connection, job_claim_update(query, certification->certification_id, error),
	                 error);
}

/* ---- ending ---- */

static int write_notice(struct db_connection *connection, const struct certification *certification,
                        const char *incident_id, int64_t now_us, struct error *error)
{
	BUF_AUTO struct buf data;
	buf_init(&data, NOTICE_DATA_MAX);
	struct json_writer writer = {.out = &data};
	json_begin_object(&writer, NULL);
	json_text(&writer, "certification_id", certification->certification_id);
	json_text(&writer, "channel_id", certification->channel_id);
	json_text(
		&writer, "status",
		certification_status_text(incident_id ? CERTIFICATION_FAILED : CERTIFICATION_COMPLETED));
	json_integer(&writer, "event_count",
	             certification->last_sequence - certification->first_sequence + 1);
	if (incident_id)
		json_text(&writer, "incident_id", incident_id);
	else
		json_text(&writer, "verification_code", certification->verification_code);
	json_end_object(&writer);
	int result = buf_check(&data);
	if (result)
		return result;
	struct ledger_notice notice = {
		.type = incident_id ? NOTICE_CERTIFICATION_FAILED : NOTICE_CERTIFICATION_COMPLETED,
		.data = buf_slice(&data),
	};
	result = store_write_notices(connection, certification->account, &notice, certification->mode,
	                             now_us, error);
	if (!result && certification->mode == MODE_TEST)
		result = copy_test_notice(connection, certification->account, certification->chain, now_us,
		                          error);
	return result;
}

static const char *const kind_texts[] = {"report", "evidence", "part"};

/* The other document may have been read from a commit that was later lost. */
static int check_shared(struct db_connection *connection, const struct certification *certification,
                        const struct document *document, struct error *error)
{
	bool own = false;
	int result = object_is_own(connection, certification->account, document->shared, &own, error);
	return result || own ? result
	                     : error_cause(error, ERR_UNAVAILABLE,
	                                   "the shared object %s no longer belongs to any document",
	                                   document->shared);
}

static int write_document(struct db_connection *connection,
                          const struct certification *certification,
                          const struct document *document, struct error *error)
{
	bool shares = document->shared[0];
	int result = shares ? check_shared(connection, certification, document, error) : OK;
	if (result)
		return result;
	const char *language = document->language == LANGUAGE_SPANISH ? "es" : "en";
	struct db_query *query =
		db_query(connection, "INSERT INTO issued_files (account, certification, name, kind,"
	                         " language, object, size_bytes, sha256, shared_object, pieces,"
	                         " own_bytes) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)");
	db_bind(query, certification->account, certification->certification, document->name,
	        kind_texts[document->kind], document->kind == DOCUMENT_REPORT ? language : NULL,
	        document->object, document->size_bytes, &document->sha256,
	        shares ? document->shared : NULL, shares ? document->pieces : NULL,
	        db_value_if(shares, document->own_bytes));
	return db_execute(query, NULL, error);
}

/* Locks the account before the certification, as acceptance does. */
static int count_stored(struct db_connection *connection, int64_t account,
                        const struct document *documents, size_t count, struct error *error)
{
	int64_t bytes = 0;
	for (size_t i = 0; i < count; i++)
		bytes += documents[i].shared[0] ? documents[i].own_bytes : documents[i].size_bytes;
	struct db_query *query = db_query(
		connection, "UPDATE accounts SET stored_bytes = stored_bytes + $2 WHERE account = $1");
	db_bind(query, account, bytes);
	return db_execute(query, NULL, error);
}

static int complete(struct db_connection *connection, const struct certification *certification,
                    const char *holder, int64_t issued_at_us, struct error *error)
{
	struct db_query *query =
		db_query(connection, "UPDATE certifications SET status = 'completed', completed_at = $4,"
	                         " progress_permille = 1000, lease = NULL, last_error = NULL"
	                         " WHERE account = $1 AND certification = $2 AND lease = $3"
	                         " AND status = 'processing'");
	db_bind(query, certification->account, certification->certification, holder, issued_at_us);
	return job_claim_update(query, certification->certification_id, error);
}

/* Queues a live certification for an evidence record. */
static int queue_evidence(struct db_connection *connection,
                          const struct certification *certification, int64_t now_us,
                          struct error *error)
{
	if (certification->mode != MODE_LIVE)
		return OK;
	struct db_query *query =
		db_query(connection, "INSERT INTO evidence_queue (account, certification, reason, since,"
	                         " next_attempt_at, attempts) VALUES ($1, $2, 'first', $3, 0, 0)");
	db_bind(query, certification->account, certification->certification, now_us);
	return db_execute(query, NULL, error);
}

int store_complete_certification(struct store *store, const struct certification *certification,
                                 const char *holder, int64_t issued_at_us,
                                 const struct document *documents, size_t count,
                                 struct error *error)
{
	/* The reports were dated when their issuance began. */
	int64_t now_us = store_now_us(store);
	if (now_us < issued_at_us)
		now_us = issued_at_us;
	struct db_connection *connection = begin_write(store, &error);
	int result = count_stored(connection, certification->account, documents, count, error)
	                 ?: complete(connection, certification, holder, issued_at_us, error);
	for (size_t i = 0; i < count && !result; i++)
		result = write_document(connection, certification, &documents[i], error);
	if (!result)
		result = queue_evidence(connection, certification, issued_at_us, error);
	if (!result)
		result = write_notice(connection, certification, NULL, now_us, error);
	if (!result)
		result = count_certification(connection, certification, CERTIFICATION_COMPLETED,
		                             issued_at_us, error);
	result = end_write(connection, result, error);
	if (!result)
		work_invalidate(store); /* for its notice */
	return result;
}

static int refund(struct db_connection *connection, const struct certification *certification,
                  int64_t now_us, struct error *error)
{
	if (certification->fee == 0)
		return OK;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, FAIL_MEMORY_MAX);
	struct ledger_account account;
	int result = store_load_account(connection, certification->account, &arena, &account, error);
	struct ledger_result moved = {0};
	int64_t settled = 0;
	if (!result)
		result =
			ledger_move_credits(&account, certification->fee, "fee_refund",
		                        certification->certification_id, &arena, &moved, &settled, error);
	if (!result && settled)
		result = store_settle(connection, certification->account, settled, error);
	if (!result)
		result = store_write_entries(connection, &account, moved.entries, now_us, error);
	if (!result)
		result = store_write_notices(connection, certification->account, moved.notices, MODE_LIVE,
		                             now_us, error);
	if (!result)
		result = store_save_account(connection, &account, TIME_NONE, error);
	return result;
}

static int fail(struct db_connection *connection, const struct certification *certification,
                const char *holder, const char *incident_id, const char *cause, int64_t now_us,
                struct error *error)
{
	/* Locks the account, also for the notice, before the certification, as acceptance does. */
	int result = lock_account(connection, certification->account, error)
	                 ?: refund(connection, certification, now_us, error);
	if (result)
		return result;
	struct db_query *query = db_query(
		connection, "UPDATE certifications SET status = 'failed', completed_at = $4,"
					" incident_id = $5, last_error = $6, lease = NULL"
					" WHERE account = $1 AND certification = $2 AND status = 'processing'"
					" AND (lease = $3 OR"
					" (CAST($3 AS TEXT) IS NULL AND (lease IS NULL OR next_attempt_at <= $4)))");
	db_bind(query, certification->account, certification->certification, holder, now_us,
	        incident_id, cause);
	result = job_claim_update(query, certification->certification_id, error)
		?: write_notice(connection, certification, incident_id, now_us, error)
		?: count_certification(connection, certification, CERTIFICATION_FAILED, now_us, error);
	return result;
}

int store_fail_certification(struct store *store, const struct certification *certification,
                             const char *holder, const char *cause, int64_t now_us,
                             char ret_incident_id[ID_SIZE], struct error *error)
{
	char incident_id[ID_SIZE];
	store_fresh_id("inc_", incident_id);
	struct db_connection *connection = begin_write(store, &error);
	int result = end_write(
		connection, fail(connection, certification, holder, incident_id, cause, now_us, error),
		error);
	if (!result)
		memcpy(ret_incident_id, incident_id, ID_SIZE);
	return result;
}

#define OVERDUE(of)                                                                                \
	CERTIFICATIONS                                                                                 \
	" JOIN chains s ON s.account = c.account AND s.chain = c.chain"                                \
	" WHERE c.status = 'processing' AND c.requested_at < $1"                                       \
	" AND c.chain % 2 = 0 AND " SEALED_SEQUENCE("s") " < c.last_sequence"                          \
													 " AND c.certification > $2" of                \
													 " ORDER BY c.certification LIMIT 1"

static int find_overdue(struct store *store, int64_t before_us, int64_t after,
                        struct work_accounts *of, struct arena *arena, struct certification *ret,
                        struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {.arena = arena,
	                  .query = of->all ? db_query(connection, OVERDUE(""))
	                                   : db_query(connection, OVERDUE(OF_EACH("$3")))};
	db_bind(row.query, before_us, after);
	shard_work_bind(row.query, of);
	return end_read(connection, read_certification(&row, ret, error));
}

int store_find_overdue_certification(struct store *store, int64_t before_us, int64_t after,
                                     struct arena *arena, struct certification *ret,
                                     struct error *error)
{
	struct work_accounts of;
	int result = shard_work_find(store, WORK_CERTIFICATIONS, &of, error);
	if (!result)
		result = work_is_empty(&of) ? ERR_NOT_FOUND
		                            : find_overdue(store, before_us, after, &of, arena, ret, error);
	shard_work_free(&of);
	return result;
}
