/* The contract of content.h, for the implementation that the argument names. "file:" means a new
 * directory. The keys of a service come from the environment, as for the program. */
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing.h"
#include "base/clock.h"
#include "base/digest.h"
#include "content/content.h"
#include "net/http.h"
#include "scratch.h"

#define THREADS 4
#define OBJECTS_PER_THREAD 40

static char url[4096];
static char scratch[SCRATCH_MAX];
static struct content_store *store;
static bool remote;

static int open_again(bool create, struct content_store **ret_store)
{
	struct content_options options = {
		.url = url,
		.create = create,
		.spool_directory = scratch,
		.access_key = getenv("CONSTANCIA_CONTENT_ACCESS_KEY"),
		.secret_key = getenv("CONSTANCIA_CONTENT_SECRET_KEY"),
		.allow_networks = getenv("CONSTANCIA_CONTENT_ALLOW_NETWORKS"),
	};
	return content_open_with(&options, ret_store, NULL);
}

static int set_up(void **state)
{
	remote = content_url_is_remote(url);
	return open_again(true, &store);
}

static int tear_down(void **state)
{
	content_close(store);
	return 0;
}

static int put(const char *name, const void *data, size_t size)
{
	struct error error = {0};
	struct content_writer *writer = NULL;
	int result = content_write_begin(store, &writer, &error);
	if (!result)
		result = content_write(writer, data, size, &error);
	if (!result)
		result = content_write_commit(writer, name, &error);
	else
		content_write_abort(writer);
	if (result && result != ERR_INTERNAL)
		print_message("%s\n", error.cause); /* of a service that this test does not know */
	return result;
}

static void assert_holds(const char *name, uint64_t offset, const char *expected,
                         uint64_t expected_size)
{
	struct content_reader *reader = NULL;
	uint64_t size = 0;
	assert_int_equal(content_read_begin(store, name, offset, &reader, &size, NULL), 0);
	assert_int_equal(size, expected_size);
	size_t done = 0;
	char data[7]; /* small, so that a read takes several calls */
	int64_t got;
	while ((got = content_read(reader, data, sizeof data, NULL)) > 0) {
		assert_memory_equal(data, expected + done, got);
		done += (size_t)got;
	}
	assert_int_equal(got, 0);
	assert_int_equal(done, strlen(expected));
	content_read_end(reader);
}

static int exists(const char *name)
{
	struct content_reader *reader = NULL;
	uint64_t size = 0;
	int result = content_read_begin(store, name, 0, &reader, &size, NULL);
	if (!result)
		content_read_end(reader);
	else
		assert_null(reader);
	return result;
}

TEST_CASE(test_write_and_read)
{
	assert_int_equal(put("event/aa/one", "the declared content", 20), 0);
	assert_holds("event/aa/one", 0, "the declared content", 20);
	assert_holds("event/aa/one", 13, "content", 20);
	assert_holds("event/aa/one", 20, "", 20);
	assert_holds("event/aa/one", 1000, "", 20);
	assert_int_equal(put("event/aa/empty", "", 0), 0);
	assert_holds("event/aa/empty", 0, "", 0);
	assert_int_equal(put("event/aa/one", "other", 5), 0);
	assert_holds("event/aa/one", 0, "other", 5);
}

TEST_CASE(test_read_goes_on_over_replacement)
{
	struct content_reader *reader = NULL;
	uint64_t size = 0;
	char data[8] = "";
	assert_int_equal(put("area/aa/replaced", "before", 6), 0);
	assert_int_equal(content_read_begin(store, "area/aa/replaced", 0, &reader, &size, NULL), 0);
	assert_int_equal(put("area/aa/replaced", "AFTER", 5), 0);
	assert_int_equal(content_read(reader, data, sizeof data, NULL), 6);
	assert_string_equal(data, "before");
	content_read_end(reader);
}

TEST_CASE(test_unfinished_is_invisible)
{
	struct content_writer *writer = NULL;
	assert_int_equal(content_write_begin(store, &writer, NULL), 0);
	assert_int_equal(content_write(writer, "half", 4, NULL), 0);
	assert_int_equal(exists("area/aa/half"), ERR_NOT_FOUND);
	content_write_abort(writer);
	content_write_abort(NULL);
	content_read_end(NULL);
	assert_int_equal(exists("area/aa/half"), ERR_NOT_FOUND);
}

