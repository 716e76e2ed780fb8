#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/bundle.h"
#include "archive/zip_shape.h"
#include "base/file.h"
#include "base/utf8.h"
#include "report/pdf_check.h"
#include "verify/verify_check.h"

#define RESULT_ARENA_MAX ((size_t)16 << 20)
#define RUN_ARENA_MAX ((size_t)64 << 20)
#define RECEIPT_ARENA_MAX ((size_t)512 << 20)
#define ROOTS_MAX ((size_t)4 << 20)
#define RECORD_SIZE_MIN 512 /* smaller than any evidence record, which contains a token */
#define TAIL_SIZE (ZIP_END_SIZE + sizeof BUNDLE_RECORD_NAME - 1)
#define PROGRESS_STEP_US (US_PER_SECOND / 5)

/* Returns the bytes of a misleading character, 0 for another one. U+2028 to 202E, U+2066 to 2069,
 * U+200E, U+200F and U+061C end a line or change its direction, so the displayed text would differ
 * from the actual one. */
static size_t misleading_size(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	if (at[0] == 0xd8 && at[1] == 0x9c)
		return 2;
	if (at[0] != 0xe2)
		return 0;
	bool found = (at[1] == 0x80 && at[2] >= 0xa8 && at[2] <= 0xae) ||
	             (at[1] == 0x80 && (at[2] == 0x8e || at[2] == 0x8f)) ||
	             (at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9);
	return found ? 3 : 0;
}

void verify_make_visible(char *text)
{
	bool valid = utf8_valid(slice_of(text));
	for (char *at = text; *at; at++) {
		unsigned char c = (unsigned char)*at;
		if (c == 0xc2 && (unsigned char)at[1] < 0xa0 && at[1])
			at[0] = at[1] = '?';
		else if (c < 0x20 || c == 0x7f || (c >= 0x80 && !valid))
			*at = '?';
		else
			memset(at, '?', misleading_size(at));
	}
}

static char *visible(struct arena *arena, const char *text)
{
	char *copy = arena_text(arena, text);
	if (copy)
		verify_make_visible(copy);
	return copy;
}

/* Returns a new finding, or NULL if it cannot be stored. Missing memory makes the list of findings
 * incomplete. */
static struct verify_finding *begin_finding(struct run *run, enum verify_severity severity,
                                            const char *path, const char *where)
{
	assert((size_t)severity <= VERIFY_WRONG && run->result->kept <= VERIFY_FINDINGS_MAX);
	struct verify_result *result = run->result;
	uint64_t *const counters[] = {&result->warnings, &result->unestablished, &result->unchecked,
	                              &result->wrong};
	++*counters[severity];
	run->archive_wrong +=
		severity == VERIFY_WRONG && run->archive && strcmp(path, run->archive->path) == 0;
	if (result->kept >= VERIFY_FINDINGS_MAX)
		return NULL;
	struct verify_finding *finding = arena_alloc(&result->arena, sizeof *finding);
	if (finding)
		*finding = (struct verify_finding){.severity = severity,
		                                   .path = visible(&result->arena, path),
		                                   .where = visible(&result->arena, where)};
	else
		result->unchecked++;
	return finding;
}

static void end_finding(struct run *run, struct verify_finding *finding)
{
	struct verify_result *result = run->result;
	if (!finding->path || !finding->where || !finding->what || !finding->what_es) {
		result->unchecked++;
		return;
	}
	assert(!result->last == !result->first && (!result->last || !result->last->next));
	if (result->last)
		result->last->next = finding;
	else
		result->first = finding;
	result->last = finding;
	result->kept++;
}

static void store_finding(struct run *run, enum verify_severity severity, const char *path,
                          const char *where, enum finding code, const char *const sentences[2])
{
	struct verify_finding *finding = begin_finding(run, severity, path, where);
	if (!finding)
		return;
	finding->finding = code;
	finding->what = visible(&run->result->arena, sentences[LANGUAGE_ENGLISH]);
	finding->what_es = visible(&run->result->arena, sentences[LANGUAGE_SPANISH]);
	end_finding(run, finding);
}

