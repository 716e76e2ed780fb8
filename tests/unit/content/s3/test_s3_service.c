/* The S3 driver against the scripted service of tests/support/s3_server.py, which checks signatures
 * and checksums and fails as the test requests. Arguments: the address of the store and that of the
 * service. S3_TEST_ONLY in the environment selects tests by a pattern, S3_TEST_MIB sets the size of
 * the object for measuring memory. */
#include <fcntl.h>
#include <unistd.h>

#include "testing.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/json.h"
#include "content/content.h"
#include "net/http.h"
#include "scratch.h"

#define LARGE ((size_t)18 << 20) /* is sent in three parts and read in six blocks */
#define TRIES 5

static const char *url, *endpoint;
static char scratch[SCRATCH_MAX];
static struct content_store *store;
static struct error error;

/* ---- instructing the service ---- */

static void ask(const char *what, const char *body, struct http_answer *ret_answer)
{
	char target[256];
	struct address_guard guard = {.allowed = {1, {{.family = AF_INET}}}};
	struct http_request request = {.url = target,
	                               .method = "POST",
	                               .body = slice_of(body),
	                               .allow_http = true,
	                               .answer_limit = (size_t)1 << 20,
	                               .guard = &guard};
	snprintf(target, sizeof target, "%s/_control/%s", endpoint, what);
	assert_int_equal(http_send(&request, ret_answer, NULL), 0);
	assert_int_equal(ret_answer->status, 200);
}

static void tell(const char *what, const char *body)
{
	HTTP_ANSWER_AUTO struct http_answer answer;
	ask(what, body, &answer);
}

static void misbehave(const char *fault)
{
	tell("misbehave", fault);
}

struct state {
	size_t objects, requests;
	int64_t uploads;
};

static struct state look(void)
{
	HTTP_ANSWER_AUTO struct http_answer answer;
	ARENA_AUTO struct arena arena = {.limit = (size_t)16 << 20};
	struct json *json;
	struct state state = {0};
	ask("state", "{}", &answer);
	assert_int_equal(json_parse(&arena, buf_slice(&answer.body), NULL, &json, NULL), 0);
	state.objects = json_member(json, "objects")->count;
	state.requests = json_member(json, "requests")->count;
	assert_true(json_get_integer(json, "uploads", &state.uploads));
	return state;
}

/* ---- stores and objects ---- */

static struct content_options options_now(void)
{
	return (struct content_options){
		.url = url,
		.spool_directory = scratch,
		.access_key = getenv("CONSTANCIA_CONTENT_ACCESS_KEY"),
		.secret_key = getenv("CONSTANCIA_CONTENT_SECRET_KEY"),
		.allow_networks = getenv("CONSTANCIA_CONTENT_ALLOW_NETWORKS"),
		.timeout = 3000000,
	};
}

static int set_up(void **state)
{
	struct content_options options = options_now();
	error_clear(&error);
	tell("behave", "{}");
	return content_open_with(&options, &store, NULL);
}

static int tear_down(void **state)
{
	content_close(store);
	store = NULL;
	return 0;
}

static int put_with(struct content_store *to, const char *name, const void *data, size_t size)
{
	struct content_writer *writer = NULL;
	assert_int_equal(content_write_begin(to, &writer, &error), 0);
	assert_int_equal(content_write(writer, data, size, &error), 0);
	return content_write_commit(writer, name, &error);
}

static int put(const char *name, const void *data, size_t size)
{
	return put_with(store, name, data, size);
}

/* Returns 0 and whether the object has the data, or the error of reading. */
static int compare(const char *name, const char *data, size_t size)
{
	struct content_reader *reader = NULL;
	uint64_t whole = 0;
	char part[65536];
	size_t done = 0;
	int64_t got = content_read_begin(store, name, 0, &reader, &whole, &error);
	if (got)
		return (int)got;
	assert_int_equal(whole, size);
	while ((got = content_read(reader, part, sizeof part, &error)) > 0) {
		assert_true((size_t)got <= size - done);
		assert_memory_equal(part, data + done, got);
		done += (size_t)got;
	}
	content_read_end(reader);
	if (got == 0)
		assert_int_equal(done, size);
	return (int)got;
}

static char *make_large(void)
{
	char *data = malloc(LARGE);
	assert_non_null(data);
	random_bytes(data, LARGE);
	return data;
}

