/* The commands `log audit`, `log watch` and `log check-proof`, which read a transparency log of
 * segments as anybody can, and what proves something about it. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/logged_event.h"
#include "base/base64.h"
#include "base/durable.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/api_access.h"
#include "cli/log_policy.h"
#include "monitor/log_audit.h"
#include "monitor/log_proof.h"
#include "monitor/log_watch.h"
#include "tools/receipt_file.h"

#define MEMORY_MAX ((size_t)64 << 20)
#define INTERVAL_DEFAULT_US (60 * US_PER_SECOND)
#define INTERVAL_MAX_US (24 * 3600 * US_PER_SECOND)
#define PROOFS_MAX (LOGGED_EVENT_MAX > WATCH_PROOFS_MAX ? LOGGED_EVENT_MAX : WATCH_PROOFS_MAX)
#define TAG_DIGITS (2 * SHA256_SIZE)
#define LATER_SUFFIX ".latest" /* of the file of proofs where the first ones exist */

#define PLACE_OPTIONS                                                                              \
	{"url", "URL", "address of the log: of the directory that has its file checkpoint"},           \
		{"dir", "DIR", "directory with the files of the log, instead of --url"},                   \
	{                                                                                              \
		"tls-roots", "FILE", "trusted PEM certificates for https; by default the system's"         \
	}

const struct option log_audit_options[] = {PLACE_OPTIONS, LOG_OPTIONS, {0}};

const struct option log_check_proof_options[] = {
	PLACE_OPTIONS,
	LOG_OPTIONS,
	{"receipt-key", "KEY...",
     "key of the service's receipts, in base64 as its signed list of keys has it; may be repeated"},
	{0},
};

const struct option log_watch_options[] = {
	PLACE_OPTIONS,
	LOG_OPTIONS,
	{"state", "FILE",
     "file that keeps the last checkpoint; made by the first run; by default that of the first "
     "--receipts with .watch"},
	{"receipts", "FILE...", "receipts of one's own events, one in each line; may be repeated"},
	{"channel", "CHANNEL_ID...", "a channel of which there may be no receipts; may be repeated"},
	{"proof", "FILE", "file for proofs of what is wrong; by default that of --state with .proof"},
	{"once", NULL, "check once, and do not follow the log"},
	{"interval", "DURATION", "time between two checks; by default 60s"},
	{0},
};

/* What all three commands need. */
struct log_access {
	const struct command_line *line;
	struct arena arena;
	struct policy policy;
	bool has_policy;
	struct log_source source;
	bool has_source;
	bool shows_progress, shown;
};

static void access_cleanup(struct log_access *access)
{
	log_source_close(&access->source);
	arena_free(&access->arena);
}

/* Exit codes as for verify: 1: something is false; 2: the command could not check it. */
static int fail(struct log_access *access, struct error *error, int result)
{
	command_hide_progress(access->shown);
	access->shown = false;
	error_keep(error, result);
	(void)command_fail(access->line, error);
	return result == ERR_INVALID_EVIDENCE ? 1 : 2;
}

static int open_access(struct log_access *access, const struct command_line *line, bool needs_place,
                       struct error *error)
{
	static const struct log_policy_names names = {"key", "policy"};
	const struct log_place place = {.url = command_option(line, "url"),
	                                .directory = command_option(line, "dir"),
	                                .tls_roots = command_option(line, "tls-roots")};
	access->line = line;
	access->shows_progress = !line->json && isatty(STDERR_FILENO);
	arena_init(&access->arena, MEMORY_MAX);
	if (place.url && place.directory)
		return error_cause(error, ERR_USAGE, "--url and --dir exclude each other");
	access->has_source = place.url || place.directory;
	if (needs_place && !access->has_source)
		return error_cause(error, ERR_USAGE, "--url URL or --dir DIR is missing. See --help");
	int result =
		log_policy_read(line, &names, &access->arena, &access->policy, &access->has_policy, error);
	if (!result && access->has_source)
		result = log_source_open(&access->source, &place, error);
	return result;
}

static log_progress *progress_of(const struct log_access *access)
{
	return access->shows_progress ? command_show_progress : NULL;
}

static void print_document(struct buf *text)
{
	if (!buf_check(text))
		printf("%s\n", text->data);
	(void)fflush(stdout);
}

