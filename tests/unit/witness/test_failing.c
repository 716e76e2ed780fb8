/* A witness that is made, opened and asked, with each call failing in turn. A fault is answered as
 * a fault, never as a wrong request. What was cosigned is known after it, and a repeated request
 * succeeds; after a failed sync, once the witness is opened again. */
#include "testing.h"
#include "failing.h"
#include "scratch.h"

#include <netinet/in.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <sys/socket.h>

#include "base/file.h"
#include "tlog/checkpoint.h"
#include "tlog/witness_request.h"
#include "witness/witness_server.h"

#define KINDS (FAILING_MEMORY | FAILING_FILES | FAILING_SQLITE | FAILING_JOURNAL)
#define NAME "witness.example/one"
#define ATTEMPTS_MAX 2000

static char directory[SCRATCH_MAX];
static EVP_PKEY *private;
static struct note_key log_key;

static int set_up(void **state)
{
	uint8_t public[NOTE_KEY_SIZE];
	size_t size = sizeof public;
	(void)state;
	scratch_make(directory);
	private = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	assert_non_null(private);
	assert_int_equal(EVP_PKEY_get_raw_public_key(private, public, &size), 1);
	log_key = note_key_make("log.example", NOTE_ED25519, public);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	failing_disarm();
	scratch_remove(directory);
	EVP_PKEY_free(private);
	return 0;
}

static int open_witness(const char *place, struct witness **ret)
{
	const struct witness_options options = {
		.directory = place, .name = NAME, .logs = &log_key, .log_count = 1};
	return witness_open(&options, ret, NULL);
}

/* A log of equal leaves: its trees of 2^n leaves need few hashes. */
static struct sha256 root_of(unsigned level, uint8_t salt)
{
	struct sha256 root = merkle_leaf(slice_make(&salt, 1));
	for (unsigned i = 0; i < level; i++)
		root = merkle_node(&root, &root);
	return root;
}

/* Writes the request for the tree of 2^level leaves to one that knows the half of it; level 0: the
 * first request. */
static void write_request(unsigned level, uint8_t salt, struct buf *out)
{
	struct checkpoint checkpoint = {
		.origin = "log.example", .size = UINT64_C(1) << level, .root = root_of(level, salt)};
	struct witness_request request = {.old_size = level ? UINT64_C(1) << (level - 1) : 0};
	BUF_AUTO struct buf note = {.limit = 4096};
	uint8_t signature[NOTE_SIGNATURE_SIZE];
	size_t size = sizeof signature;
	if (level) {
		request.path.count = 1;
		request.path.hashes[0] = root_of(level - 1, salt);
	}
	checkpoint_write(&checkpoint, &note);
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	assert_int_equal(EVP_DigestSignInit(context, NULL, NULL, NULL, private), 1);
	assert_int_equal(
		EVP_DigestSign(context, signature, &size, (const uint8_t *)note.data, note.size), 1);
	EVP_MD_CTX_free(context);
	buf_add_byte(&note, '\n');
	note_add_signature(&log_key, signature, &note);
	request.checkpoint = buf_slice(&note);
	witness_request_write(&request, out);
}

/* Returns the status. */
static int ask(struct witness *witness, unsigned level, uint8_t salt)
{
	struct witness_answer answer;
	BUF_AUTO struct buf body = {.limit = WITNESS_REQUEST_MAX};
	write_request(level, salt, &body);
	witness_add_checkpoint(witness, buf_slice(&body), &answer);
	bool is_whole = !buf_check(&answer.body);
	witness_answer_free(&answer);
	return is_whole ? answer.status : 500;
}

/* As ask, with the at-th call failing. *ret_failed: the call; NULL: it has fewer. */
static int ask_failing(struct witness *witness, unsigned level, uint8_t salt, int at,
                       const char **ret_failed)
{
	struct witness_answer answer;
	BUF_AUTO struct buf body = {.limit = WITNESS_REQUEST_MAX};
	write_request(level, salt, &body);
	failing_arm(KINDS, at);
	witness_add_checkpoint(witness, buf_slice(&body), &answer);
	*ret_failed = failing_disarm();
	bool is_whole = !buf_check(&answer.body);
	witness_answer_free(&answer);
	return is_whole ? answer.status : 500;
}

