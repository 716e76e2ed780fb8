#include "store/certifications/link_secrets.h"

#include "base/digest.h"
#include "store/transaction.h"

static int add_secret(struct db_connection *writer, int64_t used_from_us, struct error *error)
{
	struct sha256 fresh;
	char text[2 * SHA256_SIZE + 1];
	random_bytes(fresh.bytes, SHA256_SIZE);
	hex_encode(fresh.bytes, SHA256_SIZE, text);
	struct db_query *query =
		db_query(writer, "INSERT INTO link_secrets (number, secret, used_from)"
	                     " SELECT COALESCE(MAX(number), 0) + 1, $1, $2 FROM link_secrets");
	db_bind(query, text, used_from_us);
	return db_execute(query, NULL, error);
}

static int read_valid(struct db_connection *connection, int64_t now_us,
                      struct link_secret secrets[LINK_SECRETS_MAX], size_t *ret_count,
                      struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT secret, used_from, valid_until FROM link_secrets"
	                         " WHERE valid_until IS NULL OR valid_until > $1 ORDER BY number");
	db_bind_integer(query, now_us);
	size_t count = 0;
	bool whole = true;
	while (db_step(query) && count < LINK_SECRETS_MAX) {
		struct link_secret *secret = &secrets[count++];
		whole &= hex_decode(db_text(query, 0), secret->secret.bytes, SHA256_SIZE);
		secret->used_from_us = db_integer(query, 1);
		secret->valid_until_us = db_is_null(query, 2) ? INT64_MAX : db_integer(query, 2);
	}
	int result = db_end(query, error);
	if (!result && !whole)
		return error_cause(error, ERR_CORRUPT, "a link secret is not 64 hex digits");
	*ret_count = count;
	return result;
}

int store_read_link_secrets(struct store *store, struct link_secret ret_secrets[LINK_SECRETS_MAX],
                            size_t *ret_count, struct error *error)
{
	int64_t now_us = store_now_us(store);
	struct db_connection *connection = begin_read(store, &error);
	int result =
		end_read(connection, read_valid(connection, now_us, ret_secrets, ret_count, error));
	if (result || *ret_count > 0)
		return result;
	connection = begin_write(store, &error);
	result = read_valid(connection, now_us, ret_secrets, ret_count, error);
	if (!result && *ret_count == 0) { /* unless another node was faster */
		result = add_secret(connection, 0, error);
		if (!result)
			result = read_valid(connection, now_us, ret_secrets, ret_count, error);
	}
	return end_write(connection, result, error);
}

static int end_others(struct db_connection *writer, int64_t now_us, int64_t valid_until_us,
                      struct error *error)
{
	struct db_query *query = db_query(writer, "DELETE FROM link_secrets WHERE valid_until <= $1");
	db_bind_integer(query, now_us);
	int result = db_execute(query, NULL, error);
	if (result)
		return result;
	query = db_query(writer, "UPDATE link_secrets SET valid_until = $1 WHERE valid_until IS NULL");
	db_bind_integer(query, valid_until_us);
	return db_execute(query, NULL, error);
}

int store_rotate_link_secret(struct store *store, int64_t spread_us, int64_t lifetime_us,
                             bool at_once, struct error *error)
{
	struct link_secret secrets[LINK_SECRETS_MAX];
	size_t count = 0;
	int64_t now_us = store_now_us(store);
	int64_t used_from_us = at_once ? now_us : now_us + spread_us;
	struct db_connection *writer = begin_write(store, &error);
	int result = at_once ? db_execute(db_query(writer, "DELETE FROM link_secrets"), NULL, error)
	                     : end_others(writer, now_us, used_from_us + lifetime_us, error);
	if (!result)
		result = read_valid(writer, now_us, secrets, &count, error);
	if (!result && count == LINK_SECRETS_MAX)
		result = error_set(error, ERR_REFUSED, MSG_LINK_SECRETS, NULL);
	if (!result)
		result = add_secret(writer, used_from_us, error);
	return end_write(writer, result, error);
}
