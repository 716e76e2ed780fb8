#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "archive/archive_lines.h"
#include "archive/gzip.h"

#define CONFIGS_MAX ARCHIVE_ENTRIES_MAX

/* The phases of writing. A call of an earlier phase is rejected. */
enum phase {
	PHASE_SIGNERS,
	PHASE_CONFIGS,
	PHASE_EVENTS,
	PHASE_LEAVES,
	PHASE_SEALS,
	PHASE_ROUNDS,
	PHASE_OBJECTS,
	PHASE_RENEWALS,
	PHASE_CHECKPOINTS,
	PHASE_LOG_PLACES,
	PHASE_HISTORY,
	PHASE_CLOSED
};

struct archive {
	struct zip_writer *zip;
	struct archive_manifest manifest;
	enum phase phase;
	bool failed;

	struct archive_file *files;
	size_t file_room;
	struct archive_config *configs;
	size_t config_room;

	/* The open stream. Its lines are compressed into the open entry. */
	struct gzip_writer *gzip;
	bool stream_open;
	enum archive_stream stream;
	uint32_t file_number;
	uint32_t lines;

	struct buf text;
	struct sha256 chain_hash; /* chain hash of the last event */
	struct sha256 last_object;
	size_t object_count, object_bytes;
	int64_t last_stamp; /* number of the last archive timestamp */
	size_t stamp_count;
};

/* Ends every public function. After a failure only archive_free is allowed. */
static int settle(struct archive *archive, int status)
{
	if (status < 0)
		archive->failed = true;
	return status;
}

static int enter(struct archive *archive, enum phase phase, struct error *error)
{
	if (archive->failed || phase < archive->phase)
		return settle(archive,
		              error_cause(error, ERR_USAGE, "archive: function calls out of order"));
	archive->phase = phase;
	return 0;
}

static int check_text(struct archive *archive, struct error *error)
{
	return buf_check(&archive->text) < 0 ? error_cause(error, ERR_NO_MEMORY, "archive text") : 0;
}

/* Grows an array for one more item. Returns false without memory. */
static bool grow(void **items, size_t count, size_t *room, size_t item_size)
{
	if (count < *room)
		return true;
	size_t wanted = *room ? *room * 2 : 16;
	void *grown = reallocarray(*items, wanted, item_size);
	if (!grown)
		return false;
	*items = grown;
	*room = wanted;
	return true;
}

static int list_file(struct archive *archive, const char *path, const struct zip_sum *sum,
                     struct error *error)
{
	void *items = archive->files;
	char *copy = strdup(path);
	if (!copy ||
	    !grow(&items, archive->manifest.file_count, &archive->file_room, sizeof *archive->files)) {
		free(copy);
		return error_cause(error, ERR_NO_MEMORY, "archive files");
	}
	archive->manifest.files = archive->files = items;
	archive->files[archive->manifest.file_count++] = (struct archive_file){copy, *sum};
	return 0;
}

static int add_file(struct archive *archive, const char *path, struct slice content,
                    struct error *error)
{
	struct zip_sum sum;
	int result = zip_add(archive->zip, path, content, &sum, error);
	return result < 0 ? result : list_file(archive, path, &sum, error);
}

static int write_compressed(void *context, const void *data, size_t size, struct error *error)
{
	struct archive *archive = context;
	return zip_entry_write(archive->zip, data, size, error);
}

static int start(struct archive *archive, const char *path, struct error *error)
{
	int result = zip_create(path, ZIP_BYTES_MAX, ARCHIVE_ENTRIES_MAX, &archive->zip, error);
	if (!result)
		result = zip_add(archive->zip, "mimetype", slice_of(ARCHIVE_MIMETYPE), NULL, error);
	if (!result)
		result = add_file(archive, ARCHIVE_README_NAME, slice_of(archive_readme), error);
	if (!result)
		result = add_file(archive, ARCHIVE_LEEME_NAME, slice_of(archive_leeme), error);
	const struct archive_facts *facts = &archive->manifest.facts;
	genesis_document(&facts->genesis, &archive->text);
	if (!result)
		result = check_text(archive, error);
	if (!result)
		result = add_file(archive, ARCHIVE_GENESIS_NAME, buf_slice(&archive->text), error);
	return result;
}

