#include "base/base64.h"
#include "base/percent.h"
#include "support.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "loopback.h"
#include "pki.h"
#include "seal/level.h"
#include "seal/revocation_client.h"
#include "seal/revocation_data.h"

#define HOUR_US (3600 * US_PER_SECOND)
#define ROOM ((size_t)24 << 20)

/* ---- a server: its answers, and how often it was asked ---- */

static struct place {
	struct buf answer;
	int status; /* of HTTP; 0: the connection is closed without an answer */
	int asked;
	bool posted;
	bool got_only;      /* POST is refused */
	char asked_by[512]; /* path of the last GET */
} ocsp_place, crl_place, responder_place;
static int listener = -1;
static int port;
static pthread_t server;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const struct address_guard everywhere = {.allowed = {1, {{.family = AF_INET}}}};

static struct place *place_of(const char *request)
{
	return strncmp(strchr(request, ' '), " /ocsp", 6) == 0         ? &ocsp_place
	       : strncmp(strchr(request, ' '), " /responder", 11) == 0 ? &responder_place
	                                                               : &crl_place;
}

static void send_all(int connection, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t sent = send(connection, data, size, MSG_NOSIGNAL);
		if (sent <= 0)
			return;
		data += sent;
		size -= (size_t)sent;
	}
}

static void serve(int connection)
{
	char request[8192] = {0};
	size_t size = 0;
	const char *end = NULL;

	while (size < sizeof request - 1 && !end) {
		ssize_t got = recv(connection, request + size, sizeof request - 1 - size, 0);
		if (got <= 0)
			return;
		size += (size_t)got;
		end = strstr(request, "\r\n\r\n");
	}
	const char *length = strcasestr(request, "content-length:");
	size_t body = length ? strtoul(length + 15, NULL, 10) : 0;
	while (end && size < (size_t)(end + 4 - request) + body && size < sizeof request) {
		ssize_t got = recv(connection, request + size, sizeof request - size, 0);
		if (got <= 0)
			return;
		size += (size_t)got;
	}
	pthread_mutex_lock(&mutex);
	struct place *place = place_of(request);
	char head[128];
	place->asked++;
	place->posted = strncmp(request, "POST ", 5) == 0;
	if (!place->posted)
		sscanf(request, "GET %511s ", place->asked_by);
	if (place->posted && place->got_only) {
		const char *refusal = "HTTP/1.1 405 x\r\nContent-Length: 0\r\n\r\n";
		send_all(connection, refusal, strlen(refusal));
	} else if (place->status) {
		snprintf(head, sizeof head, "HTTP/1.1 %d x\r\nContent-Length: %zu\r\n\r\n", place->status,
		         place->answer.size);
		send_all(connection, head, strlen(head));
		send_all(connection, place->answer.data, place->answer.size);
	}
	pthread_mutex_unlock(&mutex);
}

static void *serve_all(void *context)
{
	int connection;

	(void)context;
	while ((connection = accept(listener, NULL, NULL)) >= 0) {
		serve(connection);
		close(connection);
	}
	return NULL;
}

/* ---- certificates that name the server ---- */

static struct pki_identity root, leaf, responder, checked, silent;
static struct buf path, silent_path;

static void name_places(struct pki_extension *extensions, char texts[2][128])
{
	snprintf(texts[0], 128, "OCSP;URI:http://127.0.0.1:%d/ocsp", port);
	snprintf(texts[1], 128, "URI:http://127.0.0.1:%d/list", port);
	extensions[0] = (struct pki_extension){"authorityInfoAccess", texts[0]};
	extensions[1] = (struct pki_extension){"crlDistributionPoints", texts[1]};
	extensions[2] = (struct pki_extension){NULL, NULL};
}

