#include "support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "seal/cms.h"
#include "seal/signer_process.h"
#include "seal/timestamp.h"

/* The attributes that cms_create asks to be signed; the development certificate remains in
 * scratch/signer. */
static struct slice set;

static int keep_attributes(void *context, struct slice bytes, struct buf *out, struct error *error)
{
	buf_clear(context);
	buf_add_slice(context, bytes);
	return ERR_REFUSED;
}

static void make_attributes(struct signer *signer, int64_t signing_time_us, struct buf *ret)
{
	struct sha256 digest = sha256_of("x", 1);
	struct cms_signing signing = {.certificates_pem = signer_certificates(signer),
	                              .sign = keep_attributes,
	                              .sign_context = ret};
	BUF_AUTO struct buf out = {.limit = 65536};

	assert_int_equal(cms_create(&digest, signing_time_us, &signing, &out, NULL), ERR_REFUSED);
	assert_true(ret->size > 0);
}

static int prepare(void **state)
{
	static struct buf attributes;

	scratch_begin(state);
	struct signer *signer = development_signer();
	buf_init(&attributes, SIGNER_BYTES_MAX);
	make_attributes(signer, TIME_NONE, &attributes);
	set = buf_slice(&attributes);
	signer_stop(signer);
	return 0;
}

/* Finds the only child of this process. */
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

