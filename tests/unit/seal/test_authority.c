#include "support.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/http.h"
#include "seal/authority.h"

/* Set forward and back, or asleep for a while. */
static int64_t wall_error_us, slept_us;
static int64_t stands_at_us; /* the monotonic clock; 0: it goes */
int64_t __real_clock_now_us(void);
int64_t __real_clock_boot_us(void);
int64_t __real_clock_monotonic_us(void);
int64_t __wrap_clock_now_us(void);
int64_t __wrap_clock_boot_us(void);
int64_t __wrap_clock_monotonic_us(void);

int64_t __wrap_clock_now_us(void)
{
	return __real_clock_now_us() + wall_error_us;
}

int64_t __wrap_clock_boot_us(void)
{
	return __real_clock_boot_us() + slept_us;
}

int64_t __wrap_clock_monotonic_us(void)
{
	return stands_at_us ? stands_at_us : __real_clock_monotonic_us();
}

static const char *stand_in_path;
static const struct address_guard everywhere = {.allowed = {1, {{.family = AF_INET}}}};

struct stand_in {
	pid_t pid;
	char url[64];
	char roots[256];
};

static struct stand_in first, second;
static struct sha256 imprint;

static bool start_stand_in(struct stand_in *stand_in, const char *name)
{
	char directory[256], port_file[256];

	snprintf(directory, sizeof directory, "%s/%s", scratch, name);
	snprintf(port_file, sizeof port_file, "%s/%s.port", scratch, name);
	snprintf(stand_in->roots, sizeof stand_in->roots, "%s/%s/root.pem", scratch, name);
	stand_in->pid = fork();
	if (stand_in->pid == 0) {
		execl("/usr/bin/python3", "python3", stand_in_path, "--directory", directory, "--port-file",
		      port_file, (char *)NULL);
		_exit(127);
	}
	for (int i = 0; i < 1500; i++) {
		int port;
		FILE *file = fopen(port_file, "r");
		if (file && fscanf(file, "%d", &port) == 1) {
			snprintf(stand_in->url, sizeof stand_in->url, "http://127.0.0.1:%d/", port);
			return fclose(file) == 0;
		}
		usleep(20000);
	}
	return false;
}

static void stop_stand_in(struct stand_in *stand_in)
{
	kill(stand_in->pid, SIGKILL);
	waitpid(stand_in->pid, NULL, 0);
}

static int start_both(void **state)
{
	imprint = sha256_of("authority", 9);
	scratch_begin(state);
	return start_stand_in(&first, "first") && start_stand_in(&second, "second") ? 0 : -1;
}

static int stop_both(void **state)
{
	stop_stand_in(&first);
	stop_stand_in(&second);
	return scratch_end(state);
}

static void set_mode(const struct stand_in *stand_in, const char *mode)
{
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	char url[128];

	snprintf(url, sizeof url, "%smode", stand_in->url);
	struct http_request request = {.method = "PUT",
	                               .url = url,
	                               .body = slice_of(mode),
	                               .allow_http = true,
	                               .guard = &everywhere};
	assert_int_equal(http_send(&request, &answer, NULL), 0);
	assert_int_equal(answer.status, 204);
}

static long count_of(const struct stand_in *stand_in)
{
	HTTP_ANSWER_AUTO struct http_answer answer = {0};
	char url[128];

	snprintf(url, sizeof url, "%scount", stand_in->url);
	struct http_request request = {.url = url, .allow_http = true, .guard = &everywhere};
	assert_int_equal(http_send(&request, &answer, NULL), 0);
	return strtol(answer.body.data, NULL, 10);
}

static struct authorities *create(size_t count)
{
	struct authority_options list[] = {
		{.name = "one", .url = first.url, .kind = AUTHORITY_QUALIFIED, .roots_path = first.roots},
		{.name = "two",
	     .url = second.url,
	     .kind = AUTHORITY_NON_QUALIFIED,
	     .roots_path = second.roots},
	};
	struct authorities_options options = {
		.authorities = list,
		.count = count,
		.guard = everywhere,
		.timeout_ms = 5000,
	};
	struct authorities *authorities = NULL;
	struct error error = {0};

