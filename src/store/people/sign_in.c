/* Links to sign in. */
#include <stdio.h>

#include "base/digest.h"
#include "store/notices/queue_mail.h"
#include "store/people/console_users.h"
#include "store/transaction.h"

#define HOUR_US (3600 * US_PER_SECOND)
#define KNOWN_US (365 * US_PER_DAY)
#define NETWORK_MEMBER_MAX 128

enum requester { REQUESTER_KNOWN, REQUESTER_NEAR, REQUESTER_STRANGE };

/* Anyone can enter another person's address. REQUESTER_NEAR is a request from a network in which
 * the user has signed in. */
static int find_requester(struct db_connection *connection, const struct link_request *request,
                          enum requester *ret, struct error *error)
{
	static const struct sha256 nothing;
	*ret = request->in_session ? REQUESTER_KNOWN : REQUESTER_STRANGE;
	if (request->in_session)
		return OK;
	struct db_query *query =
		db_query(connection, "SELECT MAX(CASE WHEN k.digest = $1 THEN 1 ELSE 0 END)"
	                         " FROM known_browsers k JOIN users u ON u.user_id = k.user_id"
	                         " WHERE u.email = $2 AND (k.digest = $1 OR k.network = $3)");
	db_bind(query, request->known ? request->known : &nothing, request->email, request->network);
	if (db_step(query) && !db_is_null(query, 0))
		*ret = db_integer(query, 0) ? REQUESTER_KNOWN : REQUESTER_NEAR;
	return db_end(query, error);
}

static int check_room(struct db_connection *connection, const struct link_request *request,
                      struct error *error)
{
	enum requester requester;
	char member[NETWORK_MEMBER_MAX];
	int result = find_requester(connection, request, &requester, error);
	if (result)
		return result;
	snprintf(member, sizeof member, "%%\"network\":\"%s\"%%",
	         request->network ? request->network : "");
	struct db_query *query =
		db_query(connection, "SELECT COUNT(*), COUNT(CASE WHEN recipient = $1 THEN 1 END),"
	                         " COUNT(CASE WHEN recipient = $1 AND details LIKE $2 THEN 1 END)"
	                         " FROM mails WHERE account = 0 AND state = 'waiting'"
	                         " AND template = '" MAIL_SIGN_IN "'");
	db_bind(query, request->email, member);
	bool counted = db_step(query);
	int64_t waiting = counted ? db_integer(query, 0) : 0;
	int64_t of_address = counted ? db_integer(query, 1) : 0;
	int64_t of_network = counted ? db_integer(query, 2) : 0;
	result = db_end(query, error);
	if (result)
		return result;
	bool full = waiting >= SIGN_IN_MAILS_MAX || of_network >= SIGN_IN_MAILS_OF_NETWORK_MAX ||
	            (requester == REQUESTER_STRANGE && of_address >= SIGN_IN_MAILS_OF_ADDRESS_MAX);
	if (requester != REQUESTER_KNOWN && full)
		return error_cause(error, ERR_REFUSED, "too many e-mails are queued");
	if (waiting >= 2 * SIGN_IN_MAILS_MAX)
		return error_cause(error, ERR_UNAVAILABLE, "too many e-mails are queued");
	return OK;
}

int store_request_link(struct store *store, const struct link_request *request, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	struct mail_to to = {request->email, request->language};
	int result = check_room(connection, request, error);
	if (!result)
		result = store_queue_mail_to(connection, 0, &to, MAIL_SIGN_IN, request->values,
		                             request->now_us, error);
	return end_write(connection, result, error);
}

/* ---- creating links ---- */

static int find_user(struct db_connection *connection, const char *email, char user_id[ID_SIZE],
                     struct error *error)
{
	struct row row = {.query =
	                      db_query(connection,
	                               "SELECT user_id FROM users u WHERE email = $1 AND EXISTS"
	                               " (SELECT 1 FROM memberships m WHERE m.user_id = u.user_id)")};
	db_bind_string(row.query, email);
	bool found = db_step(row.query);
	if (found)
		store_copy_id(user_id, db_text(row.query, 0));
	int result = row_result(&row, found, error);
	return result == ERR_NOT_FOUND ? error_set(error, ERR_NOT_FOUND, MSG_STORE_NO_USER, email, NULL)
	                               : result;
}

