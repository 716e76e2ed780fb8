/* One suite for all implementations of signing keys; the argument names the implementation:
 *   pem  pem-encrypted  pkcs12  pkcs11 (SoftHSM2) */
#include "../unit/seal/support.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "failing.h"
#include "seal/certificate.h"
#include "seal/key_driver.h"

#define MODULE "/usr/lib/softhsm/libsofthsm2.so"

static const char *kind;

static bool is(const char *name)
{
	return strcmp(kind, name) == 0;
}

static bool is_locked(void)
{
	return !is("pem");
}

/* ---- keys of each implementation ---- */

/* Creates a root and an issuer below it. `leaf NAME KEY_OPTIONS EXTENSIONS` then creates NAME.key,
 * NAME.pem and NAME-chain.pem, which is not in order; `hold NAME` stores them for the tested
 * implementation. */
static const char setup[] =
	"printf 'a passphrase\\n' > right && echo other > wrong && printf '\\n' > nothing && "
	"chmod 600 right wrong nothing && mkdir tokens && "
	"echo \"directories.tokendir = $PWD/tokens\" > softhsm2.conf && "
	"cat > openssl.cnf <<END\n"
	"[req]\ndistinguished_name=name\n[name]\n"
	"[ca]\nbasicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n"
	"[leaf]\nbasicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n"
	"[usage]\nbasicConstraints=critical,CA:FALSE\nkeyUsage=critical,keyEncipherment\n"
	"[web]\nbasicConstraints=critical,CA:FALSE\nextendedKeyUsage=serverAuth\n"
	"END\n"
	"cat > tools <<'END'\n"
	"set -e\n"
	"export SOFTHSM2_CONF=$PWD/softhsm2.conf\n"
	"make() {\n"
	" openssl req -new -config openssl.cnf -newkey $2 -nodes -keyout $1.key -out $1.csr -subj \"$3\"\n"
	"}\n"
	"issue() {\n"
	" openssl x509 -req -in $1.csr $2 -out $1.pem -days 30 -set_serial $RANDOM$RANDOM "
	"-extfile openssl.cnf -extensions $3\n"
	"}\n"
	"leaf() {\n"
	" make $1 \"$2\" /CN=$1\n"
	" issue $1 '-CA issuer.pem -CAkey issuer.key' $3\n"
	" cat $1.pem root.pem issuer.pem > $1-chain.pem\n"
	"}\n"
	"hold() {\n"
	" case $KIND in\n"
	" pem) cat $1.key $1-chain.pem > $1.held;;\n"
	" pem-encrypted) openssl pkey -in $1.key -aes256 -passout file:right -out $1.held\n"
	"  cat $1-chain.pem >> $1.held;;\n"
	" pkcs12) openssl pkcs12 -export -inkey $1.key -in $1.pem -certfile $1-chain.pem "
	"-passout file:right -out $1.held;;\n"
	" pkcs11) test -n \"$(ls tokens)\" || softhsm2-util --init-token --free --label 'a token' "
	"--pin \"$(cat right)\" --so-pin 12345678\n"
	"  openssl pkcs8 -topk8 -nocrypt -in $1.key -out $1.p8\n"
	"  softhsm2-util --import $1.p8 --token 'a token' --label $1 --id $(printf %s $1 | od -An -tx1 |"
	" tr -d ' \\n') --pin \"$(cat right)\";;\n"
	" esac\n"
	" chmod 600 $1.key; ! test -e $1.held || chmod 600 $1.held\n"
	"}\n"
	"END\n"
	". ./tools && make root 'ec -pkeyopt ec_paramgen_curve:P-256' /CN=Root && "
	"issue root '-signkey root.key' ca && make issuer 'ec -pkeyopt ec_paramgen_curve:P-256' "
	"/CN=Issuer && issue issuer '-CA root.pem -CAkey root.key' ca && "
	"leaf ec 'ec -pkeyopt ec_paramgen_curve:P-256' leaf && hold ec && "
	"leaf rsa rsa:3072 leaf && hold rsa";