/* ---- checkpoints ---- */

static void write_head(struct json_writer *writer, const struct log_head *head)
{
	json_begin_object(writer, "checkpoint");
	json_text(writer, "missing_witnesses", head->missing);
	json_text(writer, "origin", head->checkpoint.origin);
	json_boolean(writer, "quorum", head->has_quorum);
	json_hex(writer, "root", head->checkpoint.root.bytes, SHA256_SIZE);
	json_boolean(writer, "signed", head->is_signed);
	json_integer(writer, "size", (int64_t)head->checkpoint.size);
	json_time(writer, "witnessed_at", head->witnessed_us);
	json_end_object(writer);
}

/* Prints what is not established about a checkpoint. */
static void print_unestablished(const struct log_access *access, const struct log_head *head)
{
	char name[LOG_HEAD_NAME_SIZE];
	if (!access->has_policy)
		printf("not established: no key is given, so the signature was not checked (--key)\n");
	else if (!head->is_signed)
		printf("not established: the checkpoint is not signed by the given key of %s\n",
		       log_head_name(head, name));
	else if (!head->has_quorum)
		printf("not established: too few witnesses cosigned; missing: %s\n", head->missing);
}

static bool is_established(const struct log_access *access, const struct log_head *head)
{
	return access->has_policy && head->is_signed && head->has_quorum;
}

/* ---- log audit ---- */

static void print_audit_json(const struct audit_result *found)
{
	BUF_AUTO struct buf text;
	buf_init(&text, (size_t)1 << 20);
	struct json_writer writer = {.out = &text};
	json_begin_object(&writer, NULL);
	json_integer(&writer, "begun_later", (int64_t)found->begun_later);
	json_integer(&writer, "chains", (int64_t)found->chains);
	write_head(&writer, &found->head);
	json_integer(&writer, "finding_count", (int64_t)found->finding_count);
	json_begin_array(&writer, "findings");
	for (size_t i = 0; i < found->finding_count && i < AUDIT_FINDINGS_MAX; i++) {
		const struct audit_finding *finding = &found->findings[i];
		json_begin_object(&writer, NULL);
		json_integer(&writer, "covered_from", finding->covered_from);
		json_integer(&writer, "covered_to", finding->covered_to);
		json_integer(&writer, "first_sequence", finding->first_sequence);
		json_integer(&writer, "index", (int64_t)finding->index);
		json_text(&writer, "kind", finding->is_overlap ? "overlap" : "gap");
		json_integer(&writer, "last_sequence", finding->last_sequence);
		json_hex(&writer, "tag", finding->tag.bytes, SHA256_SIZE);
		json_end_object(&writer);
	}
	json_end_array(&writer);
	json_integer(&writer, "tiles", (int64_t)found->tiles);
	json_end_object(&writer);
	print_document(&text);
}

static void print_audit_finding(const struct audit_finding *finding)
{
	char tag[TAG_DIGITS + 1];
	hex_encode(finding->tag.bytes, SHA256_SIZE, tag);
	printf("wrong: entry %" PRIu64 " has the events %" PRId64 " to %" PRId64
	       " of chain %s, %s %" PRId64 " to %" PRId64 "\n",
	       finding->index, finding->first_sequence, finding->last_sequence, tag,
	       finding->is_overlap ? "and entries before it cover" : "which do not follow",
	       finding->covered_from, finding->covered_to);
}

static void print_audit(const struct log_access *access, const struct audit_result *found)
{
	const struct log_head *head = &found->head;
	char name[LOG_HEAD_NAME_SIZE];
	printf("log            %s\n", log_head_name(head, name));
	printf("entries        %" PRIu64 ", which lead to the root of the checkpoint\n",
	       head->checkpoint.size);
	printf("tiles          %" PRIu64 ", as the entries make them\n", found->tiles);
	printf("chains         %" PRIu64 "\n", found->chains);
	if (found->begun_later > 0)
		printf("older chains   %" PRIu64 ", whose first segments are older than the log\n",
		       found->begun_later);
	for (size_t i = 0; i < found->finding_count && i < AUDIT_FINDINGS_MAX; i++)
		print_audit_finding(&found->findings[i]);
	if (found->finding_count > AUDIT_FINDINGS_MAX)
		printf("wrong: %" PRIu64 " entries more\n", found->finding_count - AUDIT_FINDINGS_MAX);
	print_unestablished(access, head);
}

