#include "store/money/purchases.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "store/money/money.h"
#include "store/shards/shard_routing.h"

#define DESCRIPTION_MAX 400
#define BY_SALE ROUTING_PLACE("purchases", "sale_id")

/* ---- creating ---- */

static int next_number(struct db_connection *connection, int64_t account, int64_t *ret,
                       struct error *error)
{
	struct db_query *query = db_query(
		connection, "SELECT COALESCE(MAX(number), 0) + 1 FROM purchases WHERE account = $1");
	db_bind_integer(query, account);
	*ret = db_step(query) ? db_integer(query, 0) : 0;
	return db_end(query, error);
}

static void bind_purchase(struct db_query *query, const struct money *money,
                          const struct new_purchase *given, const char *description)
{
	const struct pack_row *pack = given->pack;
	const struct billing *billing = &given->buyer->billing;
	db_bind(query, pack->pack_id, description, pack->credits, pack->amount_minor,
	        amount_tax(pack->amount_minor, billing->tax_rate), currency_text(pack->currency),
	        billing->country, billing->customer, billing->payment_method, given->provider,
	        given->automatic, money->now_us, billing->tax_rate, given->buyer->name);
}

int insert_purchase(struct money *money, const struct new_purchase *given, int64_t *ret_number,
                    char ret_sale_id[ID_SIZE], struct error *error)
{
	int64_t account = money->account.account;
	int result = next_number(money->connection, account, ret_number, error);
	if (result)
		return result;
	store_fresh_id("sal_", ret_sale_id);
	char description[DESCRIPTION_MAX];
	snprintf(description, sizeof description, "%s (%" PRId64 ")", given->pack->name,
	         given->pack->credits);
	struct db_query *query = db_query(
		money->connection,
		"INSERT INTO purchases (account, number, sale_id, pack_id, description, credits, amount,"
		" tax, currency, country, customer, payment_method, provider, automatic, state, created_at,"
		" tax_rate, account_name) VALUES"
		" ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 'pending', $15, $16, $17)");
	db_bind(query, account, *ret_number, ret_sale_id);
	bind_purchase(query, money, given, description);
	return db_execute(query, NULL, error);
}

static int create(struct money *money, struct slice account_id, struct slice pack_id,
                  const char *provider, char sale_id[ID_SIZE], struct error *error)
{
	int64_t account = 0;
	int64_t number;
	struct account_state state;
	struct pack_row pack;
	int result = find_account_number(money->connection, account_id, &account, error)
		?: money_hold(money, account, error)
		?: read_account_state(money->connection, account, &money->arena, &state, error)
		?: read_pack_row(money->connection, pack_id, &money->arena, &pack, error);
	if (!result && state.disabled)
		result = error_set(error, ERR_REFUSED, MSG_STORE_ACCOUNT_DISABLED, NULL);
	if (!result)
		result = refuse_pack(&pack, account, &state.billing, error);
	struct new_purchase given = {&pack, &state, provider, false};
	return result ? result : insert_purchase(money, &given, &number, sale_id, error);
}

int store_create_purchase(struct store *store, struct slice account_id, struct slice pack_id,
                          const char *provider, int64_t now_us, char ret_sale_id[ID_SIZE],
                          struct error *error)
{
	struct money money;
	money_begin(store, now_us, &money, &error);
	char sale_id[ID_SIZE];
	int result = create(&money, account_id, pack_id, provider, sale_id, error);
	if (!result)
		audit_add_created(money.connection, "sale_id", sale_id);
	result = money_end(&money, result, error);
	if (!result)
		memcpy(ret_sale_id, sale_id, ID_SIZE);
	return result;
}

int store_set_payment_url(struct store *store, struct slice sale_id, const char *payment_url,
                          struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query = routing_query_one(
		connection, BY_SALE, sale_id,
		(struct routing_texts){
			"UPDATE purchases SET payment_url = $2 WHERE sale_id = $1",
			"UPDATE purchases SET payment_url = $3 WHERE sale_id = $1 AND account = $2"});
	db_bind_string(query, payment_url);
	return end_write(connection, db_execute(query, NULL, error), error);
}

/* ---- reading ---- */

