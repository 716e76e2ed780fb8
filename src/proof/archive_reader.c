
#include "base/base64.h"
#include "base/json.h"
#include "proof/archive_lines.h"
#include "proof/zip_shape.h"

/* Bounds for hostile files, well above what any document needs. */
#define LINE_VALUES_MAX 256
#define MANIFEST_VALUES_MAX 500000

/* The members of one object, taken one by one; the first failure stays. */
struct members {
	struct arena *arena;
	const struct json *object;
	struct error *error;
	int status;
};

static struct members members_of(struct arena *arena, const struct json *object,
                                 struct error *error)
{
	struct members members = {.arena = arena, .object = object, .error = error};
	if (!object || object->type != JSON_OBJECT)
		members.status = error_cause(error, ERR_INVALID_EVIDENCE, "it is no JSON object");
	return members;
}

static struct members parse_members(struct arena *arena, struct slice text, uint32_t value_max,
                                    struct error *error)
{
	const struct json_limits limits = {.depth_max = 8, .value_max = value_max};
	struct json *json = NULL;
	struct error detail = {0};
	struct members members = {.arena = arena, .error = error};
	int status = json_parse(arena, text, &limits, &json, &detail);
	if (status == 0)
		return members_of(arena, json, error);
	members.status = status == ERR_NO_MEMORY
	                     ? error_cause(error, status, "json")
	                     : error_cause(error, ERR_INVALID_EVIDENCE, "it is not JSON: %s",
	                                   error_message(&detail, LANGUAGE_ENGLISH));
	return members;
}

static void bad_member(struct members *members, const char *name)
{
	if (members->status == 0)
		members->status = error_cause(members->error, ERR_INVALID_EVIDENCE,
		                              "member '%s' is missing or its value is not allowed", name);
}

static const struct json *take(struct members *members, const char *name, enum json_type type)
{
	if (members->status < 0)
		return NULL;
	const struct json *member = json_member(members->object, name);
	if (member && member->type == type)
		return member;
	bad_member(members, name);
	return NULL;
}

static bool is_null(struct members *members, const char *name)
{
	const struct json *member = members->status == 0 ? json_member(members->object, name) : NULL;
	return member && member->type == JSON_NULL;
}

static struct slice take_slice(struct members *members, const char *name)
{
	const struct json *member = take(members, name, JSON_STRING);
	return member ? member->text : slice_of("");
}

static const char *text_of(struct members *members, const char *name, struct slice slice)
{
	if (members->status == 0 && memchr(slice.data, 0, slice.size))
		bad_member(members, name);
	if (members->status < 0)
		return "";
	char *text = arena_copy(members->arena, slice.data, slice.size);
	if (!text) {
		members->status = error_cause(members->error, ERR_NO_MEMORY, "json");
		return "";
	}
	return text;
}

static const char *take_text(struct members *members, const char *name)
{
	return text_of(members, name, take_slice(members, name));
}

static const char *take_text_or_null(struct members *members, const char *name)
{
	return is_null(members, name) ? NULL : take_text(members, name);
}

static int64_t take_integer(struct members *members, const char *name, int64_t minimum)
{
	int64_t value = 0;
	if (members->status == 0 &&
	    (!json_get_integer(members->object, name, &value) || value < minimum))
		bad_member(members, name);
	return members->status == 0 ? value : minimum;
}

static int64_t take_integer_or_null(struct members *members, const char *name)
{
	return is_null(members, name) ? 0 : take_integer(members, name, 1);
}

static bool take_boolean(struct members *members, const char *name)
{
	const struct json *member = members->status == 0 ? json_member(members->object, name) : NULL;
	if (!member || (member->type != JSON_TRUE && member->type != JSON_FALSE))
		bad_member(members, name);
	return member && member->type == JSON_TRUE;
}

static int64_t take_time(struct members *members, const char *name)
{
	int64_t time_us = 0;
	struct slice text = take_slice(members, name);
	if (members->status == 0 && time_parse(text, name, &time_us, NULL) < 0)
		bad_member(members, name);
	return time_us;
}

