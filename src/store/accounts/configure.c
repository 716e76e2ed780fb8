/* Administration of channels: creation, sealed configuration versions and chains. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/tuned.h"
#include "store/accounts/account_bounds.h"
#include "store/accounts/accounts.h"
#include "store/shards/shard_routing.h"
#include "store/transaction.h"

#define DOCUMENT_MAX ((size_t)64 * 1024) /* four texts of CONFIG_TEXT_MAX, fully escaped */

static int refuse_full(enum message message, int64_t most, struct error *error)
{
	char number[24];
	snprintf(number, sizeof number, "%" PRId64, most);
	return error_set(error, ERR_FULL, message, number, NULL);
}

static int digest_config(const struct config_facts *facts, struct sha256 *ret, struct error *error)
{
	BUF_AUTO struct buf document;
	buf_init(&document, DOCUMENT_MAX);
	config_document(facts, &document);
	int result = buf_check(&document);
	if (result)
		return error_cause(error, result, "a configuration document of channel %s",
		                   facts->channel_id);
	*ret = sha256_of(document.data, document.size);
	return OK;
}

static int insert_config(struct db_connection *connection, int64_t account, int64_t channel,
                         const struct config_facts *facts, struct error *error)
{
	struct sha256 hash;
	int result = digest_config(facts, &hash, error);
	if (result)
		return result;
	struct db_query *query = db_query(
		connection, "INSERT INTO channel_configs (account, channel, version, sealed_at, modality,"
					" name, description, declarant, supplementary_info, config_hash)"
					" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)");
	db_bind(query, account, channel, facts->version, facts->sealed_at_us,
	        modality_text(facts->modality), facts->name, facts->description, facts->declarant,
	        facts->supplementary_info, &hash);
	return db_execute(query, NULL, error);
}

/* ---- creation ---- */

static int insert_chain(struct db_connection *connection, int64_t account, int64_t channel,
                        enum mode mode, const char *channel_id, int64_t now_us, struct error *error)
{
	BUF_AUTO struct buf document;
	buf_init(&document, DOCUMENT_MAX);
	const struct genesis_facts facts = {channel_id, mode, now_us};
	genesis_document(&facts, &document);
	int result = buf_check(&document);
	if (result)
		return error_cause(error, result, "a genesis document");
	struct sha256 genesis = sha256_of(document.data, document.size);
	assert(channel >= 1 && channel <= CHANNEL_MAX);
	struct db_query *query =
		db_query(connection, "INSERT INTO chains (account, chain, created_at, genesis_hash,"
	                         " last_chain_hash) VALUES ($1, $2, $3, $4, $4)");
	db_bind(query, account, chain_number(channel, mode), now_us, &genesis);
	return db_execute(query, NULL, error);
}

#define INSERTED(numbered)                                                                         \
	"INSERT INTO channels (account, channel_id, created_at, channel, config_version) " numbered    \
	" RETURNING channel"

static int insert_channel(struct db_connection *connection, int64_t account, const char *channel_id,
                          int64_t now_us, int64_t *ret_channel, struct error *error)
{
	bool sharded = db_is_sharded(db_of(connection));
	int64_t number = 0;
	int result = sharded ? routing_take_number(connection, ROUTING_CHANNELS, &number, error) : OK;
	if (result)
		return result;
	struct db_query *query =
		sharded
			? db_query(connection, INSERTED("VALUES ($1, $2, $3, $4, 1)"))
			: db_query(
				  connection,
				  INSERTED("SELECT $1, $2, $3, COALESCE(MAX(channel), $4) + 1, 1 FROM channels"));
	db_bind(query, account, channel_id, now_us);
	db_bind_integer(query, sharded ? number : tuned("channels_before", 0));
	*ret_channel = db_step(query) ? db_integer(query, 0) : 0;
	result = db_execute(query, NULL, error);
	if (!result && *ret_channel > CHANNEL_MAX)
		result = refuse_full(MSG_STORE_CHANNELS_FULL, CHANNEL_MAX, error);
	return result;
}

static int create_channel(struct db_connection *connection, struct slice account_id,
                          const struct config_facts *config, int64_t most, const char *channel_id,
                          int64_t now_us, struct error *error)
{
	int64_t account = 0, channel = 0;
	int result = find_account_number(connection, account_id, &account, error)
		?: lock_account(connection, account, error)
		?: check_account_channels(connection, account, most, error)
		?: insert_channel(connection, account, channel_id, now_us, &channel, error)
		?: insert_chain(connection, account, channel, MODE_LIVE, channel_id, now_us, error)
		?: insert_chain(connection, account, channel, MODE_TEST, channel_id, now_us, error);
	if (result)
		return result;
	struct config_facts facts = *config;
	facts.channel_id = channel_id;
	facts.version = 1;
	facts.sealed_at_us = now_us;
	return insert_config(connection, account, channel, &facts, error);
}

