/* Passkeys of users and the challenges for them. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "store/audit/audit_log.h"
#include "store/notices/queue_mail.h"
#include "store/people/console_users.h"
#include "store/people/session_start.h"
#include "store/shards/shard_routing.h"
#include "store/transaction.h"

#define NAME_MAX_SIZE 256

/* ---- challenges ---- */

int store_set_challenge(struct store *store, const struct sha256 *browser,
                        const uint8_t challenge[CHALLENGE_SIZE], int64_t now_us,
                        struct error *error)
{
	struct db_connection *connection = begin_local(store, &error);
	struct db_query *query =
		db_query(connection, "INSERT INTO passkey_challenges (holder, challenge, made_at)"
	                         " VALUES ($1, $2, $3) ON CONFLICT (holder) DO UPDATE"
	                         " SET challenge = excluded.challenge, made_at = excluded.made_at");
	db_bind_blob(query, browser->bytes, SHA256_SIZE);
	db_bind_blob(query, challenge, CHALLENGE_SIZE);
	db_bind_integer(query, now_us);
	return end_write(connection, db_execute(query, NULL, error), error);
}

int store_take_challenge(struct store *store, const struct sha256 *browser, int64_t made_after_us,
                         uint8_t ret[CHALLENGE_SIZE], struct error *error)
{
	struct db_connection *connection = begin_local(store, &error);
	struct row row = {.query =
	                      db_query(connection, "DELETE FROM passkey_challenges WHERE holder = $1"
	                                           " RETURNING challenge, made_at")};
	db_bind_blob(row.query, browser->bytes, SHA256_SIZE);
	bool found = db_step(row.query);
	bool good = false;
	uint8_t challenge[CHALLENGE_SIZE];
	if (found) {
		struct slice bytes = db_blob(row.query, 0);
		good = bytes.size == sizeof challenge && db_integer(row.query, 1) > made_after_us;
		if (good)
			memcpy(challenge, bytes.data, sizeof challenge);
	}
	int result = end_write(connection, row_result(&row, true, error), error);
	if (!result && good)
		memcpy(ret, challenge, sizeof challenge);
	return result ? result : good ? OK : ERR_NOT_FOUND;
}

/* ---- notification of the user ---- */

/* The operation may have been done by someone else than the user, so the mail states its source. */
static int mail_values(struct db_connection *connection, const char *name, int64_t now_us,
                       struct buf *values)
{
	const struct act *act = db_attached(connection);
	struct json_writer writer = {.out = values};
	json_begin_object(&writer, NULL);
	json_text(&writer, "name", name);
	json_time(&writer, "at", now_us);
	if (act && act->by->user_id)
		json_text(&writer, "address", act->by->address);
	else
		json_text(&writer, "reason", "operator");
	json_end_object(&writer);
	return buf_check(values);
}

static int notify_user(struct db_connection *connection, const char *email,
                       const char *template_name, const char *name, int64_t now_us,
                       struct error *error)
{
	BUF_AUTO struct buf values;
	buf_init(&values, MAIL_VALUES_MAX);
	struct row row = {.query = db_query(connection, "SELECT language FROM users WHERE email = $1")};
	db_bind_string(row.query, email);
	bool found = db_step(row.query);
	bool spanish = found && slice_is(db_text(row.query, 0), "es");
	int result = row_result(&row, found, error);
	if (!result)
		result = mail_values(connection, name, now_us, &values);
	const struct mail_to to = {email, spanish ? LANGUAGE_SPANISH : LANGUAGE_ENGLISH};
	return result ? result
	              : store_queue_mail_to(connection, 0, &to, template_name, buf_slice(&values),
	                                    now_us, error);
}

/* ---- adding ---- */

static int mark_session(struct db_connection *connection, const char *user_id,
                        const struct sha256 *cookie, struct error *error)
{
	struct db_query *query =
		db_query(connection, "UPDATE sessions SET by_passkey = 1 WHERE digest = $1"
	                         " AND user_id = $2 AND ended_at IS NULL");
	db_bind(query, cookie, user_id);
	int64_t changed = 0;
	int result = db_execute(query, &changed, error);
	return result ? result : changed ? OK : ERR_NOT_FOUND;
}

static int check_room(struct db_connection *connection, const char *user_id, struct error *error)
{
	char number[24];
	struct db_query *query =
		db_query(connection, "SELECT COUNT(*) FROM passkeys WHERE user_id = $1");
	db_bind_string(query, user_id);
	int64_t count = db_step(query) ? db_integer(query, 0) : 0;
	int result = db_end(query, error);
	snprintf(number, sizeof number, "%d", PASSKEYS_OF_USER_MAX);
	if (!result && count >= PASSKEYS_OF_USER_MAX)
		result = error_set(error, ERR_REFUSED, MSG_STORE_PASSKEYS_FULL, number, NULL);
	return result;
}