TEST_CASE(test_absent)
{
	struct error error = {0};
	struct content_reader *reader = NULL;
	uint64_t size = 77;
	assert_int_equal(content_read_begin(store, "no/such/object", 0, &reader, &size, &error),
	                 ERR_NOT_FOUND);
	assert_null(reader);
	assert_int_equal(size, 77);
	assert_int_equal(error.code, ERR_NOT_FOUND);
	assert_int_equal(content_read_descriptor(store, "no/such/object", &size), -1);
	assert_int_equal(content_delete(store, "no/such/object", NULL), 0);
	/* An area is not an object. */
	assert_int_equal(put("dir/aa/object", "x", 1), 0);
	assert_int_equal(exists("dir/aa"), ERR_NOT_FOUND);
	assert_int_equal(exists("dir/aa/object/below"), ERR_NOT_FOUND);
}

TEST_CASE(test_delete)
{
	assert_int_equal(put("area/aa/gone", "x", 1), 0);
	assert_int_equal(content_delete(store, "area/aa/gone", NULL), 0);
	assert_int_equal(exists("area/aa/gone"), ERR_NOT_FOUND);
	assert_int_equal(content_delete(store, "area/aa/gone", NULL), 0);
}

TEST_CASE(test_names)
{
	char longest[CONTENT_NAME_MAX + 1];
	memset(longest, 'a', sizeof longest);
	memcpy(longest, "area/bb/", 8);
	longest[CONTENT_NAME_MAX] = '\0'; /* one too long */
	const char *refused[] = {"",
	                         "/",
	                         "/etc/passwd",
	                         "area/",
	                         "area//x",
	                         "..",
	                         "../x",
	                         "area/../x",
	                         "area/./x",
	                         "area/.hidden",
	                         ".incoming/x",
	                         "area/a b",
	                         "area/a\nb",
	                         "area/\xc3\xb1",
	                         "area\\x",
	                         "a/b/c/d/e/f/g/h/i",
	                         longest};
	struct content_reader *reader = NULL;
	uint64_t size = 0;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		assert_int_equal(put(refused[i], "x", 1), ERR_INTERNAL);
		assert_int_equal(content_read_begin(store, refused[i], 0, &reader, &size, NULL),
		                 ERR_INTERNAL);
		assert_int_equal(content_read_descriptor(store, refused[i], &size), -1);
		assert_int_equal(content_delete(store, refused[i], NULL), ERR_INTERNAL);
	}
	longest[CONTENT_NAME_MAX - 1] = '\0';
	const char *accepted[] = {"x", "a-b_c.d/E9/x..", "a/b/c/d/e/f/g/h", "cert/CERT-2026-1.pdf",
	                          longest};
	for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
		assert_int_equal(put(accepted[i], "x", 1), 0);
		assert_int_equal(exists(accepted[i]), 0);
	}
}

TEST_CASE(test_fresh_names)
{
	char first[CONTENT_NAME_MAX], second[CONTENT_NAME_MAX];
	content_fresh_name("event", first);
	content_fresh_name("event", second);
	assert_string_not_equal(first, second);
	assert_int_equal(strlen(first), strlen("event/xx/") + 30);
	assert_memory_equal(first, "event/", 6);
	assert_int_equal(put(first, "x", 1), 0);
	assert_int_equal(exists(first), 0);
	assert_int_equal(exists(second), ERR_NOT_FOUND);
}