static int64_t take_time_or_null(struct members *members, const char *name)
{
	return is_null(members, name) ? TIME_NONE : take_time(members, name);
}

static struct sha256 take_hash(struct members *members, const char *name)
{
	struct sha256 hash = {{0}};
	struct slice text = take_slice(members, name);
	if (members->status == 0 && !hex_decode(text, hash.bytes, SHA256_SIZE))
		bad_member(members, name);
	return hash;
}

static struct slice take_base64(struct members *members, const char *name, size_t size_max)
{
	struct slice text = take_slice(members, name);
	if (members->status == 0 &&
	    (text.size == 0 || text.size % 4 != 0 || text.size / 4 * 3 > size_max + 2))
		bad_member(members, name);
	if (members->status < 0)
		return slice_of("");
	char *bytes = arena_alloc(members->arena, text.size / 4 * 3 + 1);
	if (!bytes) {
		members->status = error_cause(members->error, ERR_NO_MEMORY, "base64");
		return slice_of("");
	}
	size_t size;
	if (!base64_decode(text, bytes, text.size / 4 * 3, &size) || size == 0) {
		bad_member(members, name);
		return slice_of("");
	}
	return slice_make(bytes, size);
}

static struct members take_object(struct members *members, const char *name)
{
	const struct json *member = take(members, name, JSON_OBJECT);
	struct members inner = {members->arena, member, members->error, members->status};
	return inner;
}

static void take_version(struct members *members)
{
	if (take_integer(members, "v", 1) != 1)
		bad_member(members, "v");
}

static enum mode take_mode(struct members *members, const char *name)
{
	enum mode mode = MODE_LIVE;
	struct slice text = take_slice(members, name);
	if (members->status == 0 && !mode_parse(text, &mode))
		bad_member(members, name);
	return mode;
}

static enum modality take_modality(struct members *members)
{
	enum modality modality = MODALITY_CONTENT;
	struct slice text = take_slice(members, "modality");
	if (members->status == 0 && !modality_parse(text, &modality))
		bad_member(members, "modality");
	return modality;
}

/* What an event's record and the answer to its registration both say. */
static struct event_facts take_event(struct members *members)
{
	struct event_facts event = {.hash_algorithm = HASH_SHA256};
	event.channel_id = take_text(members, "channel_id");
	event.client_ref = take_slice(members, "client_ref");
	event.config_version = take_integer(members, "config_version", 1);
	event.event_id = take_slice(members, "event_id");
	struct slice algorithm = take_slice(members, "hash_alg");
	if (members->status == 0 && !hash_algorithm_parse(algorithm, &event.hash_algorithm))
		bad_member(members, "hash_alg");
	struct slice hash = take_slice(members, "hash");
	size_t size = hash_algorithm_size(event.hash_algorithm);
	uint8_t *bytes = members->status == 0 ? arena_alloc(members->arena, size) : NULL;
	if (members->status == 0 && !bytes)
		members->status = error_cause(members->error, ERR_NO_MEMORY, "event");
	if (members->status == 0 && !hex_decode(hash, bytes, size))
		bad_member(members, "hash");
	event.hash = bytes;
	event.modality = take_modality(members);
	event.occurred_at_us = take_time_or_null(members, "occurred_at");
	event.received_at_us = take_time(members, "received_at");
	event.sequence = take_integer(members, "sequence", 1);
	if (members->status == 0 &&
	    (event.client_ref.size == 0 || event.client_ref.size > CLIENT_REF_MAX))
		bad_member(members, "client_ref");
	return event;
}

int archive_read_event(struct arena *arena, struct slice line, struct event_facts *ret_event,
                       struct error *error)
{
	struct members members = parse_members(arena, line, LINE_VALUES_MAX, error);
	struct event_facts event = take_event(&members);
	event.chain = take_mode(&members, "chain");
	event.config_hash = take_hash(&members, "config_hash");
	event.previous_chain_hash = take_hash(&members, "previous_chain_hash");
	take_version(&members);
	if (members.status == 0)
		*ret_event = event;
	return members.status;
}

