#include "store/money/topup.h"

#include "base/json.h"
#include "store/money/money.h"
#include "store/notices/queue_mail.h"
#include "store/shards/shard_work.h"

/* ---- rows ---- */

struct topup_row {
	bool found;
	bool enabled;
	int64_t threshold;
	char pack_id[ID_SIZE];
	int64_t daily_max;
	int64_t purchase; /* 0: none in progress */
};

static int read_topup(struct db_connection *connection, int64_t account, struct topup_row *ret,
                      struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT enabled, threshold, pack_id, daily_max, purchase FROM topups"
	                         " WHERE account = $1");
	db_bind_integer(query, account);
	*ret = (struct topup_row){.found = db_step(query)};
	if (ret->found) {
		ret->enabled = db_integer(query, 0) != 0;
		ret->threshold = db_integer(query, 1);
		store_copy_id(ret->pack_id, db_text(query, 2));
		ret->daily_max = db_integer(query, 3);
		ret->purchase = db_integer(query, 4);
	}
	return db_end(query, error);
}

static int count_today(struct db_connection *connection, int64_t account, int64_t now_us,
                       int64_t *ret, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT COUNT(*) FROM purchases WHERE account = $1 AND automatic = 1"
	                         " AND state <> 'rejected' AND created_at >= $2 AND created_at < $3");
	int64_t next_us = time_next_day(now_us);
	db_bind(query, account, next_us - US_PER_DAY, next_us);
	*ret = db_step(query) ? db_integer(query, 0) : 0;
	return db_end(query, error);
}

/* ---- end of a top-up ---- */

static int queue_failure_mail(struct money *money, const struct recharge *recharge,
                              enum recharge_reason reason, const char *payment_url,
                              struct error *error)
{
	BUF_AUTO struct buf values;
	buf_init(&values, MAIL_VALUES_MAX);
	struct json_writer writer = {.out = &values};
	json_begin_object(&writer, NULL);
	json_text(&writer, "reason", recharge_reason_text(reason));
	json_text(&writer, "pack_id", recharge->pack_id);
	json_text(&writer, "sale_code", recharge->sale_id);
	json_text(&writer, "payment_url", payment_url);
	json_end_object(&writer);
	int result = buf_check(&values);
	return result ? result
	              : store_queue_mail(money->connection, money->account.account, MAIL_TOPUP_FAILED,
	                                 buf_slice(&values), money->now_us, error);
}

/* Turns the top-up off; its settings are kept. */
static int write_failure(struct money *money, int64_t purchase, enum recharge_reason reason,
                         struct error *error)
{
	struct db_query *query = db_query(
		money->connection, "UPDATE topups SET enabled = 0, failed_at = $2, reason = $3,"
						   " purchase = CASE WHEN purchase = $4 THEN NULL ELSE purchase END"
						   " WHERE account = $1");
	db_bind(query, money->account.account, money->now_us, recharge_reason_text(reason), purchase);
	return db_execute(query, NULL, error);
}

static int fail(struct money *money, const struct recharge *recharge, int64_t purchase,
                enum recharge_reason reason, const char *payment_url, struct error *error)
{
	struct ledger_notice notice;
	return write_failure(money, purchase, reason, error)
		?: recharge_failed(recharge, reason, payment_url, &money->arena, &notice)
		?: store_write_notices(money->connection, money->account.account, &notice, MODE_LIVE,
		                       money->now_us, error)
		?: queue_failure_mail(money, recharge, reason, payment_url, error);
}

static struct recharge recharge_of(const struct purchase_row *row, const struct topup_row *topup)
{
	return (struct recharge){
		.sale_id = row->sale_id,
		.pack_id = row->pack_id,
		.credits = row->credits,
		.amount_minor = row->amount_minor,
		.currency = row->currency,
		.threshold = topup->threshold,
	};
}