/* ---- temporary failures ---- */

TEST_CASE(test_passing_faults_of_a_put)
{
	static const char *const faults[] = {
		"{\"kind\":\"status\",\"status\":503,\"times\":2,\"method\":\"PUT\"}",
		"{\"kind\":\"status\",\"status\":500,\"code\":\"InternalError\",\"method\":\"PUT\"}",
		"{\"kind\":\"status\",\"status\":429,\"method\":\"PUT\"}",
		"{\"kind\":\"status\",\"status\":400,\"code\":\"RequestTimeout\",\"method\":\"PUT\"}",
		"{\"kind\":\"cut\",\"method\":\"PUT\"}",
		"{\"kind\":\"cut-upload\",\"method\":\"PUT\"}",
		"{\"kind\":\"lose-answer\",\"method\":\"PUT\"}",
		"{\"kind\":\"stall\",\"method\":\"PUT\"}",
		"{\"kind\":\"lie-checksum\",\"method\":\"PUT\"}",
		"{\"kind\":\"error-inside\",\"method\":\"PUT\"}",
	};
	char *data = make_large();
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		char name[32];
		snprintf(name, sizeof name, "put/%zu", i);
		tell("behave", "{}");
		misbehave(faults[i]);
		if (put(name, data, 1000000))
			fail_msg("%s: %s", faults[i], error.cause);
		assert_true(look().requests >= 2);
		assert_int_equal(compare(name, data, 1000000), 0);
	}
	free(data);
}

TEST_CASE(test_lasting_faults_end_the_tries)
{
	static const char *const faults[] = {
		"{\"kind\":\"status\",\"status\":503,\"times\":99}",
		"{\"kind\":\"cut\",\"times\":99}",
		"{\"kind\":\"lie-checksum\",\"times\":99}",
		"{\"kind\":\"error-inside\",\"times\":99}",
	};
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		tell("behave", "{}");
		misbehave(faults[i]);
		assert_int_equal(put("lasting/put", "x", 1), ERR_NETWORK);
		/* A kept connection that was closed is opened again within the first attempt. */
		assert_in_range(look().requests, TRIES, TRIES + 1);
	}
	/* Each silent answer costs a full timeout, so there are fewer attempts. */
	tell("behave", "{}");
	misbehave("{\"kind\":\"stall\",\"times\":99}");
	assert_int_equal(put("lasting/put", "x", 1), ERR_NETWORK);
	assert_true(look().requests < TRIES);
}

TEST_CASE(test_passing_faults_of_a_read)
{
	char *data = make_large();
	static const char *const faults[] = {
		"{\"kind\":\"status\",\"status\":503,\"skip\":1}",
		"{\"kind\":\"cut\",\"skip\":1}",
		"{\"kind\":\"cut-body\",\"times\":2}",
		"{\"kind\":\"cut-body\",\"skip\":2}",
		"{\"kind\":\"stall-body\",\"skip\":1}",
		"{\"kind\":\"stall\"}",
	};
	assert_int_equal(put("read/large", data, LARGE), 0);
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		tell("behave", "{}");
		misbehave(faults[i]);
		if (compare("read/large", data, LARGE))
			fail_msg("%s: %s", faults[i], error.cause);
	}
	free(data);
}

/* ---- wrong answers ---- */

TEST_CASE(test_lies_of_a_read)
{
	char *data = make_large();
	static const char *const faults[] = {
		"{\"kind\":\"shift\",\"method\":\"GET\"}",
		"{\"kind\":\"shift\",\"method\":\"GET\",\"skip\":1}",
		"{\"kind\":\"shorten\",\"method\":\"GET\"}",
		"{\"kind\":\"hide-shift\",\"method\":\"GET\",\"skip\":2}",
		"{\"kind\":\"no-range\",\"method\":\"GET\",\"times\":99}",
		"{\"kind\":\"lie-etag\",\"method\":\"GET\"}",
		"{\"kind\":\"garbage\",\"method\":\"GET\"}",
	};
	assert_int_equal(put("lies/large", data, LARGE), 0);
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		tell("behave", "{}");
		misbehave(faults[i]);
		int result = compare("lies/large", data, LARGE);
		if (result != ERR_NETWORK && result != ERR_IO)
			fail_msg("%s: %d", faults[i], result);
	}
	free(data);
}