#define PURCHASES_OF(of_payments)                                                                  \
	"SELECT p.sale_id, a.account_id, p.pack_id, p.description, p.credits,"                         \
	" p.amount, p.tax, p.currency, p.provider, p.automatic, p.state, p.created_at, p.paid_at,"     \
	" p.ended_at, p.reference, p.payment_url, p.customer, p.payment_method,"                       \
	" y.action, y.state, y.outcome, y.last_error, p.country, p.tax_rate, p.account_name"           \
	" FROM purchases p JOIN accounts a ON a.account = p.account"                                   \
	" LEFT JOIN payments y ON y.account = p.account AND y.number ="                                \
	" (SELECT MAX(z.number) FROM payments z WHERE z.account = p.account"                           \
	" AND z.purchase = p.number" of_payments ")"
#define OF_SALE " WHERE p.sale_id = $1"

static const struct member purchase_columns[] =
	COLUMNS_OF(struct purchase_record, sale_id, account_id, pack_id, description, credits,
               amount_minor, tax_minor, currency, provider, automatic, state, created_at_us,
               paid_at_us, ended_at_us, reference, payment_url, customer, payment_method, payment,
               payment_state, payment_outcome, payment_error, country, tax_rate, account_name);

static void complete_purchase(struct row *row, void *to)
{
	struct purchase_record *record = to;
	if (db_is_null(row->query, 23))
		record->tax_rate = -1;
	row_expect(row, currency_parse(db_text(row->query, 7), &record->currency), "currency", 7,
	           record->sale_id);
	row_expect(row, purchase_state_parse(db_text(row->query, 10), &record->state), "state", 10,
	           record->sale_id);
}

static const struct row_type purchase_type =
	ROW_TYPE(struct purchase_record, purchase_columns, complete_purchase);

int store_find_purchase(struct store *store, struct slice sale_id, struct arena *arena,
                        struct purchase_record *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {
		.arena = arena,
		.query = routing_query_one(connection, BY_SALE, sale_id,
	                               (struct routing_texts){PURCHASES_OF("") OF_SALE,
	                                                      PURCHASES_OF(" AND z.account = $2")
	                                                          OF_SALE " AND p.account = $2"})};
	struct purchase_record record;
	int result = end_read(
		connection, row_find(&row, &purchase_type, &record, MSG_STORE_NO_SALE, sale_id, error));
	if (!result)
		*ret = record;
	return result;
}

static int find_sale(struct db_connection *connection, struct slice sale_id, int64_t *ret_account,
                     int64_t *ret_number, int64_t *ret_created_us, struct error *error)
{
	struct row row = {
		.query = routing_query_one(
			connection, BY_SALE, sale_id,
			ROUTING_TEXTS("SELECT account, number, created_at FROM purchases WHERE sale_id = $1",
	                      ""))};
	bool found = db_step(row.query);
	if (found) {
		*ret_account = db_integer(row.query, 0);
		*ret_number = db_integer(row.query, 1);
		*ret_created_us = db_integer(row.query, 2);
	}
	return row_end(&row, found, MSG_STORE_NO_SALE, sale_id, error);
}

struct purchase_filter {
	int64_t account;   /* 0: all */
	const char *state; /* "": any */
	int64_t before_us;
	struct slice before_sale;
};

#define LISTED(of_payments, of)                                                                    \
	PURCHASES_OF(of_payments)                                                                      \
	" WHERE ($1 = 0 OR p.account = $1) AND $2 IN ('', p.state)"                                    \
	" AND (p.created_at < $3 OR (p.created_at = $3 AND p.sale_id < $4))" of                        \
	" ORDER BY p.created_at DESC, p.sale_id DESC LIMIT $5"

