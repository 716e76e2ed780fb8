#include "cli/demo.h"

#include <limits.h>
#include <stdio.h>

#include "base/file.h"
#include "base/json_file.h"
#include "service/user_auth.h"
#include "store/accounts/accounts.h"

#define ACCOUNT_NAME "Demonstration"
#define DEMO_CREDITS "1000000"
#define DOCUMENT_MAX ((size_t)64 * 1024)

static const char *const channel_names[] = {"Demo, with content", "Demo, digests only"};

void demo_members(const struct demo *demo, struct json_writer *writer)
{
	json_text(writer, "account_id", demo->account_id);
	json_begin_object(writer, "channels");
	for (int i = 0; i < DEMO_CHANNELS; i++) {
		json_begin_object(writer, modality_text((enum modality)i));
		json_text(writer, "channel_id", demo->channels[i].channel_id);
		json_text(writer, "live_key", demo->channels[i].keys[MODE_LIVE]);
		json_text(writer, "test_key", demo->channels[i].keys[MODE_TEST]);
		json_end_object(writer);
	}
	json_end_object(writer);
}

/* ---- the file ---- */

static void keys_path(const struct admin *admin, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/demo-keys.json", admin->settings->service_data_dir);
}

static void copy_text(const struct json *json, const char *name, char *field, size_t size)
{
	struct slice text;
	if (json_get_text(json, name, &text) && text.size < size) {
		memcpy(field, text.data, text.size);
		field[text.size] = '\0';
	}
}

/* Reads the saved keys; an unreadable file or member counts as missing. */
static void read_keys(const struct admin *admin, struct demo *demo)
{
	char path[PATH_MAX];
	BUF_AUTO struct buf text;
	ARENA_AUTO struct arena arena;
	struct json *json;
	keys_path(admin, path);
	buf_init(&text, DOCUMENT_MAX);
	arena_init(&arena, DOCUMENT_MAX);
	if (file_read_whole(path, &text, NULL) ||
	    json_parse(&arena, buf_slice(&text), NULL, &json, NULL))
		return;
	copy_text(json, "account_id", demo->account_id, sizeof demo->account_id);
	for (int i = 0; i < DEMO_CHANNELS; i++) {
		const struct json *channel =
			json_member(json_member(json, "channels"), modality_text((enum modality)i));
		copy_text(channel, "channel_id", demo->channels[i].channel_id, ID_SIZE);
		copy_text(channel, "live_key", demo->channels[i].keys[MODE_LIVE], KEY_TEXT_MAX);
		copy_text(channel, "test_key", demo->channels[i].keys[MODE_TEST], KEY_TEXT_MAX);
	}
}

static int write_keys(const struct admin *admin, const struct demo *demo, struct error *error)
{
	BUF_AUTO struct buf text;
	buf_init(&text, DOCUMENT_MAX);
	struct json_writer writer = {.out = &text};
	json_begin_object(&writer, NULL);
	demo_members(demo, &writer);
	char path[PATH_MAX];
	keys_path(admin, path);
	return json_file_replace(path, &writer, error);
}

/* ---- the store ---- */

/* Runs an operation. The arguments are name, value, …, NULL; all are texts except `credits`. */
static int run(struct admin *admin, const char *operation, struct arena *arena,
               const char *const *arguments, struct json **ret_answer, struct error *error)
{
	BUF_AUTO struct buf given;
	BUF_AUTO struct buf answer;
	buf_init(&given, DOCUMENT_MAX);
	buf_init(&answer, ADMIN_RESULT_MAX);
	struct json_writer writer = {.out = &given};
	json_begin_object(&writer, NULL);
	for (; *arguments; arguments += 2)
		if (strcmp(arguments[0], "credits") == 0)
			json_raw(&writer, arguments[0], slice_of(arguments[1]));
		else
			json_text(&writer, arguments[0], arguments[1]);
	json_end_object(&writer);
	struct json *json;
	int result = buf_check(&given);
	if (!result)
		result = json_parse(arena, buf_slice(&given), NULL, &json, error);
	if (!result)
		result = admin_run(admin, admin_find(slice_of(operation)), json, NULL, &answer, error);
	/* The parsed tree may point into the text of the answer. */
	const char *kept = result ? NULL : arena_copy(arena, answer.data, answer.size);
	if (!result && !kept)
		result = ERR_NO_MEMORY;
	if (!result)
		result = json_parse(arena, slice_make(kept, answer.size), NULL, ret_answer, error);
	return result;
}

/* Finds the account of the file or, without a file, the first account with the demo's name; creates
 * it if there is none. */
