/* Payments: attempts to charge or refund, each a job with a lease. */
#include <inttypes.h>
#include <stdio.h>

#include "store/money/money.h"
#include "store/nodes/job_claims.h"
#include "store/shards/shard_work.h"

static const char *const action_names[] = {"charge", "refund"};

/* ---- creation ---- */

static int next_number(struct db_connection *connection, int64_t account, int64_t *ret,
                       struct error *error)
{
	struct db_query *query = db_query(
		connection, "SELECT COALESCE(MAX(number), 0) + 1 FROM payments WHERE account = $1");
	db_bind_integer(query, account);
	*ret = db_step(query) ? db_integer(query, 0) : 0;
	return db_end(query, error);
}

int insert_payment(struct money *money, int64_t purchase, const char *sale_id, const char *provider,
                   enum payment_action action, struct error *error)
{
	int64_t account = money->account.account;
	int64_t number;
	int result = next_number(money->connection, account, &number, error);
	if (result)
		return result;
	char key[IDEMPOTENCY_KEY_SIZE];
	snprintf(key, sizeof key, "%.*s-%s-%" PRId64, ID_SIZE - 1, sale_id, action_names[action],
	         number % 100000000);
	struct db_query *query = db_query(
		money->connection, "INSERT INTO payments (account, number, purchase, action, provider,"
						   " idempotency_key, state, created_at, next_try_at)"
						   " VALUES ($1, $2, $3, $4, $5, $6, 'due', $7, $7)");
	db_bind(query, account, number, purchase, action_names[action], provider, key, money->now_us);
	return db_execute(query, NULL, error);
}

static int has_open_refund(struct money *money, int64_t purchase, bool *ret, struct error *error)
{
	struct db_query *query = db_query(
		money->connection, "SELECT COUNT(*) FROM payments WHERE account = $1 AND purchase = $2"
						   " AND action = 'refund' AND state <> 'over'");
	db_bind(query, money->account.account, purchase);
	*ret = db_step(query) && db_integer(query, 0) > 0;
	return db_end(query, error);
}

int store_request_refund(struct store *store, struct slice sale_id, int64_t now_us,
                         struct error *error)
{
	struct money money;
	money_begin(store, now_us, &money, &error);
	struct purchase_row row;
	bool open = false;
	int result = hold_purchase(&money, sale_id, &row, error);
	if (!result && row.state != PURCHASE_PAID)
		result = error_set(error, ERR_REFUSED, MSG_STORE_SALE_STATE, row.sale_id,
		                   purchase_state_text(row.state), NULL);
	if (!result)
		result = has_open_refund(&money, row.number, &open, error);
	if (!result && !open)
		result =
			insert_payment(&money, row.number, row.sale_id, row.provider, PAYMENT_GIVE_BACK, error);
	return money_end(&money, result, error);
}

int store_expedite_payment(struct store *store, struct slice idempotency_key, struct slice sale_id,
                           int64_t now_us, struct error *error)
{
	struct money money;
	money_begin(store, now_us, &money, &error);
	struct purchase_row row;
	int result = hold_purchase(&money, sale_id, &row, error);
	if (!result) {
		struct db_query *query = db_query(
			money.connection, "UPDATE payments SET next_try_at = $4 WHERE account = $1"
							  " AND purchase = $2 AND idempotency_key = $3 AND state <> 'over'"
							  " AND lease IS NULL");
		db_bind(query, money.account.account, row.number, idempotency_key, now_us);
		result = db_execute(query, NULL, error);
	}
	return money_end(&money, result, error);
}

int close_payments(struct money *money, int64_t purchase, enum payment_action action,
                   const char *outcome, struct error *error)
{
	struct db_query *query =
		db_query(money->connection, "UPDATE payments SET state = 'over', outcome = $4, lease = NULL"
	                                " WHERE account = $1 AND purchase = $2 AND action = $3"
	                                " AND state <> 'over'");
	db_bind(query, money->account.account, purchase, action_names[action], outcome);
	return db_execute(query, NULL, error);
}

/* ---- claiming ---- */

