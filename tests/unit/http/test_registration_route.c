/* POST /v1/events with a real store. */
#include <unistd.h>

#include "harness.h"
#include "db/db.h"
#include "service/event_body.h"
#include "store/store_internal.h"

static struct harness harness;
#define LIVE harness.key[MODALITY_CONTENT][MODE_LIVE]
#define HASH harness.key[MODALITY_HASH_ONLY][MODE_LIVE]

static void post(struct reply *reply, const char *key, const char *json)
{
	harness_post(&harness, reply, "/v1/events", key, json);
}

static int begin(const char *key, const char *headers)
{
	char head[512];
	int descriptor = harness_connect(&harness);
	snprintf(head, sizeof head,
	         "POST /v1/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n%s\r\n", key,
	         headers);
	harness_send(descriptor, head, strlen(head));
	return descriptor;
}

TEST_CASE(test_continue)
{
	struct reply reply;
	static const char body[] = "{\"client_ref\":\"continue\",\"payload\":{}}";
	char headers[128];
	snprintf(headers, sizeof headers,
	         "Content-Type: application/json\r\nContent-Length: %zu\r\nExpect: 100-continue\r\n",
	         strlen(body));
	int descriptor = begin(LIVE, headers);
	harness_read(descriptor, true, &reply);
	reply_expect(&reply, 100, NULL);
	harness_send(descriptor, body, strlen(body));
	harness_read(descriptor, false, &reply);
	reply_expect(&reply, 201, NULL);
	close(descriptor);
}

/* ---- files ---- */

static void wait_for_objects(int expected)
{
	for (int i = 0; i < 2000 && harness_count_objects(&harness) != expected; i++)
		usleep(10000);
	assert_int_equal(harness_count_objects(&harness), expected);
}

static char form[12 << 20];

static size_t make_form(const char *client_ref, const char *name, size_t file_size, char filler)
{
	size_t size =
		(size_t)sprintf(form,
	                    "--B\r\nContent-Disposition: form-data; name=\"client_ref\"\r\n\r\n%s\r\n"
	                    "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"%s\"\r\n"
	                    "Content-Type: application/pdf\r\n\r\n",
	                    client_ref, name);
	memset(form + size, filler, file_size);
	size += file_size;
	memcpy(form + size, "\r\n--B--\r\n", 9);
	return size + 9;
}

static void upload(struct reply *reply, const char *key, size_t size)
{
	harness_ask(&harness, reply, "POST", "/v1/events", key,
	            "Content-Type: multipart/form-data; boundary=B\r\n", form, size);
}

static void text_of(const char *json, const char *name, char *out)
{
	char mark[64];
	snprintf(mark, sizeof mark, "\"%s\":\"", name);
	const char *at = strstr(json, mark);
	assert_non_null(at);
	snprintf(out, 140, "%.*s", (int)strcspn(at + strlen(mark), "\""), at + strlen(mark));
}

/* A replay under another name, and a conflict, leave no object. */
TEST_CASE(test_file)
{
	struct reply reply;
	int before = harness_count_objects(&harness);
	upload(&reply, LIVE, make_form("file", "a.pdf", 700000, 'f'));
	reply_expect(&reply, 201, NULL);
	assert_int_equal(harness_count_objects(&harness), before + 1);
	upload(&reply, LIVE, make_form("file", "other.pdf", 700000, 'f'));
	assert_string_equal(reply_header(&reply, "Idempotent-Replayed"), "true");
	reply_expect(&reply, 200, NULL);
	upload(&reply, LIVE, make_form("file", "other.pdf", 700000, 'g'));
	reply_expect(&reply, 409, "client_ref_conflict");
	wait_for_objects(before + 1);
}

/* Its refusal is only known after the content is stored. */
TEST_CASE(test_what_the_sequencer_does_not_take_is_not_kept)
{
	struct reply reply;
	char headers[128];
	int before = harness_count_objects(&harness);
	size_t size = make_form("not taken", "a", 700000, 'n');
	snprintf(headers, sizeof headers,
	         "Content-Type: multipart/form-data; boundary=B\r\nContent-Length: %zu\r\n", size);
	int descriptor = begin(LIVE, headers);
	harness_send(descriptor, form, size / 2);
	wait_for_objects(before + 1); /* unfinished */
	atomic_store(&harness.service.read_only_since_us, 1);
	harness_send(descriptor, form + size / 2, size - size / 2);
	harness_read(descriptor, false, &reply);
	reply_expect(&reply, 503, "temporarily_unavailable");
	atomic_store(&harness.service.read_only_since_us, 0);
	wait_for_objects(before);
	close(descriptor);
}

