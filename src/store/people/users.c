/* Users, their roles in accounts and their invitations. */
#include "store/people/console_users.h"

#include <inttypes.h>
#include <stdio.h>

#include "store/notices/queue_mail.h"
#include "store/transaction.h"

#define HOUR_US (3600 * US_PER_SECOND)

static const struct {
	enum role role;
	const char *text;
} roles[] = {
	{ROLE_OWNER, "owner"},
	{ROLE_DEVELOPER, "developer"},
	{ROLE_ACCOUNTANT, "accountant"},
	{ROLE_READER, "reader"},
};

const char *role_text(enum role role)
{
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
		if (roles[i].role == role)
			return roles[i].text;
	return "";
}

bool role_parse(struct slice text, enum role *ret)
{
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
		if (slice_is(text, roles[i].text)) {
			*ret = roles[i].role;
			return true;
		}
	return false;
}

/* ---- invitation ---- */

/* Reads the single row of a count. */
static int count(struct db_query *query, int64_t *ret, struct error *error)
{
	*ret = db_step(query) ? db_integer(query, 0) : 0;
	return db_end(query, error);
}

static int refuse_count(enum message message, int64_t most, struct error *error)
{
	char number[24];
	snprintf(number, sizeof number, "%" PRId64, most);
	return error_set(error, ERR_REFUSED, message, number, NULL);
}

static int check_room(struct db_connection *connection, int64_t account, const char *user_id,
                      struct error *error)
{
	int64_t users, accounts = 0;
	struct db_query *query =
		db_query(connection, "SELECT COUNT(*) FROM memberships WHERE account = $1");
	db_bind_integer(query, account);
	int result = count(query, &users, error);
	if (!result && users >= USERS_OF_ACCOUNT_MAX)
		return refuse_count(MSG_STORE_USERS_FULL, USERS_OF_ACCOUNT_MAX, error);
	if (result)
		return result;
	query = db_query(connection, "SELECT COUNT(*) FROM memberships WHERE user_id = $1");
	db_bind_string(query, user_id);
	result = count(query, &accounts, error);
	if (!result && accounts >= ACCOUNTS_OF_USER_MAX)
		return refuse_count(MSG_STORE_ACCOUNTS_FULL, ACCOUNTS_OF_USER_MAX, error);
	return result;
}

/* The row is locked, so a concurrent transaction that would delete the user keeps it. */
static int make_user(struct db_connection *connection, const struct invitation *invitation,
                     int64_t now_us, char user_id[ID_SIZE], enum language *ret_language,
                     struct error *error)
{
	char fresh_id[ID_SIZE];
	store_fresh_id("usr_", fresh_id);
	struct db_query *query =
		db_query(connection, "INSERT INTO users (user_id, email, language, created_at)"
	                         " VALUES ($1, $2, $3, $4) ON CONFLICT (email) DO NOTHING");
	db_bind(query, fresh_id, invitation->email,
	        invitation->language == LANGUAGE_SPANISH ? "es" : "en", now_us);
	int result = db_execute(query, NULL, error);
	if (result)
		return result;
	struct row row = {.query = db_query(connection, "SELECT user_id, language FROM users"
	                                                " WHERE email = $1 FOR KEY SHARE")};
	db_bind_string(row.query, invitation->email);
	bool found = db_step(row.query);
	if (found) {
		store_copy_id(user_id, db_text(row.query, 0));
		*ret_language = slice_is(db_text(row.query, 1), "es") ? LANGUAGE_SPANISH : LANGUAGE_ENGLISH;
	}
	result = row_result(&row, found, error);
	return result == ERR_NOT_FOUND
	           ? error_cause(error, ERR_UNAVAILABLE, "the user is being deleted")
	           : result;
}

static int make_membership(struct db_connection *connection, const struct invitation *invitation,
                           int64_t account, const char *user_id, int64_t now_us,
                           struct error *error)
{
	struct db_query *query = db_query(
		connection, "INSERT INTO memberships (user_id, account, role, made_at, made_by,"
					" taken_up) VALUES ($1, $2, $3, $4, $5, 0) ON CONFLICT (user_id, account)"
					" DO NOTHING");
	db_bind(query, user_id, account, role_text(invitation->role), now_us, invitation->invited_by);
	int64_t made = 0;
	int result = db_execute(query, &made, error);
	if (!result && !made)
		result = error_set(error, ERR_REFUSED, MSG_STORE_USER_EXISTS, invitation->email, NULL);
	return result;
}

