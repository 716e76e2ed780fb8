/* The sweep removes objects that nothing refers to, in a place that belongs to this database, and
 * nothing else. */
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "testing.h"
#include "office.h"
#include "issue/links.h"
#include "service/sweep.h"
#include "service/sweep_claim.h"
#include "store/events/segments.h"
#include "store/nodes/sweeps.h"
#include "store/store_internal.h"

static struct office office;
static struct error error;
static struct arena arena;

/* The marker that another installation writes right after ours. */
static const struct content_marker *content_written_over;

int __real_content_mark(struct content_store *store, const struct content_marker *marker,
                        struct error *ret);
int __wrap_content_mark(struct content_store *store, const struct content_marker *marker,
                        struct error *ret);
int __wrap_content_mark(struct content_store *store, const struct content_marker *marker,
                        struct error *ret)
{
	int result = __real_content_mark(store, marker, ret);
	return result || !content_written_over ? result
	                                       : __real_content_mark(store, content_written_over, ret);
}

static int set_up_content(void **state)
{
	arena_init(&arena, 16 << 20);
	office_open(&office, MODALITY_CONTENT, 1000000);
	return 0;
}

static int set_up_hash_only(void **state)
{
	arena_init(&arena, 16 << 20);
	office_open(&office, MODALITY_HASH_ONLY, 1000000);
	return 0;
}

static int tear_down(void **state)
{
	office_close(&office);
	arena_free(&arena);
	return 0;
}

/* By the clock of the file system, which is not that of this process when tests/clock moves it. */
static void make_old(const char *object)
{
	char *path = arena_printf(&arena, "%s/content/%s", office.sample.directory, object);
	struct stat status;
	assert_int_equal(stat(path, &status), 0);
	struct timespec old = {.tv_sec = status.st_mtim.tv_sec - 90000};
	struct timespec times[2] = {old, old};
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static bool exists(const char *object)
{
	struct content_reader *reader;
	uint64_t size;
	int result = content_read_begin(office.service.content, object, 0, &reader, &size, &error);
	if (!result)
		content_read_end(reader);
	return !result;
}

static void write_object(const char *area, char name[CONTENT_NAME_MAX])
{
	struct content_writer *writer;
	content_fresh_name(area, name);
	assert_int_equal(content_write_begin(office.service.content, &writer, &error), OK);
	assert_int_equal(content_write(writer, "x", 1, &error), OK);
	assert_int_equal(content_write_commit(writer, name, &error), OK);
}

static bool is_marked(const char *object)
{
	return exists(arena_printf(&arena, "swept/%s", object));
}

/* The place has belonged to the installation for a long time. */
static void claim_long_ago(void)
{
	char *path = arena_printf(&arena, "%s/content/" CONTENT_MARKER, office.sample.directory);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "constancia content 1\ninstallation %s\nsince 2020-01-01T00:00:00.000000Z\n",
	        office.service.installation);
	assert_int_equal(fclose(file), 0);
}

static void sweep(void)
{
	static const atomic_bool no;
	sweep_content(&office.service, &no, &no);
}

/* Writes an object that nothing refers to, old enough to be swept. */
static void write_old(const char *area, char name[CONTENT_NAME_MAX])
{
	write_object(area, name);
	make_old(name);
}

static void list_documents(const struct certification *certification,
                           struct document **ret_documents, size_t *ret_count)
{
	assert_int_equal(store_list_documents(office.service.store, certification->account,
	                                      certification->certification, &arena, ret_documents,
	                                      ret_count, &error),
	                 OK);
}

/* Only old objects without a reference are swept: marked first, and deleted when the mark is
 * old. */
