/* The list of signers: its only valid form, and what it states about a signature. */
#include "testing.h"
#include "archive/signer_list.h"
#include "tlog/note.h"

#define BEGIN_US (1000 * US_PER_DAY)

static struct arena arena;
static struct buf text;
static struct error error;

static int set_up(void **state)
{
	arena_init(&arena, (size_t)256 << 20);
	buf_init(&text, SIGNER_LIST_TEXT_MAX);
	error_clear(&error);
	return 0;
}

static int tear_down(void **state)
{
	arena_free(&arena);
	buf_free(&text);
	return 0;
}

static struct signer_list_item item(const char *certificate, int64_t from_us, int64_t until_us)
{
	return (struct signer_list_item){
		.certificate = slice_of(certificate),
		.sha256 = sha256_of(certificate, strlen(certificate)),
		.used_from_us = from_us,
		.used_until_us = until_us,
		.reason = until_us == TIME_NONE ? NULL : "stolen",
	};
}

static struct signer_list list_of(const struct signer_list_item *items, size_t count)
{
	return (struct signer_list){.service_name = "Service",
	                            .service_prefix = "svc",
	                            .service_url = "https://service.example",
	                            .issued_at_us = BEGIN_US,
	                            .items = items,
	                            .count = count};
}

static int read_back(const struct signer_list *given, struct signer_list *ret)
{
	buf_clear(&text);
	signer_list_write(given, &text);
	assert_int_equal(buf_check(&text), OK);
	return signer_list_read(&arena, buf_slice(&text), ret, &error);
}

static void refuse(const struct signer_list_item *items, size_t count, const char *why)
{
	struct signer_list given = list_of(items, count), found;
	error_clear(&error);
	assert_int_equal(read_back(&given, &found), ERR_INVALID_EVIDENCE);
	if (!strstr(error.cause, why))
		fail_msg("'%s' does not say '%s'", error.cause, why);
}

TEST_CASE(test_what_is_written_is_read)
{
	const struct signer_list_item items[] = {item("first", BEGIN_US, BEGIN_US + 5),
	                                         item("second", BEGIN_US + 5, TIME_NONE)};
	struct signer_list given = list_of(items, 2), found;
	assert_int_equal(read_back(&given, &found), OK);
	assert_int_equal(found.count, 2);
	assert_int_equal(found.issued_at_us, BEGIN_US);
	assert_string_equal(found.service_name, "Service");
	assert_string_equal(found.items[0].reason, "stolen");
	assert_int_equal(found.items[0].used_until_us, BEGIN_US + 5);
	assert_null(found.items[1].reason);
	assert_true(slice_is(found.items[1].certificate, "second"));
	assert_ptr_equal(signer_list_find(&found, &items[1].sha256), &found.items[1]);
	struct sha256 other = sha256_of("third", 5);
	assert_null(signer_list_find(&found, &other));
}

TEST_CASE(test_a_list_that_cannot_be_is_refused)
{
	struct signer_list_item items[2] = {item("first", BEGIN_US, TIME_NONE),
	                                    item("second", BEGIN_US, TIME_NONE)};
	refuse(items, 0, "certificates");
	refuse(items, 2, "2 certificates are in force");
	items[0] = item("second", BEGIN_US, BEGIN_US);
	refuse(items, 2, "listed twice");
	items[0] = item("first", BEGIN_US, BEGIN_US);
	items[0].reason = NULL;
	refuse(items, 1, "reason");
	items[1].reason = "still in force";
	refuse(&items[1], 1, "reason");
	items[0] = item("first", BEGIN_US, TIME_NONE);
	items[0].sha256.bytes[0] ^= 1;
	refuse(items, 1, "sha256");
}