void verify_add_filled(struct run *run, enum verify_severity severity, const char *path,
                       const char *where, enum finding finding, const char *english,
                       const char *spanish, ...)
{
	char texts[2][FINDING_TEXT_SIZE];
	va_list list, again;
	va_start(list, spanish);
	va_copy(again, list);
	vsnprintf(texts[LANGUAGE_ENGLISH], FINDING_TEXT_SIZE, english, list);
	vsnprintf(texts[LANGUAGE_SPANISH], FINDING_TEXT_SIZE, spanish, again);
	va_end(again);
	va_end(list);
	store_finding(run, severity, path, where, finding, (const char *const[]){texts[0], texts[1]});
}

void verify_add_cause(struct run *run, enum verify_severity severity, const char *path,
                      const char *where, enum finding code, const char *cause)
{
	struct arena *arena = &run->result->arena;
	struct verify_finding *finding = begin_finding(run, severity, path, where);
	if (!finding)
		return;
	const char *detail = visible(arena, cause);
	finding->finding = code;
	finding->detail = detail;
	if (detail) {
		finding->what =
			arena_printf(arena, "%s: %s", finding_sentence(code, LANGUAGE_ENGLISH), detail);
		finding->what_es =
			arena_printf(arena, "%s: %s", finding_sentence(code, LANGUAGE_SPANISH), detail);
	}
	end_finding(run, finding);
}

int verify_add_error(struct run *run, const char *path, const char *where, enum finding finding,
                     int status, const struct error *error)
{
	assert(status < 0);
	bool is_wrong = status == ERR_INVALID_EVIDENCE;
	enum verify_severity severity = is_wrong ? VERIFY_WRONG : VERIFY_UNCHECKED;
	if (status == ERR_NO_MEMORY)
		return status;
	enum finding named = finding_of_error(error);
	if (named && error->english[0])
		store_finding(run, severity, path, where, named,
		              (const char *const[]){error->english, error->spanish});
	else
		verify_add_cause(run, severity, path, where,
		                 is_wrong           ? (named ? named : finding)
		                 : status == ERR_IO ? FINDING_FILE_NOT_READABLE
		                                    : FINDING_FILE_NOT_CHECKED,
		                 error->cause[0] ? error->cause : error_message(error, LANGUAGE_ENGLISH));
	return status == ERR_IO ? status : 0;
}

bool verify_is_stopped(const struct run *run)
{
	return run->options && run->options->stop_early && run->result->wrong > 0;
}

int verify_progress(struct run *run, const char *path, uint64_t done, uint64_t total)
{
	run->progress_done = done;
	run->progress_total = total;
	if (!run->options || !run->options->progress)
		return 0;
	int64_t now_us = clock_monotonic_us();
	if (now_us < run->next_progress_us)
		return 0;
	run->next_progress_us = now_us + PROGRESS_STEP_US;
	return run->options->progress(run->options->progress_context, path, done, total);
}

int verify_canonical(struct slice found, const struct buf *canonical, struct error *error)
{
	if (buf_check(canonical) < 0 && !canonical->full)
		return ERR_NO_MEMORY;
	if (buf_check(canonical) < 0)
		return finding_fail(error, FINDING_DOCUMENT_TOO_LONG);
	if (slice_equal(found, buf_slice(canonical)))
		return 0;
	size_t i = 0;
	while (i < found.size && i < canonical->size && found.data[i] == canonical->data[i])
		i++;
	return finding_fail(error, FINDING_DOCUMENT_NOT_CANONICAL, i);
}

/* Recognizes a SEQUENCE that begins with the version 1 and a SEQUENCE. A timestamp request has the
 * same beginning, but is smaller. */
static bool is_record(const char *head, uint64_t size)
{
	const char *inside = head + 2 + (head[1] & 0x80 ? head[1] & 0x07 : 0);
	return size >= RECORD_SIZE_MIN && head[0] == 0x30 && memcmp(inside, "\2\1\1\x30", 4) == 0;
}

/* Recognizes a file by its first and last bytes; either may be damaged. `tail` is the last
 * ZIP_END_SIZE bytes, and the bytes before it are accessible. */