	set_mode(&first, "good");
	set_mode(&second, "good");
	if (authorities_create(&options, &authorities, &error) != 0)
		fail_msg("%s", error.cause);
	return authorities;
}

static int stamp(struct authorities *authorities, struct authority_result *result,
                 struct authority_failures *failures, struct error *error)
{
	return authorities_timestamp(authorities, &imprint, TIME_NONE, result, failures, error);
}

TEST_CASE(test_good)
{
	struct authorities *authorities = create(2);
	AUTHORITY_RESULT_AUTO struct authority_result result = {0};
	struct authority_failures failures;
	struct timestamp_facts facts;
	BUF_AUTO struct buf trust = {.limit = 65536};

	assert_int_equal(stamp(authorities, &result, &failures, NULL), 0);
	assert_int_equal(failures.count, 0);
	assert_string_equal(result.name, "one");
	assert_string_equal(result.url, first.url);
	assert_int_equal(result.kind, AUTHORITY_QUALIFIED);
	assert_int_equal(result.facts.accuracy_us, 1500000);
	assert_string_equal(result.facts.policy, "2.25.1");
	assert_string_equal(result.facts.authority.subject, "CN=Timestamp good,O=Stand-in");
	assert_int_equal(authorities_trust(authorities, &trust, NULL), 0);
	assert_int_equal(
		timestamp_verify_token(buf_slice(&result.token), &imprint, buf_slice(&trust), &facts, NULL),
		0);
	scratch_write("query.tsq", buf_slice(&result.request));
	scratch_write("reply.tsr", buf_slice(&result.response));
	assert_int_equal(scratch_run("openssl ts -verify -in reply.tsr -queryfile query.tsq -CAfile %s",
	                             first.roots),
	                 0);
	struct authority_health one, two;
	assert_true(authorities_get_health(authorities, 0, &one));
	assert_true(authorities_get_health(authorities, 1, &two));
	assert_false(authorities_get_health(authorities, 2, &two));
	assert_true(one.successes == 1 && one.failures == 0 && !one.fails && one.last_success_us > 0);
	assert_true(two.successes == 0 && two.failures == 0 && two.last_success_us == 0);
	set_mode(&first, "error");
	authority_result_free(&result);
	result = (struct authority_result){0};
	assert_int_equal(stamp(authorities, &result, &failures, NULL), 0);
	assert_true(authorities_get_health(authorities, 0, &one));
	assert_true(authorities_get_health(authorities, 1, &two));
	assert_true(one.successes == 1 && one.failures == 1 && one.fails && *one.reason);
	assert_true(two.successes == 1 && !two.fails);
	/* The host and nothing after it, where a secret may be. */
	const char *host = first.url + strlen("http://");
	assert_int_equal(strlen(one.host), strcspn(host, "/"));
	assert_memory_equal(one.host, host, strlen(one.host));
	authorities_free(authorities);
}

/* Its own name in the token, and an extension that may be ignored. */
TEST_CASE(test_named)
{
	struct authorities *authorities = create(1);
	AUTHORITY_RESULT_AUTO struct authority_result result = {0};
	struct authority_failures failures;

	set_mode(&first, "named");
	assert_int_equal(stamp(authorities, &result, &failures, NULL), 0);
	assert_string_equal(result.name, "one");
	scratch_write("query.tsq", buf_slice(&result.request));
	scratch_write("reply.tsr", buf_slice(&result.response));
	assert_int_equal(scratch_run("openssl ts -reply -in reply.tsr -text | grep -q 'TSA: DirName'"),
	                 0);
	assert_int_equal(scratch_run("openssl ts -verify -in reply.tsr -queryfile query.tsq -CAfile %s",
	                             first.roots),
	                 0);
	authorities_free(authorities);
}

