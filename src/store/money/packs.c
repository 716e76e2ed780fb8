#include "store/money/packs.h"

#include "store/money/money.h"
#include "store/shards/shard_routing.h"

#define BY_PACK ROUTING_PLACE("packs", "pack_id")

/* ---- billing ---- */

static void read_billing(struct row *row, int column, struct billing *billing)
{
	struct db_query *query = row->query;
	*billing = (struct billing){
		.country = row_string(row, column),
		.tax_rate = db_integer(query, column + 2),
		.customer = row_string(row, column + 3),
		.payment_method = row_string(row, column + 4),
	};
	billing->own_region = region_parse(db_text(query, column + 1), &billing->region);
	row_expect(row, billing->own_region || db_is_null(query, column + 1), "region", column + 1,
	           "billing");
	if (!billing->own_region && billing->country)
		billing->region = country_region(slice_of(billing->country));
	billing->has_region = billing->own_region || billing->country;
}

int read_account_state(struct db_connection *connection, int64_t account, struct arena *arena,
                       struct account_state *ret, struct error *error)
{
	struct row row = {
		.arena = arena,
		.query = db_query(connection,
	                      "SELECT a.suspended, a.disabled, a.name, b.country, b.region, b.tax_rate,"
	                      " b.customer, b.payment_method FROM accounts a"
	                      " LEFT JOIN account_billing b ON b.account = a.account"
	                      " WHERE a.account = $1")};
	db_bind_integer(row.query, account);
	bool found = db_step(row.query);
	if (found) {
		ret->suspended = db_integer(row.query, 0) != 0;
		ret->disabled = db_integer(row.query, 1) != 0;
		ret->name = row_string(&row, 2);
		read_billing(&row, 3, &ret->billing);
	}
	return row_end(&row, found, MSG_STORE_NO_ACCOUNT, slice_of(""), error);
}

int store_get_billing(struct store *store, struct slice account_id, struct arena *arena,
                      struct billing *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	int64_t account = 0;
	struct account_state state;
	int result = find_account_number(connection, account_id, &account, error);
	if (!result)
		result = read_account_state(connection, account, arena, &state, error);
	if (!result)
		*ret = state.billing;
	return end_read(connection, result);
}

static const char *choose(const char *given, const char *old)
{
	return !given ? old : *given ? given : NULL;
}

static int write_billing(struct db_connection *connection, int64_t account,
                         const struct billing_change *change, struct arena *arena,
                         struct error *error)
{
	struct account_state old;
	int result = read_account_state(connection, account, arena, &old, error);
	if (result)
		return result;
	const struct billing *billing = &old.billing;
	struct db_query *query = db_query(
		connection, "INSERT INTO account_billing (account, country, region, tax_rate, customer,"
					" payment_method) VALUES ($1, $2, $3, $4, $5, $6)"
					" ON CONFLICT (account) DO UPDATE SET country = excluded.country,"
					" region = excluded.region, tax_rate = excluded.tax_rate,"
					" customer = excluded.customer, payment_method = excluded.payment_method");
	db_bind(query, account, choose(change->country, billing->country),
	        choose(change->region, billing->own_region ? region_text(billing->region) : NULL),
	        change->tax_rate < 0 ? billing->tax_rate : change->tax_rate,
	        choose(change->customer, billing->customer),
	        choose(change->payment_method, billing->payment_method));
	return db_execute(query, NULL, error);
}

int store_change_billing(struct store *store, struct slice account_id,
                         const struct billing_change *change, struct error *error)
{
	struct money money;
	money_begin(store, 0, &money, &error);
	int64_t account = 0;
	int result = find_account_number(money.connection, account_id, &account, error);
	if (!result)
		result = write_billing(money.connection, account, change, &money.arena, error);
	return money_end(&money, result, error);
}

/* ---- packs ---- */

int read_pack_row(struct db_connection *connection, struct slice pack_id, struct arena *arena,
                  struct pack_row *ret, struct error *error)
{
	struct row row = {.arena = arena,
	                  .query = routing_query_one(
						  connection, BY_PACK, pack_id,
						  ROUTING_TEXTS("SELECT account, pack_id, name, credits, amount, currency,"
	                                    " withdrawn_at FROM packs WHERE pack_id = $1",
	                                    ""))};
	bool found = db_step(row.query);
	if (found) {
		*ret = (struct pack_row){
			.account = db_integer(row.query, 0),
			.name = row_string(&row, 2),
			.credits = db_integer(row.query, 3),
			.amount_minor = db_integer(row.query, 4),
			.withdrawn = !db_is_null(row.query, 6),
		};
		store_copy_id(ret->pack_id, db_text(row.query, 1));
		row_expect(&row, currency_parse(db_text(row.query, 5), &ret->currency), "currency", 5,
		           ret->pack_id);
	}
	return row_end(&row, found, MSG_STORE_NO_PACK, pack_id, error);
}

