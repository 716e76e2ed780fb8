#include <inttypes.h>
#include <stdio.h>

#include "archive/archive_lines.h"
#include "archive/xml_text.h"
#include "base/base64.h"
#include "base/json.h"

const char *archive_stream_text(enum archive_stream stream)
{
	static const char *const texts[] = {"events",   "leaves",      "seals", "rounds", "validation",
	                                    "renewals", "checkpoints", "log",   "history"};
	return texts[stream];
}

void archive_stream_path(enum archive_stream stream, uint32_t number, char path[ZIP_NAME_MAX + 1])
{
	const char *text = archive_stream_text(stream);
	snprintf(path, ZIP_NAME_MAX + 1, "%s/%s-%06u.ndjson.gz", text, text, number);
}

void archive_config_path(int64_t version, char path[ZIP_NAME_MAX + 1])
{
	snprintf(path, ZIP_NAME_MAX + 1, "config/config-%06" PRId64 ".json", version);
}

static void json_hash(struct json_writer *writer, const char *name, const struct sha256 *hash)
{
	json_hex(writer, name, hash->bytes, SHA256_SIZE);
}

/* Writes Base64 directly into the output, because it needs no escapes. */
static void json_base64(struct json_writer *writer, const char *name, struct slice bytes)
{
	json_raw(writer, name, slice_of("\""));
	buf_add_base64(writer->out, bytes);
	buf_add_byte(writer->out, '"');
}

void archive_leaf_line(int64_t sequence, const struct sha256 *chain_hash, struct buf *out)
{
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_hash(&writer, "chain_hash", chain_hash);
	json_integer(&writer, "sequence", sequence);
	json_end_object(&writer);
}

static void json_path(struct json_writer *writer, const struct tree_proof *path)
{
	json_begin_array(writer, "path");
	for (size_t i = 0; i < path->count; i++)
		json_hash(writer, NULL, &path->siblings[i]);
	json_end_array(writer);
}

void archive_segment_line(const struct archive_segment *segment, struct buf *out)
{
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_path(&writer, segment->path);
	json_text(&writer, "round_id", segment->round_id);
	json_raw(&writer, "seal", slice_of(""));
	seal_document_write(&segment->seal, out);
	json_end_object(&writer);
}

static void json_hashes(struct json_writer *writer, const char *name, const struct sha256 *hashes,
                        size_t count)
{
	json_begin_array(writer, name);
	for (size_t i = 0; i < count; i++)
		json_hash(writer, NULL, &hashes[i]);
	json_end_array(writer);
}

static void json_renewal(struct json_writer *writer, const struct archive_renewal *renewal)
{
	if (renewal->stamp == 0) {
		json_null(writer, "renewal");
		return;
	}
	json_begin_object(writer, "renewal");
	json_path(writer, renewal->path);
	json_integer(writer, "stamp", renewal->stamp);
	json_end_object(writer);
}

/* Writes the members before "root", which version 1 has among those of the token. */
static void token_head(const struct archive_token *token, int64_t version,
                       struct json_writer *writer)
{
	json_text(writer, "authority", token->authority);
	if (version > 1)
		json_hashes(writer, "certificates", token->certificates, token->certificate_count);
	json_time(writer, "gen_time", token->gen_time_us);
	json_text(writer, "kind", authority_kind_text(token->kind));
	if (version > 1)
		json_renewal(writer, &token->renewal);
	if (token->request.size > 0)
		json_base64(writer, "request", token->request);
	else
		json_null(writer, "request");
}

static void round_tokens(const struct archive_round *round, struct json_writer *writer)
{
	json_begin_array(writer, "tokens");
	for (size_t i = 0; i < round->token_count; i++) {
		json_begin_object(writer, NULL);
		const struct archive_token *token = &round->tokens[i];
		token_head(token, ARCHIVE_VERSION, writer);
		json_hashes(writer, "revocations", token->revocations, token->revocation_count);
		json_base64(writer, "token", token->token);
		json_end_object(writer);
	}
	json_end_array(writer);
}