/* Returns the level of the tree that the witness serves to monitors; -1: none. */
static int known_level(struct witness *witness)
{
	struct witness_answer answer;
	char hash[2 * SHA256_SIZE + 1];
	const struct sha256 of = sha256_of("log.example", strlen("log.example"));
	hex_encode(of.bytes, SHA256_SIZE, hash);
	witness_get_checkpoint(witness, slice_of(hash), &answer);
	int level = -1;
	if (answer.status == 200)
		level = __builtin_ctzll(strtoull(answer.body.data + strlen("log.example\n"), NULL, 10));
	else
		assert_int_equal(answer.status, 404);
	witness_answer_free(&answer);
	return level;
}

static struct witness *reopen(struct witness *witness)
{
	witness_close(witness);
	assert_int_equal(open_witness(directory, &witness), OK);
	return witness;
}

static bool is_fault(int code)
{
	return code == ERR_IO || code == ERR_NO_MEMORY || code == ERR_UNAVAILABLE ||
	       code == ERR_INTERNAL;
}

TEST_CASE(test_making_a_witness)
{
	char place[SCRATCH_MAX + 16];
	struct note_key key;
	int at = 0;
	for (const char *failed = ""; failed;) {
		struct witness *witness = NULL;
		assert_true(++at < ATTEMPTS_MAX);
		snprintf(place, sizeof place, "%s/%d", directory, at);
		failing_arm(KINDS, at);
		int result = open_witness(place, &witness);
		failed = failing_disarm();
		if (failed ? result && !is_fault(result) : result)
			fail_msg("call %d, %s: %d", at, failed ? failed : "none", result);
		if (!result)
			witness_close(witness);
		/* Whatever there is now can be completed. */
		result = open_witness(place, &witness);
		if (result)
			fail_msg("after call %d, %s: %d", at, failed ? failed : "none", result);
		assert_int_equal(ask(witness, 0, 0), 200);
		witness_close(witness);
		assert_int_equal(witness_read_key(place, &key, NULL), OK);
	}
	assert_true(at > 20);
}

TEST_CASE(test_opening_a_witness)
{
	struct witness *witness;
	int at = 0;
	assert_int_equal(open_witness(directory, &witness), OK);
	assert_int_equal(ask(witness, 0, 0), 200);
	witness_close(witness);
	for (const char *failed = ""; failed;) {
		assert_true(++at < ATTEMPTS_MAX);
		failing_arm(KINDS, at);
		int result = open_witness(directory, &witness);
		failed = failing_disarm();
		if (failed ? result && !is_fault(result) : result)
			fail_msg("call %d, %s: %d", at, failed ? failed : "none", result);
		if (!result) {
			assert_int_equal(known_level(witness), 0);
			witness_close(witness);
		}
	}
	assert_true(at > 10);
}

TEST_CASE(test_cosigning)
{
	struct witness *witness;
	int at = 0, level = 0, syncs = 0;
	assert_int_equal(open_witness(directory, &witness), OK);
	assert_int_equal(ask(witness, 0, 0), 200);
	for (const char *failed = ""; failed;) {
		if (level == 40) { /* numbers stay small */
			witness_close(witness);
			scratch_remove(directory);
			scratch_make(directory);
			assert_int_equal(open_witness(directory, &witness), OK);
			assert_int_equal(ask(witness, 0, 0), 200);
			level = 0;
		}
		assert_true(++at < ATTEMPTS_MAX);
		int status = ask_failing(witness, (unsigned)level + 1, 0, at, &failed);
		if (status != 200 && (!failed || status != 500))
			fail_msg("call %d, %s: %d", at, failed ? failed : "none", status);
		if (witness_has_failed(witness)) {
			syncs++;
			assert_int_equal(status, 500);
			assert_int_equal(ask(witness, (unsigned)level + 1, 0), 500);
		}
		if (at % 2 || witness_has_failed(witness))
			witness = reopen(witness);
		int known = known_level(witness);
		assert_true(known == level + 1 || (status == 500 && known == level));
		if (known == level)
			assert_int_equal(ask(witness, (unsigned)level + 1, 0), 200);
		level++;
	}
	assert_true(at > 5 && syncs > 0);
	witness_close(witness);
}