TEST_CASE(test_orphans_are_swept)
{
	char of_event[CONTENT_NAME_MAX], old[CONTENT_NAME_MAX], young[CONTENT_NAME_MAX];
	char left[CONTENT_NAME_MAX], alien[CONTENT_NAME_MAX];
	office_register_object(&office, slice_of("kept"), "kept.bin", of_event);
	office_start_jobs(&office);
	char id[ID_SIZE];
	office_request(&office, MODE_LIVE, 1, 1, id);
	struct certification certification = office_await_certification(&office, MODE_LIVE, id);
	assert_int_equal(certification.status, CERTIFICATION_COMPLETED);
	office_stop_jobs(&office);
	claim_long_ago();
	office.settings.content_keep_swept = US_PER_DAY;
	write_old("event", old);
	write_old("issued", left);
	write_old("archive", alien);
	write_object("event", young);
	make_old(of_event);
	struct document *documents;
	size_t count;
	list_documents(&certification, &documents, &count);
	for (size_t i = 0; i < count; i++)
		make_old(documents[i].object);
	for (int i = 0; i < 2; i++) { /* an existing mark is not renewed */
		sweep();
		assert_true(is_marked(old) && is_marked(left));
		assert_true(exists(old) && exists(left));
		assert_false(is_marked(of_event) || is_marked(young) || is_marked(alien));
		for (size_t d = 0; d < count; d++)
			assert_false(is_marked(documents[d].object));
	}
	make_old(arena_printf(&arena, "swept/%s", old));
	sweep();
	assert_false(exists(old) || is_marked(old));
	assert_true(exists(left) && exists(of_event) && exists(young) && exists(alien));
	for (size_t i = 0; i < count; i++)
		assert_true(exists(documents[i].object));
}

/* An object that gets a reference later loses its mark and stays. */
TEST_CASE(test_what_turns_out_to_be_named_stays)
{
	char object[CONTENT_NAME_MAX];
	office_register_object(&office, slice_of("late"), "late.bin", object);
	claim_long_ago();
	struct content_writer *writer;
	char *mark = arena_printf(&arena, "swept/%s", object);
	assert_int_equal(content_write_begin(office.service.content, &writer, &error), OK);
	assert_int_equal(content_write_commit(writer, mark, &error), OK);
	make_old(object);
	make_old(mark);
	sweep();
	assert_true(exists(object));
	assert_false(exists(mark));
}

/* Older objects than the installation's marker may belong to another installation. */
TEST_CASE(test_what_was_there_before_is_left_alone)
{
	char before[CONTENT_NAME_MAX];
	write_old("event", before);
	sweep();
	assert_false(is_marked(before));
	claim_long_ago();
	sweep();
	assert_true(is_marked(before));
}

/* A sweep neither runs nor starts in the place of another installation. */
TEST_CASE(test_anothers_place_is_refused)
{
	char old[CONTENT_NAME_MAX], own[INSTALLATION_SIZE];
	struct service *service = &office.service;
	write_old("event", old);
	memcpy(own, service->installation, sizeof own);
	memset(service->installation, '7', INSTALLATION_SIZE - 1);
	claim_long_ago(); /* it belongs to this one */
	memcpy(service->installation, own, sizeof own);
	sweep();
	assert_false(is_marked(old));
	struct authorities *authorities = service->authorities;
	links_close(service);
	service_close(service);
	error_clear(&error);
	assert_int_equal(service_open(&office.settings, false, service, &error), ERR_REFUSED);
	assert_non_null(strstr(error_message(&error, LANGUAGE_ENGLISH), "7777777"));
	/* As an operator does after checking. */
	assert_int_equal(
		unlink(arena_printf(&arena, "%s/content/" CONTENT_MARKER, office.sample.directory)), 0);
	assert_int_equal(service_open(&office.settings, false, service, &error), OK);
	service->authorities = authorities;
}

/* Documents of a certification in progress, however long it takes. */
TEST_CASE_WITH(test_documents_being_issued_are_not_swept, set_up_hash_only, tear_down)
{
	char object[CONTENT_NAME_MAX], of_none[CONTENT_NAME_MAX], id[ID_SIZE];
	sample_register(&office.sample, MODE_TEST, 5);
	office_request(&office, MODE_TEST, 1, 5, id);
	char *area = arena_printf(&arena, "issued/%s", id);
	claim_long_ago();
	write_old(area, object);
	write_old("issued/CERT-2026-9999999", of_none);
	sweep();
	assert_false(is_marked(object));
	assert_true(is_marked(of_none));
	/* Once it has ended, a document that it does not name is an orphan. */
	office_start_jobs(&office);
	struct certification certification = office_await_certification(&office, MODE_TEST, id);
	assert_int_equal(certification.status, CERTIFICATION_COMPLETED);
	office_stop_jobs(&office);
	struct document *documents;
	size_t count;
	list_documents(&certification, &documents, &count);
	for (size_t i = 0; i < count; i++) {
		assert_memory_equal(documents[i].object, area, strlen(area));
		make_old(documents[i].object);
	}
	sweep();
	assert_true(is_marked(object));
	for (size_t i = 0; i < count; i++)
		assert_false(is_marked(documents[i].object));
}