TEST_CASE(test_more_than_the_limits_are_refused)
{
	static struct signer_list_item items[SIGNER_LIST_ITEMS_MAX + 1];
	static char names[SIGNER_LIST_ITEMS_MAX + 1][8];
	struct signer_list found;
	for (size_t i = 0; i <= SIGNER_LIST_ITEMS_MAX; i++) {
		snprintf(names[i], sizeof names[i], "%zu", i);
		items[i] = item(names[i], BEGIN_US, BEGIN_US);
	}
	struct signer_list most = list_of(items, SIGNER_LIST_ITEMS_MAX);
	assert_int_equal(read_back(&most, &found), OK);
	refuse(items, SIGNER_LIST_ITEMS_MAX + 1, "");
	static char large[SIGNER_LIST_TEXT_MAX + 1];
	memset(large, ' ', sizeof large);
	assert_int_equal(signer_list_read(&arena, slice_make(large, sizeof large), &found, &error),
	                 ERR_INVALID_EVIDENCE);
	assert_non_null(strstr(error.cause, "too large"));
}

/* A list that is cut anywhere, or has any byte changed or added, is a different list or invalid. */
TEST_CASE(test_no_byte_is_free)
{
	const struct signer_list_item items[] = {item("first", BEGIN_US, BEGIN_US + 5),
	                                         item("second", BEGIN_US + 5, TIME_NONE)};
	struct signer_list given = list_of(items, 2), found;
	char bytes[2048];
	assert_int_equal(read_back(&given, &found), OK);
	size_t size = text.size;
	assert_true(size + 1 < sizeof bytes);
	for (size_t i = 0; i < size; i++) {
		memcpy(bytes, text.data, size);
		assert_int_not_equal(signer_list_read(&arena, slice_make(bytes, i), &found, &error), OK);
		bytes[i] = bytes[i] == ' ' ? '\t' : ' ';
		BUF_AUTO struct buf again = {.limit = SIGNER_LIST_TEXT_MAX};
		if (signer_list_read(&arena, slice_make(bytes, size), &found, &error))
			continue;
		signer_list_write(&found, &again);
		assert_true(slice_equal(buf_slice(&again), slice_make(bytes, size)));
	}
	memcpy(bytes, text.data, size);
	bytes[size] = ' ';
	assert_int_not_equal(signer_list_read(&arena, slice_make(bytes, size + 1), &found, &error), OK);
}

TEST_CASE(test_a_signature_counts_between_beginning_and_end)
{
	const int64_t end_us = BEGIN_US + US_PER_DAY, tolerated = SIGNER_LIST_TOLERANCE_US;
	struct signer_list_item ended = item("first", BEGIN_US, end_us);
	struct signer_list_item in_force = item("second", BEGIN_US, TIME_NONE);
	assert_int_equal(signer_list_judge(&ended, end_us), SIGNER_USE_IN_FORCE);
	assert_int_equal(signer_list_judge(&ended, end_us + 1), SIGNER_USE_ENDED);
	assert_int_equal(signer_list_judge(&ended, BEGIN_US - tolerated), SIGNER_USE_IN_FORCE);
	assert_int_equal(signer_list_judge(&ended, BEGIN_US - tolerated - 1), SIGNER_USE_TOO_EARLY);
	assert_int_equal(signer_list_judge(&ended, TIME_NONE), SIGNER_USE_UNDATED);
	assert_int_equal(signer_list_judge(&in_force, end_us + 1), SIGNER_USE_IN_FORCE);
	assert_int_equal(signer_list_judge(&in_force, TIME_NONE), SIGNER_USE_IN_FORCE);
	assert_int_equal(signer_list_judge(&in_force, BEGIN_US - tolerated - 1), SIGNER_USE_TOO_EARLY);
}

