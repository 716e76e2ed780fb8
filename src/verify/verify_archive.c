/* Checks of an archive as a whole: its entries, manifest and signature, and then its chain. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "verify/verify_check.h"

#define ARENA_MAX ((size_t)256 << 20)
#define DOCUMENT_ARENA_MAX ((size_t)4 << 20)
#define ENTRIES_MIN 8 /* mimetype, README, LEEME, genesis, events, and the last three */

struct archive_check {
	struct run *run;
	struct input *input;
	struct zip_reader *zip;
	uint32_t count; /* number of entries */
	struct zip_sum *sums;
	bool *summed;                /* whether the sum is known */
	struct arena arena;          /* memory of the manifest */
	struct arena document_arena; /* memory of one other document */
	struct buf scratch;
	struct archive_manifest manifest;
	bool has_manifest;
	enum modality *modalities; /* of the configurations in the manifest */
	bool has_genesis;
	struct sha256 genesis_hash;
};

static int note(struct archive_check *check, const char *where, enum finding finding, int status,
                const struct error *error)
{
	return status < 0
	           ? verify_add_error(check->run, check->input->path, where, finding, status, error)
	           : 0;
}

#define wrong(check, where, finding, ...)                                                          \
	verify_add_filled((check)->run, VERIFY_WRONG, (check)->input->path, where, finding,            \
	                  finding##_EN, finding##_ES, ##__VA_ARGS__)

static const char *name_of(const struct archive_check *check, uint32_t index, char *to)
{
	const struct zip_entry *entry = zip_at(check->zip, index);
	memcpy(to, entry->name.data, entry->name.size);
	to[entry->name.size] = 0;
	return to;
}

/* Computes the digest of every entry. */
static int sum_entries(struct archive_check *check)
{
	check->sums = calloc(check->count, sizeof *check->sums);
	check->summed = calloc(check->count, sizeof *check->summed);
	if (!check->sums || !check->summed)
		return ERR_NO_MEMORY;
	uint64_t done = 0;
	for (uint32_t i = 0; i < check->count && !verify_is_stopped(check->run); i++) {
		struct error error = {0};
		char name[ZIP_NAME_MAX + 1];
		int result = zip_entry_sum(check->zip, zip_at(check->zip, i), &check->sums[i], &error);
		check->summed[i] = !result;
		result =
			note(check, name_of(check, i, name), FINDING_ARCHIVE_ENTRY_DAMAGED, result, &error);
		if (result < 0)
			return result;
		check->run->result->checked.files++;
		done += zip_at(check->zip, i)->size;
		result =
			verify_progress(check->run, check->input->path, done, check->input->sum.size_bytes);
		if (result < 0)
			return result;
	}
	return 0;
}

static int check_mimetype(struct archive_check *check)
{
	struct error error = {0};
	BUF_AUTO struct buf text;
	buf_init(&text, sizeof ARCHIVE_MIMETYPE);
	const struct zip_entry *entry = zip_at(check->zip, 0);
	int result = zip_entry_load(check->zip, entry, sizeof ARCHIVE_MIMETYPE - 1, &text, &error);
	if (result < 0 && result != ERR_INVALID_EVIDENCE)
		return note(check, "mimetype", FINDING_ARCHIVE_ENTRY_DAMAGED, result, &error);
	if (!slice_is(entry->name, "mimetype") || !slice_is(buf_slice(&text), ARCHIVE_MIMETYPE))
		wrong(check, "mimetype", FINDING_ARCHIVE_MIMETYPE, ARCHIVE_MIMETYPE);
	return 0;
}

static int read_manifest(struct archive_check *check, struct error *error)
{
	const struct zip_entry *entry = zip_at(check->zip, check->count - 3);
	if (!slice_is(entry->name, ARCHIVE_MANIFEST_NAME))
		return finding_fail(error, FINDING_MANIFEST_MISPLACED);
	BUF_AUTO struct buf text;
	buf_init(&text, ARCHIVE_MANIFEST_MAX);
	int result = zip_entry_load(check->zip, entry, ARCHIVE_MANIFEST_MAX - 1, &text, error);
	struct archive_manifest manifest;
	if (!result)
		result = archive_read_manifest(&check->arena, buf_slice(&text), &manifest, error);
	if (result < 0)
		return result;
	check->manifest = manifest;
	check->has_manifest = true;
	buf_clear(&check->scratch);
	archive_manifest_write(&manifest, &check->scratch);
	return verify_canonical(buf_slice(&text), &check->scratch, error);
}

/* Stores the facts with which reports and parts are compared in the input. */
static int describe(struct archive_check *check)
{
	assert(check->has_manifest && !check->input->described);
	struct arena *arena = &check->run->arena;
	struct archive_manifest copy = check->manifest;
	struct archive_facts *facts = &copy.facts;
	facts->certification_id = arena_text(arena, facts->certification_id);
	facts->verification_code = arena_text(arena, facts->verification_code);
	facts->channel_id = arena_text(arena, facts->channel_id);
	if (!facts->certification_id || !facts->verification_code || !facts->channel_id)
		return ERR_NO_MEMORY;
	copy.files = NULL;
	copy.configs = NULL;
	facts->parts = NULL;
	copy.file_count = copy.config_count = facts->part_count = 0;
	check->input->manifest = copy;
	check->input->described = true;
	return 0;
}

/* Compares the list in the manifest with the entries between 'mimetype' and the manifest. */
static void check_files(struct archive_check *check)
{
	const struct archive_manifest *manifest = &check->manifest;
	uint32_t listed = check->count - 4;
	if (manifest->file_count != listed)
		wrong(check, ARCHIVE_MANIFEST_NAME, FINDING_ARCHIVE_FILE_COUNT, manifest->file_count,
		      listed);
	for (uint32_t i = 0; i < listed && i < manifest->file_count; i++) {
		const struct archive_file *file = &manifest->files[i];
		char name[ZIP_NAME_MAX + 1];
		name_of(check, i + 1, name);
		if (strcmp(file->path, name) != 0) {
			wrong(check, name, FINDING_ARCHIVE_FILE_NOT_LISTED, file->path);
			return;
		}
		const struct zip_sum *sum = &check->sums[i + 1];
		if (!check->summed[i + 1])
			continue;
		if (sum->size_bytes != file->sum.size_bytes)
			wrong(check, name, FINDING_ARCHIVE_FILE_SIZE, sum->size_bytes, file->sum.size_bytes);
		else if (!sha256_equal(&sum->sha256, &file->sum.sha256))
			wrong(check, name, FINDING_ARCHIVE_FILE_DIGEST);
	}
}

/* Returns whether an archive of its version and mode may have a stream. Those of the log belong
 * together; the check of the segments finds out whether the second is missing. */
static bool may_have_stream(const struct archive_check *check, enum archive_stream stream)
{
	char path[ZIP_NAME_MAX + 1];
	if (stream < STREAM_CHECKPOINTS)
		return true;
	if (check->manifest.version < ARCHIVE_VERSION_OF_LOG || check->manifest.facts.mode != MODE_LIVE)
		return false;
	archive_stream_path(STREAM_CHECKPOINTS, 1, path);
	return stream == STREAM_HISTORY || zip_find(check->zip, path);
}

/* Checks the names and the order of the files. */
static void check_names(struct archive_check *check)
{
	static const char *const fixed[] = {ARCHIVE_README_NAME, ARCHIVE_LEEME_NAME,
	                                    ARCHIVE_GENESIS_NAME};
	uint32_t at = 1, end = check->count - 3;
	char name[ZIP_NAME_MAX + 1], path[ZIP_NAME_MAX + 1];
	for (size_t i = 0; i < sizeof fixed / sizeof *fixed && at < end; i++, at++)
		if (strcmp(name_of(check, at, name), fixed[i]) != 0)
			wrong(check, name, FINDING_ARCHIVE_FILE_MISPLACED, fixed[i]);
	if (at < end && check->manifest.version >= ARCHIVE_VERSION_OF_SIGNERS &&
	    slice_is(zip_at(check->zip, at)->name, ARCHIVE_SIGNERS_NAME))
		at++;
	for (size_t i = 0; i < check->manifest.config_count && at < end; i++, at++) {
		archive_config_path(check->manifest.configs[i].version, path);
		if (strcmp(name_of(check, at, name), path) != 0)
			wrong(check, name, FINDING_ARCHIVE_FILE_MISPLACED, path);
	}
	for (int stream = 0; stream < STREAM_COUNT; stream++)
		for (uint32_t number = 1; at < end; number++, at++) {
			archive_stream_path((enum archive_stream)stream, number, path);
			if (!may_have_stream(check, (enum archive_stream)stream) ||
			    strcmp(name_of(check, at, name), path) != 0)
				break;
		}
	for (; at < end; at++)
		wrong(check, name_of(check, at, name), FINDING_ARCHIVE_FILE_SUPERFLUOUS);
}

/* Generates the ASiCManifest again from the computed digests, and compares it element by element.
 */
static int check_asic(struct archive_check *check)
{
	struct error error = {0};
	const struct zip_entry *entry = zip_at(check->zip, check->count - 2);
	if (!slice_is(entry->name, ARCHIVE_ASIC_NAME)) {
		wrong(check, ARCHIVE_ASIC_NAME, FINDING_ASIC_MISPLACED);
		return 0;
	}
	BUF_AUTO struct buf text;
	buf_init(&text, ARCHIVE_MANIFEST_MAX);
	int result = zip_entry_load(check->zip, entry, ARCHIVE_MANIFEST_MAX - 1, &text, &error);
	if (result < 0)
		return note(check, ARCHIVE_ASIC_NAME, FINDING_ASIC_MALFORMED, result, &error);
	struct slice found = buf_slice(&text);
	/* The first element, with the frame, is for the manifest, the third entry from the end. */
	for (uint32_t i = 0; i + 3 < check->count; i++) {
		char name[ZIP_NAME_MAX + 1];
		uint32_t index = i == 0 ? check->count - 3 : i;
		struct archive_file file = {name_of(check, index, name), check->sums[index]};
		buf_clear(&check->scratch);
		if (i == 0)
			archive_asic_begin(&check->scratch);
		archive_asic_file(&file, &check->scratch);
		size_t size = check->scratch.size;
		if (buf_check(&check->scratch) < 0)
			return ERR_NO_MEMORY;
		if (found.size < size || memcmp(found.data, check->scratch.data, size) != 0) {
			wrong(check, ARCHIVE_ASIC_NAME, FINDING_ASIC_DIGEST, text.size - found.size, name);
			return 0;
		}
		found = slice_make(found.data + size, found.size - size);
	}
	buf_clear(&check->scratch);
	archive_asic_end(&check->scratch);
	if (buf_check(&check->scratch) < 0)
		return ERR_NO_MEMORY;
	if (!slice_equal(found, buf_slice(&check->scratch)))
		wrong(check, ARCHIVE_ASIC_NAME, FINDING_ASIC_DIFFERS, text.size - found.size);
	return 0;
}

static int check_signature_along(struct archive_check *check, struct cms_paths *paths)
{
	struct error error = {0};
	const struct zip_entry *entry = zip_at(check->zip, check->count - 1);
	BUF_AUTO struct buf der;
	buf_init(&der, CMS_LT_SIZE_MAX);
	struct cms_facts facts;
	enum level level;
	char unvalidated[LEVEL_CAUSE_SIZE];
	int result = 0;
	if (!slice_is(entry->name, ARCHIVE_SIGNATURE_NAME))
		result = finding_fail(&error, FINDING_SIGNATURE_MISPLACED);
	if (!result && !check->summed[check->count - 2])
		return 0; /* already a finding; there is no digest to check against */
	if (!result)
		result = zip_entry_load(check->zip, entry, CMS_LT_SIZE_MAX - 1, &der, &error);
	if (!result)
		result = verify_signature(buf_slice(&der), &check->sums[check->count - 2].sha256,
		                          &check->run->roots, paths, &facts, &level, unvalidated, &error);
	if (result < 0)
		return note(check, ARCHIVE_SIGNATURE_NAME, FINDING_SIGNATURE_NOT_VALID, result, &error);
	if (check->has_manifest &&
	    facts.signing_time_us != check->manifest.facts.issued_at_us / US_PER_SECOND * US_PER_SECOND)
		wrong(check, ARCHIVE_SIGNATURE_NAME, FINDING_SIGNATURE_TIME_DIFFERS);
	if (facts.has_timestamp && check->has_manifest)
		verify_compare_stated_time(check->run, check->input->path, ARCHIVE_SIGNATURE_NAME,
		                           check->manifest.facts.issued_at_us, facts.timestamp.gen_time_us);
	if (!facts.has_timestamp && check->has_manifest && check->manifest.facts.mode == MODE_LIVE)
		wrong(check, ARCHIVE_SIGNATURE_NAME, FINDING_SIGNATURE_NO_TIMESTAMP);
	result = verify_note_signature(check->run, check->input, ARCHIVE_SIGNATURE_NAME, &facts, paths);
	if (unvalidated[0])
		verify_add_cause(check->run, VERIFY_WARNING, check->input->path, ARCHIVE_SIGNATURE_NAME,
		                 FINDING_SIGNATURE_VALIDATION_OTHER_PATH, unvalidated);
	else if (!result && level == LEVEL_T)
		result = verify_warn_unvalidated(check->run, check->input->path, ARCHIVE_SIGNATURE_NAME,
		                                 &facts, paths);
	struct reached reached = {level, facts.signing_time_us, facts.signer.not_after_us};
	if (facts.has_timestamp)
		reached = (struct reached){level, facts.timestamp.gen_time_us,
		                           facts.timestamp.authority.not_after_us};
	return result ? result : verify_note_level(check->run, check->input, &reached);
}

static int check_signature(struct archive_check *check)
{
	struct cms_paths paths = {0};
	buf_init(&paths.signer, CMS_PATH_SIZE_MAX);
	buf_init(&paths.authority, CMS_PATH_SIZE_MAX);
	int result = check_signature_along(check, &paths);
	buf_free(&paths.signer);
	buf_free(&paths.authority);
	return result;
}

/* Whoever leaves the list out leaves out what certifies the keys of the log and of receipts. */
static void warn_without_list(struct archive_check *check)
{
	char path[ZIP_NAME_MAX + 1];
	archive_stream_path(STREAM_CHECKPOINTS, 1, path);
	if (check->manifest.facts.mode == MODE_LIVE &&
	    (zip_find(check->zip, path) || verify_receipts_any_signed(check->run)))
		verify_add(check->run, VERIFY_WARNING, check->input->path, ARCHIVE_SIGNERS_NAME,
		           FINDING_SIGNERS_ABSENT);
}

/* Checks the service's list of its signers, if the archive contains one. */
static int check_signer_list(struct archive_check *check)
{
	struct error error = {0};
	BUF_AUTO struct buf cms;
	const struct zip_entry *entry = zip_find(check->zip, ARCHIVE_SIGNERS_NAME);
	if (check->manifest.version < ARCHIVE_VERSION_OF_SIGNERS)
		return 0;
	if (!entry) {
		warn_without_list(check);
		return 0;
	}
	buf_init(&cms, CMS_LT_SIZE_MAX);
	int result = zip_entry_load(check->zip, entry, CMS_LT_SIZE_MAX - 1, &cms, &error);
	if (!result)
		result = verify_signers_check_embedded(check->run, check->input, buf_slice(&cms), &error);
	return note(check, ARCHIVE_SIGNERS_NAME, FINDING_SIGNERS_MALFORMED, result, &error);
}

static int load_document(struct archive_check *check, const char *name, struct buf *text,
                         struct error *error)
{
	const struct zip_entry *entry = zip_find(check->zip, name);
	if (!entry)
		return finding_fail(error, FINDING_DOCUMENT_MISSING);
	return zip_entry_load(check->zip, entry, ARCHIVE_DOCUMENT_MAX, text, error);
}

static int read_genesis(struct archive_check *check, struct error *error)
{
	BUF_AUTO struct buf text;
	buf_init(&text, ARCHIVE_DOCUMENT_MAX + 1);
	struct genesis_facts genesis;
	int result = load_document(check, ARCHIVE_GENESIS_NAME, &text, error);
	if (!result)
		result = archive_read_genesis(&check->document_arena, buf_slice(&text), &genesis, error);
	if (result < 0)
		return result;
	buf_clear(&check->scratch);
	genesis_document(&genesis, &check->scratch);
	result = verify_canonical(buf_slice(&text), &check->scratch, error);
	if (result < 0)
		return result;
	const struct archive_facts *facts = &check->manifest.facts;
	if (genesis.chain != facts->mode || strcmp(genesis.channel_id, facts->channel_id) != 0)
		return finding_fail(error, FINDING_GENESIS_OF_ANOTHER);
	check->has_genesis = true;
	check->genesis_hash = sha256_of(text.data, text.size);
	return verify_point_document(check->run, check->input, 0, &check->genesis_hash);
}

static int read_config(struct archive_check *check, size_t index, const char *path,
                       struct error *error)
{
	const struct archive_config *listed = &check->manifest.configs[index];
	BUF_AUTO struct buf text;
	buf_init(&text, ARCHIVE_DOCUMENT_MAX + 1);
	struct config_facts config;
	int result = load_document(check, path, &text, error);
	arena_reset(&check->document_arena);
	if (!result)
		result = archive_read_config(&check->document_arena, buf_slice(&text), &config, error);
	if (result < 0)
		return result;
	buf_clear(&check->scratch);
	config_document(&config, &check->scratch);
	result = verify_canonical(buf_slice(&text), &check->scratch, error);
	if (result < 0)
		return result;
	struct sha256 hash = sha256_of(text.data, text.size);
	if (!sha256_equal(&hash, &listed->hash))
		return finding_fail(error, FINDING_CONFIG_DIGEST, listed->version);
	if (config.version != listed->version ||
	    strcmp(config.channel_id, check->manifest.facts.channel_id) != 0)
		return finding_fail(error, FINDING_CONFIG_OF_ANOTHER);
	check->modalities[index] = config.modality;
	return verify_point_document(check->run, check->input, config.version, &hash);
}

static int check_documents(struct archive_check *check)
{
	struct error error = {0};
	int result = note(check, ARCHIVE_GENESIS_NAME, FINDING_GENESIS_MALFORMED,
	                  read_genesis(check, &error), &error);
	const struct archive_manifest *manifest = &check->manifest;
	check->modalities =
		arena_alloc(&check->arena, (manifest->config_count + 1) * sizeof *check->modalities);
	if (!check->modalities)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < manifest->config_count && !result; i++) {
		char path[ZIP_NAME_MAX + 1];
		archive_config_path(manifest->configs[i].version, path);
		if (i > 0 && manifest->configs[i - 1].version >= manifest->configs[i].version)
			wrong(check, ARCHIVE_MANIFEST_NAME, FINDING_MANIFEST_CONFIGS_NOT_ASCENDING);
		result = note(check, path, FINDING_CONFIG_MALFORMED, read_config(check, i, path, &error),
		              &error);
	}
	return result;
}