/* Altered bytes are returned as they are: a reader that knows the digest detects them. */
TEST_CASE(test_altered_bytes_arrive_whole)
{
	struct content_reader *reader = NULL;
	uint64_t size = 0;
	char back[8] = "";
	assert_int_equal(put("altered", "content", 7), 0);
	misbehave("{\"kind\":\"alter\",\"method\":\"GET\"}");
	assert_int_equal(content_read_begin(store, "altered", 0, &reader, &size, NULL), 0);
	assert_int_equal(content_read(reader, back, sizeof back, NULL), 7);
	assert_string_equal(back, "bontent");
	content_read_end(reader);
}

TEST_CASE(test_replaced_while_read)
{
	char *data = make_large();
	struct content_reader *reader = NULL;
	uint64_t size = 0;
	int64_t got;
	assert_int_equal(put("replaced", data, LARGE), 0);
	assert_int_equal(content_read_begin(store, "replaced", 0, &reader, &size, NULL), 0);
	data[0] ^= 1;
	assert_int_equal(put("replaced", data, LARGE), 0);
	data[0] ^= 1;
	char *back = malloc(LARGE);
	size_t done = 0;
	while ((got = content_read(reader, back, LARGE, &error)) > 0) {
		assert_memory_equal(back, data + done, got);
		done += (size_t)got;
	}
	assert_int_equal(got, ERR_IO);
	assert_non_null(strstr(error.cause, "replaced"));
	content_read_end(reader);
	free(back);
	free(data);
}

/* ---- in parts ---- */

TEST_CASE(test_passing_faults_of_parts)
{
	char *data = make_large();
	static const char *const faults[] = {
		"{\"kind\":\"error-inside\",\"method\":\"POST\",\"target\":\"uploads=\"}",
		"{\"kind\":\"lose-answer\",\"method\":\"POST\",\"target\":\"uploads=\"}",
		"{\"kind\":\"status\",\"status\":503,\"target\":\"partNumber=2\",\"times\":2}",
		"{\"kind\":\"cut-upload\",\"target\":\"partNumber=3\"}",
		"{\"kind\":\"lie-checksum\",\"target\":\"partNumber=1\"}",
		"{\"kind\":\"lose-answer\",\"target\":\"partNumber=1\"}",
		"{\"kind\":\"error-inside\",\"method\":\"POST\",\"target\":\"uploadId=\",\"times\":2}",
		"{\"kind\":\"lose-answer\",\"method\":\"POST\",\"target\":\"uploadId=\"}",
		"{\"kind\":\"status\",\"status\":503,\"method\":\"POST\",\"target\":\"uploadId=\"}",
	};
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		char name[32];
		snprintf(name, sizeof name, "parts/%zu", i);
		tell("behave", "{}");
		misbehave(faults[i]);
		if (put(name, data, LARGE))
			fail_msg("%s: %s", faults[i], error.cause);
		if (compare(name, data, LARGE))
			fail_msg("%s: %s", faults[i], error.cause);
	}
	free(data);
}

TEST_CASE(test_failed_parts_are_given_up)
{
	char *data = make_large();
	static const struct {
		const char *fault;
		int result;
	} cases[] = {
		{"{\"kind\":\"status\",\"status\":403,\"code\":\"AccessDenied\","
	     "\"target\":\"partNumber=2\"}",
	     ERR_IO},
		{"{\"kind\":\"status\",\"status\":507,\"target\":\"partNumber=2\"}", ERR_NO_SPACE},
		{"{\"kind\":\"status\",\"status\":503,\"target\":\"partNumber=3\",\"times\":99}",
	     ERR_NETWORK},
		{"{\"kind\":\"error-inside\",\"method\":\"POST\",\"target\":\"uploadId=\",\"times\":99}",
	     ERR_NETWORK},
		{"{\"kind\":\"garbage\",\"method\":\"POST\",\"target\":\"uploadId=\"}", ERR_IO},
		{"{\"kind\":\"lie-size\",\"method\":\"HEAD\"}", ERR_NETWORK},
		{"{\"kind\":\"lie-etag\",\"method\":\"HEAD\"}", ERR_NETWORK},
	};
	int64_t before = look().uploads;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		tell("behave", "{}");
		misbehave(cases[i].fault);
		int result = put("given/up", data, LARGE);
		if (result != cases[i].result)
			fail_msg("%s: %d, %s", cases[i].fault, result, error.cause);
		assert_int_equal(look().uploads, before);
	}
	/* An older object of that name is not taken for the one whose last answer was lost. */
	assert_int_equal(put("given/up", data, LARGE), 0);
	tell("behave", "{}");
	misbehave(
		"{\"kind\":\"error-inside\",\"method\":\"POST\",\"target\":\"uploadId=\",\"times\":99}");
	assert_int_equal(put("given/up", data, LARGE), ERR_NETWORK);
	free(data);
}