int archive_begin(const char *path, const struct archive_facts *facts, struct archive **ret_archive,
                  struct error *error)
{
	if (facts->first_sequence < 1 || facts->last_sequence < facts->first_sequence ||
	    facts->part_count > PART_COUNT_MAX)
		return error_cause(error, ERR_USAGE, "archive: range or parts out of bounds");
	struct archive *archive = calloc(1, sizeof *archive);
	if (!archive)
		return error_cause(error, ERR_NO_MEMORY, "archive");
	archive->manifest.facts = *facts;
	archive->manifest.version = ARCHIVE_VERSION;
	buf_init(&archive->text, ARCHIVE_MANIFEST_MAX);
	int status =
		gzip_writer_make(GZIP_BY_FASTEST, write_compressed, archive, &archive->gzip, error);
	if (!status)
		status = start(archive, path, error);
	if (status < 0) {
		archive_free(archive);
		return status;
	}
	*ret_archive = archive;
	return 0;
}

int archive_add_signers(struct archive *archive, struct slice document, struct error *error)
{
	int result = enter(archive, PHASE_SIGNERS, error);
	if (result < 0)
		return result;
	archive->phase = PHASE_CONFIGS;
	return settle(archive, add_file(archive, ARCHIVE_SIGNERS_NAME, document, error));
}

int archive_add_config(struct archive *archive, int64_t version, struct slice document,
                       struct error *error)
{
	int result = enter(archive, PHASE_CONFIGS, error);
	if (result < 0)
		return result;
	size_t count = archive->manifest.config_count;
	void *items = archive->configs;
	if (version < 1 || document.size > ARCHIVE_DOCUMENT_MAX || count >= CONFIGS_MAX ||
	    (count > 0 && archive->configs[count - 1].version >= version))
		return settle(archive,
		              error_cause(error, ERR_USAGE,
		                          "archive: configuration %" PRId64 " is out of order or too large",
		                          version));
	if (!grow(&items, count, &archive->config_room, sizeof *archive->configs))
		return settle(archive, error_cause(error, ERR_NO_MEMORY, "archive configurations"));
	archive->manifest.configs = archive->configs = items;
	archive->configs[count] =
		(struct archive_config){version, sha256_of(document.data, document.size)};
	archive->manifest.config_count++;
	char path[ZIP_NAME_MAX + 1];
	archive_config_path(version, path);
	return settle(archive, add_file(archive, path, document, error));
}

static int close_stream(struct archive *archive, struct error *error)
{
	if (!archive->stream_open)
		return 0;
	assert(archive->lines >= 1 && archive->lines <= ARCHIVE_LINES_PER_FILE);
	archive->stream_open = false;
	struct zip_sum sum;
	int result = gzip_end(archive->gzip, error);
	if (!result)
		result = zip_entry_end(archive->zip, &sum, error);
	char path[ZIP_NAME_MAX + 1];
	archive_stream_path(archive->stream, archive->file_number, path);
	return result < 0 ? result : list_file(archive, path, &sum, error);
}

static int open_stream(struct archive *archive, enum archive_stream stream, struct error *error)
{
	if (archive->stream_open && archive->stream == stream &&
	    archive->lines < ARCHIVE_LINES_PER_FILE)
		return 0;
	int status = close_stream(archive, error);
	if (status < 0)
		return status;
	archive->file_number = archive->stream == stream ? archive->file_number + 1 : 1;
	archive->stream = stream;
	archive->lines = 0;
	char path[ZIP_NAME_MAX + 1];
	archive_stream_path(stream, archive->file_number, path);
	status = zip_entry_begin(archive->zip, path, error);
	archive->stream_open = status == 0;
	return status;
}

/* Writes archive->text as a line. */
static int add_line(struct archive *archive, enum archive_stream stream, struct error *error)
{
	buf_add_byte(&archive->text, '\n');
	int result = check_text(archive, error);
	if (!result && archive->text.size > ARCHIVE_LINE_MAX)
		result = error_cause(error, ERR_TOO_LARGE, "archive: a line of %s is too long",
		                     archive_stream_text(stream));
	if (!result)
		result = open_stream(archive, stream, error);
	assert(result || (archive->stream_open && archive->lines < ARCHIVE_LINES_PER_FILE));
	if (!result)
		result = gzip_write(archive->gzip, buf_slice(&archive->text), error);
	archive->lines++;
	return settle(archive, result);
}