static int make(void **state)
{
	static const struct pki_extension nothing[] = {{NULL, NULL}};
	static const struct pki_extension responding[] = {
		{"extendedKeyUsage", "OCSPSigning"}, {"noCheck", "ignored"}, {NULL, NULL}};
	struct pki_extension named[3];
	struct pki_extension named_by_responder[3] = {{"extendedKeyUsage", "OCSPSigning"}};
	char texts[2][128];
	char responder_text[128];

	listener = loopback_listen(&port);
	assert_int_equal(pthread_create(&server, NULL, serve_all, NULL), 0);
	name_places(named, texts);
	snprintf(responder_text, sizeof responder_text, "URI:http://127.0.0.1:%d/responder", port);
	named_by_responder[1] = (struct pki_extension){"crlDistributionPoints", responder_text};
	root = pki_issue(&(struct pki_certificate){.name = "Root", .extensions = pki_authority});
	leaf =
		pki_issue(&(struct pki_certificate){.name = "Leaf", .issuer = &root, .extensions = named});
	silent = pki_issue(
		&(struct pki_certificate){.name = "Silent", .issuer = &root, .extensions = nothing});
	responder = pki_issue(
		&(struct pki_certificate){.name = "Responder", .issuer = &root, .extensions = responding});
	checked = pki_issue(&(struct pki_certificate){
		.name = "Checked", .issuer = &root, .extensions = named_by_responder});
	buf_init(&path, 65536);
	buf_init(&silent_path, 65536);
	pki_path(&path, (const struct pki_identity *[]){&leaf, &root}, 2);
	pki_path(&silent_path, (const struct pki_identity *[]){&silent, &root}, 2);
	buf_init(&ocsp_place.answer, ROOM);
	buf_init(&crl_place.answer, ROOM);
	buf_init(&responder_place.answer, ROOM);
	return 0;
}

static int forget(void **state)
{
	struct pki_identity *const all[] = {&root, &leaf, &silent, &responder, &checked};

	shutdown(listener, SHUT_RDWR);
	pthread_join(server, NULL);
	close(listener);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		pki_free(all[i]);
	buf_free(&path);
	buf_free(&silent_path);
	buf_free(&ocsp_place.answer);
	buf_free(&crl_place.answer);
	buf_free(&responder_place.answer);
	return 0;
}

static int64_t now_us(void)
{
	return clock_now_us() / US_PER_SECOND * US_PER_SECOND;
}

static void publish_ocsp(const struct pki_identity *by, int status, int64_t issued_us)
{
	pthread_mutex_lock(&mutex);
	pki_ocsp(&ocsp_place.answer, &(struct pki_ocsp){.issuer = &root,
	                                                .responder = by,
	                                                .certificate = leaf.certificate,
	                                                .status = status,
	                                                .revoked_us = issued_us - HOUR_US,
	                                                .reason = CRL_REASON_KEY_COMPROMISE,
	                                                .issued_us = issued_us,
	                                                .next_us = issued_us + 2 * HOUR_US});
	ocsp_place.status = 200;
	pthread_mutex_unlock(&mutex);
}

static void publish_crl(struct place *place, int64_t issued_us, size_t others)
{
	pthread_mutex_lock(&mutex);
	pki_crl(&place->answer, &(struct pki_crl){.issuer = &root,
	                                          .issued_us = issued_us,
	                                          .next_us = issued_us + 2 * HOUR_US,
	                                          .others = others,
	                                          .reason = -1});
	place->status = 200;
	pthread_mutex_unlock(&mutex);
}

static int begin(void **state)
{
	struct place *const places[] = {&ocsp_place, &crl_place, &responder_place};

	for (size_t i = 0; i < 3; i++) {
		buf_clear(&places[i]->answer);
		places[i]->status = 404;
		places[i]->asked = 0;
		places[i]->got_only = false;
	}
	return 0;
}

static struct revocation_client *client_of(const struct address_guard *guard, struct signer *signer)
{
	struct revocation_client *client = revocation_client_create(&(struct revocation_client_options){
		.signer = signer, .guard = *guard, .timeout_ms = 20000});

