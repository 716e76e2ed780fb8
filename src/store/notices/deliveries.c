#include "store/notices/deliveries.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "store/audit/audit_log.h"
#include "store/notices/endpoint.h"
#include "store/notices/queue_mail.h"
#include "store/shards/shard_routing.h"
#include "store/shards/shard_work.h"
#include "store/transaction.h"

/* ---- due deliveries ---- */

#define DUE_WEBHOOKS(of)                                                                           \
	"SELECT account, endpoint FROM webhook_endpoints e"                                            \
	" WHERE next_at IS NOT NULL AND next_at <= $1" of " ORDER BY next_at"
#define NEXT_DELIVERY(of)                                                                          \
	"SELECT next_at FROM webhook_endpoints e WHERE next_at IS NOT NULL" of                         \
	" ORDER BY next_at LIMIT 1"

static int each_due_webhook(struct store *store, int64_t now_us, struct work_accounts *of,
                            int (*each)(void *context, int64_t account, int64_t endpoint),
                            void *context, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query = of->all ? db_query(connection, DUE_WEBHOOKS(""))
	                                 : db_query(connection, DUE_WEBHOOKS(WORK_ACCOUNTS("e", "$2")));
	db_bind_integer(query, now_us);
	shard_work_bind(query, of);
	int ended = OK;
	while (!ended && db_step(query))
		ended = each(context, db_integer(query, 0), db_integer(query, 1));
	int result = db_end(query, error);
	return end_read(connection, result ? result : ended);
}

int store_each_due_webhook(struct store *store, int64_t now_us,
                           int (*each)(void *context, int64_t account, int64_t endpoint),
                           void *context, struct error *error)
{
	struct work_accounts of;
	int result = shard_work_find(store, WORK_DELIVERIES, &of, error);
	if (!result && !work_is_empty(&of))
		result = each_due_webhook(store, now_us, &of, each, context, error);
	shard_work_free(&of);
	return result;
}

static int next_delivery(struct store *store, struct work_accounts *of, int64_t *ret_at_us,
                         struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query = of->all
	                             ? db_query(connection, NEXT_DELIVERY(""))
	                             : db_query(connection, NEXT_DELIVERY(WORK_ACCOUNTS("e", "$1")));
	shard_work_bind(query, of);
	int64_t at_us = db_step(query) ? db_integer(query, 0) : INT64_MAX;
	int result = db_end(query, error);
	if (!result)
		*ret_at_us = at_us;
	return end_read(connection, result);
}

int store_next_delivery(struct store *store, int64_t *ret_at_us, struct error *error)
{
	struct work_accounts of;
	int64_t at_us = INT64_MAX;
	int result = shard_work_find(store, WORK_DELIVERIES, &of, error);
	if (!result && !work_is_empty(&of))
		result = next_delivery(store, &of, &at_us, error);
	shard_work_free(&of);
	if (!result)
		*ret_at_us = at_us;
	return result;
}

static int load_endpoint(struct db_connection *connection, int64_t account, int64_t endpoint,
                         struct arena *arena, struct delivery_batch *ret, struct error *error)
{
	struct row row = {.arena = arena,
	                  .query =
	                      db_query(connection, "SELECT endpoint_id, url, secret_version,"
	                                           " previous_secret_until FROM webhook_endpoints"
	                                           " WHERE account = $1 AND endpoint = $2"
	                                           " AND disabled_at IS NULL AND deleted_at IS NULL")};
	db_bind(row.query, account, endpoint);
	bool found = db_step(row.query);
	if (found) {
		store_copy_id(ret->endpoint_id, db_text(row.query, 0));
		ret->url = row_string(&row, 1);
		ret->secret_version = db_integer(row.query, 2);
		ret->previous_secret_until_us = row_time(row.query, 3);
	}
	return row_end(&row, found, MSG_STORE_NO_WEBHOOK, slice_of(""), error);
}

static const struct member delivery_columns[] =
	COLUMNS_OF(struct delivery, notice, attempts, tries, notice_id, type, mode, created_at_us);

static void complete_delivery(struct row *row, void *to)
{
	((struct delivery *)to)->data = slice_of(row_string(row, 7));
}

static const struct row_type delivery_type =
	ROW_TYPE(struct delivery, delivery_columns, complete_delivery);

/* A dead endpoint gets few attempts, and more deliveries may arrive than attempts. Only if retries
 * go first is a schedule ever exhausted and the endpoint disabled. New and replayed deliveries
 * alternate, each in order, so that a hundred thousand replayed ones do not delay a new one. */