static int list_purchases(struct db_connection *connection, const struct purchase_filter *filter,
                          int64_t limit, struct arena *arena, struct purchase_list *list,
                          struct error *error)
{
	const struct slice state = slice_of(filter->state);
	const struct routing_value values[] = {
		{.text = &state}, {.number = filter->before_us}, {.text = &filter->before_sale}};
	SHARD_WORK_AUTO struct work_accounts of = {0};
	int result = routing_find_page(
		connection, filter->account ? filter->account : ROUTING_ALL,
		"SELECT account FROM {purchases} WHERE ? IN ('', state) AND (created_at, sale_id) < (?, ?)"
		" ORDER BY created_at DESC, sale_id DESC",
		values, limit + 1, &of, error);
	if (result)
		return result;
	list->partial = of.partial;
	struct row row = {.arena = arena,
	                  .query =
	                      routing_query(connection, &of, LISTED("", ""),
	                                    LISTED(WORK_ACCOUNTS("z", "$6"),
	                                           WORK_ACCOUNTS("p", "$6") WORK_ACCOUNTS("a", "$6")))};
	db_bind(row.query, filter->account, filter->state, filter->before_us, filter->before_sale,
	        limit + 1);
	shard_work_bind(row.query, &of);
	return row_list(&row, &purchase_type, LIST_OF(list), limit, error);
}

int store_list_purchases(struct store *store, struct slice account_id, int state,
                         struct slice after, int64_t limit, struct arena *arena,
                         struct purchase_list *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	int result = OK;
	struct purchase_filter filter = {
		.state = state < 0 ? "" : purchase_state_text((enum purchase_state)state),
		.before_us = INT64_MAX,
		.before_sale = after,
	};
	int64_t account, number;
	if (account_id.size)
		result = find_account_number(connection, account_id, &filter.account, error);
	if (!result && after.size)
		result = find_sale(connection, after, &account, &number, &filter.before_us, error);
	struct purchase_list list = {0};
	if (!result)
		result = list_purchases(connection, &filter, limit, arena, &list, error);
	result = end_read(connection, result);
	if (!result)
		*ret = list;
	return result;
}

/* ---- steps ---- */

int read_purchase_row(struct money *money, int64_t number, struct purchase_row *ret,
                      struct error *error)
{
	struct row row = {.arena = &money->arena,
	                  .query =
	                      db_query(money->connection,
	                               "SELECT sale_id, pack_id, credits, amount, tax, currency, state,"
	                               " provider, payment_url, reference FROM purchases"
	                               " WHERE account = $1 AND number = $2")};
	db_bind(row.query, money->account.account, number);
	bool found = db_step(row.query);
	if (found) {
		*ret = (struct purchase_row){
			.number = number,
			.credits = db_integer(row.query, 2),
			.amount_minor = db_integer(row.query, 3),
			.tax_minor = db_integer(row.query, 4),
			.provider = row_string(&row, 7),
			.payment_url = row_string(&row, 8),
			.reference = row_string(&row, 9),
		};
		store_copy_id(ret->sale_id, db_text(row.query, 0));
		store_copy_id(ret->pack_id, db_text(row.query, 1));
		row_expect(&row, currency_parse(db_text(row.query, 5), &ret->currency), "currency", 5,
		           ret->sale_id);
		row_expect(&row, purchase_state_parse(db_text(row.query, 6), &ret->state), "state", 6,
		           ret->sale_id);
	}
	return row_end(&row, found, MSG_STORE_NO_SALE, slice_of(""), error);
}

int hold_purchase(struct money *money, struct slice sale_id, struct purchase_row *ret,
                  struct error *error)
{
	int64_t account, number, created_us;
	int result = find_sale(money->connection, sale_id, &account, &number, &created_us, error);
	if (!result)
		result = money_hold(money, account, error);
	return result ? result : read_purchase_row(money, number, ret, error);
}

static int write_step(struct money *money, const struct purchase_row *row, int credits,
                      int64_t entry, struct error *error)
{
	bool paid = row->state == PURCHASE_PAID;
	struct db_query *query = db_query(
		money->connection, "UPDATE purchases SET state = $3,"
						   " paid_at = CASE WHEN $4 = 1 THEN $5 ELSE paid_at END,"
						   " ended_at = CASE WHEN $4 = 1 THEN NULL ELSE $5 END,"
						   " paid_entry = CASE WHEN $6 = 1 THEN $7 ELSE paid_entry END,"
						   " returned_entry = CASE WHEN $6 = -1 THEN $7 ELSE returned_entry END"
						   " WHERE account = $1 AND number = $2");
	db_bind(query, money->account.account, row->number, purchase_state_text(row->state), paid,
	        money->now_us, credits, entry);
	return db_execute(query, NULL, error);
}