static bool has_other_currency(const struct pack_row *pack, const struct billing *billing)
{
	return billing->has_region && region_currency(billing->region) != pack->currency;
}

bool pack_is_sold_to(const struct pack_row *pack, int64_t account, const struct billing *billing)
{
	return !pack->withdrawn && (pack->account == 0 || pack->account == account) &&
	       !has_other_currency(pack, billing);
}

int refuse_pack(const struct pack_row *pack, int64_t account, const struct billing *billing,
                struct error *error)
{
	if (pack->withdrawn)
		return error_set(error, ERR_REFUSED, MSG_STORE_PACK_WITHDRAWN, pack->pack_id, NULL);
	if (pack->account != 0 && pack->account != account)
		return error_set(error, ERR_REFUSED, MSG_STORE_PACK_OF_ANOTHER, pack->pack_id, NULL);
	if (has_other_currency(pack, billing))
		return error_set(error, ERR_REFUSED, MSG_STORE_PACK_CURRENCY, pack->pack_id,
		                 currency_text(pack->currency),
		                 currency_text(region_currency(billing->region)), NULL);
	return OK;
}

static int insert_pack(struct db_connection *connection, const struct pack_record *given,
                       int64_t account, const char *pack_id, int64_t now_us, struct error *error)
{
	struct db_query *query = db_query(
		connection, "INSERT INTO packs (account, number, pack_id, name, credits, amount, currency,"
					" created_at) SELECT $1, COALESCE(MAX(number), 0) + 1, $2, $3, $4, $5, $6, $7"
					" FROM packs WHERE account = $1");
	db_bind(query, account, pack_id, given->name, given->credits, given->amount_minor,
	        currency_text(given->currency), now_us);
	return db_execute(query, NULL, error);
}

static int check_custom(struct money *money, const struct pack_record *given, const char *pack_id,
                        int64_t *ret_account, struct error *error)
{
	struct account_state state;
	int result =
		find_account_number(money->connection, slice_of(given->account_id), ret_account, error);
	if (!result)
		result = read_account_state(money->connection, *ret_account, &money->arena, &state, error);
	if (result)
		return result;
	struct pack_row pack = {.account = *ret_account, .currency = given->currency};
	memcpy(pack.pack_id, pack_id, ID_SIZE);
	return refuse_pack(&pack, *ret_account, &state.billing, error);
}

int store_create_pack(struct store *store, const struct pack_record *given, int64_t now_us,
                      char ret_pack_id[ID_SIZE], struct error *error)
{
	char pack_id[ID_SIZE];
	store_fresh_id("pck_", pack_id);
	struct money money;
	money_begin(store, now_us, &money, &error);
	int result = OK;
	int64_t account = 0;
	if (*given->account_id)
		result = check_custom(&money, given, pack_id, &account, error);
	if (!result)
		result = insert_pack(money.connection, given, account, pack_id, now_us, error);
	audit_add_created(money.connection, "pack_id", pack_id);
	result = money_end(&money, result, error);
	if (!result)
		memcpy(ret_pack_id, pack_id, ID_SIZE);
	return result;
}

#define PACKS_OF(of_accounts)                                                                      \
	"SELECT p.pack_id, COALESCE(a.account_id, ''), p.name, p.credits, p.amount, p.currency,"       \
	" p.created_at, p.withdrawn_at"                                                                \
	" FROM packs p LEFT JOIN accounts a ON a.account = p.account" of_accounts
#define PACK_COLUMNS PACKS_OF("")

static const struct member pack_columns[] =
	COLUMNS_OF(struct pack_record, pack_id, account_id, name, credits, amount_minor, currency,
               created_at_us, withdrawn_at_us);

static void complete_pack(struct row *row, void *to)
{
	struct pack_record *record = to;
	row_expect(row, currency_parse(db_text(row->query, 5), &record->currency), "currency", 5,
	           record->pack_id);
}

static const struct row_type pack_type = ROW_TYPE(struct pack_record, pack_columns, complete_pack);

int store_find_pack(struct store *store, struct slice pack_id, struct arena *arena,
                    struct pack_record *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {
		.arena = arena,
		.query = routing_query_one(connection, BY_PACK, pack_id,
	                               ROUTING_TEXTS(PACK_COLUMNS " WHERE p.pack_id = $1", "p."))};
	struct pack_record record;
	int result = end_read(connection,
	                      row_find(&row, &pack_type, &record, MSG_STORE_NO_PACK, pack_id, error));
	if (!result)
		*ret = record;
	return result;
}