static enum input_kind recognize(const char *head, size_t size, const char *tail)
{
	bool pdf_head = size >= 5 && memcmp(head, "%PDF-", 5) == 0;
	bool zip_head = size >= 4 && memcmp(head, "PK\3\4", 4) == 0;
	bool zip_tail = size >= ZIP_END_SIZE && memcmp(tail, "PK\5\6", 4) == 0;
	bool pdf_tail = size >= ZIP_END_SIZE && memmem(tail, ZIP_END_SIZE, "%EOF", 4);
	if (zip_tail && memcmp(tail - strlen(BUNDLE_RECORD_NAME), BUNDLE_RECORD_NAME,
	                       strlen(BUNDLE_RECORD_NAME)) == 0)
		return INPUT_BUNDLE;
	if (zip_head || zip_tail) {
		bool part = size > ZIP_LOCAL_SIZE + strlen(PART_HEAD_NAME) &&
		            memcmp(head + ZIP_LOCAL_SIZE, PART_HEAD_NAME, strlen(PART_HEAD_NAME)) == 0;
		return part ? INPUT_PART : INPUT_ARCHIVE;
	}
	return pdf_head || pdf_tail ? INPUT_REPORT : INPUT_UNKNOWN;
}

int verify_open_file(const struct input *input, int *ret_file, struct error *error)
{
	struct stat facts;
	DESCRIPTOR_AUTO int fd = file_open_to_read(input->file, 0, &facts);
	if (fd < 0)
		return error_cause(error, ERR_IO, "cannot open: %s", strerror(errno));
	struct zip_identity identity = zip_identity(&facts);
	if (!zip_identity_equal(&identity, &input->identity))
		return error_cause(error, ERR_IO, "the file was replaced or changed during the check");
	*ret_file = descriptor_take(&fd);
	return OK;
}

int verify_load_input(const struct input *input, struct buf *out, struct error *error)
{
	DESCRIPTOR_AUTO int fd = -1;
	int result = verify_open_file(input, &fd, error);
	if (result)
		return result;
	size_t size = (size_t)input->sum.size_bytes;
	char *to = buf_extend(out, size);
	if (!to)
		return out->full ? finding_fail(error, FINDING_FILE_TOO_LARGE)
		                 : error_cause(error, ERR_NO_MEMORY, "loading a file");
	if (!file_read_at(fd, to, size, input->offset))
		return error_cause(error, ERR_IO, "read error");
	struct sha256 sum = sha256_of(to, size);
	return sha256_equal(&sum, &input->sum.sha256)
	           ? OK
	           : error_cause(error, ERR_IO, "the file was changed during the check");
}

/* Opens an input for the first time and computes its digest, which is known for a file in a
 * container. */
static int open_first(struct run *run, struct input *input, int *ret_file, struct error *error)
{
	struct stat facts;
	if (input->container)
		return verify_open_file(input, ret_file, error);
	DESCRIPTOR_AUTO int fd = file_open_to_read(input->file, 0, &facts);
	if (fd < 0)
		return error_cause(error, ERR_IO, "cannot open: %s", strerror(errno));
	if (!S_ISREG(facts.st_mode))
		return error_cause(error, ERR_IO, "not a regular file");
	input->identity = zip_identity(&facts);
	int result = verify_sums_find(run, input, &input->identity, &input->sum)
	                 ? OK
	                 : zip_open_file_sum(fd, input->path, &input->sum, error);
	if (!result)
		*ret_file = descriptor_take(&fd);
	return result;
}

static int open_input(struct run *run, struct input *input)
{
	struct error error = {0};
	char head[64] = {0}, tail[TAIL_SIZE] = {0};
	size_t size = 0;
	DESCRIPTOR_AUTO int fd = -1;
	int result = open_first(run, input, &fd, &error);
	if (!result) {
		uint64_t all = input->sum.size_bytes;
		size = all < sizeof head ? (size_t)all : sizeof head;
		size_t end = all < sizeof tail ? size : sizeof tail;
		assert(end <= all && end <= sizeof tail);
		if (!file_read_at(fd, head, size, input->offset) ||
		    !file_read_at(fd, tail + sizeof tail - end, end, input->offset + all - end))
			result = error_cause(&error, ERR_IO, "read error");
	}
	if (result < 0)
		return verify_add_error(run, input->path, "", FINDING_FILE_NOT_CHECKED, result, &error);
	input->kind = recognize(head, size, tail + TAIL_SIZE - ZIP_END_SIZE);
	if (input->is_containers_record)
		input->kind = INPUT_RECORD;
	if (input->kind == INPUT_UNKNOWN && is_record(head, input->sum.size_bytes))
		input->kind = INPUT_RECORD;
	return 0;
}

