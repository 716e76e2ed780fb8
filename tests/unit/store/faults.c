#include "faults.h"

#include <stddef.h>
#include <stdint.h>

#include "db/db.h"

static enum fault kind;
static int countdown;
static bool happened;

int __real_db_execute(struct db_query *query, int64_t *ret_changes, struct error *error);
int __wrap_db_execute(struct db_query *query, int64_t *ret_changes, struct error *error);
int __real_db_commit(struct db_connection *connection, struct error *error);
int __wrap_db_commit(struct db_connection *connection, struct error *error);

void fault_set(enum fault fault, int at)
{
	kind = fault;
	countdown = at;
	happened = false;
}

bool fault_take(void)
{
	bool was = happened;
	fault_set(FAULT_NONE, 0);
	return was;
}

static bool is_due(enum fault wanted)
{
	if (kind != wanted || happened || --countdown > 0)
		return false;
	happened = true;
	return true;
}

int __wrap_db_execute(struct db_query *query, int64_t *ret_changes, struct error *error)
{
	if (is_due(FAULT_STATEMENT))
		return error_cause(error, ERR_UNAVAILABLE, "a fault of the test");
	return __real_db_execute(query, ret_changes, error);
}

int __wrap_db_commit(struct db_connection *connection, struct error *error)
{
	if (is_due(FAULT_COMMIT)) {
		db_rollback(connection);
		return error_cause(error, ERR_UNAVAILABLE, "a fault of the test");
	}
	int result = __real_db_commit(connection, error);
	if (result == OK && is_due(FAULT_COMMIT_ANSWER))
		return error_cause(error, ERR_UNKNOWN_OUTCOME, "a fault of the test");
	return result;
}