TEST_CASE(test_put_file)
{
	enum { SIZE = 200001 }; /* more than one copy buffer */
	char path[sizeof scratch + 8];
	snprintf(path, sizeof path, "%s/file", scratch);
	char *data = malloc(SIZE), *back = malloc(SIZE);
	assert_non_null(data);
	assert_non_null(back);
	random_bytes(data, SIZE);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, SIZE, file), SIZE);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(content_put_file(store, path, "issued/aa/file", NULL), 0);
	assert_int_equal(access(path, R_OK), 0);
	assert_int_equal(unlink(path), 0);
	struct content_reader *reader = NULL;
	uint64_t size = 0;
	assert_int_equal(content_read_begin(store, "issued/aa/file", 0, &reader, &size, NULL), 0);
	assert_int_equal(size, SIZE);
	size_t done = 0;
	for (int64_t got; (got = content_read(reader, back + done, SIZE - done, NULL)) > 0;)
		done += (size_t)got;
	assert_int_equal(done, SIZE);
	assert_memory_equal(data, back, SIZE);
	content_read_end(reader);
	assert_int_equal(content_put_file(store, path, "issued/aa/none", NULL), ERR_IO);
	assert_int_equal(exists("issued/aa/none"), ERR_NOT_FOUND);
	free(data);
	free(back);
}

/* More than one read and more than one part of an upload, and a size that is not a multiple of
 * either. */
TEST_CASE(test_large)
{
	enum { SIZE = 20 * 1024 * 1024 + 4321, PIECE = 100000 };
	char *data = malloc(SIZE), *back = malloc(SIZE + 1);
	assert_non_null(data);
	assert_non_null(back);
	random_bytes(data, SIZE);
	struct content_writer *writer = NULL;
	assert_int_equal(content_write_begin(store, &writer, NULL), 0);
	for (size_t done = 0; done < SIZE; done += PIECE)
		assert_int_equal(
			content_write(writer, data + done, SIZE - done < PIECE ? SIZE - done : PIECE, NULL), 0);
	assert_int_equal(content_write_commit(writer, "area/aa/large", NULL), 0);
	const uint64_t offsets[] = {0, 1, 262144, 5000000, SIZE - 1};
	for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
		struct content_reader *reader = NULL;
		uint64_t size = 0;
		size_t done = 0;
		assert_int_equal(
			content_read_begin(store, "area/aa/large", offsets[i], &reader, &size, NULL), 0);
		assert_int_equal(size, SIZE);
		for (int64_t got; (got = content_read(reader, back + done, SIZE + 1 - done, NULL)) > 0;)
			done += (size_t)got;
		assert_int_equal(done, SIZE - offsets[i]);
		assert_memory_equal(data + offsets[i], back, done);
		content_read_end(reader);
	}
	free(data);
	free(back);
	assert_int_equal(content_delete(store, "area/aa/large", NULL), 0);
}

TEST_CASE(test_ready)
{
	struct error error = {0};
	assert_int_equal(content_ready(store, &error), 0);
	assert_string_equal(error.cause, "");
	assert_int_equal(content_is_remote(store), remote);
}

static void assert_link_leads_to(const char *link, const char *expected)
{
	HTTP_ANSWER_AUTO struct http_answer answer;
	struct address_guard guard = {.allowed = {1, {{.family = AF_INET}}}};
	struct http_request request = {.url = link, .allow_http = true, .guard = &guard};
	assert_int_equal(http_send(&request, &answer, NULL), 0);
	assert_int_equal(answer.status, 200);
	assert_true(slice_is(buf_slice(&answer.body), expected));
	assert_true(slice_is(http_answer_header(&answer, "Content-Type"), "application/pdf"));
	assert_true(slice_is(http_answer_header(&answer, "Content-Disposition"),
	                     "attachment; filename=\"report.pdf\""));
}

TEST_CASE(test_links)
{
	BUF_AUTO struct buf link = {.limit = 4096};
	struct content_link wanted = {.content_type = "application/pdf",
	                              .file_name = "report.pdf",
	                              .lifetime_us = INT64_C(60000000)};
	wanted.now_us = clock_now_us();
	assert_int_equal(put("issued/aa/report", "%PDF", 4), 0);
	int result = content_make_link(store, "issued/aa/report", &wanted, &link, NULL);
	if (remote) {
		assert_int_equal(result, 0);
		assert_link_leads_to(link.data, "%PDF");
	} else {
		assert_int_equal(result, ERR_REFUSED);
		assert_int_equal(link.size, 0);
	}
	assert_int_equal(content_make_link(store, "../x", &wanted, &link, NULL), ERR_INTERNAL);
}