int command_log_audit(const struct command_line *line)
{
	__attribute__((cleanup(access_cleanup))) struct log_access access = {0};
	struct error error = {0};
	int result = open_access(&access, line, true, &error);
	if (result)
		return fail(&access, &error, result);
	const struct audit_options options = {.policy = access.has_policy ? &access.policy : NULL,
	                                      .progress = progress_of(&access),
	                                      .progress_context = &access.shown};
	struct audit_result *found = arena_alloc(&access.arena, sizeof *found);
	result =
		found ? log_audit(&access.source, &options, &access.arena, found, &error) : ERR_NO_MEMORY;
	if (result)
		return fail(&access, &error, result);
	command_hide_progress(access.shown);
	if (line->json)
		print_audit_json(found);
	else
		print_audit(&access, found);
	if (found->finding_count > 0)
		return 1;
	return is_established(&access, &found->head) ? 0 : 2;
}

/* ---- log watch ---- */

struct watching {
	struct log_access access;
	struct owned_chains owned;
	struct watch_options options;
	const char *receipts[COMMAND_OPTIONS_MAX];
	unsigned receipt_files;
	char state[PATH_MAX], proof[PATH_MAX];
	bool is_later; /* `proof` has the suffix */
};

static void watching_free(struct watching **watching)
{
	if (!*watching)
		return;
	access_cleanup(&(*watching)->access);
	owned_clear_receipts(&(*watching)->owned);
	free(*watching);
}

static int read_receipts(void *context, receipt_take *take, void *take_context, struct error *error)
{
	struct watching *watching = context;
	int result = OK;
	for (unsigned i = 0; i < watching->receipt_files && !result; i++) {
		struct error detail = {0};
		result = receipt_file_read(watching->receipts[i], true, take, take_context, &detail);
		/* A file that has no receipts says nothing about the log. */
		if (result < 0)
			return error_cause(error, result == ERR_INVALID_EVIDENCE ? ERR_USAGE : result,
			                   "%s: %.*s", watching->receipts[i], ERROR_CAUSE_MAX / 2,
			                   error_reason(&detail, result));
	}
	return result;
}

static void show_notice(void *context, const char *what)
{
	struct watching *watching = context;
	struct log_access *access = &watching->access;
	command_hide_progress(access->shown);
	access->shown = false;
	if (!access->line->json) {
		fprintf(stderr, "wrong: %s; the log is searched for proof\n", what);
		return;
	}
	BUF_AUTO struct buf text;
	buf_init(&text, (size_t)64 << 10);
	struct json_writer writer = {.out = &text};
	json_begin_object(&writer, NULL);
	json_text(&writer, "notice", what);
	json_end_object(&writer);
	if (!buf_check(&text))
		fprintf(stderr, "%s\n", text.data);
}

static int add_channels(struct watching *watching, const struct command_line *line,
                        struct error *error)
{
	const char *values[COMMAND_OPTIONS_MAX];
	struct error detail = {0};
	int result = OK;
	unsigned count = command_options(line, "channel", values);
	for (unsigned i = 0; i < count && !result; i++)
		result = owned_add_channel(&watching->owned, values[i], &detail);
	if (result)
		return error_cause(error, ERR_USAGE, "--channel: %s", detail.cause);
	if (count == 0 && watching->receipt_files == 0)
		return error_cause(error, ERR_USAGE,
		                   "--receipts FILE or --channel CHANNEL_ID is missing: without them no "
		                   "entry is known to be yours");
	return OK;
}