static int send_invitation(struct db_connection *connection, const struct invitation *invitation,
                           int64_t account, enum language language, int64_t now_us,
                           struct error *error)
{
	int64_t sent = 0;
	struct db_query *query =
		db_query(connection, "SELECT COUNT(*) FROM mails WHERE account = $1"
	                         " AND template = '" MAIL_INVITATION "' AND queued_at > $2");
	db_bind(query, account, now_us - HOUR_US);
	int result = count(query, &sent, error);
	if (!result && invitation->hourly_mails && sent >= invitation->hourly_mails)
		result = refuse_count(MSG_STORE_INVITED_OFTEN, invitation->hourly_mails, error);
	if (result || !invitation->mail.size)
		return result;
	struct mail_to to = {invitation->email, language};
	return store_queue_mail_to(connection, account, &to, MAIL_INVITATION, invitation->mail, now_us,
	                           error);
}

int store_invite_user(struct store *store, const struct invitation *invitation, int64_t now_us,
                      char ret_user_id[ID_SIZE], struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	int64_t account = 0;
	char user_id[ID_SIZE] = "";
	enum language language = invitation->language;
	int result = find_account_number(connection, invitation->account_id, &account, error)
		?: make_user(connection, invitation, now_us, user_id, &language, error)
		?: check_room(connection, account, user_id, error)
		?: make_membership(connection, invitation, account, user_id, now_us, error)
		?: send_invitation(connection, invitation, account, language, now_us, error);
	result = end_write(connection, result, error);
	if (!result)
		memcpy(ret_user_id, user_id, ID_SIZE);
	return result;
}

/* ---- lists ---- */

static const struct member user_columns[] =
	COLUMNS_OF(struct user_record, user_id, email, role, made_at_us, made_by, seen_at_us, passkeys);

/* A new session is recorded in the membership a little later. */
static void complete_user(struct row *row, void *to)
{
	struct user_record *record = to;
	int64_t noted_us = row_time(row->query, 7);
	record->seen_at_us = record->seen_at_us > noted_us ? record->seen_at_us : noted_us;
	row_expect(row, role_parse(db_text(row->query, 2), &record->role), "role", 2, record->user_id);
}

static const struct row_type user_type = ROW_TYPE(struct user_record, user_columns, complete_user);

int store_list_users(struct store *store, struct slice account_id, struct arena *arena,
                     struct user_list *ret, struct error *error)
{
	int64_t account = 0;
	struct db_connection *connection = begin_read(store, &error);
	int result = find_account_number(connection, account_id, &account, error);
	if (result)
		return end_read(connection, result);
	struct row row = {
		.arena = arena,
		.query = db_query(
			connection,
			"SELECT u.user_id, u.email, m.role, m.made_at, b.email,"
			" (SELECT MAX(s.seen_at) FROM sessions s WHERE s.user_id = u.user_id"
			" AND s.account = m.account),"
			" (SELECT COUNT(*) FROM passkeys p WHERE p.user_id = u.user_id), m.seen_at"
			" FROM memberships m JOIN users u ON u.user_id = m.user_id"
			" LEFT JOIN users b ON b.user_id = m.made_by WHERE m.account = $1 ORDER BY u.email")};
	db_bind_integer(row.query, account);
	struct user_list list = {0};
	bool more = false;
	result = end_read(connection, row_list(&row, &user_type, &list.items, &list.count, &more,
	                                       USERS_OF_ACCOUNT_MAX + 1, error));
	if (!result)
		*ret = list;
	return result;
}

/* ---- roles ---- */

struct account_user {
	int64_t account;
	char user_id[ID_SIZE];
	enum role role;
};

static int find_member(struct db_connection *connection, struct slice account_id, const char *email,
                       struct account_user *ret, struct error *error)
{
	int result = find_account_number(connection, account_id, &ret->account, error);
	if (result)
		return result;
	struct row row = {.query = db_query(connection, "SELECT m.user_id, m.role FROM memberships m"
	                                                " JOIN users u ON u.user_id = m.user_id"
	                                                " WHERE u.email = $1 AND m.account = $2")};
	db_bind(row.query, email, ret->account);
	bool found = db_step(row.query);
	if (found) {
		store_copy_id(ret->user_id, db_text(row.query, 0));
		row_expect(&row, role_parse(db_text(row.query, 1), &ret->role), "role", 1, ret->user_id);
	}
	result = row_result(&row, found, error);
	return result == ERR_NOT_FOUND ? error_set(error, ERR_NOT_FOUND, MSG_STORE_NO_USER, email, NULL)
	                               : result;
}

/* All owners are locked. When two owners leave at once, the second transaction finds one owner
 * left, and an owner who was removed by the first does nothing more. The locked rows show who is an
 * owner at that time. */
