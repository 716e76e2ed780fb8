#include "support.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "seal/timestamp.h"

#define SET "\x31\x05\x02\x03\x01\x02\x03" /* any DER SET */

static const struct slice set = {SET, sizeof SET - 1};

/* The one child of this process. */
static pid_t child_pid(void)
{
	char path[64];
	int pid = -1;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%d", &pid), 1);
	fclose(file);
	return pid;
}

static void test_files(void **state)
{
	static const char *const names[] = {"report-root.pem", "report.pem", "timestamp-root.pem",
	                                    "timestamp.pem", "signer.log"};
	struct signer *signer = development_signer();
	struct stat stat_of;
	size_t count = 0;

	for (size_t i = 0; i < 5; i++) {
		char name[64];
		snprintf(name, sizeof name, "signer/%s", names[i]);
		assert_int_equal(stat(scratch_path(name), &stat_of), 0);
		assert_int_equal(stat_of.st_mode & 0777, 0600);
	}
	assert_int_equal(stat(scratch_path("signer"), &stat_of), 0);
	assert_int_equal(stat_of.st_mode & 0777, 0700);
	DIR *directory = opendir(scratch_path("signer"));
	while (readdir(directory))
		count++;
	closedir(directory);
	assert_int_equal(count, 2 + 5);
	scratch_write("trust.pem", signer_trust(signer));
	scratch_write("chain.pem", signer_certificates(signer));
	assert_int_equal(scratch_run("test $(grep -c BEGIN trust.pem) = 2"), 0);
	assert_int_equal(scratch_run("openssl verify -x509_strict -CAfile trust.pem chain.pem"), 0);
	assert_int_equal(
		scratch_run("openssl verify -x509_strict -purpose timestampsign -CAfile trust.pem "
	                "signer/timestamp.pem"),
		0);
	assert_int_equal(scratch_run("! grep -q PRIVATE trust.pem chain.pem signer/*root.pem"), 0);
	signer_stop(signer);
}

static void test_signs(void **state)
{
	struct signer *signer = development_signer();
	BUF_AUTO struct buf signature;

	buf_init(&signature, 4096);
	assert_int_equal(signer_sign(signer, SIGNER_REPORT, set, &signature, NULL), 0);
	scratch_write("signed", set);
	scratch_write("signature", buf_slice(&signature));
	scratch_write("chain.pem", signer_certificates(signer));
	assert_int_equal(
		scratch_run("openssl x509 -in chain.pem -pubkey -noout > key.pem && "
	                "openssl dgst -sha256 -verify key.pem -signature signature signed"),
		0);
	signer_stop(signer);
}

/* Keys outlive the process; the log tells all that was signed, in order. */
static void test_log(void **state)
{
	struct sha256 imprint = sha256_of("x", 1);
	struct sha256 digest = sha256_of(set.data, set.size);
	static const char *const purposes[] = {"archive", "report", "timestamp"};
	BUF_AUTO struct buf out;
	BUF_AUTO struct buf certificates;
	BUF_AUTO struct buf request;
	ARENA_AUTO struct arena arena;

	buf_init(&out, 1 << 20);
	buf_init(&certificates, 1 << 20);
	buf_init(&request, TIMESTAMP_REQUEST_MAX);
	arena_init(&arena, 1 << 20);
	unlink(scratch_path("signer/signer.log"));
	struct signer *signer = development_signer();
	assert_int_equal(signer_sign(signer, SIGNER_ARCHIVE, set, &out, NULL), 0);
	assert_int_equal(signer_sign(signer, SIGNER_REPORT, set, &out, NULL), 0);
	buf_add_slice(&certificates, signer_certificates(signer));
	signer_stop(signer);
	signer = development_signer();
	assert_true(slice_equal(signer_certificates(signer), buf_slice(&certificates)));
	assert_int_equal(timestamp_request(&imprint, NULL, &request, NULL), 0);
	assert_int_equal(signer_timestamp(signer, buf_slice(&request), &out, NULL), 0);
	signer_stop(signer);

	scratch_read("signer/signer.log", &out);
	char *line = out.data;
	for (size_t i = 0; i < 3; i++) {
		struct json *json = NULL;
		struct slice text;
		int64_t time_us;
		char hex[65];
		char *end = strchr(line, '\n');
		assert_non_null(end);
		assert_int_equal(
			json_parse(&arena, slice_make(line, (size_t)(end - line)), NULL, &json, NULL), 0);
		assert_true(json_get_text(json, "purpose", &text) && slice_is(text, purposes[i]));
		hex_encode(i == 2 ? imprint.bytes : digest.bytes, SHA256_SIZE, hex);
		assert_true(json_get_text(json, "sha256", &text) && slice_is(text, hex));
		assert_true(json_get_text(json, "time", &text));
		assert_int_equal(time_parse(text, "time", &time_us, NULL), 0);
		assert_in_range(clock_now_us() - time_us, 0, US_PER_DAY);
		line = end + 1;
	}
	assert_string_equal(line, "");
}

