#include "store/evidence/signer_records.h"

#include <stdio.h>

#include "store/transaction.h"

/* ---- reading ---- */

#define COLUMNS "number, sha256, development, certificates, used_from, used_until, reason"

static const struct member signer_columns[] =
	COLUMNS_OF(struct signer_record, number, sha256, development, certificates, used_from_us,
               used_until_us, reason);
static const struct row_type signer_type = ROW_TYPE(struct signer_record, signer_columns, NULL);

int store_list_signers(struct store *store, struct arena *arena, struct signer_record **ret_items,
                       size_t *ret_count, struct error *error)
{
	struct signer_record *items = NULL;
	bool more = false;
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {
		.query = db_query(connection, "SELECT " COLUMNS " FROM signers ORDER BY number"),
		.arena = arena,
	};
	*ret_count = 0;
	int result = row_list(&row, &signer_type, &items, ret_count, &more, SIGNERS_MAX, error);
	*ret_items = items;
	return end_read(connection, result);
}

static int read_list(struct store *store, const char *sql, struct arena *arena,
                     struct signed_signer_list *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {.query = db_query(connection, sql), .arena = arena};
	bool found = db_step(row.query);
	if (found) {
		ret->state = store_sha256(db_blob(row.query, 0));
		ret->signed_at_us = db_integer(row.query, 1);
		if (arena)
			ret->document = row_bytes(&row, 2);
	}
	return end_read(connection, row_result(&row, found, error));
}

int store_get_signer_list(struct store *store, struct arena *arena, struct signed_signer_list *ret,
                          struct error *error)
{
	return read_list(store, "SELECT state, signed_at, document FROM signer_lists", arena, ret,
	                 error);
}

int store_read_signer_list(struct store *store, struct signed_signer_list *ret, struct error *error)
{
	ret->document = slice_make("", 0);
	return read_list(store, "SELECT state, signed_at FROM signer_lists", NULL, ret, error);
}

/* The certificate in force, and what was in force before. */
struct signer_state {
	bool any;
	struct sha256 sha256; /* in force */
	bool development;
	bool operator_signed; /* an operator's key has signed, now or earlier */
};

static int read_signer_state(struct db_connection *connection, struct signer_state *ret,
                             struct error *error)
{
	struct signer_state signer_state = {0};
	struct db_query *query =
		db_query(connection, "SELECT sha256, development, used_until FROM signers ORDER BY number");
	while (db_step(query)) {
		bool development = db_integer(query, 1) != 0;
		signer_state.operator_signed |= !development;
		if (!db_is_null(query, 2))
			continue;
		signer_state.any = true;
		signer_state.sha256 = store_sha256(db_blob(query, 0));
		signer_state.development = development;
	}
	*ret = signer_state;
	return db_end(query, error);
}

int store_get_signer(struct store *store, struct sha256 *ret_sha256, bool *ret_any,
                     struct error *error)
{
	struct signer_state signer_state = {0};
	struct db_connection *connection = begin_read(store, &error);
	int result = read_signer_state(connection, &signer_state, error);
	*ret_sha256 = signer_state.sha256;
	*ret_any = signer_state.any;
	return end_read(connection, result);
}

static int is_known(struct db_connection *connection, const struct sha256 *sha256, bool *ret_known,
                    struct error *error)
{
	struct db_query *query = db_query(connection, "SELECT number FROM signers WHERE sha256 = $1");
	db_bind_blob(query, sha256, sizeof *sha256);
	*ret_known = db_step(query);
	return db_end(query, error);
}

/* ---- writing ---- */

static int check_room(struct db_connection *connection, struct error *error)
{
	struct db_query *query = db_query(connection, "SELECT COUNT(*) FROM signers");
	bool full = db_step(query) && db_integer(query, 0) >= SIGNERS_MAX;
	int result = db_end(query, error);
	if (result || !full)
		return result;
	char most[24];
	snprintf(most, sizeof most, "%d", SIGNERS_MAX);
	return error_set(error, ERR_FULL, MSG_STORE_SIGNERS_FULL, most, NULL);
}