static int count_one(void *context, const char *name)
{
	(void)name;
	++*(size_t *)context;
	return 0;
}

static int remove_upload(void *context, const char *name)
{
	(void)context, (void)name;
	return 0;
}

/* Lists all older objects, then the older files that writers left. */
static int sweep_older(int64_t age_us, int (*visit)(void *context, const char *name), void *context)
{
	int64_t now_us = 0;
	int result = content_now_us(store, &now_us, &error);
	struct content_range range = {.area = "", .since_us = INT64_MIN, .before_us = now_us - age_us};
	if (!result)
		result = content_list(store, &range, visit, context, &error);
	return result ? result : content_remove_leftovers(store, &range, remove_upload, NULL, &error);
}

#define LEFT_OVER "event/aa/0123456789abcdefghijklmnopqrst"
#define LEFT_UNDER "issued/CERT-2026-0000001/bb/0123456789abcdefghijklmnopqrst"

static int keep_upload(void *context, const char *name)
{
	++*(size_t *)context;
	return strcmp(name, LEFT_UNDER) == 0 ? CONTENT_KEEP : 0;
}

TEST_CASE(test_sweep_ends_old_uploads)
{
	char *data = make_large();
	size_t count = 0;
	const int64_t hour_us = INT64_C(3600000000);
	int64_t before = look().uploads;
	for (int i = 0; i < 9; i++) { /* more than the service lists at once */
		tell("behave", "{}");
		misbehave("{\"kind\":\"status\",\"status\":403,\"code\":\"AccessDenied\","
		          "\"target\":\"partNumber=1\"}");
		misbehave("{\"kind\":\"status\",\"status\":403,\"code\":\"AccessDenied\","
		          "\"method\":\"DELETE\"}");
		assert_int_equal(put(i % 2 ? LEFT_OVER : LEFT_UNDER, data, LARGE), ERR_IO);
	}
	tell("behave", "{}");
	assert_int_equal(look().uploads, before + 9);
	assert_int_equal(sweep_older(hour_us, count_one, &count), 0);
	assert_int_equal(count, 0);
	assert_int_equal(look().uploads, before + 9);
	tell("age", "{\"seconds\":7200}");
	assert_int_equal(sweep_older(hour_us, count_one, &count), 0);
	assert_int_equal(look().uploads, before);
	assert_true(count > 0);
	free(data);
}

/* An upload in progress is kept, and so is an upload with a name that the store does not make. */
TEST_CASE(test_uploads_that_are_kept)
{
	char *data = make_large();
	size_t asked = 0;
	int64_t before = look().uploads;
	for (int i = 0; i < 3; i++) {
		static const char *const names[] = {LEFT_OVER, LEFT_UNDER, "left/alone"};
		tell("behave", "{}");
		misbehave("{\"kind\":\"status\",\"status\":403,\"code\":\"AccessDenied\","
		          "\"target\":\"partNumber=1\"}");
		misbehave("{\"kind\":\"status\",\"status\":403,\"code\":\"AccessDenied\","
		          "\"method\":\"DELETE\"}");
		assert_int_equal(put(names[i], data, LARGE), ERR_IO);
	}
	tell("behave", "{}");
	tell("age", "{\"seconds\":7200}");
	struct content_range range = {"", INT64_MIN, INT64_MAX};
	assert_int_equal(content_remove_leftovers(store, &range, keep_upload, &asked, &error), 0);
	assert_int_equal(asked, 2);
	assert_int_equal(look().uploads, before + 2);
	assert_int_equal(content_remove_leftovers(store, &range, remove_upload, NULL, &error), 0);
	assert_int_equal(look().uploads, before + 1);
	free(data);
}