static void make_json(const char *client_ref, size_t size)
{
	size_t head = (size_t)sprintf(form, "{\"client_ref\":\"%s\",\"payload\":{\"a\":\"", client_ref);
	memset(form + head, 'j', size);
	strcpy(form + head + size, "\"}}");
}

/* A body that a worker reads is checked like one that the polling thread reads, in the same
 * order. */
TEST_CASE(test_long_bodies_are_judged_alike)
{
	static const char *const headers = "Content-Type: application/json\r\n"
									   "X-SVC-Test-Scenario: unpaid_limit\r\n";
	const char *key = harness.key[MODALITY_CONTENT][MODE_TEST];
	const size_t sizes[] = {0, 20000};
	struct reply reply;
	for (size_t i = 0; i < 2; i++) {
		size_t size = (size_t)sprintf(form, "{\"client_ref\":\"alike %zu\",\"payload\":{}}", i);
		memset(form + size, ' ', sizes[i]);
		size += sizes[i];
		harness_ask(&harness, &reply, "POST", "/v1/events", key, headers, form, size);
		reply_expect(&reply, 402, "unpaid_limit_exceeded");
		harness_ask(&harness, &reply, "POST", "/v1/events", key,
		            "Content-Type: application/json\r\n", form, size);
		reply_expect(&reply, 201, NULL);
		form[size++] = '}';
		harness_ask(&harness, &reply, "POST", "/v1/events", key, headers, form, size);
		assert_non_null(strstr(reply.body, "unexpected data after the value"));
		reply_expect(&reply, 400, "validation_error");
		memset(form, ' ', sizes[i]);
		sprintf(form + sizes[i], "{\"client_ref\":\"\",\"payload\":{}}");
		post(&reply, key, form);
		assert_non_null(strstr(reply.body, "client_ref"));
		reply_expect(&reply, 400, "validation_error");
	}
}

/* JSON that is too large for the transaction goes to the content store. */
TEST_CASE(test_large_json)
{
	struct reply reply;
	char id[140], path[200];
	int before = harness_count_objects(&harness);
	make_json("large", 200000);
	post(&reply, LIVE, form);
	text_of(reply.body, "event_id", id);
	reply_expect(&reply, 201, NULL);
	assert_int_equal(harness_count_objects(&harness), before + 1);
	snprintf(path, sizeof path, "/v1/events/%s/content", id);
	harness_ask(&harness, &reply, "GET", path, LIVE, NULL, NULL, 0);
	assert_int_equal(reply.body_size, 200008);
	assert_memory_equal(reply.body, "{\"a\":\"jjj", 9);
	assert_string_equal(reply_header(&reply, "Content-Type"), "application/json");
	assert_string_equal(reply_header(&reply, "Content-Disposition"), "");
	reply_expect(&reply, 200, NULL);
}

/* Returns the size that quotas and the free-space check of certifications count; -2: no such
 * event. */
static int64_t kept_content_bytes(const char *client_ref)
{
	struct db_connection *reader = db_take_reader(harness.service.store->db);
	struct db_query *query =
		db_query(reader, "SELECT content_bytes FROM events WHERE client_ref = $1");
	db_bind_string(query, client_ref);
	int64_t bytes = -2;
	if (db_step(query))
		bytes = db_is_null(query, 0) ? -1 : db_integer(query, 0);
	assert_int_equal(db_end(query, NULL), OK);
	db_give(reader);
	return bytes;
}

TEST_CASE(test_content_bytes)
{
	struct reply reply;
	post(&reply, LIVE, "{\"client_ref\":\"sized json\",\"payload\":{ \"a\" : 1.0 }}");
	reply_expect(&reply, 201, NULL);
	assert_int_equal(kept_content_bytes("sized json"), strlen("{\"a\":1}"));
	upload(&reply, LIVE, make_form("sized file", "a", 70000, 'a'));
	reply_expect(&reply, 201, NULL);
	assert_int_equal(kept_content_bytes("sized file"), 70000);
	char body[160];
	snprintf(body, sizeof body,
	         "{\"client_ref\":\"sized hash\",\"hash_alg\":\"sha-256\",\"hash\":\"%064d\"}", 0);
	post(&reply, HASH, body);
	reply_expect(&reply, 201, NULL);
	assert_int_equal(kept_content_bytes("sized hash"), -1);
}