/* Start of a page, and the packs that it lists. */
struct pack_filter {
	int64_t after_account;
	int64_t after_number;
	int64_t account;      /* 0: all packs */
	const char *currency; /* "": any */
};

static int find_place(struct db_connection *connection, struct slice after,
                      struct pack_filter *filter, struct error *error)
{
	struct row row = {
		.query = routing_query_one(
			connection, BY_PACK, after,
			ROUTING_TEXTS("SELECT account, number FROM packs WHERE pack_id = $1", ""))};
	bool found = db_step(row.query);
	if (found) {
		filter->after_account = db_integer(row.query, 0);
		filter->after_number = db_integer(row.query, 1);
	}
	return row_end(&row, found, MSG_STORE_NO_PACK, after, error);
}

static int make_filter(struct db_connection *connection, struct slice account_id,
                       struct slice after, struct arena *arena, struct pack_filter *filter,
                       struct error *error)
{
	*filter = (struct pack_filter){.after_account = -1, .currency = ""};
	int result = after.size ? find_place(connection, after, filter, error) : OK;
	if (result || !account_id.size)
		return result;
	struct account_state state;
	result = find_account_number(connection, account_id, &filter->account, error);
	if (!result)
		result = read_account_state(connection, filter->account, arena, &state, error);
	if (!result && state.billing.has_region)
		filter->currency = currency_text(region_currency(state.billing.region));
	return result;
}

#define LISTED(of_accounts, of)                                                                    \
	PACKS_OF(of_accounts)                                                                          \
	" WHERE (p.account, p.number) > ($1, $2) AND ($3 = 0 OR (p.account IN (0, $3)"                 \
	" AND p.withdrawn_at IS NULL AND $4 IN ('', p.currency)))" of                                  \
	" ORDER BY p.account, p.number LIMIT $5"

/* The packs of an account include those on sale to all accounts. */
static int list_packs(struct db_connection *connection, const struct pack_filter *filter,
                      int64_t limit, struct arena *arena, struct pack_list *list,
                      struct error *error)
{
	const struct routing_value values[] = {{.number = filter->after_account},
	                                       {.number = filter->after_number}};
	SHARD_WORK_AUTO struct work_accounts of = {0};
	int result = routing_find_page(
		connection, filter->account ? filter->account : ROUTING_ALL,
		"SELECT account FROM {packs} WHERE (account, number) > (?, ?) ORDER BY account, number",
		values, limit + 1, &of, error);
	if (result)
		return result;
	if (filter->account && !of.all)
		db_array_add_integer(&of.accounts, 0);
	list->partial = of.partial;
	struct row row = {
		.arena = arena,
		.query = routing_query(connection, &of, LISTED("", ""),
	                           LISTED(WORK_ACCOUNTS("a", "$6"), WORK_ACCOUNTS("p", "$6")))};
	db_bind(row.query, filter->after_account, filter->after_number, filter->account,
	        filter->currency, limit + 1);
	shard_work_bind(row.query, &of);
	return row_list(&row, &pack_type, LIST_OF(list), limit, error);
}

int store_list_packs(struct store *store, struct slice account_id, struct slice after,
                     int64_t limit, struct arena *arena, struct pack_list *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct pack_filter filter;
	struct pack_list list = {0};
	int result = make_filter(connection, account_id, after, arena, &filter, error);
	if (!result)
		result = list_packs(connection, &filter, limit, arena, &list, error);
	result = end_read(connection, result);
	if (!result)
		*ret = list;
	return result;
}

/* ---- withdrawal from sale ---- */

static int write_withdrawn(struct money *money, const struct pack_row *pack, bool withdrawn,
                           struct error *error)
{
	if (pack->withdrawn == withdrawn)
		return OK;
	struct db_query *query =
		db_query(money->connection,
	             "UPDATE packs SET withdrawn_at = $3 WHERE account = $1 AND pack_id = $2");
	db_bind(query, pack->account, pack->pack_id, db_value_if(withdrawn, money->now_us));
	return db_execute(query, NULL, error);
}

int store_withdraw_pack(struct store *store, struct slice pack_id, bool withdrawn, int64_t now_us,
                        int64_t *ret_turned_off, struct error *error)
{
	struct money money;
	money_begin(store, now_us, &money, &error);
	struct pack_row pack;
	bool off = false;
	int result = read_pack_row(money.connection, pack_id, &money.arena, &pack, error);
	if (!result && pack.account)
		result = money_hold(&money, pack.account, error);
	if (!result)
		result = write_withdrawn(&money, &pack, withdrawn, error);
	if (!result && pack.account && withdrawn)
		result = topup_lose_pack(&money, pack.pack_id, &off, error);
	result = money_end(&money, result, error);
	if (!result)
		*ret_turned_off = off;
	return result;
}
