/* Lookup of keys, and reading of channels with their configuration versions. */
#include <stdio.h>

#include "store/accounts/accounts.h"
#include "store/transaction.h"

#define KEY                                                                                        \
	"SELECT api_keys.account, api_keys.channel, api_keys.key, account_id, "                        \
	"channels.channel_id, key_id, mode, modality, revoked_at, accounts.suspended, "                \
	"channels.suspended, disabled, rate_live, expires_at, bound_rate FROM api_keys "               \
	"JOIN accounts ON accounts.account = api_keys.account "                                        \
	"JOIN channels ON channels.account = api_keys.account "                                        \
	"AND channels.channel = api_keys.channel "                                                     \
	"JOIN channel_configs ON channel_configs.account = api_keys.account "                          \
	"AND channel_configs.channel = api_keys.channel "                                              \
	"AND channel_configs.version = channels.config_version WHERE key_hash = $1"

/* The same columns for account $1 and channel $2, with the values of the key's row as $3 to $7. */
#define KEY_OF_CHANNEL                                                                             \
	"SELECT accounts.account, channels.channel, CAST($3 AS BIGINT), account_id,"                   \
	" channels.channel_id, CAST($4 AS TEXT), CAST($5 AS TEXT), modality, CAST($6 AS BIGINT),"      \
	" accounts.suspended, channels.suspended, disabled, rate_live, CAST($7 AS BIGINT),"            \
	" bound_rate"                                                                                  \
	" FROM accounts JOIN channels ON channels.account = accounts.account"                          \
	" JOIN channel_configs ON channel_configs.account = channels.account"                          \
	" AND channel_configs.channel = channels.channel"                                              \
	" AND channel_configs.version = channels.config_version"                                       \
	" WHERE accounts.account = $1 AND channels.account = $1 AND channel_configs.account = $1"      \
	" AND channels.channel = $2"

struct key_row {
	int64_t account, channel, key, revoked_at_us, expires_at_us;
	char key_id[ID_SIZE], mode[8];
};

static bool read_key_row(struct db_connection *reader, const struct sha256 *key_hash,
                         struct key_row *ret)
{
	struct db_query *query =
		db_query(reader, "SELECT account, channel, key, revoked_at, expires_at,"
	                     " key_id, mode FROM api_keys WHERE key_hash = $1");
	db_bind_blob(query, key_hash->bytes, SHA256_SIZE);
	bool found = db_step(query);
	if (found) {
		*ret = (struct key_row){
			.account = db_integer(query, 0),
			.channel = db_integer(query, 1),
			.key = db_integer(query, 2),
			.revoked_at_us = row_time(query, 3),
			.expires_at_us = row_time(query, 4),
		};
		store_copy_id(ret->key_id, db_text(query, 5));
		struct slice mode = db_text(query, 6);
		snprintf(ret->mode, sizeof ret->mode, "%.*s", (int)mode.size, mode.data);
	}
	db_release(query);
	return found;
}

/* The digest alone does not determine a shard. With shards, the row of the key, which is on no
 * shard, is read first, and the rest on the shard of its account. Returns NULL when there is no
 * such key or a read failed. */
static struct db_query *ask_key(struct db_connection *reader, const struct sha256 *key_hash)
{
	struct key_row row;
	if (!db_is_sharded(db_of(reader))) {
		struct db_query *query = db_query(reader, KEY);
		db_bind_blob(query, key_hash->bytes, SHA256_SIZE);
		return query;
	}
	if (!read_key_row(reader, key_hash, &row) || db_check_reachable(reader, row.account, NULL))
		return NULL;
	struct db_query *query = db_query(reader, KEY_OF_CHANNEL);
	db_bind(query, row.account, row.channel, row.key, row.key_id, row.mode,
	        db_null_if(row.revoked_at_us, TIME_NONE), db_null_if(row.expires_at_us, TIME_NONE));
	db_send(query); /* sent while `row` is still valid */
	return query;
}

