/* Operations on the whole store: check, backup and link secrets. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "admin/admin_call.h"
#include "admin/backup.h"
#include "admin/backup_series.h"
#include "evidence/check_segment.h"
#include "evidence/check_stamp.h"
#include "issue/links.h"
#include "seal/signer_log.h"
#include "service/history.h"
#include "store/certifications/link_secrets.h"
#include "store/check/inspect.h"
#include "store/nodes/read_only_copy.h"
#include "store/nodes/store_state.h"

#define PROBLEMS_SHOWN_MAX 1000
#define PROBLEM_SIZE_MAX 600
#define CHUNK ((size_t)256 * 1024)

/* ---- check ---- */

struct check {
	const struct admin_call *call;
	struct json_writer *out;
	struct error *error;
	char *chunk;
	int64_t problems;
	/* Objects that are missing, one for each of the problems, and not more of them than the
	 * problems that are shown. */
	const char *missing[PROBLEMS_SHOWN_MAX];
	size_t missing_count;
	int64_t objects;
	struct checked_segment segment; /* the last segment checked */
};

static void report_problem(void *context, const char *text)
{
	struct check *check = context;
	if (check->problems++ < PROBLEMS_SHOWN_MAX)
		json_text(check->out, NULL, text);
}

static int note_missing(struct check *check, const char *object)
{
	if (check->missing_count == PROBLEMS_SHOWN_MAX)
		return OK;
	const char *name = arena_text(check->call->arena, object);
	if (!name)
		return ERR_NO_MEMORY;
	check->missing[check->missing_count++] = name;
	return OK;
}

/* Returns ERR_CORRUPT if the object is missing; `text` has the problem. */
static int find_missing(struct check *check, const char *name, char text[PROBLEM_SIZE_MAX])
{
	struct content_reader *reader;
	uint64_t size;
	int result = content_read_begin(check->call->admin->content, name, 0, &reader, &size, NULL);
	if (!result)
		content_read_end(reader);
	if (result != ERR_NOT_FOUND)
		return OK;
	snprintf(text, PROBLEM_SIZE_MAX, "object %s is missing", name);
	return note_missing(check, name) ?: ERR_CORRUPT;
}

/* Opens a document. ERR_CORRUPT: `text` has the problem. */
static int open_document(struct check *check, const struct content_parts *parts,
                         struct content_reader **ret_reader, uint64_t *ret_size,
                         char text[PROBLEM_SIZE_MAX])
{
	int result = content_parts_read(check->call->admin->content, parts, 0, ret_reader, ret_size,
	                                check->error);
	if (result == ERR_NOT_FOUND) {
		snprintf(text, PROBLEM_SIZE_MAX, "object %s is missing", parts->object);
		return note_missing(check, parts->object) ?: ERR_CORRUPT;
	}
	if (result != ERR_CORRUPT)
		return result;
	/* The stored form cannot be read. Of a composite document, one of two objects may be missing.
	 */
	snprintf(text, PROBLEM_SIZE_MAX, "%s", check->error->cause);
	result = parts->shared && *parts->shared ? find_missing(check, parts->object, text)
	                                               ?: find_missing(check, parts->shared, text)
	                                         : OK;
	return result ? result : ERR_CORRUPT;
}

/* Compares an object with its record. ERR_CORRUPT: `text` has the problem. Other errors end the
 * check. */
static int compare_object(struct check *check, const struct content_parts *parts,
                          int64_t size_bytes, const void *expected, char text[PROBLEM_SIZE_MAX])
{
	struct content_reader *reader;
	uint64_t size;
	int result = open_document(check, parts, &reader, &size, text);
	if (result)
		return result;
	check->objects++;
	struct digest_stream *digest = digest_begin();
	if (!digest) {
		content_read_end(reader);
		return ERR_NO_MEMORY;
	}
	int64_t got;
	while ((got = content_read(reader, check->chunk, CHUNK, check->error)) > 0)
		digest_add(digest, check->chunk, (size_t)got);
	content_read_end(reader);
	struct sha256 found = digest_end(digest);
	if (got == ERR_CORRUPT) /* in an object with several parts */
		snprintf(text, PROBLEM_SIZE_MAX, "%s", check->error->cause);
	if (got < 0)
		return (int)got;
	if ((int64_t)size == size_bytes && memcmp(found.bytes, expected, SHA256_SIZE) == 0)
		return OK;
	if ((int64_t)size == size_bytes)
		snprintf(text, PROBLEM_SIZE_MAX, "object %s does not match its digest", parts->object);
	else
		snprintf(text, PROBLEM_SIZE_MAX,
		         "object %s has %" PRIu64 " bytes instead of the %" PRId64 " recorded",
		         parts->object, size, size_bytes);
	return ERR_CORRUPT;
}

static int check_event_content(void *context, const struct event *event)
{
	struct check *check = context;
	char text[PROBLEM_SIZE_MAX], problem[PROBLEM_SIZE_MAX + ID_SIZE + 16];
	struct content_parts parts = {.object = event->content_object};
	int result = compare_object(check, &parts, event->content_bytes, event->declaration.hash, text);
	if (result == ERR_CORRUPT) {
		snprintf(problem, sizeof problem, "event %s: %s", event->event_id, text);
		report_problem(check, problem);
	}
	return result;
}

