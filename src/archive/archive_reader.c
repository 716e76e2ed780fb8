/* Reading of the lines and documents of an archive into their facts. */
#include "archive/archive_lines.h"
#include "archive/archive_scan.h"
#include "archive/zip_shape.h"
#include "base/json_reader.h"

/* Limits against hostile files, well above the needs of any document. */
static const struct json_limits line_limits = {.depth_max = 8, .value_max = 512};
static const struct json_limits manifest_limits = {.depth_max = 8, .value_max = 500000};

static enum mode take_mode(struct json_reader *reader, const char *name)
{
	enum mode mode = MODE_LIVE;
	struct slice text = json_take_slice(reader, name);
	if (!reader->result && !mode_parse(text, &mode))
		json_refuse(reader, name);
	return mode;
}

static enum modality take_modality(struct json_reader *reader)
{
	enum modality modality = MODALITY_CONTENT;
	struct slice text = json_take_slice(reader, "modality");
	if (!reader->result && !modality_parse(text, &modality))
		json_refuse(reader, "modality");
	return modality;
}

static int64_t take_integer_or_null(struct json_reader *reader, const char *name)
{
	return json_is_null(reader, name) ? 0 : json_take_integer(reader, name, 1);
}

/* Reads a text without NUL, without copying it. */
static struct slice take_plain(struct json_reader *reader, const char *name)
{
	struct slice text = json_take_slice(reader, name);
	if (!reader->result && memchr(text.data, 0, text.size))
		json_refuse(reader, name);
	return text;
}

/* Reads the members that an event record and the response to its registration have in common.
 * `drops_null`: a null member may be absent. */
static struct event_facts take_event(struct json_reader *reader, bool drops_null)
{
	struct event_facts event = {0};
	struct declaration *declared = &event.declaration;
	event.channel_id = json_take_text(reader, "channel_id");
	declared->client_ref = take_plain(reader, "client_ref");
	event.config_version = json_take_integer(reader, "config_version", 1);
	event.event_id = take_plain(reader, "event_id");
	struct slice algorithm = json_take_slice(reader, "hash_alg");
	if (!reader->result && !hash_algorithm_parse(algorithm, &declared->hash_algorithm))
		json_refuse(reader, "hash_alg");
	struct slice hash = json_take_slice(reader, "hash");
	size_t size = hash_algorithm_size(declared->hash_algorithm);
	if (!reader->result && !hex_decode(hash, declared->hash, size))
		json_refuse(reader, "hash");
	declared->modality = take_modality(reader);
	declared->occurred_at_us = drops_null && !json_member(reader->object, "occurred_at")
	                               ? TIME_NONE
	                               : json_take_time_or_null(reader, "occurred_at");
	event.received_at_us = json_take_time(reader, "received_at");
	event.sequence = json_take_integer(reader, "sequence", 1);
	if (!reader->result &&
	    (declared->client_ref.size == 0 || declared->client_ref.size > CLIENT_REF_MAX))
		json_refuse(reader, "client_ref");
	return event;
}

int archive_read_event(struct arena *arena, struct slice line, struct event_facts *ret_event,
                       struct error *error)
{
	if (archive_scan_event(arena, line, ret_event))
		return 0;
	struct json_reader reader = json_reader_parse(arena, line, &line_limits, error);
	struct event_facts event = take_event(&reader, false);
	event.chain = take_mode(&reader, "chain");
	event.config_hash = json_take_hash(&reader, "config_hash");
	event.previous_chain_hash = json_take_hash(&reader, "previous_chain_hash");
	json_require_integer(&reader, "v", 1);
	if (!reader.result)
		*ret_event = event;
	return reader.result;
}

int archive_read_receipt(struct arena *arena, const struct json *json,
                         struct event_facts *ret_event, struct sha256 *ret_chain_hash,
                         struct error *error)
{
	struct json_reader reader = json_reader_of(arena, json, error);
	struct event_facts event = take_event(&reader, true);
	event.chain = take_mode(&reader, "mode");
	struct sha256 chain_hash = json_take_hash(&reader, "chain_hash");
	if (!reader.result) {
		*ret_event = event;
		*ret_chain_hash = chain_hash;
	}
	return reader.result;
}