	assert_non_null(client);
	return client;
}

static struct revocation_verdict fetch(struct revocation_client *client, struct validation_set *set,
                                       int64_t time_us)
{
	struct revocation_verdict verdicts[REVOCATION_PATH_MAX];
	struct revocation_moment at = {.time_us = time_us};
	struct error error = {0};
	size_t count = 0;

	if (revocation_fetch(client, buf_slice(&path), &at, set, verdicts, &count, &error) != 0)
		fail_msg("%s", error.cause);
	assert_int_equal(count, 2);
	assert_int_equal(verdicts[1].outcome, REVOCATION_NOT_NEEDED);
	return verdicts[0];
}

static size_t count_of(const struct validation_set *set, enum validation_kind kind)
{
	size_t count = 0;

	for (size_t i = 0; i < set->count; i++)
		count += set->objects[i].kind == kind;
	return count;
}

TEST_CASE(test_ocsp_first)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct revocation_client *client = client_of(&everywhere, NULL);
	int64_t then_us = now_us();

	publish_ocsp(&responder, V_OCSP_CERTSTATUS_GOOD, then_us);
	publish_crl(&crl_place, then_us, 0);
	struct revocation_verdict verdict = fetch(client, &set, then_us);
	assert_int_equal(verdict.outcome, REVOCATION_GOOD_AFTER);
	assert_int_equal(set.count, 3);
	assert_int_equal(count_of(&set, VALIDATION_CERTIFICATE), 2);
	assert_int_equal(count_of(&set, VALIDATION_OCSP), 1);
	assert_int_equal(ocsp_place.asked, 1);
	assert_true(ocsp_place.posted);
	assert_int_equal(crl_place.asked, 0);
	/* Data in the set is not requested; cached data is not, if it is recent enough. */
	fetch(client, &set, then_us);
	VALIDATION_SET_AUTO struct validation_set again = {0};
	assert_int_equal(fetch(client, &again, then_us).outcome, REVOCATION_GOOD_AFTER);
	assert_int_equal(ocsp_place.asked, 1);
	assert_int_equal(again.count, 3);
	revocation_client_free(client);
}

/* With a responder that serves prepared answers from a cache. */
TEST_CASE(test_ocsp_by_get)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct revocation_client *client = client_of(&everywhere, NULL);
	int64_t then_us = now_us();
	char text[512];
	unsigned char der[512];
	const unsigned char *at = der;
	size_t size = 0;

	publish_ocsp(&responder, V_OCSP_CERTSTATUS_GOOD, then_us);
	ocsp_place.got_only = true;
	assert_int_equal(fetch(client, &set, then_us).outcome, REVOCATION_GOOD_AFTER);
	assert_int_equal(ocsp_place.asked, 2);
	assert_false(ocsp_place.posted);
	assert_int_equal(count_of(&set, VALIDATION_OCSP), 1);
	assert_memory_equal(ocsp_place.asked_by, "/ocsp/", 6);
	assert_null(strpbrk(ocsp_place.asked_by + 6, "+/="));
	assert_true(percent_decode(slice_of(ocsp_place.asked_by + 6), text, sizeof text, &size));
	assert_true(base64_decode(slice_make(text, size), der, sizeof der, &size));
	OCSP_REQUEST *request = d2i_OCSP_REQUEST(NULL, &at, (long)size);
	assert_non_null(request);
	assert_int_equal(OCSP_request_onereq_count(request), 1);
	OCSP_REQUEST_free(request);
	revocation_client_free(client);
}

TEST_CASE(test_list_instead)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct revocation_client *client = client_of(&everywhere, NULL);

	publish_crl(&crl_place, now_us(), 100);
	struct revocation_verdict verdict = fetch(client, &set, now_us() - US_PER_SECOND);
	assert_int_equal(verdict.outcome, REVOCATION_GOOD_AFTER);
	assert_string_equal(verdict.cause, "");
	assert_int_equal(count_of(&set, VALIDATION_CRL), 1);
	assert_int_equal(ocsp_place.asked, 1);
	assert_int_equal(crl_place.asked, 1);
	assert_false(crl_place.posted);
	revocation_client_free(client);
}