int archive_read_receipt(struct arena *arena, const struct json *json,
                         struct event_facts *ret_event, struct sha256 *ret_chain_hash,
                         struct error *error)
{
	struct members members = members_of(arena, json, error);
	struct event_facts event = take_event(&members);
	event.chain = take_mode(&members, "mode");
	struct sha256 chain_hash = take_hash(&members, "chain_hash");
	if (members.status == 0) {
		*ret_event = event;
		*ret_chain_hash = chain_hash;
	}
	return members.status;
}

int archive_read_leaf(struct arena *arena, struct slice line, int64_t *ret_sequence,
                      struct sha256 *ret_hash, struct error *error)
{
	struct members members = parse_members(arena, line, LINE_VALUES_MAX, error);
	struct sha256 hash = take_hash(&members, "chain_hash");
	int64_t sequence = take_integer(&members, "sequence", 1);
	if (members.status == 0) {
		*ret_hash = hash;
		*ret_sequence = sequence;
	}
	return members.status;
}

static void read_path(struct members *members, struct tree_proof *proof)
{
	const struct json *path = take(members, "path", JSON_ARRAY);
	if (path && path->count > TREE_PROOF_MAX)
		bad_member(members, "path");
	if (members->status < 0)
		return;
	proof->count = 0;
	for (const struct json *step = path->first; step; step = step->next) {
		if (step->type != JSON_STRING ||
		    !hex_decode(step->text, proof->siblings[proof->count].bytes, SHA256_SIZE)) {
			bad_member(members, "path");
			return;
		}
		proof->count++;
	}
}

static void read_seal(struct members *members, struct archive_segment_text *text)
{
	struct seal_document *seal = &text->seal;
	seal->chain = mode_text(take_mode(members, "chain"));
	seal->chain_hash_before = take_hash(members, "chain_hash_before");
	seal->chain_hash_last = take_hash(members, "chain_hash_last");
	seal->channel_id = take_text(members, "channel_id");
	struct members clock = take_object(members, "clock");
	seal->clock.max_error_us = take_integer(&clock, "max_error_us", 0);
	seal->clock.source = take_text(&clock, "source");
	seal->clock.synchronized = take_boolean(&clock, "synchronized");
	members->status = clock.status;
	seal->first_sequence = take_integer(members, "first_sequence", 1);
	seal->last_sequence = take_integer(members, "last_sequence", 1);
	int64_t count = take_integer(members, "count", 1);
	if (members->status == 0 &&
	    (count > SEGMENT_EVENTS_MAX || seal->last_sequence - seal->first_sequence + 1 != count))
		bad_member(members, "count");
	seal->previous_seal_hash = NULL;
	if (!is_null(members, "previous_seal_hash")) {
		text->previous_seal_hash = take_hash(members, "previous_seal_hash");
		seal->previous_seal_hash = &text->previous_seal_hash;
	}
	seal->previous_token_hash = NULL;
	if (!is_null(members, "previous_token_hash")) {
		text->previous_token_hash = take_hash(members, "previous_token_hash");
		seal->previous_token_hash = &text->previous_token_hash;
	}
	seal->segment_id = take_text(members, "segment_id");
	take_version(members);
}

int archive_read_segment(struct arena *arena, struct slice line,
                         struct archive_segment_text *ret_text, struct archive_segment *ret_segment,
                         struct error *error)
{
	struct members members = parse_members(arena, line, LINE_VALUES_MAX, error);
	read_path(&members, &ret_text->path);
	const char *round_id = take_text(&members, "round_id");
	struct members seal = take_object(&members, "seal");
	read_seal(&seal, ret_text);
	if (seal.status == 0)
		*ret_segment = (struct archive_segment){&ret_text->seal, &ret_text->path, round_id};
	return seal.status;
}

