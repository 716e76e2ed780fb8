#include "support.h"

#include <openssl/evp.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scratch.h"
#include "seal/receipt_signer.h"

static char directory[SCRATCH_MAX];

static int set_up(void **state)
{
	(void)state;
	scratch_make(directory);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_remove(directory);
	return 0;
}

static struct receipt_signer *start(void)
{
	struct receipt_signer *signer = NULL;
	struct error error = {0};
	if (receipt_signer_start(directory, 0, &signer, &error) != OK)
		fail_msg("%s", error.cause);
	return signer;
}

static bool verify_after(const char *prefix, const uint8_t *key, const struct sha256 *root,
                         const uint8_t *signature)
{
	char message[64 + SHA256_SIZE];
	const size_t size = strlen(prefix) + SHA256_SIZE;
	memcpy(message, prefix, strlen(prefix));
	memcpy(message + strlen(prefix), root->bytes, SHA256_SIZE);
	EVP_PKEY *public = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, RECEIPT_KEY_SIZE);
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	assert_int_equal(EVP_DigestVerifyInit(context, NULL, NULL, NULL, public), 1);
	bool good = EVP_DigestVerify(context, signature, RECEIPT_SIGNATURE_SIZE,
	                             (const uint8_t *)message, size) == 1;
	EVP_MD_CTX_free(context);
	EVP_PKEY_free(public);
	return good;
}

static bool verify(const uint8_t *key, const struct sha256 *root, const uint8_t *signature)
{
	return verify_after(RECEIPT_SIGNED_PREFIX, key, root, signature);
}

static void assert_signs(struct receipt_signer *signer, unsigned lane, uint32_t number)
{
	uint8_t signature[RECEIPT_SIGNATURE_SIZE];
	const struct sha256 root = sha256_of(&number, sizeof number);
	receipt_signer_begin(signer, lane, &root);
	assert_true(receipt_signer_end(signer, lane, signature));
	assert_true(verify(receipt_signer_key(signer), &root, signature));
}

/* The only child of this process. */
static pid_t find_child(void)
{
	char path[64], text[32] = "";
	snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
	FILE *found = fopen(path, "r");
	assert_non_null(found);
	assert_non_null(fgets(text, sizeof text, found));
	fclose(found);
	return (pid_t)atoi(text);
}

/* A proof is no receipt, and takes no lane of a sequencer. */
TEST_CASE(test_the_key_proves_for_whom_it_signs)
{
	struct receipt_signer *signer = start();
	uint8_t signature[RECEIPT_SIGNATURE_SIZE];
	const struct sha256 root = sha256_of("root", 4), certificate = sha256_of("certificate", 11);
	receipt_signer_begin(signer, RECEIPT_SIGNER_LANES - 1, &root);
	assert_true(receipt_signer_prove(signer, &certificate, signature));
	const uint8_t *key = receipt_signer_key(signer);
	assert_true(verify_after("constancia-receipt-key/1\n", key, &certificate, signature));
	assert_false(verify(key, &certificate, signature));
	assert_true(receipt_signer_end(signer, RECEIPT_SIGNER_LANES - 1, signature));
	assert_true(verify(key, &root, signature));
	receipt_signer_stop(signer);
}

TEST_CASE(test_signatures_of_all_lanes)
{
	struct receipt_signer *signer = start();
	for (uint32_t i = 0; i < 200; i++)
		assert_signs(signer, i % RECEIPT_SIGNER_LANES, i);
	/* The lanes do not mix their answers. */
	struct sha256 roots[RECEIPT_SIGNER_LANES];
	for (unsigned lane = 0; lane < RECEIPT_SIGNER_LANES; lane++) {
		roots[lane] = sha256_of(&lane, sizeof lane);
		receipt_signer_begin(signer, lane, &roots[lane]);
	}
	for (unsigned lane = RECEIPT_SIGNER_LANES; lane-- > 0;) {
		uint8_t signature[RECEIPT_SIGNATURE_SIZE];
		assert_true(receipt_signer_end(signer, lane, signature));
		assert_true(verify(receipt_signer_key(signer), &roots[lane], signature));
	}
	receipt_signer_stop(signer);
}