int store_create_channel(struct store *store, struct slice account_id,
                         const struct config_facts *config, int64_t most, int64_t now_us,
                         char ret_channel_id[ID_SIZE], struct error *error)
{
	char channel_id[ID_SIZE];
	store_fresh_id("chn_", channel_id);
	struct db_connection *connection = begin_write(store, &error);
	int result = create_channel(connection, account_id, config, most, channel_id, now_us, error);
	audit_add_created(connection, "channel_id", channel_id);
	result = end_write(connection, result, error);
	if (!result)
		memcpy(ret_channel_id, channel_id, ID_SIZE);
	return result;
}

/* ---- reading ---- */

#define CHANNEL_COLUMNS                                                                            \
	"SELECT c.account, c.channel, c.channel_id, a.account_id, c.created_at, c.suspended,"          \
	" v.modality, v.version, v.name, v.declarant,"                                                 \
	" l.last_sequence, " SEALED_SEQUENCE(                                                          \
		"l") ", t.last_sequence"                                                                   \
			 " FROM channels c JOIN accounts a ON a.account = c.account"                           \
			 " JOIN channel_configs v ON v.account = c.account AND v.channel = c.channel"          \
			 " AND v.version = c.config_version"                                                   \
			 " JOIN chains l ON l.account = c.account AND l.chain = c.channel * 2"                 \
			 " JOIN chains t ON t.account = c.account AND t.chain = c.channel * 2 + 1"

static const struct member channel_columns[] = COLUMNS_OF(
	struct channel_record, account, channel, channel_id, account_id, created_at_us, suspended,
	modality, config_version, name, declarant, live_events, live_sealed, test_events);

static void complete_channel(struct row *row, void *to)
{
	struct channel_record *record = to;
	row_expect(row, modality_parse(db_text(row->query, 6), &record->modality), "modality", 6,
	           record->channel_id);
}

static const struct row_type channel_type =
	ROW_TYPE(struct channel_record, channel_columns, complete_channel);

int store_find_channel(struct store *store, struct slice channel_id, struct arena *arena,
                       struct channel_record *ret, struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	struct row row = {.arena = arena,
	                  .query = routing_query_one(
						  connection, ROUTING_PLACE("channels", "channel_id"), channel_id,
						  ROUTING_TEXTS(CHANNEL_COLUMNS " WHERE c.channel_id = $1", "c."))};
	struct channel_record record;
	int result = end_read(connection, row_find(&row, &channel_type, &record, MSG_STORE_NO_CHANNEL,
	                                           channel_id, error));
	if (!result)
		*ret = record;
	return result;
}

#define LISTED(of)                                                                                 \
	CHANNEL_COLUMNS " WHERE ($1 = 0 OR c.account = $1) AND c.channel > $2" of                      \
					" ORDER BY c.channel LIMIT $3"
#define OF_EACH(parameter)                                                                         \
	WORK_ACCOUNTS("c", parameter)                                                                  \
	WORK_ACCOUNTS("a", parameter)                                                                  \
	WORK_ACCOUNTS("v", parameter) WORK_ACCOUNTS("l", parameter) WORK_ACCOUNTS("t", parameter)

int store_list_channels(struct store *store, struct slice account_id, struct slice after,
                        int64_t limit, struct arena *arena, struct channel_list *ret,
                        struct error *error)
{
	struct db_connection *connection = begin_read(store, &error);
	int64_t account, after_channel;
	int result = find_filters(connection, account_id, after, &account, &after_channel, error);
	if (result)
		return end_read(connection, result);
	SHARD_WORK_AUTO struct work_accounts of = {0};
	result =
		routing_find_page(connection, account ? account : ROUTING_ALL,
	                      "SELECT account FROM {channels} WHERE channel > ? ORDER BY channel",
	                      &(struct routing_value){.number = after_channel}, limit + 1, &of, error);
	if (result)
		return end_read(connection, result);
	struct row row = {.arena = arena,
	                  .query = routing_query(connection, &of, LISTED(""), LISTED(OF_EACH("$4")))};
	db_bind(row.query, account, after_channel, limit + 1);
	shard_work_bind(row.query, &of);
	struct channel_list list = {.partial = of.partial};
	result = end_read(connection, row_list(&row, &channel_type, LIST_OF(&list), limit, error));
	if (!result)
		*ret = list;
	return result;
}

/* ---- configuration ---- */

struct config_state {
	struct config_facts facts;
	bool has_events;
};

static int load_config(struct db_connection *connection, int64_t account, int64_t channel,
                       struct slice channel_id, struct arena *arena, struct config_state *ret,
                       struct error *error)
{
	struct row row = {
		.arena = arena,
		.query =
			db_query(connection, "SELECT v.version, v.sealed_at, v.modality, v.name, v.description,"
	                             " v.declarant, v.supplementary_info,"
	                             " (SELECT SUM(h.last_sequence) FROM chains h WHERE h.account = $1"
	                             " AND h.chain IN (c.channel * 2, c.channel * 2 + 1))"
	                             " FROM channels c JOIN channel_configs v ON v.account = c.account"
	                             " AND v.channel = c.channel AND v.version = c.config_version"
	                             " WHERE c.account = $1 AND c.channel = $2")};
	db_bind(row.query, account, channel);
	bool found = db_step(row.query);
	if (found) {
		*ret = (struct config_state){.facts = {.version = db_integer(row.query, 0),
		                                       .sealed_at_us = db_integer(row.query, 1),
		                                       .name = row_string(&row, 3),
		                                       .description = row_string(&row, 4),
		                                       .declarant = row_string(&row, 5),
		                                       .supplementary_info = row_string(&row, 6)},
		                             .has_events = db_integer(row.query, 7) > 0};
		char id[ID_SIZE];
		store_copy_id(id, channel_id);
		row_expect(&row, modality_parse(db_text(row.query, 2), &ret->facts.modality), "modality", 2,
		           id);
	}
	return row_end(&row, found, MSG_STORE_NO_CHANNEL, channel_id, error);
}