int archive_read_leaf(struct arena *arena, struct slice line, int64_t *ret_sequence,
                      struct sha256 *ret_hash, struct error *error)
{
	struct json_reader reader = json_reader_parse(arena, line, &line_limits, error);
	struct sha256 hash = json_take_hash(&reader, "chain_hash");
	int64_t sequence = json_take_integer(&reader, "sequence", 1);
	if (!reader.result) {
		*ret_hash = hash;
		*ret_sequence = sequence;
	}
	return reader.result;
}

static const struct tree_proof *take_path(struct json_reader *reader)
{
	const struct json *path = json_take(reader, "path", JSON_ARRAY);
	if (path && path->count > TREE_PROOF_MAX)
		json_refuse(reader, "path");
	if (reader->result)
		return NULL;
	struct tree_proof *proof = arena_alloc(reader->arena, sizeof *proof);
	if (!proof) {
		reader->result = error_cause(reader->error, ERR_NO_MEMORY, "path");
		return NULL;
	}
	for (const struct json *step = path->first; step; step = step->next)
		if (step->type != JSON_STRING ||
		    !hex_decode(step->text, proof->siblings[proof->count++].bytes, SHA256_SIZE)) {
			json_refuse(reader, "path");
			return NULL;
		}
	return proof;
}

static const char *take_round_id(struct json_reader *reader)
{
	const char *id = json_take_text(reader, "round_id");
	size_t size = strlen(id);
	if (size == 0 || size > ARCHIVE_ROUND_ID_MAX)
		json_refuse(reader, "round_id");
	return id;
}

int archive_read_segment(struct arena *arena, struct slice line,
                         struct archive_segment *ret_segment, struct error *error)
{
	struct json_reader reader = json_reader_parse(arena, line, &line_limits, error);
	struct archive_segment segment = {.path = take_path(&reader)};
	segment.round_id = take_round_id(&reader);
	struct json_reader seal = json_take_object(&reader, "seal");
	segment.seal = seal_document_take(&seal);
	if (!seal.result)
		*ret_segment = segment;
	return seal.result;
}

/* Reads digests in ascending order, which makes their form unique. */
static const struct sha256 *take_hashes(struct json_reader *reader, const char *name,
                                        size_t *ret_count)
{
	const struct json *array = json_take(reader, name, JSON_ARRAY);
	if (array && array->count > ARCHIVE_TOKEN_OBJECTS_MAX)
		json_refuse(reader, name);
	if (reader->result)
		return NULL;
	struct sha256 *hashes = arena_alloc(reader->arena, (array->count + 1) * sizeof *hashes);
	if (!hashes) {
		reader->result = error_cause(reader->error, ERR_NO_MEMORY, "%s", name);
		return NULL;
	}
	size_t count = 0;
	for (const struct json *item = array->first; item; item = item->next, count++)
		if (item->type != JSON_STRING ||
		    !hex_decode(item->text, hashes[count].bytes, SHA256_SIZE) ||
		    (count > 0 && memcmp(&hashes[count - 1], &hashes[count], SHA256_SIZE) >= 0)) {
			json_refuse(reader, name);
			return NULL;
		}
	*ret_count = count;
	return hashes;
}

static struct archive_renewal take_renewal(struct json_reader *reader)
{
	struct archive_renewal renewal = {0};
	if (json_is_null(reader, "renewal"))
		return renewal;
	struct json_reader inner = json_take_object(reader, "renewal");
	renewal.path = take_path(&inner);
	renewal.stamp = json_take_integer(&inner, "stamp", 1);
	reader->result = inner.result;
	return renewal;
}

static enum authority_kind take_kind(struct json_reader *reader)
{
	enum authority_kind kind = AUTHORITY_DEVELOPMENT;
	struct slice text = json_take_slice(reader, "kind");
	if (!reader->result && !authority_kind_parse(text, &kind))
		json_refuse(reader, "kind");
	return kind;
}

static struct archive_token take_token(struct json_reader *reader, int64_t version)
{
	struct archive_token token = {0};
	if (version > 1) {
		token.certificates = take_hashes(reader, "certificates", &token.certificate_count);
		token.revocations = take_hashes(reader, "revocations", &token.revocation_count);
	}
	token.authority = json_take_text(reader, "authority");
	token.gen_time_us = json_take_time(reader, "gen_time");
	token.kind = take_kind(reader);
	if (version > 1)
		token.renewal = take_renewal(reader);
	if (!json_is_null(reader, "request"))
		token.request = json_take_base64(reader, "request", TIMESTAMP_REQUEST_MAX);
	token.token = json_take_base64(reader, "token", TIMESTAMP_RESPONSE_MAX);
	return token;
}