/* Unusable data is not added to the set, and the reason is reported. */
TEST_CASE(test_unusable)
{
	static const char *const causes[] = {
		"HTTP status 404",   "mpty reply", "does not parse", "not know", "in the future",
		"no longer current", "may",        "more than 65536"};

	for (int i = 0; i < 8; i++) {
		VALIDATION_SET_AUTO struct validation_set set = {0};
		struct revocation_client *client = client_of(&everywhere, NULL);
		begin(state);
		switch (i) {
		case 0: break;
		case 1: ocsp_place.status = 0; break;
		case 2:
			ocsp_place.status = 200;
			buf_add_text(&ocsp_place.answer, "<html>hello</html>");
			break;
		case 3: publish_ocsp(&responder, V_OCSP_CERTSTATUS_UNKNOWN, now_us()); break;
		case 4: publish_ocsp(&responder, V_OCSP_CERTSTATUS_GOOD, now_us() + HOUR_US); break;
		case 5: publish_ocsp(&responder, V_OCSP_CERTSTATUS_GOOD, now_us() - 3 * HOUR_US); break;
		case 6: publish_ocsp(&silent, V_OCSP_CERTSTATUS_GOOD, now_us()); break;
		case 7:
			ocsp_place.status = 200;
			memset(buf_extend(&ocsp_place.answer, 70000), 0, 70000);
			break;
		}
		struct revocation_verdict verdict = fetch(client, &set, now_us());
		assert_int_equal(verdict.outcome, REVOCATION_MISSING);
		assert_int_equal(set.count, 2);
		if (i != 6 && (!strstr(verdict.cause, causes[i]) || !strstr(verdict.cause, "/ocsp: ")))
			fail_msg("case %d: %s", i, verdict.cause);
		revocation_client_free(client);
	}
}

TEST_CASE(test_revoked)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct revocation_client *client = client_of(&everywhere, NULL);

	publish_ocsp(&responder, V_OCSP_CERTSTATUS_REVOKED, now_us());
	publish_crl(&crl_place, now_us(), 0);
	struct revocation_verdict verdict = fetch(client, &set, now_us());
	assert_int_equal(verdict.outcome, REVOCATION_REVOKED);
	assert_int_equal(verdict.reason, CRL_REASON_KEY_COMPROMISE);
	assert_int_equal(crl_place.asked, 0);
	revocation_client_free(client);
}

TEST_CASE(test_responder_of_its_own)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	VALIDATION_SET_AUTO struct validation_set without = {0};
	struct revocation_client *client = client_of(&everywhere, NULL);
	struct revocation_client *other = client_of(&everywhere, NULL);

	publish_ocsp(&checked, V_OCSP_CERTSTATUS_GOOD, now_us());
	struct revocation_verdict verdict = fetch(other, &without, now_us() - US_PER_SECOND);
	assert_int_equal(verdict.outcome, REVOCATION_MISSING);
	assert_non_null(strstr(verdict.cause, "responder itself"));
	assert_int_equal(without.count, 2);
	publish_crl(&responder_place, now_us(), 0);
	verdict = fetch(client, &set, now_us() - US_PER_SECOND);
	assert_int_equal(verdict.outcome, REVOCATION_GOOD_AFTER);
	assert_int_equal(count_of(&set, VALIDATION_OCSP), 1);
	assert_int_equal(count_of(&set, VALIDATION_CRL), 1);
	revocation_client_free(client);
	revocation_client_free(other);
}