static int open_watching(struct watching *watching, const struct command_line *line,
                         struct error *error)
{
	const char *proof = command_option(line, "proof"), *given = command_option(line, "state");
	char *state = watching->state;
	int result = open_access(&watching->access, line, true, error);
	if (result)
		return result;
	watching->receipt_files = command_options(line, "receipts", watching->receipts);
	if (!given && watching->receipt_files == 0)
		return error_cause(error, ERR_USAGE, "--state FILE is missing. See --help");
	if (snprintf(state, sizeof watching->state, "%s%s", given ? given : watching->receipts[0],
	             given ? "" : ".watch") >= (int)sizeof watching->state)
		return error_cause(error, ERR_USAGE, "--state or --receipts is too long");
	if (!watching->access.has_policy)
		return error_cause(error, ERR_USAGE,
		                   "--key VKEY or --policy FILE is missing: without the key of the log, "
		                   "nothing that it says is proof");
	if (snprintf(watching->proof, sizeof watching->proof, "%s%s", proof ? proof : state,
	             proof ? "" : ".proof") >= (int)sizeof watching->proof)
		return error_cause(error, ERR_USAGE, "--state or --proof is too long");
	watching->options = (struct watch_options){.policy = &watching->access.policy,
	                                           .state = state,
	                                           .read_receipts = read_receipts,
	                                           .receipts_context = watching,
	                                           .progress = progress_of(&watching->access),
	                                           .progress_context = &watching->access.shown,
	                                           .notice = show_notice,
	                                           .notice_context = watching};
	return add_channels(watching, line, error);
}

static void write_finding(struct json_writer *writer, const struct watch_finding *finding)
{
	json_begin_object(writer, NULL);
	json_text(writer, "kind", finding->kind);
	json_boolean(writer, "proved", finding->is_proved);
	json_text(writer, "what", finding->what);
	json_end_object(writer);
}

static void print_watch_json(const struct watching *watching, const struct watch_result *found)
{
	BUF_AUTO struct buf text;
	buf_init(&text, (size_t)1 << 20);
	struct json_writer writer = {.out = &text};
	json_begin_object(&writer, NULL);
	json_integer(&writer, "before_log", (int64_t)found->before_log);
	json_integer(&writer, "begun_later", (int64_t)found->begun_later);
	write_head(&writer, &found->head);
	json_boolean(&writer, "complete", found->is_complete);
	json_integer(&writer, "covered", (int64_t)found->covered);
	json_integer(&writer, "false_receipts", (int64_t)found->false_receipts);
	json_integer(&writer, "finding_count", (int64_t)found->finding_count);
	json_begin_array(&writer, "findings");
	for (size_t i = 0; i < found->finding_count && i < WATCH_FINDINGS_MAX; i++)
		write_finding(&writer, &found->findings[i]);
	json_end_array(&writer);
	json_boolean(&writer, "first", found->is_first);
	json_integer(&writer, "new_entries", (int64_t)found->new_entries);
	json_integer(&writer, "other_log", (int64_t)found->other_log);
	json_integer(&writer, "overdue", (int64_t)found->overdue);
	json_integer(&writer, "own_entries", (int64_t)found->own_entries);
	json_text(&writer, "proof", found->proofs.size > 0 ? watching->proof : NULL);
	json_integer(&writer, "receipts", (int64_t)found->receipts);
	json_integer(&writer, "test_receipts", (int64_t)found->test_receipts);
	json_integer(&writer, "unusable_receipts", (int64_t)found->unusable_receipts);
	json_integer(&writer, "waiting", (int64_t)found->waiting);
	json_integer(&writer, "without_promise", (int64_t)found->without_promise);
	json_end_object(&writer);
	print_document(&text);
}

/* Prints what of the receipts and chains is not established. */
static void print_unjudged(const struct watch_result *found)
{
	if (found->unusable_receipts > 0)
		printf("not established: %" PRIu64 " lines of the files of receipts are no receipts\n",
		       found->unusable_receipts);
	if (found->false_receipts > 0)
		printf("not established: %" PRIu64 " receipts have a false signature and promise nothing\n",
		       found->false_receipts);
	if (found->overdue > 0)
		printf(
			"not established: of %" PRIu64
			" broken promises no quorum of witnesses shows that the checkpoint is later; an old copy "
			"of the log looks the same (--witness, --quorum)\n",
			found->overdue);
	if (found->other_log > 0)
		printf("not established: %" PRIu64
		       " events should be in another log by now, which their receipts name\n",
		       found->other_log);
	if (found->without_promise > 0)
		printf("not established: %" PRIu64
		       " events have no entry, and their receipts promise none within 24 hours\n",
		       found->without_promise);
	if (found->before_log > 0)
		printf("not established: %" PRIu64
		       " receipts are of events before the first entry of their chain, which may be older "
		       "than the log\n",
		       found->before_log);
	if (found->begun_later > 0)
		printf("not established: the log has no events of channel %s before %" PRId64
		       ", which is right only if they are older than the log; so have %" PRIu64
		       " channels more\n",
		       found->begun_channel, found->begun_sequence, found->begun_later - 1);
}

