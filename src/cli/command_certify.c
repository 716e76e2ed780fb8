/* The command `certify`, which has a range certified, downloads the documents and verifies them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/api_access.h"
#include "tools/remote_certification.h"
#include "tools/remote_registration.h"
#include "verify/verify.h"

#define MEMORY_MAX ((size_t)128 << 20)
#define ROOTS_MAX ((size_t)16 << 20)
#define WAIT_DEFAULT_US (600 * US_PER_SECOND)
#define SEQUENCE_MAX INT64_C(1099511627775)
#define RECEIPTS_DEFAULT "receipts.ndjson"
#define NOTE_SIZE 160
#define RECEIPT_FILES_MAX 1000 /* of 10,000 receipts each */

const struct option certify_options[] = {
	API_OPTIONS,
	{"from", "SEQUENCE", "first sequence number, with --to"},
	{"to", "SEQUENCE", "last sequence number, with --from"},
	{"since", "TIME", "start of the period of receipt (RFC 3339), inclusive, with --until"},
	{"until", "TIME", "end of the period of receipt (RFC 3339), exclusive, with --since"},
	{"seal-history", NULL,
     "have an archive with the seal documents of all segments before its own"},
	{"save", "DIR",
     "directory of the documents, created if missing; by default the "
     "identifier of the certification"},
	{"receipts", "FILE",
     "receipts to compare with the archive; by default receipts.ndjson, "
     "if it exists"},
	{"trust", "FILE",
     "trusted PEM certificates, as of verify; without them the signer is not established (exit "
     "code 2)"},
	{"wait", "DURATION", "longest time to wait for the certification; by default 10m"},
	{0},
};

/* Who chose the range. */
enum range_choice { CHOSEN_BY_USER, SERVICE_SAYS_NEW, SERVICE_SAYS_LAST };

struct job {
	const struct command_line *line;
	struct api api;
	struct arena arena;
	struct channel_facts channel;
	char id[CERTIFICATION_ID_MAX];
	const char *directory;
	struct saved_documents saved;
	const char *receipt_paths[RECEIPT_FILES_MAX];
	size_t receipt_path_count;
	uint64_t receipt_count;
	struct certified_range range; /* what was asked for, or what the service listed */
	enum range_choice choice;
	bool wants_history;     /* --seal-history */
	const char *receipts;   /* path; NULL: none */
	int64_t newest_receipt; /* 0: none; of a range that the service chose */
	bool shown;
};

static void job_free(struct job **job)
{
	if (!*job)
		return;
	api_close(&(*job)->api);
	arena_free(&(*job)->arena);
	free(*job);
}

static void show_state(void *context, const struct certification *certification)
{
	struct job *job = context;
	(void)command_show_progress(&job->shown, certification->id,
	                            (uint64_t)(certification->progress * 1000), 1000);
}

static bool is_test_key(const struct api *api)
{
	return strstr(api->key, "_test_") != NULL;
}

/* ---- the range ---- */

static int read_time(const struct command_line *line, const char *option, int64_t *ret_us)
{
	char name[16];
	struct error error = {0};
	snprintf(name, sizeof name, "--%s", option);
	if (time_parse(slice_of(command_option(line, option)), name, ret_us, &error))
		return command_usage_error(line, "%s", command_message(&error));
	return 0;
}

/* Reads the range that the options give; `ret_given` is false if they give none. */
static int read_range(const struct command_line *line, struct certified_range *ret_range,
                      bool *ret_given)
{
	bool from = command_option(line, "from"), to = command_option(line, "to");
	bool since = command_option(line, "since"), until = command_option(line, "until");
	*ret_given = from || since;
	*ret_range = (struct certified_range){.by_time = since, .first = 1, .last = 1};
	if (from != to || since != until || (from && since))
		return command_usage_error(line, "Specify exactly one pair, --from and --to or --since "
		                                 "and --until, or none of them.");
	int exit_code = command_number(line, "from", 1, SEQUENCE_MAX, &ret_range->first);
	if (!exit_code)
		exit_code = command_number(line, "to", 1, SEQUENCE_MAX, &ret_range->last);
	if (!exit_code && since)
		exit_code = read_time(line, "since", &ret_range->from_us);
	if (!exit_code && since)
		exit_code = read_time(line, "until", &ret_range->to_us);
	return exit_code;
}

/* The receipts are read before the service is asked, because other programs may add to them. */
static int read_newest_receipt(struct job *job, struct error *error)
{
	return job->receipts ? receipts_find_newest(job->receipts, job->channel.channel_id,
	                                            is_test_key(&job->api), &job->newest_receipt, error)
	                     : OK;
}

