/* Reading of the audit log: single records and lists. */
#include "base/tuned.h"
#include "store/audit/audit_log.h"
#include "store/events/segments.h"
#include "store/shards/shard_routing.h"
#include "store/transaction.h"

#define PAGE_BYTES ((size_t)4 << 20)
#define BY_ACT_ID ROUTING_PLACE("acts", "act_id")

/* Position of a record in the list order. */
struct place {
	int64_t at_us, account, number;
};

static int find_place(struct db_connection *connection, struct slice act_id, struct place *ret,
                      struct error *error)
{
	struct row row = {
		.query = routing_query_one(
			connection, BY_ACT_ID, act_id,
			ROUTING_TEXTS("SELECT at, account, number FROM acts WHERE act_id = $1", ""))};
	bool found = db_step(row.query);
	if (found)
		*ret = (struct place){db_integer(row.query, 0), db_integer(row.query, 1),
		                      db_integer(row.query, 2)};
	return row_end(&row, found, MSG_STORE_NO_AUDIT_RECORD, act_id, error);
}

/* Audit records with their segment and its round. */
#define SEALED(of, acts)                                                                           \
	"SELECT t.act_id, t.document, t.chain_hash, t.account, t.number, s.segment_id, r.sealed_at,"   \
	" r.authority, r.kind, r.round FROM (" acts ") t"                                              \
	" LEFT JOIN segments s ON s.account = t.account"                                               \
	" AND s.chain = CASE WHEN t.number > 0 THEN -2 ELSE -4 END AND s.number ="                     \
	" (SELECT m.number FROM segments m WHERE m.account = t.account"                                \
	" AND m.chain = CASE WHEN t.number > 0 THEN -2 ELSE -4 END AND m.first_sequence <="            \
	" ABS(t.number)" of                                                                            \
	" ORDER BY m.first_sequence DESC LIMIT 1) AND s.last_sequence >= ABS(t.number)"                \
	" LEFT JOIN seal_rounds r ON r.round = s.round"
_Static_assert(AUDIT_CHAIN + 2 == 0 && URGENT_AUDIT_CHAIN + 4 == 0, "as in SEALED");

#define COLUMNS "SELECT act_id, document, chain_hash, account, number, at FROM acts"
#define WANTED                                                                                     \
	COLUMNS " WHERE ($1 < 0 OR account = $1)"                                                      \
			" AND at >= $2 AND at < $3 AND (CAST($4 AS TEXT) = '' OR operation = $4)"

#define BEHIND " AND (at, account, number) > ($5, $6, $7)"
#define BEFORE " AND (at, account, number) < ($5, $6, $7)"
#define INNER_FORWARD " ORDER BY at, account, number"
#define INNER_BACKWARD " ORDER BY at DESC, account DESC, number DESC"
#define FORWARD " ORDER BY t.at, t.account, t.number"
#define BACKWARD " ORDER BY t.at DESC, t.account DESC, t.number DESC"

#define OF_SHARDS(place) SEALED(WORK_ACCOUNTS("m", "$9"), WANTED place " AND account = ANY($9)")
#define PAGE(behind, order)                                                                        \
	"SELECT account FROM {acts} WHERE at >= ? AND at < ? AND ? IN ('', operation)"                 \
	" AND (at, account, number) " behind " (?, ?, ?) ORDER BY " order

/* Limits the records before their segments are looked up; with shards both are one step. */
static struct db_query *ask(struct db_connection *connection, const struct audit_filter *filter,
                            int64_t account, const struct place *place, struct work_accounts *of)
{
	bool ascending = filter->order == ORDER_ASCENDING;
	struct db_query *query;
	if (!of->all)
		query = ascending ? db_query(connection, OF_SHARDS(BEHIND) FORWARD " LIMIT $8")
		                  : db_query(connection, OF_SHARDS(BEFORE) BACKWARD " LIMIT $8");
	else if (db_is_sharded(db_of(connection)))
		query = ascending ? db_query(connection, SEALED("", WANTED BEHIND) FORWARD " LIMIT $8")
		                  : db_query(connection, SEALED("", WANTED BEFORE) BACKWARD " LIMIT $8");
	else
		query = ascending ? db_query(connection,
		                             SEALED("", WANTED BEHIND INNER_FORWARD " LIMIT $8") FORWARD)
		                  : db_query(connection,
		                             SEALED("", WANTED BEFORE INNER_BACKWARD " LIMIT $8") BACKWARD);
	db_bind(query, account, filter->since_us == TIME_NONE ? 0 : filter->since_us,
	        filter->until_us == TIME_NONE ? INT64_MAX : filter->until_us,
	        filter->operation.data ? filter->operation : slice_of(""), place->at_us, place->account,
	        place->number, filter->limit + 1);
	shard_work_bind(query, of);
	return query;
}