static bool is_judged(const struct watch_result *found)
{
	return found->unusable_receipts + found->false_receipts + found->overdue + found->other_log +
	           found->begun_later + found->without_promise + found->before_log ==
	       0;
}

static void print_watch(const struct watching *watching, const struct watch_result *found)
{
	const struct log_head *head = &found->head;
	char name[LOG_HEAD_NAME_SIZE];
	printf("%s: %" PRIu64 " entries, %" PRIu64 " of them new, %" PRIu64
	       " of %zu watched channels\n",
	       log_head_name(head, name), head->checkpoint.size, found->new_entries, found->own_entries,
	       watching->owned.count);
	if (found->is_complete)
		printf("receipts: %" PRIu64 ", of which %" PRIu64 " are of logged segments and %" PRIu64
		       " are not yet due\n",
		       found->receipts, found->covered, found->waiting);
	for (size_t i = 0; i < found->finding_count && i < WATCH_FINDINGS_MAX; i++)
		printf("wrong: %s\n", found->findings[i].what);
	if (found->finding_count > WATCH_FINDINGS_MAX)
		printf("wrong: %" PRIu64 " findings more\n", found->finding_count - WATCH_FINDINGS_MAX);
	if (found->proofs.size > 0)
		printf("proof: %s\n", watching->proof);
	print_unjudged(found);
	print_unestablished(&watching->access, head);
	(void)fflush(stdout);
}

/* Writes the proofs. The first ones are never replaced: what they show may not be seen again. */
static int write_proofs(struct watching *watching, const struct watch_result *found,
                        struct error *error)
{
	size_t size = strlen(watching->proof);
	if (found->proofs.size == 0)
		return OK;
	if (!watching->is_later && access(watching->proof, F_OK) == 0) {
		if (size + sizeof LATER_SUFFIX > sizeof watching->proof)
			return error_cause(error, ERR_USAGE, "--proof is too long");
		memcpy(watching->proof + size, LATER_SUFFIX, sizeof LATER_SUFFIX);
		watching->is_later = true;
	}
	return durable_replace(watching->proof, 0600, buf_slice(&found->proofs), error);
}

/* Watches once. Returns the exit code. *ret_result is the result of the check alone. */
static int watch_once(struct watching *watching, struct error *error, int *ret_result)
{
	struct log_access *access = &watching->access;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, MEMORY_MAX);
	struct watch_result *found = arena_alloc(&arena, sizeof *found);
	*ret_result = ERR_NO_MEMORY;
	if (!found)
		return fail(access, error, *ret_result);
	*ret_result =
		log_watch(&access->source, &watching->owned, &watching->options, &arena, found, error);
	command_hide_progress(access->shown);
	access->shown = false;
	int written = *ret_result ? OK : write_proofs(watching, found, error);
	if (*ret_result || written) /* what was found is said all the same */
		buf_clear(&found->proofs);
	int exit_code = is_established(access, &found->head) && is_judged(found) ? 0 : 2;
	if (*ret_result || written)
		exit_code = fail(access, error, *ret_result ? *ret_result : written);
	if (!*ret_result && access->line->json)
		print_watch_json(watching, found);
	else if (!*ret_result)
		print_watch(watching, found);
	buf_free(&found->proofs);
	return !*ret_result && found->finding_count > 0 ? 1 : exit_code;
}

/* Follows the log until something is wrong. What cannot be read now may be read later. */
static int follow(struct watching *watching, int64_t interval_us)
{
	for (;;) {
		struct error error = {0};
		int result;
		int exit_code = watch_once(watching, &error, &result);
		bool passes = result == ERR_NETWORK || result == ERR_NOT_FOUND || result == ERR_IO ||
		              (!result && exit_code == 2);
		if (exit_code != 0 && !passes)
			return exit_code;
		api_sleep_us(interval_us);
	}
}

