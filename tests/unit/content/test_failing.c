/* Content is stored, read, listed and deleted with each call failing in turn: memory, files,
 * directories. A fault is reported as a fault: an existing object is never reported as missing, no
 * list omits one, and a missing object is never reported as stored. A failed operation succeeds
 * when it is repeated. Arguments: "file:" for a new directory, or the address of a store and that
 * of its scripted service (tests/support/s3_server.py). */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing.h"
#include "base/clock.h"
#include "base/digest.h"
#include "content/content.h"
#include "failing.h"
#include "net/http.h"
#include "scratch.h"

#define ALL (FAILING_MEMORY | FAILING_FILES | FAILING_JOURNAL)
#define SMALL ((size_t)100000)
#define LARGE ((size_t)17 << 20) /* a service gets it in parts and returns it in blocks */

static char url[4096];
static const char *endpoint; /* of the service; NULL: files */
static char scratch[SCRATCH_MAX];
static char *data;
static struct content_store *store;
static struct error error;

static bool is_fault(int64_t code)
{
	return code == ERR_IO || code == ERR_NO_MEMORY || code == ERR_NETWORK || code == ERR_NO_SPACE;
}

/* Returns whether to continue after an attempt in which a call was to fail. Over a network a
 * further attempt may have completed the operation; a temporary file that is left is removed
 * later. */
static bool goes_on(const char *what, int at, int64_t code)
{
	const char *failed = failing_disarm();
	bool may_pass = failed && (endpoint || strcmp(failed, "unlinkat") == 0);
	bool good = (failed && is_fault(code)) || (code == 0 && (!failed || may_pass));
	if (!good)
		fail_msg("%s, call %d, %s: %d %s", what, at, failed ? failed : "none", (int)code,
		         error.cause);
	return failed;
}