static void check_parts(struct archive_check *check)
{
	const struct archive_facts *facts = &check->manifest.facts;
	int64_t after = 0;
	for (size_t i = 0; i < facts->part_count; i++) {
		const struct part_facts *part = &facts->parts[i];
		char name[PART_NAME_SIZE];
		part_name((uint32_t)i + 1, name);
		if (strcmp(part->name, name) != 0)
			wrong(check, ARCHIVE_MANIFEST_NAME, FINDING_MANIFEST_PART_NAME, part->name, name);
		if (part->size_bytes > PART_BYTES_MAX)
			wrong(check, ARCHIVE_MANIFEST_NAME, FINDING_MANIFEST_PART_SIZE, part->name);
		if (part->first_sequence <= after || part->last_sequence < part->first_sequence ||
		    part->first_sequence < facts->first_sequence ||
		    part->last_sequence > facts->last_sequence)
			wrong(check, ARCHIVE_MANIFEST_NAME, FINDING_MANIFEST_PART_RANGE, part->name);
		after = part->last_sequence;
	}
}

static void check_manifest_facts(struct archive_check *check)
{
	const struct archive_manifest *manifest = &check->manifest;
	const struct archive_facts *facts = &manifest->facts;
	if (manifest->event_count != facts->last_sequence - facts->first_sequence + 1)
		wrong(check, ARCHIVE_MANIFEST_NAME, FINDING_MANIFEST_COUNT_OF_RANGE);
	bool by_time = facts->requested_from_us != TIME_NONE && facts->requested_to_us != TIME_NONE;
	bool by_sequence = facts->requested_first > 0 && facts->requested_last > 0;
	bool any_time = facts->requested_from_us != TIME_NONE || facts->requested_to_us != TIME_NONE;
	bool any_sequence = facts->requested_first > 0 || facts->requested_last > 0;
	if (by_time != any_time || by_sequence != any_sequence || by_time == by_sequence)
		wrong(check, ARCHIVE_MANIFEST_NAME, FINDING_MANIFEST_REQUEST_UNCLEAR);
	else if (by_time && facts->requested_from_us >= facts->requested_to_us)
		wrong(check, ARCHIVE_MANIFEST_NAME, FINDING_MANIFEST_REQUEST_REVERSED);
	else if (by_sequence && (facts->requested_first != facts->first_sequence ||
	                         facts->requested_last != facts->last_sequence))
		wrong(check, ARCHIVE_MANIFEST_NAME, FINDING_MANIFEST_REQUEST_DIFFERS,
		      facts->requested_first, facts->requested_last, facts->first_sequence,
		      facts->last_sequence);
	check_parts(check);
	if (facts->mode == MODE_TEST)
		verify_add(check->run, VERIFY_WARNING, check->input->path, "", FINDING_ARCHIVE_TEST);
}