void archive_round_line(const struct archive_round *round, int64_t version, struct buf *out)
{
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	if (version == 1)
		token_head(&round->tokens[0], version, &writer);
	else
		json_time(&writer, "gen_time", round->tokens[0].gen_time_us);
	json_hash(&writer, "root", &round->root);
	json_text(&writer, "round_id", round->round_id);
	if (version == 1)
		json_base64(&writer, "token", round->tokens[0].token);
	else
		round_tokens(round, &writer);
	json_end_object(&writer);
}

const char *const archive_object_kinds[] = {
	[OBJECT_CERTIFICATE] = "certificate",
	[OBJECT_CRL] = "crl",
	[OBJECT_OCSP] = "ocsp",
};

void archive_object_line(const struct archive_object *object, const struct sha256 *sha256,
                         struct buf *out)
{
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_base64(&writer, "der", object->der);
	json_text(&writer, "kind", archive_object_kinds[object->kind]);
	json_hash(&writer, "sha256", sha256);
	json_end_object(&writer);
}

void archive_stamp_line(const struct archive_stamp *stamp, struct buf *out)
{
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_text(&writer, "authority", stamp->authority);
	json_time(&writer, "gen_time", stamp->gen_time_us);
	json_text(&writer, "kind", authority_kind_text(stamp->kind));
	json_renewal(&writer, &stamp->renewal);
	json_integer(&writer, "stamp", stamp->stamp);
	json_base64(&writer, "token", stamp->token);
	json_end_object(&writer);
}

void archive_checkpoint_line(const struct archive_checkpoint *checkpoint, struct buf *out)
{
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_hashes(&writer, "consistency", checkpoint->consistency->hashes,
	            checkpoint->consistency->count);
	json_text(&writer, "note", checkpoint->note);
	json_end_object(&writer);
}

void archive_log_line(const struct archive_log_place *place, struct buf *out)
{
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	if (place->size > 0)
		json_integer(&writer, "index", (int64_t)place->index);
	else
		json_null(&writer, "index");
	json_hashes(&writer, "path", place->path->hashes, place->path->count);
	if (place->size > 0)
		json_integer(&writer, "size", (int64_t)place->size);
	else
		json_null(&writer, "size");
	json_end_object(&writer);
}

static void manifest_parts(const struct archive_facts *facts, struct json_writer *writer)
{
	json_begin_array(writer, "content_parts");
	for (size_t i = 0; i < facts->part_count; i++) {
		const struct part_facts *part = &facts->parts[i];
		json_begin_object(writer, NULL);
		json_integer(writer, "bytes", (int64_t)part->size_bytes);
		json_integer(writer, "first_sequence", part->first_sequence);
		json_integer(writer, "last_sequence", part->last_sequence);
		json_text(writer, "name", part->name);
		json_hash(writer, "sha256", &part->sha256);
		json_end_object(writer);
	}
	json_end_array(writer);
}

static void manifest_configs(const struct archive_manifest *manifest, struct json_writer *writer)
{
	json_begin_array(writer, "config_versions");
	for (size_t i = 0; i < manifest->config_count; i++) {
		json_begin_object(writer, NULL);
		json_hash(writer, "hash", &manifest->configs[i].hash);
		json_integer(writer, "version", manifest->configs[i].version);
		json_end_object(writer);
	}
	json_end_array(writer);
}

static void manifest_files(const struct archive_manifest *manifest, struct json_writer *writer)
{
	json_begin_array(writer, "files");
	for (size_t i = 0; i < manifest->file_count; i++) {
		json_begin_object(writer, NULL);
		json_text(writer, "path", manifest->files[i].path);
		json_hash(writer, "sha256", &manifest->files[i].sum.sha256);
		json_integer(writer, "size", (int64_t)manifest->files[i].sum.size_bytes);
		json_end_object(writer);
	}
	json_end_array(writer);
}

static void integer_or_null(struct json_writer *writer, const char *name, int64_t value)
{
	if (value > 0)
		json_integer(writer, name, value);
	else
		json_null(writer, name);
}