TEST_CASE(test_a_newer_list_says_all_again)
{
	struct signer_list_item was[] = {item("first", BEGIN_US, BEGIN_US + 5),
	                                 item("second", BEGIN_US + 5, TIME_NONE)};
	struct signer_list_item is[] = {was[0], item("second", BEGIN_US + 5, BEGIN_US + 9),
	                                item("third", BEGIN_US + 9, TIME_NONE)};
	struct signer_list older = list_of(was, 2), newer = list_of(is, 3);
	assert_true(signer_list_extends(&newer, &older));
	assert_true(signer_list_extends(&older, &older));
	assert_false(signer_list_extends(&older, &newer));
	is[0].used_until_us++;
	assert_false(signer_list_extends(&newer, &older));
	is[0] = item("first", BEGIN_US, TIME_NONE);
	assert_false(signer_list_extends(&newer, &older));
	is[0] = was[0];
	is[1].used_from_us++;
	assert_false(signer_list_extends(&newer, &older));
}

/* ---- keys without certificates ---- */

#define RECEIPT_KEY "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
#define OTHER_KEY "gAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

/* A verifier key with the right identifier. */
static const char *log_key(char vkey[NOTE_VKEY_SIZE])
{
	const uint8_t bytes[NOTE_KEY_SIZE] = {1, 2, 3};
	const struct note_key key = note_key_make("log.example/segments", NOTE_ED25519, bytes);
	note_key_write(&key, vkey);
	return vkey;
}

static struct signer_list list_with_keys(const struct signer_list_item *certificate,
                                         enum signer_list_kind kind,
                                         const struct signer_list_key *keys, size_t count)
{
	struct signer_list list = list_of(certificate, 1);
	list.keys[kind].items = keys;
	list.keys[kind].count = count;
	return list;
}

TEST_CASE(test_keys_make_a_list_of_version_2)
{
	char vkey[NOTE_VKEY_SIZE];
	const struct signer_list_item certificate = item("first", BEGIN_US, TIME_NONE);
	const struct signer_list_key log = {log_key(vkey), BEGIN_US, TIME_NONE, NULL};
	const struct signer_list_key receipts[] = {{OTHER_KEY, BEGIN_US, BEGIN_US + 1, NULL},
	                                           {RECEIPT_KEY, BEGIN_US, TIME_NONE, NULL}};
	struct signer_list given = list_with_keys(&certificate, SIGNER_LIST_RECEIPT, receipts, 2);
	struct signer_list found = list_of(&certificate, 1);
	assert_int_equal(read_back(&found, &found), OK);
	assert_non_null(strstr(text.data, "\"v\":1}"));
	assert_null(strstr(text.data, "keys"));
	given.keys[SIGNER_LIST_LOG].items = &log;
	given.keys[SIGNER_LIST_LOG].count = 1;
	assert_int_equal(read_back(&given, &found), OK);
	assert_non_null(strstr(text.data, "\"v\":2}"));
	assert_int_equal(found.keys[SIGNER_LIST_LOG].count, 1);
	assert_string_equal(found.keys[SIGNER_LIST_LOG].items[0].key, vkey);
	assert_int_equal(found.keys[SIGNER_LIST_RECEIPT].count, 2);
	const struct signer_list_key *ended =
		signer_list_find_key(&found, SIGNER_LIST_RECEIPT, OTHER_KEY);
	assert_non_null(ended);
	assert_int_equal(ended->used_until_us, BEGIN_US + 1);
	assert_null(signer_list_find_key(&found, SIGNER_LIST_LOG, OTHER_KEY));
}