/* Makes each call of the expression fail in turn, then none. */
#define IN_TURN_OF(kinds, expression)                                                              \
	do {                                                                                           \
		int at = 0;                                                                                \
		int64_t code;                                                                              \
		do {                                                                                       \
			error = (struct error){0};                                                             \
			failing_arm(kinds, ++at);                                                              \
			code = (expression);                                                                   \
		} while (goes_on(#expression, at, code));                                                  \
		assert_true(at > 1);                                                                       \
	} while (0)
#define IN_TURN(expression) IN_TURN_OF(ALL, expression)

static struct content_options options_now(void)
{
	return (struct content_options){
		.url = url,
		.create = true,
		.spool_directory = scratch,
		.access_key = getenv("CONSTANCIA_CONTENT_ACCESS_KEY"),
		.secret_key = getenv("CONSTANCIA_CONTENT_SECRET_KEY"),
		.allow_networks = getenv("CONSTANCIA_CONTENT_ALLOW_NETWORKS"),
	};
}

static void ask(const char *what, const char *body)
{
	char target[256];
	HTTP_ANSWER_AUTO struct http_answer answer;
	struct address_guard guard = {.allowed = {1, {{.family = AF_INET}}}};
	struct http_request request = {.url = target,
	                               .method = "POST",
	                               .body = slice_of(body),
	                               .allow_http = true,
	                               .answer_limit = (size_t)1 << 20,
	                               .guard = &guard};
	snprintf(target, sizeof target, "%s/_control/%s", endpoint, what);
	assert_int_equal(http_send(&request, &answer, NULL), 0);
	assert_int_equal(answer.status, 200);
}

static int set_up(void **state)
{
	struct content_options options = options_now();
	failing_errno = EIO;
	if (endpoint)
		ask("behave", "{}");
	return content_open_with(&options, &store, &error);
}

static int tear_down(void **state)
{
	failing_disarm();
	content_close(store);
	store = NULL;
	return 0;
}

static int put(const char *name, size_t size)
{
	struct content_writer *writer = NULL;
	int result = content_write_begin(store, &writer, &error);
	if (!result)
		result = content_write(writer, data, size, &error);
	if (!result)
		return content_write_commit(writer, name, &error);
	content_write_abort(writer);
	return result;
}

/* Returns 0 if the object exists with all its bytes, or the reason why it cannot be read. */
static int64_t get(const char *name, size_t size)
{
	struct content_reader *reader = NULL;
	uint64_t whole = 0;
	size_t done = 0;
	static char part[(size_t)1 << 20];
	int64_t got = content_read_begin(store, name, 0, &reader, &whole, &error);
	if (got)
		return got;
	while ((got = content_read(reader, part, sizeof part, &error)) > 0) {
		assert_true(done + (size_t)got <= size);
		assert_memory_equal(part, data + done, got);
		done += (size_t)got;
	}
	content_read_end(reader);
	if (got == 0)
		assert_int_equal(done, size);
	return got;
}

TEST_CASE(opens)
{
	struct content_options options = options_now();
	content_close(store);
	/* An unusable address is reported with the reason. */
	for (int at = 1;; at++) {
		store = NULL;
		failing_arm(ALL, at);
		int result = content_open_with(&options, &store, &error);
		if (!failing_disarm()) {
			assert_int_equal(result, 0);
			break;
		}
		if (!result) { /* of the upward walk, which may end anywhere */
			content_close(store);
			continue;
		}
		assert_true(result == ERR_VALIDATION || is_fault(result));
		assert_null(store);
	}
	assert_int_equal(put("opened", 1), 0);
	assert_int_equal(get("opened", 1), 0);
}

/* Each call of storing fails in turn: afterwards the object is complete or absent. */
static void put_in_turn(const char *name)
{
	for (int at = 1;; at++) {
		error = (struct error){0};
		failing_arm(ALL, at);
		int result = put(name, SMALL);
		if (!goes_on(name, at, result))
			break;
		int64_t found = get(name, SMALL);
		assert_true(found == 0 || (result && found == ERR_NOT_FOUND));
		assert_int_equal(content_delete(store, name, NULL), 0);
	}
	assert_int_equal(get(name, SMALL), 0);
}

TEST_CASE(stores_or_tells)
{
	put_in_turn("event/aa/one");
	failing_errno = ENOSPC;
	put_in_turn("event/bb/two");
	failing_errno =
		EOPNOTSUPP; /* of a file without a name, which some file systems do not support */
	error = (struct error){0};
	failing_arm(FAILING_FILES, 1);
	int result = put("event/cc/three", SMALL);
	assert_non_null(failing_disarm());
	assert_int_equal(result, endpoint ? 0 : ERR_IO);
}

TEST_CASE(stores_a_file)
{
	char path[64];
	snprintf(path, sizeof path, "%s/finished", scratch);
	int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_equal(write(file, data, SMALL), SMALL);
	close(file);
	IN_TURN(content_put_file(store, path, "issued/aa/one", &error));
	assert_int_equal(get("issued/aa/one", SMALL), 0);
	assert_int_equal(content_put_file(store, path, "../one", &error), ERR_INTERNAL);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(content_put_file(store, path, "issued/aa/two", &error), ERR_IO);
	assert_int_equal(get("issued/aa/two", SMALL), ERR_NOT_FOUND);
}

static int64_t read_descriptor(const char *name)
{
	uint64_t size = 0;
	int descriptor = content_read_descriptor(store, name, &size);
	if (descriptor < 0)
		return endpoint || errno == ENOENT ? ERR_NOT_FOUND : ERR_IO;
	assert_int_equal(size, SMALL);
	assert_int_equal(close(descriptor), 0);
	return 0;
}

/* An object that is reported as deleted is deleted. */
static int64_t delete (const char *name)
{
	int result = content_delete(store, name, &error);
	int64_t found = result ? result : get(name, SMALL);
	assert_int_not_equal(found, 0);
	return found == ERR_NOT_FOUND ? 0 : found;
}

TEST_CASE(reads_whole_or_tells)
{
	assert_int_equal(put("event/aa/read", SMALL), 0);
	IN_TURN(get("event/aa/read", SMALL));
	assert_int_equal(get("event/aa/other", 0), ERR_NOT_FOUND);
	if (!endpoint)
		IN_TURN_OF(FAILING_FILES, read_descriptor("event/aa/read"));
	int64_t now_us = 0;
	IN_TURN(content_now_us(store, &now_us, &error));
	IN_TURN(delete ("event/aa/read"));
}

static size_t seen;

static int count_object(void *context, const char *name)
{
	(void)context;
	seen += strncmp(name, "listed/", 7) == 0;
	return 0;
}

/* A list that is reported as complete has every object. */
static int list(void)
{
	struct content_range range = {"listed", INT64_MIN, INT64_MAX};
	seen = 0;
	int result = content_list(store, &range, count_object, NULL, &error);
	if (!result)
		assert_int_equal(seen, 9);
	return result;
}

TEST_CASE(lists_all_or_tells)
{
	for (int i = 0; i < 9; i++) { /* the service lists seven at once */
		char name[32];
		snprintf(name, sizeof name, "listed/%02d/object", i / 2);
		strcat(name, i % 2 ? "" : "-b");
		assert_int_equal(put(name, 10), 0);
	}
	IN_TURN(list());
}

#define LEFT "0123456789abcdef0123456789abcdef"

static int end_all(void *context, const char *name)
{
	(void)context, (void)name;
	return 0;
}

TEST_CASE(tidies_up_or_tells)
{
	struct content_range range = {"", INT64_MIN, INT64_MAX};
	char path[sizeof url + 64];
	snprintf(path, sizeof path, "%s/.incoming/" LEFT, url + strlen("file:"));
	if (!endpoint)
		assert_int_equal(close(creat(path, 0600)), 0);
	IN_TURN(content_remove_leftovers(store, &range, end_all, NULL, &error));
	if (!endpoint)
		assert_int_equal(access(path, F_OK), -1);
}

/* ---- a service ---- */

#define TOLD_INSIDE "{\"kind\":\"error-inside\",\"method\":\"PUT\",\"times\":99}"

/* An error after a success status remains an error, whatever else fails. */
TEST_CASE(never_takes_an_error_for_success)
{
	if (!endpoint)
		skip();
	for (int at = 1;; at++) {
		ask("behave", "{}");
		ask("misbehave", TOLD_INSIDE);
		failing_arm(FAILING_MEMORY, at);
		int result = put("inside", SMALL);
		const char *failed = failing_disarm();
		if (!is_fault(result))
			fail_msg("call %d, %s: %d", at, failed, result);
		if (!failed)
			break;
	}
	ask("behave", "{}");
	assert_int_equal(put("inside", SMALL), 0);
}

TEST_CASE(an_object_in_parts)
{
	if (!endpoint)
		skip();
	for (int at = 3;; at += 6) {
		failing_arm(FAILING_MEMORY, at);
		int result = put("parts", LARGE);
		const char *failed = failing_disarm();
		if (!failed) {
			assert_int_equal(result, 0);
			break;
		}
		assert_true(!result || is_fault(result));
		int64_t found = get("parts", LARGE);
		assert_true(found == 0 || (result && found == ERR_NOT_FOUND));
		assert_int_equal(content_delete(store, "parts", NULL), 0);
	}
	IN_TURN(get("parts", LARGE));
	assert_int_equal(content_delete(store, "parts", NULL), 0);
}

static int make_link(void)
{
	struct content_link link = {.content_type = "application/pdf",
	                            .file_name = "report.pdf",
	                            .now_us = clock_now_us(),
	                            .lifetime_us = US_PER_SECOND};
	BUF_AUTO struct buf out = {.limit = 8192};
	return content_make_link(store, "event/aa/one", &link, &out, &error);
}

TEST_CASE(links)
{
	if (endpoint)
		IN_TURN(make_link());
	else
		assert_int_equal(make_link(), ERR_REFUSED);
}

int main(int count, char **arguments)
{
	if (count < 2) {
		fprintf(stderr, "usage: %s URL [ENDPOINT]\n", arguments[0]);
		return 2;
	}
	scratch_make(scratch);
	endpoint = count > 2 ? arguments[2] : NULL;
	snprintf(url, sizeof url, endpoint ? "%s" : "%s%s/store", arguments[1], scratch);
	data = malloc(LARGE);
	random_bytes(data, LARGE);
	int failed = tests_run(NULL, NULL, set_up, tear_down);
	scratch_remove(scratch);
	free(data);
	return failed;
}