int command_log_watch(const struct command_line *line)
{
	__attribute__((cleanup(watching_free))) struct watching *watching = calloc(1, sizeof *watching);
	struct error error = {0};
	int64_t interval_us = INTERVAL_DEFAULT_US;
	int exit_code = command_duration(line, "interval", INTERVAL_MAX_US, &interval_us);
	if (exit_code)
		return exit_code;
	if (command_option(line, "once") && command_option(line, "interval"))
		return command_usage_error(line, "--once and --interval exclude each other.");
	if (!watching) {
		error.code = ERR_NO_MEMORY;
		return command_fail(line, &error);
	}
	watching->access.line = line;
	int result = open_watching(watching, line, &error);
	if (result)
		return fail(&watching->access, &error, result);
	return command_option(line, "once") ? watch_once(watching, &error, &result)
	                                    : follow(watching, interval_us);
}

/* ---- log check-proof ---- */

static void print_verdict(const struct log_access *access, const struct log_proof *proof,
                          const struct log_proof_verdict *verdict)
{
	if (!access->line->json) {
		printf("%s: %s\n", verdict->origin, verdict->what);
		if (verdict->missing[0])
			printf("not shown: %s\n", verdict->missing);
		return;
	}
	BUF_AUTO struct buf text;
	buf_init(&text, (size_t)1 << 20);
	struct json_writer writer = {.out = &text};
	json_begin_object(&writer, NULL);
	json_text(&writer, "kind", log_proof_kind_text(proof->kind));
	json_text(&writer, "not_shown", verdict->missing[0] ? verdict->missing : NULL);
	json_time(&writer, "observed_at", proof->observed_us);
	json_text(&writer, "origin", verdict->origin);
	json_boolean(&writer, "shown", verdict->is_shown);
	json_text(&writer, "what", verdict->what);
	json_end_object(&writer);
	print_document(&text);
}

/* Reads --receipt-key. */
static int read_receipt_keys(const struct command_line *line,
                             uint8_t keys[COMMAND_OPTIONS_MAX][RECEIPT_PUBLIC_KEY_SIZE],
                             size_t *ret_count, struct error *error)
{
	const char *values[COMMAND_OPTIONS_MAX];
	*ret_count = command_options(line, "receipt-key", values);
	for (size_t i = 0; i < *ret_count; i++) {
		size_t size;
		if (!base64_decode(slice_of(values[i]), keys[i], RECEIPT_PUBLIC_KEY_SIZE, &size) ||
		    size != RECEIPT_PUBLIC_KEY_SIZE)
			return error_cause(error, ERR_USAGE, "--receipt-key must be 32 bytes in base64");
	}
	return OK;
}

/* Checks the document of a line. Returns the exit code. */
static int check_line(struct log_access *access, const struct log_trust *trust, struct slice line)
{
	ARENA_AUTO struct arena arena;
	struct log_proof proof;
	struct log_proof_verdict verdict;
	struct error error = {0};
	arena_init(&arena, MEMORY_MAX);
	int result = log_proof_read(&arena, line, &proof, &error);
	if (!result)
		result = log_proof_check(&arena, &proof, trust, access->has_source ? &access->source : NULL,
		                         &verdict, &error);
	if (result)
		return fail(access, &error, result);
	print_verdict(access, &proof, &verdict);
	return verdict.is_shown ? 0 : 2;
}

/* ---- log check-proof: the proof of an event ---- */

static void print_event_json(const struct logged_event *found, const struct log_head *head)
{
	BUF_AUTO struct buf text;
	const struct event_facts *event = &found->event;
	struct sha256 chain_hash = sha256_of(found->record.data, found->record.size);
	buf_init(&text, (size_t)1 << 20);
	struct json_writer writer = {.out = &text};
	json_begin_object(&writer, NULL);
	json_hex(&writer, "chain_hash", chain_hash.bytes, SHA256_SIZE);
	json_text(&writer, "channel_id", event->channel_id);
	write_head(&writer, head);
	json_slice(&writer, "event_id", event->event_id);
	json_integer(&writer, "index", (int64_t)found->index);
	json_text(&writer, "kind", "event");
	json_time(&writer, "received_at", event->received_at_us);
	json_raw(&writer, "record", found->record);
	json_integer(&writer, "sequence", event->sequence);
	json_boolean(&writer, "shown", head->is_signed && head->has_quorum);
	json_end_object(&writer);
	print_document(&text);
}

