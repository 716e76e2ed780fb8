/* The operation that shows what the log of segments has of an account's channels. */
#include <stdlib.h>

#include "admin/admin_call.h"
#include "base/clock.h"
#include "evidence/log_publisher.h"
#include "store/accounts/accounts.h"
#include "store/evidence/public_keys.h"
#include "store/events/segments.h"
#include "store/tlog/log_records.h"

#define CHANNELS_DEFAULT 25
#define CHANNELS_MAX 100
#define CHECKPOINTS_READ 32 /* in which the last cosignature of a witness is sought */
#define CHANNEL_MEMORY_MAX ((size_t)1 << 20)
/* From a sealed segment to a checkpoint with it; watchers wait as long (monitor/log_watch.h). */
#define GRACE_US (60 * US_PER_SECOND)

struct log_view {
	const struct admin_call *call;
	char origin[NOTE_NAME_MAX + 1];
	const char *url;
	const char *key;                  /* verifier key; NULL: none is known yet */
	struct log_checkpoint *published; /* newest first */
	size_t published_count;
	struct log_witness witnesses[LOG_WITNESSES_MAX];
	size_t witness_count;
	int64_t promise_us;
};

/* What the newest published checkpoint has of a live chain. */
struct chain_view {
	int64_t account, chain;
	struct sha256 tag;
	int64_t entries;
	uint64_t index; /* of the newest entry, as the following members */
	int64_t first_sequence, last_sequence;
	int64_t witnessed_at_us; /* when the quorum had cosigned it; TIME_NONE: not yet */
	int64_t overdue;         /* events without an entry although the promised time has passed */
};

/* ---- the log ---- */

/* Reads the verifier key that is in use under the origin. */
static int read_key(struct log_view *view, struct error *error)
{
	struct public_key *items;
	size_t count;
	int result = store_list_public_keys(view->call->admin->store, PUBLIC_KEY_LOG, view->call->arena,
	                                    &items, &count, error);
	for (size_t i = 0; !result && i < count; i++) {
		struct note_key key;
		bool is_of_log = !note_key_parse(slice_of(items[i].key), &key, NULL) &&
		                 strcmp(key.name, view->origin) == 0;
		if (is_of_log && items[i].used_until_us == TIME_NONE)
			view->key = items[i].key;
	}
	return result;
}

static int read_log(struct log_view *view, struct error *error)
{
	const struct admin *admin = view->call->admin;
	const struct settings *settings = admin->settings;
	const char *base = settings->service_public_url;
	size_t size = strlen(base);
	while (size > 0 && base[size - 1] == '/')
		size--;
	log_origin(settings, view->origin);
	view->url = arena_printf(view->call->arena, "%.*s/log", (int)size, base);
	if (!view->url)
		return ERR_NO_MEMORY;
	view->promise_us = settings_promise_us(settings);
	int result =
		log_witnesses_parse(settings->log_witnesses, view->witnesses, &view->witness_count, error);
	if (!result)
		result = read_key(view, error);
	return result ? result
	              : store_list_final_checkpoints(admin->store, view->origin, CHECKPOINTS_READ,
	                                             view->call->arena, &view->published,
	                                             &view->published_count, error);
}

static uint64_t published_size(const struct log_view *view)
{
	return view->published_count ? view->published[0].size : 0;
}

/* Reads when the witnesses cosigned a checkpoint; TIME_NONE: not, or what is stored of them cannot
 * be read. */
static int read_times(const struct log_view *view, const struct log_checkpoint *checkpoint,
                      struct arena *arena, int64_t ret_times_us[LOG_WITNESSES_MAX],
                      struct error *error)
{
	BUF_AUTO struct buf text;
	struct note note;
	buf_init(&text, 2 * NOTE_SIZE_MAX);
	buf_add_slice(&text, checkpoint->note);
	buf_add_slice(&text, checkpoint->cosignatures);
	for (size_t i = 0; i < view->witness_count; i++)
		ret_times_us[i] = TIME_NONE;
	int result = buf_check(&text);
	if (!result)
		result = note_parse(arena, buf_slice(&text), &note, error);
	if (result == ERR_INVALID_EVIDENCE) {
		error_clear(error);
		return OK;
	}
	for (size_t i = 0; !result && i < view->witness_count; i++)
		if (note_verify(&note, &view->witnesses[i].key, &ret_times_us[i]) == NOTE_NOT_CHECKED)
			result = ERR_NO_MEMORY;
	return result;
}