int store_find_key(struct store *store, const struct sha256 *key_hash, struct key_identity *ret,
                   struct error *error)
{
	struct db_connection *reader = db_take_reader(store->db);
	struct db_query *query = ask_key(reader, key_hash);
	if (!query) {
		int failed = db_get_failure(reader, error);
		db_give(reader);
		return failed ? failed : ERR_NOT_FOUND;
	}
	struct row row = {.query = query};
	struct key_identity key = {0};
	bool found = db_step(query);
	if (found) {
		key = (struct key_identity){
			.account = db_integer(query, 0),
			.channel = db_integer(query, 1),
			.key = db_integer(query, 2),
			.revoked = !db_is_null(query, 8),
			.account_suspended = db_integer(query, 9) != 0,
			.channel_suspended = db_integer(query, 10) != 0,
			.account_disabled = db_integer(query, 11) != 0,
			.rate = db_integer(query, 12),
			.expires_at_us = db_integer(query, 13),
			.account_rate = db_integer(query, 14),
		};
		store_copy_id(key.account_id, db_text(query, 3));
		store_copy_id(key.channel_id, db_text(query, 4));
		store_copy_id(key.key_id, db_text(query, 5));
		row_expect(&row, mode_parse(db_text(query, 6), &key.mode), "mode", 6, key.key_id);
		row_expect(&row, modality_parse(db_text(query, 7), &key.modality), "modality", 7,
		           key.channel_id);
		key.chain = chain_number(key.channel, key.mode);
	}
	int result = row_result(&row, found, error);
	db_give(reader);
	if (!result)
		*ret = key;
	return result;
}

static char *copy_column(struct arena *arena, struct db_query *query, int column)
{
	if (db_is_null(query, column))
		return NULL;
	struct slice text = db_text(query, column);
	return arena_copy(arena, text.data, text.size);
}

/* Versions are numbered from 1 without gaps. */
static int read_configs(struct db_connection *reader, struct arena *arena, struct channel *channel,
                        int64_t before, int64_t limit, struct error *error)
{
	struct db_query *query =
		db_query(reader, "SELECT config_version FROM channels WHERE account = $1 AND channel = $2");
	db_bind(query, channel->account, channel->channel);
	int64_t last = db_step(query) ? db_integer(query, 0) : 0;
	int result = db_end(query, error);
	if (result)
		return result;
	if (last >= before)
		last = before - 1;
	int64_t first = last > limit ? last - limit + 1 : 1;
	size_t count = last < first ? 0 : (size_t)(last - first + 1);
	channel->configs = arena_alloc(arena, (count + 1) * sizeof *channel->configs);
	if (!channel->configs)
		return ERR_NO_MEMORY;
	query = db_query(reader, "SELECT version, sealed_at, modality, name, description, declarant, "
	                         "supplementary_info, config_hash FROM channel_configs "
	                         "WHERE account = $1 AND channel = $2 AND version >= $3 "
	                         "ORDER BY version LIMIT $4");
	db_bind(query, channel->account, channel->channel, first, (int64_t)count);
	while (channel->config_count < count && db_step(query)) {
		struct channel_config *config = &channel->configs[channel->config_count++];
		config->facts = (struct config_facts){
			.channel_id = channel->channel_id,
			.version = db_integer(query, 0),
			.sealed_at_us = db_integer(query, 1),
			.name = copy_column(arena, query, 3),
			.description = copy_column(arena, query, 4),
			.declarant = copy_column(arena, query, 5),
			.supplementary_info = copy_column(arena, query, 6),
		};
		if (!modality_parse(db_text(query, 2), &config->facts.modality))
			result = unknown_text("modality", db_text(query, 2), channel->channel_id, error);
		if (!config->facts.name || !config->facts.declarant)
			result = ERR_NO_MEMORY;
		config->hash = store_sha256(db_blob(query, 7));
	}
	int ended = db_end(query, error);
	return ended ? ended : result;
}

int store_get_channel_versions(struct store *store, int64_t account, int64_t channel,
                               int64_t before, int64_t limit, struct arena *arena,
                               struct channel *ret, struct error *error)
{
	struct db_connection *reader = db_take_reader(store->db);
	int result = db_begin(reader, error);
	struct channel found = {.account = account, .channel = channel};
	struct db_query *query =
		db_query(reader, "SELECT channel_id, account_id "
	                     "FROM channels JOIN accounts ON accounts.account = channels.account "
	                     "WHERE channels.account = $1 AND channel = $2");
	db_bind(query, account, channel);
	bool present = db_step(query);
	if (present) {
		store_copy_id(found.channel_id, db_text(query, 0));
		store_copy_id(found.account_id, db_text(query, 1));
	}
	if (!result)
		result = db_end(query, error);
	if (!result && !present)
		result = ERR_NOT_FOUND;
	if (!result)
		result = read_configs(reader, arena, &found, before, limit, error);
	db_give(reader);
	if (result)
		return result;
	*ret = found;
	for (size_t i = 0; i < ret->config_count; i++)
		ret->configs[i].facts.channel_id = ret->channel_id;
	return OK;
}