/* A request in another person's name comes from a browser in which the user has never signed in. */
static int classify_browser(struct db_connection *connection, const struct link_grant *grant,
                            const char *user_id, const char **ret_standing, struct error *error)
{
	*ret_standing = grant->in_session ? "session" : "unknown";
	if (grant->in_session || !grant->known)
		return OK;
	struct db_query *query =
		db_query(connection, "SELECT 1 FROM known_browsers WHERE digest = $1 AND user_id = $2");
	db_bind(query, grant->known, user_id);
	if (db_step(query))
		*ret_standing = "known";
	return db_end(query, error);
}

/* A mail that is sent again has a new link each time but counts as one request. Requests from many
 * networks use up only the capacity of networks in which the user never was; so do requests with a
 * stolen cookie of one of the user's browsers. */
static int check_rate(struct db_connection *connection, const struct link_grant *grant,
                      const char *user_id, const char *standing, struct error *error)
{
	bool anywhere = strcmp(standing, "session") != 0;
	if (!grant->hourly_max)
		return OK;
	struct db_query *query = db_query(
		connection,
		"SELECT COUNT(DISTINCT CASE WHEN $5 = 0 OR COALESCE(network, '') = $6 THEN asked END),"
		" COUNT(DISTINCT asked), (SELECT COUNT(*) FROM known_browsers k WHERE k.user_id = $1"
		" AND k.network = $6) FROM sign_in_links WHERE user_id = $1"
		" AND made_at > $2 AND browser IS NOT NULL AND standing = $3 AND asked <> $4");
	db_bind(query, user_id, grant->now_us - HOUR_US, standing, grant->asked, anywhere,
	        grant->network ? grant->network : "");
	bool counted = db_step(query);
	int64_t made = counted ? db_integer(query, 0) : 0;
	int64_t made_anywhere = counted ? db_integer(query, 1) : 0;
	bool near = counted && db_integer(query, 2) > 0;
	int result = db_end(query, error);
	bool many = anywhere && !near && grant->unknown_networks_max &&
	            made_anywhere >= grant->unknown_networks_max;
	if (!result && (made >= grant->hourly_max || many))
		result = error_cause(error, ERR_REFUSED, "too many links were requested for the user");
	return result;
}

static int make_link(struct db_connection *connection, const struct link_grant *grant,
                     struct error *error)
{
	char user_id[ID_SIZE];
	const char *standing = NULL;
	int result = find_user(connection, grant->email, user_id, error)
		?: classify_browser(connection, grant, user_id, &standing, error)
		?: check_rate(connection, grant, user_id, standing, error)
		?: audit_on_user_accounts(connection, user_id, false, error);
	if (result)
		return result;
	struct db_query *query =
		db_query(connection, "INSERT INTO sign_in_links (digest, asked, user_id, browser, made_at,"
	                         " expires_at, standing, network)"
	                         " VALUES ($1, $2, $3, $4, $5, $6, $7, $8)");
	db_bind(query, &grant->link, grant->asked, user_id, grant->browser, grant->now_us,
	        grant->expires_at_us, standing, grant->network);
	return db_execute(query, NULL, error);
}

int store_make_link(struct store *store, const struct link_grant *grant, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	return end_write(connection, make_link(connection, grant, error), error);
}

/* ---- housekeeping ---- */

static int forget(struct db_query *query, int64_t before_us, struct error *error)
{
	db_bind_integer(query, before_us);
	return db_execute(query, NULL, error);
}

int store_remove_old_sessions(struct store *store, int64_t before_us, int64_t challenges_before_us,
                              struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	int result = forget(db_query(connection, "DELETE FROM sign_in_links WHERE expires_at < $1"),
	                    before_us, error);
	if (!result)
		result = forget(db_query(connection, "DELETE FROM passkey_challenges WHERE made_at < $1"),
		                challenges_before_us, error);
	if (!result)
		result = forget(db_query(connection, "DELETE FROM known_browsers WHERE seen_at < $1"),
		                before_us - KNOWN_US, error);
	if (!result)
		result =
			forget(db_query(connection, "DELETE FROM sessions WHERE ended_at < $1 OR seen_at < $1"),
		           before_us, error);
	if (!result)
		result = forget(db_query(connection, "DELETE FROM mails WHERE account = 0"
		                                     " AND template = '" MAIL_SIGN_IN "'"
		                                     " AND state <> 'waiting' AND ended_at < $1"),
		                before_us, error);
	return end_write(connection, result, error);
}