static const char *entry_kind(enum purchase_state state)
{
	return state == PURCHASE_PAID ? "purchase" : state == PURCHASE_REFUNDED ? "refund" : "revert";
}

/* Determines the end of a top-up whose purchase has ended. */
static int end_recharge(struct money *money, const struct purchase_row *row,
                        struct purchase_outcome *outcome, struct error *error)
{
	if (row->state == PURCHASE_PAID)
		return topup_complete(money, row, &outcome->recharge, error);
	return topup_fail_purchase(money, row, true, RECHARGE_PAYMENT_FAILED, &outcome->recharge,
	                           error);
}

int step_purchase(struct money *money, struct purchase_row *row, struct purchase_step step,
                  struct purchase_outcome *ret, struct error *error)
{
	struct purchase_outcome outcome = {.changed = row->state != step.to};
	/* Credits come with the payment and go only from what was paid, each time the state changes. */
	assert(step.allowed && step.credits >= -1 && step.credits <= 1);
	assert((step.credits > 0) == (outcome.changed && step.to == PURCHASE_PAID));
	assert((step.credits < 0) == (outcome.changed && row->state == PURCHASE_PAID));
	int64_t entry = 0;
	int result = OK;
	row->state = step.to;
	if (step.credits) {
		money->activity = step.credits > 0;
		result = money_move(money, step.credits * row->credits, entry_kind(step.to), row->sale_id,
		                    &entry, &outcome.settled_events, error);
	}
	if (!result && outcome.changed)
		result = write_step(money, row, step.credits, entry, error);
	/* A rejected order ends its top-up with a reason of its own. */
	if (!result && outcome.changed && step.to != PURCHASE_REJECTED)
		result = end_recharge(money, row, &outcome, error);
	outcome.state = row->state;
	outcome.balance = money->account.balance;
	outcome.unpaid_events = money->account.unpaid_events;
	if (!result)
		*ret = outcome;
	return result;
}

/* ---- changes of state ---- */

static int find_reported_sale(struct db_connection *connection, const struct purchase_order *order,
                              int64_t *ret_account, int64_t *ret_number, struct error *error)
{
	int64_t created_us;
	if (order->sale_id.size)
		return find_sale(connection, order->sale_id, ret_account, ret_number, &created_us, error);
	struct slice reference = slice_of(order->reference ? order->reference : "");
	struct row row = {
		.query = routing_query_one(
			connection, ROUTING_PLACE("purchases", "reference"), reference,
			ROUTING_TEXTS("SELECT account, number FROM purchases WHERE reference = $1", ""))};
	bool found = db_step(row.query);
	if (found) {
		*ret_account = db_integer(row.query, 0);
		*ret_number = db_integer(row.query, 1);
	}
	return row_end(&row, found, MSG_STORE_NO_SALE, reference, error);
}

/* Reads whether the provider is working on a charge; only the provider knows its result. */
static int is_being_charged(struct money *money, const struct purchase_row *row, bool *ret,
                            struct error *error)
{
	struct db_query *query = db_query(
		money->connection, "SELECT COUNT(*) FROM payments WHERE account = $1 AND purchase = $2"
						   " AND state <> 'over' AND provider <> 'manual'");
	db_bind(query, money->account.account, row->number);
	*ret = db_step(query) && db_integer(query, 0) > 0;
	return db_end(query, error);
}

/* Refuses a partial refund, or one in another currency, which cannot be compared. Neither takes
 * back all credits; an operator decides how many. */