/* ---- copies of the database ---- */

#define TOKENS "sweep_tokens"

/* A copy of the database differs by the tokens: NULL for a database from before any sweep. */
static void set_tokens(const char *tokens)
{
	struct db_connection *writer = db_take_writer(office.service.store->db);
	assert_int_equal(db_begin(writer, &error), OK);
	struct db_query *query =
		db_query(writer, tokens ? "UPDATE settings SET value = $1 WHERE name = '" TOKENS "'"
	                            : "DELETE FROM settings WHERE name = '" TOKENS "'");
	if (tokens)
		db_bind_string(query, tokens);
	assert_int_equal(db_execute(query, NULL, &error), OK);
	assert_int_equal(db_commit(writer, &error), OK);
	db_give(writer);
}

static char *get_tokens(void)
{
	struct db_connection *reader = db_take_reader(office.service.store->db);
	assert_int_equal(db_begin(reader, &error), OK);
	struct db_query *query =
		db_query(reader, "SELECT value FROM settings WHERE name = '" TOKENS "'");
	assert_true(db_step(query));
	struct slice text = db_text(query, 0);
	char *tokens = arena_copy(&arena, text.data, text.size);
	assert_int_equal(db_end(query, &error), OK);
	db_give(reader);
	return tokens;
}

static struct content_marker get_marker(void)
{
	struct content_marker marker;
	assert_int_equal(
		content_claim(office.service.content, office.service.installation, &marker, &error), OK);
	return marker;
}

static bool sweep_is_refused(void)
{
	return atomic_load(&office.service.counters.sweep_refused);
}

/* The original has swept since the copy was made: the copy does not sweep, and then neither does
 * the original until an operator intervenes. */
TEST_CASE(test_a_copy_does_not_sweep)
{
	char old[CONTENT_NAME_MAX];
	claim_long_ago();
	sweep();
	char *of_copy = get_tokens();
	sweep();
	char *of_original = get_tokens();
	write_old("event", old);
	set_tokens(of_copy);
	sweep();
	assert_true(sweep_is_refused());
	assert_false(is_marked(old));
	assert_string_equal(get_tokens(), of_copy);
	set_tokens(of_original);
	sweep();
	assert_true(sweep_is_refused());
	assert_false(is_marked(old));
	/* As an operator does after stopping the copy: older objects are kept. */
	assert_int_equal(content_delete(office.service.content, CONTENT_MARKER, &error), OK);
	sweep();
	assert_false(sweep_is_refused());
	assert_false(is_marked(old));
	claim_long_ago();
	sweep();
	assert_true(is_marked(old));
}

/* The copy sweeps first: then the original stops, before the first mark of the copy is old
 * enough. */
TEST_CASE(test_a_copy_that_comes_first_is_stopped)
{
	char newer[CONTENT_NAME_MAX];
	claim_long_ago();
	sweep();
	char *of_both = get_tokens();
	write_old("event", newer); /* the copy has no reference to it */
	sweep();
	assert_true(is_marked(newer));
	char *of_copy = get_tokens();
	set_tokens(of_both);
	sweep();
	assert_true(sweep_is_refused());
	make_old(arena_printf(&arena, "swept/%s", newer));
	office.settings.content_keep_swept = US_PER_DAY;
	set_tokens(of_copy);
	for (int i = 0; i < 2; i++) {
		sweep();
		assert_true(sweep_is_refused());
		assert_true(exists(newer));
	}
}