int archive_add_event(struct archive *archive, const struct event_facts *event, struct error *error)
{
	int result = enter(archive, PHASE_EVENTS, error);
	if (result < 0)
		return result;
	struct archive_manifest *manifest = &archive->manifest;
	bool first = manifest->event_count == 0;
	if (event->sequence != manifest->facts.first_sequence + manifest->event_count ||
	    event->sequence > manifest->facts.last_sequence ||
	    (!first && !sha256_equal(&event->previous_chain_hash, &archive->chain_hash)))
		return settle(archive, error_cause(error, ERR_CORRUPT,
		                                   "event %" PRId64 " does not continue the chain of %s",
		                                   event->sequence, manifest->facts.channel_id));
	result = event_chain_hash(event, &archive->text, &archive->chain_hash);
	if (result)
		return settle(archive, error_cause(error, result, "encoding an event record"));
	if (first) {
		manifest->previous_chain_hash = event->previous_chain_hash;
		manifest->first_chain_hash = archive->chain_hash;
	}
	manifest->last_chain_hash = archive->chain_hash;
	manifest->event_count++;
	return add_line(archive, STREAM_EVENTS, error);
}

int archive_add_leaf(struct archive *archive, int64_t sequence, const struct sha256 *chain_hash,
                     struct error *error)
{
	int result = enter(archive, PHASE_LEAVES, error);
	if (result < 0)
		return result;
	buf_clear(&archive->text);
	archive_leaf_line(sequence, chain_hash, &archive->text);
	return add_line(archive, STREAM_LEAVES, error);
}

int archive_add_segment(struct archive *archive, const struct archive_segment *segment,
                        struct error *error)
{
	int result = enter(archive, PHASE_SEALS, error);
	if (result < 0)
		return result;
	buf_clear(&archive->text);
	archive_segment_line(segment, &archive->text);
	return add_line(archive, STREAM_SEALS, error);
}

int archive_add_round(struct archive *archive, const struct archive_round *round,
                      struct error *error)
{
	int result = enter(archive, PHASE_ROUNDS, error);
	if (result < 0)
		return result;
	if (round->token_count < 1 || round->token_count > ARCHIVE_TOKENS_MAX)
		return settle(archive, error_cause(error, ERR_USAGE,
		                                   "archive: invalid number of tokens (%zu) in round %s",
		                                   round->token_count, round->round_id));
	for (size_t i = 0; i < round->token_count; i++)
		if (round->tokens[i].token.size == 0 ||
		    round->tokens[i].token.size > TIMESTAMP_RESPONSE_MAX ||
		    round->tokens[i].request.size > TIMESTAMP_REQUEST_MAX)
			return settle(archive, error_cause(error, ERR_TOO_LARGE,
			                                   "archive: the token of round %s is too large",
			                                   round->round_id));
	buf_clear(&archive->text);
	archive_round_line(round, archive->manifest.version, &archive->text);
	return add_line(archive, STREAM_ROUNDS, error);
}

int archive_add_object(struct archive *archive, const struct archive_object *object,
                       struct error *error)
{
	int result = enter(archive, PHASE_OBJECTS, error);
	if (result < 0)
		return result;
	struct sha256 sha256 = sha256_of(object->der.data, object->der.size);
	if (archive->object_count > 0 && memcmp(&archive->last_object, &sha256, sizeof sha256) >= 0)
		return settle(archive, error_cause(error, ERR_USAGE, "archive: objects out of order"));
	archive->last_object = sha256;
	archive->object_bytes += object->der.size;
	if (++archive->object_count > ARCHIVE_OBJECTS_MAX ||
	    archive->object_bytes > ARCHIVE_OBJECTS_BYTES_MAX)
		return settle(archive, error_cause(error, ERR_TOO_LARGE, "archive: too many objects"));
	buf_clear(&archive->text);
	archive_object_line(object, &sha256, &archive->text);
	return add_line(archive, STREAM_VALIDATION, error);
}

int archive_add_renewal(struct archive *archive, const struct archive_stamp *stamp,
                        struct error *error)
{
	int result = enter(archive, PHASE_RENEWALS, error);
	if (result < 0)
		return result;
	if (stamp->stamp < 1 || (archive->stamp_count > 0 && stamp->stamp >= archive->last_stamp))
		return settle(archive, error_cause(error, ERR_USAGE, "archive: renewals out of order"));
	archive->last_stamp = stamp->stamp;
	if (++archive->stamp_count > ARCHIVE_RENEWALS_MAX ||
	    stamp->token.size > ARCHIVE_RENEWAL_TOKEN_MAX)
		return settle(archive, error_cause(error, ERR_TOO_LARGE, "archive: too many renewals"));
	buf_clear(&archive->text);
	archive_stamp_line(stamp, &archive->text);
	return add_line(archive, STREAM_RENEWALS, error);
}