/* ---- the deadline ---- */

static void short_deadline(struct settings *settings)
{
	settings->http_deadline = US_PER_SECOND;
}

/* The answer is 503; only a repetition returns the later result. */
TEST_CASE_WITH(test_deadline, NULL, NULL)
{
	struct reply reply;
	harness_start(&harness, short_deadline);
	struct db_connection *writer = db_take_writer(harness.service.store->db);
	post(&reply, LIVE, "{\"client_ref\":\"late\",\"payload\":{}}");
	assert_true(atoi(reply_header(&reply, "Retry-After")) >= 1);
	assert_non_null(strstr(reply.body, "\"incident_id\":\"inc_"));
	reply_expect(&reply, 503, "temporarily_unavailable");
	size_t size = make_form("late file", "a", 100000, 'a');
	upload(&reply, LIVE, size);
	reply_expect(&reply, 503, "temporarily_unavailable");
	make_json("late json", 200000);
	post(&reply, LIVE, form);
	reply_expect(&reply, 503, "temporarily_unavailable");
	db_give(writer);
	for (int i = 0; i < 100; i++) {
		post(&reply, LIVE, "{\"client_ref\":\"late\",\"payload\":{}}");
		if (reply.status == 200)
			break;
		reply_free(&reply);
		usleep(20000);
	}
	assert_non_null(strstr(reply.body, "\"sequence\":1,"));
	reply_expect(&reply, 200, NULL);
	upload(&reply, LIVE, make_form("late file", "a", 100000, 'a'));
	reply_expect(&reply, 200, NULL);
	make_json("late json", 200000);
	post(&reply, LIVE, form);
	reply_expect(&reply, 200, NULL);
	harness_stop(&harness);
}

/* Stopping answers waiting requests and waits for those in progress. */
TEST_CASE_WITH(test_stop_while_waiting, NULL, NULL)
{
	struct reply reply;
	harness_start(&harness, NULL);
	struct db_connection *writer = db_take_writer(harness.service.store->db);
	static const char body[] = "{\"client_ref\":\"a\",\"payload\":{}}";
	char headers[128];
	snprintf(headers, sizeof headers, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
	         strlen(body));
	int descriptor = begin(LIVE, headers);
	harness_send(descriptor, body, strlen(body));
	http_drain(harness.server, clock_monotonic_us() + US_PER_SECOND / 5);
	db_give(writer); /* http_stop would wait for the commit, which waits for the writer */
	harness_stop(&harness);
	harness_read(descriptor, false, &reply);
	assert_true(reply.status == 201 || reply.status == 503);
	reply_free(&reply);
	close(descriptor);
}

/* Whatever part of a body has arrived, and whichever thread reads it. */
TEST_CASE_WITH(test_stop_among_bodies, NULL, NULL)
{
	enum { CLIENTS = 24 };
	struct reply reply;
	int descriptors[CLIENTS];
	char headers[128];
	for (int round = 0; round < 5; round++) {
		harness_start(&harness, NULL);
		for (int i = 0; i < CLIENTS; i++) {
			char ref[32];
			sprintf(ref, "%d %d", round, i);
			size_t size = i % 2 ? make_form(ref, "a", 600000, 'a') : 0;
			if (!size) {
				make_json(ref, 200000);
				size = strlen(form);
			}
			snprintf(headers, sizeof headers, "Content-Type: %s\r\nContent-Length: %zu\r\n",
			         i % 2 ? "multipart/form-data; boundary=B" : "application/json", size);
			descriptors[i] = begin(LIVE, headers);
			harness_send(descriptors[i], form, i % 3 ? size : size / 2);
		}
		usleep((useconds_t)round * 2000);
		harness_stop(&harness);
		for (int i = 0; i < CLIENTS; i++) {
			if (i % 3) {
				harness_read(descriptors[i], false, &reply);
				assert_true(reply.status == 201 || reply.status == 503 || reply.status == 0);
				reply_free(&reply);
			}
			close(descriptors[i]);
		}
	}
}

static int start(void **state)
{
	harness_start(&harness, NULL);
	return 0;
}

TEST_MAIN_EACH(start, harness_tear_down)