TEST_CASE(test_nothing_published)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct revocation_client *client = client_of(&everywhere, NULL);
	struct revocation_verdict verdicts[REVOCATION_PATH_MAX];
	struct revocation_moment at = {.time_us = now_us()};
	size_t count = 0;

	assert_int_equal(
		revocation_fetch(client, buf_slice(&silent_path), &at, &set, verdicts, &count, NULL), 0);
	assert_int_equal(verdicts[0].outcome, REVOCATION_UNPUBLISHED);
	assert_non_null(strstr(verdicts[0].cause, "names no source"));
	assert_int_equal(
		revocation_fetch(client, slice_of("no path"), &at, &set, verdicts, &count, NULL),
		ERR_VALIDATION);
	assert_int_equal(ocsp_place.asked + crl_place.asked, 0);
	revocation_client_free(client);
}

static enum revocation_outcome fetch_hurried(struct revocation_client *client, int64_t time_us)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct revocation_verdict verdicts[REVOCATION_PATH_MAX];
	struct revocation_moment at = {.time_us = time_us};
	size_t count = 0;

	assert_int_equal(revocation_fetch_bounded(client, buf_slice(&path), &at, 20000, &set, verdicts,
	                                          &count, NULL),
	                 0);
	assert_int_equal(count, 2);
	return verdicts[0].outcome;
}

/* A hurried request that fails does not mark the server as failing; hurried and ordinary requests
 * share the cache. */
TEST_CASE(test_in_a_hurry)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct revocation_client *client = client_of(&everywhere, NULL);
	int64_t then_us = now_us();

	for (int i = 0; i < 3; i++)
		assert_int_equal(fetch_hurried(client, then_us), REVOCATION_MISSING);
	assert_int_equal(ocsp_place.asked, 3);
	assert_int_equal(crl_place.asked, 3);
	publish_ocsp(&responder, V_OCSP_CERTSTATUS_GOOD, now_us() + US_PER_SECOND);
	assert_int_equal(fetch_hurried(client, then_us), REVOCATION_GOOD_AFTER);
	assert_int_equal(ocsp_place.asked, 4);
	assert_int_equal(fetch(client, &set, then_us).outcome, REVOCATION_GOOD_AFTER);
	assert_int_equal(fetch_hurried(client, then_us), REVOCATION_GOOD_AFTER);
	assert_int_equal(ocsp_place.asked, 4);
	revocation_client_free(client);
}

/* A failing server is not asked for a while, and cached data is still used. */
TEST_CASE(test_left_alone)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	VALIDATION_SET_AUTO struct validation_set later = {0};
	struct revocation_client *client = client_of(&everywhere, NULL);
	struct revocation_client *other = client_of(&everywhere, NULL);
	int64_t then_us = now_us();

	for (int i = 0; i < 3; i++)
		assert_int_equal(fetch(client, &set, then_us).outcome, REVOCATION_MISSING);
	assert_int_equal(ocsp_place.asked, 1);
	assert_int_equal(crl_place.asked, 1);
	publish_ocsp(&responder, V_OCSP_CERTSTATUS_GOOD, then_us - 2 * US_PER_SECOND);
	assert_int_equal(fetch(other, &later, then_us).outcome, REVOCATION_GOOD_CURRENT);
	assert_int_equal(ocsp_place.asked, 2);
	ocsp_place.status = 500;
	validation_set_free(&later);
	struct revocation_verdict verdict = fetch(other, &later, now_us());
	assert_int_equal(verdict.outcome, REVOCATION_GOOD_CURRENT);
	assert_int_equal(ocsp_place.asked, 3);
	revocation_client_free(client);
	revocation_client_free(other);
}

TEST_CASE(test_guarded)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	static const struct address_guard nowhere = {0};
	struct revocation_client *client = client_of(&nowhere, NULL);

	publish_ocsp(&responder, V_OCSP_CERTSTATUS_GOOD, now_us());
	struct revocation_verdict verdict = fetch(client, &set, now_us());
	assert_int_equal(verdict.outcome, REVOCATION_MISSING);
	assert_non_null(strstr(verdict.cause, "loopback"));
	assert_int_equal(ocsp_place.asked, 0);
	revocation_client_free(client);
}