static int write_witnesses(const struct log_view *view, struct json_writer *out,
                           struct error *error)
{
	int64_t last_us[LOG_WITNESSES_MAX];
	bool in_newest[LOG_WITNESSES_MAX] = {false};
	size_t missing = view->witness_count;
	for (size_t i = 0; i < view->witness_count; i++)
		last_us[i] = TIME_NONE;
	for (size_t n = 0; n < view->published_count && missing > 0; n++) {
		int64_t times_us[LOG_WITNESSES_MAX];
		int result = read_times(view, &view->published[n], view->call->arena, times_us, error);
		if (result)
			return result;
		for (size_t i = 0; i < view->witness_count; i++) {
			if (last_us[i] != TIME_NONE || times_us[i] == TIME_NONE)
				continue;
			last_us[i] = times_us[i];
			in_newest[i] = n == 0;
			missing--;
		}
	}
	json_begin_array(out, "witnesses");
	for (size_t i = 0; i < view->witness_count; i++) {
		char vkey[NOTE_VKEY_SIZE];
		note_key_write(&view->witnesses[i].key, vkey);
		json_begin_object(out, NULL);
		json_text(out, "name", view->witnesses[i].key.name);
		json_text(out, "key", vkey);
		json_time(out, "cosigned_at", last_us[i]);
		json_boolean(out, "cosigned_newest", in_newest[i]);
		json_end_object(out);
	}
	json_end_array(out);
	return OK;
}

static int write_log(const struct log_view *view, struct json_writer *out, struct error *error)
{
	const struct settings *settings = view->call->admin->settings;
	const struct log_checkpoint *newest = view->published_count ? view->published : NULL;
	json_text(out, "origin", view->origin);
	json_boolean(out, "origin_is_set", *settings->log_origin);
	json_text(out, "url", view->url);
	json_text(out, "key", view->key);
	json_integer(out, "quorum", settings->log_quorum);
	json_integer(out, "promise_seconds", view->promise_us / US_PER_SECOND);
	if (newest) {
		json_begin_object(out, "checkpoint");
		json_integer(out, "size", (int64_t)newest->size);
		json_hex(out, "root", newest->root.bytes, SHA256_SIZE);
		json_time(out, "signed_at", newest->signed_at_us);
		json_integer(out, "cosigners", newest->cosigners);
		json_end_object(out);
	} else {
		json_null(out, "checkpoint");
	}
	return write_witnesses(view, out, error);
}

/* ---- a chain ---- */

/* Finds the entry of a segment. Segments of rounds before the log have none. */
static int find_entry(const struct log_view *view, const struct chain_view *chain, int64_t number,
                      bool *ret_found, uint64_t *ret_index, struct error *error)
{
	struct store *store = view->call->admin->store;
	int64_t round, place;
	int result = store_read_segment_rounds(store, chain->account, chain->chain, number, number,
	                                       &round, &place, error);
	if (!result)
		result = store_find_log_index(store, round, place, ret_index, error);
	*ret_found = !result;
	return result == ERR_NOT_FOUND ? OK : result;
}

/* Finds the chain's first segment whose entry has at least the index `least`; last + 1: none.
 * Indices ascend with the segments' numbers. */
static int find_segment(const struct log_view *view, const struct chain_view *chain, int64_t last,
                        uint64_t least, int64_t *ret_number, struct error *error)
{
	int64_t low = 1, high = last + 1;
	for (int64_t number = least ? last : 1; low < high; number = low + (high - low) / 2) {
		bool found;
		uint64_t index;
		int result = find_entry(view, chain, number, &found, &index, error);
		if (result)
			return result;
		if (found && index >= least)
			high = number;
		else
			low = number + 1;
	}
	*ret_number = low;
	return OK;
}

static int compare_times(const void *left, const void *right)
{
	const int64_t *a = left, *b = right;
	return *a < *b ? -1 : *a > *b;
}

/* Finds when the quorum, at least one witness, had cosigned the chain's newest entry. */
static int find_witnessed(const struct log_view *view, struct chain_view *chain,
                          struct arena *arena, struct error *error)
{
	const struct admin *admin = view->call->admin;
	size_t quorum = admin->settings->log_quorum > 1 ? (size_t)admin->settings->log_quorum : 1;
	int64_t times_us[LOG_WITNESSES_MAX];
	struct log_checkpoint checkpoint;
	size_t count = 0;
	int result = store_find_covering_checkpoint(admin->store, view->origin, chain->index,
	                                            (int64_t)quorum, arena, &checkpoint, error);
	if (!result)
		result = read_times(view, &checkpoint, arena, times_us, error);
	if (result)
		return result == ERR_NOT_FOUND ? OK : result;
	for (size_t i = 0; i < view->witness_count; i++)
		if (times_us[i] != TIME_NONE)
			times_us[count++] = times_us[i];
	qsort(times_us, count, sizeof *times_us, compare_times);
	if (count >= quorum)
		chain->witnessed_at_us = times_us[quorum - 1];
	return OK;
}