int verify_open_zip(const struct input *input, struct zip_reader **ret_zip, struct error *error)
{
	struct zip_reader *zip;
	int result = input->container ? zip_open_inside(input->file, input->offset,
	                                                input->sum.size_bytes, &zip, error)
	                              : zip_open(input->file, &zip, error);
	if (result < 0)
		return result;
	result = zip_check_identity(zip, &input->identity, error);
	if (result < 0)
		zip_reader_free(zip);
	else
		*ret_zip = zip;
	return result;
}

static void compare_binding(struct run *run, const struct input *report,
                            const struct input *archive, const struct pdf_binding *binding)
{
	const struct archive_manifest *manifest = &archive->manifest;
	const struct archive_facts *facts = &manifest->facts;
#define COMPARE(same, finding)                                                                     \
	if (!(same))                                                                                   \
	verify_add(run, VERIFY_WRONG, report->path, "metadata", finding, archive->path)
	COMPARE(strcmp(binding->certification_id, facts->certification_id) == 0,
	        FINDING_REPORT_CERTIFICATION);
	COMPARE(strcmp(binding->verification_code, facts->verification_code) == 0, FINDING_REPORT_CODE);
	COMPARE(strcmp(binding->channel_id, facts->channel_id) == 0, FINDING_REPORT_CHANNEL);
	COMPARE(binding->chain == facts->mode, FINDING_REPORT_MODE);
	COMPARE(binding->first_sequence == facts->first_sequence, FINDING_REPORT_FIRST_SEQUENCE);
	COMPARE(binding->last_sequence == facts->last_sequence, FINDING_REPORT_LAST_SEQUENCE);
	COMPARE(binding->event_count == manifest->event_count, FINDING_REPORT_EVENT_COUNT);
	COMPARE(sha256_equal(&binding->first_chain_hash, &manifest->first_chain_hash),
	        FINDING_REPORT_FIRST_CHAIN_HASH);
	COMPARE(sha256_equal(&binding->last_chain_hash, &manifest->last_chain_hash),
	        FINDING_REPORT_LAST_CHAIN_HASH);
	COMPARE((uint64_t)binding->archive_size_bytes == archive->sum.size_bytes,
	        FINDING_REPORT_ARCHIVE_SIZE);
#undef COMPARE
}

static int bind_report(struct run *run, struct input *report, const struct pdf_binding *binding)
{
	char digest[2 * SHA256_SIZE + 1];
	hex_encode(binding->archive_digest.bytes, SHA256_SIZE, digest);
	bool archive_given = false;
	int result = 0;
	for (size_t i = 0; i < run->input_count && !result; i++) {
		struct input *archive = &run->inputs[i];
		if (archive->kind != INPUT_ARCHIVE)
			continue;
		archive_given = true;
		if (sha256_equal(&archive->sum.sha256, &binding->archive_digest)) {
			report->bound = true;
			if (archive->described)
				compare_binding(run, report, archive, binding);
			result = verify_compare_log(run, report, archive, binding->segment_log);
		} else if (archive->described && strcmp(archive->manifest.facts.certification_id,
		                                        binding->certification_id) == 0) {
			report->bound = true;
			verify_add(run, VERIFY_WRONG, report->path, "metadata",
			           FINDING_REPORT_OF_ANOTHER_ARCHIVE, digest, archive->path);
		}
	}
	/* With a given archive, the report must belong to it. */
	if (!report->bound)
		verify_add(run, archive_given ? VERIFY_UNCHECKED : VERIFY_WARNING, report->path, "",
		           FINDING_REPORT_ARCHIVE_NOT_GIVEN, digest);
	return result;
}

/* Returns the expiry of the newest certificate that proves the signature. */
static int64_t report_until(const struct pdf_facts *facts)
{
	if (facts->has_document_timestamp)
		return facts->document_timestamp.authority.not_after_us;
	return facts->signature.has_timestamp ? facts->signature.timestamp.authority.not_after_us
	                                      : facts->signature.signer.not_after_us;
}