/* Chooses what was registered since the last certification. If there is nothing new, the last
 * certification is taken up again: so a command that was interrupted is repeated without a further
 * fee. The service says what these are; it is refused where it contradicts itself or the receipts.
 */
static int choose_range(struct job *job, const struct certification_wait *wait, struct error *error)
{
	struct certified_range certified = {0};
	int64_t newest = 0;
	int result = read_newest_receipt(job, error);
	if (!result)
		result = remote_find_certified(&job->api, wait, &job->arena, job->id, &certified, error);
	if (!result)
		result = remote_last_sequence(&job->api, &job->arena, &newest, error);
	if (result)
		return result;
	if (job->newest_receipt > newest)
		return tool_fail(error, ERR_INVALID_EVIDENCE,
		                 "There is a receipt of the event %lld, and the newest event by the "
		                 "service is %lld. Nothing was requested.",
		                 (long long)job->newest_receipt, (long long)newest);
	if (certified.last > newest)
		return tool_fail(error, ERR_INVALID_EVIDENCE,
		                 "The service lists a certification of events to %lld, and %lld as the "
		                 "newest event.",
		                 (long long)certified.last, (long long)newest);
	if (newest == 0)
		return tool_fail(error, ERR_REFUSED, "Nothing is registered yet.");
	job->choice = newest > certified.last ? SERVICE_SAYS_NEW : SERVICE_SAYS_LAST;
	job->range = certified;
	/* The last archive may have no history. If it was requested with it, this is repeated. */
	if (job->choice == SERVICE_SAYS_NEW || job->wants_history)
		job->id[0] = '\0';
	if (job->choice == SERVICE_SAYS_NEW)
		job->range = (struct certified_range){.first = certified.last + 1, .last = newest};
	return OK;
}

/* Has the given range certified, or what is new (NULL). */
static int request(struct job *job, const struct certified_range *given, int64_t wait_us,
                   struct error *error)
{
	struct certification certification;
	struct certification_wait wait = {.until_us = clock_monotonic_us() + wait_us};
	if (!job->line->json && isatty(STDERR_FILENO)) {
		wait.progress = show_state;
		wait.context = job;
	}
	int result = remote_channel(&job->api, &job->arena, &job->channel, error);
	if (given)
		job->range = *given;
	else if (!result)
		result = choose_range(job, &wait, error);
	if (!result && !job->id[0]) {
		result = remote_certify(&job->api, &job->range, job->wants_history, &job->arena,
		                        &certification, error);
		if (!result)
			memcpy(job->id, certification.id, sizeof job->id);
	}
	return result ? result : remote_wait(&job->api, &wait, job->id, error);
}

/* ---- the documents ---- */

/* The service must not choose what is compared with the receipts. */
static int check_answer(const struct job *job, struct error *error)
{
	const struct certified_range *asked = &job->range;
	const struct saved_documents *saved = &job->saved;
	if (!asked->by_time && (saved->first != asked->first || saved->last != asked->last))
		return tool_fail(error, ERR_INVALID_EVIDENCE,
		                 "The certification %s is of the events %lld to %lld, not of %lld to %lld.",
		                 job->id, (long long)saved->first, (long long)saved->last,
		                 (long long)asked->first, (long long)asked->last);
	if (saved->is_test != is_test_key(&job->api))
		return tool_fail(error, ERR_INVALID_EVIDENCE,
		                 "The certification %s is not of the mode of the key.", job->id);
	return OK;
}

static int save(struct job *job, struct error *error)
{
	const char *directory = command_option(job->line, "save");
	job->directory = directory ? directory : job->id;
	int result = remote_save(&job->api, job->id, job->directory, &job->arena, &job->saved, error);
	if (!result)
		result = check_answer(job, error);
	if (result || !job->receipts)
		return result;
	const struct receipt_selection selection = {.receipts = job->receipts,
	                                            .directory = job->directory,
	                                            .channel_id = job->channel.channel_id,
	                                            .range = job->range,
	                                            .is_test = job->saved.is_test};
	result = receipts_select(&selection, &job->arena, job->receipt_paths, RECEIPT_FILES_MAX,
	                         &job->receipt_path_count, &job->receipt_count, error);
	bool are_named = command_option(job->line, "receipts") != NULL;
	return result || job->receipt_count || !are_named
	           ? result
	           : tool_fail(error, ERR_USAGE, "No receipt in %s is of the certified events.",
	                       job->receipts);
}

