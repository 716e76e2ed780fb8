#include "store/people/ownership.h"

#include "store/transaction.h"

/* $1: the object, $2: the account; with several servers, the account's number. */
#define HELD_BY(table, condition)                                                                  \
	"SELECT 1 FROM " table " t JOIN accounts a ON a.account = t.account WHERE " condition          \
	" AND a.account_id = $2",                                                                      \
		"SELECT 1 FROM " table " t WHERE " condition " AND t.account = $2"
#define HELD(table, column) HELD_BY(table, "t." column " = $1")

static const struct {
	const char *kind;
	enum message message;
	const char *sql, *on_shard;
} holders[] = {
	{"channel", MSG_STORE_NO_CHANNEL, HELD("channels", "channel_id")},
	{"key", MSG_STORE_NO_KEY, HELD("api_keys", "key_id")},
	{"limit", MSG_STORE_NO_LIMIT, HELD("consumption_limits", "limit_id")},
	{"threshold", MSG_STORE_NO_THRESHOLD, HELD("balance_thresholds", "threshold_id")},
	{"endpoint", MSG_STORE_NO_WEBHOOK, HELD("webhook_endpoints", "endpoint_id")},
	{"notice", MSG_STORE_NO_NOTICE, HELD("notices", "notice_id")},
	{"sale", MSG_STORE_NO_SALE, HELD("purchases", "sale_id")},
	{"certification", MSG_STORE_NO_CERTIFICATION, HELD("certifications", "certification_id")},
	{"segment", MSG_STORE_NO_SEGMENT, HELD("segments", "segment_id")},
	/* The identifier of an event contains that of its channel after the prefix. */
	{"event", MSG_STORE_NO_EVENT,
     HELD_BY("channels", "t.channel_id = 'chn_' || substr(CAST($1 AS TEXT), 5, 16)")},
	{"act", MSG_STORE_NO_AUDIT_RECORD, HELD("acts", "act_id")},
	{"pack", MSG_STORE_NO_PACK,
     "SELECT 1 FROM packs t JOIN accounts a ON a.account = t.account WHERE t.pack_id = $1"
     " AND a.account_id = $2 UNION ALL SELECT 1 FROM packs WHERE pack_id = $1 AND account = 0",
     "SELECT 1 FROM packs t WHERE t.pack_id = $1 AND t.account = $2 UNION ALL"
     " SELECT 1 FROM packs WHERE pack_id = $1 AND account = 0"},
};
#define HOLDERS (sizeof holders / sizeof *holders)

const char *store_ownership_kind(size_t index)
{
	return index < HOLDERS ? holders[index].kind : NULL;
}

int store_check_ownership(struct store *store, const char *kind, struct slice id,
                          struct slice account_id, struct error *error)
{
	size_t at = 0;
	while (at < HOLDERS && strcmp(holders[at].kind, kind) != 0)
		at++;
	if (at == HOLDERS)
		return error_cause(error, ERR_INTERNAL, "unknown kind of object: %s", kind);
	struct db_connection *connection = begin_read(store, &error);
	int result = OK;
	int64_t account = 0;
	bool sharded = db_is_sharded(store->db);
	if (sharded)
		result = find_account_number(connection, account_id, &account, error);
	if (result)
		return end_read(connection, result);
	struct row row = {.query =
	                      db_query(connection, sharded ? holders[at].on_shard : holders[at].sql)};
	db_bind_text(row.query, id);
	if (sharded)
		db_bind_integer(row.query, account);
	else
		db_bind_text(row.query, account_id);
	bool found = db_step(row.query);
	return end_read(connection, row_end(&row, found, holders[at].message, id, error));
}