#define TOOLS "KIND=%s; . ./tools; "

static int prepare(void **state)
{
	char path[256];

	if (scratch_begin(state) != 0)
		return -1;
	snprintf(path, sizeof path, "%s", scratch_path("softhsm2.conf"));
	setenv("SOFTHSM2_CONF", path, 1);
	scratch_write("setup", slice_of(setup));
	if (scratch_run("KIND=%s bash -e ./setup", kind) == 0)
		return 0;
	(void)!system("cat /tmp/constancia-test-*/output >&2");
	return -1;
}

static void run_tools(const char *command)
{
	scratch_write("command", slice_of(command));
	if (scratch_run("KIND=%s bash -ec '. ./tools; . ./command'", kind) != 0)
		fail_msg("%s", command);
}

/* The result is valid until the fifteenth further call. */
static const char *keep_path(const char *name)
{
	static char paths[16][256];
	static unsigned at;

	char *path = paths[at++ % 16];
	snprintf(path, sizeof paths[0], "%s", scratch_path(name));
	return path;
}

static struct key_source source_of(const char *name, const char *passphrase)
{
	static char uri[512];
	char file[64];
	struct key_source source = {.passphrase = passphrase ? keep_path(passphrase) : NULL};

	snprintf(file, sizeof file, "%s.held", name);
	source.key = keep_path(file);
	if (is("pkcs11")) {
		snprintf(uri, sizeof uri, "pkcs11:token=a%%20token;object=%s;type=private?module-path=%s",
		         name, MODULE);
		source.key = uri;
		snprintf(file, sizeof file, "%s-chain.pem", name);
		source.chain = keep_path(file);
	}
	return source;
}

static struct key *open_key(const char *name)
{
	struct key_source source = source_of(name, is_locked() ? "right" : NULL);
	struct key *key = NULL;
	struct error error = {0};

	if (key_open(&source, &key, &error) != 0)
		fail_msg("%s: %s", name, error.cause);
	return key;
}

static void assert_fails(const struct key_source *source, int code, const char *why)
{
	struct key *key = NULL;
	struct error error = {0};

	assert_int_equal(key_open(source, &key, &error), code);
	if (!strstr(error.cause, why))
		fail_msg("%s instead of %s", error.cause, why);
	assert_null(key);
}

static void assert_refused(const struct key_source *source, const char *why)
{
	assert_fails(source, ERR_REFUSED, why);
}

/* ---- all implementations ---- */

/* Verifies the signature with an independent program. */
static void assert_signs(struct key *key, const char *name, const char *text)
{
	BUF_AUTO struct buf signature = {.limit = 4096};
	struct error error = {0};

	if (key_sign(key, slice_of(text), &signature, &error) != 0)
		fail_msg("%s", error.cause);
	scratch_write("signed", slice_of(text));
	scratch_write("signature", buf_slice(&signature));
	assert_int_equal(scratch_run("openssl x509 -in %s.pem -pubkey -noout > public && openssl dgst "
	                             "-sha256 -verify public -signature signature signed",
	                             name),
	                 0);
}

TEST_CASE(test_signs)
{
	static const char *const names[] = {"ec", "rsa"};

	for (size_t i = 0; i < 2; i++) {
		struct key *key = open_key(names[i]);
		assert_signs(key, names[i], "one");
		assert_signs(key, names[i], "another, which is longer");
		key_close(key);
	}
}

/* The order in the file is arbitrary; a signature needs its signer first. */
TEST_CASE(test_certificates_are_a_path_up_to_the_root)
{
	static const char *const wanted[] = {"CN=ec", "CN=Issuer", "CN=Root"};
	struct key *key = open_key("ec");
	char name[256];

	assert_int_equal(sk_X509_num(key_certificates(key)), 3);
	for (int i = 0; i < 3; i++) {
		assert_true(certificate_name(X509_get_subject_name(sk_X509_value(key_certificates(key), i)),
		                             name, sizeof name));
		assert_string_equal(name, wanted[i]);
	}
	assert_ptr_equal(key_root(key), sk_X509_value(key_certificates(key), 2));
	key_close(key);
}