int archive_read_round(struct arena *arena, struct slice line, struct archive_round *ret_round,
                       struct error *error)
{
	struct members members = parse_members(arena, line, LINE_VALUES_MAX, error);
	struct archive_round round = {0};
	round.authority = take_text(&members, "authority");
	round.gen_time_us = take_time(&members, "gen_time");
	struct slice kind = take_slice(&members, "kind");
	if (members.status == 0 && !authority_kind_parse(kind, &round.kind))
		bad_member(&members, "kind");
	if (!is_null(&members, "request"))
		round.request = take_base64(&members, "request", TIMESTAMP_REQUEST_MAX);
	round.root = take_hash(&members, "root");
	round.round_id = take_text(&members, "round_id");
	round.token = take_base64(&members, "token", TIMESTAMP_RESPONSE_MAX);
	if (members.status == 0)
		*ret_round = round;
	return members.status;
}

int archive_read_genesis(struct arena *arena, struct slice text, const char **ret_channel_id,
                         enum mode *ret_chain, int64_t *ret_created_at_us, struct error *error)
{
	struct members members = parse_members(arena, text, LINE_VALUES_MAX, error);
	enum mode chain = take_mode(&members, "chain");
	const char *channel_id = take_text(&members, "channel_id");
	int64_t created_at_us = take_time(&members, "created_at");
	take_version(&members);
	if (members.status == 0) {
		*ret_chain = chain;
		*ret_channel_id = channel_id;
		*ret_created_at_us = created_at_us;
	}
	return members.status;
}

int archive_read_config(struct arena *arena, struct slice text, struct config_facts *ret_config,
                        struct error *error)
{
	struct members members = parse_members(arena, text, LINE_VALUES_MAX, error);
	struct config_facts config = {0};
	config.channel_id = take_text(&members, "channel_id");
	config.declarant = take_text(&members, "declarant");
	config.description = take_text_or_null(&members, "description");
	config.modality = take_modality(&members);
	config.name = take_text(&members, "name");
	config.sealed_at_us = take_time(&members, "sealed_at");
	config.supplementary_info = take_text_or_null(&members, "supplementary_info");
	take_version(&members);
	config.version = take_integer(&members, "version", 1);
	if (members.status == 0)
		*ret_config = config;
	return members.status;
}

/* The elements of an array of objects, each read by `read_one` into an item of item_size bytes. */
static void *read_items(struct members *members, const char *name, size_t count_max,
                        size_t item_size, void (*read_one)(struct members *, void *),
                        size_t *ret_count)
{
	const struct json *array = take(members, name, JSON_ARRAY);
	if (array && array->count > count_max)
		bad_member(members, name);
	if (members->status < 0)
		return NULL;
	char *items = arena_alloc(members->arena, (array->count + 1) * item_size);
	if (!items) {
		members->status = error_cause(members->error, ERR_NO_MEMORY, "manifest");
		return NULL;
	}
	size_t count = 0;
	for (const struct json *item = array->first; item; item = item->next) {
		struct members inner = members_of(members->arena, item, members->error);
		read_one(&inner, items + count++ * item_size);
		members->status = inner.status;
		if (inner.status < 0)
			return NULL;
	}
	*ret_count = count;
	return items;
}

static void read_manifest_config(struct members *members, void *item)
{
	struct archive_config *config = item;
	config->hash = take_hash(members, "hash");
	config->version = take_integer(members, "version", 1);
}

static void read_manifest_part(struct members *members, void *item)
{
	struct part_facts *part = item;
	part->size_bytes = (uint64_t)take_integer(members, "bytes", 1);
	part->first_sequence = take_integer(members, "first_sequence", 1);
	part->last_sequence = take_integer(members, "last_sequence", 1);
	struct slice name = take_slice(members, "name");
	if (name.size >= sizeof part->name || !zip_name_allowed(name))
		bad_member(members, "name");
	else
		memcpy(part->name, name.data, name.size); /* the arena's memory is zeroed */
	part->sha256 = take_hash(members, "sha256");
}