static void take_tokens(struct json_reader *reader, struct archive_round *round)
{
	const struct json *array = json_take(reader, "tokens", JSON_ARRAY);
	if (array && (array->count < 1 || array->count > ARCHIVE_TOKENS_MAX))
		json_refuse(reader, "tokens");
	for (const struct json *item = array ? array->first : NULL; item && !reader->result;
	     item = item->next) {
		struct json_reader inner = json_reader_of(reader->arena, item, reader->error);
		round->tokens[round->token_count++] = take_token(&inner, ARCHIVE_VERSION);
		reader->result = inner.result;
	}
}

int archive_read_round(struct arena *arena, struct slice line, int64_t version,
                       struct archive_round *ret_round, struct error *error)
{
	struct json_reader reader = json_reader_parse(arena, line, &line_limits, error);
	struct archive_round round = {0};
	if (version == 1) {
		round.tokens[round.token_count++] = take_token(&reader, version);
	} else {
		int64_t gen_time_us = json_take_time(&reader, "gen_time");
		take_tokens(&reader, &round);
		if (!reader.result && gen_time_us != round.tokens[0].gen_time_us)
			json_refuse(&reader, "gen_time");
	}
	round.root = json_take_hash(&reader, "root");
	round.round_id = take_round_id(&reader);
	if (!reader.result)
		*ret_round = round;
	return reader.result;
}

int archive_read_stamp(struct arena *arena, struct slice line, struct archive_stamp *ret_stamp,
                       struct error *error)
{
	struct json_reader reader = json_reader_parse(arena, line, &line_limits, error);
	struct archive_stamp stamp = {.authority = json_take_text(&reader, "authority")};
	stamp.gen_time_us = json_take_time(&reader, "gen_time");
	stamp.kind = take_kind(&reader);
	stamp.renewal = take_renewal(&reader);
	stamp.stamp = json_take_integer(&reader, "stamp", 1);
	stamp.token = json_take_base64(&reader, "token", ARCHIVE_RENEWAL_TOKEN_MAX);
	if (!reader.result)
		*ret_stamp = stamp;
	return reader.result;
}

int archive_read_object(struct arena *arena, struct slice line, struct archive_object *ret_object,
                        struct sha256 *ret_sha256, struct error *error)
{
	struct json_reader reader = json_reader_parse(arena, line, &line_limits, error);
	struct archive_object object = {0};
	object.der = json_take_base64(&reader, "der", ARCHIVE_LINE_MAX);
	struct slice kind = json_take_slice(&reader, "kind");
	bool known = false;
	for (int i = OBJECT_CERTIFICATE; i <= OBJECT_OCSP && !reader.result && !known; i++) {
		object.kind = (enum archive_object_kind)i;
		known = slice_is(kind, archive_object_kinds[i]);
	}
	if (!known)
		json_refuse(&reader, "kind");
	struct sha256 sha256 = json_take_hash(&reader, "sha256");
	if (!reader.result) {
		*ret_object = object;
		*ret_sha256 = sha256;
	}
	return reader.result;
}

/* Takes a proof of the log, in the order of its hashes. */
static const struct merkle_path *take_merkle_path(struct json_reader *reader, const char *name)
{
	const struct json *array = json_take(reader, name, JSON_ARRAY);
	if (array && array->count > MERKLE_PATH_MAX)
		json_refuse(reader, name);
	struct merkle_path *path = reader->result ? NULL : arena_alloc(reader->arena, sizeof *path);
	if (!path && !reader->result)
		reader->result = error_cause(reader->error, ERR_NO_MEMORY, "%s", name);
	if (!path)
		return NULL;
	for (const struct json *item = array->first; item; item = item->next)
		if (item->type != JSON_STRING ||
		    !hex_decode(item->text, path->hashes[path->count++].bytes, SHA256_SIZE)) {
			json_refuse(reader, name);
			return NULL;
		}
	return path;
}

int archive_read_checkpoint(struct arena *arena, struct slice line,
                            struct archive_checkpoint *ret_checkpoint, struct error *error)
{
	struct json_reader reader = json_reader_parse(arena, line, &line_limits, error);
	struct archive_checkpoint checkpoint = {.consistency =
	                                            take_merkle_path(&reader, "consistency")};
	checkpoint.note = json_take_text(&reader, "note");
	if (!reader.result)
		*ret_checkpoint = checkpoint;
	return reader.result;
}