/* The store has recorded a sweep that the place has not, or has only later. */
TEST_CASE(test_a_crash_does_not_make_a_copy)
{
	claim_long_ago();
	sweep();
	struct content_marker first = get_marker();
	for (int i = 0; i < 3; i++) { /* the next sweep writes the recorded token to the place */
		struct sweep_grant turn;
		assert_int_equal(
			store_take_sweep_token(office.service.store, first.sweep, 0, &turn, &error), OK);
		assert_string_not_equal(turn.token, first.sweep);
		assert_memory_equal(get_tokens(), turn.token, strlen(turn.token));
	}
	sweep();
	struct content_marker second = get_marker();
	assert_false(sweep_is_refused());
	assert_memory_equal(get_tokens(), second.sweep, strlen(second.sweep));
	assert_int_equal(second.since_us, first.since_us);
	assert_string_not_equal(second.sweep, first.sweep);
	assert_int_equal(strlen(get_tokens()), 2 * SWEEP_TOKEN_SIZE - 1);
	/* The write of the first one arrives late. */
	for (int i = 0; i < SWEEP_TOKENS_KEPT - 2; i++)
		sweep();
	assert_int_equal(strlen(get_tokens()), SWEEP_TOKENS_KEPT * SWEEP_TOKEN_SIZE - 1);
	assert_int_equal(content_mark(office.service.content, &first, &error), OK);
	sweep();
	assert_false(sweep_is_refused());
	for (int i = 0; i < 3; i++) {
		sweep();
		assert_int_equal(strlen(get_tokens()), SWEEP_TOKENS_KEPT * SWEEP_TOKEN_SIZE - 1);
	}
	assert_int_equal(content_mark(office.service.content, &first, &error), OK);
	sweep();
	assert_true(sweep_is_refused());
}

/* A store that was rolled back with an operator's consent may sweep again, but nothing that existed
 * by then. */
TEST_CASE(test_an_accepted_rollback_forgets_nothing)
{
	char forgotten[CONTENT_NAME_MAX];
	claim_long_ago();
	sweep();
	char *before = get_tokens();
	sweep();
	write_old("event", forgotten);
	set_tokens(before); /* as a lagging node has them when it takes over */
	struct accepted_rollback rollback = {
		.accepted_at_us = clock_now_us(), .node = "one", .reason = slice_of("tested")};
	assert_int_equal(store_record_rollback(office.service.store, &rollback, &error), OK);
	for (int i = 0; i < 2; i++) {
		sweep();
		assert_false(sweep_is_refused());
		assert_false(is_marked(forgotten));
	}
	assert_int_equal(get_marker().accepted_us, rollback.accepted_at_us);
	/* The same when there was no sweep since, so that the tokens are equal. */
	claim_long_ago();
	rollback.accepted_at_us = clock_now_us();
	assert_int_equal(store_record_rollback(office.service.store, &rollback, &error), OK);
	sweep();
	assert_false(is_marked(forgotten));
	/* The same when the same backup is restored again, without its last consent. */
	set_tokens(before);
	sample_change(&office.sample, "DELETE FROM rollbacks");
	rollback.accepted_at_us = clock_now_us();
	assert_int_equal(store_record_rollback(office.service.store, &rollback, &error), OK);
	sweep();
	assert_false(sweep_is_refused());
	assert_false(is_marked(forgotten));
	assert_int_equal(get_marker().accepted_us, rollback.accepted_at_us);
}

/* Another process writes to the place between our read and our write. */
TEST_CASE(test_who_did_not_leave_the_last_token_does_not_sweep)
{
	int64_t since_us;
	char old[CONTENT_NAME_MAX];
	claim_long_ago();
	write_old("event", old);
	struct content_marker other = get_marker();
	snprintf(other.sweep, sizeof other.sweep, "%032d", 7);
	content_written_over = &other;
	error_clear(&error);
	assert_int_equal(sweep_claim_store(&office.service, &since_us, &error), ERR_UNAVAILABLE);
	content_written_over = NULL;
	assert_int_equal(sweep_claim_store(&office.service, &since_us, &error), ERR_REFUSED);
}

/* A node that lost the lease, or is to stop, changes nothing more. */
TEST_CASE(test_it_ends_when_it_is_told_to)
{
	static const atomic_bool no, yes = true;
	char old[CONTENT_NAME_MAX];
	claim_long_ago();
	write_old("event", old);
	sweep_content(&office.service, &yes, &no);
	assert_false(is_marked(old));
	sweep_content(&office.service, &no, &yes);
	assert_false(is_marked(old));
	sweep();
	assert_true(is_marked(old));
	make_old(arena_printf(&arena, "swept/%s", old));
	office.settings.content_keep_swept = US_PER_DAY;
	sweep_content(&office.service, &yes, &no);
	sweep_content(&office.service, &no, &yes);
	assert_true(exists(old) && is_marked(old));
	sweep();
	assert_false(exists(old));
}

int main(void)
{
	return tests_run(office_start_signer, office_stop_signer, set_up_content, tear_down);
}
