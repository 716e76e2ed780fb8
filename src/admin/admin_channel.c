/* Channels, their configuration versions and their keys. */
#include <assert.h>

#include "admin/admin_call.h"
#include "base/clock.h"
#include "service/keys.h"
#include "store/accounts/accounts.h"

#define DECLARANT_MAX 500
#define VERSIONS_DEFAULT 50

static void channel_members(struct json_writer *out, const struct channel_record *channel)
{
	ADMIN_PUT(out, channel, channel_id, account_id, name);
	json_text(out, "modality", modality_text(channel->modality));
	ADMIN_PUT(out, channel, declarant, config_version, suspended, live_events);
	json_integer(out, "sealed_events", channel->live_sealed);
	ADMIN_PUT(out, channel, test_events, created_at_us);
}

static void config_object(struct json_writer *out, const struct channel_config *config)
{
	json_begin_object(out, NULL);
	ADMIN_PUT(out, &config->facts, version, sealed_at_us);
	json_text(out, "modality", modality_text(config->facts.modality));
	ADMIN_PUT(out, &config->facts, name, description, declarant, supplementary_info);
	json_hex(out, "config_hash", config->hash.bytes, SHA256_SIZE);
	json_end_object(out);
}

/* Writes a channel; `changed` -1: omit this member. */
static int put_channel(const struct admin_call *call, struct slice channel_id, int changed,
                       int64_t before, int64_t limit, struct json_writer *out, struct error *error)
{
	struct channel_record record;
	struct channel channel;
	int result = store_find_channel(call->admin->store, channel_id, call->arena, &record, error);
	if (!result)
		result = store_get_channel_versions(call->admin->store, record.account, record.channel,
		                                    before, limit, call->arena, &channel, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	channel_members(out, &record);
	if (changed >= 0)
		json_boolean(out, "changed", changed);
	json_begin_array(out, "config_versions");
	for (size_t i = 0; i < channel.config_count; i++)
		config_object(out, &channel.configs[i]);
	json_end_array(out);
	json_boolean(out, "has_more", channel.config_count && channel.configs[0].facts.version > 1);
	json_end_object(out);
	return OK;
}

static int show_channel(const struct admin_call *call, struct slice channel_id, int changed,
                        struct json_writer *out, struct error *error)
{
	return put_channel(call, channel_id, changed, INT64_MAX, VERSIONS_DEFAULT, out, error);
}

static const char *text_or_null(const char *text)
{
	return text && *text ? text : NULL;
}

static int run_create(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct config_facts config = {
		.name = admin_text(call, "name"),
		.declarant = admin_text(call, "declarant"),
		.description = text_or_null(admin_text(call, "description")),
		.supplementary_info = text_or_null(admin_text(call, "supplementary_info")),
	};
	bool known = modality_parse(admin_slice(call, "modality"), &config.modality);
	assert(known); /* one of the operation's choices */
	char channel_id[ID_SIZE];
	/* A configuration is evidence, so it uses the clock of events. */
	int result = store_create_channel(call->admin->store, admin_slice(call, "account"), &config,
	                                  call->admin->settings->account_channels, clock_now_us(),
	                                  channel_id, error);
	return result ? result : show_channel(call, slice_of(channel_id), -1, out, error);
}

static int run_list(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct channel_list list;
	int result = store_list_channels(
		call->admin->store, admin_slice(call, "account"), admin_slice(call, "after"),
		admin_integer(call, "limit", ADMIN_LIST_DEFAULT), call->arena, &list, error);
	if (result)
		return result;
	ADMIN_PUT_LIST(out, &list, item, channel_members(out, item));
	list_end_partial(out, list.more, list.partial);
	return OK;
}

static int run_show(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	return put_channel(call, admin_slice(call, "channel"), -1,
	                   admin_integer(call, "before", INT64_MAX),
	                   admin_integer(call, "limit", VERSIONS_DEFAULT), out, error);
}

static int run_configure(const struct admin_call *call, struct json_writer *out,
                         struct error *error)
{
	struct config_change change = {
		.name = admin_text(call, "name"),
		.description = admin_text(call, "description"),
		.declarant = admin_text(call, "declarant"),
		.supplementary_info = admin_text(call, "supplementary_info"),
		.modality = -1,
	};
	enum modality modality;
	if (admin_given(call, "modality") && modality_parse(admin_slice(call, "modality"), &modality))
		change.modality = (int)modality;
	if (!change.name && !change.description && !change.declarant && !change.supplementary_info &&
	    change.modality < 0)
		return error_set(error, ERR_USAGE, MSG_ADMIN_NOTHING_TO_CHANGE, NULL);
	int64_t version;
	bool changed;
	struct slice channel_id = admin_slice(call, "channel");
	int result = store_configure_channel(call->admin->store, channel_id, &change, clock_now_us(),
	                                     &version, &changed, error);
	return result ? result : show_channel(call, channel_id, changed, out, error);
}

static int suspend(const struct admin_call *call, bool suspended, struct json_writer *out,
                   struct error *error)
{
	struct slice channel_id = admin_slice(call, "channel");
	int result = store_suspend_channel(call->admin->store, channel_id, suspended, error);
	return result ? result : show_channel(call, channel_id, -1, out, error);
}

static int run_suspend(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	return suspend(call, true, out, error);
}

static int run_resume(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	return suspend(call, false, out, error);
}

/* ---- keys ---- */

static int run_key_create(const struct admin_call *call, struct json_writer *out,
                          struct error *error)
{
	enum mode mode;
	bool known = mode_parse(admin_slice(call, "mode"), &mode);
	assert(known); /* one of the operation's choices */
	const char *name = text_or_null(admin_text(call, "name"));
	char key[KEY_TEXT_MAX], key_id[ID_SIZE], last_four[5];
	int64_t expires_at_us;
	int result = admin_moment(call, "expires", 1, TIME_NONE, &expires_at_us, error);
	if (!result && expires_at_us != TIME_NONE && expires_at_us <= clock_now_us())
		result = error_set(error, ERR_USAGE, MSG_ADMIN_PAST, FIELD("expires"), NULL);
	if (result)
		return result;
	key_generate(call->admin->settings->service_prefix, mode, key);
	struct sha256 hash = sha256_of(key, strlen(key));
	memcpy(last_four, key + strlen(key) - 4, sizeof last_four);
	result = store_create_key(call->admin->store, admin_slice(call, "channel"), mode, name,
	                          expires_at_us, &hash, last_four, call->admin->settings->account_keys,
	                          call->now_us, key_id, error);
	if (!result) {
		json_begin_object(out, NULL);
		json_text(out, "key_id", key_id);
		json_text(out, "channel_id", admin_text(call, "channel"));
		json_text(out, "mode", mode_text(mode));
		json_text(out, "name", name);
		json_text(out, "key", key);
		json_text(out, "last_four", last_four);
		json_time(out, "created_at", call->now_us);
		json_time(out, "expires_at", expires_at_us);
		json_end_object(out);
	}
	explicit_bzero(key, sizeof key);
	return result;
}

static const char *key_state(const struct key_record *key, int64_t now_us)
{
	if (key->revoked_at_us != TIME_NONE)
		return "revoked";
	return key->expires_at_us != TIME_NONE && key->expires_at_us <= now_us ? "expired" : "valid";
}

static int run_key_list(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct key_list list;
	int result = store_list_keys(call->admin->store, admin_slice(call, "account"),
	                             admin_slice(call, "channel"), admin_slice(call, "after"),
	                             admin_integer(call, "limit", ADMIN_LIST_DEFAULT), call->arena,
	                             &list, error);
	if (result)
		return result;
	list_begin(out);
	for (size_t i = 0; i < list.count; i++) {
		const struct key_record *item = &list.items[i];
		json_begin_object(out, NULL);
		ADMIN_PUT(out, item, key_id, channel_id, channel_name, account_id);
		json_text(out, "mode", mode_text(item->mode));
		ADMIN_PUT(out, item, name, last_four);
		json_text(out, "state", key_state(item, call->now_us));
		ADMIN_PUT(out, item, created_at_us, expires_at_us, revoked_at_us, last_used_at_us, reason);
		json_end_object(out);
	}
	list_end(out, list.more);
	return OK;
}

static int run_key_expire(const struct admin_call *call, struct json_writer *out,
                          struct error *error)
{
	int64_t expires_at_us = TIME_NONE;
	bool never = slice_is(admin_slice(call, "at"), "never");
	int result = never ? OK : admin_moment(call, "at", 1, TIME_NONE, &expires_at_us, error);
	if (!result)
		result =
			store_expire_key(call->admin->store, admin_slice(call, "key"), expires_at_us, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	json_text(out, "key_id", admin_text(call, "key"));
	json_time(out, "expires_at", expires_at_us);
	json_end_object(out);
	return OK;
}

static int run_key_revoke(const struct admin_call *call, struct json_writer *out,
                          struct error *error)
{
	int64_t revoked_at_us;
	int result = store_revoke_key(call->admin->store, admin_slice(call, "key"),
	                              admin_text(call, "reason"), call->now_us, &revoked_at_us, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	json_text(out, "key_id", admin_text(call, "key"));
	json_time(out, "revoked_at", revoked_at_us);
	json_end_object(out);
	return OK;
}

#define CHANNEL ADMIN_POSITIONAL_ID("channel", "CHANNEL", "the channel")
#define TEXT_FLAG(member, text)                                                                    \
	{                                                                                              \
		.name = member, .kind = ADMIN_TEXT, .place = "TEXT", .most = CONFIG_TEXT_MAX, .help = text \
	}
#define DESCRIPTIONS                                                                               \
	TEXT_FLAG("description", "purpose of the channel; \"\": none"),                                \
		TEXT_FLAG("supplementary_info", "meaning of the declared data; \"\": none")

const struct admin_operation admin_channel_operations[] = {
	{.name = "channel create",
     .summary = "create a channel and seal version 1 of its configuration",
     .changes = true,
     .parameters = {ADMIN_FLAG_ID("account", "ACCOUNT", true, "the account that owns it"),
                    ADMIN_FLAG_LINE("name", true, 1, ADMIN_LINE_MAX, "its name"),
                    ADMIN_FLAG_LINE("declarant", true, 1, DECLARANT_MAX,
                                    "person or entity on whose behalf events are declared"),
                    ADMIN_FLAG_CHOICE("modality", true, "content|hash_only",
                                      "whether the service stores the declared content"),
                    DESCRIPTIONS},
     .run = run_create},
	{.name = "channel list",
     .summary = "list channels",
     .columns =
         "channel_id account_id name modality config_version live_events test_events suspended",
     .parameters = {ADMIN_FLAG_ID("account", "ACCOUNT", false, "only those of this account"),
                    ADMIN_LIST_LIMIT, ADMIN_LIST_AFTER},
     .run = run_list},
	{.name = "channel show",
     .summary = "show a channel with its sealed configuration versions; the last one is in force",
     .parameters = {CHANNEL,
                    ADMIN_FLAG_INTEGER("limit", false, 1, ADMIN_LIST_MAX,
                                       "maximum number of versions, newest first (50 by default)"),
                    ADMIN_FLAG_INTEGER(
						"before", false, 1, ADMIN_NUMBER_MAX,
						"only versions below this one, the first of the previous page")},
     .run = run_show},
	{.name = "channel configure",
     .summary = "seal a new configuration version if anything differs",
     .changes = true,
     .parameters = {CHANNEL, ADMIN_FLAG_LINE("name", false, 1, ADMIN_LINE_MAX, "its name"),
                    ADMIN_FLAG_LINE("declarant", false, 1, DECLARANT_MAX,
                                    "person or entity on whose behalf events are declared"),
                    ADMIN_FLAG_CHOICE("modality", false, "content|hash_only",
                                      "only while the channel has no events"),
                    DESCRIPTIONS},
     .run = run_configure},
	{.name = "channel suspend",
     .summary = "refuse registrations and certifications; reading remains possible",
     .urgent = true,
     .changes = true,
     .parameters = {CHANNEL},
     .run = run_suspend},
	{.name = "channel resume",
     .summary = "end a suspension",
     .changes = true,
     .parameters = {CHANNEL},
     .run = run_resume},
	{.name = "key create",
     .summary = "create an API key; it is shown only once",
     .changes = true,
     .parameters = {ADMIN_FLAG_ID("channel", "CHANNEL", true, "the key's channel"),
                    ADMIN_FLAG_CHOICE("mode", true, "live|test", "mode of the key"),
                    ADMIN_FLAG_LINE("name", false, 0, ADMIN_LINE_MAX,
                                    "name that distinguishes keys"),
                    ADMIN_FLAG_MOMENT("expires", false,
                                      "expiry: a time, or a duration from now such as 90d")},
     .run = run_key_create},
	{.name = "key list",
     .summary = "list keys",
     .columns =
         "key_id channel_id mode last_four name created_at last_used_at expires_at revoked_at "
         "reason",
     .parameters = {ADMIN_FLAG_ID("channel", "CHANNEL", false, "only those of this channel"),
                    ADMIN_FLAG_ID("account", "ACCOUNT", false, "only those of this account"),
                    ADMIN_LIST_LIMIT, ADMIN_LIST_AFTER},
     .run = run_key_list},
	{.name = "key expire",
     .summary = "set, change or remove the expiry of a key",
     .changes = true,
     .parameters = {ADMIN_POSITIONAL_ID("key", "KEY_ID", "the key's identifier"),
                    ADMIN_FLAG_MOMENT("at", true, "a time, a duration from now, or 'never'")},
     .run = run_key_expire},
	{.name = "key revoke",
     .summary = "revoke a key permanently; takes effect within 2 seconds",
     .urgent = true,
     .changes = true,
     .parameters = {ADMIN_POSITIONAL_ID("key", "KEY_ID", "the key's identifier"),
                    ADMIN_FLAG_LINE("reason", false, 1, ADMIN_LINE_MAX, "kept with the key")},
     .run = run_key_revoke},
	{0},
};