static int refuse_part(const struct purchase_order *order, const struct purchase_row *row,
                       struct error *error)
{
	int64_t total_minor = row->amount_minor + row->tax_minor;
	char lost[AMOUNT_TEXT_SIZE], total[AMOUNT_TEXT_SIZE], credits[24];
	bool same_currency = slice_is(order->currency, currency_text(row->currency));
	if (same_currency && order->amount_minor >= total_minor)
		return OK;
	amount_format(order->amount_minor > 0 ? order->amount_minor : 0, lost);
	amount_format(total_minor, total);
	snprintf(credits, sizeof credits, "%" PRId64,
	         same_currency ? amount_credits_lost(row->credits, total_minor, order->amount_minor)
	                       : 0);
	char given[AMOUNT_TEXT_SIZE + 8], whole[AMOUNT_TEXT_SIZE + 8];
	snprintf(given, sizeof given, "%s %.*s", lost, (int)order->currency.size, order->currency.data);
	snprintf(whole, sizeof whole, "%s %s", total, currency_text(row->currency));
	return error_set(error, ERR_REFUSED, MSG_STORE_SALE_PART, row->sale_id, given, whole, credits,
	                 NULL);
}

static int refuse(struct money *money, const struct purchase_order *order,
                  const struct purchase_row *row, struct purchase_step step, struct error *error)
{
	if (!step.allowed)
		return error_set(error, ERR_REFUSED, MSG_STORE_SALE_STATE, row->sale_id,
		                 purchase_state_text(row->state), NULL);
	if (order->reported) {
		if (order->act == PURCHASE_PAY && step.credits > 0 &&
		    (order->amount_minor < row->amount_minor + row->tax_minor ||
		     !slice_is(order->currency, currency_text(row->currency))))
			return error_set(error, ERR_REFUSED, MSG_STORE_SALE_RECEIVED, row->sale_id, NULL);
		bool back = order->act == PURCHASE_REFUND || order->act == PURCHASE_REVERT;
		return back && step.to != row->state ? refuse_part(order, row, error) : OK;
	}
	bool charged = false;
	int result = row->state == step.to ? OK : is_being_charged(money, row, &charged, error);
	if (!result && charged)
		result = error_set(error, ERR_REFUSED, MSG_STORE_SALE_BUSY, row->sale_id, NULL);
	return result;
}

static int keep_reference(struct money *money, const struct purchase_row *row,
                          const char *reference, struct error *error)
{
	if (!reference || !*reference)
		return OK;
	struct db_query *query =
		db_query(money->connection,
	             "UPDATE purchases SET reference = $3 WHERE account = $1 AND number = $2");
	db_bind(query, money->account.account, row->number, reference);
	return db_execute(query, NULL, error);
}

/* When a purchase was paid twice by mistake, a refund of one payment leaves it paid. */
static bool is_of_another_payment(const struct purchase_order *order,
                                  const struct purchase_row *row)
{
	return order->reported && order->act != PURCHASE_PAY && row->reference && order->reference &&
	       strcmp(row->reference, order->reference) != 0;
}

static int act(struct money *money, const struct purchase_order *order,
               struct purchase_outcome *ret, struct error *error)
{
	int64_t account, number;
	struct purchase_row row;
	int result = find_reported_sale(money->connection, order, &account, &number, error)
		?: money_hold(money, account, error)
		?: read_purchase_row(money, number, &row, error);
	if (result)
		return result;
	struct purchase_step step = purchase_step(row.state, order->act, order->reported);
	if (is_of_another_payment(order, &row))
		step = (struct purchase_step){true, row.state, 0};
	result =
		refuse(money, order, &row, step, error) ?: step_purchase(money, &row, step, ret, error);
	/* A later payment of a refunded purchase keeps the reference of the first. */
	if (!result && ret->changed && order->reported)
		result = keep_reference(money, &row, order->reference, error);
	if (!result && row.state != PURCHASE_PENDING)
		result =
			close_payments(money, number, PAYMENT_CHARGE, purchase_state_text(row.state), error);
	if (!result && (row.state == PURCHASE_REFUNDED || row.state == PURCHASE_REVERTED))
		result =
			close_payments(money, number, PAYMENT_GIVE_BACK, purchase_state_text(row.state), error);
	return result;
}

int store_change_purchase(struct store *store, const struct purchase_order *order, int64_t now_us,
                          struct purchase_outcome *ret, struct error *error)
{
	struct money money;
	money_begin(store, now_us, &money, &error);
	struct purchase_outcome outcome;
	int result = act(&money, order, &outcome, error);
	result = money_end(&money, result, error);
	if (!result)
		*ret = outcome;
	return result;
}
