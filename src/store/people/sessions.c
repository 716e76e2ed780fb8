/* Sessions of users: start, lookup, use, end. */
#include <stdio.h>

#include "base/digest.h"
#include "ledger/bounds.h"
#include "store/people/console_users.h"
#include "store/people/session_start.h"
#include "store/shards/shard_routing.h"
#include "store/transaction.h"

/* ---- beginning ---- */

/* Chooses the account of the former session if that belongs to the same user, else the user's first
 * account. */
static int choose_first(struct db_connection *connection, const char *user_id,
                        const struct sha256 *former, int64_t *ret_account, struct error *error)
{
	static const struct sha256 nothing;
	struct row row = {
		.query =
			db_query(connection, "SELECT m.account FROM memberships m WHERE m.user_id = $1"
	                             " ORDER BY CASE WHEN m.account = (SELECT s.account FROM sessions s"
	                             " WHERE s.digest = $2 AND s.user_id = $1) THEN 0 ELSE 1 END,"
	                             " m.made_at, m.account LIMIT 1")};
	db_bind(row.query, user_id, former ? former : &nothing);
	bool found = db_step(row.query);
	if (found)
		*ret_account = db_integer(row.query, 0);
	return row_result(&row, found, error);
}

static int end_by_digest(struct db_connection *connection, const struct sha256 *cookie,
                         int64_t now_us, int64_t *ret_ended, struct error *error)
{
	struct db_query *query = db_query(
		connection, "UPDATE sessions SET ended_at = $2 WHERE digest = $1 AND ended_at IS NULL");
	db_bind(query, cookie, now_us);
	return db_execute(query, ret_ended, error);
}

/* The commit of a sign-in waits for a standby, so its audit record is not an urgent one. */
static int end_former(struct db_connection *connection, const struct session_start *start,
                      struct error *error)
{
	int64_t ended = 0;
	if (!start->former)
		return OK;
	int result = end_by_digest(connection, start->former, start->now_us, &ended, error);
	const struct session_audit act = {.operation = "sign out",
	                                  .cookie = start->former,
	                                  .address = start->address,
	                                  .node = start->node,
	                                  .is_secondary = true};
	return result || !ended ? result : session_audit_write(connection, &act, error);
}

/* Distinguishes the user's own requests for links from those of strangers from now on. */
static int record_browser(struct db_connection *connection, const char *user_id,
                          const struct session_start *start, struct error *error)
{
	if (!start->known)
		return OK;
	struct db_query *query =
		db_query(connection, "INSERT INTO known_browsers AS k (digest, user_id, seen_at, network)"
	                         " VALUES ($1, $2, $3, $4) ON CONFLICT (digest, user_id)"
	                         " DO UPDATE SET seen_at = excluded.seen_at,"
	                         " network = excluded.network");
	db_bind(query, start->known, user_id, start->now_us, start->network);
	return db_execute(query, NULL, error);
}

/* Each sign-in leaves rows in the audit log, and counts for the account's limit of changes. */
static int check_sign_ins(struct db_connection *connection, const char *user_id, const char *by,
                          int64_t now_us, struct error *error)
{
	if (strcmp(by, BY_OPERATOR_LINK) == 0)
		return OK;
	struct db_query *query = db_query(connection, "SELECT made_at FROM sessions WHERE user_id = $1"
	                                              " ORDER BY made_at DESC LIMIT 1 OFFSET $2");
	db_bind_string(query, user_id);
	db_bind_integer(query, SIGN_INS_PER_DAY - 1);
	int64_t former_us = db_step(query) ? db_integer(query, 0) : TIME_NONE;
	int result = db_end(query, error);
	if (result || day_has_room(now_us, former_us))
		return result;
	char most[24];
	snprintf(most, sizeof most, "%d", SIGN_INS_PER_DAY);
	return error_set(error, ERR_FULL, MSG_STORE_SIGN_INS_DAY, most, NULL);
}