static int verify(struct job *job, struct verify_result *ret_result, struct error *error)
{
	BUF_AUTO struct buf text;
	const char *trust = command_option(job->line, "trust");
	buf_init(&text, ROOTS_MAX);
	int result = trust ? verify_read_roots(trust, &text, error) : 0;
	struct trust_roots roots = {0};
	if (trust)
		roots.signers = roots.timestamps = buf_slice(&text);
	const struct verify_options options = {.receipts = job->receipt_paths,
	                                       .receipt_count = job->receipt_path_count,
	                                       .use_threads = true};
	return result ? result
	              : verify_paths(job->saved.paths, job->saved.count, &roots, &options, ret_result,
	                             error);
}

/* The archive, not the answers of the service, says what was certified. An archive that is not
 * valid is left to the verdict. */
static int check_archive(const struct job *job, const struct verify_result *verified,
                         struct error *error)
{
	const struct certified_range *asked = &job->range;
	const struct verify_contents *contents = NULL;
	for (const struct verify_file *at = verified->files; at; at = at->next)
		if (at->contents)
			contents = at->contents;
	if (verify_exit_code(verified) == 1)
		return OK;
	if (!contents)
		return tool_fail(error, ERR_INVALID_EVIDENCE,
		                 "The certification %s came without a readable archive.", job->id);
	if (strcmp(contents->certification_id, job->id) != 0 ||
	    strcmp(contents->channel_id, job->channel.channel_id) != 0 ||
	    contents->is_test != job->saved.is_test)
		return tool_fail(error, ERR_INVALID_EVIDENCE,
		                 "The archive of %s is of another certification, channel or mode.",
		                 job->id);
	if (contents->first_sequence != job->saved.first || contents->last_sequence != job->saved.last)
		return tool_fail(error, ERR_INVALID_EVIDENCE,
		                 "The archive of %s is of the events %lld to %lld, not of %lld to %lld.",
		                 job->id, (long long)contents->first_sequence,
		                 (long long)contents->last_sequence, (long long)job->saved.first,
		                 (long long)job->saved.last);
	if (job->wants_history && contents->has_seals && !contents->has_history)
		return tool_fail(error, ERR_INVALID_EVIDENCE,
		                 "The archive of %s lacks the seal documents before its first segment.",
		                 job->id);
	if (asked->by_time && (contents->requested_from_us != asked->from_us ||
	                       contents->requested_to_us != asked->to_us))
		return tool_fail(error, ERR_INVALID_EVIDENCE, "The archive of %s is of another period.",
		                 job->id);
	return OK;
}

/* ---- what shows that the range is the one wanted ---- */

/* Writes the n-th reason, from 0, why nothing local shows it. Returns false after the last one. */
static bool write_note(const struct job *job, unsigned number, char note[NOTE_SIZE])
{
	long long first = job->saved.first, last = job->saved.last, newest = job->newest_receipt;
	if (job->choice == CHOSEN_BY_USER) {
		snprintf(note, NOTE_SIZE, "Nothing local shows which events were received in the period.");
		return job->range.by_time && !job->receipt_count && number == 0;
	}
	if (first > 1 && number-- == 0) {
		snprintf(note, NOTE_SIZE, "Nothing local shows that the events before %lld were certified.",
		         first);
		return true;
	}
	if (newest == 0)
		snprintf(note, NOTE_SIZE, "Nothing local shows that %lld is the newest event.", last);
	else
		snprintf(
			note, NOTE_SIZE,
			"Nothing local shows that %lld is the newest event; the newest receipt is of %lld.",
			last, newest);
	return newest != last && number == 0;
}

static void write_range(const struct job *job, struct json_writer *writer)
{
	char note[NOTE_SIZE];
	json_begin_object(writer, "range");
	json_text(writer, "chosen_by", job->choice == CHOSEN_BY_USER ? "user" : "service");
	json_boolean(writer, "established", !write_note(job, 0, note));
	json_begin_array(writer, "notes");
	for (unsigned i = 0; write_note(job, i, note); i++)
		json_text(writer, NULL, note);
	json_end_array(writer);
	json_end_object(writer);
}

