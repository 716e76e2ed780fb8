/* A key is revoked while its look-up hangs. */
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "testing.h"
#include "harness.h"

static struct harness harness;
#define LIVE harness.key[MODALITY_CONTENT][MODE_LIVE]

/* The store reads, and then blocks until it is released. */
static _Atomic bool hangs;
static _Atomic int looked_up;
static sem_t hanging, let_go;
static _Atomic int64_t ahead_us; /* the clock */

int __real_store_find_key(struct store *store, const struct sha256 *key_hash,
                          struct key_identity *ret, struct error *error);
int __wrap_store_find_key(struct store *store, const struct sha256 *key_hash,
                          struct key_identity *ret, struct error *error);

int64_t __real_clock_monotonic_us(void);
int64_t __wrap_clock_monotonic_us(void);

int64_t __wrap_clock_monotonic_us(void)
{
	return __real_clock_monotonic_us() + atomic_load(&ahead_us);
}

int __wrap_store_find_key(struct store *store, const struct sha256 *key_hash,
                          struct key_identity *ret, struct error *error)
{
	int result = __real_store_find_key(store, key_hash, ret, error);
	bool waits = atomic_exchange(&hangs, false);
	atomic_fetch_add(&looked_up, 1);
	if (waits) {
		sem_post(&hanging);
		sem_wait(&let_go);
	}
	return result;
}

static int ask_from(const char *origin)
{
	char head[256];
	int descriptor = harness_connect(&harness);
	snprintf(head, sizeof head,
	         "GET /v1/channel HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %s\r\n%s\r\n", LIVE,
	         origin);
	harness_send(descriptor, head, strlen(head));
	return descriptor;
}

static int ask(void)
{
	return ask_from("");
}

static void answered(int descriptor, int status, const char *code)
{
	struct reply reply;
	harness_read(descriptor, false, &reply);
	reply_expect(&reply, status, code);
	close(descriptor);
}

static void hang(void)
{
	sem_init(&hanging, 0, 0);
	sem_init(&let_go, 0, 0);
	atomic_store(&looked_up, 0);
	atomic_store(&hangs, true);
}

static void revoke_key(void)
{
	struct error error = {0};
	int64_t revoked_at_us;
	const char *key_id = harness.key_id[MODALITY_CONTENT][MODE_LIVE];
	assert_int_equal(store_revoke_key(harness.service.store, slice_of(key_id), NULL, clock_now_us(),
	                                  &revoked_at_us, &error),
	                 OK);
	service_clear_key_cache(&harness.service);
}

TEST_CASE(test_revoked_meanwhile)
{
	hang();
	int before = ask();
	sem_wait(&hanging);
	revoke_key();
	/* With the look-up of the first request it would wait for that one and be accepted. */
	answered(ask(), 401, "revoked_key");
	assert_int_equal(atomic_load(&looked_up), 2);
	sem_post(&let_go);
	answered(before, 200, NULL);
	/* The earlier result is not cached, either. */
	answered(ask(), 401, "revoked_key");
}

/* A look-up that began longer ago than results are cached is not shared. */
TEST_CASE(test_hangs_for_longer_than_it_counts)
{
	hang();
	int before = ask();
	sem_wait(&hanging);
	atomic_fetch_add(&ahead_us, KEY_LIFE_US + 1000);
	answered(ask(), 200, NULL);
	assert_int_equal(atomic_load(&looked_up), 2);
	sem_post(&let_go);
	answered(before, 200, NULL);
}

static void short_deadline(struct settings *settings)
{
	settings->http_deadline = US_PER_SECOND / 2;
	settings->http_cors_origins = "https://app.example.org";
}

static int start_impatient(void **state)
{
	harness_start(&harness, short_deadline);
	return 0;
}

/* Waiting requests are answered at the deadline, later ones at once, and no more look-ups hang. */
TEST_CASE_WITH(test_hangs_beyond_the_deadline, start_impatient, harness_tear_down)
{
	hang();
	int waiting[3];
	for (size_t i = 0; i < 3; i++)
		waiting[i] = ask();
	for (size_t i = 0; i < 3; i++)
		answered(waiting[i], 503, "temporarily_unavailable");
	answered(ask(), 503, "temporarily_unavailable");
	assert_int_equal(atomic_load(&looked_up), 1);
	sem_post(&let_go);
	struct reply reply;
	do {
		int descriptor = ask();
		harness_read(descriptor, false, &reply);
		close(descriptor);
		reply_free(&reply);
	} while (reply.status == 503);
	assert_int_equal(reply.status, 200);
}

/* The exchange that answers in place of the waiting one knows the origin. */
TEST_CASE_WITH(test_a_page_can_read_that_the_deadline_has_passed, start_impatient,
               harness_tear_down)
{
	hang();
	int waiting = ask_from("Origin: https://app.example.org\r\n");
	struct reply reply;
	harness_read(waiting, false, &reply);
	assert_string_equal(reply_header(&reply, "Access-Control-Allow-Origin"),
	                    "https://app.example.org");
	reply_expect(&reply, 503, "temporarily_unavailable");
	close(waiting);
	sem_post(&let_go);
}

static int start(void **state)
{
	harness_start(&harness, NULL);
	return 0;
}

TEST_MAIN_EACH(start, harness_tear_down)