static void read_payment(struct row *row, struct payment *payment)
{
	struct db_query *query = row->query;
	*payment = (struct payment){
		.account = db_integer(query, 0),
		.number = db_integer(query, 1),
		.purchase = db_integer(query, 2),
		.action = slice_is(db_text(query, 3), "refund") ? PAYMENT_GIVE_BACK : PAYMENT_CHARGE,
		.waiting = slice_is(db_text(query, 5), "waiting"),
		.first_try_at_us = row_time(query, 6),
		.attempts = db_integer(query, 7),
		.total_minor = db_integer(query, 10),
		.customer = row_string(row, 12),
		.payment_method = row_string(row, 13),
		.description = row_string(row, 14),
		.reference = row_string(row, 15),
		.created_at_us = db_integer(query, 16),
	};
	struct slice key = db_text(query, 4);
	snprintf(payment->idempotency_key, sizeof payment->idempotency_key, "%.*s", (int)key.size,
	         key.data);
	store_copy_id(payment->sale_id, db_text(query, 9));
	row_expect(row, slice_is(db_text(query, 3), action_names[payment->action]), "action", 3,
	           payment->idempotency_key);
	row_expect(row, payment->waiting || slice_is(db_text(query, 5), "due"), "state", 5,
	           payment->idempotency_key);
	row_expect(row, currency_parse(db_text(query, 11), &payment->currency), "currency", 11,
	           payment->idempotency_key);
}

#define DUE(of)                                                                                    \
	"SELECT y.account, y.number, y.purchase, y.action, y.idempotency_key, y.state,"                \
	" y.first_try_at, y.attempts, y.next_try_at, p.sale_id, p.amount + p.tax, p.currency,"         \
	" p.customer, p.payment_method, p.description, COALESCE(y.reference, p.reference),"            \
	" y.created_at FROM payments y JOIN purchases p"                                               \
	" ON p.account = y.account AND p.number = y.purchase"                                          \
	" WHERE y.state <> 'over' AND y.provider = $3"                                                 \
	" AND (y.next_try_at <= $1 OR (y.lease = $2 AND y.attempts < $4))" of                          \
	" ORDER BY y.next_try_at LIMIT 1"
#define DUE_OF WORK_ACCOUNTS("y", "$5") WORK_ACCOUNTS("p", "$5")

/* Finds a due payment. *ret_seen_us is its next_try_at, which the claim compares. On failure, *ret
 * is set if there is a row; it may be unreadable. */
static int find_due_of(struct store *store, const char *holder, const char *provider,
                       int64_t now_us, struct work_accounts *of, struct arena *arena,
                       struct payment *ret, int64_t *ret_seen_us, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {.arena = arena,
	                  .query = of->all ? db_query(connection, DUE(""))
	                                   : db_query(connection, DUE(DUE_OF))};
	db_bind(row.query, now_us, holder, provider, CLAIM_RESUMED_MAX);
	shard_work_bind(row.query, of);
	struct payment payment;
	bool found = db_step(row.query);
	if (found) {
		read_payment(&row, &payment);
		*ret_seen_us = db_integer(row.query, 8);
	}
	int result = row_result(&row, found, error);
	if (found)
		*ret = payment;
	return end_read(connection, result);
}

static int find_due(struct store *store, const char *holder, const char *provider, int64_t now_us,
                    struct arena *arena, struct payment *ret, int64_t *ret_seen_us,
                    struct error *error)
{
	struct work_accounts of;
	int result = shard_work_find(store, WORK_PAYMENTS, &of, error);
	if (!result)
		result = work_is_empty(&of) ? ERR_NOT_FOUND
		                            : find_due_of(store, holder, provider, now_us, &of, arena, ret,
		                                          ret_seen_us, error);
	shard_work_free(&of);
	return result;
}

/* A payment that cannot be read must not block the others. */
static void skip_unreadable(struct store *store, const struct payment *payment, int64_t next_us)
{
	struct error *error = NULL;
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query =
		db_query(connection, "UPDATE payments SET lease = NULL, next_try_at = $3"
	                         " WHERE account = $1 AND number = $2 AND attempts = $4");
	db_bind(query, payment->account, payment->number, next_us, payment->attempts);
	/* The error is reported to the caller all the same, and occurs again later. */
	(void)!end_write_of_one(connection, query, error);
}

int store_claim_payment(struct store *store, const char *holder, const char *provider,
                        int64_t now_us, int64_t lease_us, struct arena *arena, struct payment *ret,
                        struct error *error)
{
	struct payment payment = {0};
	int64_t seen_us;
	int result = find_due(store, holder, provider, now_us, arena, &payment, &seen_us, error);
	if (result == ERR_CORRUPT && payment.number)
		skip_unreadable(store, &payment, now_us + lease_us);
	if (result)
		return result;
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query = db_query(
		connection, "UPDATE payments SET lease = $3, next_try_at = $4, attempts = attempts + 1,"
					" first_try_at = COALESCE(first_try_at, $5) WHERE account = $1 AND number = $2"
					" AND state <> 'over' AND next_try_at = $6 AND attempts = $7");
	db_bind(query, payment.account, payment.number, holder, now_us + lease_us, now_us, seen_us,
	        payment.attempts);
	result = end_write_of_one(connection, query, error); /* no row: another node was faster */
	if (!result) {
		payment.attempts++;
		if (payment.first_try_at_us == TIME_NONE)
			payment.first_try_at_us = now_us;
		*ret = payment;
	}
	return result;
}