TEST_CASE(test_what_does_not_lead_to_its_root_is_refused)
{
	static const struct {
		const char *made, *cause;
	} rows[] = {
		{"cat ec.pem issuer.pem > short.pem",
	     "short.pem does not lead to a root: the certificate of CN=Root is missing"},
		{"cat ec.pem root.pem > short.pem", "a certificate inside is not on the verified path"},
		{"cat ec.pem > short.pem",
	     "short.pem does not lead to a root: the certificate of CN=Issuer is missing"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct key_source source = source_of("ec", is_locked() ? "right" : NULL);
		struct error error = {0};
		struct key *key = NULL;
		run_tools(rows[i].made);
		source.chain = keep_path("short.pem");
		assert_int_equal(key_open(&source, &key, &error), ERR_REFUSED);
		assert_non_null(strstr(error.cause, rows[i].cause));
	}
}

TEST_CASE(test_a_wrong_passphrase_is_refused)
{
	struct key_source wrong = source_of("ec", "wrong");
	struct key_source none = source_of("ec", NULL);
	struct key_source empty = source_of("ec", "nothing");
	struct key_source absent = source_of("ec", "absent");
	struct key *key = NULL;

	assert_refused(&empty, "too long for a passphrase");
	assert_int_equal(key_open(&absent, &key, NULL), ERR_IO);
	if (!is_locked())
		return;
	if (is("pkcs11"))
		assert_fails(&wrong, ERR_PIN, "rejected the PIN");
	else
		assert_refused(&wrong, "wrong passphrase");
	assert_refused(&none, "signer.passphrase_file");
}

TEST_CASE(test_a_passphrase_can_be_a_credential)
{
	struct key_source source = source_of("ec", NULL);
	struct key *key = NULL;

	source.passphrase = "right";
	assert_refused(&source, "the supervisor provides none");
	setenv("CREDENTIALS_DIRECTORY", keep_path("credentials"), 1);
	assert_int_equal(
		scratch_run("mkdir -p credentials && cp right credentials && chmod 440 credentials/right"),
		0);
	assert_int_equal(key_open(&source, &key, NULL), 0);
	key_close(key);
	assert_int_equal(scratch_run("chmod 444 credentials/right"), 0);
	assert_refused(&source, "users other than its owner");
	unsetenv("CREDENTIALS_DIRECTORY");
}

TEST_CASE(test_secrets_that_others_may_read_are_refused)
{
	static const char *const modes[] = {"640", "604", "620", "602"};

	for (size_t i = 0; i < 4; i++) {
		struct key_source source = source_of("ec", "right");
		struct key *key = NULL;
		assert_int_equal(scratch_run("chmod %s right", modes[i]), 0);
		assert_refused(&source, "users other than its owner");
		assert_int_equal(scratch_run("chmod 400 right"), 0);
		if (!is("pkcs11")) {
			assert_int_equal(scratch_run("chmod %s ec.held", modes[i]), 0);
			assert_refused(&source, "users other than its owner");
			assert_int_equal(scratch_run("chmod 400 ec.held"), 0);
		}
		assert_int_equal(key_open(&source, &key, NULL), 0);
		key_close(key);
	}
}

TEST_CASE(test_the_certificate_of_another_key_is_refused)
{
	struct key_source source = source_of("ec", "right");

	run_tools("leaf other 'ec -pkeyopt ec_paramgen_curve:P-256' leaf");
	source.chain = keep_path("other-chain.pem");
	assert_refused(&source, "does not belong to the key");
	source.chain = keep_path("rsa-chain.pem");
	assert_refused(&source, "does not belong to the key");
	source.chain = keep_path("right");
	assert_refused(&source, "no certificates");
}

TEST_CASE(test_what_is_not_fit_is_refused)
{
	static const struct {
		const char *name, *key, *extensions, *why;
	} cases[] = {
		{"short", "rsa:2048", "leaf", "it must have at least 3072"},
		{"weak", "ec -pkeyopt ec_paramgen_curve:P-224", "leaf", "a curve weaker than P-256"},
		{"usage", "ec -pkeyopt ec_paramgen_curve:P-256", "usage", "may not sign"},
		{"web", "ec -pkeyopt ec_paramgen_curve:P-256", "web", "is not for signing documents"},
		{"above", "ec -pkeyopt ec_paramgen_curve:P-256", "ca", "is of a key that may not sign"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct key_source source = source_of(cases[i].name, is_locked() ? "right" : NULL);
		char command[256];
		snprintf(command, sizeof command, "leaf %s '%s' %s && hold %s", cases[i].name, cases[i].key,
		         cases[i].extensions, cases[i].name);
		run_tools(command);
		assert_refused(&source, cases[i].why);
	}
}

TEST_CASE(test_its_time)
{
	struct key *key = open_key("ec");
	struct error error = {0};
	int64_t now_us = clock_now_us();

	assert_int_equal(key_check_time(key, now_us, NULL), 0);
	assert_int_equal(key_check_time(key, now_us + 40 * US_PER_DAY, &error), ERR_UNAVAILABLE);
	assert_non_null(strstr(error.cause, "CN=ec has expired on"));
	assert_int_equal(key_check_time(key, now_us - US_PER_DAY, &error), ERR_UNAVAILABLE);
	assert_non_null(strstr(error.cause, "is not valid before"));
	key_close(key);
}

/* Returns the number of the first wrong condition in a process that has given up the privileges
 * that its key does not need; 0: none. */
static int first_wrong(struct key *key)
{
	struct key_calls calls = key_calls(key);
	struct error error = {0};
	BUF_AUTO struct buf signature = {.limit = 4096};
	char *const words[] = {"/bin/true", NULL};

	/* A confined process also finds a token again after it was removed. */
	if (is("pkcs11") && (scratch_run("mv tokens away && mkdir tokens") != 0 ||
	                     key_sign(key, slice_of("away"), &signature, NULL) != ERR_UNAVAILABLE ||
	                     scratch_run("rmdir tokens && mv away tokens") != 0))
		return 9;
	if (confine_calls(calls.calls, calls.count, &error) != 0)
		return 1;
	for (int i = 0; i < 3; i++)
		if (key_sign(key, slice_of("confined"), &signature, &error) != 0) {
			print_error("%s\n", error.cause);
			return 2;
		}
	if (fork() >= 0 || errno != EPERM)
		return 3;
	if (execve(words[0], words, NULL) == 0 || errno != EPERM)
		return 4;
#ifndef CONSTANCIA_COUNTS_COVERAGE /* these builds write files at the end */
	if (openat(AT_FDCWD, scratch_path("made"), O_WRONLY | O_CREAT, 0600) >= 0 || errno != EPERM)
		return 5;
#endif
	if (unlink(scratch_path("right")) == 0 || errno != EPERM)
		return 6;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	if (!is("pkcs11") && (listener >= 0 || errno != EPERM))
		return 7;
	if (listener >= 0 && (listen(listener, 1) == 0 || errno != EPERM))
		return 8;
	return 0;
}

TEST_CASE(test_signs_in_a_confined_process)
{
	static const char *const names[] = {"ec", "rsa"};

	for (size_t i = 0; i < 2; i++) {
		int status = 0;
		pid_t child = fork();
		if (child == 0) /* the module is loaded after the fork */
			_exit(first_wrong(open_key(names[i])));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

/* ---- tokens ---- */

/* As when the reader was unplugged or the appliance restarted. */
TEST_CASE(test_a_token_that_was_away_signs_again)
{
	BUF_AUTO struct buf signature = {.limit = 4096};
	struct error error = {0};

	if (!is("pkcs11"))
		return;
	struct key *key = open_key("ec");
	assert_int_equal(scratch_run("mv tokens away && mkdir tokens"), 0);
	assert_int_equal(key_sign(key, slice_of("x"), &signature, &error), ERR_UNAVAILABLE);
	assert_int_equal(key_sign(key, slice_of("x"), &signature, &error), ERR_UNAVAILABLE);
	assert_int_equal(signature.size, 0);
	assert_int_equal(scratch_run("rmdir tokens && mv away tokens"), 0);
	assert_signs(key, "ec", "here again");
	key_close(key);
}

TEST_CASE(test_which_key_is_meant_is_certain)
{
	struct key_source source = source_of("ec", "right");
	char uri[512];

	if (!is("pkcs11"))
		return;
	source.key = uri;
	snprintf(uri, sizeof uri, "pkcs11:token=a%%20token;object=none?module-path=%s", MODULE);
	assert_refused(&source, "has no key that matches");
	snprintf(uri, sizeof uri, "pkcs11:token=none;object=ec?module-path=%s", MODULE);
	assert_refused(&source, "no token matches");
	snprintf(uri, sizeof uri, "pkcs11:token=a%%20token;object=ec?module-path=%s",
	         keep_path("openssl.cnf"));
	assert_refused(&source, "cannot be loaded");
	run_tools("openssl pkcs8 -topk8 -nocrypt -in ec.key -out again.p8 && softhsm2-util --import "
	          "again.p8 --token 'a token' --label again --id 77 --pin \"$(cat right)\" && "
	          "softhsm2-util --import rsa.p8 --token 'a token' --label again --id 78 --pin "
	          "\"$(cat right)\"");
	snprintf(uri, sizeof uri, "pkcs11:token=a%%20token;object=again?module-path=%s", MODULE);
	assert_refused(&source, "several keys");
	struct key *key = NULL;
	snprintf(uri, sizeof uri,
	         "pkcs11:token=a%%20token;object=again;id=%%77?module-path=%s&pin-source="
	         "file:%s",
	         MODULE, keep_path("right"));
	source.passphrase = NULL;
	assert_int_equal(key_open(&source, &key, NULL), 0);
	key_close(key);
}

static void lose_token(void)
{
	assert_int_equal(scratch_run("mv tokens away && mkdir tokens"), 0);
}

static void find_token(void)
{
	assert_int_equal(scratch_run("rmdir tokens && mv away tokens"), 0);
}

/* Whichever call fails: nothing is signed, and afterwards everything works again. */
TEST_CASE(test_calls_of_the_module_that_fail)
{
	BUF_AUTO struct buf signature = {.limit = 4096};
	struct key_source source = source_of("ec", "right");
	struct error error = {0};
	int at, calls = 0;

	if (!is("pkcs11"))
		return;
	for (at = 1;; at++, calls++) {
		struct key *key = NULL;
		failing_arm(FAILING_TOKEN, at);
		int result = key_open(&source, &key, &error);
		const char *failed = failing_disarm();
		key_close(key);
		if (!failed)
			break;
		if (result != ERR_REFUSED && result != ERR_NO_MEMORY)
			fail_msg("%s: %d", failed, result);
	}
	assert_int_equal(calls, 7);
	struct key *key = open_key("ec");
	for (at = 1, calls = 0;; at++, calls++) {
		lose_token();
		assert_int_equal(key_sign(key, slice_of("x"), &signature, &error), ERR_UNAVAILABLE);
		find_token();
		failing_arm(FAILING_TOKEN, at);
		int result = key_sign(key, slice_of("x"), &signature, &error);
		const char *failed = failing_disarm();
		if (!failed)
			break;
		if (result != ERR_UNAVAILABLE)
			fail_msg("%s: %d", failed, result);
		assert_signs(key, "ec", "as before");
	}
	assert_int_equal(calls, 6);
	key_close(key);
}

int main(int count, char **arguments)
{
	kind = count > 1 ? arguments[1] : "pem";
	return tests_run(prepare, scratch_end, NULL, NULL);
}