int session_begin(struct db_connection *connection, const char *user_id, const char *by,
                  bool by_passkey, const struct session_start *start, struct error *error)
{
	int64_t account = 0;
	char session_id[ID_SIZE];
	store_fresh_id("ses_", session_id);
	int result = check_sign_ins(connection, user_id, by, start->now_us, error)
		?: choose_first(connection, user_id, start->former, &account, error)
		?: end_former(connection, start, error)
		?: record_browser(connection, user_id, start, error);
	if (result)
		return result;
	struct db_query *query = db_query(
		connection, "INSERT INTO sessions (digest, session_id, user_id, account, made_at, seen_at,"
					" signed_in_at, by_passkey, address, agent, signed_in_by)"
					" VALUES ($1, $2, $3, $4, $5, $5, $5, $6, $7, $8, $9)");
	db_bind(query, &start->cookie, session_id, user_id, account, start->now_us, by_passkey,
	        start->address, start->agent, by);
	result = db_execute(query, NULL, error);
	const struct session_audit act = {.operation = "sign in",
	                                  .cookie = &start->cookie,
	                                  .address = start->address,
	                                  .node = start->node};
	return result ? result : session_audit_write(connection, &act, error);
}

/* Of two concurrent uses of a link, the second finds it used. */
static int use_link(struct db_connection *connection, const struct sha256 *link,
                    const struct sha256 *browser, int64_t now_us, char user_id[ID_SIZE],
                    bool *ret_operators, struct error *error)
{
	char asked[ID_SIZE] = "";
	struct row row = {.query = db_query(connection,
	                                    "UPDATE sign_in_links SET used_at = $3 WHERE digest = $1"
	                                    " AND used_at IS NULL AND expires_at > $3"
	                                    " AND (browser IS NULL OR browser = $2)"
	                                    " RETURNING user_id, asked, browser")};
	db_bind(row.query, link, browser, now_us);
	bool found = db_step(row.query);
	if (found) {
		store_copy_id(user_id, db_text(row.query, 0));
		store_copy_id(asked, db_text(row.query, 1));
		*ret_operators = db_is_null(row.query, 2);
	}
	int result = row_result(&row, found, error);
	if (result)
		return result;
	struct db_query *query =
		db_query(connection, "UPDATE sign_in_links SET used_at = $3 WHERE user_id = $1"
	                         " AND asked = $2 AND used_at IS NULL");
	db_bind(query, user_id, asked, now_us);
	return db_execute(query, NULL, error);
}

int store_take_link(struct store *store, const struct sha256 *link, const struct sha256 *browser,
                    const struct session_start *start, struct error *error)
{
	char user_id[ID_SIZE];
	bool operators = false;
	struct db_connection *connection = begin_write(store, &error);
	int result = use_link(connection, link, browser, start->now_us, user_id, &operators, error);
	if (!result)
		result = session_begin(connection, user_id, operators ? BY_OPERATOR_LINK : BY_LINK, false,
		                       start, error);
	return end_write(connection, result, error);
}

/* ---- reading ---- */

static int read_session(struct db_connection *connection, const struct sha256 *cookie,
                        int64_t made_after_us, int64_t seen_after_us, struct arena *arena,
                        struct session_view *ret, int64_t *ret_account, struct error *error)
{
	struct row row = {
		.arena = arena,
		.query = db_query(connection,
	                      "SELECT s.session_id, s.user_id, u.email, u.language, s.account,"
	                      " s.made_at, s.seen_at, s.signed_in_at, s.by_passkey,"
	                      " (SELECT COUNT(*) FROM passkeys p WHERE p.user_id = s.user_id),"
	                      " s.signed_in_by FROM sessions s JOIN users u ON u.user_id = s.user_id"
	                      " WHERE s.digest = $1 AND s.ended_at IS NULL"
	                      " AND s.made_at > $2 AND s.seen_at > $3")};
	db_bind(row.query, cookie, made_after_us, seen_after_us);
	bool found = db_step(row.query);
	if (found) {
		*ret = (struct session_view){
			.email = row_string(&row, 2),
			.language = slice_is(db_text(row.query, 3), "es") ? LANGUAGE_SPANISH : LANGUAGE_ENGLISH,
			.made_at_us = db_integer(row.query, 5),
			.seen_at_us = db_integer(row.query, 6),
			.signed_in_at_us = db_integer(row.query, 7),
			.by_passkey = db_integer(row.query, 8) != 0,
			.passkeys = db_integer(row.query, 9),
			.signed_in_by = row_string(&row, 10),
		};
		store_copy_id(ret->session_id, db_text(row.query, 0));
		store_copy_id(ret->user_id, db_text(row.query, 1));
		*ret_account = db_integer(row.query, 4);
	}
	return row_result(&row, found, error);
}

