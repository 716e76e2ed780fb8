#include "store/people/authorization.h"

#include "store/transaction.h"

int authorization_check(struct db_connection *connection,
                        const struct audit_authorization *authorization, struct error *error)
{
	bool lacks = false, has_one = false;
	int64_t account = 0;
	int result =
		find_account_number(connection, slice_of(authorization->account_id), &account, error);
	if (result)
		return result == ERR_NOT_FOUND ? error_set(error, ERR_FORBIDDEN, MSG_NONE, NULL) : result;
	struct row row = {
		.query =
			db_query(connection, "SELECT a.passkeys_required, s.by_passkey, (SELECT COUNT(*)"
	                             " FROM passkeys p JOIN sessions o ON o.user_id = p.user_id"
	                             " WHERE o.session_id = $1)"
	                             " FROM sessions s JOIN memberships m ON m.user_id = s.user_id"
	                             " JOIN accounts a ON a.account = m.account WHERE s.session_id = $1"
	                             " AND s.ended_at IS NULL AND a.account = $2 AND m.role = $3")};
	db_bind(row.query, authorization->session_id, account, authorization->role);
	bool found = db_step(row.query);
	if (found) {
		lacks = db_integer(row.query, 0) && !db_integer(row.query, 1);
		has_one = db_integer(row.query, 2) > 0;
	}
	result = row_result(&row, found, error);
	if (result == ERR_NOT_FOUND)
		return error_set(error, ERR_FORBIDDEN, MSG_NONE, NULL);
	bool may_lack = authorization->passkey == PASSKEY_NOT_REQUIRED ||
	                (authorization->passkey == PASSKEY_IF_ANY && !has_one);
	if (!result && lacks && !may_lack)
		return error_set(error, ERR_PASSKEY, MSG_NONE, NULL);
	return result;
}