static int check_report(struct run *run, const struct input *input, struct pdf_paths *paths,
                        struct pdf_facts *ret_facts, struct error *error)
{
	BUF_AUTO struct buf file;
	buf_init(&file, (size_t)PDF_SIZE_MAX);
	int result = verify_load_input(input, &file, error);
	return result ? result
	              : pdf_check_along(buf_slice(&file), &run->roots, paths, ret_facts, error);
}

static int verify_report(struct run *run, struct input *input)
{
	struct error error = {0};
	struct pdf_facts facts;
	run->result->checked.reports++;
	PDF_PATHS_AUTO struct pdf_paths paths;
	pdf_paths_init(&paths);
	int result = check_report(run, input, &paths, &facts, &error);
	if (result < 0)
		return verify_add_error(run, input->path, "", FINDING_REPORT_NOT_VALID, result, &error);
	if (facts.signature.has_timestamp)
		verify_compare_stated_time(run, input->path, "signature", facts.signing_time_us,
		                           facts.signature.timestamp.gen_time_us);
	result = bind_report(run, input, &facts.binding);
	if (facts.level_cause[0])
		verify_add_cause(run, VERIFY_WARNING, input->path, "signature",
		                 FINDING_SIGNATURE_VALIDATION_INCOMPLETE, facts.level_cause);
	if (!result)
		result = verify_note_signature(run, input, "signature", &facts.signature, &paths.signature);
	if (!result && facts.has_document_timestamp)
		result = verify_note_timestamp(run, &facts.document_timestamp, buf_slice(&paths.timestamp));
	if (!result && !facts.has_document_timestamp)
		result = verify_warn_unvalidated(run, input->path, "signature", &facts.signature,
		                                 &paths.signature);
	struct reached reached = {
		.level = facts.level,
		.issued_us = facts.signature.has_timestamp ? facts.signature.timestamp.gen_time_us
	                                               : facts.signing_time_us,
		.until_us = report_until(&facts),
	};
	return result ? result : verify_note_level(run, input, &reached);
}

/* Judges a part that no archive lists, after all archives were read. */
static void judge_part(struct run *run, const struct input *part)
{
	if (part->bound || !part->described)
		return;
	for (size_t i = 0; i < run->input_count; i++) {
		const struct input *archive = &run->inputs[i];
		if (archive->kind == INPUT_ARCHIVE && archive->described && !archive->unread &&
		    strcmp(archive->manifest.facts.certification_id, part->head.certification_id) == 0) {
			verify_add(run, VERIFY_WRONG, part->path, "", FINDING_PART_NOT_LISTED,
			           part->head.certification_id, archive->path);
			return;
		}
	}
	verify_add(run, VERIFY_UNCHECKED, part->path, "", FINDING_PART_ARCHIVE_NOT_GIVEN,
	           part->head.certification_id);
}

int verify_read_roots(const char *path, struct buf *out, struct error *error)
{
	struct stat facts;
	DESCRIPTOR_AUTO int fd = file_open_to_read(path, 0, &facts);
	int result = 0;
	if (fd < 0)
		result = error_cause(error, ERR_IO, "open %s: %s", path, strerror(errno));
	else if (!S_ISREG(facts.st_mode) || facts.st_size == 0 || facts.st_size > (off_t)ROOTS_MAX)
		result = error_cause(error, ERR_IO, "%s is not a PEM file of trusted roots", path);
	if (!result) {
		char *to = buf_extend(out, (size_t)facts.st_size);
		if (!to)
			result = error_cause(error, ERR_NO_MEMORY, "trusted roots");
		else if (!file_read_at(fd, to, (size_t)facts.st_size, 0))
			result = error_cause(error, ERR_IO, "%s cannot be read", path);
		else if (!memmem(to, (size_t)facts.st_size, "-----BEGIN CERTIFICATE-----", 27))
			result = error_cause(error, ERR_IO, "%s contains no PEM certificate", path);
	}
	/* Separates the files, because the last line of one may lack a line feed. */
	if (!result) {
		buf_add_byte(out, '\n');
		result = buf_check(out);
	}
	return result;
}

/* Continues with the other inputs after a read error. */
static int ignore_read_error(struct input *input, int status)
{
	input->unread |= status == ERR_IO;
	return status == ERR_IO ? 0 : status;
}

int verify_check_input(struct run *run, struct input *input,
                       int (*check)(struct run *, struct input *))
{
	assert(check && !input->unread);
	return ignore_read_error(input, check(run, input));
}