TEST_CASE(test_descriptor)
{
	uint64_t size = 0;
	char data[8] = "";
	assert_int_equal(put("area/aa/fd", "bytes", 5), 0);
	int descriptor = content_read_descriptor(store, "area/aa/fd", &size);
	if (descriptor < 0)
		skip(); /* optional for an implementation */
	assert_int_equal(size, 5);
	assert_int_equal(read(descriptor, data, sizeof data), 5);
	assert_string_equal(data, "bytes");
	close(descriptor);
}

struct seen {
	int count, wanted, answer;
	bool delete;
};

static int see(void *context, const char *name)
{
	struct seen *seen = context;
	seen->count++;
	if (strcmp(name, "sweep/aa/old") == 0)
		seen->wanted++;
	if (seen->delete)
		assert_int_equal(content_delete(store, name, NULL), 0);
	return seen->answer;
}

static int remove_upload(void *context, const char *name)
{
	(void)context, (void)name;
	return 0;
}

/* Calls `visit` for all older objects, then for older remains of interrupted writers. */
static int sweep_older(int64_t age_us, int (*visit)(void *context, const char *name), void *context)
{
	int64_t now_us = 0;
	int result = content_now_us(store, &now_us, NULL);
	struct content_range range = {.area = "", .since_us = INT64_MIN, .before_us = now_us - age_us};
	if (!result)
		result = content_list(store, &range, visit, context, NULL);
	return result ? result : content_remove_leftovers(store, &range, remove_upload, NULL, NULL);
}

/* A service may report an object's time, and its own time, in whole seconds and up to a second
 * late. */
static void become_old(void)
{
	usleep(remote ? 5100000 : 30000);
}

TEST_CASE(test_sweep)
{
	const int64_t old_us = remote ? 1000000 : 20000;
	struct seen seen = {0};
	struct content_writer *writer = NULL;
	assert_int_equal(put("sweep/aa/old", "x", 1), 0);
	assert_int_equal(sweep_older(INT64_C(3600000000), see, &seen), 0);
	assert_int_equal(seen.count, 0);
	become_old();
	assert_int_equal(sweep_older(old_us, see, &seen), 0);
	assert_int_equal(seen.wanted, 1);
	assert_true(seen.count >= 1);
	/* An object that is being written is not listed, and survives a sweep of older objects. */
	assert_int_equal(content_write_begin(store, &writer, NULL), 0);
	assert_int_equal(content_write(writer, "new", 3, NULL), 0);
	int before = seen.count;
	seen = (struct seen){0};
	assert_int_equal(sweep_older(old_us, see, &seen), 0);
	assert_int_equal(seen.count, before);
	assert_int_equal(content_write_commit(writer, "sweep/bb/new", NULL), 0);
	/* The first non-zero result ends the listing. */
	seen = (struct seen){.answer = ERR_UNAVAILABLE};
	assert_int_equal(sweep_older(old_us, see, &seen), ERR_UNAVAILABLE);
	assert_int_equal(seen.count, 1);
	become_old();
	seen = (struct seen){.delete = true};
	assert_int_equal(sweep_older(old_us, see, &seen), 0);
	assert_int_equal(exists("sweep/aa/old"), ERR_NOT_FOUND);
	seen = (struct seen){0};
	assert_int_equal(sweep_older(old_us, see, &seen), 0);
	assert_int_equal(seen.count, 0);
}

static int note_one(void *context, const char *name)
{
	struct seen *seen = context;
	seen->count++;
	seen->wanted += strcmp(name, "part/aa/one") == 0;
	return 0;
}

/* Lists one area, between two times. */
TEST_CASE(test_a_listing_has_bounds)
{
	int64_t before_us, after_us;
	assert_int_equal(content_now_us(store, &before_us, NULL), 0);
	become_old();
	assert_int_equal(put("part/aa/one", "x", 1), 0);
	assert_int_equal(put("partial/aa/two", "x", 1), 0);
	become_old();
	assert_int_equal(content_now_us(store, &after_us, NULL), 0);
	struct {
		const char *area;
		int64_t since_us, before_us;
		int count;
	} rows[] = {{"part", before_us, after_us, 1},
	            {"part", INT64_MIN, INT64_MAX, 1},
	            {"part", after_us, INT64_MAX, 0},
	            {"part", INT64_MIN, before_us, 0},
	            {"none", INT64_MIN, INT64_MAX, 0}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct content_range range = {rows[i].area, rows[i].since_us, rows[i].before_us};
		struct seen seen = {0};
		assert_int_equal(content_list(store, &range, note_one, &seen, NULL), 0);
		assert_int_equal(seen.count, rows[i].count);
		assert_int_equal(seen.wanted, rows[i].count);
	}
	assert_int_equal(content_delete(store, "part/aa/one", NULL), 0);
	assert_int_equal(content_delete(store, "partial/aa/two", NULL), 0);
}