/* The other authority's time, and none where there is no other one. */
TEST_CASE(test_another_time)
{
	struct authorities *authorities = create(2);
	AUTHORITY_RESULT_AUTO struct authority_result one = {0}, other = {0}, none = {0};
	struct authority_failures failures;
	struct error error = {0};

	assert_int_equal(stamp(authorities, &one, NULL, NULL), 0);
	assert_int_equal(authorities_timestamp_independent(authorities, &imprint, TIME_NONE, &one,
	                                                   &other, &failures, &error),
	                 0);
	assert_string_equal(other.name, "two");
	assert_int_equal(failures.count, 0);
	set_mode(&first, "error");
	long asked = count_of(&second);
	assert_int_equal(authorities_timestamp_independent(authorities, &imprint, TIME_NONE, &other,
	                                                   &none, &failures, &error),
	                 ERR_AUTHORITY);
	assert_int_equal(failures.count, 1);
	assert_string_equal(failures.items[0].name, "one");
	assert_int_equal(count_of(&second), asked);
	authorities_free(authorities);
	authorities = create(1);
	assert_int_equal(authorities_timestamp_independent(authorities, &imprint, TIME_NONE, &one,
	                                                   &none, &failures, &error),
	                 ERR_AUTHORITY);
	assert_int_equal(failures.count, 0);
	assert_string_equal(error.cause, "there is no other timestamp authority");
	authorities_free(authorities);
}

/* Whatever the first does wrong, it is not used, the reason is reported, and the second is used. */
TEST_CASE(test_every_misbehaviour)
{
	static const struct {
		const char *mode, *reason;
	} cases[] = {
		{"late:8", "imed out"},
		{"wrong_imprint", "differs from that of the request"},
		{"wrong_nonce", "nonce"},
		{"wrong_usage", "timeStamping"},
		{"wrong_name", "tsa in the TSTInfo, CN=Timestamp somebody else,O=Stand-in, is no name of "
	                   "the certificate that signed it, CN=Timestamp good,O=Stand-in"},
		{"critical", "unknown critical extension, 2.25.3"},
		{"wrong_time", "local clock"},
		{"untrusted", "certificate path"},
		{"rejected", "not granted: status 2 not today"},
		{"garbage", "does not parse"},
		{"error", "HTTP 500"},
		{"close", "mpty reply"},
		{"silent", "imed out"},
		{"endless_header", ""}, /* libcurl calls it a lack of memory */
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct authorities *authorities = create(2);
		AUTHORITY_RESULT_AUTO struct authority_result result = {0};
		struct authority_failures failures;
		set_mode(&first, cases[i].mode);
		assert_int_equal(stamp(authorities, &result, &failures, NULL), 0);
		assert_string_equal(result.name, "two");
		assert_int_equal(result.kind, AUTHORITY_NON_QUALIFIED);
		assert_int_equal(failures.count, 1);
		assert_string_equal(failures.items[0].name, "one");
		assert_false(failures.items[0].in_backoff);
		if (!strstr(failures.items[0].reason, cases[i].reason))
			fail_msg("%s: %s", cases[i].mode, failures.items[0].reason);
		authorities_free(authorities);
	}
}

TEST_CASE(test_policy)
{
	struct authority_options one = {.url = first.url,
	                                .roots_path = first.roots,
	                                .policy = "1.2.3.4",
	                                .kind = AUTHORITY_QUALIFIED};
	struct authorities_options options = {.authorities = &one, .count = 1, .guard = everywhere};
	struct authorities *authorities = NULL;
	AUTHORITY_RESULT_AUTO struct authority_result result = {0};
	struct authority_failures failures;

	set_mode(&first, "good");
	assert_int_equal(authorities_create(&options, &authorities, NULL), 0);
	assert_int_equal(stamp(authorities, &result, &failures, NULL), 0);
	assert_string_equal(result.facts.policy, "1.2.3.4");
	assert_string_equal(result.name, first.url);
	set_mode(&first, "wrong_policy");
	AUTHORITY_RESULT_AUTO struct authority_result other = {0};
	assert_int_equal(stamp(authorities, &other, &failures, NULL), ERR_AUTHORITY);
	assert_non_null(strstr(failures.items[0].reason, "policy"));
	authorities_free(authorities);
}