/* Says that a policy of logs was not used. Archives say it themselves. */
static void judge_log_policy(struct run *run)
{
	const struct verify_options *options = run->options;
	if (!options || !options->log_policy || options->log_policy_informs)
		return;
	for (size_t i = 0; i < run->input_count; i++)
		if (run->inputs[i].kind == INPUT_ARCHIVE)
			return;
	verify_add(run, VERIFY_UNESTABLISHED, run->inputs[0].path, "", FINDING_LOG_NO_ARCHIVE);
}

static int check_all(struct run *run)
{
	/* Parts come first, because archives are compared with their content; reports come last,
	 * because they refer to archives. */
	static const enum input_kind order[] = {INPUT_PART, INPUT_ARCHIVE, INPUT_REPORT, INPUT_RECORD};
	static int (*const checks[])(struct run *, struct input *) = {verify_part, verify_archive,
	                                                              verify_report, verify_record};
	int result = verify_receipts_load(run);
	if (!result)
		result = verify_signers_load(run);
	bool has_worker = false;
	verify_sums_begin(run);
	/* Containers append their files to the inputs. */
	for (size_t i = 0; i < run->input_count && !result; i++) {
		result = ignore_read_error(&run->inputs[i], open_input(run, &run->inputs[i]));
		if (!result && run->inputs[i].kind == INPUT_BUNDLE)
			result = verify_bundle(run, i);
		result = ignore_read_error(&run->inputs[i], result);
	}
	verify_sums_end(run);
	if (!result)
		result = verify_signers_collect(run);
	if (!result)
		result = verify_existence_plan(run);
	if (!result)
		result = verify_bridges_load(run);
	if (!result)
		result = verify_points_plan(run);
	if (!result)
		result = verify_bridges_compare(run);
	if (!result)
		has_worker = verify_part_worker_begin(run);
	for (size_t k = has_worker ? 1 : 0; k < sizeof order / sizeof *order; k++) {
		for (size_t i = 0; i < run->input_count && !result && !verify_is_stopped(run); i++)
			if (run->inputs[i].kind == order[k] && !run->inputs[i].unread)
				result = verify_check_input(run, &run->inputs[i], checks[k]);
		result = verify_part_worker_end(run, result);
	}
	for (size_t i = 0; i < run->input_count && !result; i++)
		if (run->inputs[i].kind == INPUT_PART)
			judge_part(run, &run->inputs[i]);
	if (!result)
		result = verify_existence_conclude(run);
	if (!result)
		result = verify_points_conclude(run);
	if (!result)
		verify_receipts_conclude(run);
	if (!result)
		verify_times_conclude(run);
	if (!result)
		judge_log_policy(run);
	if (!result && run->options && run->options->trusted_list)
		result = verify_qualified(run);
	return result;
}

static void record_run_findings(struct run *run)
{
	char span[VERIFY_SPAN_SIZE];
	verify_format_span(run->coarsest_us, span);
	if (run->coarse_timestamps > 0)
		verify_add(run, VERIFY_WARNING, "", "", FINDING_TOKEN_COARSE, run->coarse_timestamps, span);
	if (run->timestamps_without_accuracy > 0)
		verify_add(run, VERIFY_WARNING, "", "", FINDING_TOKEN_NO_ACCURACY,
		           run->timestamps_without_accuracy);
	if (run->development)
		verify_add(run, VERIFY_WARNING, "", "", FINDING_TOKEN_DEVELOPMENT);
	if (run->non_qualified)
		verify_add(run, VERIFY_WARNING, "", "", FINDING_TOKEN_NOT_QUALIFIED);
	verify_trust_conclude(run);
}

/* Returns NULL if there is no memory. */
static const struct verify_contents *contents_of(struct arena *arena, const struct input *input)
{
	const struct archive_facts *facts = &input->manifest.facts;
	struct verify_contents *contents = arena_alloc(arena, sizeof *contents);
	const char *certification_id = arena_text(arena, facts->certification_id);
	const char *channel_id = arena_text(arena, facts->channel_id);
	if (!contents || !certification_id || !channel_id)
		return NULL;
	*contents = (struct verify_contents){.certification_id = certification_id,
	                                     .channel_id = channel_id,
	                                     .is_test = facts->mode == MODE_TEST,
	                                     .has_seals = input->has_seals,
	                                     .has_history = input->has_history,
	                                     .first_sequence = facts->first_sequence,
	                                     .last_sequence = facts->last_sequence,
	                                     .requested_from_us = facts->requested_from_us,
	                                     .requested_to_us = facts->requested_to_us};
	return contents;
}