static const char one[] = "1111111111111111111111111111111111111111111111111111111111111111";
static const char other[] = "2222222222222222222222222222222222222222222222222222222222222222";

TEST_CASE(test_a_place_is_one_installations)
{
	struct error error = {0};
	struct content_marker since = {0}, again = {0};
	assert_int_equal(content_claim(store, one, &since, &error), 0);
	become_old();
	assert_int_equal(content_claim(store, one, &again, &error), 0);
	assert_true(since.since_us > 0 && since.since_us == again.since_us);
	assert_int_equal(content_claim(store, other, &again, &error), ERR_REFUSED);
	assert_non_null(strstr(error_message(&error, LANGUAGE_ENGLISH), one));
	/* A marker of another owner does not permit the use of the location. */
	assert_int_equal(put(CONTENT_MARKER, "theirs", 6), 0);
	assert_int_equal(content_claim(store, one, &again, &error), ERR_REFUSED);
	assert_int_equal(put(CONTENT_MARKER, "", 0), 0);
	assert_int_equal(content_claim(store, one, &again, &error), ERR_REFUSED);
	assert_int_equal(content_delete(store, CONTENT_MARKER, NULL), 0);
	assert_int_equal(content_claim(store, other, &again, &error), 0);
	assert_true(again.since_us > since.since_us);
	assert_int_equal(content_delete(store, CONTENT_MARKER, NULL), 0);
}

/* The marker that a sweep writes is read again; text that only resembles one does not permit a
 * sweep. */
TEST_CASE(test_a_marker_carries_the_last_sweep)
{
	struct error error = {0};
	struct content_marker marker = {0}, again = {0};
	assert_int_equal(content_check_claim(store, one, &error), 0);
	assert_int_equal(content_check_claim(store, "", &error), 0);
	assert_int_equal(content_claim(store, one, &marker, &error), 0);
	assert_string_equal(marker.sweep, "");
	snprintf(marker.sweep, sizeof marker.sweep, "0123456789abcdef0123456789abcdef");
	marker.accepted_us = INT64_C(1767268800000000);
	assert_int_equal(content_mark(store, &marker, &error), 0);
	assert_int_equal(content_claim(store, one, &again, &error), 0);
	assert_memory_equal(&marker, &again, sizeof marker);
	assert_int_equal(content_check_claim(store, one, &error), 0);
	assert_int_equal(content_check_claim(store, other, &error), ERR_REFUSED);
	assert_int_equal(content_check_claim(store, "", &error), ERR_REFUSED);
	static const char *const tails[] = {"sweep", "sweep 12\n", "sweep 12\naccepted x\n",
	                                    "sweep 12\naccepted 1\nmore\n", "more\n"};
	for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
		char text[300];
		int size = snprintf(text, sizeof text,
		                    "constancia content 1\ninstallation %s\n"
		                    "since 2020-01-01T00:00:00.000000Z\n%s",
		                    one, tails[i]);
		assert_int_equal(put(CONTENT_MARKER, text, (size_t)size), 0);
		assert_int_equal(content_claim(store, one, &again, &error), ERR_REFUSED);
	}
	assert_int_equal(content_delete(store, CONTENT_MARKER, NULL), 0);
}

