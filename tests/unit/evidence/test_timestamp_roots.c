/* Roots of timestamps are recorded once, before the data that needs them is written. */
#include "testing.h"
#include "sample.h"
#include "evidence/timestamp_roots.h"
#include "store/evidence/timestamp_root_records.h"
#include "time_authority.h"

static struct sample sample;
static struct service service;
static struct time_authority authorities[RECORDED_ROOTS_MAX + 2];
static struct error error;
static int written;
static bool fails;

int __real_store_add_timestamp_root(struct store *store, const struct sha256 *sha256,
                                    struct slice pem, struct error *why);
int __wrap_store_add_timestamp_root(struct store *store, const struct sha256 *sha256,
                                    struct slice pem, struct error *why);
int __wrap_store_add_timestamp_root(struct store *store, const struct sha256 *sha256,
                                    struct slice pem, struct error *why)
{
	written++;
	return fails ? error_cause(why, ERR_IO, "the disk is gone")
	             : __real_store_add_timestamp_root(store, sha256, pem, why);
}

static int set_up(void **state)
{
	sample_open(&sample, MODALITY_HASH_ONLY, 1);
	memset(&service, 0, sizeof service);
	service.store = sample.store;
	written = 0;
	fails = false;
	return 0;
}

static void add_der(X509 *certificate, struct buf *out)
{
	unsigned char *der = NULL;
	int size = i2d_X509(certificate, &der);
	assert_true(size > 0);
	buf_add(out, der, (size_t)size);
	OPENSSL_free(der);
}

static int keep(const struct time_authority *authority, bool with_root)
{
	BUF_AUTO struct buf path = {.limit = 65536};
	add_der(authority->certificate, &path);
	if (with_root)
		add_der(authority->root, &path);
	return timestamp_roots_record(&service, buf_slice(&path), &error);
}

/* Returns the number of roots of the authorities that follow the one in `out`. */
static size_t on_record(struct buf *out)
{
	size_t count = 0;
	assert_int_equal(timestamp_roots_add(sample.store, out, &error), OK);
	for (size_t i = 0; i < sizeof authorities / sizeof *authorities; i++) {
		BUF_AUTO struct buf pem = {.limit = 65536};
		time_authority_trust(&authorities[i], &pem);
		const char *found = out->size > 0 ? memmem(out->data, out->size, pem.data, pem.size) : NULL;
		count += found != NULL;
		if (found)
			assert_null(
				memmem(found + 1, (size_t)(out->data + out->size - found - 1), pem.data, pem.size));
	}
	return count;
}

TEST_CASE(a_root_is_put_on_record_once)
{
	BUF_AUTO struct buf out = {.limit = 1 << 20};
	BUF_AUTO struct buf again = {.limit = 1 << 20};
	for (int i = 0; i < 3; i++) {
		assert_int_equal(keep(&authorities[0], true), OK);
		assert_int_equal(keep(&authorities[1], true), OK);
	}
	assert_int_equal(written, 2);
	assert_int_equal(on_record(&out), 2);
	/* A program that starts knows nothing of it and changes nothing. */
	memset(&service.recorded_roots, 0, sizeof service.recorded_roots);
	assert_int_equal(keep(&authorities[0], true), OK);
	assert_int_equal(written, 3);
	/* A recorded root is recorded only once. */
	time_authority_trust(&authorities[1], &again);
	assert_int_equal(on_record(&again), 2);
}

/* A path without its root gives nothing to record. */
TEST_CASE(only_roots_are_kept)
{
	BUF_AUTO struct buf out = {.limit = 1 << 20};
	assert_int_equal(keep(&authorities[0], false), OK);
	assert_int_equal(on_record(&out), 0);
	assert_int_equal(out.size, 0);
	assert_int_equal(keep(&authorities[0], true), OK);
	assert_int_equal(on_record(&out), 1);
}

/* Then nothing is written that needs the root, and the next call retries. */
TEST_CASE(what_could_not_be_written_is_not_believed)
{
	BUF_AUTO struct buf out = {.limit = 1 << 20};
	fails = true;
	assert_int_equal(keep(&authorities[0], true), ERR_IO);
	assert_int_equal(keep(&authorities[0], true), ERR_IO);
	fails = false;
	assert_int_equal(keep(&authorities[0], true), OK);
	assert_int_equal(written, 3);
	assert_int_equal(on_record(&out), 1);
}

/* More of them than the cache holds. */
TEST_CASE(many_are_kept)
{
	BUF_AUTO struct buf out = {.limit = 1 << 20};
	size_t count = sizeof authorities / sizeof *authorities;
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < count; i++)
			assert_int_equal(keep(&authorities[i], true), OK);
	assert_int_equal(on_record(&out), count);
}

static int make_authorities(void **state)
{
	for (size_t i = 0; i < sizeof authorities / sizeof *authorities; i++) {
		char name[32];
		snprintf(name, sizeof name, "Authority %zu", i);
		time_authority_make(&authorities[i], name, INT64_C(1700000000000000),
		                    INT64_C(2000000000000000));
	}
	return 0;
}

static int drop_authorities(void **state)
{
	for (size_t i = 0; i < sizeof authorities / sizeof *authorities; i++)
		time_authority_free(&authorities[i]);
	return 0;
}

int main(void)
{
	return tests_run(make_authorities, drop_authorities, set_up, sample_tear_down);
}