static void print_event(const struct log_access *access, const struct logged_event *found,
                        const struct log_head *head)
{
	const struct event_facts *event = &found->event;
	const struct declaration *declared = &event->declaration;
	char received[TIME_TEXT_SIZE], witnessed[TIME_TEXT_SIZE];
	char digits[2 * SHA256_SIZE + 1], content[2 * DIGEST_SIZE_MAX + 1];
	struct sha256 chain_hash = sha256_of(found->record.data, found->record.size);
	hex_encode(chain_hash.bytes, SHA256_SIZE, digits);
	hex_encode(declared->hash, hash_algorithm_size(declared->hash_algorithm), content);
	time_format(event->received_at_us, received);
	printf("event          %.*s\n", (int)event->event_id.size, event->event_id.data);
	printf("received       %s, as the service says\n", received);
	printf("content        %s %s\n", hash_algorithm_text(declared->hash_algorithm), content);
	printf("chain hash     %s, the SHA-256 of its record\n", digits);
	printf("entry          %" PRIu64 ", of the events %" PRId64 " to %" PRId64 " of %s\n",
	       found->index, found->seal.first_sequence, found->seal.last_sequence, event->channel_id);
	if (head->is_signed)
		printf("log            %s, of %" PRIu64 " entries\n", head->checkpoint.origin,
		       head->checkpoint.size);
	if (head->witnessed_us != TIME_NONE) {
		time_format(head->witnessed_us, witnessed);
		printf("witnessed      %s\n", witnessed);
	} else if (access->policy.witness_count == 0) {
		printf("witnessed      not checked, because no witness is given (--witness)\n");
	}
	print_unestablished(access, head);
}

static int check_event(struct log_access *access, struct slice text)
{
	struct logged_event found;
	struct log_head head;
	struct error error = {0};
	int result = logged_event_read(&access->arena, text, &found, &error);
	if (!result)
		result = log_head_judge(&access->arena, found.note, &access->policy, &head, &error);
	if (result)
		return fail(access, &error, result);
	if (access->line->json)
		print_event_json(&found, &head);
	else
		print_event(access, &found, &head);
	return is_established(access, &head) ? 0 : 2;
}

static int check_file(struct log_access *access, const struct log_trust *trust, struct slice rest)
{
	int exit_code = 0;
	bool any = false;
	if (logged_event_is(rest))
		return check_event(access, rest);
	while (rest.size > 0) {
		const char *end = memchr(rest.data, '\n', rest.size);
		struct slice line = slice_make(rest.data, end ? (size_t)(end - rest.data) : rest.size);
		rest = slice_make(rest.data + line.size + (end != NULL),
		                  rest.size - line.size - (end != NULL));
		if (line.size == 0)
			continue;
		any = true;
		int code = check_line(access, trust, line);
		/* A proof that is false weighs more than one that is not complete. */
		if (code == 1 || (code == 2 && exit_code == 0))
			exit_code = code;
	}
	return any ? exit_code : command_usage_error(access->line, "The file has no proof.");
}

int command_log_check_proof(const struct command_line *line)
{
	__attribute__((cleanup(access_cleanup))) struct log_access access = {0};
	BUF_AUTO struct buf text;
	struct error error = {0};
	uint8_t keys[COMMAND_OPTIONS_MAX][RECEIPT_PUBLIC_KEY_SIZE];
	struct log_trust trust = {.policy = &access.policy, .receipt_keys = keys};
	buf_init(&text, PROOFS_MAX + 1);
	int result = open_access(&access, line, false, &error);
	if (!result)
		result = read_receipt_keys(line, keys, &trust.receipt_key_count, &error);
	if (!result && !access.has_policy)
		result =
			error_cause(&error, ERR_USAGE,
		                "--key VKEY or --policy FILE is missing: only the key of the log makes "
		                "what it signed a proof");
	if (!result)
		result = file_read_whole(line->arguments[0], &text, &error);
	return result ? fail(&access, &error, result) : check_file(&access, &trust, buf_slice(&text));
}