int topup_complete(struct money *money, const struct purchase_row *row, enum recharge_end *ret,
                   struct error *error)
{
	struct topup_row topup;
	int result = read_topup(money->connection, money->account.account, &topup, error);
	*ret = RECHARGE_NONE;
	if (result || topup.purchase != row->number)
		return result;
	struct recharge recharge = recharge_of(row, &topup);
	struct ledger_notice notice;
	result = recharge_completed(&recharge, money->account.balance, &money->arena, &notice)
	             ?: store_write_notices(money->connection, money->account.account, &notice,
	                                    MODE_LIVE, money->now_us, error);
	struct db_query *query =
		db_query(money->connection, "UPDATE topups SET purchase = NULL WHERE account = $1");
	db_bind_integer(query, money->account.account);
	if (!result)
		result = db_execute(query, NULL, error);
	if (!result)
		*ret = RECHARGE_COMPLETED;
	return result;
}

int topup_fail_purchase(struct money *money, const struct purchase_row *row, bool created,
                        enum recharge_reason reason, enum recharge_end *ret, struct error *error)
{
	struct topup_row topup;
	int result = read_topup(money->connection, money->account.account, &topup, error);
	*ret = RECHARGE_NONE;
	if (result || topup.purchase != row->number)
		return result;
	struct recharge recharge = recharge_of(row, &topup);
	if (!created)
		recharge.sale_id = NULL;
	bool payable = created && row->state == PURCHASE_PENDING;
	result = fail(money, &recharge, row->number, reason, payable ? row->payment_url : NULL, error);
	if (!result)
		*ret = RECHARGE_FAILED;
	return result;
}

int topup_lose_pack(struct money *money, const char *pack_id, bool *ret_off, struct error *error)
{
	struct topup_row topup;
	int result = read_topup(money->connection, money->account.account, &topup, error);
	*ret_off = false;
	if (result || !topup.enabled || strcmp(topup.pack_id, pack_id) != 0)
		return result;
	struct recharge recharge = {.pack_id = pack_id, .threshold = topup.threshold};
	result = fail(money, &recharge, 0, RECHARGE_CUSTOM_PACK_INACTIVE, NULL, error);
	if (!result)
		*ret_off = true;
	return result;
}

/* ---- settings ---- */

int store_get_topup(struct store *store, struct slice account_id, int64_t now_us,
                    struct arena *arena, struct topup_record *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	int64_t account = 0;
	int64_t today = 0;
	int result = find_account_number(connection, account_id, &account, error);
	if (!result)
		result = count_today(connection, account, now_us, &today, error);
	if (result)
		return end_read(connection, result);
	struct row row = {
		.arena = arena,
		.query = db_query(connection,
	                      "SELECT t.pack_id, t.enabled, t.threshold, t.daily_max, t.failed_at,"
	                      " t.reason, COALESCE(p.sale_id, '') FROM topups t LEFT JOIN purchases p"
	                      " ON p.account = t.account AND p.number = t.purchase"
	                      " WHERE t.account = $1")};
	db_bind_integer(row.query, account);
	bool found = db_step(row.query);
	struct topup_record record = {.bought_today = today};
	if (found) {
		store_copy_id(record.account_id, account_id);
		store_copy_id(record.pack_id, db_text(row.query, 0));
		record.enabled = db_integer(row.query, 1) != 0;
		record.threshold = db_integer(row.query, 2);
		record.daily_max = db_integer(row.query, 3);
		record.failed_at_us = row_time(row.query, 4);
		record.reason = row_string(&row, 5);
		store_copy_id(record.sale_id, db_text(row.query, 6));
	}
	result = end_read(connection, row_end(&row, found, MSG_STORE_NO_TOPUP, account_id, error));
	if (!result)
		*ret = record;
	return result;
}

static int check_pack(struct money *money, int64_t account, struct slice pack_id,
                      struct error *error)
{
	struct account_state state;
	struct pack_row pack;
	int result = read_account_state(money->connection, account, &money->arena, &state, error);
	if (!result)
		result = read_pack_row(money->connection, pack_id, &money->arena, &pack, error);
	return result ? result : refuse_pack(&pack, account, &state.billing, error);
}