static void assert_stamped_by(struct authorities *authorities, const char *name)
{
	AUTHORITY_RESULT_AUTO struct authority_result result = {0};
	struct authority_failures failures;
	assert_int_equal(stamp(authorities, &result, &failures, NULL), 0);
	assert_string_equal(result.name, name);
}

/* An intermediate certificate may be given with its root, and is not trusted itself. */
TEST_CASE(test_roots_alone_are_trusted)
{
	struct authority_options one = {.url = first.url};
	struct authorities_options options = {.authorities = &one, .count = 1, .guard = everywhere};
	struct authorities *authorities = NULL;
	BUF_AUTO struct buf root, given, trust;
	char middle[256], between[256];

	for (struct buf **at = (struct buf *[]){&root, &given, &trust, NULL}; *at; at++)
		buf_init(*at, 65536);
	one.roots_path = strcpy(between, scratch_path("between.pem"));
	snprintf(middle, sizeof middle, "%.*s/middle.pem",
	         (int)(strrchr(first.roots, '/') - first.roots), first.roots);
	assert_int_equal(scratch_run("cp %s root.pem && cat %s root.pem root.pem > between.pem",
	                             first.roots, middle),
	                 0);
	assert_int_equal(authorities_create(&options, &authorities, NULL), 0);
	assert_int_equal(authorities_trust(authorities, &given, NULL), 0);
	authorities_free(authorities);
	scratch_read("root.pem", &root);
	assert_int_equal(trust_add_roots(buf_slice(&root), &trust, NULL), 0);
	assert_true(slice_equal(buf_slice(&given), buf_slice(&trust)));
}

/* 5 s after the first failure, then twice as long each time, but never longer than 300 s. */
TEST_CASE(test_left_alone)
{
	static const int64_t waits_s[] = {5, 10, 20, 40, 80, 160, 300, 300};
	struct authorities *authorities = create(2);
	long asked = count_of(&first);

	stands_at_us = clock_monotonic_us();
	set_mode(&first, "error");
	for (size_t i = 0; i < sizeof waits_s / sizeof *waits_s; i++) {
		assert_stamped_by(authorities, "two");
		assert_int_equal(count_of(&first), ++asked);
		stands_at_us += waits_s[i] * US_PER_SECOND - 1;
		AUTHORITY_RESULT_AUTO struct authority_result result = {0};
		struct authority_failures failures;
		assert_int_equal(stamp(authorities, &result, &failures, NULL), 0);
		assert_true(failures.items[0].in_backoff);
		assert_string_equal(failures.items[0].reason, "HTTP 500");
		assert_int_equal(count_of(&first), asked);
		stands_at_us++;
	}
	/* A good answer ends it. */
	set_mode(&first, "good");
	assert_stamped_by(authorities, "one");
	assert_stamped_by(authorities, "one");
	set_mode(&first, "error");
	assert_stamped_by(authorities, "two");
	stands_at_us += 5 * US_PER_SECOND;
	set_mode(&first, "good");
	assert_stamped_by(authorities, "one");
	stands_at_us = 0;
	authorities_free(authorities);
}

/* One that gives too early a time for what is to be stamped is no better than one that is
 * silent. */
TEST_CASE(test_too_early)
{
	struct authorities *authorities = create(2);
	AUTHORITY_RESULT_AUTO struct authority_result result = {0};
	struct authority_result none = {0};
	struct authority_failures failures;
	int64_t earliest_us = clock_now_us() + 20 * US_PER_SECOND;

	set_mode(&second, "ahead:40");
	assert_int_equal(
		authorities_timestamp(authorities, &imprint, earliest_us, &result, &failures, NULL), 0);
	assert_string_equal(result.name, "two");
	assert_int_equal(failures.count, 1);
	assert_non_null(strstr(failures.items[0].reason, "earlier than permitted"));
	assert_int_equal(authorities_timestamp(authorities, &imprint,
	                                       clock_now_us() + 3600 * US_PER_SECOND, &none, NULL,
	                                       NULL),
	                 ERR_AUTHORITY);
	authorities_free(authorities);
}