void archive_manifest_write(const struct archive_manifest *manifest, struct buf *out)
{
	const struct archive_facts *facts = &manifest->facts;
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_text(&writer, "certification_id", facts->certification_id);
	json_text(&writer, "channel_id", facts->channel_id);
	manifest_configs(manifest, &writer);
	manifest_parts(facts, &writer);
	json_integer(&writer, "event_count", manifest->event_count);
	manifest_files(manifest, &writer);
	json_hash(&writer, "first_chain_hash", &manifest->first_chain_hash);
	json_begin_object(&writer, "frozen_range");
	json_integer(&writer, "first_sequence", facts->first_sequence);
	json_integer(&writer, "last_sequence", facts->last_sequence);
	json_end_object(&writer);
	json_time(&writer, "issued_at", facts->issued_at_us);
	json_hash(&writer, "last_chain_hash", &manifest->last_chain_hash);
	json_text(&writer, "mode", mode_text(facts->mode));
	json_hash(&writer, "previous_chain_hash", &manifest->previous_chain_hash);
	json_begin_object(&writer, "requested_range");
	json_time(&writer, "from", facts->requested_from_us);
	integer_or_null(&writer, "seq_from", facts->requested_first);
	integer_or_null(&writer, "seq_to", facts->requested_last);
	json_time(&writer, "to", facts->requested_to_us);
	json_end_object(&writer);
	json_begin_object(&writer, "service");
	json_text(&writer, "name", facts->service_name);
	json_text(&writer, "prefix", facts->service_prefix);
	json_text(&writer, "verification_url", facts->verification_url);
	json_end_object(&writer);
	json_integer(&writer, "v", manifest->version);
	json_text(&writer, "verification_code", facts->verification_code);
	json_end_object(&writer);
}

#define ASIC_BEGIN                                                                                 \
	"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"                                                 \
	"<asic:ASiCManifest xmlns:asic=\"http://uri.etsi.org/02918/v1.2.1#\""                          \
	" xmlns:ds=\"http://www.w3.org/2000/09/xmldsig#\">\n"

void archive_asic_begin(struct buf *out)
{
	buf_add_text(out, ASIC_BEGIN "<asic:SigReference URI=\"" ARCHIVE_SIGNATURE_NAME "\""
	                             " MimeType=\"application/x-pkcs7-signature\"/>\n");
}

void archive_asic_record_begin(const char *record, struct buf *out)
{
	buf_add_text(out, ASIC_BEGIN "<asic:SigReference URI=\"");
	xml_add_text(out, record);
	buf_add_text(out, "\"/>\n");
}

void archive_asic_file(const struct archive_file *file, struct buf *out)
{
	buf_add_text(out, "<asic:DataObjectReference URI=\"");
	xml_add_text(out, file->path);
	buf_add_text(out, "\"><ds:DigestMethod"
	                  " Algorithm=\"http://www.w3.org/2001/04/xmlenc#sha256\"/><ds:DigestValue>");
	buf_add_base64(out, slice_make(file->sum.sha256.bytes, SHA256_SIZE));
	buf_add_text(out, "</ds:DigestValue></asic:DataObjectReference>\n");
}

void archive_asic_end(struct buf *out)
{
	buf_add_text(out, "</asic:ASiCManifest>\n");
}

void part_head_write(const struct part_head *head, struct buf *out)
{
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_text(&writer, "certification_id", head->certification_id);
	json_text(&writer, "channel_id", head->channel_id);
	json_integer(&writer, "number", head->number);
	json_integer(&writer, "v", 1);
	json_end_object(&writer);
}

void part_entry_name(const struct part_entry *entry, char name[ZIP_NAME_MAX + 1])
{
	const char *type = entry->is_json ? ".json" : ".bin";
	if (entry->sequence >= INT64_C(1000000000000)) {
		snprintf(name, ZIP_NAME_MAX + 1, "content/%" PRId64 "%s", entry->sequence, type);
		return;
	}
	static const char digits[] = "content/000000000000";
	memcpy(name, digits, sizeof digits - 1);
	int64_t rest = entry->sequence;
	for (char *digit = name + sizeof digits - 2; rest > 0; rest /= 10)
		*digit-- = (char)('0' + rest % 10);
	memcpy(name + sizeof digits - 1, type, strlen(type) + 1);
}

void part_index_line(const struct part_entry *entry, struct buf *out)
{
	char name[ZIP_NAME_MAX + 1];
	part_entry_name(entry, name);
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_text(&writer, "entry", name);
	json_slice(&writer, "event_id", entry->event_id);
	json_hash(&writer, "hash", &entry->hash);
	json_integer(&writer, "sequence", entry->sequence);
	json_end_object(&writer);
}