static void test_refuses(void **state)
{
	struct signer *signer = development_signer();
	struct error error = {0};
	static const struct slice wrong[] = {{"", 0}, {"text", 4}, {"\x30\x02\x05\x00", 4},
	                                     {SET "\x00", sizeof SET}, {SET, sizeof SET - 2},
	                                     {"\x31\x80\x00\x00", 4}};
	static char large[SIGNER_BYTES_MAX + 1];
	BUF_AUTO struct buf out;

	buf_init(&out, 4096);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(signer_sign(signer, SIGNER_REPORT, wrong[i], &out, &error), ERR_REFUSED);
	assert_int_equal(
		signer_sign(signer, SIGNER_REPORT, slice_make(large, sizeof large), &out, &error),
		ERR_REFUSED);
	assert_int_equal(signer_sign(signer, (enum signer_purpose)9, set, &out, &error), ERR_REFUSED);
	assert_int_equal(signer_timestamp(signer, slice_of("no request"), &out, &error), ERR_REFUSED);
	assert_int_equal(out.size, 0);
	/* and goes on */
	assert_int_equal(signer_sign(signer, SIGNER_REPORT, set, &out, &error), 0);
	signer_stop(signer);
}

static void test_is_confined(void **state)
{
	struct signer *signer = development_signer();
	char command[64];

	scratch_run("grep -E '^(Seccomp|NoNewPrivs):' /proc/%d/status | tr -d '\\t\\n' > confined",
	            (int)child_pid());
	snprintf(command, sizeof command, "ls /proc/%d/fd | tr '\\n' ' ' > fds", (int)child_pid());
	scratch_run("%s", command);
	BUF_AUTO struct buf out;
	buf_init(&out, 4096);
	scratch_read("confined", &out);
	assert_string_equal(out.data, "NoNewPrivs:1Seccomp:2");
	if (geteuid() == 0) { /* nobody else may look into it */
		scratch_read("fds", &out);
		assert_string_equal(out.data, "0 1 2 3 4 ");
	}
	signer_stop(signer);
}

static void test_log_is_no_link(void **state)
{
	struct signer *signer = NULL;
	struct error error = {0};
	BUF_AUTO struct buf out;

	buf_init(&out, 4096);
	scratch_run("mkdir linked && ln -s ../elsewhere linked/signer.log");
	struct signer_options options = {.directory = scratch_path("linked"), .development = true};
	assert_int_equal(signer_start(&options, &signer, &error), ERR_REFUSED);
	assert_non_null(strstr(error.cause, "signer.log"));
}

static void test_death(void **state)
{
	struct signer *signer = development_signer();
	struct error error = {0};
	BUF_AUTO struct buf out;

	buf_init(&out, 4096);
	kill(child_pid(), SIGINT);
	kill(child_pid(), SIGTERM);
	assert_int_equal(signer_sign(signer, SIGNER_REPORT, set, &out, NULL), 0);
	kill(child_pid(), SIGKILL);
	usleep(50000);
	assert_int_equal(signer_sign(signer, SIGNER_REPORT, set, &out, &error), ERR_UNAVAILABLE);
	assert_int_equal(signer_sign(signer, SIGNER_REPORT, set, &out, &error), ERR_UNAVAILABLE);
	signer_stop(signer);
	signer = development_signer();
	assert_int_equal(signer_sign(signer, SIGNER_REPORT, set, &out, NULL), 0);
	signer_stop(signer);
}