#define DUE(part)                                                                                  \
	"SELECT account, notice, attempts, tries, replayed, replayed_at,"                              \
	" ROW_NUMBER() OVER (ORDER BY next_attempt_at, notice) AS turn"                                \
	" FROM (SELECT account, notice, attempts, tries, replayed, replayed_at, next_attempt_at"       \
	" FROM webhook_deliveries WHERE account = $1 AND endpoint = $2 AND status = 'waiting'"         \
	" AND next_attempt_at <= $3 AND tries " part " ORDER BY next_attempt_at LIMIT $4) AS due"

#define DUE_ALTERNATING                                                                            \
	DUE("> 0") " UNION ALL " DUE("= 0 AND replayed = 0") " UNION ALL " DUE("= 0 AND replayed = 1")

int store_load_deliveries(struct store *store, int64_t account, int64_t endpoint, int64_t now_us,
                          int64_t limit, struct arena *arena, struct delivery_batch *ret,
                          struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct delivery_batch batch = {0};
	int result = load_endpoint(connection, account, endpoint, arena, &batch, error);
	if (result)
		return end_read(connection, result);
	struct row row = {
		.arena = arena,
		.query = db_query(
			connection,
			"SELECT d.notice, d.attempts, d.tries, n.notice_id, n.type, n.mode, n.created_at,"
			" n.data, COALESCE(d.replayed_at, n.created_at) FROM (" DUE_ALTERNATING ") AS d"
			" JOIN notices n ON n.account = d.account AND n.notice = d.notice AND n.account = $1"
			" ORDER BY CASE WHEN d.tries > 0 THEN 0 ELSE 1 END, d.turn, d.replayed LIMIT $4")};
	db_bind(row.query, account, endpoint, now_us, limit);
	bool more = false;
	result = end_read(connection, row_list(&row, &delivery_type, &batch.items, &batch.count, &more,
	                                       limit, error));
	if (!result)
		*ret = batch;
	return result;
}

/* ---- recording ---- */

struct recording {
	struct db_connection *connection;
	int64_t account;
	int64_t endpoint;
	bool gone; /* deleted, or its row does not exist */
	bool disabled;
	bool receiver_gone;       /* it is disabled because of that */
	struct sha256 url_digest; /* of the present URL */
	int64_t failures;
	int64_t failures_max;
	int64_t now_us;
	struct error *error;
};

static int lock_endpoint(struct recording *recording)
{
	struct db_query *query =
		db_query(recording->connection,
	             "SELECT failures, disabled_at, deleted_at, url FROM webhook_endpoints"
	             " WHERE account = $1 AND endpoint = $2 FOR UPDATE");
	db_bind(query, recording->account, recording->endpoint);
	bool found = db_step(query);
	recording->failures = found ? db_integer(query, 0) : 0;
	recording->disabled = found && !db_is_null(query, 1);
	recording->gone = !found || !db_is_null(query, 2);
	recording->receiver_gone = false;
	struct slice url = found ? db_text(query, 3) : slice_of("");
	recording->url_digest = sha256_of(url.data, url.size);
	return db_end(query, recording->error);
}

/* Skips a delivery that housekeeping has removed in the meantime, because nothing would remove the
 * attempt. */
static int write_attempt(struct recording *recording, const struct attempt_record *record)
{
	struct db_query *query = db_query(
		recording->connection,
		"INSERT INTO webhook_attempts (account, endpoint, notice, attempt, at, duration_us,"
		" http_status, error, answer) SELECT account, endpoint, notice, $4, $5, $6, $7, $8, $9"
		" FROM webhook_deliveries WHERE account = $1 AND endpoint = $2 AND notice = $3"
		" ON CONFLICT (account, endpoint, notice, attempt) DO NOTHING");
	db_bind(query, recording->account, recording->endpoint, record->notice, record->attempts + 1,
	        record->at_us, record->duration_us, db_null_if(record->http_status, 0),
	        record->http_status ? NULL : record->error);
	db_bind_blob(query, record->answer_size ? record->answer : NULL, record->answer_size);
	return db_execute(query, NULL, recording->error);
}

/* Updates the delivery only if it is unchanged since it was loaded: not recorded before and not
 * replayed in the meantime. */
static int move_delivery(struct recording *recording, const struct attempt_record *record,
                         int64_t *ret_changes)
{
	static const char *const statuses[] = {"delivered", "waiting", "failed"};
	struct db_query *query = db_query(
		recording->connection,
		"UPDATE webhook_deliveries SET status = $6, attempts = attempts + 1, tries = tries + 1,"
		" next_attempt_at = $7 WHERE account = $1 AND endpoint = $2 AND notice = $3"
		" AND status = 'waiting' AND attempts = $4 AND tries = $5");
	db_bind(query, recording->account, recording->endpoint, record->notice, record->attempts,
	        record->tries, statuses[record->end],
	        record->end == DELIVERY_AGAIN ? record->next_at_us
	                                      : record->at_us + record->duration_us);
	return db_execute(query, ret_changes, recording->error);
}