int archive_read_log_place(struct arena *arena, struct slice line,
                           struct archive_log_place *ret_place, struct error *error)
{
	struct json_reader reader = json_reader_parse(arena, line, &line_limits, error);
	struct archive_log_place place = {0};
	bool is_logged = !json_is_null(&reader, "size");
	if (is_logged)
		place.index = (uint64_t)json_take_integer(&reader, "index", 0);
	place.path = take_merkle_path(&reader, "path");
	if (is_logged)
		place.size = (uint64_t)json_take_integer(&reader, "size", 1);
	if (is_logged && place.index >= place.size)
		json_refuse(&reader, "index");
	if (!reader.result && !is_logged && place.path->count > 0)
		json_refuse(&reader, "path");
	if (!reader.result)
		*ret_place = place;
	return reader.result;
}

int archive_read_genesis(struct arena *arena, struct slice text, struct genesis_facts *ret_genesis,
                         struct error *error)
{
	struct json_reader reader = json_reader_parse(arena, text, &line_limits, error);
	struct genesis_facts genesis = {.chain = take_mode(&reader, "chain")};
	genesis.channel_id = json_take_text(&reader, "channel_id");
	genesis.created_at_us = json_take_time(&reader, "created_at");
	json_require_integer(&reader, "v", 1);
	if (!reader.result)
		*ret_genesis = genesis;
	return reader.result;
}

int archive_read_config(struct arena *arena, struct slice text, struct config_facts *ret_config,
                        struct error *error)
{
	struct json_reader reader = json_reader_parse(arena, text, &line_limits, error);
	struct config_facts config = {0};
	config.channel_id = json_take_text(&reader, "channel_id");
	config.declarant = json_take_text(&reader, "declarant");
	config.description = json_take_text_or_null(&reader, "description");
	config.modality = take_modality(&reader);
	config.name = json_take_text(&reader, "name");
	config.sealed_at_us = json_take_time(&reader, "sealed_at");
	config.supplementary_info = json_take_text_or_null(&reader, "supplementary_info");
	json_require_integer(&reader, "v", 1);
	config.version = json_take_integer(&reader, "version", 1);
	if (!reader.result)
		*ret_config = config;
	return reader.result;
}

/* Reads an array of objects. `read_one` reads each element into an item of item_size bytes. */
static void *read_items(struct json_reader *reader, const char *name, size_t count_max,
                        size_t item_size, void (*read_one)(struct json_reader *, void *),
                        size_t *ret_count)
{
	const struct json *array = json_take(reader, name, JSON_ARRAY);
	if (array && array->count > count_max)
		json_refuse(reader, name);
	if (reader->result)
		return NULL;
	char *items = arena_alloc(reader->arena, (array->count + 1) * item_size);
	if (!items) {
		reader->result = error_cause(reader->error, ERR_NO_MEMORY, "manifest");
		return NULL;
	}
	size_t count = 0;
	for (const struct json *item = array->first; item; item = item->next) {
		struct json_reader inner = json_reader_of(reader->arena, item, reader->error);
		read_one(&inner, items + count++ * item_size);
		reader->result = inner.result;
		if (inner.result)
			return NULL;
	}
	*ret_count = count;
	return items;
}

static void read_manifest_config(struct json_reader *reader, void *item)
{
	struct archive_config *config = item;
	config->hash = json_take_hash(reader, "hash");
	config->version = json_take_integer(reader, "version", 1);
}

static void read_manifest_part(struct json_reader *reader, void *item)
{
	struct part_facts *part = item;
	part->size_bytes = (uint64_t)json_take_integer(reader, "bytes", 1);
	part->first_sequence = json_take_integer(reader, "first_sequence", 1);
	part->last_sequence = json_take_integer(reader, "last_sequence", 1);
	struct slice name = json_take_slice(reader, "name");
	if (name.size >= sizeof part->name || !zip_name_allowed(name))
		json_refuse(reader, "name");
	else
		memcpy(part->name, name.data, name.size); /* arena memory is zeroed */
	part->sha256 = json_take_hash(reader, "sha256");
}