TEST_CASE(test_files)
{
	static const char *const names[] = {"report-root.pem",
	                                    "report.pem",
	                                    "report-responder.pem",
	                                    "timestamp-root.pem",
	                                    "timestamp.pem",
	                                    "timestamp-responder.pem",
	                                    "log.key",
	                                    "signer.log"};
	const size_t name_count = sizeof names / sizeof *names;
	struct signer *signer = development_signer();
	struct stat stat_of;
	size_t count = 0;

	for (size_t i = 0; i < name_count; i++) {
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
	assert_int_equal(count, 2 + name_count);
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

TEST_CASE(test_signs)
{
	struct signer *signer = development_signer();
	BUF_AUTO struct buf signature = {.limit = 4096};

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

/* Keys survive the process; the log records everything that was signed, in order. */
TEST_CASE(test_log)
{
	struct sha256 imprint = sha256_of("x", 1);
	struct sha256 digest = sha256_of(set.data, set.size);
	static const char *const purposes[] = {"archive", "report", "timestamp"};
	BUF_AUTO struct buf out = {.limit = 1 << 20};
	BUF_AUTO struct buf certificates = {.limit = 1 << 20};
	BUF_AUTO struct buf request = {.limit = TIMESTAMP_REQUEST_MAX};
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};

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

static bool key_fails; /* of a process that is started while it is set */

int __real_key_sign(struct key *key, struct slice bytes, struct buf *out, struct error *error);
int __wrap_key_sign(struct key *key, struct slice bytes, struct buf *out, struct error *error);

int __wrap_key_sign(struct key *key, struct slice bytes, struct buf *out, struct error *error)
{
	return key_fails ? error_cause(error, ERR_UNAVAILABLE, "the token was removed")
	                 : __real_key_sign(key, bytes, out, error);
}

/* The line of the signature comes first, so the log says afterwards that there is none. */
TEST_CASE(test_a_failing_key_is_logged)
{
	BUF_AUTO struct buf out;
	ARENA_AUTO struct arena arena;

	buf_init(&out, 1 << 20);
	arena_init(&arena, 1 << 20);
	unlink(scratch_path("signer/signer.log"));
	key_fails = true;
	struct signer *signer = development_signer();
	key_fails = false;
	assert_int_equal(signer_sign(signer, SIGNER_REPORT, set, &out, NULL), ERR_UNAVAILABLE);
	assert_int_equal(out.size, 0);
	signer_stop(signer);
	scratch_read("signer/signer.log", &out);
	assert_int_equal(scratch_run("grep -c . signer/signer.log | grep -qx 2"), 0);
	assert_int_equal(scratch_run("head -1 signer/signer.log | grep -q '\"purpose\":\"report\"'"),
	                 0);
	assert_int_equal(
		scratch_run("tail -1 signer/signer.log | grep -q '\"purpose\":\"not_signed\"'"), 0);
	assert_int_equal(scratch_run("test $(grep -o '\"sha256\":\"[0-9a-f]*' signer/signer.log"
	                             " | sort -u | wc -l) = 1"),
	                 0);
}

static void assert_declined(struct signer *signer, struct slice bytes, const char *cause)
{
	struct error error = {0};
	BUF_AUTO struct buf out = {.limit = 4096};

	assert_int_equal(signer_sign(signer, SIGNER_REPORT, bytes, &out, &error), ERR_REFUSED);
	if (!strstr(error.cause, cause))
		fail_msg("%s instead of %s", error.cause, cause);
	assert_int_equal(out.size, 0);
}

TEST_CASE(test_refuses)
{
	struct signer *signer = development_signer();
	struct error error = {0};
	static const struct slice wrong[] = {{"text", 4},
	                                     {"\x30\x02\x05\x00", 4},
	                                     {"\x31\x02\x05\x00", 4},
	                                     {"\x31\x80\x00\x00", 4},
	                                     {"\x31\x05\x02\x03\x01\x02\x03", 7}};
	static char large[SIGNER_BYTES_MAX + 1];
	BUF_AUTO struct buf out = {.limit = 4096};
	BUF_AUTO struct buf longer = {.limit = 4096};

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_declined(signer, wrong[i], "not a DER SET");
	buf_add_slice(&longer, set);
	buf_add_byte(&longer, 0);
	assert_declined(signer, buf_slice(&longer), "not a DER SET");
	assert_declined(signer, slice_make(set.data, set.size - 1), "not a DER SET");
	assert_declined(signer, slice_make("\x31\x00", 2), "missing");
	assert_declined(signer, slice_make("", 0), "unknown request");
	assert_declined(signer, slice_make(large, sizeof large - 1), "not a DER SET");
	assert_int_equal(
		signer_sign(signer, SIGNER_REPORT, slice_make(large, sizeof large), &out, &error),
		ERR_REFUSED);
	assert_int_equal(signer_sign(signer, (enum signer_purpose)9, set, &out, &error), ERR_REFUSED);
	assert_int_equal(signer_timestamp(signer, slice_of("no request"), &out, &error), ERR_REFUSED);
	assert_int_equal(out.size, 0);
	/* and continues */
	assert_int_equal(signer_sign(signer, SIGNER_REPORT, set, &out, &error), 0);
	signer_stop(signer);
}

/* Replaces the only occurrence of some bytes by the same number of others. */
static struct slice altered(struct buf *copy, struct slice from, struct slice by)
{
	buf_clear(copy);
	buf_add_slice(copy, set);
	char *at = memmem(copy->data, copy->size, from.data, from.size);
	assert_non_null(at);
	memcpy(at, by.data, by.size);
	return buf_slice(copy);
}
#define BYTES(text) slice_make(text, sizeof text - 1)

/* A key for reports must not sign anything else in the form of a CMS. */
TEST_CASE(test_signs_only_what_cms_create_makes)
{
	struct signer *signer = development_signer();
	struct signer_options options = {.development = true};
	struct signer *stranger = NULL;
	char directory[256];
	BUF_AUTO struct buf copy = {.limit = 4096};
	BUF_AUTO struct buf out = {.limit = 4096};

	/* id-data as the signed content: TSTInfo, signedData. */
	assert_declined(signer,
	                altered(&copy, BYTES("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01"),
	                        BYTES("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02")),
	                "not one of those");
	/* A SHA-1 message digest, which changes the size; another type of the same size. */
	assert_declined(signer, altered(&copy, BYTES("\x04\x20"), BYTES("\x0c\x20")),
	                "not one of those");
	/* Another attribute in the place of the message digest. */
	assert_declined(signer,
	                altered(&copy, BYTES("\xf7\x0d\x01\x09\x04"), BYTES("\xf7\x0d\x01\x09\x02")),
	                "not one of those");
	/* contentType twice. */
	make_attributes(signer, clock_now_us(), &copy);
	assert_int_equal(signer_sign(signer, SIGNER_REPORT, buf_slice(&copy), &out, NULL), 0);
	char *time = memmem(copy.data, copy.size, "\x17\x0d", 2);
	assert_non_null(time);
	time[2] = 'x';
	assert_declined(signer, buf_slice(&copy), "not one of those");
	/* A reference to another certificate. */
	strcpy(directory, scratch_path("stranger"));
	options.directory = directory;
	assert_int_equal(signer_start(&options, &stranger, NULL), 0);
	make_attributes(stranger, TIME_NONE, &copy);
	assert_declined(signer, buf_slice(&copy), "not one of those");
	signer_stop(stranger);
	signer_stop(signer);
}

TEST_CASE(test_is_confined)
{
	struct signer *signer = development_signer();
	char command[64];

	scratch_run("grep -E '^(Seccomp|NoNewPrivs):' /proc/%d/status | tr -d '\\t\\n' > confined",
	            (int)child_pid());
	snprintf(command, sizeof command, "ls /proc/%d/fd | tr '\\n' ' ' > fds", (int)child_pid());
	scratch_run("%s", command);
	BUF_AUTO struct buf out = {.limit = 4096};
	scratch_read("confined", &out);
	assert_string_equal(out.data, "NoNewPrivs:1Seccomp:2");
	if (geteuid() == 0) { /* not readable for other users */
		scratch_read("fds", &out);
		assert_string_equal(out.data, "0 1 2 3 4 ");
	}
	signer_stop(signer);
}

/* Tries every call that could open, connect, fork or change identity, in a process confined like
 * the signing process. Returns the number of the first one that succeeds; 0: none. */
static int first_possible(int log)
{
	struct error error = {0};
	char *const words[] = {"/bin/true", NULL};
	struct key *const keys[SIGNER_KEYS] = {NULL};
	int sockets[2];

	if (signer_process_confine(keys, &error) != 0)
		return 100;
#ifndef CONSTANCIA_COUNTS_COVERAGE /* these builds write files at the end */
	if (openat(AT_FDCWD, "/etc/passwd", O_RDONLY) >= 0 || errno != EPERM)
		return 1;
	if (openat(AT_FDCWD, scratch_path("made"), O_WRONLY | O_CREAT, 0600) >= 0 || errno != EPERM)
		return 2;
#endif
	if (fork() >= 0 || errno != EPERM)
		return 3;
	if (syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) >= 0 || errno != EPERM)
		return 4;
	if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != EPERM)
		return 5;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0 || errno != EPERM)
		return 6;
	if (execve(words[0], words, NULL) == 0 || errno != EPERM)
		return 7;
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		return 8;
	if (kill(getppid(), 0) == 0 || errno != EPERM)
		return 9;
	if (unlink(scratch_path("signer/signer.log")) == 0 || errno != EPERM)
		return 10;
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 || errno != EPERM)
		return 11;
	if (write(log, "x", 1) != 1 || fdatasync(log) != 0 || !malloc(1 << 20))
		return 12;
	return 0;
}