#define MEMBERSHIPS(of)                                                                            \
	"SELECT a.account_id, a.name, m.role, a.passkeys_required, a.account, m.taken_up, b.email,"    \
	" m.seen_at FROM memberships m JOIN accounts a ON a.account = m.account"                       \
	" LEFT JOIN users b ON b.user_id = m.made_by"                                                  \
	" WHERE m.user_id = $1" of " ORDER BY a.name, a.account"

/* The accounts are known before they are read, so no other shard is asked. Accounts on an
 * unavailable server are left out. */
static int read_memberships(struct db_connection *connection, int64_t chosen, struct arena *arena,
                            struct session_view *session, struct error *error)
{
	SHARD_WORK_AUTO struct work_accounts of = {0};
	int result = routing_of_user(connection, session->user_id, &of, error);
	session->partial = of.partial;
	if (result)
		return result;
	struct row row = {.arena = arena,
	                  .query = routing_query(connection, &of, MEMBERSHIPS(""),
	                                         MEMBERSHIPS(WORK_ACCOUNTS("a", "$2")))};
	db_bind_string(row.query, session->user_id);
	shard_work_bind(row.query, &of);
	struct membership *item;
	bool more = false;
	while (!row.failed && db_step(row.query) &&
	       (item = list_add(&row, &session->memberships, &session->membership_count, &more,
	                        ACCOUNTS_OF_USER_MAX + 1, sizeof *item))) {
		item->account_name = row_string(&row, 1);
		item->passkeys_required = db_integer(row.query, 3) != 0;
		item->taken_up = db_integer(row.query, 5) != 0;
		item->made_by = row_string(&row, 6);
		item->seen_at_us = row_time(row.query, 7);
		store_copy_id(item->account_id, db_text(row.query, 0));
		row_expect(&row, role_parse(db_text(row.query, 2), &item->role), "role", 2,
		           session->user_id);
		if (!session->chosen || db_integer(row.query, 4) == chosen)
			session->chosen = item;
	}
	result = row_result(&row, session->membership_count > 0, error);
	return result == ERR_NOT_FOUND && of.partial
	           ? error_cause(error, ERR_UNAVAILABLE,
	                         "the server with the user's accounts is unavailable")
	           : result;
}

int store_find_session(struct store *store, const struct sha256 *cookie, int64_t made_after_us,
                       int64_t seen_after_us, struct arena *arena, struct session_view *ret,
                       struct error *error)
{
	struct session_view session = {0};
	int64_t account = 0;
	struct db_connection *connection = begin_read(store, &error);
	db_limit_wait(connection);
	int result = read_session(connection, cookie, made_after_us, seen_after_us, arena, &session,
	                          &account, error);
	if (!result)
		result = read_memberships(connection, account, arena, &session, error);
	result = end_read(connection, result);
	if (!result)
		*ret = session;
	return result;
}

/* ---- changing ---- */

/* Optional updates skip a locked row. The lock's owner may be a commit that waits for a standby;
 * transactions that remove rights would then wait for this connection. */
static int lock_free_row(struct db_query *query, bool *ret_locked, struct error *error)
{
	*ret_locked = db_step(query);
	return db_end(query, error);
}

/* Sessions are removed later, but the time of last use is kept in the membership. */
static int touch_membership(struct db_connection *connection, const struct sha256 *cookie,
                            int64_t now_us, struct error *error)
{
	int64_t account = 0;
	char user_id[ID_SIZE];
	struct db_query *query =
		db_query(connection, "SELECT user_id, account FROM memberships"
	                         " WHERE user_id = (SELECT s.user_id FROM sessions s"
	                         " WHERE s.digest = $1) AND account = (SELECT s.account FROM sessions s"
	                         " WHERE s.digest = $1) AND (seen_at IS NULL OR seen_at < $2)"
	                         " FOR UPDATE SKIP LOCKED");
	db_bind(query, cookie, now_us);
	bool locked = db_step(query);
	if (locked) {
		store_copy_id(user_id, db_text(query, 0));
		account = db_integer(query, 1);
	}
	int result = db_end(query, error);
	if (result || !locked)
		return result;
	query = db_query(connection,
	                 "UPDATE memberships SET seen_at = $3 WHERE user_id = $1 AND account = $2");
	db_bind(query, user_id, account, now_us);
	return db_execute(query, NULL, error);
}