TEST_CASE(test_refusing)
{
	struct witness *witness;
	int at = 0;
	assert_int_equal(open_witness(directory, &witness), OK);
	assert_int_equal(ask(witness, 0, 0), 200);
	for (const char *failed = ""; failed;) {
		assert_true(++at < ATTEMPTS_MAX);
		int status = ask_failing(witness, 1, (uint8_t)at, at, &failed);
		if (status != 422 && (!failed || status != 500))
			fail_msg("call %d, %s: %d", at, failed ? failed : "none", status);
		assert_int_equal(known_level(witness), 0);
	}
	assert_true(at > 5);
	assert_int_equal(ask(witness, 1, 0), 200);
	witness_close(witness);
}

/* ---- over HTTP ---- */

static atomic_bool stopped;

static void *serve(void *context)
{
	struct error error = {0};
	return (void *)(intptr_t)witness_server_run(context, &stopped, &error);
}

/* Sends a request on a connection of its own. Returns the status; 0: the connection was closed. */
static int exchange(const char *url, const char *head, struct slice body)
{
	char answer[4096] = "", request[8192];
	size_t size = 0;
	ssize_t got;
	struct sockaddr_in address = {.sin_family = AF_INET};
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	address.sin_port = htons((uint16_t)strtoul(strrchr(url, ':') + 1, NULL, 10));
	DESCRIPTOR_AUTO int peer = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(peer, (struct sockaddr *)&address, sizeof address), 0);
	int length = snprintf(request, sizeof request,
	                      "%s HTTP/1.1\r\nHost: w\r\nConnection: close\r\n"
	                      "Content-Length: %zu\r\n\r\n%.*s",
	                      head, body.size, (int)body.size, body.data);
	(void)send(peer, request, (size_t)length, MSG_NOSIGNAL);
	while (size < sizeof answer - 1 &&
	       (got = recv(peer, answer + size, sizeof answer - 1 - size, 0)) > 0)
		size += (size_t)got;
	if (size == 0)
		return 0;
	assert_true(size > 12 && strncmp(answer, "HTTP/1.1 ", 9) == 0);
	return (int)strtol(answer + 9, NULL, 10);
}

TEST_CASE(test_requests_over_http)
{
	struct witness *witness;
	struct witness_server *server;
	char url[WITNESS_URL_SIZE];
	pthread_t thread;
	void *result;
	BUF_AUTO struct buf body = {.limit = WITNESS_REQUEST_MAX};
	write_request(0, 0, &body);
	assert_int_equal(open_witness(directory, &witness), OK);
	assert_int_equal(witness_server_open(witness, "127.0.0.1:0", &server, NULL), OK);
	witness_server_url(server, url);
	assert_int_equal(pthread_create(&thread, NULL, serve, server), 0);
	assert_int_equal(exchange(url, "POST /add-checkpoint", buf_slice(&body)), 200);
	int at = 0;
	for (const char *failed = ""; failed;) {
		assert_true(++at < ATTEMPTS_MAX);
		/* Of the known tree, so that nothing is written. */
		body.data[4] = '1';
		failing_arm_others(FAILING_MEMORY | FAILING_SQLITE, at);
		int status = exchange(url, "POST /add-checkpoint", buf_slice(&body));
		failed = failing_disarm();
		if (status != 200 && (!failed || (status != 500 && status != 0)))
			fail_msg("call %d, %s: %d", at, failed ? failed : "none", status);
		assert_int_equal(exchange(url, "POST /add-checkpoint", buf_slice(&body)), 200);
		assert_int_equal(exchange(url, "GET /", slice_of("")), 404);
	}
	assert_true(at > 5);
	atomic_store(&stopped, true);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_null(result);
	witness_server_close(server);
	witness_close(witness);
}

TEST_MAIN_EACH(set_up, tear_down)