static int check_one_segment(void *context, int64_t account, int64_t chain, int64_t number)
{
	struct check *check = context;
	struct error error = {0};
	int result =
		check_segment(check->call->admin->store, account, chain, number, &check->segment, &error);
	if (result == ERR_CORRUPT)
		report_problem(check, error_reason(&error, result));
	/* A sealer may have unstaged it. The store's own check detects gaps. */
	if (result == ERR_NOT_FOUND)
		return OK;
	if (result && result != ERR_CORRUPT && check->error)
		*check->error = error;
	return result;
}

static int check_one_stamp(void *context, int64_t stamp)
{
	struct check *check = context;
	struct error error = {0};
	int result = check_stamp(check->call->admin->store, stamp, &error);
	if (result == ERR_CORRUPT)
		report_problem(check, error_reason(&error, result));
	/* The store's own check detects gaps. */
	if (result == ERR_NOT_FOUND)
		return OK;
	if (result && result != ERR_CORRUPT && check->error)
		*check->error = error;
	return result;
}

static int check_issued(void *context, const struct named_object *object)
{
	struct check *check = context;
	char text[PROBLEM_SIZE_MAX], problem[PROBLEM_SIZE_MAX + ID_SIZE + 24];
	struct content_parts parts = {object->name, object->shared, object->pieces};
	int result = compare_object(check, &parts, object->size_bytes, object->sha256.bytes, text);
	if (result != ERR_CORRUPT)
		return result;
	snprintf(problem, sizeof problem, "certification %s: %s", object->owner, text);
	report_problem(check, problem);
	return OK;
}

static int check_all(struct check *check, struct check_report *report)
{
	struct store *store = check->call->admin->store;
	bool content = !admin_given(check->call, "no_content");
	struct check_listener listener = {.problem = report_problem,
	                                  .content = content ? check_event_content : NULL,
	                                  .segment = check_one_segment,
	                                  .archive_timestamp = check_one_stamp,
	                                  .context = check};
	int result = store_check(store, &listener, report, check->error);
	if ((result && result != ERR_CORRUPT) || !content)
		return result;
	int issued = store_list_objects(store, OBJECTS_ISSUED, check_issued, check, check->error);
	return issued ? issued : result;
}

/* Checks the hash chain of the log of this node's signing process. */
static int check_signer_log(struct check *check, int64_t *ret_lines)
{
	const char *directory = check->call->admin->settings->signer_directory;
	struct signer_log_facts facts = {0};
	struct error error = {0};
	int result = signer_log_check(directory, NULL, NULL, &facts, &error);
	*ret_lines = facts.lines;
	if (result == ERR_CORRUPT)
		report_problem(check, error.cause);
	else if (result && result != ERR_NOT_FOUND) {
		*check->error = error;
		return result;
	}
	return OK;
}

/* Compares the store with the last round that this node has seen. */
static int check_history(struct check *check)
{
	const struct admin *admin = check->call->admin;
	struct error error = {0};
	int result = history_inspect(admin->store, admin->settings->signer_directory, &error);
	if (result == ERR_CORRUPT) {
		report_problem(check, error_message(&error, LANGUAGE_ENGLISH));
		return OK;
	}
	if (result)
		*check->error = error;
	return result;
}

static int run_check(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	struct check check = {.call = call, .out = out, .error = error, .chunk = malloc(CHUNK)};
	if (!check.chunk)
		return ERR_NO_MEMORY;
	struct check_report report = {0};
	json_begin_object(out, NULL);
	json_begin_array(out, "problems");
	int64_t lines = 0;
	int result = check_all(&check, &report);
	free(check.chunk);
	if (result && result != ERR_CORRUPT)
		return result;
	int log_code = check_signer_log(&check, &lines);
	if (!log_code)
		log_code = check_history(&check);
	if (log_code)
		return log_code;
	json_end_array(out);
	json_boolean(out, "valid", !result && check.problems == 0);
	json_integer(out, "problem_count", check.problems);
	json_begin_array(out, "missing_objects");
	for (size_t i = 0; i < check.missing_count; i++)
		json_text(out, NULL, check.missing[i]);
	json_end_array(out);
	ADMIN_PUT(out, &report, accounts, chains, events, segments, certifications);
	json_integer(out, "objects", check.objects);
	json_integer(out, "signer_log_lines", lines);
	json_end_object(out);
	error_clear(error);
	return OK;
}

/* ---- backup ---- */

#define BACKUP_NICE 5

static void put_facts(struct json_writer *out, const char *directory, bool content,
                      const struct backup_facts *facts)
{
	json_text(out, "directory", directory);
	ADMIN_PUT(out, facts, created_at_us, store_bytes);
	json_hex(out, "store_sha256", facts->store_sha256.bytes, SHA256_SIZE);
	if (content)
		ADMIN_PUT(out, facts, content_objects, content_bytes, content_missing);
}