static int touch(struct db_connection *connection, const struct sha256 *cookie, int64_t now_us,
                 struct error *error)
{
	bool locked = false;
	struct db_query *query =
		db_query(connection, "SELECT 1 FROM sessions WHERE digest = $1 AND seen_at < $2"
	                         " FOR UPDATE SKIP LOCKED");
	db_bind(query, cookie, now_us);
	int result = lock_free_row(query, &locked, error);
	if (result || !locked)
		return result;
	query = db_query(connection, "UPDATE sessions SET seen_at = $2 WHERE digest = $1");
	db_bind(query, cookie, now_us);
	return db_execute(query, NULL, error);
}

int store_touch_session(struct store *store, const struct sha256 *cookie, int64_t now_us,
                        struct error *error)
{
	struct db_connection *connection = begin_local(store, &error);
	int result = touch(connection, cookie, now_us, error);
	if (!result)
		result = touch_membership(connection, cookie, now_us, error);
	return end_write(connection, result, error);
}

static int take_up(struct db_connection *connection, const char *user_id, const char *account_id,
                   struct error *error)
{
	int64_t account = 0;
	bool locked = false;
	int result = find_account_number(connection, slice_of(account_id), &account, error);
	if (result)
		return result;
	struct db_query *query =
		db_query(connection, "SELECT 1 FROM memberships WHERE user_id = $1 AND account = $2"
	                         " AND taken_up = 0 FOR UPDATE SKIP LOCKED");
	db_bind(query, user_id, account);
	result = lock_free_row(query, &locked, error);
	if (result || !locked)
		return result;
	query = db_query(connection,
	                 "UPDATE memberships SET taken_up = 1 WHERE user_id = $1 AND account = $2");
	db_bind(query, user_id, account);
	return db_execute(query, NULL, error);
}

int store_mark_worked_in(struct store *store, const char *user_id, const char *account_id,
                         struct error *error)
{
	struct db_connection *connection = begin_local(store, &error);
	return end_write(connection, take_up(connection, user_id, account_id, error), error);
}

int store_choose_account(struct store *store, const struct sha256 *cookie, struct slice account_id,
                         struct error *error)
{
	int64_t account = 0;
	struct db_connection *connection = begin_local(store, &error);
	int result = find_account_number(connection, account_id, &account, error);
	if (result)
		return end_write(connection, result, error);
	struct db_query *query =
		db_query(connection, "UPDATE sessions SET account = $2 WHERE digest = $1"
	                         " AND ended_at IS NULL AND EXISTS (SELECT 1 FROM memberships m"
	                         " WHERE m.user_id = sessions.user_id AND m.account = $2)");
	db_bind(query, cookie, account);
	int64_t changed = 0;
	result = db_execute(query, &changed, error);
	if (!result && !changed) { /* the same message as for a session that does not exist */
		char id[ID_SIZE];
		store_copy_id(id, account_id);
		result = error_set(error, ERR_NOT_FOUND, MSG_STORE_NO_ACCOUNT, id, NULL);
	}
	return end_write(connection, result, error);
}

int store_sign_out(struct store *store, const struct sign_out_request *leave, struct error *error)
{
	int64_t ended = 0;
	struct db_connection *connection = begin_local(store, &error);
	const struct session_audit act = {.operation = "sign out",
	                                  .cookie = &leave->cookie,
	                                  .address = leave->address,
	                                  .node = leave->node,
	                                  .urgent = true};
	int result = end_by_digest(connection, &leave->cookie, leave->now_us, &ended, error);
	if (!result && ended && !leave->unrecorded)
		result = session_audit_write(connection, &act, error);
	return end_write(connection, result, error);
}

/* ---- open sessions ---- */