int store_set_topup(struct store *store, struct slice account_id, struct slice pack_id,
                    int64_t threshold, int64_t daily_max, struct error *error)
{
	struct money money;
	money_begin(store, 0, &money, &error);
	int64_t account = 0;
	int result = find_account_number(money.connection, account_id, &account, error);
	if (!result)
		result = check_pack(&money, account, pack_id, error);
	if (!result) {
		struct db_query *query = db_query(
			money.connection, "INSERT INTO topups (account, enabled, threshold, pack_id, daily_max)"
							  " VALUES ($1, 1, $2, $3, $4) ON CONFLICT (account) DO UPDATE SET"
							  " enabled = 1, threshold = excluded.threshold,"
							  " pack_id = excluded.pack_id, daily_max = excluded.daily_max,"
							  " failed_at = NULL, reason = NULL");
		db_bind(query, account, threshold, pack_id, daily_max);
		result = db_execute(query, NULL, error);
	}
	return money_end(&money, result, error);
}

static int switch_topup(struct money *money, struct slice account_id, bool on, struct error *error)
{
	int64_t account = 0;
	struct topup_row topup;
	int result = find_account_number(money->connection, account_id, &account, error)
	                 ?: read_topup(money->connection, account, &topup, error);
	char id[ID_SIZE];
	store_copy_id(id, account_id);
	if (!result && !topup.found)
		result = error_set(error, ERR_NOT_FOUND, MSG_STORE_NO_TOPUP, id, NULL);
	if (!result && on)
		result = check_pack(money, account, slice_of(topup.pack_id), error);
	if (result || topup.enabled == on)
		return result;
	struct db_query *query =
		db_query(money->connection, "UPDATE topups SET enabled = $2,"
	                                " failed_at = CASE WHEN $2 = 1 THEN NULL ELSE failed_at END,"
	                                " reason = CASE WHEN $2 = 1 THEN NULL ELSE reason END"
	                                " WHERE account = $1");
	db_bind(query, account, on);
	return db_execute(query, NULL, error);
}

int store_switch_topup(struct store *store, struct slice account_id, bool on, struct error *error)
{
	struct money money;
	money_begin(store, 0, &money, &error);
	return money_end(&money, switch_topup(&money, account_id, on, error), error);
}

/* ---- decision ---- */

#define DUE(of)                                                                                    \
	"SELECT t.account FROM topups t JOIN accounts a ON a.account = t.account"                      \
	" WHERE t.enabled = 1 AND t.purchase IS NULL AND t.account > $1"                               \
	" AND a.balance < t.threshold AND a.disabled = 0" of " ORDER BY t.account LIMIT 1"

static int next_due_topup(struct store *store, int64_t after_account, struct work_accounts *of,
                          int64_t *ret_account, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct db_query *query =
		of->all ? db_query(connection, DUE(""))
				: db_query(connection, DUE(WORK_ACCOUNTS("t", "$2") WORK_ACCOUNTS("a", "$2")));
	db_bind_integer(query, after_account);
	shard_work_bind(query, of);
	int64_t account = db_step(query) ? db_integer(query, 0) : 0;
	int result = end_read(connection, db_end(query, error));
	if (!result)
		*ret_account = account;
	return result;
}

int store_next_due_topup(struct store *store, int64_t after_account, int64_t *ret_account,
                         struct error *error)
{
	struct work_accounts of;
	int64_t account = 0;
	int result = shard_work_find(store, WORK_TOPUPS, &of, error);
	if (!result && !work_is_empty(&of))
		result = next_due_topup(store, after_account, &of, &account, error);
	shard_work_free(&of);
	if (!result)
		*ret_account = account;
	return result;
}

/* Purchases made in the copy do not show what the original charged. */
int store_get_topup_check(struct store *store, int64_t account, int64_t copied_us, int64_t woken_us,
                          struct arena *arena, struct topup_payment_check *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {
		.arena = arena,
		.query = db_query(
			connection,
			"SELECT a.account_id, b.customer, COALESCE((SELECT MAX(p.created_at) FROM purchases p"
			" WHERE p.account = $1 AND p.created_at < $3), a.created_at),"
			" t.looked_at IS NULL OR t.looked_at < $2, COALESCE(t.looked_at, 0) FROM topups t"
			" JOIN accounts a ON a.account = t.account"
			" LEFT JOIN account_billing b ON b.account = t.account WHERE t.account = $1")};
	db_bind(row.query, account, woken_us, copied_us);
	struct topup_payment_check look = {0};
	if (db_step(row.query)) {
		store_copy_id(look.account_id, db_text(row.query, 0));
		look.customer = row_string(&row, 1);
		look.since_us = db_integer(row.query, 2);
		look.wanted = db_integer(row.query, 3) != 0;
		int64_t looked_us = db_integer(row.query, 4);
		look.since_us = looked_us > look.since_us ? looked_us : look.since_us;
	}
	int result = end_read(connection, row_result(&row, true, error));
	if (!result)
		*ret = look;
	return result;
}