static void read_manifest_file(struct json_reader *reader, void *item)
{
	struct archive_file *file = item;
	file->path = json_take_text(reader, "path");
	file->sum.sha256 = json_take_hash(reader, "sha256");
	file->sum.size_bytes = (uint64_t)json_take_integer(reader, "size", 0);
}

static void read_manifest_ranges(struct json_reader *reader, struct archive_facts *facts)
{
	struct json_reader frozen = json_take_object(reader, "frozen_range");
	facts->first_sequence = json_take_integer(&frozen, "first_sequence", 1);
	facts->last_sequence = json_take_integer(&frozen, "last_sequence", facts->first_sequence);
	reader->result = frozen.result;
	struct json_reader requested = json_take_object(reader, "requested_range");
	facts->requested_from_us = json_take_time_or_null(&requested, "from");
	facts->requested_first = take_integer_or_null(&requested, "seq_from");
	facts->requested_last = take_integer_or_null(&requested, "seq_to");
	facts->requested_to_us = json_take_time_or_null(&requested, "to");
	reader->result = requested.result;
}

int archive_read_manifest(struct arena *arena, struct slice text,
                          struct archive_manifest *ret_manifest, struct error *error)
{
	struct json_reader reader = json_reader_parse(arena, text, &manifest_limits, error);
	struct archive_manifest manifest = {0};
	struct archive_facts *facts = &manifest.facts;
	facts->certification_id = json_take_text(&reader, "certification_id");
	facts->channel_id = json_take_text(&reader, "channel_id");
	manifest.configs =
		read_items(&reader, "config_versions", ARCHIVE_ENTRIES_MAX, sizeof *manifest.configs,
	               read_manifest_config, &manifest.config_count);
	facts->parts = read_items(&reader, "content_parts", PART_COUNT_MAX, sizeof *facts->parts,
	                          read_manifest_part, &facts->part_count);
	manifest.event_count = json_take_integer(&reader, "event_count", 1);
	manifest.files = read_items(&reader, "files", ARCHIVE_ENTRIES_MAX, sizeof *manifest.files,
	                            read_manifest_file, &manifest.file_count);
	manifest.first_chain_hash = json_take_hash(&reader, "first_chain_hash");
	read_manifest_ranges(&reader, facts);
	facts->issued_at_us = json_take_time(&reader, "issued_at");
	manifest.last_chain_hash = json_take_hash(&reader, "last_chain_hash");
	facts->mode = take_mode(&reader, "mode");
	manifest.previous_chain_hash = json_take_hash(&reader, "previous_chain_hash");
	struct json_reader service = json_take_object(&reader, "service");
	facts->service_name = json_take_text(&service, "name");
	facts->service_prefix = json_take_text(&service, "prefix");
	facts->verification_url = json_take_text(&service, "verification_url");
	reader.result = service.result;
	manifest.version = json_take_integer(&reader, "v", 1);
	if (manifest.version > ARCHIVE_VERSION)
		json_refuse(&reader, "v");
	facts->verification_code = json_take_text(&reader, "verification_code");
	if (!reader.result)
		*ret_manifest = manifest;
	return reader.result;
}

int archive_read_part_head(struct arena *arena, struct slice text, struct part_head *ret_head,
                           struct error *error)
{
	struct json_reader reader = json_reader_parse(arena, text, &line_limits, error);
	struct part_head head;
	head.certification_id = json_take_text(&reader, "certification_id");
	head.channel_id = json_take_text(&reader, "channel_id");
	int64_t number = json_take_integer(&reader, "number", 1);
	if (number > PART_COUNT_MAX)
		json_refuse(&reader, "number");
	head.number = (uint32_t)number;
	json_require_integer(&reader, "v", 1);
	if (!reader.result)
		*ret_head = head;
	return reader.result;
}

int archive_read_part_line(struct arena *arena, struct slice line, struct part_entry *ret_entry,
                           struct error *error)
{
	if (archive_scan_part_line(line, ret_entry))
		return 0;
	struct json_reader reader = json_reader_parse(arena, line, &line_limits, error);
	struct part_entry entry;
	entry.is_json = part_name_is_json(json_take_slice(&reader, "entry"));
	entry.event_id = take_plain(&reader, "event_id");
	entry.hash = json_take_hash(&reader, "hash");
	entry.sequence = json_take_integer(&reader, "sequence", 1);
	if (!reader.result)
		*ret_entry = entry;
	return reader.result;
}