static void print_range(const struct job *job)
{
	static const char *const choices[] = {
		[CHOSEN_BY_USER] = "as requested",
		[SERVICE_SAYS_NEW] = "new since the last certification, by the service",
		[SERVICE_SAYS_LAST] = "the last certification, because nothing is new, by the service",
	};
	char note[NOTE_SIZE];
	printf("Range: %s.\n", choices[job->choice]);
	for (unsigned i = 0; write_note(job, i, note); i++)
		printf("%s\n", note);
	if (job->choice != CHOSEN_BY_USER && write_note(job, 0, note))
		printf("To choose the range, specify --from and --to.\n");
}

static int write_verification(const struct verify_result *verified, struct json_writer *writer)
{
	char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);
	if (!memory)
		return ERR_NO_MEMORY;
	verify_print(verified, true, memory);
	int result = fclose(memory) == 0 ? 0 : ERR_NO_MEMORY;
	while (size && text[size - 1] == '\n')
		size--;
	if (!result)
		json_raw(writer, "verification", slice_make(text, size));
	free(text);
	return result;
}

static int print_json(const struct job *job, const struct verify_result *verified)
{
	BUF_AUTO struct buf text;
	buf_init(&text, MEMORY_MAX);
	struct json_writer writer = {.out = &text};
	json_begin_object(&writer, NULL);
	json_text(&writer, "certification_id", job->id);
	json_begin_array(&writer, "files");
	for (size_t i = 0; i < job->saved.count; i++)
		json_text(&writer, NULL, job->saved.paths[i]);
	json_end_array(&writer);
	json_integer(&writer, "first_sequence", job->saved.first);
	json_integer(&writer, "last_sequence", job->saved.last);
	json_integer(&writer, "receipts", (int64_t)job->receipt_count);
	write_range(job, &writer);
	int result = write_verification(verified, &writer);
	json_end_object(&writer);
	if (!result)
		result = buf_check(&text);
	if (!result)
		printf("%s\n", text.data);
	return result;
}

static void print_text(const struct job *job, const struct verify_result *verified)
{
	BUF_AUTO struct buf sentence;
	printf("%s: events %lld to %lld\n", job->id, (long long)job->saved.first,
	       (long long)job->saved.last);
	for (size_t i = 0; i < job->saved.count; i++)
		printf("  %s\n", job->saved.paths[i]);
	printf("Compared with %llu receipts.\n", (unsigned long long)job->receipt_count);
	print_range(job);
	for (const struct verify_finding *at = verified->first; at; at = at->next)
		printf("%s: %s%s%s%s%s\n", verify_severity_text(at->severity), at->path,
		       *at->path ? ": " : "", at->where, *at->where ? ": " : "", at->what);
	buf_init(&sentence, (size_t)1 << 20);
	if (!verify_write_sentence(verified, LANGUAGE_ENGLISH, &sentence))
		printf("%s\n", sentence.data);
}

/* Does everything that can fail before there is a verdict. Returns 0, or the exit code. */
static int run(struct job *job, struct verify_result *ret_verified)
{
	struct certified_range range;
	struct error error = {0};
	bool given;
	int64_t wait_us = WAIT_DEFAULT_US;
	int exit_code = read_range(job->line, &range, &given);
	if (!exit_code)
		exit_code = command_duration(job->line, "wait", 86400 * US_PER_SECOND, &wait_us);
	if (!exit_code)
		exit_code = command_open_api(job->line, &job->api);
	if (exit_code)
		return exit_code;
	error.code = request(job, given ? &range : NULL, wait_us, &error);
	command_hide_progress(job->shown);
	if (!error.code)
		error.code = save(job, &error);
	if (!error.code)
		error.code = verify(job, ret_verified, &error);
	if (!error.code) {
		error.code = check_archive(job, ret_verified, &error);
		if (error.code)
			verify_result_free(ret_verified);
	}
	return error.code ? command_fail(job->line, &error) : 0;
}

int command_certify(const struct command_line *line)
{
	__attribute__((cleanup(job_free))) struct job *job = calloc(1, sizeof *job);
	struct verify_result verified;
	if (!job)
		abort();
	job->line = line;
	job->wants_history = command_option(line, "seal-history");
	job->receipts = command_option(line, "receipts");
	if (!job->receipts && access(RECEIPTS_DEFAULT, F_OK) == 0)
		job->receipts = RECEIPTS_DEFAULT;
	arena_init(&job->arena, MEMORY_MAX);
	int exit_code = run(job, &verified);
	if (exit_code)
		return exit_code;
	if (!line->json)
		print_text(job, &verified);
	else if (print_json(job, &verified))
		exit_code = 2;
	int verdict = verify_exit_code(&verified);
	verify_result_free(&verified);
	return exit_code ? exit_code : verdict;
}