TEST_CASE(test_own_names_are_known)
{
	static const char *const others[] = {"event/aa/0123456789abcdefghijklmnopqrs",
	                                     "event/aa/0123456789abcdefghijklmnopqrstu",
	                                     "event/AA/0123456789abcdefghijklmnopqrst",
	                                     "event/a/0123456789abcdefghijklmnopqrst",
	                                     "event/aa/0123456789abcdefghijklmnopqrsT",
	                                     "aa/0123456789abcdefghijklmnopqrst",
	                                     "/aa/0123456789abcdefghijklmnopqrst",
	                                     "events/aa/0123456789abcdefghijklmnopqrst",
	                                     "event/x/aa/0123456789abcdefghijklmnopqrst",
	                                     "swept/event/aa/0123456789abcdefghijklmnopqrst",
	                                     "issued/a/b/aa/0123456789abcdefghijklmnopqrst",
	                                     CONTENT_MARKER,
	                                     ("event/aa/w123456789"
	                                      "abcdefghijklmnopqrst"),
	                                     ""};
	static const char *const areas[] = {"event", "issued", "issued/CERT-2026-0000001"};
	char name[CONTENT_NAME_MAX];
	for (size_t i = 0; i < sizeof areas / sizeof *areas; i++) {
		content_fresh_name(areas[i], name);
		assert_true(content_name_is_fresh(name));
	}
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (content_name_is_fresh(others[i]))
			fail_msg("%s", others[i]);
}

static void *write_many(void *context)
{
	char name[CONTENT_NAME_MAX], text[32];
	for (int i = 0; i < OBJECTS_PER_THREAD; i++) {
		/* All threads create the same directories at the same time. */
		snprintf(name, sizeof name, "many/%02d/%c", i, *(const char *)context);
		snprintf(text, sizeof text, "%c%d", *(const char *)context, i);
		if (put(name, text, strlen(text)))
			return "failed";
	}
	return NULL;
}

TEST_CASE(test_threads)
{
	static const char letters[THREADS] = "abcd";
	pthread_t threads[THREADS];
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_many, (void *)&letters[i]), 0);
	for (size_t i = 0; i < THREADS; i++) {
		void *result = NULL;
		assert_int_equal(pthread_join(threads[i], &result), 0);
		assert_null(result);
	}
	for (size_t i = 0; i < THREADS; i++)
		for (int j = 0; j < OBJECTS_PER_THREAD; j++) {
			char name[CONTENT_NAME_MAX], text[32];
			snprintf(name, sizeof name, "many/%02d/%c", j, letters[i]);
			snprintf(text, sizeof text, "%c%d", letters[i], j);
			assert_holds(name, 0, text, strlen(text));
		}
}

TEST_CASE(test_opened_again)
{
	assert_int_equal(put("area/aa/kept", "kept", 4), 0);
	content_close(store);
	store = NULL;
	assert_int_equal(open_again(false, &store), 0);
	assert_holds("area/aa/kept", 0, "kept", 4);
	content_close(NULL);
}

TEST_CASE(test_urls)
{
	struct content_store *none = NULL;
	struct error error = {0};
	static const char *const refused[] = {"",     "file:", "/tmp",  "ftp://x/",
	                                      "file", "s3:",   "s3://", "s3://x/?endpoint=x"};
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		assert_int_equal(content_open(refused[i], true, &none, &error), ERR_VALIDATION);
	assert_int_equal(content_open("file", true, &none, &error), ERR_VALIDATION);
	assert_non_null(strstr(error_message(&error, LANGUAGE_ENGLISH), "'file'"));
	assert_int_equal(content_url_check("file", NULL), ERR_VALIDATION);
	assert_int_equal(content_url_check(url, NULL), 0);
	assert_int_equal(content_open("file:/nonexistent/x", true, &none, &error), ERR_VALIDATION);
	assert_non_null(strstr(error_message(&error, LANGUAGE_ENGLISH), "/nonexistent/x"));
	assert_null(none);
}

int main(int count, char **arguments)
{
	if (count != 2) {
		fprintf(stderr, "usage: %s URL\n", arguments[0]);
		return 2;
	}
	scratch_make(scratch);
	snprintf(url, sizeof url, "%s", arguments[1]);
	if (strcmp(url, "file:") == 0)
		snprintf(url, sizeof url, "file:%s/store", scratch);
	int failed = tests_run(set_up, tear_down, NULL, NULL);
	scratch_remove(scratch);
	return failed;
}