static int add(struct db_connection *connection, const struct signer_candidate *candidate,
               int64_t now_us, struct error *error)
{
	int result = check_room(connection, error);
	if (result)
		return result;
	struct db_query *query = db_query(
		connection, "INSERT INTO signers (number, sha256, development, certificates, used_from)"
					" SELECT COALESCE(MAX(number), 0) + 1, $1, $2, $3, $4 FROM signers");
	db_bind(query, &candidate->sha256, candidate->development, candidate->certificates, now_us);
	return db_execute(query, NULL, error);
}

static int end(struct db_connection *connection, int64_t now_us, struct slice reason,
               struct error *error)
{
	struct db_query *query = db_query(
		connection, "UPDATE signers SET used_until = $1, reason = $2 WHERE used_until IS NULL");
	db_bind(query, now_us, reason);
	return db_execute(query, NULL, error);
}

/* Checks whether the candidate may come into force when none is. */
static int check_may_enter(struct db_connection *connection,
                           const struct signer_state *signer_state,
                           const struct signer_candidate *candidate, struct error *error)
{
	bool known = false;
	int result = is_known(connection, &candidate->sha256, &known, error);
	if (result)
		return result;
	if (known)
		return error_set(error, ERR_REFUSED, MSG_SIGNER_ENDED, NULL);
	if (candidate->development && signer_state->operator_signed)
		return error_set(error, ERR_REFUSED, MSG_SIGNER_DEVELOPMENT_LATE, NULL);
	return OK;
}

static int refuse_other(const struct signer_state *signer_state,
                        const struct signer_candidate *candidate, struct error *error)
{
	char hex[2 * SHA256_SIZE + 1];
	hex_encode(signer_state->sha256.bytes, SHA256_SIZE, hex);
	enum message message =
		!candidate->development && signer_state->development  ? MSG_SIGNER_GOES_LIVE
		: candidate->development && signer_state->development ? MSG_SIGNER_DEVELOPMENT_OTHER
		: candidate->development                              ? MSG_SIGNER_DEVELOPMENT_LATE
															  : MSG_SIGNER_OTHER;
	return error_set(error, ERR_REFUSED, message, hex, NULL);
}

/* A copy of a store does not contain the files of its development key. */
static bool may_replace_development(const struct signer_state *signer_state,
                                    const struct signer_candidate *candidate, bool alone)
{
	return alone && signer_state->development && candidate->development;
}

enum join { JOIN_IN_FORCE, JOIN_ENTERS, JOIN_REPLACES };

/* Chooses the candidate that signs from now on, and what has to be written. */
static int choose(struct db_connection *connection, const struct signer_candidate *candidates,
                  size_t count, bool alone, size_t *ret_index, enum join *ret_join,
                  struct error *error)
{
	struct signer_state signer_state;
	int result = read_signer_state(connection, &signer_state, error);
	*ret_join = JOIN_IN_FORCE;
	for (size_t i = 0; !result && signer_state.any && i < count; i++)
		if (sha256_equal(&candidates[i].sha256, &signer_state.sha256)) {
			*ret_index = i;
			return OK;
		}
	if (!result && signer_state.any &&
	    may_replace_development(&signer_state, &candidates[0], alone)) {
		*ret_index = 0;
		*ret_join = JOIN_REPLACES;
		return check_may_enter(connection, &signer_state, &candidates[0], error);
	}
	if (!result && signer_state.any)
		return refuse_other(&signer_state, &candidates[0], error);
	for (size_t i = 0; !result && i < count; i++) {
		result = check_may_enter(connection, &signer_state, &candidates[i], error);
		if (!result) {
			*ret_index = i;
			*ret_join = JOIN_ENTERS;
			return OK;
		}
		if (result == ERR_REFUSED && i + 1 < count)
			result = OK; /* the next candidate is tried */
	}
	return result;
}