#define SESSIONS(of)                                                                               \
	"SELECT s.session_id, a.account_id, u.email, s.address, s.agent, s.made_at, s.seen_at,"        \
	" s.signed_in_at, s.by_passkey, a.name, s.signed_in_by FROM sessions s"                        \
	" JOIN users u ON u.user_id = s.user_id"                                                       \
	" JOIN accounts a ON a.account = s.account WHERE s.ended_at IS NULL AND s.made_at > $1"        \
	" AND s.seen_at > $2 AND ($3 = 0 OR s.account = $3 OR u.email = $6)"                           \
	" AND (CAST($4 AS TEXT) IS NULL OR u.email = $4)" of                                           \
	" ORDER BY s.made_at DESC, s.session_id LIMIT $5"

static int find_accounts(struct db_connection *connection, const struct session_scope *scope,
                         int64_t account, int64_t made_after_us, int64_t seen_after_us,
                         struct work_accounts *ret, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT DISTINCT s.account FROM sessions s"
	                         " JOIN users u ON u.user_id = s.user_id WHERE s.ended_at IS NULL"
	                         " AND s.made_at > $1 AND s.seen_at > $2"
	                         " AND ($3 = 0 OR s.account = $3 OR u.email = $5)"
	                         " AND (CAST($4 AS TEXT) IS NULL OR u.email = $4)");
	db_bind(query, made_after_us, seen_after_us, account, scope->email, scope->own);
	return routing_keep_available(connection, query, ret, error);
}

static const struct member session_columns[] =
	COLUMNS_OF(struct session_record, session_id, account_id, email, address, agent, made_at_us,
               seen_at_us, signed_in_at_us, by_passkey, account_name, signed_in_by);
static const struct row_type session_type = ROW_TYPE(struct session_record, session_columns, NULL);

int store_list_sessions(struct store *store, const struct session_scope *scope,
                        int64_t made_after_us, int64_t seen_after_us, int64_t limit,
                        struct arena *arena, struct session_list *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	int64_t account = 0;
	int result = OK;
	if (scope->account_id.size)
		result = find_account_number(connection, scope->account_id, &account, error);
	if (result)
		return end_read(connection, result);
	SHARD_WORK_AUTO struct work_accounts of = {.all = true};
	if (db_has_unreachable(db_of(connection)))
		result =
			find_accounts(connection, scope, account, made_after_us, seen_after_us, &of, error);
	if (result)
		return end_read(connection, result);
	struct row row = {
		.arena = arena,
		.query = routing_query(connection, &of, SESSIONS(""), SESSIONS(WORK_ACCOUNTS("a", "$7")))};
	db_bind(row.query, made_after_us, seen_after_us, account, scope->email, limit + 1, scope->own);
	shard_work_bind(row.query, &of);
	struct session_list list = {.partial = of.partial};
	result = end_read(connection, row_list(&row, &session_type, LIST_OF(&list), limit, error));
	if (!result)
		*ret = list;
	return result;
}

int store_end_session(struct store *store, struct slice session_id,
                      const struct session_scope *scope, int64_t now_us, struct error *error)
{
	int64_t account = 0;
	struct db_connection *connection = begin_write(store, &error);
	int result = OK;
	if (scope->account_id.size)
		result = find_account_number(connection, scope->account_id, &account, error);
	if (!result)
		result = audit_settle_authorization(connection, error);
	if (result)
		return end_write(connection, result, error);
	struct db_query *query = db_query(
		connection, "UPDATE sessions SET ended_at = $3 WHERE session_id = $1 AND ended_at IS NULL"
					" AND (CAST($2 AS TEXT) IS NULL OR user_id IN"
					" (SELECT u.user_id FROM users u WHERE u.email = $2))"
					" AND ($4 = 0 OR account = $4 OR user_id IN"
					" (SELECT u.user_id FROM users u WHERE u.email = $5))");
	db_bind(query, session_id, scope->email, now_us, account, scope->own);
	int64_t ended = 0;
	result = db_execute(query, &ended, error);
	if (!result && !ended) {
		char id[ID_SIZE];
		store_copy_id(id, session_id);
		result = error_set(error, ERR_NOT_FOUND, MSG_STORE_NO_SESSION, id, NULL);
	}
	return end_write(connection, result, error);
}
