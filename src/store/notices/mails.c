#include "store/notices/queue_mail.h"

#include "store/nodes/job_claims.h"
#include "store/shards/shard_work.h"

/* ---- queueing ---- */

int store_queue_mail(struct db_connection *connection, int64_t account, const char *template_name,
                     struct slice values, int64_t now_us, struct error *error)
{
	if (values.size > MAIL_VALUES_MAX)
		return error_cause(error, ERR_TOO_LARGE,
		                   "the values of a mail '%s' are too long: %zu bytes", template_name,
		                   values.size);
	char mail_id[ID_SIZE];
	store_fresh_id("eml_", mail_id);
	struct db_query *query = db_query(
		connection, "INSERT INTO mails (account, mail_id, template, details, queued_at, next_at)"
					" SELECT account, $2, $3, $4, $5, $6 FROM accounts"
					" WHERE account = $1 AND email IS NOT NULL AND email <> ''");
	db_bind(query, account, mail_id, template_name, values, now_us,
	        due_at_once_us(connection, now_us));
	return db_execute(query, NULL, error);
}

int store_queue_mail_to(struct db_connection *connection, int64_t account, const struct mail_to *to,
                        const char *template_name, struct slice values, int64_t now_us,
                        struct error *error)
{
	if (values.size > MAIL_VALUES_MAX)
		return error_cause(error, ERR_TOO_LARGE,
		                   "the values of a mail '%s' are too long: %zu bytes", template_name,
		                   values.size);
	char mail_id[ID_SIZE];
	store_fresh_id("eml_", mail_id);
	struct db_query *query = db_query(
		connection, "INSERT INTO mails (account, mail_id, template, details, queued_at,"
					" next_at, recipient, language) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)");
	db_bind(query, account, mail_id, template_name, values, now_us,
	        due_at_once_us(connection, now_us), to->recipient,
	        to->language == LANGUAGE_SPANISH ? "es" : "en");
	return db_execute(query, NULL, error);
}

/* ---- claiming ---- */

/* Finds a due mail. next_at is compared by the claim. */
#define DUE(of)                                                                                    \
	"SELECT m.account, a.account_id, m.mail_id, m.template, m.details,"                            \
	" COALESCE(m.recipient, a.email), COALESCE(m.language, a.language), m.queued_at,"              \
	" m.attempts, m.next_at FROM mails m LEFT JOIN accounts a ON a.account = m.account"            \
	" WHERE m.state = 'waiting' AND m.next_at <= $1"                                               \
	" AND (CAST($2 AS TEXT) IS NULL OR m.template = $2)" of " ORDER BY m.next_at LIMIT 1"

static int find_due_of(struct store *store, const char *template_name, int64_t now_us,
                       struct work_accounts *of, struct arena *arena, struct mail *ret,
                       int64_t *ret_seen_us, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {.arena = arena,
	                  .query = of->all ? db_query(connection, DUE(""))
	                                   : db_query(connection, DUE(WORK_ACCOUNTS("m", "$3")))};
	db_bind(row.query, now_us, template_name);
	shard_work_bind(row.query, of);
	bool found = db_step(row.query);
	struct mail mail = {0};
	if (found) {
		mail.account = db_integer(row.query, 0);
		store_copy_id(mail.account_id, db_text(row.query, 1));
		store_copy_id(mail.mail_id, db_text(row.query, 2));
		mail.template_name = row_string(&row, 3);
		mail.values = row_string(&row, 4);
		mail.recipient = row_string(&row, 5);
		mail.language = slice_is(db_text(row.query, 6), "es") ? LANGUAGE_SPANISH : LANGUAGE_ENGLISH;
		mail.queued_at_us = db_integer(row.query, 7);
		mail.attempts = db_integer(row.query, 8);
		*ret_seen_us = db_integer(row.query, 9);
	}
	int result = row_result(&row, found, error);
	if (!result)
		*ret = mail;
	return end_read(connection, result);
}

static int find_due(struct store *store, const char *template_name, int64_t now_us,
                    struct arena *arena, struct mail *ret, int64_t *ret_seen_us,
                    struct error *error)
{
	struct work_accounts of;
	int result = shard_work_find(store, WORK_MAILS, &of, error);
	if (!result)
		result = work_is_empty(&of) ? ERR_NOT_FOUND
		                            : find_due_of(store, template_name, now_us, &of, arena, ret,
		                                          ret_seen_us, error);
	shard_work_free(&of);
	return result;
}

int store_claim_mail(struct store *store, const char *template_name, const char *holder,
                     int64_t now_us, int64_t lease_us, struct arena *arena, struct mail *ret,
                     struct error *error)
{
	struct mail mail;
	int64_t seen_us;
	int result = find_due(store, template_name, now_us, arena, &mail, &seen_us, error);
	if (result)
		return result;
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query = db_query(
		connection, "UPDATE mails SET lease = $3, next_at = $4"
					" WHERE account = $1 AND mail_id = $2 AND state = 'waiting' AND next_at = $5");
	db_bind(query, mail.account, mail.mail_id, holder, now_us + lease_us, seen_us);
	result = end_write_of_one(connection, query, error); /* no row: another node was faster */
	if (!result)
		*ret = mail;
	return result;
}

/* ---- ending ---- */

int store_end_mail(struct store *store, const struct mail *mail, const char *holder,
                   enum mail_end end, const char *cause, int64_t now_us, struct error *error)
{
	static const char *const states[] = {"sent", "failed", "dropped"};
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query = db_query(
		connection, "UPDATE mails SET state = $4, last_error = $5, ended_at = $6, lease = NULL,"
					" attempts = attempts + 1"
					" WHERE account = $1 AND mail_id = $2 AND lease = $3 AND state = 'waiting'");
	db_bind(query, mail->account, mail->mail_id, holder, states[end], cause, now_us);
	return end_write(connection, job_claim_update(query, mail->mail_id, error), error);
}

int store_delay_mail(struct store *store, const struct mail *mail, const char *holder,
                     int64_t next_us, const char *cause, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query = db_query(
		connection, "UPDATE mails SET next_at = $4, last_error = $5, lease = NULL,"
					" attempts = attempts + 1"
					" WHERE account = $1 AND mail_id = $2 AND lease = $3 AND state = 'waiting'");
	db_bind(query, mail->account, mail->mail_id, holder, next_us, cause);
	return end_write(connection, job_claim_update(query, mail->mail_id, error), error);
}

int store_forget_mails(struct store *store, int64_t before_us, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query =
		db_query(connection, "DELETE FROM mails WHERE state <> 'waiting' AND ended_at < $1");
	db_bind_integer(query, before_us);
	return end_write(connection, db_execute(query, NULL, error), error);
}