int archive_add_checkpoint(struct archive *archive, const struct archive_checkpoint *checkpoint,
                           struct error *error)
{
	int result = enter(archive, PHASE_CHECKPOINTS, error);
	if (result < 0)
		return result;
	buf_clear(&archive->text);
	archive_checkpoint_line(checkpoint, &archive->text);
	return add_line(archive, STREAM_CHECKPOINTS, error);
}

int archive_add_log_place(struct archive *archive, const struct archive_log_place *place,
                          struct error *error)
{
	int result = enter(archive, PHASE_LOG_PLACES, error);
	if (result < 0)
		return result;
	buf_clear(&archive->text);
	archive_log_line(place, &archive->text);
	return add_line(archive, STREAM_LOG, error);
}

int archive_add_history(struct archive *archive, struct slice document, struct error *error)
{
	int result = enter(archive, PHASE_HISTORY, error);
	if (result < 0)
		return result;
	buf_clear(&archive->text);
	buf_add_slice(&archive->text, document);
	return add_line(archive, STREAM_HISTORY, error);
}

/* Writes the ASiCManifest, which lists the manifest first, and its signature. */
static int add_signature(struct archive *archive, const struct zip_sum *manifest_sum,
                         const struct cms_signing *signing, struct error *error)
{
	struct buf *text = &archive->text;
	buf_clear(text);
	archive_asic_begin(text);
	archive_asic_file(&(struct archive_file){ARCHIVE_MANIFEST_NAME, *manifest_sum}, text);
	for (size_t i = 0; i < archive->manifest.file_count; i++)
		archive_asic_file(&archive->files[i], text);
	archive_asic_end(text);
	struct zip_sum sum;
	int result = check_text(archive, error);
	if (!result)
		result = zip_add(archive->zip, ARCHIVE_ASIC_NAME, buf_slice(text), &sum, error);
	BUF_AUTO struct buf signature;
	buf_init(&signature, CMS_LT_SIZE_MAX);
	if (!result)
		result = cms_create(&sum.sha256, archive->manifest.facts.issued_at_us, signing, &signature,
		                    error);
	if (!result)
		result = zip_add(archive->zip, ARCHIVE_SIGNATURE_NAME, buf_slice(&signature), NULL, error);
	return result;
}

int archive_set_parts(struct archive *archive, const struct part_facts *parts, size_t count,
                      struct error *error)
{
	if (archive->failed || archive->phase == PHASE_CLOSED || count > PART_COUNT_MAX)
		return settle(archive, error_cause(error, ERR_USAGE, "archive: parts out of bounds"));
	archive->manifest.facts.parts = parts;
	archive->manifest.facts.part_count = count;
	return 0;
}

static bool is_complete(const struct archive *archive)
{
	return archive->manifest.facts.mode == MODE_LIVE ? archive->stream >= STREAM_ROUNDS
	                                                 : archive->stream == STREAM_EVENTS;
}

int archive_finish(struct archive *archive, const struct cms_signing *signing,
                   struct zip_sum *ret_sum, struct error *error)
{
	int result = enter(archive, PHASE_CLOSED, error);
	if (result < 0)
		return result;
	const struct archive_facts *facts = &archive->manifest.facts;
	if (archive->manifest.event_count != facts->last_sequence - facts->first_sequence + 1 ||
	    !is_complete(archive) || (facts->mode == MODE_LIVE && !signing->timestamp))
		return settle(archive,
		              error_cause(error, ERR_CORRUPT,
		                          "archive: events, leaves or seals of the range are missing"));
	result = close_stream(archive, error);
	buf_clear(&archive->text);
	archive_manifest_write(&archive->manifest, &archive->text);
	struct zip_sum sum;
	if (!result)
		result = check_text(archive, error);
	if (!result)
		result =
			zip_add(archive->zip, ARCHIVE_MANIFEST_NAME, buf_slice(&archive->text), &sum, error);
	if (!result)
		result = add_signature(archive, &sum, signing, error);
	if (!result)
		result = zip_finish(archive->zip, ret_sum, error);
	return settle(archive, result);
}

struct sha256 archive_first_chain_hash(const struct archive *archive)
{
	return archive->manifest.first_chain_hash;
}

struct sha256 archive_last_chain_hash(const struct archive *archive)
{
	return archive->manifest.last_chain_hash;
}

void archive_free(struct archive *archive)
{
	if (!archive)
		return;
	zip_writer_free(archive->zip);
	gzip_writer_free(archive->gzip);
	for (size_t i = 0; i < archive->manifest.file_count; i++)
		free((char *)archive->files[i].path);
	free(archive->files);
	free(archive->configs);
	buf_free(&archive->text);
	free(archive);
}
