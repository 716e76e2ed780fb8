#include "store/notices/fan_out.h"

#include <stdio.h>

#include "ledger/ledger.h"
#include "store/transaction.h"

int fan_out_open(struct db_connection *connection, int64_t account, int64_t now_us,
                 struct fan_out *ret, struct error *error)
{
	*ret = (struct fan_out){.account = account, .due_us = due_at_once_us(connection, now_us)};
	struct db_query *query =
		db_query(connection, "SELECT endpoint, next_at, types FROM webhook_endpoints"
	                         " WHERE account = $1 AND disabled_at IS NULL AND deleted_at IS NULL"
	                         " ORDER BY endpoint FOR UPDATE");
	db_bind_integer(query, account);
	while (db_step(query) && ret->count < WEBHOOKS_MAX) {
		struct slice types = db_text(query, 2);
		ret->endpoints[ret->count].endpoint = db_integer(query, 0);
		ret->endpoints[ret->count].next_at_us =
			db_is_null(query, 1) ? INT64_MAX : db_integer(query, 1);
		snprintf(ret->endpoints[ret->count].types, WEBHOOK_TYPES_SIZE, "%.*s", (int)types.size,
		         types.data);
		ret->count++;
	}
	return db_end(query, error);
}

static bool wants(const char *types, const char *type)
{
	char listed[64];
	snprintf(listed, sizeof listed, ",%s,", type);
	return *types ? strstr(types, listed) != NULL : !notice_type_is_opt_in(slice_of(type));
}

bool fan_out_is_wanted(const struct fan_out *out, const char *type)
{
	for (size_t i = 0; i < out->count; i++)
		if (wants(out->endpoints[i].types, type))
			return true;
	return false;
}

static int make_due(struct db_connection *connection, const struct fan_out *out, int64_t endpoint,
                    struct error *error)
{
	struct db_query *query = db_query(connection, "UPDATE webhook_endpoints SET next_at = $3"
	                                              " WHERE account = $1 AND endpoint = $2");
	db_bind(query, out->account, endpoint, out->due_us);
	return db_execute(query, NULL, error);
}

int fan_out_notice(struct db_connection *connection, struct fan_out *out, int64_t notice,
                   const char *type, struct error *error)
{
	int result = OK;
	for (size_t i = 0; i < out->count && !result; i++) {
		if (!wants(out->endpoints[i].types, type))
			continue;
		struct db_query *query = db_query(
			connection, "INSERT INTO webhook_deliveries (account, endpoint, notice, status,"
						" attempts, tries, next_attempt_at)"
						" VALUES ($1, $2, $3, 'waiting', 0, 0, $4)");
		db_bind(query, out->account, out->endpoints[i].endpoint, notice, out->due_us);
		result = db_execute(query, NULL, error);
		if (result || out->endpoints[i].next_at_us <= out->due_us)
			continue;
		result = make_due(connection, out, out->endpoints[i].endpoint, error);
		out->endpoints[i].next_at_us = out->due_us;
	}
	return result;
}