TEST_CASE(test_keys_that_cannot_be_are_refused)
{
	static const char *const wrong[] = {
		"", "AAEC", "=" RECEIPT_KEY, RECEIPT_KEY "A", "log+1+AQID", " " RECEIPT_KEY};
	const struct signer_list_item certificate = item("first", BEGIN_US, TIME_NONE);
	struct signer_list_key keys[2] = {{RECEIPT_KEY, BEGIN_US, TIME_NONE, NULL},
	                                  {RECEIPT_KEY, BEGIN_US, TIME_NONE, NULL}};
	struct signer_list found, given = list_with_keys(&certificate, SIGNER_LIST_RECEIPT, keys, 2);
	assert_int_equal(read_back(&given, &found), ERR_INVALID_EVIDENCE);
	assert_non_null(strstr(error.cause, "listed twice"));
	for (int kind = 0; kind < SIGNER_LIST_KINDS; kind++)
		for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
			keys[0].key = wrong[i];
			given = list_with_keys(&certificate, (enum signer_list_kind)kind, keys, 1);
			assert_int_equal(read_back(&given, &found), ERR_INVALID_EVIDENCE);
			assert_non_null(strstr(error.cause, "key"));
		}
	/* The unused bits of the last character are 0. */
	keys[0].key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9=";
	given = list_with_keys(&certificate, SIGNER_LIST_RECEIPT, keys, 1);
	assert_int_equal(read_back(&given, &found), ERR_INVALID_EVIDENCE);
}

TEST_CASE(test_a_newer_list_repeats_all_keys)
{
	const struct signer_list_item certificate = item("first", BEGIN_US, TIME_NONE);
	const struct signer_list_key used = {RECEIPT_KEY, BEGIN_US, TIME_NONE, NULL};
	const struct signer_list_key ended = {RECEIPT_KEY, BEGIN_US, BEGIN_US + 5, NULL};
	const struct signer_list_key later = {RECEIPT_KEY, BEGIN_US + 1, TIME_NONE, NULL};
	const struct signer_list_key two[] = {used, {OTHER_KEY, BEGIN_US + 9, TIME_NONE, NULL}};
	const struct signer_list none = list_of(&certificate, 1);
	struct signer_list older = list_with_keys(&certificate, SIGNER_LIST_RECEIPT, &used, 1);
	struct signer_list newer = list_with_keys(&certificate, SIGNER_LIST_RECEIPT, two, 2);
	assert_true(signer_list_extends(&older, &none));
	assert_true(signer_list_extends(&newer, &older));
	assert_false(signer_list_extends(&none, &older));
	assert_false(signer_list_extends(&older, &newer));
	newer = list_with_keys(&certificate, SIGNER_LIST_RECEIPT, &ended, 1);
	assert_true(signer_list_extends(&newer, &older));
	assert_false(signer_list_extends(&older, &newer));
	newer = list_with_keys(&certificate, SIGNER_LIST_RECEIPT, &later, 1);
	assert_false(signer_list_extends(&newer, &older));
}

TEST_CASE(test_proofs_of_keys_are_read_back)
{
	const struct signer_list_item certificate = item("first", BEGIN_US, TIME_NONE);
	const struct signer_list_proof proof = {.certificate = certificate.sha256,
	                                        .signature = {1, 2, 3}};
	const struct signer_list_key keys[] = {{RECEIPT_KEY, BEGIN_US, TIME_NONE, &proof},
	                                       {OTHER_KEY, BEGIN_US, TIME_NONE, NULL}};
	struct signer_list found, given = list_with_keys(&certificate, SIGNER_LIST_RECEIPT, keys, 2);
	bool valid = true;
	assert_int_equal(read_back(&given, &found), OK);
	const struct signer_list_key *read = found.keys[SIGNER_LIST_RECEIPT].items;
	assert_memory_equal(read[0].proof->signature, proof.signature, sizeof proof.signature);
	assert_true(sha256_equal(&read[0].proof->certificate, &proof.certificate));
	assert_null(read[1].proof);
	assert_int_equal(signer_list_verify_proof(&read[0], &valid), OK);
	assert_false(valid);
	/* A key of the log has none. */
	struct signer_list other = list_of(&certificate, 1);
	char vkey[NOTE_VKEY_SIZE];
	const struct signer_list_key log = {log_key(vkey), BEGIN_US, TIME_NONE, &proof};
	other.keys[SIGNER_LIST_LOG].items = &log;
	other.keys[SIGNER_LIST_LOG].count = 1;
	assert_int_equal(read_back(&other, &found), ERR_INVALID_EVIDENCE);
}

TEST_MAIN_EACH(set_up, tear_down)