static int64_t ahead_s(struct authorities *authorities)
{
	return (clock_now_us() - authorities_latest_time_us(authorities)) / US_PER_SECOND;
}

static void set_wall(int64_t error_s)
{
	wall_error_us = error_s * US_PER_SECOND;
}

/* How far our clock is ahead, whatever it is set to. What a machine that is busy takes to answer
 * makes it seem less, by seconds at most. */
TEST_CASE(test_time_since)
{
	struct authorities *authorities = create(2);
	struct authority_failures failures;

	assert_in_range(ahead_s(authorities) + 1, 0, 1);
	set_wall(1000);
	assert_in_range(ahead_s(authorities), 999, 1000);
	/* It was wrong when we began, and is set right now: any timestamp says so. */
	AUTHORITY_RESULT_AUTO struct authority_result result = {0};
	set_wall(0);
	assert_int_equal(stamp(authorities, &result, &failures, NULL), 0);
	set_wall(30);
	assert_in_range(ahead_s(authorities), 1, 30);
	set_wall(1000);
	assert_in_range(ahead_s(authorities), 900, 1000);
	/* One that does not agree with us is no reason to believe our clock. */
	set_mode(&first, "ahead:5000");
	authorities_request_time(authorities, US_PER_SECOND, &failures);
	assert_in_range(ahead_s(authorities), 900, 1000);
	/* The machine slept: both clocks continued. */
	set_mode(&first, "good");
	slept_us = 1000 * US_PER_SECOND;
	assert_true(ahead_s(authorities) <= 0);
	/* The machine was stopped: by one clock, the other was set forward; a timestamp shows
	 * more. */
	slept_us = -1000 * US_PER_SECOND;
	set_wall(0);
	assert_true(ahead_s(authorities) > 900);
	authorities_request_time(authorities, US_PER_SECOND, &failures);
	assert_true(ahead_s(authorities) <= 0);
	slept_us = 0;
	authorities_free(authorities);
}

/* A clock that is wrong from the start shows with the first timestamp, though that is not taken;
 * one authority that is behind does not make a good clock seem ahead. */
TEST_CASE(test_whose_time)
{
	set_wall(1000);
	struct authorities *authorities = create(2);
	AUTHORITY_RESULT_AUTO struct authority_result result = {0};
	struct authority_failures failures;
	assert_int_equal(stamp(authorities, &result, &failures, NULL), ERR_AUTHORITY);
	assert_in_range(ahead_s(authorities), 900, 1000);
	authorities_free(authorities);

	set_wall(40);
	authorities = create(2);
	set_mode(&second, "ahead:40");
	AUTHORITY_RESULT_AUTO struct authority_result early = {0};
	assert_int_equal(stamp(authorities, &early, &failures, NULL), 0);
	assert_string_equal(early.name, "one");
	assert_true(ahead_s(authorities) > 5);
	authorities_request_time(authorities, 5 * US_PER_SECOND, &failures);
	assert_true(ahead_s(authorities) <= 5);
	AUTHORITY_RESULT_AUTO struct authority_result again = {0};
	assert_int_equal(stamp(authorities, &again, &failures, NULL), 0);
	assert_true(ahead_s(authorities) <= 5);
	set_wall(0);
	authorities_free(authorities);
}

static int64_t off_s(struct authorities *authorities)
{
	int64_t off_us;
	assert_true(authorities_compare_clock(authorities, &off_us));
	return off_us / US_PER_SECOND;
}