#define PASSKEY_OWED(of)                                                                           \
	"SELECT 1 FROM sessions s JOIN memberships m ON m.user_id = $2"                                \
	" AND (m.taken_up <> 0 OR m.account = s.account) JOIN accounts a ON a.account = m.account"     \
	" WHERE s.digest = $1 AND s.by_passkey = 0 AND a.passkeys_required <> 0"                       \
	" AND EXISTS (SELECT 1 FROM passkeys p WHERE p.user_id = $2)" of

/* Otherwise a sign-in link would be sufficient where passkeys are required, because its holder
 * could add another passkey. */
static int check_passkey_owed(struct db_connection *connection, const char *user_id,
                              const struct sha256 *cookie, struct error *error)
{
	SHARD_WORK_AUTO struct work_accounts of = {0};
	int reached = routing_of_user(connection, user_id, &of, error);
	if (!reached && of.partial)
		reached = error_cause(
			error, ERR_UNAVAILABLE,
			"a server that may require passkeys for an account of the user is unavailable");
	if (reached)
		return reached;
	struct db_query *query =
		routing_query(connection, &of, PASSKEY_OWED(""), PASSKEY_OWED(" AND a.account = ANY($3)"));
	db_bind(query, cookie, user_id);
	shard_work_bind(query, &of);
	bool owes = db_step(query);
	int result = db_end(query, error);
	return !result && owes ? error_set(error, ERR_PASSKEY, MSG_USER_PASSKEY_REQUIRED, NULL)
	                       : result;
}

#define SIGNED_IN_BY_SIZE 32

/* Reads how the session began; empty when unknown. A separate statement, because distributed tables
 * do not support the nested one. */
static int read_signed_in_by(struct db_connection *connection, const struct sha256 *cookie,
                             char ret[SIGNED_IN_BY_SIZE], struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT signed_in_by FROM sessions WHERE digest = $1");
	db_bind_blob(query, cookie->bytes, SHA256_SIZE);
	struct slice text = db_step(query) ? db_text(query, 0) : slice_of("");
	snprintf(ret, SIGNED_IN_BY_SIZE, "%.*s", (int)text.size, text.data);
	return db_end(query, error);
}

static int insert_passkey(struct db_connection *connection, const struct passkey_record *given,
                          const struct sha256 *cookie, const char *passkey_id, int64_t now_us,
                          struct error *error)
{
	char added_by[SIGNED_IN_BY_SIZE];
	int result = read_signed_in_by(connection, cookie, added_by, error);
	if (result)
		return result;
	struct db_query *query =
		db_query(connection, "INSERT INTO passkeys (credential_id, passkey_id, user_id, algorithm,"
	                         " public_key, sign_count, name, made_at, added_by)"
	                         " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
	                         " ON CONFLICT (credential_id) DO NOTHING");
	db_bind(query, db_bytes(given->credential_id), passkey_id, given->user_id, given->algorithm,
	        db_bytes(given->public_key), given->sign_count, given->name, now_us,
	        *added_by ? added_by : NULL);
	int64_t made = 0;
	result = db_execute(query, &made, error);
	if (!result && !made)
		result = error_set(error, ERR_REFUSED, MSG_STORE_PASSKEY_EXISTS, NULL);
	return result;
}

int store_add_passkey(struct store *store, const struct passkey_record *given,
                      const struct sha256 *cookie, const char *tell, int64_t now_us,
                      char ret_passkey_id[ID_SIZE], struct error *error)
{
	char passkey_id[ID_SIZE];
	struct db_connection *connection = begin_write(store, &error);
	store_fresh_id("psk_", passkey_id);
	int result = check_passkey_owed(connection, given->user_id, cookie, error)
		?: mark_session(connection, given->user_id, cookie, error)
		?: check_room(connection, given->user_id, error)
		?: insert_passkey(connection, given, cookie, passkey_id, now_us, error);
	if (!result && tell)
		result = notify_user(connection, tell, MAIL_PASSKEY_ADDED, given->name, now_us, error);
	audit_add_created(connection, "passkey_id", passkey_id);
	result = end_write(connection, result, error);
	if (!result)
		memcpy(ret_passkey_id, passkey_id, ID_SIZE);
	return result;
}

/* ---- reading ---- */