TEST_CASE(test_huge_list)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct revocation_client *client = client_of(&everywhere, NULL);

	publish_crl(&crl_place, now_us(), 450000);
	struct revocation_verdict verdict = fetch(client, &set, now_us());
	assert_int_equal(verdict.outcome, REVOCATION_MISSING);
	assert_int_equal(set.count, 2);
	assert_int_equal(crl_place.asked, 1);
	revocation_client_free(client);
}

/* Data that can be fetched but exceeds the limit of a signature. */
TEST_CASE(test_too_much_for_a_signature)
{
	struct revocation_client *client = client_of(&everywhere, NULL);
	BUF_AUTO struct buf der = {.limit = 65536};

	pki_ders(&der, (const struct pki_identity *[]){&leaf, &root}, 2);
	publish_crl(&crl_place, now_us() - HOUR_US, 360000);
	assert_in_range(crl_place.answer.size, (size_t)9 << 20, REVOCATION_CRL_MAX);
	for (int bare = 0; bare < 2; bare++) {
		VALIDATION_SET_AUTO struct validation_set set = {0};
		struct level_request wanted = {buf_slice(&path), buf_slice(&der), now_us(), bare};
		enum level level = LEVEL_LT;
		char cause[LEVEL_CAUSE_SIZE];
		assert_int_equal(level_collect(client, &wanted, &set, &level, cause, NULL), 0);
		assert_int_equal(level, LEVEL_T);
		assert_int_equal(set.count, 0);
		assert_non_null(strstr(cause, "a signature holds at most 8388608"));
	}
	assert_int_equal(crl_place.asked, 1);
	revocation_client_free(client);
}

/* The list of the responder's issuer also covers the certificate, so the OCSP answer adds nothing.
 * Where nothing is signed over the set, the verifier refuses the answer as not needed. */
TEST_CASE(test_what_is_needed_alone)
{
	struct revocation_client *client = client_of(&everywhere, NULL);
	BUF_AUTO struct buf der = {.limit = 65536};
	enum level level;
	char cause[LEVEL_CAUSE_SIZE];
	struct error error = {0};
	struct level_request wanted = {buf_slice(&path), {0}, now_us(), false};

	pki_ders(&der, (const struct pki_identity *[]){&leaf, &root}, 2);
	wanted.authority = buf_slice(&der);
	struct level_proof proof = {
		.signer = buf_slice(&der), .authority = buf_slice(&der), .signed_us = wanted.signed_us};
	publish_ocsp(&checked, V_OCSP_CERTSTATUS_GOOD, now_us() - HOUR_US);
	publish_crl(&responder_place, now_us() - HOUR_US, 0);
	VALIDATION_SET_AUTO struct validation_set all = {0};
	assert_int_equal(level_collect(client, &wanted, &all, &level, cause, &error), 0);
	assert_int_equal(level, LEVEL_LT);
	assert_int_equal(count_of(&all, VALIDATION_OCSP), 1);
	assert_int_equal(count_of(&all, VALIDATION_CRL), 1);
	assert_int_equal(level_check_minimal(&proof, &all, &error), ERR_INVALID_EVIDENCE);
	assert_non_null(strstr(error.cause, "nothing needs: ocsp"));
	wanted.bare = true;
	VALIDATION_SET_AUTO struct validation_set needed = {0};
	assert_int_equal(level_collect(client, &wanted, &needed, &level, cause, &error), 0);
	assert_int_equal(level, LEVEL_LT);
	assert_int_equal(count_of(&needed, VALIDATION_OCSP), 0);
	assert_int_equal(count_of(&needed, VALIDATION_CRL), 1);
	assert_int_equal(level_check_minimal(&proof, &needed, &error), 0);
	bool is_published = false;
	assert_int_equal(level_is_published(&proof, &is_published, &error), 0);
	assert_true(is_published);
	BUF_AUTO struct buf nowhere = {.limit = 65536};
	pki_ders(&nowhere, (const struct pki_identity *[]){&silent, &root}, 2);
	proof.signer = proof.authority = buf_slice(&nowhere);
	assert_int_equal(level_is_published(&proof, &is_published, &error), 0);
	assert_false(is_published);
	revocation_client_free(client);
}

