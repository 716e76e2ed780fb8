#include "store/audit/form_dedup.h"

#include "store/transaction.h"

static int refuse(struct submitted_form *form, struct error *error)
{
	form->repeated = true;
	return error_set(error, ERR_CONFLICT, MSG_STORE_FORM_REPEATED, NULL);
}

int form_check(struct db_connection *connection, int64_t account, struct submitted_form *form,
               struct error *error)
{
	if (form->claimed)
		return OK;
	struct db_query *query = db_query(connection, "SELECT act_id FROM form_numbers"
	                                              " WHERE account = $1 AND digest = $2");
	db_bind(query, account, &form->digest);
	bool found = db_step(query);
	*form->act_id = '\0';
	if (found && !db_is_null(query, 0))
		store_copy_id(form->act_id, db_text(query, 0));
	int result = db_end(query, error);
	return !result && found ? refuse(form, error) : result;
}

/* act_id NULL: the form is recorded before the operation. */
static int insert(struct db_connection *connection, int64_t account, struct submitted_form *form,
                  const char *act_id, struct error *error)
{
	int64_t inserted = 0;
	struct db_query *query =
		db_query(connection, "INSERT INTO form_numbers (account, digest, act_id, at)"
	                         " VALUES ($1, $2, $3, $4) ON CONFLICT (account, digest) DO NOTHING");
	db_bind(query, account, &form->digest, act_id, db_now_us(db_of(connection)));
	int result = db_execute(query, &inserted, error);
	if (!result && !inserted)
		result = form_check(connection, account, form, error);
	return result || inserted ? result : refuse(form, error);
}

int form_keep(struct db_connection *connection, int64_t account, struct submitted_form *form,
              const char *act_id, struct error *error)
{
	if (!form->claimed)
		return insert(connection, account, form, act_id, error);
	struct db_query *query = db_query(connection, "UPDATE form_numbers SET act_id = $3"
	                                              " WHERE account = $1 AND digest = $2");
	db_bind(query, account, &form->digest, act_id);
	return db_execute(query, NULL, error);
}

int form_claim(struct db_connection *connection, int64_t account, struct submitted_form *form,
               struct error *error)
{
	return insert(connection, account, form, NULL, error);
}

int store_remove_old_forms(struct store *store, int64_t before_us, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query = db_query(connection, "DELETE FROM form_numbers WHERE at < $1");
	db_bind_integer(query, before_us);
	return end_write(connection, db_execute(query, NULL, error), error);
}