/* Replaces the text; returns whether `given` differs from it. */
static bool replace(const char **text, const char *given, bool nullable)
{
	if (!given)
		return false;
	if (nullable && !*given)
		given = NULL;
	bool same = given && *text ? strcmp(given, *text) == 0 : given == *text;
	*text = given;
	return !same;
}

/* Applies the change to the facts. Returns ERR_REFUSED when the modality can no longer change. */
static int apply_change(struct config_state *state, const struct config_change *change,
                        bool *ret_changed, struct error *error)
{
	struct config_facts *facts = &state->facts;
	bool modality = change->modality >= 0 && (enum modality)change->modality != facts->modality;
	if (modality && state->has_events)
		return error_set(error, ERR_REFUSED, MSG_STORE_MODALITY_FIXED,
		                 modality_text(facts->modality), NULL);
	if (modality)
		facts->modality = (enum modality)change->modality;
	bool changed = modality;
	changed |= replace(&facts->name, change->name, false);
	changed |= replace(&facts->description, change->description, true);
	changed |= replace(&facts->declarant, change->declarant, false);
	changed |= replace(&facts->supplementary_info, change->supplementary_info, true);
	*ret_changed = changed;
	return OK;
}

static int check_day(struct db_connection *connection, int64_t account, int64_t channel,
                     const struct config_facts *facts, struct error *error)
{
	struct db_query *query =
		db_query(connection, "SELECT sealed_at FROM channel_configs WHERE account = $1"
	                         " AND channel = $2 AND version = $3");
	db_bind(query, account, channel, facts->version - CONFIG_VERSIONS_PER_DAY);
	int64_t former_us = db_step(query) ? db_integer(query, 0) : TIME_NONE;
	int result = db_end(query, error);
	if (result || day_has_room(facts->sealed_at_us, former_us))
		return result;
	return refuse_full(MSG_STORE_CONFIGS_DAY, CONFIG_VERSIONS_PER_DAY, error);
}

static int configure_channel(struct db_connection *connection, struct slice channel_id,
                             const struct config_change *change, int64_t now_us,
                             int64_t *ret_version, bool *ret_changed, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, DOCUMENT_MAX);
	int64_t account = 0, channel = 0;
	struct config_state state = {0};
	int result = find_channel_number(connection, channel_id, &account, &channel, error)
		?: lock_account(connection, account, error)
		?: load_config(connection, account, channel, channel_id, &arena, &state, error)
		?: apply_change(&state, change, ret_changed, error);
	if (result)
		return result;
	struct config_facts *facts = &state.facts;
	*ret_version = facts->version + *ret_changed;
	if (!*ret_changed)
		return OK;
	if (facts->version >= CONFIG_VERSION_MAX)
		return refuse_full(MSG_STORE_CONFIGS_FULL, CONFIG_VERSION_MAX, error);
	char id[ID_SIZE];
	store_copy_id(id, channel_id);
	facts->channel_id = id;
	facts->version = *ret_version;
	facts->sealed_at_us = now_us > facts->sealed_at_us ? now_us : facts->sealed_at_us;
	result = check_day(connection, account, channel, facts, error);
	if (result)
		return result;
	result = insert_config(connection, account, channel, facts, error);
	if (result)
		return result;
	struct db_query *query = db_query(
		connection, "UPDATE channels SET config_version = $3 WHERE account = $1 AND channel = $2");
	db_bind(query, account, channel, facts->version);
	return db_execute(query, NULL, error);
}

int store_configure_channel(struct store *store, struct slice channel_id,
                            const struct config_change *change, int64_t now_us,
                            int64_t *ret_version, bool *ret_changed, struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	int64_t version = 0;
	bool changed = false;
	int result =
		configure_channel(connection, channel_id, change, now_us, &version, &changed, error);
	result = end_write(connection, result, error);
	if (result)
		return result;
	*ret_version = version;
	*ret_changed = changed;
	return OK;
}

int store_suspend_channel(struct store *store, struct slice channel_id, bool suspended,
                          struct error *error)
{
	struct db_connection *connection = begin_write(store, &error);
	int64_t account = 0, channel = 0;
	int result = find_channel_number(connection, channel_id, &account, &channel, error);
	if (!result) {
		struct db_query *query = db_query(
			connection, "UPDATE channels SET suspended = $3 WHERE account = $1 AND channel = $2");
		db_bind(query, account, channel, suspended);
		result = db_execute(query, NULL, error);
	}
	return end_write(connection, result, error);
}