#define PASSKEY_COLUMNS                                                                            \
	"SELECT p.passkey_id, p.user_id, p.credential_id, p.algorithm, p.public_key, p.sign_count,"    \
	" p.name, p.made_at, p.used_at FROM passkeys p"

static const struct member passkey_columns[] =
	COLUMNS_OF(struct passkey_record, passkey_id, user_id, credential_id, algorithm, public_key,
               sign_count, name, made_at_us, used_at_us);

static const struct row_type passkey_type = ROW_TYPE(struct passkey_record, passkey_columns, NULL);

int store_find_passkey(struct store *store, struct slice credential_id, struct arena *arena,
                       struct passkey_record *ret, struct error *error)
{
	struct passkey_record record;
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {.arena = arena,
	                  .query = db_query(connection, PASSKEY_COLUMNS " WHERE p.credential_id = $1")};
	db_bind(row.query, db_bytes(credential_id));
	bool found = db_step(row.query);
	if (found)
		row_read(&row, &passkey_type, 0, &record);
	int result = end_read(connection, row_result(&row, found, error));
	if (!result)
		*ret = record;
	return result;
}

int store_list_passkeys(struct store *store, const char *email, struct arena *arena,
                        struct passkey_list *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {.arena = arena,
	                  .query = db_query(connection, PASSKEY_COLUMNS
	                                    " JOIN users u ON u.user_id = p.user_id WHERE u.email = $1"
	                                    " ORDER BY p.made_at, p.passkey_id")};
	db_bind_string(row.query, email);
	struct passkey_list list = {0};
	bool more = false;
	int result = end_read(connection, row_list(&row, &passkey_type, &list.items, &list.count, &more,
	                                           PASSKEYS_OF_USER_MAX + 1, error));
	if (!result)
		*ret = list;
	return result;
}

/* ---- use and removal ---- */

int store_use_passkey(struct store *store, const struct passkey_record *known, int64_t sign_count,
                      const struct session_start *start, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	const char *by = BY_PASSKEY;
	struct row row = {.query =
	                      db_query(connection, "UPDATE passkeys SET sign_count = $4, used_at = $5"
	                                           " WHERE credential_id = $1 AND user_id = $2"
	                                           " AND sign_count = $3 RETURNING added_by")};
	db_bind(row.query, db_bytes(known->credential_id), known->user_id, known->sign_count,
	        sign_count, start->now_us);
	bool found = db_step(row.query);
	if (found && !db_is_null(row.query, 0) &&
	    (slice_is(db_text(row.query, 0), BY_OPERATOR_LINK) ||
	     slice_is(db_text(row.query, 0), BY_OPERATOR_PASSKEY)))
		by = BY_OPERATOR_PASSKEY;
	int result = row_result(&row, found, error);
	if (!result)
		result = session_begin(connection, known->user_id, by, true, start, error);
	return end_write(connection, result, error);
}

static int end_sessions(struct db_connection *connection, const char *email, int64_t now_us,
                        struct error *error)
{
	struct db_query *query =
		db_query(connection, "UPDATE sessions SET ended_at = $2 WHERE ended_at IS NULL"
	                         " AND by_passkey = 1 AND user_id IN"
	                         " (SELECT u.user_id FROM users u WHERE u.email = $1)");
	db_bind(query, email, now_us);
	return db_execute(query, NULL, error);
}

int store_remove_passkey(struct store *store, struct slice passkey_id, const char *email,
                         bool tells, int64_t now_us, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	char name[NAME_MAX_SIZE] = "", user_id[ID_SIZE] = "";
	struct row row = {.query = db_query(connection,
	                                    "DELETE FROM passkeys WHERE passkey_id = $1 AND user_id IN"
	                                    " (SELECT u.user_id FROM users u WHERE u.email = $2)"
	                                    " RETURNING name, user_id")};
	db_bind(row.query, passkey_id, email);
	bool found = db_step(row.query);
	if (found) {
		struct slice text = db_text(row.query, 0);
		snprintf(name, sizeof name, "%.*s", (int)text.size, text.data);
		store_copy_id(user_id, db_text(row.query, 1));
	}
	int result = row_end(&row, found, MSG_STORE_NO_PASSKEY, passkey_id, error)
		?: audit_on_user_accounts(connection, user_id, true, error)
		?: audit_settle_authorization(connection, error)
		?: end_sessions(connection, email, now_us, error);
	if (!result && tells)
		result = notify_user(connection, email, MAIL_PASSKEY_REMOVED, name, now_us, error);
	return end_write(connection, result, error);
}