static int join(struct db_connection *connection, const struct signer_candidate *candidates,
                size_t count, bool alone, int64_t now_us, size_t *ret_index, struct error *error)
{
	enum join what;
	int result = choose(connection, candidates, count, alone, ret_index, &what, error);
	if (!result && what == JOIN_REPLACES)
		result = end(connection, now_us, slice_of("its files were missing"), error);
	if (!result && what != JOIN_IN_FORCE)
		result = add(connection, &candidates[*ret_index], now_us, error);
	return result;
}

int store_check_signers(struct store *store, const struct signer_candidate *candidates,
                        size_t count, size_t *ret_index, struct error *error)
{
	enum join what;
	struct db_connection *connection = begin_read(store, &error);
	return end_read(connection, choose(connection, candidates, count, !store_is_shared(store),
	                                   ret_index, &what, error));
}

/* Reads whether the certificate in force is among the candidates. */
static int find_in_force(struct store *store, const struct signer_candidate *candidates,
                         size_t count, bool *ret_found, size_t *ret_index, struct error *error)
{
	struct sha256 in_force;
	bool any = false;
	int result = store_get_signer(store, &in_force, &any, error);
	for (size_t i = 0; i < count && !result && any && !*ret_found; i++) {
		*ret_found = sha256_equal(&candidates[i].sha256, &in_force);
		*ret_index = *ret_found ? i : *ret_index;
	}
	return result;
}

int store_join_signers(struct store *store, const struct signer_candidate *candidates, size_t count,
                       size_t *ret_index, struct error *error)
{
	size_t index = 0;
	/* In that case nothing is written, so that a start does not wait for a commit that waits for
	 * its standby. */
	bool found = false;
	int result = find_in_force(store, candidates, count, &found, ret_index, error);
	if (result || found)
		return result;
	struct db_connection *connection = begin_write(store, &error);
	result = end_write(connection,
	                   join(connection, candidates, count, !store_is_shared(store),
	                        store_now_us(store), &index, error),
	                   error);
	if (!result)
		*ret_index = index;
	return result;
}

static int replace(struct db_connection *connection, const struct signer_candidate *next,
                   const struct sha256 *former, int64_t now_us, struct slice reason,
                   struct error *error)
{
	struct signer_state signer_state;
	int result = read_signer_state(connection, &signer_state, error);
	if (result)
		return result;
	if (signer_state.any && sha256_equal(&signer_state.sha256, &next->sha256))
		return OK;
	if (former && (!signer_state.any || !sha256_equal(&signer_state.sha256, former)))
		return OK;
	result = check_may_enter(connection, &signer_state, next, error);
	if (!result)
		result = end(connection, now_us, reason, error);
	return result ? result : add(connection, next, now_us, error);
}

int store_replace_signer(struct store *store, const struct signer_candidate *next,
                         const struct sha256 *former, struct slice reason, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	return end_write(connection,
	                 replace(connection, next, former, store_now_us(store), reason, error), error);
}

int store_end_signer(struct store *store, struct slice reason, struct error *error)
{
	struct signer_state signer_state;
	struct db_connection *connection = begin_write(store, &error);
	int result = read_signer_state(connection, &signer_state, error);
	if (!result && !signer_state.any)
		result = error_set(error, ERR_REFUSED, MSG_SIGNER_NONE, NULL);
	if (!result)
		result = end(connection, store_now_us(store), reason, error);
	return end_write(connection, result, error);
}

int store_put_signer_list(struct store *store, const struct signed_signer_list *list,
                          struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	struct db_query *query =
		db_query(connection, "INSERT INTO signer_lists (number, state, signed_at, document)"
	                         " VALUES (1, $1, $2, $3) ON CONFLICT (number) DO UPDATE SET"
	                         " state = excluded.state, signed_at = excluded.signed_at,"
	                         " document = excluded.document");
	db_bind(query, &list->state, list->signed_at_us, db_bytes(list->document));
	return end_write(connection, db_execute(query, NULL, error), error);
}