TEST_CASE(test_the_key_stays)
{
	uint8_t key[RECEIPT_KEY_SIZE];
	char path[SCRATCH_MAX + 32];
	struct stat facts;
	struct receipt_signer *signer = start();
	memcpy(key, receipt_signer_key(signer), sizeof key);
	receipt_signer_stop(signer);
	snprintf(path, sizeof path, "%s/receipt.key", directory);
	assert_int_equal(stat(path, &facts), 0);
	assert_int_equal(facts.st_mode & 0777, 0600);
	signer = start();
	assert_memory_equal(key, receipt_signer_key(signer), sizeof key);
	receipt_signer_stop(signer);
}

TEST_CASE(test_wrong_key_files)
{
	char path[SCRATCH_MAX + 32];
	struct receipt_signer *signer;
	struct error error = {0};
	snprintf(path, sizeof path, "%s/receipt.key", directory);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs("no key", file);
	fclose(file);
	assert_int_equal(chmod(path, 0400), 0);
	assert_int_equal(receipt_signer_start(directory, 0, &signer, &error), ERR_REFUSED);
	assert_non_null(strstr(error.cause, "receipt.key has no Ed25519 key in PEM"));
	assert_int_equal(chmod(path, 0444), 0);
	assert_int_equal(receipt_signer_start(directory, 0, &signer, &error), ERR_REFUSED);
}

TEST_CASE(test_a_child_that_exits)
{
	uint8_t signature[RECEIPT_SIGNATURE_SIZE];
	const struct sha256 root = sha256_of("a", 1);
	struct receipt_signer *signer = start();
	assert_false(receipt_signer_has_ended(signer));
	assert_int_equal(kill(find_child(), SIGKILL), 0);
	while (!receipt_signer_has_ended(signer))
		usleep(1000);
	receipt_signer_begin(signer, 0, &root);
	assert_false(receipt_signer_end(signer, 0, signature));
	receipt_signer_stop(signer);
}

/* The answer of an earlier batch is never taken for that of a later one. */
TEST_CASE(test_a_child_that_is_late)
{
	uint8_t signature[RECEIPT_SIGNATURE_SIZE];
	const struct sha256 root = sha256_of("late", 4), later = sha256_of("later", 5);
	struct receipt_signer *signer = start();
	pid_t child = find_child();
	assert_int_equal(kill(child, SIGSTOP), 0);
	receipt_signer_begin(signer, 3, &root);
	assert_false(receipt_signer_end(signer, 3, signature));
	receipt_signer_begin(signer, 3, &root); /* not asked */
	assert_false(receipt_signer_end(signer, 3, signature));
	assert_int_equal(kill(child, SIGCONT), 0);
	assert_signs(signer, 4, 7);
	bool signs = false;
	for (int i = 0; i < 1000 && !signs; i++) { /* until the pause is over */
		usleep(50000);
		receipt_signer_begin(signer, 3, &later);
		signs = receipt_signer_end(signer, 3, signature);
	}
	assert_true(signs && verify(receipt_signer_key(signer), &later, signature));
	assert_signs(signer, 3, 8);
	receipt_signer_stop(signer);
}

/* One that was never late for long is not killed; one that hangs is. */
TEST_CASE(test_a_child_that_hangs)
{
	uint8_t signature[RECEIPT_SIGNATURE_SIZE];
	const struct sha256 root = sha256_of("hangs", 5);
	assert_int_equal(setenv("TORTURE_SIZES", "receipt_stuck_us=1", 1), 0);
	struct receipt_signer *signer = start();
	pid_t child = find_child();
	assert_int_equal(kill(child, SIGSTOP), 0);
	receipt_signer_begin(signer, 0, &root);
	assert_false(receipt_signer_end(signer, 0, signature));
	assert_int_equal(kill(child, SIGCONT), 0);
	assert_signs(signer, 1, 1);
	assert_int_equal(kill(child, SIGSTOP), 0);
	receipt_signer_begin(signer, 2, &root);
	assert_false(receipt_signer_end(signer, 2, signature));
	usleep(100000);
	assert_false(receipt_signer_has_ended(signer));
	receipt_signer_begin(signer, 3, &root);
	assert_false(receipt_signer_end(signer, 3, signature));
	while (!receipt_signer_has_ended(signer))
		usleep(1000);
	receipt_signer_stop(signer);
	assert_int_equal(unsetenv("TORTURE_SIZES"), 0);
}

TEST_MAIN_EACH(set_up, tear_down)