int store_end_topup_check(struct store *store, int64_t account, const char *reason, int64_t now_us,
                          struct error *error)
{
	struct money money;
	money_begin(store, now_us, &money, &error);
	struct db_query *query =
		db_query(money.connection, "UPDATE topups SET looked_at = $2,"
	                               " enabled = CASE WHEN $3 = 1 THEN 0 ELSE enabled END,"
	                               " failed_at = CASE WHEN $3 = 1 THEN $2 ELSE failed_at END,"
	                               " reason = CASE WHEN $3 = 1 THEN $4 ELSE reason END"
	                               " WHERE account = $1");
	db_bind(query, account, now_us, reason != NULL, reason);
	return money_end(&money, db_execute(query, NULL, error), error);
}

/* Input of a decision. */
struct decision {
	struct topup_row topup;
	struct account_state state;
	struct pack_row pack;
	struct topup_facts facts;
};

static int gather(struct money *money, struct decision *decision, struct error *error)
{
	struct db_connection *connection = money->connection;
	int64_t account = money->account.account;
	struct topup_row *topup = &decision->topup;
	int64_t today = 0;
	int result = read_topup(connection, account, topup, error);
	if (result || !topup->found)
		return result;
	result = read_account_state(connection, account, &money->arena, &decision->state, error)
		?: read_pack_row(connection, slice_of(topup->pack_id), &money->arena, &decision->pack,
		                 error)
		?: count_today(connection, account, money->now_us, &today, error);
	if (result)
		return result;
	const struct billing *billing = &decision->state.billing;
	decision->facts = (struct topup_facts){
		.enabled = topup->enabled,
		.under_way = topup->purchase != 0,
		.balance = money->account.balance,
		.threshold = topup->threshold,
		.account_suspended = decision->state.suspended,
		.account_disabled = decision->state.disabled,
		.pack_on_sale = pack_is_sold_to(&decision->pack, account, billing),
		.pack_custom = decision->pack.account != 0 && decision->pack.withdrawn,
		.has_payment_method = billing->payment_method != NULL,
		.has_country = billing->country != NULL,
		.bought_today = today,
		.daily_max = topup->daily_max,
	};
	return OK;
}

static int buy(struct money *money, const struct decision *decision, const char *provider,
               struct error *error)
{
	int64_t number;
	char sale_id[ID_SIZE];
	struct new_purchase given = {&decision->pack, &decision->state, provider, true};
	int result = insert_purchase(money, &given, &number, sale_id, error);
	if (!result)
		result = insert_payment(money, number, sale_id, provider, PAYMENT_CHARGE, error);
	if (result)
		return result;
	struct db_query *query =
		db_query(money->connection, "UPDATE topups SET purchase = $2 WHERE account = $1");
	db_bind(query, money->account.account, number);
	return db_execute(query, NULL, error);
}

static int decide(struct money *money, int64_t account, const char *provider,
                  enum topup_action *ret_action, struct error *error)
{
	struct decision decision = {0};
	int result = money_hold(money, account, error);
	if (!result)
		result = gather(money, &decision, error);
	if (result)
		return result;
	enum recharge_reason reason;
	*ret_action = topup_decide(&decision.facts, &reason);
	if (*ret_action == TOPUP_BUY)
		return buy(money, &decision, provider, error);
	if (*ret_action == TOPUP_NOTHING)
		return OK;
	struct recharge recharge = {.pack_id = decision.topup.pack_id,
	                            .threshold = decision.topup.threshold};
	return fail(money, &recharge, 0, reason, NULL, error);
}

int store_run_topup(struct store *store, int64_t account, const char *provider, int64_t now_us,
                    enum topup_action *ret_action, struct error *error)
{
	struct money money;
	money_begin(store, now_us, &money, &error);
	enum topup_action action = TOPUP_NOTHING;
	int result = money_end(&money, decide(&money, account, provider, &action, error), error);
	if (!result)
		*ret_action = action;
	return result;
}