/* An answer that is newer than the list that vouches for its responder adds information: both are
 * kept. */
TEST_CASE(test_what_says_more_stays)
{
	struct revocation_client *client = client_of(&everywhere, NULL);
	BUF_AUTO struct buf der = {.limit = 65536};
	enum level level;
	char cause[LEVEL_CAUSE_SIZE];
	struct error error = {0};
	struct level_request wanted = {buf_slice(&path), {0}, now_us(), true};

	pki_ders(&der, (const struct pki_identity *[]){&leaf, &root}, 2);
	wanted.authority = buf_slice(&der);
	publish_ocsp(&checked, V_OCSP_CERTSTATUS_GOOD, now_us());
	publish_crl(&responder_place, now_us() - HOUR_US, 0);
	VALIDATION_SET_AUTO struct validation_set set = {0};
	assert_int_equal(level_collect(client, &wanted, &set, &level, cause, &error), 0);
	assert_int_equal(level, LEVEL_LT);
	assert_int_equal(count_of(&set, VALIDATION_OCSP), 1);
	assert_int_equal(count_of(&set, VALIDATION_CRL), 1);
	revocation_client_free(client);
}

/* The responder does not know of the revocation yet, but the list that was fetched for the path of
 * the timestamp's authority does. */
TEST_CASE(test_what_one_path_brings_counts_for_the_other)
{
	struct revocation_client *client = client_of(&everywhere, NULL);
	BUF_AUTO struct buf der = {.limit = 65536};
	enum level level;
	char cause[LEVEL_CAUSE_SIZE];
	struct error error = {0};
	struct level_request wanted = {buf_slice(&path), {0}, now_us(), false};

	pki_ders(&der, (const struct pki_identity *[]){&checked, &root}, 2);
	wanted.authority = buf_slice(&der);
	publish_ocsp(&responder, V_OCSP_CERTSTATUS_GOOD, now_us() - HOUR_US);
	pki_crl(&responder_place.answer, &(struct pki_crl){.issuer = &root,
	                                                   .revoked = leaf.certificate,
	                                                   .revoked_us = now_us() - HOUR_US,
	                                                   .reason = -1,
	                                                   .issued_us = now_us(),
	                                                   .next_us = now_us() + HOUR_US});
	responder_place.status = 200;
	VALIDATION_SET_AUTO struct validation_set set = {0};
	assert_int_equal(level_collect(client, &wanted, &set, &level, cause, &error),
	                 ERR_INVALID_EVIDENCE);
	assert_non_null(strstr(error.cause, "Leaf was revoked"));
	assert_int_equal(set.count, 0);
	revocation_client_free(client);
}

static void *fetch_many(void *client)
{
	for (int i = 0; i < 10; i++) {
		VALIDATION_SET_AUTO struct validation_set set = {0};
		assert_int_equal(fetch(client, &set, now_us() - HOUR_US).outcome, REVOCATION_GOOD_AFTER);
	}
	return NULL;
}

TEST_CASE(test_side_by_side)
{
	struct revocation_client *client = client_of(&everywhere, NULL);
	pthread_t threads[4];

	publish_ocsp(&responder, V_OCSP_CERTSTATUS_GOOD, now_us());
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fetch_many, client), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_true(ocsp_place.asked >= 1 && ocsp_place.asked <= 4);
	revocation_client_free(client);
}

int main(void)
{
	return tests_run(make, forget, begin, NULL);
}
