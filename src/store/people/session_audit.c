/* Audit records of sign-in and sign-out, by the user of the session. */
#include "base/json.h"
#include "store/audit/audit_log.h"
#include "store/people/session_start.h"
#include "store/transaction.h"

#define ARGUMENTS_MAX ((size_t)256)

static int read_user(struct db_connection *connection, const struct sha256 *cookie,
                     struct arena *arena, struct actor *actor, const char **ret_session_id,
                     struct error *error)
{
	struct row row = {.arena = arena,
	                  .query = db_query(connection,
	                                    "SELECT s.session_id, s.user_id, u.email, s.signed_in_by"
	                                    " FROM sessions s JOIN users u ON u.user_id = s.user_id"
	                                    " WHERE s.digest = $1")};
	db_bind_blob(row.query, cookie->bytes, SHA256_SIZE);
	bool found = db_step(row.query);
	if (found) {
		*ret_session_id = row_string(&row, 0);
		actor->user_id = row_string(&row, 1);
		actor->email = row_string(&row, 2);
		actor->signed_in_by = row_string(&row, 3);
	}
	return row_result(&row, found, error);
}

static int name_session(const char *session_id, struct arena *arena, struct json **ret,
                        struct error *error)
{
	BUF_AUTO struct buf text;
	buf_init(&text, ARGUMENTS_MAX);
	struct json_writer writer = {.out = &text};
	json_begin_object(&writer, NULL);
	json_text(&writer, "session", session_id);
	json_end_object(&writer);
	int result = buf_check(&text);
	const char *kept = result ? NULL : arena_copy(arena, text.data, text.size);
	if (!result && !kept)
		result = ERR_NO_MEMORY;
	return result ? result : json_parse(arena, slice_of(kept), NULL, ret, error);
}

int session_audit_write(struct db_connection *connection, const struct session_audit *what,
                        struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, AUDIT_DOCUMENT_MAX);
	struct actor actor = {.via = "console", .node = what->node, .address = what->address};
	struct act act = {.by = &actor,
	                  .operation = what->operation,
	                  .arena = &arena,
	                  .urgent = what->urgent,
	                  .is_secondary = what->is_secondary};
	const char *session_id = NULL;
	int result = read_user(connection, what->cookie, &arena, &actor, &session_id, error);
	if (result == ERR_NOT_FOUND)
		return OK;
	if (!result)
		result = name_session(session_id, &arena, &act.arguments, error);
	return result ? result : audit_write_alone(connection, &act, error);
}