static void read_manifest_file(struct members *members, void *item)
{
	struct archive_file *file = item;
	file->path = take_text(members, "path");
	file->sum.sha256 = take_hash(members, "sha256");
	file->sum.size_bytes = (uint64_t)take_integer(members, "size", 0);
}

static void read_manifest_ranges(struct members *members, struct archive_facts *facts)
{
	struct members frozen = take_object(members, "frozen_range");
	facts->first_sequence = take_integer(&frozen, "first_sequence", 1);
	facts->last_sequence = take_integer(&frozen, "last_sequence", facts->first_sequence);
	members->status = frozen.status;
	struct members requested = take_object(members, "requested_range");
	facts->requested_from_us = take_time_or_null(&requested, "from");
	facts->requested_first = take_integer_or_null(&requested, "seq_from");
	facts->requested_last = take_integer_or_null(&requested, "seq_to");
	facts->requested_to_us = take_time_or_null(&requested, "to");
	members->status = requested.status;
}

int archive_read_manifest(struct arena *arena, struct slice text,
                          struct archive_manifest *ret_manifest, struct error *error)
{
	struct members members = parse_members(arena, text, MANIFEST_VALUES_MAX, error);
	struct archive_manifest manifest = {0};
	struct archive_facts *facts = &manifest.facts;
	facts->certification_id = take_text(&members, "certification_id");
	facts->channel_id = take_text(&members, "channel_id");
	manifest.configs =
		read_items(&members, "config_versions", ARCHIVE_ENTRIES_MAX, sizeof *manifest.configs,
	               read_manifest_config, &manifest.config_count);
	facts->parts = read_items(&members, "content_parts", PART_COUNT_MAX, sizeof *facts->parts,
	                          read_manifest_part, &facts->part_count);
	manifest.event_count = take_integer(&members, "event_count", 1);
	manifest.files = read_items(&members, "files", ARCHIVE_ENTRIES_MAX, sizeof *manifest.files,
	                            read_manifest_file, &manifest.file_count);
	manifest.first_chain_hash = take_hash(&members, "first_chain_hash");
	read_manifest_ranges(&members, facts);
	facts->issued_at_us = take_time(&members, "issued_at");
	manifest.last_chain_hash = take_hash(&members, "last_chain_hash");
	facts->mode = take_mode(&members, "mode");
	manifest.previous_chain_hash = take_hash(&members, "previous_chain_hash");
	struct members service = take_object(&members, "service");
	facts->service_name = take_text(&service, "name");
	facts->service_prefix = take_text(&service, "prefix");
	facts->verification_url = take_text(&service, "verification_url");
	members.status = service.status;
	take_version(&members);
	facts->verification_code = take_text(&members, "verification_code");
	if (members.status == 0)
		*ret_manifest = manifest;
	return members.status;
}

int archive_read_part_head(struct arena *arena, struct slice text, struct part_head *ret_head,
                           struct error *error)
{
	struct members members = parse_members(arena, text, LINE_VALUES_MAX, error);
	struct part_head head;
	head.certification_id = take_text(&members, "certification_id");
	head.channel_id = take_text(&members, "channel_id");
	int64_t number = take_integer(&members, "number", 1);
	if (number > PART_COUNT_MAX)
		bad_member(&members, "number");
	head.number = (uint32_t)number;
	take_version(&members);
	if (members.status == 0)
		*ret_head = head;
	return members.status;
}

int archive_read_part_line(struct arena *arena, struct slice line, struct part_entry *ret_entry,
                           struct error *error)
{
	struct members members = parse_members(arena, line, LINE_VALUES_MAX, error);
	struct part_entry entry;
	struct slice name = take_slice(&members, "entry");
	entry.is_json = name.size > 5 && memcmp(name.data + name.size - 5, ".json", 5) == 0;
	entry.event_id = take_slice(&members, "event_id");
	entry.hash = take_hash(&members, "hash");
	entry.sequence = take_integer(&members, "sequence", 1);
	if (members.status == 0)
		*ret_entry = entry;
	return members.status;
}