/* An answer of the receiver at a former URL says nothing about the present one. */
static bool says_gone(const struct recording *recording, const struct attempt_record *record)
{
	return record->gone && memcmp(recording->url_digest.bytes, record->url_digest.bytes,
	                              sizeof record->url_digest.bytes) == 0;
}

static int record_attempt(struct recording *recording, struct attempt_record *record)
{
	/* Only an end that is counted needs to know whether it was recorded first. */
	int64_t changes = 1;
	bool counts = record->end == DELIVERY_USED_UP, gone = says_gone(recording, record);
	int result = move_delivery(recording, record, counts || gone ? &changes : NULL);
	if (!result)
		result = write_attempt(recording, record);
	if (result)
		return result;
	if (record->end == DELIVERY_DONE)
		recording->failures = 0;
	else if (counts && changes == 1)
		recording->failures++;
	gone = gone && changes == 1;
	if (!recording->disabled && (gone || recording->failures >= recording->failures_max)) {
		recording->disabled = record->disabled = true;
		recording->receiver_gone = gone;
	}
	return OK;
}

static int queue_mail(struct recording *recording)
{
	struct db_query *query =
		db_query(recording->connection, "SELECT endpoint_id, url FROM webhook_endpoints"
	                                    " WHERE account = $1 AND endpoint = $2");
	db_bind(query, recording->account, recording->endpoint);
	BUF_AUTO struct buf values;
	buf_init(&values, MAIL_VALUES_MAX);
	struct json_writer writer = {.out = &values};
	json_begin_object(&writer, NULL);
	if (db_step(query)) {
		json_slice(&writer, "endpoint_id", db_text(query, 0));
		json_slice(&writer, "url", db_text(query, 1));
	}
	json_end_object(&writer);
	int result = db_end(query, recording->error);
	if (!result)
		result = buf_check(&values);
	return result ? result
	              : store_queue_mail(recording->connection, recording->account,
	                                 recording->receiver_gone ? MAIL_ENDPOINT_GONE
	                                                          : MAIL_ENDPOINT_DISABLED,
	                                 buf_slice(&values), recording->now_us, recording->error);
}

static int save_endpoint(struct recording *recording, bool disabled_now)
{
	struct db_query *query = db_query(
		recording->connection, "UPDATE webhook_endpoints SET failures = $3,"
							   " disabled_at = CASE WHEN $4 = 1 THEN $5 ELSE disabled_at END,"
							   " disabled_by = CASE WHEN $4 = 1 THEN $7 ELSE disabled_by END,"
							   " next_at = CASE WHEN $6 = 1 THEN NULL ELSE " FIRST_DUE " END"
							   " WHERE account = $1 AND endpoint = $2");
	db_bind(query, recording->account, recording->endpoint, recording->failures, disabled_now,
	        recording->now_us, recording->disabled || recording->gone,
	        recording->receiver_gone ? "gone" : "failures");
	int result = db_execute(query, NULL, recording->error);
	return result || !disabled_now ? result : queue_mail(recording);
}

static int record_endpoint(struct recording *recording, struct attempt_record *records,
                           size_t count)
{
	recording->account = records->account;
	recording->endpoint = records->endpoint;
	int result = lock_endpoint(recording);
	bool disabled_before = recording->disabled;
	for (size_t i = 0; i < count && !result; i++) {
		records[i].disabled = false;
		if (records[i].notice)
			result = record_attempt(recording, &records[i]);
	}
	return result ? result : save_endpoint(recording, recording->disabled && !disabled_before);
}

static bool same_endpoint(const struct attempt_record *a, const struct attempt_record *b)
{
	return a->account == b->account && a->endpoint == b->endpoint;
}

/* Sorts by endpoint and end of the attempt; endpoints are locked in this order. */
static int compare(const void *left, const void *right)
{
	const struct attempt_record *a = left, *b = right;
	if (a->account != b->account)
		return a->account < b->account ? -1 : 1;
	if (a->endpoint != b->endpoint)
		return a->endpoint < b->endpoint ? -1 : 1;
	int64_t a_end_us = a->at_us + a->duration_us, b_end_us = b->at_us + b->duration_us;
	return (a_end_us > b_end_us) - (a_end_us < b_end_us);
}

/* ---- the audit record ---- */