TEST_CASE(test_listings_that_lead_nowhere)
{
	size_t count = 0;
	char name[32];
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof name, "list/%d", i);
		assert_int_equal(put(name, "x", 1), 0);
	}
	tell("age", "{\"seconds\":7200}");
	misbehave("{\"kind\":\"circle\",\"target\":\"list-type\",\"skip\":1,\"times\":99}");
	assert_int_equal(sweep_older(1, count_one, &count), ERR_NETWORK);
	tell("behave", "{}");
	misbehave("{\"kind\":\"garbage\",\"target\":\"list-type\"}");
	assert_int_equal(sweep_older(1, count_one, &count), ERR_IO);
	tell("behave", "{}");
	/* A service that cannot list unfinished uploads is supported. */
	misbehave("{\"kind\":\"status\",\"status\":501,\"code\":\"NotImplemented\","
	          "\"target\":\"uploads=\"}");
	count = 0;
	assert_int_equal(sweep_older(1, count_one, &count), 0);
	assert_true(count >= 20);
}

/* ---- refusals ---- */

TEST_CASE(test_refusals_are_not_repeated)
{
	static const struct {
		const char *fault;
		int result;
	} cases[] = {
		{"{\"kind\":\"status\",\"status\":403,\"code\":\"AccessDenied\"}", ERR_IO},
		{"{\"kind\":\"status\",\"status\":301,\"code\":\"PermanentRedirect\"}", ERR_IO},
		{"{\"kind\":\"status\",\"status\":404,\"code\":\"NoSuchBucket\"}", ERR_IO},
		{"{\"kind\":\"status\",\"status\":507,\"code\":\"InsufficientStorage\"}", ERR_NO_SPACE},
		{"{\"kind\":\"status\",\"status\":403,\"code\":\"QuotaExceeded\"}", ERR_NO_SPACE},
		{"{\"kind\":\"status\",\"status\":404,\"code\":\"NoSuchKey\"}", ERR_IO},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		tell("behave", "{}");
		misbehave(cases[i].fault);
		assert_int_equal(put("refused", "x", 1), cases[i].result);
		assert_int_equal(look().requests, 1);
	}
	assert_int_equal(compare("refused", "", 0), ERR_NOT_FOUND);
	misbehave("{\"kind\":\"status\",\"status\":404,\"code\":\"NoSuchBucket\",\"method\":\"GET\"}");
	assert_int_equal(compare("refused", "", 0), ERR_IO);
	assert_non_null(strstr(error.cause, "404 NoSuchBucket"));
}

TEST_CASE(test_keys_and_networks)
{
	struct content_options options = options_now();
	struct content_store *other = NULL;
	char wrong[] = "wrong-secret-key";
	options.secret_key = wrong;
	assert_int_equal(content_open_with(&options, &other, NULL), 0);
	assert_int_equal(put_with(other, "keys", "x", 1), ERR_IO);
	assert_non_null(strstr(error.cause, "SignatureDoesNotMatch"));
	assert_null(strstr(error.cause, wrong));
	content_close(other);
	options = options_now();
	options.allow_networks = "";
	tell("behave", "{}");
	assert_int_equal(content_open_with(&options, &other, NULL), 0);
	assert_int_equal(put_with(other, "keys", "x", 1), ERR_NETWORK);
	assert_non_null(strstr(error.cause, "loopback and not permitted"));
	assert_int_equal(look().requests, 0);
	content_close(other);
	other = NULL;
	options.access_key = NULL;
	assert_int_equal(content_open_with(&options, &other, &error), ERR_VALIDATION);
	assert_null(other);
}

TEST_CASE(test_ready_tells_of_an_outage)
{
	misbehave("{\"kind\":\"status\",\"status\":503,\"times\":99}");
	assert_int_equal(content_ready(store, &error), ERR_NETWORK);
	assert_non_null(strstr(error.cause, "503"));
	assert_int_equal(look().requests, 1);
	error_clear(&error);
	assert_int_equal(content_ready(store, &error), ERR_NETWORK);
	assert_non_null(strstr(error.cause, "503"));
	assert_int_equal(look().requests, 1); /* no immediate retry */
	tell("behave", "{}");
	assert_int_equal(put("ready", "x", 1), 0);
	assert_int_equal(content_ready(store, &error), 0);
	assert_int_equal(look().requests, 1); /* any success status is accepted */
}

/* ---- links ---- */