int store_delay_payment(struct store *store, const struct payment *payment, const char *holder,
                        const struct payment_delay *delay, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query = db_query(
		connection, "UPDATE payments SET next_try_at = $4, lease = NULL,"
					" state = CASE WHEN $5 = 1 THEN 'waiting' ELSE state END,"
					" reference = COALESCE($6, reference), last_error = COALESCE($7, last_error)"
					" WHERE account = $1 AND number = $2 AND lease = $3 AND state <> 'over'");
	db_bind(query, payment->account, payment->number, holder, delay->next_us, delay->waiting,
	        delay->reference && *delay->reference ? delay->reference : NULL,
	        delay->cause && *delay->cause ? delay->cause : NULL);
	return end_write(connection, job_claim_update(query, payment->idempotency_key, error), error);
}

/* ---- ending ---- */

static int write_end(struct money *money, const struct payment *payment, const char *holder,
                     const struct payment_ended *ended, struct error *error)
{
	struct db_query *query = db_query(
		money->connection, "UPDATE payments SET state = 'over', lease = NULL, outcome = $4,"
						   " last_error = COALESCE($5, last_error) WHERE account = $1"
						   " AND number = $2 AND lease = $3 AND state <> 'over'");
	db_bind(query, payment->account, payment->number, holder, ended->outcome,
	        ended->cause && *ended->cause ? ended->cause : NULL);
	return job_claim_update(query, payment->idempotency_key, error);
}

static int keep_facts(struct money *money, struct purchase_row *row,
                      const struct payment_ended *ended, struct error *error)
{
	const char *reference = ended->reference && *ended->reference ? ended->reference : NULL;
	const char *url = ended->payment_url && *ended->payment_url ? ended->payment_url : NULL;
	if (url)
		row->payment_url = url;
	struct db_query *query =
		db_query(money->connection, "UPDATE purchases SET reference = COALESCE($3, reference),"
	                                " payment_url = COALESCE($4, payment_url)"
	                                " WHERE account = $1 AND number = $2");
	db_bind(query, money->account.account, row->number, reference, url);
	return db_execute(query, NULL, error);
}

/* Updates the purchase and its top-up when nothing was charged. */
static int leave_unpaid(struct money *money, struct purchase_row *row, enum payment_end end,
                        struct purchase_outcome *outcome, struct error *error)
{
	struct purchase_step step = {true, row->state, 0};
	if (end != PAYMENT_END_DECLINED)
		step = purchase_step(row->state, PURCHASE_REJECT, true);
	int result = step_purchase(money, row, step, outcome, error);
	if (result)
		return result;
	enum recharge_reason reason = end == PAYMENT_END_DECLINED ? RECHARGE_PAYMENT_FAILED
	                              : end == PAYMENT_END_METHOD_MISSING
	                                  ? RECHARGE_PAYMENT_METHOD_MISSING
	                                  : RECHARGE_SALE_CREATION_FAILED;
	return topup_fail_purchase(money, row, end == PAYMENT_END_DECLINED, reason, &outcome->recharge,
	                           error);
}

static int end_payment(struct money *money, const struct payment *payment, const char *holder,
                       const struct payment_ended *ended, struct purchase_outcome *outcome,
                       struct error *error)
{
	struct purchase_row row;
	int result = money_hold(money, payment->account, error)
		?: write_end(money, payment, holder, ended, error)
		?: read_purchase_row(money, payment->purchase, &row, error)
		?: keep_facts(money, &row, ended, error);
	if (result)
		return result;
	bool charge = payment->action == PAYMENT_CHARGE;
	if (ended->end == PAYMENT_END_DONE) {
		enum purchase_action act = charge ? PURCHASE_PAY : PURCHASE_REFUND;
		return step_purchase(money, &row, purchase_step(row.state, act, true), outcome, error);
	}
	if (charge)
		return leave_unpaid(money, &row, ended->end, outcome, error);
	struct purchase_step none = {true, row.state, 0};
	return step_purchase(money, &row, none, outcome, error);
}

int store_end_payment(struct store *store, const struct payment *payment, const char *holder,
                      const struct payment_ended *ended, int64_t now_us,
                      struct purchase_outcome *ret, struct error *error)
{
	struct money money;
	money_begin(store, now_us, &money, &error);
	struct purchase_outcome outcome;
	int result = end_payment(&money, payment, holder, ended, &outcome, error);
	result = money_end(&money, result, error);
	if (!result)
		*ret = outcome;
	return result;
}