static int lock_owners(struct db_connection *connection, const struct account_user *member,
                       const char *email, bool stays_owner, struct error *error)
{
	int64_t owners = 0;
	bool is_owner = false;
	struct db_query *query =
		db_query(connection, "SELECT user_id FROM memberships WHERE account = $1"
	                         " AND role = 'owner' ORDER BY user_id FOR UPDATE");
	db_bind_integer(query, member->account);
	while (db_step(query)) {
		owners++;
		is_owner |= slice_is(db_text(query, 0), member->user_id);
	}
	int result = db_end(query, error);
	if (!result)
		result = audit_settle_authorization(connection, error);
	if (!result && is_owner && !stays_owner && owners < 2)
		result = error_set(error, ERR_REFUSED, MSG_STORE_LAST_OWNER, email, NULL);
	return result;
}

/* Ends only sessions in which this account is chosen. What a user does in other accounts is not for
 * this account's owners to end. Roles are read again with every request. */
static int end_sessions(struct db_connection *connection, const struct account_user *member,
                        int64_t now_us, struct error *error)
{
	struct db_query *query =
		db_query(connection, "UPDATE sessions SET ended_at = $3 WHERE user_id = $1"
	                         " AND account = $2 AND ended_at IS NULL");
	db_bind(query, member->user_id, member->account, now_us);
	return db_execute(query, NULL, error);
}

static int change_role(struct db_connection *connection, struct slice account_id, const char *email,
                       enum role role, int64_t now_us, struct error *error)
{
	struct account_user member = {0};
	int result = find_member(connection, account_id, email, &member, error);
	if (result || member.role == role)
		return result;
	result = lock_owners(connection, &member, email, role == ROLE_OWNER, error);
	if (result)
		return result;
	struct db_query *query = db_query(
		connection, "UPDATE memberships SET role = $3 WHERE user_id = $1 AND account = $2");
	db_bind(query, member.user_id, member.account, role_text(role));
	result = db_execute(query, NULL, error);
	return result ? result : end_sessions(connection, &member, now_us, error);
}

int store_change_role(struct store *store, struct slice account_id, const char *email,
                      enum role role, int64_t now_us, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	return end_write(connection, change_role(connection, account_id, email, role, now_us, error),
	                 error);
}

static int run_for_user(struct db_query *query, const char *user_id, struct error *error)
{
	db_bind_string(query, user_id);
	return db_execute(query, NULL, error);
}

/* Deletes a user without accounts; the ended sessions are removed later. Skips a user who is being
 * invited to another account: removing rights must not wait for that transaction, whose commit may
 * be waiting. */
static int forget_user(struct db_connection *connection, const char *user_id, struct error *error)
{
	int64_t accounts = 0;
	struct db_query *query =
		db_query(connection, "SELECT user_id FROM users WHERE user_id = $1 FOR UPDATE SKIP LOCKED");
	db_bind_string(query, user_id);
	bool free = db_step(query);
	int locked = db_end(query, error);
	if (locked || !free)
		return locked;
	query = db_query(connection, "SELECT COUNT(*) FROM memberships WHERE user_id = $1");
	db_bind_string(query, user_id);
	int result = count(query, &accounts, error);
	if (result || accounts)
		return result;
	result = run_for_user(db_query(connection, "DELETE FROM passkeys WHERE user_id = $1"), user_id,
	                      error)
		?: run_for_user(db_query(connection, "DELETE FROM sign_in_links WHERE user_id = $1"),
		                user_id, error)
		?: run_for_user(db_query(connection, "DELETE FROM known_browsers WHERE user_id = $1"),
		                user_id, error)
		?: run_for_user(db_query(connection, "DELETE FROM users WHERE user_id = $1"), user_id,
		                error);
	return result;
}

static int remove_user(struct db_connection *connection, struct slice account_id, const char *email,
                       int64_t now_us, struct error *error)
{
	struct account_user member = {0};
	int result = find_member(connection, account_id, email, &member, error);
	if (!result)
		result = lock_owners(connection, &member, email, false, error);
	if (result)
		return result;
	struct db_query *query =
		db_query(connection, "DELETE FROM memberships WHERE user_id = $1 AND account = $2");
	db_bind(query, member.user_id, member.account);
	result = db_execute(query, NULL, error);
	if (!result)
		result = end_sessions(connection, &member, now_us, error);
	return result ? result : forget_user(connection, member.user_id, error);
}

int store_remove_user(struct store *store, struct slice account_id, const char *email,
                      int64_t now_us, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	return end_write(connection, remove_user(connection, account_id, email, now_us, error), error);
}

int store_set_user_language(struct store *store, const char *user_id, enum language language,
                            struct error *error)
{
	struct db_connection *connection = begin_local(store, &error);
	struct db_query *query =
		db_query(connection, "UPDATE users SET language = $2 WHERE user_id = $1");
	db_bind(query, user_id, language == LANGUAGE_SPANISH ? "es" : "en");
	return end_write_of_one(connection, query, error);
}