/* Either way, by the one that our clock agrees with best; whatever it was set to since. */
TEST_CASE(test_comparison)
{
	struct authorities *authorities = create(2);
	struct authority_failures failures = {0};
	int64_t off_us;
	set_mode(&first, "error");
	assert_true(authorities_request_time_of(authorities, 0, &failures));
	assert_int_equal(failures.count, 1);
	assert_string_equal(failures.items[0].name, "one");
	assert_false(authorities_compare_clock(authorities, &off_us));
	assert_false(authorities_request_time_of(authorities, 2, &failures));
	set_mode(&first, "good");
	set_wall(1000);
	assert_true(authorities_request_time_of(authorities, 0, &failures));
	assert_in_range(off_s(authorities), 900, 1000);
	set_wall(-1000);
	assert_in_range(-off_s(authorities), 900, 1000);
	set_wall(0);
	assert_int_equal(off_s(authorities), 0);
	set_wall(-1000);
	assert_true(authorities_request_time_of(authorities, 0, &failures));
	assert_in_range(-off_s(authorities), 900, 1000);
	set_mode(&second, "ahead:5000");
	assert_true(authorities_request_time_of(authorities, 1, &failures));
	assert_in_range(-off_s(authorities), 900, 1000);
	set_wall(5000);
	assert_in_range(off_s(authorities) + 100, 0, 100);
	set_wall(0);
	assert_int_equal(off_s(authorities), 0);
	authorities_free(authorities);
}

static const char *given_for(struct authorities *authorities, enum digest_algorithm algorithm,
                             struct authority_result *result)
{
	struct digest digest = digest_by(algorithm, "anything", 8);
	return authorities_timestamp_over(authorities, &digest, result, NULL, NULL) ? "nobody"
	                                                                            : result->name;
}

/* Of what one was asked for by one digest, rounds by another know nothing. */
TEST_CASE(test_left_alone_for_a_digest)
{
	struct authorities *authorities = create(2);
	AUTHORITY_RESULT_AUTO struct authority_result strong = {0}, again = {0}, weak = {0};

	set_mode(&first, "error");
	assert_string_equal(given_for(authorities, DIGEST_SHA512, &strong), "two");
	set_mode(&first, "good");
	assert_string_equal(given_for(authorities, DIGEST_SHA512, &again), "two");
	assert_string_equal(given_for(authorities, DIGEST_SHA256, &weak), "one");
	assert_stamped_by(authorities, "one");
	authorities_free(authorities);
}

/* Whose timestamps will not do is asked for none that are to last, more and more rarely; a round
 * can have one. */
TEST_CASE(test_rejected)
{
	static const int64_t waits_s[] = {600, 1200, 2400, 4800, 9600, 19200, 21600, 21600};
	struct authorities *authorities = create(2);

	stands_at_us = clock_monotonic_us();
	for (size_t i = 0; i < sizeof waits_s / sizeof *waits_s; i++) {
		AUTHORITY_RESULT_AUTO struct authority_result one = {0}, two = {0};
		assert_string_equal(given_for(authorities, DIGEST_SHA256, &one), "one");
		authorities_reject(authorities, &one, "its certificate was revoked");
		stands_at_us += waits_s[i] * US_PER_SECOND - 1;
		assert_string_equal(given_for(authorities, DIGEST_SHA512, &two), "two");
		assert_stamped_by(authorities, "one");
		stands_at_us++;
	}
	stands_at_us = 0;
	authorities_free(authorities);
}

TEST_CASE(test_none)
{
	struct authorities *authorities = create(2);
	struct authority_result result = {.kind = AUTHORITY_QUALIFIED, .name = "untouched"};
	struct authority_failures failures;
	struct error error = {0};

	set_mode(&first, "close");
	set_mode(&second, "garbage");
	assert_int_equal(stamp(authorities, &result, &failures, &error), ERR_AUTHORITY);
	assert_string_equal(result.name, "untouched");
	assert_int_equal(failures.count, 2);
	assert_non_null(strstr(error.cause, "one: "));
	assert_int_equal(stamp(authorities, &result, &failures, &error), ERR_AUTHORITY);
	assert_true(failures.items[0].in_backoff && failures.items[1].in_backoff);
	authorities_free(authorities);
}