static int find_accounts(struct db_connection *connection, const struct audit_filter *filter,
                         int64_t account, const struct place *place, struct work_accounts *ret,
                         struct error *error)
{
	const struct slice operation = filter->operation.data ? filter->operation : slice_of("");
	const struct routing_value values[] = {
		{.number = filter->since_us == TIME_NONE ? 0 : filter->since_us},
		{.number = filter->until_us == TIME_NONE ? INT64_MAX : filter->until_us},
		{.text = &operation},
		{.number = place->at_us},
		{.number = place->account},
		{.number = place->number}};
	bool ascending = filter->order == ORDER_ASCENDING;
	return routing_find_page(connection, account,
	                         ascending ? PAGE(">", "at, account, number")
	                                   : PAGE("<", "at DESC, account DESC, number DESC"),
	                         values, filter->limit + 1, ret, error);
}

static void read_record(struct row *row, struct audit_record *ret)
{
	struct db_query *query = row->query;
	size_t size = db_text(query, 1).size;
	const char *document = row_string(row, 1);
	int64_t number = db_integer(query, 4);
	*ret = (struct audit_record){
		.account = db_integer(query, 3),
		.chain = number > 0 ? AUDIT_CHAIN : URGENT_AUDIT_CHAIN,
		.number = number > 0 ? number : -number,
		.document = slice_make(document ? document : "", document ? size : 0),
		.chain_hash = store_sha256(db_blob(query, 2)),
	};
	store_copy_id(ret->act_id, db_text(query, 0));
	if (db_is_null(query, 6))
		return; /* staged for a round that is not written yet */
	store_copy_id(ret->segment_id, db_text(query, 5));
	ret->sealed_at_us = db_integer(query, 6);
	ret->authority = row_string(row, 7);
	ret->kind = row_string(row, 8);
	ret->round = db_integer(query, 9);
}

int store_get_audit_record(struct store *store, struct slice act_id, struct arena *arena,
                           struct audit_record *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {.arena = arena,
	                  .query = routing_query_one(
						  connection, BY_ACT_ID, act_id,
						  (struct routing_texts){SEALED("", COLUMNS " WHERE act_id = $1"),
	                                             SEALED(" AND m.account = $2", COLUMNS
	                                                    " WHERE act_id = $1 AND account = $2")})};
	bool found = db_step(row.query);
	struct audit_record record = {0};
	if (found)
		read_record(&row, &record);
	int result =
		end_read(connection, row_end(&row, found, MSG_STORE_NO_AUDIT_RECORD, act_id, error));
	if (!result)
		*ret = record;
	return result;
}

static int read_page(struct db_connection *connection, const struct audit_filter *filter,
                     int64_t account, const struct place *place, struct arena *arena,
                     struct audit_record_list *ret, struct error *error)
{
	SHARD_WORK_AUTO struct work_accounts of = {0};
	int result = find_accounts(connection, filter, account, place, &of, error);
	if (result)
		return result;
	ret->partial = of.partial;
	struct row row = {.arena = arena, .query = ask(connection, filter, account, place, &of)};
	struct audit_record *item;
	const size_t bytes_max = (size_t)tuned_up_to("audit_page", PAGE_BYTES);
	size_t bytes = 0;
	while (!row.failed && db_step(row.query)) {
		size_t size = db_text(row.query, 1).size;
		if (ret->count && bytes + size > bytes_max) {
			ret->more = true;
			break;
		}
		bytes += size;
		item = list_add(&row, &ret->items, &ret->count, &ret->more, filter->limit, sizeof *item);
		if (!item)
			break;
		read_record(&row, item);
	}
	return row_end(&row, true, MSG_NONE, slice_of(""), error);
}

int store_list_audit_records(struct store *store, const struct audit_filter *filter,
                             struct arena *arena, struct audit_record_list *ret,
                             struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	int result = OK;
	int64_t account = filter->installation ? 0 : -1;
	struct place place = {-1, -1, -1};
	if (filter->order == ORDER_DESCENDING)
		place = (struct place){INT64_MAX, INT64_MAX, INT64_MAX};
	struct audit_record_list list = {0};
	if (filter->account_id.size)
		result = find_account_number(connection, filter->account_id, &account, error);
	if (!result && filter->after.size)
		result = find_place(connection, filter->after, &place, error);
	if (!result)
		result = read_page(connection, filter, account, &place, arena, &list, error);
	result = end_read(connection, result);
	if (!result)
		*ret = list;
	return result;
}