/* Reads the chain's entries. *ret_covered: the last event that needs no further entry: it has one,
 * or its segment is older than the log. */
static int read_entries(const struct log_view *view, const struct channel_record *channel,
                        struct arena *arena, struct chain_view *chain, int64_t *ret_covered,
                        struct error *error)
{
	struct store *store = view->call->admin->store;
	struct segment_record segment = {0};
	int64_t first, end;
	*ret_covered = 0;
	if (channel->live_sealed == 0)
		return OK;
	int result = store_find_segment(store, chain->account, chain->chain, channel->live_sealed,
	                                arena, &segment, error);
	if (!result)
		result = find_segment(view, chain, segment.number, 0, &first, error);
	if (!result)
		result = find_segment(view, chain, segment.number, published_size(view), &end, error);
	if (result || end == 1)
		return result;
	if (end - 1 < segment.number)
		result =
			store_get_segment(store, chain->account, chain->chain, end - 1, arena, &segment, error);
	if (result)
		return result;
	*ret_covered = segment.last_sequence;
	chain->entries = end - first;
	if (chain->entries == 0)
		return OK;
	bool found;
	chain->first_sequence = segment.first_sequence;
	chain->last_sequence = segment.last_sequence;
	result = find_entry(view, chain, end - 1, &found, &chain->index, error);
	return result ? result : find_witnessed(view, chain, arena, error);
}

static int read_chain(const struct log_view *view, const struct channel_record *channel,
                      struct arena *arena, struct chain_view *ret, struct error *error)
{
	struct store *store = view->call->admin->store;
	int64_t covered, first, last, until_us = clock_now_us() - view->promise_us - GRACE_US;
	*ret = (struct chain_view){.account = channel->account,
	                           .chain = channel->channel * 2 + MODE_LIVE,
	                           .witnessed_at_us = TIME_NONE};
	if (!tlog_tag(channel->channel_id, mode_text(MODE_LIVE), &ret->tag))
		return error_cause(error, ERR_CORRUPT, "the channel's identifier is too long");
	int result = read_entries(view, channel, arena, ret, &covered, error);
	if (result)
		return result;
	if (covered >= channel->live_events)
		return OK;
	result =
		store_resolve_times(store, ret->account, ret->chain, 0, until_us, &first, &last, error);
	if (!result && last >= first && last > covered)
		ret->overdue = last - covered;
	return result;
}

static int write_chain(const struct log_view *view, const struct channel_record *channel,
                       struct json_writer *out, struct error *error)
{
	ARENA_AUTO struct arena arena;
	struct chain_view chain;
	arena_init(&arena, CHANNEL_MEMORY_MAX);
	int result = read_chain(view, channel, &arena, &chain, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	ADMIN_PUT(out, channel, channel_id, name);
	json_hex(out, "tag", chain.tag.bytes, SHA256_SIZE);
	ADMIN_PUT(out, channel, live_events);
	json_integer(out, "entries", chain.entries);
	if (chain.entries) {
		ADMIN_PUT(out, &chain, first_sequence, last_sequence);
		json_integer(out, "index", (int64_t)chain.index);
	} else {
		json_null(out, "first_sequence");
		json_null(out, "last_sequence");
		json_null(out, "index");
	}
	json_time(out, "witnessed_at", chain.witnessed_at_us);
	json_integer(out, "overdue", chain.overdue);
	json_end_object(out);
	return OK;
}

static int run_log(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct log_view view = {.call = call};
	struct channel_list list;
	int result = read_log(&view, error);
	if (!result)
		result = store_list_channels(
			call->admin->store, admin_slice(call, "account"), admin_slice(call, "after"),
			admin_integer(call, "limit", CHANNELS_DEFAULT), call->arena, &list, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	result = write_log(&view, out, error);
	json_begin_array(out, "data");
	for (size_t i = 0; !result && i < list.count; i++)
		result = write_chain(&view, &list.items[i], out, error);
	list_end_partial(out, list.more, list.partial);
	return result;
}

const struct admin_operation admin_log_operations[] = {
	{.name = "channel log",
     .summary = "show what the log of segments has of an account's channels",
     .columns = "channel_id tag entries index first_sequence last_sequence witnessed_at overdue",
     .parameters = {ADMIN_FLAG_ID("account", "ACCOUNT", true, "the account"),
                    ADMIN_FLAG_INTEGER("limit", false, 1, CHANNELS_MAX,
                                       "maximum number of channels (25 by default)"),
                    ADMIN_LIST_AFTER},
     .run = run_log},
	{0},
};