static void test_dies_with_its_parent(void **state)
{
	int pipes[2];
	pid_t grandchild = 0;

	assert_int_equal(pipe(pipes), 0);
	pid_t middle = fork();
	if (middle == 0) {
		development_signer();
		grandchild = child_pid();
		(void)!write(pipes[1], &grandchild, sizeof grandchild);
		raise(SIGKILL);
	}
	assert_int_equal(read(pipes[0], &grandchild, sizeof grandchild), sizeof grandchild);
	waitpid(middle, NULL, 0);
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/stat", (int)grandchild);
	for (int i = 0; i < 200; i++) {
		/* Gone, or a zombie when nobody here collects orphans. */
		FILE *file = fopen(path, "r");
		char letter = 'Z';
		if (file) {
			(void)!fscanf(file, "%*d (%*[^)]) %c", &letter);
			fclose(file);
		}
		if (letter == 'Z' || letter == 'X')
			return;
		usleep(10000);
	}
	fail_msg("the signer outlives its parent");
}

static void *sign_often(void *context)
{
	for (int i = 0; i < 20; i++) {
		BUF_AUTO struct buf out;
		buf_init(&out, 4096);
		if (signer_sign(context, SIGNER_REPORT, set, &out, NULL) != 0 || out.size < 60)
			return "failed";
	}
	return NULL;
}

static void test_threads(void **state)
{
	struct signer *signer = development_signer();
	pthread_t threads[4];
	void *result;

	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, sign_often, signer), 0);
	for (size_t i = 0; i < 4; i++) {
		pthread_join(threads[i], &result);
		assert_null(result);
	}
	signer_stop(signer);
}

static void test_unusable_keys(void **state)
{
	char directory[256], key[256], other[256], locked[256];
	struct signer *signer = NULL;
	struct error error = {0};

	assert_int_equal(scratch_run(
	    "openssl req -x509 -newkey rsa:2048 -nodes -keyout a.key -out a.pem -subj /CN=A && "
	    "openssl req -x509 -newkey rsa:2048 -nodes -keyout b.key -out b.pem -subj /CN=B && "
	    "openssl rsa -aes256 -passout pass:x -in a.key -out locked.key && "
	    "openssl req -x509 -newkey ed25519 -nodes -keyout e.key -out e.pem -subj /CN=E"), 0);
	strcpy(directory, scratch_path("own"));
	strcpy(key, scratch_path("a.key"));
	strcpy(other, scratch_path("b.pem"));
	strcpy(locked, scratch_path("locked.key"));
	struct signer_options options = {.directory = directory, .key_path = key,
	                                 .certificates_path = other};
	assert_int_equal(signer_start(&options, &signer, &error), ERR_REFUSED);
	assert_non_null(strstr(error.cause, "not of the key"));
	strcpy(other, scratch_path("a.pem"));
	options.key_path = locked;
	assert_int_equal(signer_start(&options, &signer, &error), ERR_REFUSED);
	assert_non_null(strstr(error.cause, "locked.key"));
	strcpy(key, scratch_path("e.key"));
	strcpy(other, scratch_path("e.pem"));
	options.key_path = key;
	assert_int_equal(signer_start(&options, &signer, &error), ERR_REFUSED);
	assert_non_null(strstr(error.cause, "EC nor an RSA"));
	strcpy(key, scratch_path("absent.key"));
	assert_int_equal(signer_start(&options, &signer, &error), ERR_REFUSED);
	assert_non_null(strstr(error.cause, "absent.key"));
	options.development = true;
	assert_int_equal(signer_start(&options, &signer, &error), ERR_REFUSED);
	options = (struct signer_options){.directory = directory};
	assert_int_equal(signer_start(&options, &signer, &error), ERR_REFUSED);
	assert_null(signer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_signs),
		cmocka_unit_test(test_log),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_is_confined),
		cmocka_unit_test(test_log_is_no_link),
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_dies_with_its_parent),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_unusable_keys),
	};
	return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