static int ensure_account(struct admin *admin, struct arena *arena, struct demo *demo,
                          struct error *error)
{
	struct account_list list;
	int result =
		store_list_accounts(admin->store, slice_of(""), 100, clock_now_us(), arena, &list, error);
	bool known = false;
	for (size_t i = 0; !result && i < list.count; i++)
		known |= strcmp(list.items[i].account_id, demo->account_id) == 0;
	if (!known)
		*demo = (struct demo){0};
	for (size_t i = 0; !result && !known && i < list.count && !*demo->account_id; i++)
		if (strcmp(list.items[i].name, ACCOUNT_NAME) == 0)
			memcpy(demo->account_id, list.items[i].account_id, ID_SIZE);
	if (result || *demo->account_id)
		return result;
	struct json *answer;
	const char *const arguments[] = {"name", ACCOUNT_NAME, "credits", DEMO_CREDITS, NULL};
	result = run(admin, "account create", arena, arguments, &answer, error);
	if (!result)
		copy_text(answer, "account_id", demo->account_id, ID_SIZE);
	return result;
}

static int ensure_channel(struct admin *admin, struct arena *arena, enum modality modality,
                          struct demo *demo, struct error *error)
{
	char *channel_id = demo->channels[modality].channel_id;
	struct channel_list list;
	int result = store_list_channels(admin->store, slice_of(demo->account_id), slice_of(""), 100,
	                                 arena, &list, error);
	bool known = false;
	for (size_t i = 0; !result && i < list.count; i++)
		known |= strcmp(list.items[i].channel_id, channel_id) == 0;
	for (size_t i = 0; !result && !known && i < list.count; i++)
		if (list.items[i].modality == modality) {
			memcpy(channel_id, list.items[i].channel_id, ID_SIZE);
			known = true;
		}
	if (result || known)
		return result;
	struct json *answer;
	const char *const arguments[] = {
		"account",   demo->account_id,        "name",     channel_names[modality],
		"declarant", "Example Company, S.L.", "modality", modality_text(modality),
		NULL};
	result = run(admin, "channel create", arena, arguments, &answer, error);
	if (!result)
		copy_text(answer, "channel_id", channel_id, ID_SIZE);
	return result;
}

static int ensure_key(struct admin *admin, struct arena *arena, enum modality modality,
                      enum mode mode, struct demo *demo, struct error *error)
{
	char *key = demo->channels[modality].keys[mode];
	struct key_identity identity;
	struct sha256 digest = sha256_of(key, strlen(key));
	int result = *key ? store_find_key(admin->store, &digest, &identity, error) : ERR_NOT_FOUND;
	bool ends = identity.expires_at_us && identity.expires_at_us <= clock_now_us();
	if (!result && !identity.revoked && !ends &&
	    strcmp(identity.channel_id, demo->channels[modality].channel_id) == 0)
		return OK;
	if (result && result != ERR_NOT_FOUND)
		return result;
	error_clear(error);
	struct json *answer;
	const char *const arguments[] = {
		"channel", demo->channels[modality].channel_id, "mode", mode_text(mode), "name", "demo",
		NULL};
	result = run(admin, "key create", arena, arguments, &answer, error);
	if (!result)
		copy_text(answer, "key", key, KEY_TEXT_MAX);
	return result;
}

/* Creates the demo user, who needs no invitation mail. */
static int ensure_user(struct admin *admin, const struct demo *demo, struct error *error)
{
	char user_id[ID_SIZE];
	const struct invitation invitation = {
		.account_id = slice_of(demo->account_id), .email = DEMO_USER, .role = ROLE_OWNER};
	int result = store_invite_user(admin->store, &invitation, clock_now_us(), user_id, error);
	if (result != ERR_REFUSED)
		return result;
	error_clear(error);
	return OK;
}

int demo_link(struct admin *admin, struct buf *url, struct error *error)
{
	int64_t expires_at_us;
	return user_auth_create_operator_link(admin->settings, admin->store, DEMO_USER, clock_now_us(),
	                                      url, &expires_at_us, error);
}

int demo_prepare(struct admin *admin, struct demo *ret_demo, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, (size_t)16 << 20);
	struct demo demo = {0};
	read_keys(admin, &demo);
	int result = ensure_account(admin, &arena, &demo, error);
	for (int i = 0; !result && i < DEMO_CHANNELS; i++) {
		enum modality modality = (enum modality)i;
		result = ensure_channel(admin, &arena, modality, &demo, error);
		for (int mode = MODE_LIVE; !result && mode <= MODE_TEST; mode++)
			result = ensure_key(admin, &arena, modality, (enum mode)mode, &demo, error);
	}
	if (!result)
		result = ensure_user(admin, &demo, error);
	if (!result)
		result = write_keys(admin, &demo, error);
	if (!result)
		*ret_demo = demo;
	explicit_bzero(&demo, sizeof demo);
	return result;
}