TEST_CASE(test_gives_up_all_but_what_it_needs)
{
	int status = 0;
	int log = open(scratch_path("written"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	pid_t child = fork();

	if (child == 0)
		_exit(first_possible(log));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	close(log);
}

#define NOBODY 65534

/* As a user other than root: in /proc, a process that is not dumpable belongs to root. */
static int first_readable(void)
{
	struct rlimit limit = {1, 1};
	struct stat own, its;
	char path[64];

	if (geteuid() == 0 && (setregid(NOBODY, NOBODY) != 0 || setreuid(NOBODY, NOBODY) != 0))
		return 1;
	if (prctl(PR_SET_DUMPABLE, 1) != 0)
		return 2;
	struct signer *signer = development_signer();
	pid_t child = child_pid();
	snprintf(path, sizeof path, "/proc/%d/mem", (int)child);
	if (prlimit(child, RLIMIT_CORE, NULL, &limit) == 0 && (limit.rlim_cur || limit.rlim_max))
		return 3;
	if (stat("/proc/self/mem", &own) != 0 || own.st_uid == 0)
		return 4;
	if (stat(path, &its) != 0 || its.st_uid != 0)
		return 5;
	signer_stop(signer);
	return 0;
}

/* Neither a core file nor the memory of the process reveals the keys. */
TEST_CASE(test_leaves_no_core)
{
	int status = 0;

	assert_int_equal(
		scratch_run("chmod 755 . && mkdir open && chown %d:%d open 2>&1 || true", NOBODY, NOBODY),
		0);
	assert_int_equal(scratch_run("mv signer kept && mv open signer"), 0);
	pid_t child = fork();
	if (child == 0)
		_exit(first_readable());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(scratch_run("rm -rf signer && mv kept signer"), 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A full disk is temporary: nothing is signed that cannot be logged, and later it is signed. */
TEST_CASE(test_full_log_passes)
{
	struct signer *signer = development_signer();
	struct error error = {0};
	struct stat before, after;
	struct rlimit limit;
	BUF_AUTO struct buf out = {.limit = 4096};

	assert_int_equal(stat(scratch_path("signer/signer.log"), &before), 0);
	limit = (struct rlimit){(rlim_t)before.st_size + 40, RLIM_INFINITY};
	assert_int_equal(prlimit(child_pid(), RLIMIT_FSIZE, &limit, NULL), 0);
	assert_int_equal(signer_sign(signer, SIGNER_REPORT, set, &out, &error), ERR_NO_SPACE);
	assert_int_equal(signer_sign(signer, SIGNER_REPORT, set, &out, &error), ERR_NO_SPACE);
	assert_int_equal(out.size, 0);
	assert_int_equal(stat(scratch_path("signer/signer.log"), &after), 0);
	assert_int_equal(after.st_size, before.st_size);
	limit.rlim_cur = RLIM_INFINITY;
	assert_int_equal(prlimit(child_pid(), RLIMIT_FSIZE, &limit, NULL), 0);
	assert_int_equal(signer_sign(signer, SIGNER_REPORT, set, &out, &error), 0);
	signer_stop(signer);
	signer_stop(development_signer());
}

TEST_CASE(test_one_process_holds_the_log)
{
	struct signer *signer = development_signer();
	struct signer *second = NULL;
	struct error error = {0};
	struct signer_options options = {.directory = scratch_path("signer"), .development = true};

	assert_int_equal(signer_start(&options, &second, &error), ERR_REFUSED);
	assert_non_null(strstr(error.cause, "locked by another"));
	signer_stop(signer);
}

/* A process that does not respond is ended, so that the monitoring of children notices it. */
TEST_CASE(test_standstill)
{
	struct signer *signer = development_signer();
	struct error error = {0};
	BUF_AUTO struct buf out = {.limit = 4096};

	assert_int_equal(signer_ready(signer, NULL), 0);
	kill(child_pid(), SIGSTOP);
	assert_false(signer_has_ended(signer));
	assert_int_equal(signer_sign(signer, SIGNER_REPORT, set, &out, &error), ERR_UNAVAILABLE);
	assert_non_null(strstr(error.cause, "no response in time"));
	while (!signer_has_ended(signer))
		usleep(1000);
	assert_int_equal(signer_ready(signer, &error), ERR_UNAVAILABLE);
	assert_int_equal(signer_sign(signer, SIGNER_REPORT, set, &out, &error), ERR_UNAVAILABLE);
	signer_stop(signer);
}

TEST_CASE(test_log_is_no_link)
{
	struct signer *signer = NULL;
	struct error error = {0};
	BUF_AUTO struct buf out = {.limit = 4096};

	scratch_run("mkdir linked && ln -s ../elsewhere linked/signer.log");
	struct signer_options options = {.directory = scratch_path("linked"), .development = true};
	assert_int_equal(signer_start(&options, &signer, &error), ERR_REFUSED);
	assert_non_null(strstr(error.cause, "signer.log"));
}

TEST_CASE(test_death)
{
	struct signer *signer = development_signer();
	struct error error = {0};
	BUF_AUTO struct buf out = {.limit = 4096};

	kill(child_pid(), SIGINT);
	kill(child_pid(), SIGTERM);
	assert_int_equal(signer_sign(signer, SIGNER_REPORT, set, &out, NULL), 0);
	pid_t pid = child_pid();
	siginfo_t end;
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &end, WEXITED | WNOWAIT), 0);
	assert_int_equal(signer_sign(signer, SIGNER_REPORT, set, &out, &error), ERR_UNAVAILABLE);
	assert_int_equal(signer_sign(signer, SIGNER_REPORT, set, &out, &error), ERR_UNAVAILABLE);
	signer_stop(signer);
	signer = development_signer();
	assert_int_equal(signer_sign(signer, SIGNER_REPORT, set, &out, NULL), 0);
	signer_stop(signer);
}

TEST_CASE(test_dies_with_its_parent)
{
	int pipes[2];
	pid_t grandchild = 0;

	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
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
	/* The orphan is a child of this process now: its end is reported, or the test times out. */
	assert_int_equal(waitpid(grandchild, NULL, 0), grandchild);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

#define STORE "0123456789abcdef0123456789abcdef"
#define OTHER "ffffffffffffffffffffffffffffffff"

static void assert_mark(struct signer *signer, const char *store, int64_t round, const char *root)
{
	struct signer_mark mark = {.round = -1};
	struct sha256 expected = root ? sha256_of(root, 1) : (struct sha256){0};

	assert_int_equal(signer_get_mark(signer, store, &mark, NULL), 0);
	assert_int_equal(mark.round, round);
	assert_memory_equal(&mark.root, &expected, SHA256_SIZE);
}

static int put_mark(struct signer *signer, const char *store, int64_t round, const char *root)
{
	struct signer_mark mark = {round, sha256_of(root, 1)};
	return signer_set_mark(signer, store, &mark, NULL);
}

TEST_CASE(test_marks)
{
	struct signer *signer = development_signer();
	struct signer_mark back = {3, sha256_of("c", 1)};

	assert_mark(signer, STORE, 0, NULL);
	assert_int_equal(put_mark(signer, STORE, 7, "g"), 0);
	assert_int_equal(put_mark(signer, STORE, 7, "g"), 0);
	assert_int_equal(put_mark(signer, STORE, 7, "x"), ERR_REFUSED);
	assert_int_equal(put_mark(signer, STORE, 6, "f"), ERR_REFUSED);
	assert_mark(signer, STORE, 7, "g");
	assert_mark(signer, OTHER, 0, NULL);
	assert_int_equal(put_mark(signer, OTHER, 1, "a"), 0);
	assert_int_equal(signer_accept_mark(signer, STORE, &back, slice_make("", 0), NULL),
	                 ERR_REFUSED);
	assert_int_equal(put_mark(signer, "no id", 1, "a"), ERR_REFUSED);
	signer_stop(signer);
	signer = development_signer();
	assert_mark(signer, STORE, 7, "g");
	assert_mark(signer, OTHER, 1, "a");
	assert_int_equal(signer_accept_mark(signer, STORE, &back, slice_of("the disk \"died\""), NULL),
	                 0);
	assert_mark(signer, STORE, 3, "c");
	signer_stop(signer);
	signer = development_signer();
	assert_mark(signer, STORE, 3, "c");
	assert_int_equal(put_mark(signer, STORE, 4, "d"), 0);
	signer_stop(signer);
	assert_int_equal(scratch_run("grep -c '\"purpose\":\"round\"' signer/signer.log | grep -qx 3"),
	                 0);
	assert_int_equal(
		scratch_run("grep -q 'rollback_accepted.*\"reason\":\"the disk' signer/signer.log"), 0);
}

/* The most recently used stores are remembered. */
TEST_CASE(test_many_stores)
{
	struct signer *signer = development_signer();
	char store[SIGNER_STORE_ID_SIZE + 1];

	assert_int_equal(put_mark(signer, STORE, 9, "i"), 0);
	for (int i = 0; i < SIGNER_STORES_MAX - 1; i++) {
		snprintf(store, sizeof store, "%032x", i);
		assert_int_equal(put_mark(signer, store, 1, "a"), 0);
	}
	assert_mark(signer, STORE, 9, "i");
	assert_int_equal(put_mark(signer, STORE, 10, "j"), 0);
	assert_int_equal(put_mark(signer, "abababababababababababababababab", 1, "a"), 0);
	signer_stop(signer);
	signer = development_signer();
	assert_mark(signer, STORE, 10, "j");
	assert_mark(signer, "00000000000000000000000000000000", 0, NULL);
	assert_mark(signer, "00000000000000000000000000000001", 1, "a");
	signer_stop(signer);
}

static void *sign_often(void *context)
{
	for (int i = 0; i < 20; i++) {
		BUF_AUTO struct buf out = {.limit = 4096};
		if (signer_sign(context, SIGNER_REPORT, set, &out, NULL) != 0 || out.size < 60)
			return "failed";
	}
	return NULL;
}

TEST_CASE(test_threads)
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

TEST_CASE(test_unusable_keys)
{
	char directory[256], key[256], other[256], locked[256];
	struct signer *signer = NULL;
	struct error error = {0};

	assert_int_equal(
		scratch_run(
			"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout a.key -out a.pem -subj /CN=A && "
			"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout b.key -out b.pem -subj /CN=B && "
			"openssl ec -aes256 -passout pass:x -in a.key -out locked.key && "
			"openssl req -x509 -newkey ed25519 -nodes -keyout e.key -out e.pem -subj /CN=E"),
		0);
	strcpy(directory, scratch_path("own"));
	strcpy(key, scratch_path("a.key"));
	strcpy(other, scratch_path("b.pem"));
	strcpy(locked, scratch_path("locked.key"));
	struct signer_options options = {.directory = directory, .key = {.key = key, .chain = other}};
	assert_int_equal(signer_start(&options, &signer, &error), ERR_REFUSED);
	assert_non_null(strstr(error.cause, "not belong to the key"));
	strcpy(other, scratch_path("a.pem"));
	assert_int_equal(signer_start(&options, &signer, &error), ERR_REFUSED);
	assert_non_null(strstr(error.cause, "a certification authority's"));
	options.key.key = locked;
	assert_int_equal(signer_start(&options, &signer, &error), ERR_REFUSED);
	assert_non_null(strstr(error.cause, "locked.key"));
	strcpy(key, scratch_path("e.key"));
	strcpy(other, scratch_path("e.pem"));
	options.key.key = key;
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

/* What they sign now would be refused by every verification; expiry is detected separately. */
TEST_CASE(test_certificates_are_a_path)
{
	char directory[256], key[256], chain[256];
	struct signer *signer = NULL;
	struct error error = {0};

	assert_int_equal(
		scratch_run(
			"leaf='-nodes -addext basicConstraints=critical,CA:FALSE' && "
			"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 $leaf -keyout p.key -out p.pem -subj /CN=P && "
			"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 $leaf -keyout q.key -out q.pem -subj /CN=Q && "
			"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-224 $leaf -keyout w.key -out w.pem -subj /CN=W && "
			"cat p.pem q.pem > both.pem && "
			"openssl req -new -key p.key -subj /CN=P -out p.csr && "
			"echo basicConstraints=critical,CA:FALSE > leaf.cnf && "
			"openssl x509 -req -in p.csr -signkey p.key -days 0 -extfile leaf.cnf -out expired.pem"),
		0);
	strcpy(directory, scratch_path("path"));
	strcpy(key, scratch_path("p.key"));
	strcpy(chain, scratch_path("both.pem"));
	struct signer_options options = {.directory = directory, .key = {.key = key, .chain = chain}};
	assert_int_equal(signer_start(&options, &signer, &error), ERR_REFUSED);
	assert_non_null(strstr(error.cause, "not on the verified path"));
	strcpy(key, scratch_path("w.key"));
	strcpy(chain, scratch_path("w.pem"));
	assert_int_equal(signer_start(&options, &signer, &error), ERR_REFUSED);
	assert_non_null(strstr(error.cause, "a curve weaker than"));
	strcpy(key, scratch_path("p.key"));
	strcpy(chain, scratch_path("expired.pem"));
	assert_int_equal(signer_start(&options, &signer, &error), ERR_REFUSED);
	assert_non_null(strstr(error.cause, "has expired on"));
	assert_null(signer);
}

TEST_MAIN(prepare, scratch_end)
