#include "store/nodes/sweeps.h"

#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "store/transaction.h"

#define TOKENS_NAME "sweep_tokens"
#define TOKEN_LENGTH (SWEEP_TOKEN_SIZE - 1)
#define TOKENS_SIZE (SWEEP_TOKENS_KEPT * SWEEP_TOKEN_SIZE) /* a space or NUL after each */

/* Reads the tokens, newest first. Older tokens are kept because a write of the marker may arrive
 * late. */
static int read_tokens(struct db_connection *connection, char ret[TOKENS_SIZE], struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT value FROM settings WHERE name = '" TOKENS_NAME "'");
	struct slice text = db_step(query) ? db_text(query, 0) : slice_of("");
	bool whole = text.size < TOKENS_SIZE;
	if (whole)
		snprintf(ret, TOKENS_SIZE, "%.*s", (int)text.size, text.data);
	int result = db_end(query, error);
	return result || whole ? result : error_cause(error, ERR_CORRUPT, TOKENS_NAME " is too long");
}

static int write_tokens(struct db_connection *connection, const char *fresh, const char *former,
                        struct error *error)
{
	char text[TOKENS_SIZE];
	int kept = (int)strnlen(former, TOKENS_SIZE - SWEEP_TOKEN_SIZE - 1);
	snprintf(text, sizeof text, "%s%s%.*s", fresh, kept ? " " : "", kept, former);
	struct db_query *query =
		db_query(connection, "INSERT INTO settings(name, value) VALUES ('" TOKENS_NAME "', $1)"
	                         " ON CONFLICT (name) DO UPDATE SET value = excluded.value");
	db_bind_string(query, text);
	return db_execute(query, NULL, error);
}

/* A time rather than a count, because a count would decrease with a second rollback. */
static int last_accepted(struct db_connection *connection, int64_t *ret, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT COALESCE(MAX(accepted_at), 0) FROM rollbacks");
	*ret = db_step(query) ? db_integer(query, 0) : 0;
	return db_end(query, error);
}

static void make_token(char ret[SWEEP_TOKEN_SIZE])
{
	uint8_t bytes[TOKEN_LENGTH / 2];
	random_bytes(bytes, sizeof bytes);
	hex_encode(bytes, sizeof bytes, ret);
}

static int take_token(struct db_connection *connection, const char *found,
                      int64_t found_accepted_us, struct sweep_grant *turn, struct error *error)
{
	char tokens[TOKENS_SIZE] = "";
	int result = read_tokens(connection, tokens, error);
	if (!result)
		result = last_accepted(connection, &turn->accepted_us, error);
	if (result)
		return result;
	bool accepted = turn->accepted_us > found_accepted_us;
	const char *at = strlen(found) == TOKEN_LENGTH ? strstr(tokens, found) : NULL;
	if (*found && !at && !accepted)
		return ERR_REFUSED;
	/* Otherwise tokens that were never written to the location would displace the one that is
	 * there. */
	if (at > tokens && !accepted) {
		snprintf(turn->token, sizeof turn->token, "%.*s", (int)sizeof turn->token - 1, tokens);
		return OK;
	}
	make_token(turn->token);
	return write_tokens(connection, turn->token, tokens, error);
}

int store_take_sweep_token(struct store *store, const char *found, int64_t found_accepted_us,
                           struct sweep_grant *ret, struct error *error)
{
	struct sweep_grant turn = {0};
	struct db_connection *connection = begin_write(store, &error);
	int result = end_write(connection,
	                       take_token(connection, found, found_accepted_us, &turn, error), error);
	if (!result)
		*ret = turn;
	return result;
}