/* Lists the checked files in the result. */
static int list_files(struct run *run)
{
	static const enum verify_kind kinds[] = {
		[INPUT_UNKNOWN] = VERIFY_UNKNOWN_FILE,
		[INPUT_ARCHIVE] = VERIFY_ARCHIVE,
		[INPUT_PART] = VERIFY_PART,
		[INPUT_REPORT] = VERIFY_REPORT,
		[INPUT_RECORD] = VERIFY_RECORD,
		[INPUT_BUNDLE] = VERIFY_CONTAINER,
	};
	struct verify_file **end = &run->result->files;
	for (size_t i = 0; i < run->input_count; i++) {
		const struct input *input = &run->inputs[i];
		if (input->unread)
			continue;
		assert((size_t)input->kind < sizeof kinds / sizeof *kinds);
		struct verify_file *file = arena_alloc(&run->result->arena, sizeof *file);
		char *path = visible(&run->result->arena, input->path);
		if (!file || !path)
			return ERR_NO_MEMORY;
		*file = (struct verify_file){.path = path,
		                             .kind = kinds[input->kind],
		                             .sha256 = input->sum.sha256,
		                             .is_listed = input->kind == INPUT_PART && input->bound,
		                             .is_signed = input->is_signed,
		                             .signer = input->signer,
		                             .signed_at_us = input->signed_at_us};
		if (input->kind == INPUT_ARCHIVE && input->described) {
			file->contents = contents_of(&run->result->arena, input);
			if (!file->contents)
				return ERR_NO_MEMORY;
		}
		*end = file;
		end = &file->next;
	}
	return OK;
}

struct input verify_make_input(const char *path, const char *file)
{
	return (struct input){.path = path,
	                      .file = file,
	                      .covered_since_us = TIME_NONE,
	                      .issued_us = TIME_NONE,
	                      .signed_at_us = TIME_NONE};
}

int verify_paths(const char *const *paths, size_t count, const struct trust_roots *roots,
                 const struct verify_options *options, struct verify_result *ret_result,
                 struct error *error)
{
	if (count == 0 || count > VERIFY_PATHS_MAX)
		return error_cause(error, ERR_USAGE, "1 to %d files can be checked at once",
		                   VERIFY_PATHS_MAX);
	struct verify_result result = {.signers_trusted = true, .authorities_trusted = true};
	struct run run = {
		.result = &result, .options = options, .input_count = count, .progress_total = 1};
	result.at_us = options && options->has_time ? options->at_us : clock_now_us();
	if (roots)
		run.roots = *roots;
	run.roots.tolerant = true;
	run.roots.has_time = true;
	run.roots.at_us = result.at_us;
	arena_init(&result.arena, RESULT_ARENA_MAX);
	arena_init(&run.arena, RUN_ARENA_MAX);
	arena_init(&run.receipt_arena, RECEIPT_ARENA_MAX);
	run.inputs = calloc(count, sizeof *run.inputs);
	int status = run.inputs ? 0 : ERR_NO_MEMORY;
	for (size_t i = 0; i < count && status == 0; i++)
		run.inputs[i] =
			verify_make_input(options && options->names ? options->names[i] : paths[i], paths[i]);
	if (status == 0)
		status = check_all(&run);
	if (status == 0)
		status = list_files(&run);
	if (status == 0)
		record_run_findings(&run);
	assert(!run.worker && !run.sums); /* no thread uses the inputs any more */
	verify_points_free(&run);
	verify_bridges_free(&run);
	verify_receipts_free(&run);
	verify_signers_free(&run);
	verify_receipt_keys_free(&run);
	free(run.others);
	free(run.inputs);
	arena_free(&run.arena);
	arena_free(&run.part_arena);
	if (status < 0) {
		arena_free(&result.arena);
		return error_cause(error, status, "verify");
	}
	*ret_result = result;
	return 0;
}

void verify_result_free(struct verify_result *result)
{
	if (result)
		arena_free(&result->arena);
}