TEST_CASE(test_guarded)
{
	struct authority_options one = {.url = first.url, .roots_path = first.roots};
	struct authorities_options options = {.authorities = &one, .count = 1};
	struct authorities *authorities = NULL;
	struct authority_failures failures;
	struct authority_result result;

	assert_int_equal(authorities_create(&options, &authorities, NULL), 0);
	assert_int_equal(stamp(authorities, &result, &failures, NULL), ERR_AUTHORITY);
	assert_non_null(strstr(failures.items[0].reason, "loopback"));
	authorities_free(authorities);
}

static void *stamp_often(void *context)
{
	for (int i = 0; i < 5; i++) {
		AUTHORITY_RESULT_AUTO struct authority_result result = {0};
		if (authorities_timestamp(context, &imprint, TIME_NONE, &result, NULL, NULL) != 0)
			return "failed";
	}
	return NULL;
}

/* Also side by side. */
TEST_CASE(test_embedded)
{
	struct signer *signer = development_signer();
	struct authority_options one = {.url = AUTHORITY_EMBEDDED_URL, .kind = AUTHORITY_QUALIFIED};
	struct authorities_options options = {.authorities = &one, .count = 1, .signer = signer};
	struct authorities *authorities = NULL;
	AUTHORITY_RESULT_AUTO struct authority_result result = {0};
	pthread_t threads[4];
	void *outcome;

	assert_int_equal(authorities_create(&options, &authorities, NULL), 0);
	assert_int_equal(authorities_timestamp(authorities, &imprint, TIME_NONE, &result, NULL, NULL),
	                 0);
	assert_int_equal(result.kind, AUTHORITY_DEVELOPMENT);
	assert_true(result.facts.trusted);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, stamp_often, authorities), 0);
	for (size_t i = 0; i < 4; i++) {
		pthread_join(threads[i], &outcome);
		assert_null(outcome);
	}
	authorities_free(authorities);
	signer_stop(signer);
}

TEST_CASE(test_options)
{
	struct authority_options one = {.url = "https://tsa.example/", .roots_path = first.roots};
	struct authorities_options options = {.authorities = &one, .count = 1};
	struct authorities *authorities = NULL;

	assert_int_equal(authorities_create(&options, &authorities, NULL), 0);
	authorities_free(authorities);
	authorities = NULL;
	one.roots_path = scratch_path("absent.pem");
	assert_int_equal(authorities_create(&options, &authorities, NULL), ERR_IO);
	scratch_write("empty.pem", slice_of("nothing here\n"));
	one.roots_path = scratch_path("empty.pem");
	assert_int_equal(authorities_create(&options, &authorities, NULL), ERR_VALIDATION);
	one.roots_path = NULL;
	assert_int_equal(authorities_create(&options, &authorities, NULL), ERR_VALIDATION);
	one = (struct authority_options){.url = "ftp://tsa.example/", .roots_path = first.roots};
	assert_int_equal(authorities_create(&options, &authorities, NULL), ERR_VALIDATION);
	one.url = AUTHORITY_EMBEDDED_URL;
	assert_int_equal(authorities_create(&options, &authorities, NULL), ERR_VALIDATION);
	options.count = 0;
	assert_int_equal(authorities_create(&options, &authorities, NULL), ERR_VALIDATION);
	assert_null(authorities);
}

TEST_CASE(test_kinds)
{
	enum authority_kind kind;

	for (int i = AUTHORITY_DEVELOPMENT; i <= AUTHORITY_QUALIFIED; i++) {
		const char *text = authority_kind_text((enum authority_kind)i);
		assert_true(authority_kind_parse(slice_of(text), &kind));
		assert_int_equal(kind, i);
	}
	assert_string_equal(authority_kind_text(AUTHORITY_NON_QUALIFIED), "non_qualified");
	assert_false(authority_kind_parse(slice_of("Qualified"), &kind));
}

int main(int argc, char **argv)
{
	stand_in_path = argc > 1 ? argv[1] : "tests/support/timestamp_authority.py";
	return tests_run(start_both, stop_both, NULL, NULL);
}