/* Checks the archive's own files except the lines of its streams. */
static int check_frame(struct archive_check *check)
{
	struct error error = {0};
	int result = check_mimetype(check);
	if (!result)
		result = note(check, ARCHIVE_MANIFEST_NAME, FINDING_MANIFEST_MALFORMED,
		              read_manifest(check, &error), &error);
	if (!result)
		result = check_asic(check);
	if (result < 0 || verify_is_stopped(check->run))
		return result;
	result = check_signature(check);
	if (result < 0 || !check->has_manifest)
		return result;
	check_files(check);
	check_names(check);
	check_manifest_facts(check);
	result = check_signer_list(check);
	if (!result)
		result = describe(check);
	return result < 0 ? result : check_documents(check);
}

static int check_contents(struct archive_check *check)
{
	assert(check->count >= ENTRIES_MIN && check->count <= ARCHIVE_ENTRIES_MAX);
	int result = check_frame(check);
	if (result < 0 || !check->has_manifest || verify_is_stopped(check->run))
		return result;
	return verify_chain(&(struct chain_input){check->run, check->input, check->zip,
	                                          &check->manifest, check->modalities,
	                                          check->has_genesis, check->genesis_hash});
}

static int check_archive(struct run *run, struct input *input)
{
	struct archive_check check = {.run = run, .input = input};
	struct error error = {0};
	int result = verify_open_zip(input, &check.zip, &error);
	if (result < 0)
		return verify_add_error(run, input->path, "", FINDING_ARCHIVE_MALFORMED, result, &error);
	check.count = zip_count(check.zip);
	if (check.count < ENTRIES_MIN || check.count > ARCHIVE_ENTRIES_MAX) {
		verify_add(run, VERIFY_WRONG, input->path, "", FINDING_ARCHIVE_ENTRY_COUNT, ENTRIES_MIN,
		           ARCHIVE_ENTRIES_MAX, check.count);
		zip_reader_free(check.zip);
		return 0;
	}
	arena_init(&check.arena, ARENA_MAX);
	arena_init(&check.document_arena, DOCUMENT_ARENA_MAX);
	buf_init(&check.scratch, ARCHIVE_MANIFEST_MAX);
	result = sum_entries(&check);
	if (!result && !verify_is_stopped(run))
		result = check_contents(&check);
	free(check.sums);
	free(check.summed);
	arena_free(&check.arena);
	arena_free(&check.document_arena);
	buf_free(&check.scratch);
	zip_reader_free(check.zip);
	return result;
}

int verify_archive(struct run *run, struct input *input)
{
	run->archive = input;
	run->archive_wrong = run->archive_differs = 0;
	int result = check_archive(run, input);
	bool is_sound =
		!result && !verify_is_stopped(run) && run->archive_wrong == run->archive_differs;
	run->archive = NULL;
	verify_receipts_judge(run, input, is_sound);
	return result;
}