/* The series is that of the store in service: the original may still add to it, and the rotation
 * must not remove its backups in favour of those of a copy. */
static int refuse_copy(const struct admin_call *call, struct error *error)
{
	struct quiet quiet;
	int result = store_get_copy_state(call->admin->store, &quiet, error);
	if (!result && (quiet.is || call->admin->settings->service_quiet))
		result = error_set(error, ERR_REFUSED, MSG_ADMIN_BACKUP_READ_ONLY, NULL);
	return result;
}

/* Makes the next backup of the series of backup.directory. */
static int run_series_backup(const struct admin_call *call, bool content, struct json_writer *out,
                             struct error *error)
{
	const struct settings *settings = call->admin->settings;
	struct series_backup made;
	/* A reload may replace the settings meanwhile. */
	struct backup_series series = {.directory = arena_text(call->arena, settings->backup_directory),
	                               .keep = settings->backup_keep,
	                               .full_every = settings->backup_full_every,
	                               .store_url = arena_text(call->arena, settings->store_url)};
	if (!series.directory || !series.store_url)
		return ERR_NO_MEMORY;
	int result = refuse_copy(call, error);
	if (!result)
		result = backup_series_add(call->admin->store, content ? call->admin->content : NULL,
		                           &series, call->now_us, &made, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	put_facts(out, made.path, content, &made.facts);
	if (content)
		ADMIN_PUT(out, &made.facts, content_linked, content_lost);
	json_text(out, "kind", made.incremental ? "incremental" : "full");
	if (made.incremental)
		json_text(out, "base", made.facts.base);
	if (made.facts.pages.page_size) {
		json_integer(out, "pages", made.facts.pages.page_count);
		json_integer(out, "pages_changed", made.facts.pages.changed_pages);
	}
	json_boolean(out, "verified", true);
	json_integer(out, "removed", made.removed);
	json_boolean(out, "valid",
	             made.facts.content_missing == 0 && made.facts.content_lost == 0 &&
	                 !made.rotation_failed);
	json_end_object(out);
	return OK;
}

static int run_backup(const struct admin_call *call, struct json_writer *out, struct error *error)
{
	bool content = !admin_given(call, "no_content");
	struct backup_facts facts;
	/* Registrations take precedence, as over jobs. The thread belongs to this exchange. */
	setpriority(PRIO_PROCESS, (id_t)gettid(), BACKUP_NICE);
	if (!admin_given(call, "directory"))
		return run_series_backup(call, content, out, error);
	int result = backup_make(call->admin->store, content ? call->admin->content : NULL,
	                         admin_text(call, "directory"), call->now_us, &facts, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	put_facts(out, admin_text(call, "directory"), content, &facts);
	if (content)
		json_boolean(out, "valid", facts.content_missing == 0);
	json_end_object(out);
	return OK;
}

/* For operators who back up the database by other means. */
static int run_note_backup(const struct admin_call *call, struct json_writer *out,
                           struct error *error)
{
	int result = store_note_backup(call->admin->store, call->now_us, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	json_time(out, "last_backup_at", call->now_us);
	json_end_object(out);
	return OK;
}

/* ---- links ---- */

static int run_rotate_link_secret(const struct admin_call *call, struct json_writer *out,
                                  struct error *error)
{
	bool at_once = admin_given(call, "now");
	const struct settings *settings = call->admin->settings;
	struct service *service = call->admin->service;
	int result = store_rotate_link_secret(call->admin->store, LINKS_SPREAD_US,
	                                      settings->certification_link_lifetime, at_once, error);
	if (!result && service)
		result = service_refresh_links(service, error);
	if (result)
		return result;
	json_begin_object(out, NULL);
	json_boolean(out, "rotated", true);
	json_boolean(out, "former_links_valid", !at_once);
	json_end_object(out);
	return OK;
}

const struct admin_operation admin_store_operations[] = {
	{.name = "store check",
     .summary =
         "recompute all chains, references, sums, digests of stored objects, and the signer's"
         " log",
     .parameters = {ADMIN_FLAG_SWITCH("no_content", "skip the stored objects")},
     .run = run_check},
	{.name = "store backup",
     .summary = "copy the store and the objects that it references into a directory, while serving;"
                " without DIR as the next backup of the series in backup.directory",
     .outside = true,
     .parameters = {{.name = "directory",
                     .kind = ADMIN_PATH,
                     .positional = true,
                     .place = "DIR",
                     .least = 1,
                     .most = 3500,
                     .help = "an empty or new directory that the service can write"},
                    ADMIN_FLAG_SWITCH("no_content", "copy only the database")},
     .run = run_backup},
	{.name = "store backup-done",
     .summary = "record that a backup was made now by other means",
     .changes = true,
     .run = run_note_backup},
	{.name = "store rotate-link-secret",
     .summary = "sign new download links with a new secret",
     .changes = true,
     .parameters = {ADMIN_FLAG_SWITCH("now", "invalidate existing links immediately")},
     .run = run_rotate_link_secret},
	{0},
};