static int follow(const char *link, struct http_answer *ret_answer)
{
	struct address_guard guard = {.allowed = {1, {{.family = AF_INET}}}};
	struct http_request request = {.url = link, .allow_http = true, .guard = &guard};
	assert_int_equal(http_send(&request, ret_answer, NULL), 0);
	return ret_answer->status;
}

static int follow_only(const char *link)
{
	HTTP_ANSWER_AUTO struct http_answer answer;
	return follow(link, &answer);
}

TEST_CASE(test_links)
{
	HTTP_ANSWER_AUTO struct http_answer answer;
	BUF_AUTO struct buf link = {.limit = 4096};
	struct content_link wanted = {.content_type = "application/pdf",
	                              .file_name = "report-en.pdf",
	                              .now_us = clock_now_us(),
	                              .lifetime_us = 8 * US_PER_DAY};
	assert_int_equal(put("issued/aa/pdf", "%PDF", 4), 0);
	assert_int_equal(content_make_link(store, "issued/aa/pdf", &wanted, &link, NULL), 0);
	assert_non_null(strstr(link.data, "X-Amz-Expires=604800&"));
	assert_int_equal(follow(link.data, &answer), 200);
	assert_true(slice_is(buf_slice(&answer.body), "%PDF"));
	assert_true(slice_is(http_answer_header(&answer, "Content-Type"), "application/pdf"));
	assert_true(slice_is(http_answer_header(&answer, "Content-Disposition"),
	                     "attachment; filename=\"report-en.pdf\""));
	*strstr(link.data, "%22report") = 'x';
	assert_int_equal(follow_only(link.data), 403);
	buf_clear(&link);
	wanted.now_us -= 61 * US_PER_SECOND;
	wanted.lifetime_us = 60 * US_PER_SECOND;
	assert_int_equal(content_make_link(store, "issued/aa/pdf", &wanted, &link, NULL), 0);
	assert_int_equal(follow_only(link.data), 403);
}

/* ---- memory ---- */

static size_t peak_kib(void)
{
	char line[128];
	size_t kib = 0;
	FILE *file = fopen("/proc/self/status", "re");
	assert_non_null(file);
	while (fgets(line, sizeof line, file))
		if (sscanf(line, "VmHWM: %zu", &kib) == 1)
			break;
	fclose(file);
	return kib;
}

static void forget_peak(void)
{
	int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	assert_true(file >= 0);
	assert_int_equal(write(file, "5", 1), 1);
	close(file);
}

TEST_CASE(test_memory_does_not_grow_with_the_object)
{
	const char *given = getenv("S3_TEST_MIB");
	const uint64_t size = (uint64_t)(given ? atoi(given) : 96) << 20;
	char path[64], part[65536];
	snprintf(path, sizeof path, "%s/big", scratch);
	int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(file >= 0);
	assert_int_equal(ftruncate(file, (off_t)size), 0);
	assert_int_equal(pwrite(file, "end", 3, (off_t)size - 3), 3);
	close(file);
	forget_peak();
	size_t before = peak_kib();
	assert_int_equal(content_put_file(store, path, "big", &error), 0);
	size_t put_growth = peak_kib() - before;
	struct content_reader *reader = NULL;
	uint64_t whole = 0, done = 0;
	int64_t got;
	assert_int_equal(content_read_begin(store, "big", 0, &reader, &whole, &error), 0);
	assert_int_equal(whole, size);
	while ((got = content_read(reader, part, sizeof part, &error)) > 0)
		done += (uint64_t)got;
	assert_int_equal(done, size);
	content_read_end(reader);
	size_t growth = peak_kib() - before;
	print_message("%zu MiB: peak memory grew by %zu KiB up, %zu KiB up and down; peak %zu KiB\n",
	              (size_t)(size >> 20), put_growth, growth, peak_kib());
	assert_true(growth < 32768);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(content_delete(store, "big", NULL), 0);
}

int main(int count, char **arguments)
{
	if (count != 3) {
		fprintf(stderr, "usage: %s URL ENDPOINT\n", arguments[0]);
		return 2;
	}
	scratch_make(scratch);
	url = arguments[1];
	endpoint = arguments[2];
	cmocka_set_test_filter(getenv("S3_TEST_ONLY"));
	int failed = tests_run(NULL, NULL, set_up, tear_down);
	scratch_remove(scratch);
	return failed;
}