static int name_endpoint(struct recording *recording, struct arena *arena, struct json **ret)
{
	struct db_query *query =
		db_query(recording->connection, "SELECT endpoint_id FROM webhook_endpoints"
	                                    " WHERE account = $1 AND endpoint = $2");
	db_bind(query, recording->account, recording->endpoint);
	struct slice id = db_step(query) ? db_text(query, 0) : slice_of("");
	const char *text = arena_printf(arena, "{\"endpoint\":\"%.*s\"}", (int)id.size, id.data);
	int result = db_end(query, recording->error);
	if (!result && !text)
		result = ERR_NO_MEMORY;
	return result ? result : json_parse(arena, slice_of(text), NULL, ret, recording->error);
}

static int write_audit(struct recording *recording, const struct attempt_record *record)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, AUDIT_DOCUMENT_MAX);
	char node[HOST_NAME_MAX + 1] = "";
	(void)!gethostname(node, sizeof node - 1);
	struct actor actor = {.uid = -1, .via = "service", .node = node, .is_service = true};
	struct act act = {.by = &actor,
	                  .operation = "webhook disable",
	                  .reason = record->gone ? "the receiver answered with status 410"
	                                         : "consecutive notices could not be delivered",
	                  .arena = &arena,
	                  .is_secondary = true};
	recording->account = record->account;
	recording->endpoint = record->endpoint;
	int result = name_endpoint(recording, &arena, &act.arguments);
	return result ? result : audit_write_alone(recording->connection, &act, recording->error);
}

/* After all endpoints are locked: an operation that holds one of them may wait for the number of an
 * audit record. Accounts are in the order in which operations on several accounts write. */
static int write_audits(struct recording *recording, const struct attempt_record *records,
                        size_t count)
{
	int result = OK;
	while (count > 0 && !result)
		if (records[--count].disabled)
			result = write_audit(recording, &records[count]);
	return result;
}

int store_record_attempts(struct store *store, struct attempt_record *records, size_t count,
                          int64_t failures_max, int64_t now_us, struct error *error)
{
	qsort(records, count, sizeof *records, compare);
	struct db_connection *connection = begin_write(store, &error);
	struct recording recording = {
		.connection = connection, .failures_max = failures_max, .now_us = now_us, .error = error};
	int result = OK;
	for (size_t first = 0, next; first < count && !result; first = next) {
		for (next = first + 1; next < count && same_endpoint(&records[first], &records[next]);)
			next++;
		result = record_endpoint(&recording, &records[first], next - first);
	}
	if (!result)
		result = write_audits(&recording, records, count);
	return end_write(connection, result, error);
}

/* ---- counting ---- */

static int count_deliveries(struct store *store, struct delivery_counts *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct delivery_counts counts = {0};
	struct db_query *query =
		db_query(connection, "SELECT e.disabled_at, e.disabled_by, (SELECT count(*)"
	                         " FROM webhook_deliveries d WHERE d.account = e.account"
	                         " AND d.endpoint = e.endpoint AND d.status = 'waiting')"
	                         " FROM webhook_endpoints e WHERE e.deleted_at IS NULL"
	                         " AND (e.next_at IS NOT NULL OR e.disabled_at IS NOT NULL)");
	while (db_step(query)) {
		bool disabled = !db_is_null(query, 0);
		counts.disabled +=
			slice_is(db_text(query, 1), "failures") || slice_is(db_text(query, 1), "gone");
		*(disabled ? &counts.held : &counts.waiting) += db_integer(query, 2);
	}
	int result = db_end(query, error);
	if (!result)
		*ret = counts;
	return end_read(connection, result);
}

#define WAITING                                                                                    \
	"SELECT count(*) AS account FROM {webhook_endpoints} e JOIN {webhook_deliveries} d"            \
	" ON d.account = e.account AND d.endpoint = e.endpoint"                                        \
	" WHERE e.deleted_at IS NULL AND d.status = 'waiting'"

int store_count_deliveries(struct store *store, struct delivery_counts *ret, struct error *error)
{
	static const char *const parts[] = {
		WAITING " AND e.disabled_at IS NULL AND e.next_at IS NOT NULL",
		WAITING " AND e.disabled_at IS NOT NULL",
		("SELECT count(*) AS account FROM {webhook_endpoints}"
	     " WHERE deleted_at IS NULL AND disabled_by IN ('failures', 'gone')")};
	int64_t counts[sizeof parts / sizeof *parts];
	bool distributed;
	int result =
		routing_count(store->db, parts, sizeof parts / sizeof *parts, counts, &distributed, error);
	if (!result && !distributed)
		return count_deliveries(store, ret, error);
	if (!result)
		*ret = (struct delivery_counts){
			.waiting = counts[0], .held = counts[1], .disabled = counts[2]};
	return result;
}
