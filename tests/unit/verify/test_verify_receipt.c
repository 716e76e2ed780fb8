/* Receipts of clients, compared with archives. */
#include <openssl/evp.h>

#include "testing.h"
#include "archive/receipt.h"
#include "archive/signer_list.h"
#include "base/base64.h"
#include "base/json.h"
#include "seal/cms.h"
#include "seal/receipt_signer.h"
#include "tlog/merkle.h"
#include "tlog/note.h"
#include "verify/verify_check.h"
#include "test_archive_fixture.h"
#include "test_forger.h"

static struct fixture fixture;
static struct fixture_archive archive; /* events 7 to 14, segments 6 to 15 */
static struct buf receipts[9];         /* of these events, and of event 6 of the same chain */
static const struct fixture_plan plan = {MODE_LIVE, 20, 7, 14, 5, false, 0, FAULT_NONE};

/* Writes the answer to a registration, as the interface gives it. */
static void write_receipt(const struct event_facts *event, const struct sha256 *chain_hash,
                          struct buf *out)
{
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_slice(&writer, "event_id", event->event_id);
	json_text(&writer, "channel_id", event->channel_id);
	json_slice(&writer, "client_ref", event->declaration.client_ref);
	json_integer(&writer, "sequence", event->sequence);
	json_time(&writer, "received_at", event->received_at_us);
	json_time(&writer, "occurred_at", event->declaration.occurred_at_us);
	json_hex(&writer, "hash", event->declaration.hash,
	         hash_algorithm_size(event->declaration.hash_algorithm));
	json_text(&writer, "hash_alg", hash_algorithm_text(event->declaration.hash_algorithm));
	json_text(&writer, "modality", modality_text(event->declaration.modality));
	json_hex(&writer, "chain_hash", chain_hash->bytes, SHA256_SIZE);
	json_text(&writer, "status", "registered");
	json_begin_object(&writer, "timestamp");
	json_text(&writer, "type", "pending");
	json_end_object(&writer);
	json_integer(&writer, "config_version", event->config_version);
	json_text(&writer, "mode", mode_text(event->chain));
	json_end_object(&writer);
}

static void take_receipts(const struct fixture_archive *from, struct buf *to)
{
	struct zip_reader *zip;
	struct line_stream *stream;
	struct slice line;
	assert_int_equal(zip_open(from->path, &zip, NULL), 0);
	assert_int_equal(line_stream_open(zip, STREAM_EVENTS, false, &stream, NULL), 0);
	for (size_t i = 0; line_stream_next(stream, &line, NULL) == 1; i++) {
		ARENA_AUTO struct arena arena = {.limit = 65536};
		struct event_facts event;
		struct sha256 hash = sha256_of(line.data, line.size);
		assert_int_equal(archive_read_event(&arena, line, &event, NULL), 0);
		buf_init(&to[i], 4096);
		write_receipt(&event, &hash, &to[i]);
	}
	line_stream_free(stream);
	zip_reader_free(zip);
}

/* ---- keys of receipts ---- */

enum key { LISTED, ENDED, UNLISTED, KEYS };
static EVP_PKEY *keys[KEYS];
static char key_texts[KEYS][BASE64_SIZE(RECEIPT_KEY_SIZE) + 1];
static const char *log_name;   /* of the log in the lists that are signed; NULL: they have none */
static struct buf signer_list; /* that all archives here contain if nothing else is said */

static void make_keys(void)
{
	for (int i = 0; i < KEYS; i++) {
		uint8_t bytes[RECEIPT_KEY_SIZE];
		size_t size = sizeof bytes;
		keys[i] = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
		assert_int_equal(EVP_PKEY_get_raw_public_key(keys[i], bytes, &size), 1);
		base64_encode(bytes, size, key_texts[i]);
	}
}

/* Signs bytes after a prefix. */
static void sign_after(EVP_PKEY *key, const char *prefix, const struct sha256 *bytes,
                       uint8_t ret_signature[RECEIPT_SIGNATURE_SIZE])
{
	BUF_AUTO struct buf message = {.limit = 1024};
	size_t size = RECEIPT_SIGNATURE_SIZE;
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	buf_add_text(&message, prefix);
	buf_add(&message, bytes->bytes, SHA256_SIZE);
	assert_int_equal(EVP_DigestSignInit(context, NULL, NULL, NULL, key), 1);
	assert_int_equal(
		EVP_DigestSign(context, ret_signature, &size, (const uint8_t *)message.data, message.size),
		1);
	EVP_MD_CTX_free(context);
}

/* The proof that a key signs for the fixture's certificate. */
static struct signer_list_proof prove(enum key key)
{
	BUF_AUTO struct buf der = {.limit = SIGNER_LIST_CERTIFICATE_MAX};
	struct signer_list_proof proof;
	assert_int_equal(trust_certificate_der(signer_certificates(fixture.signer), &der, NULL), OK);
	proof.certificate = sha256_of(der.data, der.size);
	sign_after(keys[key], SIGNER_LIST_PROOF_PREFIX, &proof.certificate, proof.signature);
	return proof;
}

/* Signs a list of signers with these keys of receipts. */
static void sign_list(const struct signer_list_key *listed, size_t count, struct buf *ret)
{
	BUF_AUTO struct buf der = {.limit = SIGNER_LIST_CERTIFICATE_MAX};
	BUF_AUTO struct buf text = {.limit = SIGNER_LIST_TEXT_MAX};
	struct slice pem = signer_certificates(fixture.signer);
	int64_t now_us = clock_now_us();
	assert_int_equal(trust_certificate_der(pem, &der, NULL), OK);
	const struct signer_list_item item = {.certificate = buf_slice(&der),
	                                      .sha256 = sha256_of(der.data, der.size),
	                                      .used_from_us = fixture.base_us,
	                                      .used_until_us = TIME_NONE};
	char vkey[NOTE_VKEY_SIZE];
	const struct signer_list_key log = {vkey, fixture.base_us, TIME_NONE, NULL};
	if (log_name) {
		const uint8_t bytes[NOTE_KEY_SIZE] = {1};
		const struct note_key key = note_key_make(log_name, NOTE_ED25519, bytes);
		note_key_write(&key, vkey);
	}
	const struct signer_list list = {.service_name = "Constancia",
	                                 .service_prefix = "svc",
	                                 .service_url = "https://example.test",
	                                 .issued_at_us = now_us,
	                                 .items = &item,
	                                 .count = 1,
	                                 .keys[SIGNER_LIST_LOG] = {&log, log_name ? 1 : 0},
	                                 .keys[SIGNER_LIST_RECEIPT] = {listed, count}};
	signer_list_write(&list, &text);
	struct cms_signer holder;
	struct cms_signing signing = fixture_signing(&fixture, MODE_LIVE, &holder);
	holder.purpose = SIGNER_LIST;
	buf_init(ret, CMS_LT_SIZE_MAX);
	assert_int_equal(cms_create_attached(buf_slice(&text), now_us, &signing, ret, NULL), OK);
}

static void sign_usual_list(void)
{
	const struct signer_list_proof proofs[] = {prove(LISTED), prove(ENDED)};
	const struct signer_list_key listed[] = {
		{key_texts[LISTED], fixture.base_us, TIME_NONE, &proofs[0]},
		{key_texts[ENDED], fixture.base_us - US_PER_DAY, fixture.base_us - 3600 * US_PER_SECOND,
	     &proofs[1]}};
	sign_list(listed, 2, &signer_list);
	fixture.signer_list = buf_slice(&signer_list);
}

static int set_up(void **state)
{
	struct fixture_plan before = plan;
	struct fixture_archive sixth;
	fixture_open(&fixture);
	make_keys();
	sign_usual_list();
	assert_int_equal(fixture_make(&fixture, "one", &plan, &archive), 0);
	take_receipts(&archive, receipts);
	before.first = before.last = 6;
	assert_int_equal(fixture_make(&fixture, "sixth", &before, &sixth), 0);
	take_receipts(&sixth, &receipts[8]);
	return 0;
}

static int tear_down(void **state)
{
	for (size_t i = 0; i < 9; i++)
		buf_free(&receipts[i]);
	for (int i = 0; i < KEYS; i++)
		EVP_PKEY_free(keys[i]);
	buf_free(&signer_list);
	fixture_close(&fixture);
	return 0;
}

static void verify(struct slice text, int exit_code, struct verify_result *ret_result)
{
	char path[FIXTURE_PATH_SIZE];
	const char *file = path, *evidence = archive.path;
	struct verify_options options = {.receipts = &file, .receipt_count = 1};
	snprintf(path, sizeof path, "%s/receipts", fixture.directory);
	fixture_write(path, text);
	assert_int_equal(verify_paths(&evidence, 1, &fixture.roots, &options, ret_result, NULL), 0);
	if (verify_exit_code(ret_result) != exit_code) {
		verify_print(ret_result, false, stderr);
		fail_msg("the exit code is not %d for %.*s", exit_code, (int)text.size, text.data);
	}
}

TEST_CASE(the_archive_holds_what_was_acknowledged)
{
	struct verify_result result;
	for (size_t i = 0; i < 8; i++) {
		verify(buf_slice(&receipts[i]), 0, &result);
		assert_int_equal(result.checked.receipts, 1);
		verify_result_free(&result);
	}
}

TEST_CASE(several_receipts_come_as_lines_or_as_an_array)
{
	static const char *const frames[][3] = {
		{"", "\n", "\n"}, {"\n", "\r\n\r\n", ""}, {"[", ",\n", "]\n"}};
	for (size_t i = 0; i < 3; i++) {
		struct verify_result result;
		BUF_AUTO struct buf text = {.limit = 65536};
		buf_add_text(&text, frames[i][0]);
		for (size_t k = 0; k < 8; k++) {
			buf_add_text(&text, k ? frames[i][1] : "");
			buf_add_slice(&text, buf_slice(&receipts[k]));
		}
		buf_add_text(&text, frames[i][2]);
		verify(buf_slice(&text), 0, &result);
		assert_int_equal(result.checked.receipts, 8);
		verify_result_free(&result);
	}
}

/* Replaces one text of a receipt by another. */
static void alter(const struct buf *from, const char *found, const char *other, struct buf *out)
{
	const char *at = memmem(from->data, from->size, found, strlen(found));
	if (!at)
		fail_msg("no %s in the receipt", found);
	buf_init(out, 8192);
	buf_add(out, from->data, (size_t)(at - from->data));
	buf_add_text(out, other);
	size_t used = (size_t)(at - from->data) + strlen(found);
	buf_add(out, from->data + used, from->size - used);
}

TEST_CASE(every_sealed_member_counts)
{
	static const struct {
		size_t receipt;
		const char *found, *other, *differences;
	} cases[] = {
		{0, "\"chain_hash\":\"", "\"chain_hash\":\"ff", "acknowledged event: chain_hash"},
		{0, "\"event_id\":\"evt_0", "\"event_id\":\"evt_1", "acknowledged event: event_id"},
		{0, "order", "Order", "acknowledged event: client_ref"},
		{0, "\"received_at\":\"2", "\"received_at\":\"3", "acknowledged event: received_at"},
		{0, "\"occurred_at\":null", "\"occurred_at\":\"2026-01-01T00:00:00Z\"",
	     "acknowledged event: occurred_at"},
		{1, "\"occurred_at\":\"2", "\"occurred_at\":\"3", "acknowledged event: occurred_at"},
		{0, "\"hash\":\"", "\"hash\":\"ff", "acknowledged event: hash"},
		{0, "hash_only", "content", "acknowledged event: modality"},
		{0, "\"config_version\":1", "\"config_version\":9", "acknowledged event: config_version"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct verify_result result;
		struct buf altered;
		alter(&receipts[cases[i].receipt], cases[i].found, cases[i].other, &altered);
		if (strstr(cases[i].other, ":\"ff")) { /* the digest keeps its length */
			char *digits =
				memmem(altered.data, altered.size, cases[i].other, strlen(cases[i].other));
			digits += strlen(cases[i].other);
			memmove(digits, digits + 2, (size_t)(altered.data + altered.size - digits) - 2);
			altered.size -= 2;
		}
		verify(buf_slice(&altered), 2, &result);
		fixture_expect_finding(&result, VERIFY_UNCHECKED, "", cases[i].differences);
		assert_int_equal(result.unchecked, 1);
		assert_int_equal(result.wrong, 0); /* the receipt may be the wrong one */
		verify_result_free(&result);
		buf_free(&altered);
	}
}

/* The one that differs among several is identified by its number. */
TEST_CASE(the_false_one_of_many_is_named)
{
	struct verify_result result;
	struct buf altered;
	BUF_AUTO struct buf text = {.limit = 65536};
	alter(&receipts[3], "order", "Order", &altered);
	for (size_t i = 0; i < 8; i++) {
		buf_add_slice(&text, i == 3 ? buf_slice(&altered) : buf_slice(&receipts[i]));
		buf_add_byte(&text, '\n');
	}
	verify(buf_slice(&text), 2, &result);
	fixture_expect_finding(&result, VERIFY_UNCHECKED, "receipt 4", "client_ref");
	verify_result_free(&result);
	buf_free(&altered);
}

/* The operator acknowledged one history and certified another. */
TEST_CASE(a_fork_is_found_by_a_receipt)
{
	struct fixture_plan forked = plan;
	struct fixture_archive other;
	struct verify_result result;
	struct fixture_archive good = archive;
	forked.fault = FAULT_FORK; /* event 3, long before the range */
	assert_int_equal(fixture_make(&fixture, "fork", &forked, &other), 0);
	archive = other;
	verify(buf_slice(&receipts[0]), 2, &result);
	fixture_expect_finding(&result, VERIFY_UNCHECKED, "",
	                       "differs from the acknowledged event: chain_hash");
	verify_result_free(&result);
	verify(buf_slice(&receipts[8]), 2, &result); /* event 6, which is only a leaf there */
	fixture_expect_finding(&result, VERIFY_UNCHECKED, "", "event 6, on which");
	verify_result_free(&result);
	archive = good;
}

TEST_CASE(what_the_archive_does_not_hold_is_unchecked)
{
	struct verify_result result;
	struct buf altered;
	verify(buf_slice(&receipts[8]), 2, &result);
	fixture_expect_finding(
		&result, VERIFY_UNCHECKED, "",
		"no given archive contains event 6 of channel " FIXTURE_CHANNEL
		", mode live; an archive of later events has the chain hash of this receipt");
	verify_result_free(&result);
	static const char *const others[][2] = {{"\"sequence\":7", "\"sequence\":700"},
	                                        {"\"mode\":\"live\"", "\"mode\":\"test\""},
	                                        {FIXTURE_CHANNEL, "chn_another"}};
	for (size_t i = 0; i < 3; i++) {
		alter(&receipts[0], others[i][0], others[i][1], &altered);
		verify(buf_slice(&altered), 2, &result);
		fixture_expect_finding(&result, VERIFY_UNCHECKED, "", "no given archive contains event 7");
		assert_int_equal(result.checked.receipts, 0);
		verify_result_free(&result);
		buf_free(&altered);
	}
}

TEST_CASE(what_is_no_receipt_is_unchecked)
{
	static const struct {
		const char *text, *what;
	} cases[] = {
		{"", "contains no receipt"},
		{" \n\n", "contains no receipt"},
		{"[]", "contains no receipt"},
		{"{}", "receipt 1 is not a response to a registration: member 'channel_id'"},
		{"[1]", "it is not a JSON object"},
		{"null", "it is not a JSON object"},
		{"{\"code\":\"validation_error\"}", "receipt 1 is not a response"},
		{"PK", "receipt 1 is not JSON"},
		{"{\n{\n", "receipt 1 is not JSON"},
	};
	struct verify_result result;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		verify(slice_of(cases[i].text), 2, &result);
		fixture_expect_finding(&result, VERIFY_UNCHECKED, "", cases[i].what);
		verify_result_free(&result);
	}
	BUF_AUTO struct buf many = {.limit = 1 << 20};
	for (size_t i = 0; i <= RECEIPTS_MAX; i++)
		buf_add_text(&many, "{}\n");
	verify(buf_slice(&many), 2, &result);
	fixture_expect_finding(&result, VERIFY_UNCHECKED, "", "more than 10000 receipts");
	verify_result_free(&result);
	const char *nowhere = "/nonexistent", *evidence = archive.path;
	struct verify_options options = {.receipts = &nowhere, .receipt_count = 1};
	assert_int_equal(verify_paths(&evidence, 1, NULL, &options, &result, NULL), 0);
	assert_int_equal(verify_exit_code(&result), 2);
	verify_result_free(&result);
}

/* One odd line, which the service could have made, spoils no other one. */
TEST_CASE(a_receipt_that_cannot_be_used_spoils_no_other_one)
{
	static const char *const odd[] = {
		"{}",           "x", "[1]", "{\"code\":\"validation_error\"}", "{\"event_id\":", "\"text\"",
		"{\"receipt\":"};
	static const char *const frames[][3] = {{"", "\n", "\n"}, {"[", ",", "]"}};
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
		for (size_t place = 0; place < 3; place++)
			for (size_t frame = 0; frame < 2; frame++) {
				struct verify_result result;
				struct buf altered;
				BUF_AUTO struct buf text = {.limit = 65536};
				char where[16];
				bool is_json = odd[i][0] != 'x' && odd[i][strlen(odd[i]) - 1] != ':';
				if (frame == 1 && !is_json)
					continue; /* no array */
				alter(&receipts[3], "order", "Order", &altered);
				const struct slice lines[] = {buf_slice(&receipts[1]), buf_slice(&altered)};
				buf_add_text(&text, frames[frame][0]);
				for (size_t k = 0, used = 0; k < 3; k++) {
					buf_add_text(&text, k ? frames[frame][1] : "");
					buf_add_slice(&text, k == place ? slice_of(odd[i]) : lines[used]);
					used += k != place;
				}
				buf_add_text(&text, frames[frame][2]);
				verify(buf_slice(&text), 2, &result);
				snprintf(where, sizeof where, "receipt %zu", place + 1);
				fixture_expect_finding(&result, VERIFY_UNCHECKED, where, "cannot be used");
				snprintf(where, sizeof where, "receipt %d", place < 2 ? 3 : 2);
				fixture_expect_finding(&result, VERIFY_UNCHECKED, where, "client_ref");
				assert_int_equal(result.checked.receipts, 2);
				verify_result_free(&result);
				buf_free(&altered);
			}
}

/* They leave room for other findings. */
TEST_CASE(of_many_that_cannot_be_used_the_first_are_named)
{
	struct verify_result result;
	BUF_AUTO struct buf text = {.limit = 1 << 20};
	for (size_t i = 0; i < 5000; i++)
		buf_add_text(&text, "{}\n");
	buf_add_slice(&text, buf_slice(&receipts[0]));
	verify(buf_slice(&text), 2, &result);
	assert_int_equal(result.unchecked, 100);
	assert_int_equal(result.checked.receipts, 1);
	verify_result_free(&result);
}

/* ---- signed receipts ---- */

#define KEPT INT64_MAX /* a promise that no segment here breaks */

static void sign_root(enum key key, const struct sha256 *root, char text[BASE64_SIZE(64) + 1])
{
	uint8_t signature[RECEIPT_SIGNATURE_SIZE];
	sign_after(keys[key], RECEIPT_SIGNED_PREFIX, root, signature);
	base64_encode(signature, sizeof signature, text);
}

/* Signs a response as the second of three leaves of a batch. */
static void sign(const struct buf *from, enum key key, int64_t seal_by_us, struct buf *out)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	BUF_AUTO struct buf statement = {.limit = RECEIPT_STATEMENT_MAX};
	struct receipt *receipt;
	size_t count;
	char signature[BASE64_SIZE(64) + 1];
	assert_int_equal(receipts_read(&arena, buf_slice(from), &receipt, &count, NULL), OK);
	const struct receipt_facts facts = {
		.channel_id = receipt->event.channel_id,
		.chain = receipt->event.chain,
		.sequence = receipt->event.sequence,
		.declaration = &receipt->event.declaration,
		.received_at_us = receipt->event.received_at_us,
		.chain_hash = receipt->chain_hash,
		.origin = "log.example/segments",
		.seal_by_us = seal_by_us == KEPT ? clock_now_us() + US_PER_DAY : seal_by_us,
	};
	receipt_statement(&facts, &statement);
	const struct sha256 others[2] = {sha256_of("a", 1), sha256_of("b", 1)};
	struct sha256 root = merkle_leaf(buf_slice(&statement));
	root = merkle_node(&others[0], &root);
	root = merkle_node(&root, &others[1]);
	sign_root(key, &root, signature);
	buf_init(out, 8192);
	buf_add(out, from->data, from->size - 1);
	struct json_writer writer = {.out = out, .comma = true};
	json_begin_object(&writer, "receipt");
	json_integer(&writer, "index", 1);
	json_text(&writer, "key", key_texts[key]);
	json_text(&writer, "origin", facts.origin);
	json_begin_array(&writer, "path");
	for (int i = 0; i < 2; i++) {
		char text[BASE64_SIZE(SHA256_SIZE) + 1];
		base64_encode(others[i].bytes, SHA256_SIZE, text);
		json_text(&writer, NULL, text);
	}
	json_end_array(&writer);
	json_time(&writer, "seal_by", facts.seal_by_us);
	json_text(&writer, "signature", signature);
	json_integer(&writer, "size", 3);
	json_end_object(&writer);
	json_end_object(&writer);
	assert_int_equal(buf_check(out), OK);
}

/* Verifies the archive with a response that is signed after the change of one text (NULL: none). */
static void verify_signed(size_t receipt, const char *found, const char *other, enum key key,
                          int64_t seal_by_us, int exit_code, struct verify_result *ret_result)
{
	BUF_AUTO struct buf altered = {.limit = 8192};
	BUF_AUTO struct buf made = {.limit = 8192};
	if (found)
		alter(&receipts[receipt], found, other, &altered);
	else
		buf_add_slice(&altered, buf_slice(&receipts[receipt]));
	sign(&altered, key, seal_by_us, &made);
	verify(buf_slice(&made), exit_code, ret_result);
}

TEST_CASE(signed_receipts_that_the_archive_keeps_are_good)
{
	struct verify_result result;
	for (int key = 0; key < KEYS; key++) {
		verify_signed(0, NULL, NULL, (enum key)key, KEPT, 0, &result);
		assert_int_equal(result.checked.receipts, 1);
		assert_false(fixture_finds(&result, VERIFY_WARNING, "", "late"));
		assert_int_equal(fixture_finds(&result, VERIFY_WARNING, "", "no given list of signers"),
		                 key != LISTED);
		verify_result_free(&result);
	}
}

TEST_CASE(a_signed_receipt_that_the_archive_contradicts_shows_two_histories)
{
	struct verify_result result;
	verify_signed(0, "\"received_at\":\"2", "\"received_at\":\"3", LISTED, KEPT, 1, &result);
	fixture_expect_finding(&result, VERIFY_WRONG, "",
	                       "the service signed two histories: event 7 differs");
	fixture_expect_finding(&result, VERIFY_WRONG, "", ": received_at");
	verify_result_free(&result);
	/* What is not in the statement may be altered by anybody. */
	verify_signed(0, "order", "Order", LISTED, KEPT, 2, &result);
	fixture_expect_finding(&result, VERIFY_UNCHECKED, "", "acknowledged event: client_ref");
	verify_result_free(&result);
	/* Anybody can make a key. */
	for (int key = ENDED; key < KEYS; key++) {
		verify_signed(0, "\"received_at\":\"2", "\"received_at\":\"3", (enum key)key, KEPT, 2,
		              &result);
		fixture_expect_finding(&result, VERIFY_UNCHECKED, "",
		                       "because the receipt has no signature");
		verify_result_free(&result);
	}
}

TEST_CASE(a_fork_before_the_range_shows_two_histories)
{
	struct fixture_plan forked = plan;
	struct fixture_archive other, good = archive;
	struct verify_result result;
	forked.fault = FAULT_FORK; /* event 3 */
	assert_int_equal(fixture_make(&fixture, "signed-fork", &forked, &other), 0);
	archive = other;
	verify_signed(0, NULL, NULL, LISTED, KEPT, 1, &result);
	fixture_expect_finding(&result, VERIFY_WRONG, "", "two histories: event 7");
	verify_result_free(&result);
	verify_signed(8, NULL, NULL, LISTED, KEPT, 1, &result); /* event 6, only a leaf there */
	fixture_expect_finding(&result, VERIFY_WRONG, "", "two histories: event 6");
	verify_result_free(&result);
	archive = good;
}

TEST_CASE(an_altered_signed_receipt_is_named)
{
	static const char *const changes[][2] = {
		{"\"origin\":\"log", "\"origin\":\"bog"}, {"\"index\":1", "\"index\":2"},
		{"\"index\":1", "\"index\":3"},           {"\"size\":3", "\"size\":5"},
		{"\"seal_by\":\"2", "\"seal_by\":\"3"},   {"\"mode\":\"live\"", "\"mode\":\"test\""},
	};
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		struct verify_result result;
		struct buf made, altered;
		sign(&receipts[0], LISTED, KEPT, &made);
		alter(&made, changes[i][0], changes[i][1], &altered);
		verify(buf_slice(&altered), 2, &result);
		fixture_expect_finding(&result, VERIFY_UNCHECKED, "",
		                       "the signature of the receipt is not valid");
		assert_int_equal(result.wrong, 0);
		verify_result_free(&result);
		buf_free(&made);
		buf_free(&altered);
	}
}

/* What differs explains why the signature is not valid. */
TEST_CASE(an_altered_signed_receipt_that_differs_is_one_finding)
{
	struct verify_result result;
	struct buf made, altered;
	sign(&receipts[0], LISTED, KEPT, &made);
	alter(&made, "\"received_at\":\"2", "\"received_at\":\"3", &altered);
	verify(buf_slice(&altered), 2, &result);
	fixture_expect_finding(&result, VERIFY_UNCHECKED, "", "acknowledged event: received_at");
	assert_int_equal(result.unchecked, 1);
	assert_int_equal(result.wrong, 0);
	verify_result_free(&result);
	buf_free(&made);
	buf_free(&altered);
}

TEST_CASE(a_malformed_signature_makes_the_file_unusable)
{
	static const char *const changes[][3] = {
		{"\"index\":1", "\"index\":-1", "index"},
		{"\"size\":3", "\"size\":1025", "size"},
		{"\"size\":3", "\"size\":0", "size"},
		{"\"key\":\"", "\"key\":\"AAAA", "key"},
		{"\"path\":[", "\"path\":[1,", "path"},
		{"\"path\":[", "\"path\":[\"\",", "path"},
		{"\"path\":[", "\"path\":[1,2,3,4,5,6,7,8,9,", "path"},
		{"\"signature\":\"", "\"signature\":\"AAAA", "signature"},
		{"\"seal_by\":\"", "\"seal_by\":\"x", "seal_by"},
		{"\"receipt\":{", "\"receipt\":[],\"other\":{", "object"},
	};
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		struct verify_result result;
		struct buf made, altered;
		sign(&receipts[0], LISTED, KEPT, &made);
		alter(&made, changes[i][0], changes[i][1], &altered);
		verify(buf_slice(&altered), 2, &result);
		fixture_expect_finding(&result, VERIFY_UNCHECKED, "", "cannot be used as receipts");
		fixture_expect_finding(&result, VERIFY_UNCHECKED, "", changes[i][2]);
		verify_result_free(&result);
		/* It hides no other one. */
		BUF_AUTO struct buf both = {.limit = 65536};
		struct buf changed, contradicting;
		alter(&receipts[1], "\"received_at\":\"2", "\"received_at\":\"3", &changed);
		sign(&changed, LISTED, KEPT, &contradicting);
		buf_add_slice(&both, buf_slice(&altered));
		buf_add_byte(&both, '\n');
		buf_add_slice(&both, buf_slice(&contradicting));
		verify(buf_slice(&both), 1, &result);
		fixture_expect_finding(&result, VERIFY_WRONG, "receipt 2", "two histories: event 8");
		fixture_expect_finding(&result, VERIFY_UNCHECKED, "receipt 1", changes[i][2]);
		verify_result_free(&result);
		buf_free(&changed);
		buf_free(&contradicting);
		buf_free(&made);
		buf_free(&altered);
	}
	struct verify_result result;
	BUF_AUTO struct buf unsigned_ = {.limit = 8192};
	buf_add(&unsigned_, receipts[0].data, receipts[0].size - 1);
	buf_add_text(&unsigned_, ",\"receipt\":null}");
	verify(buf_slice(&unsigned_), 0, &result);
	verify_result_free(&result);
}

TEST_CASE(broken_promises_are_found)
{
	const int64_t broken_us = fixture.base_us - 1000 * US_PER_SECOND;
	struct verify_result result;
	/* Sealed, but later than promised. */
	verify_signed(0, NULL, NULL, LISTED, broken_us, 0, &result);
	fixture_expect_finding(&result, VERIFY_WARNING, "", "the service sealed event 7 late");
	verify_result_free(&result);
	/* Not sealed by the end of the archive's segments, at event 15. */
	verify_signed(0, "\"sequence\":7", "\"sequence\":16", LISTED, broken_us, 1, &result);
	fixture_expect_finding(&result, VERIFY_WRONG, "", "the service withheld event 16");
	assert_int_equal(result.wrong, 1);
	verify_result_free(&result);
	verify_signed(0, "\"sequence\":7", "\"sequence\":15", LISTED, broken_us, 1, &result);
	assert_false(fixture_finds(&result, VERIFY_WRONG, "", "withheld"));
	verify_result_free(&result);
	/* Promises that are kept, absent, unsigned, or of another chain. */
	verify_signed(0, "\"sequence\":7", "\"sequence\":16", LISTED, KEPT, 2, &result);
	verify_result_free(&result);
	verify_signed(0, "\"sequence\":7", "\"sequence\":16", LISTED, TIME_NONE, 2, &result);
	verify_result_free(&result);
	verify_signed(0, "\"sequence\":7", "\"sequence\":16", UNLISTED, broken_us, 2, &result);
	verify_result_free(&result);
	verify_signed(0, FIXTURE_CHANNEL, "chn_z", LISTED, broken_us, 2, &result);
	fixture_expect_finding(&result, VERIFY_UNCHECKED, "", "no given archive contains event 7");
	verify_result_free(&result);
}

static int64_t reception_of(size_t receipt)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct receipt *read;
	size_t count;
	assert_int_equal(receipts_read(&arena, buf_slice(&receipts[receipt]), &read, &count, NULL), OK);
	return read->event.received_at_us;
}

TEST_CASE(receipts_without_a_useful_promise_are_counted)
{
	const int64_t day_us = reception_of(0) + US_PER_DAY;
	static const char text[] = "promise no seal within 24 h";
	const struct {
		int64_t seal_by_us;
		bool is_found;
	} cases[] = {{TIME_NONE, true}, {day_us, false}, {day_us + 1, true}};
	struct verify_result result;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		verify_signed(0, NULL, NULL, LISTED, cases[i].seal_by_us, 0, &result);
		assert_int_equal(fixture_finds(&result, VERIFY_WARNING, "", text), cases[i].is_found);
		verify_result_free(&result);
	}
	/* Of test mode, or without a signature. */
	verify_signed(0, "\"mode\":\"live\"", "\"mode\":\"test\"", LISTED, TIME_NONE, 2, &result);
	assert_false(fixture_finds(&result, VERIFY_WARNING, "", text));
	verify_result_free(&result);
	verify(buf_slice(&receipts[0]), 0, &result);
	assert_false(fixture_finds(&result, VERIFY_WARNING, "", text));
	verify_result_free(&result);
	BUF_AUTO struct buf many = {.limit = 65536};
	for (size_t i = 0; i < 4; i++) {
		struct buf made;
		sign(&receipts[i], LISTED, i == 2 ? day_us : TIME_NONE, &made);
		buf_add_slice(&many, buf_slice(&made));
		buf_add_byte(&many, '\n');
		buf_free(&made);
	}
	verify(buf_slice(&many), 0, &result);
	fixture_expect_finding(
		&result, VERIFY_WARNING, "receipt 1",
		"3 signed receipts of live events, the first of event 7 of channel " FIXTURE_CHANNEL);
	assert_int_equal(result.wrong, 0);
	verify_result_free(&result);
}

/* ---- the lists that count ---- */

static void make_fork(const char *name, struct slice list, struct fixture_archive *ret)
{
	struct fixture_plan forked = plan;
	forked.fault = FAULT_FORK;
	fixture.signer_list = list;
	assert_int_equal(fixture_make(&fixture, name, &forked, ret), 0);
	fixture.signer_list = buf_slice(&signer_list);
}

/* Verifies a receipt signed with the listed key. `other`, `list`: NULL: not given. */
static void verify_fork(const struct fixture_archive *fork, const struct fixture_archive *other,
                        const char *list, enum key key, int exit_code,
                        struct verify_result *ret_result)
{
	BUF_AUTO struct buf made = {.limit = 8192};
	char path[FIXTURE_PATH_SIZE];
	const char *file = path, *evidence[] = {fork->path, other ? other->path : NULL};
	struct verify_options options = {.receipts = &file,
	                                 .receipt_count = 1,
	                                 .signer_lists = &list,
	                                 .signer_list_count = list ? 1 : 0};
	sign(&receipts[0], key, KEPT, &made);
	snprintf(path, sizeof path, "%s/receipts", fixture.directory);
	fixture_write(path, buf_slice(&made));
	assert_int_equal(
		verify_paths(evidence, other ? 2 : 1, &fixture.roots, &options, ret_result, NULL), 0);
	if (verify_exit_code(ret_result) != exit_code) {
		verify_print(ret_result, false, stderr);
		fail_msg("the exit code is not %d for %s", exit_code, fork->path);
	}
}

/* The operator leaves the list out, takes the key off it, or has it end early. */
TEST_CASE(an_archive_does_not_take_back_that_a_key_is_certified)
{
	BUF_AUTO struct buf without = {0};
	BUF_AUTO struct buf early = {0};
	char given[FIXTURE_PATH_SIZE];
	struct verify_result result;
	struct fixture_archive fork;
	const struct signer_list_proof proof = prove(LISTED);
	const struct signer_list_key ended = {key_texts[LISTED], fixture.base_us - US_PER_DAY,
	                                      fixture.base_us - 3600 * US_PER_SECOND, &proof};
	sign_list(NULL, 0, &without);
	sign_list(&ended, 1, &early);
	const struct slice lists[] = {{0}, buf_slice(&without), buf_slice(&early)};
	snprintf(given, sizeof given, "%s/given.p7m", fixture.directory);
	fixture_write(given, buf_slice(&signer_list));
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		char name[16];
		snprintf(name, sizeof name, "fork-%zu", i);
		make_fork(name, lists[i], &fork);
		verify_fork(&fork, NULL, NULL, LISTED, 2, &result);
		assert_int_equal(fixture_finds(&result, VERIFY_WARNING, "signers.p7m",
		                               "the archive contains no list of signers"),
		                 i == 0);
		verify_result_free(&result);
		verify_fork(&fork, NULL, given, LISTED, 1, &result);
		fixture_expect_finding(&result, VERIFY_WRONG, "", "two histories: event 7");
		verify_result_free(&result);
		verify_fork(&fork, &archive, NULL, LISTED, 1, &result);
		fixture_expect_finding(&result, VERIFY_WRONG, "", "two histories: event 7");
		verify_result_free(&result);
		verify_fork(&fork, NULL, given, UNLISTED, 2, &result);
		verify_result_free(&result);
		verify_fork(&fork, NULL, given, ENDED, 2, &result);
		verify_result_free(&result);
	}
}

/* The list of a stranger, whom no root names, certifies nothing. */
TEST_CASE(a_list_that_is_not_trusted_certifies_no_key)
{
	struct trust_roots roots = fixture.roots;
	char given[FIXTURE_PATH_SIZE];
	struct verify_result result;
	struct fixture_archive fork;
	snprintf(given, sizeof given, "%s/given.p7m", fixture.directory);
	fixture_write(given, buf_slice(&signer_list));
	make_fork("fork-untrusted", (struct slice){0}, &fork);
	fixture.roots.signers = (struct slice){0};
	verify_fork(&fork, &archive, given, LISTED, 1, &result); /* two archives of two histories */
	assert_false(fixture_finds(&result, VERIFY_WRONG, "", "signed two histories"));
	verify_result_free(&result);
	verify_fork(&fork, NULL, given, LISTED, 2, &result);
	assert_int_equal(result.wrong, 0);
	verify_result_free(&result);
	fixture.roots = roots;
}

/* ---- the archives that count ---- */

/* Makes an archive of the plan, signed by a certificate that names the organization of the
 * service. */
static void make_by_stranger(const char *name, const struct fixture_plan *of,
                             struct forger_holder *holder, struct fixture_archive *ret)
{
	static const struct forger_plan stranger = {
		.name = "Constancia development signer",
		.organization = "Constancia development, no legal value",
		.extensions = {"basicConstraints=critical,CA:FALSE", SIGNS},
	};
	struct cms_signer unused;
	struct cms_signing signing = fixture_signing(&fixture, MODE_LIVE, &unused);
	BUF_AUTO struct buf pem = {.limit = 65536};
	forger_issue(&stranger, NULL, holder);
	forger_certificate(holder, &pem);
	signing.certificates_pem = buf_slice(&pem);
	signing.sign = forger_sign;
	signing.sign_context = holder;
	fixture.signing = &signing;
	fixture.signer_list = (struct slice){0};
	assert_int_equal(fixture_make(&fixture, name, of, ret), 0);
	fixture.signing = NULL;
	fixture.signer_list = buf_slice(&signer_list);
}

/* Verifies a changed response, signed with the listed key, with the list of the service. */
static void verify_listed(const char *const *evidence, size_t count, const char *const change[2],
                          int64_t seal_by_us, const struct sha256 *signer, int exit_code,
                          struct verify_result *ret_result)
{
	struct buf changed, made;
	char path[FIXTURE_PATH_SIZE], given[FIXTURE_PATH_SIZE];
	const char *file = path, *list = given;
	struct verify_options options = {.receipts = &file,
	                                 .receipt_count = 1,
	                                 .signer_lists = &list,
	                                 .signer_list_count = 1,
	                                 .signers = signer,
	                                 .signer_count = signer ? 1 : 0};
	alter(&receipts[0], change[0], change[1], &changed);
	sign(&changed, LISTED, seal_by_us, &made);
	snprintf(path, sizeof path, "%s/receipts", fixture.directory);
	snprintf(given, sizeof given, "%s/given.p7m", fixture.directory);
	fixture_write(path, buf_slice(&made));
	fixture_write(given, buf_slice(&signer_list));
	assert_int_equal(verify_paths(evidence, count, &fixture.roots, &options, ret_result, NULL), 0);
	if (verify_exit_code(ret_result) != exit_code) {
		verify_print(ret_result, false, stderr);
		fail_msg("the exit code is not %d for %s", exit_code, evidence[0]);
	}
	buf_free(&changed);
	buf_free(&made);
}

static const char *const unchanged[2] = {"order", "order"};
static const char *const as_event_16[2] = {"\"sequence\":7", "\"sequence\":16"};

/* Anyone can make a certificate that names the organization. */
TEST_CASE(the_archive_of_a_stranger_contradicts_no_receipt)
{
	struct fixture_plan forked = plan;
	struct fixture_archive fork;
	struct forger_holder stranger;
	struct verify_result result;
	struct trust_roots roots = fixture.roots;
	BUF_AUTO struct buf pem = {0};
	forked.fault = FAULT_FORK;
	make_by_stranger("fork-stranger", &forked, &stranger, &fork);
	const char *path = fork.path;
	verify_listed(&path, 1, unchanged, KEPT, NULL, 2, &result);
	fixture_expect_finding(&result, VERIFY_UNCHECKED, "", "or its signer is not trusted");
	verify_result_free(&result);
	verify_fork(&fork, &archive, NULL, LISTED, 1, &result); /* two archives of two histories */
	fixture_expect_finding(&result, VERIFY_UNCHECKED, "", "or its signer is not trusted");
	assert_false(fixture_finds(&result, VERIFY_WRONG, "", "signed two histories"));
	verify_result_free(&result);
	verify_fork(&archive, &fork, NULL, LISTED, 1, &result);
	assert_false(fixture_finds(&result, VERIFY_WRONG, "", "signed two histories"));
	verify_result_free(&result);
	/* A root that names the certificate vouches for it. */
	fixture.roots = forger_trust(&stranger, roots.signers, &pem);
	verify_fork(&fork, &archive, NULL, LISTED, 1, &result);
	fixture_expect_finding(&result, VERIFY_WRONG, "", "signed two histories: event 7");
	verify_result_free(&result);
	fixture.roots = roots;
	forger_free(&stranger);
}

TEST_CASE(the_archive_of_a_stranger_shows_and_hides_no_broken_promise)
{
	const int64_t broken_us = fixture.base_us - 1000 * US_PER_SECOND;
	struct fixture_plan end = plan;
	struct fixture_archive short_one, long_one;
	struct forger_holder strangers[2];
	struct verify_result result;
	make_by_stranger("short-stranger", &plan, &strangers[0], &short_one);
	end.first = end.last = 16;
	make_by_stranger("long-stranger", &end, &strangers[1], &long_one);
	const char *path = short_one.path;
	verify_listed(&path, 1, as_event_16, broken_us, NULL, 2, &result);
	fixture_expect_finding(&result, VERIFY_UNCHECKED, "", "no given archive contains event 16");
	verify_result_free(&result);
	const char *const both[] = {archive.path, long_one.path};
	verify_listed(both, 2, as_event_16, broken_us, NULL, 1, &result);
	fixture_expect_finding(&result, VERIFY_WRONG, "", "the service withheld event 16");
	verify_result_free(&result);
	for (size_t i = 0; i < 2; i++)
		forger_free(&strangers[i]);
}

/* Whoever passes on an archive can alter its copy. */
TEST_CASE(an_altered_archive_contradicts_no_receipt)
{
	const int64_t broken_us = fixture.base_us - 1000 * US_PER_SECOND;
	struct fixture_archive fork;
	struct verify_result result;
	char path[FIXTURE_PATH_SIZE];
	const char *evidence[] = {path, NULL};
	BUF_AUTO struct buf copy = {.limit = 1 << 24};
	make_fork("fork-altered", buf_slice(&signer_list), &fork);
	fixture_read(fork.path, &copy);
	verify_fork(&fork, NULL, NULL, LISTED, 1, &result);
	fixture_expect_finding(&result, VERIFY_WRONG, "", "signed two histories: event 7");
	verify_result_free(&result);
	char *name = memmem(copy.data, copy.size, ARCHIVE_LEEME_NAME, strlen(ARCHIVE_LEEME_NAME));
	assert_non_null(name);
	name[strlen(ARCHIVE_LEEME_NAME) + 40] ^= 1;
	snprintf(path, sizeof path, "%s/altered.zip", fixture.directory);
	fixture_write(path, buf_slice(&copy));
	verify_listed(evidence, 1, unchanged, KEPT, NULL, 1, &result);
	assert_false(fixture_finds(&result, VERIFY_WRONG, "", "signed two histories"));
	fixture_expect_finding(&result, VERIFY_UNCHECKED, "", "that archive is altered");
	verify_result_free(&result);
	verify_listed(evidence, 1, as_event_16, broken_us, NULL, 1, &result);
	assert_false(fixture_finds(&result, VERIFY_WRONG, "", "withheld"));
	verify_result_free(&result);
	/* Another archive that is as it was issued counts, in either order. */
	for (size_t i = 0; i < 2; i++) {
		evidence[i] = fork.path;
		evidence[1 - i] = path;
		verify_listed(evidence, 2, unchanged, KEPT, NULL, 1, &result);
		fixture_expect_finding(&result, VERIFY_WRONG, "", "signed two histories: event 7");
		verify_result_free(&result);
	}
}

/* The caller can name the certificate instead of a root. */
TEST_CASE(the_archive_of_a_required_signer_contradicts_receipts)
{
	const struct sha256 signer = prove(LISTED).certificate;
	struct trust_roots roots = fixture.roots;
	struct fixture_archive fork;
	struct verify_result result;
	make_fork("fork-required", buf_slice(&signer_list), &fork);
	const char *path = fork.path;
	fixture.roots.signers = (struct slice){0};
	verify_listed(&path, 1, unchanged, KEPT, &signer, 1, &result);
	fixture_expect_finding(&result, VERIFY_WRONG, "", "signed two histories: event 7");
	verify_result_free(&result);
	verify_listed(&path, 1, unchanged, KEPT, NULL, 2, &result);
	verify_result_free(&result);
	fixture.roots = roots;
}

/* That an archive differs from another one is no fault of either. */
TEST_CASE(archives_that_differ_contradict_receipts)
{
	struct fixture_archive fork;
	struct verify_result result;
	make_fork("fork-second", buf_slice(&signer_list), &fork);
	verify_fork(&archive, &fork, NULL, LISTED, 1, &result);
	fixture_expect_finding(&result, VERIFY_WRONG, "", "signed two histories: event 7");
	verify_result_free(&result);
}

/* A stranger with a certificate can list any key, and the service's certificate as well. */
TEST_CASE(a_key_that_did_not_sign_the_certificate_is_not_certified)
{
	struct signer_list_proof proofs[] = {prove(LISTED), prove(UNLISTED), prove(LISTED),
	                                     prove(LISTED)};
	const struct signer_list_proof *const tried[] = {NULL, &proofs[1], &proofs[2], &proofs[3]};
	struct verify_result result;
	struct fixture_archive fork;
	proofs[2].signature[5] ^= 1;
	proofs[3].certificate = sha256_of("another", 7); /* with its own signature */
	sign_after(keys[LISTED], SIGNER_LIST_PROOF_PREFIX, &proofs[3].certificate, proofs[3].signature);
	for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
		BUF_AUTO struct buf list = {0};
		char name[16];
		snprintf(name, sizeof name, "stolen-%zu", i);
		const struct signer_list_key listed = {key_texts[LISTED], fixture.base_us, TIME_NONE,
		                                       tried[i]};
		sign_list(&listed, 1, &list);
		make_fork(name, buf_slice(&list), &fork);
		verify_fork(&fork, NULL, NULL, LISTED, 2, &result);
		fixture_expect_finding(&result, VERIFY_UNCHECKED, "", "differs from the acknowledged");
		verify_result_free(&result);
	}
}

/* ---- receipts and each other ---- */

/* Verifies the archive with two receipts of events that it does not contain. */
static void verify_two(const char *const changes[2][4], const enum key by[2], int exit_code,
                       struct verify_result *ret_result)
{
	BUF_AUTO struct buf text = {.limit = 65536};
	for (size_t i = 0; i < 2; i++) {
		struct buf once, altered, made;
		alter(&receipts[0], changes[i][0], changes[i][1], &once);
		alter(&once, changes[i][2], changes[i][3], &altered);
		sign(&altered, by[i], KEPT, &made);
		buf_add_slice(&text, buf_slice(&made));
		buf_add_byte(&text, '\n');
		buf_free(&once);
		buf_free(&altered);
		buf_free(&made);
	}
	verify(buf_slice(&text), exit_code, ret_result);
}

TEST_CASE(receipts_that_contradict_each_other_show_two_histories)
{
	static const enum key listed[2] = {LISTED, LISTED}, one[2] = {LISTED, UNLISTED};
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define OF(number, from, to)                                                                       \
	{                                                                                              \
		"\"sequence\":7", "\"sequence\":" number, from, to                                         \
	}
	static const struct {
		const char *changes[2][4], *finding;
	} cases[] = {
		{{OF("16", "order", "order"), OF("16", "\"received_at\":\"2", "\"received_at\":\"3")},
	     " 1, of event 16 contradict each other: received_at"},
		{{OF("16", "order", "order"), OF("16", "\"hash\":\"", "\"hash\":\"" ZEROS "\",\"was\":\"")},
	     "each other: hash"},
		{{OF("16", "\"received_at\":\"2", "\"received_at\":\"3"), OF("17", "order", "order")},
	     "receipts of event 17 and, in "},
	};
	static const char *const agree[][2][4] = {
		{OF("16", "order", "order"), OF("16", "order", "Order")}, /* which is not signed */
		{OF("16", "order", "order"), OF("17", "\"received_at\":\"2", "\"received_at\":\"3")},
		{OF("17", "order", "order"), OF("16", "order", "order")},
	};
#undef OF
#undef ZEROS
	struct verify_result result;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		verify_two(cases[i].changes, listed, 1, &result);
		fixture_expect_finding(&result, VERIFY_WRONG, "", cases[i].finding);
		assert_int_equal(result.wrong, 1);
		verify_result_free(&result);
		verify_two(cases[i].changes, one, 2, &result);
		assert_int_equal(result.wrong, 0);
		verify_result_free(&result);
	}
	for (size_t i = 0; i < sizeof agree / sizeof *agree; i++) {
		verify_two(agree[i], listed, 2, &result);
		assert_int_equal(result.wrong, 0);
		verify_result_free(&result);
	}
}

/* The promise of a receipt is about the log that it names. */
TEST_CASE(a_receipt_of_another_log_is_named)
{
	const struct signer_list_proof proof = prove(LISTED);
	const struct signer_list_key listed = {key_texts[LISTED], fixture.base_us, TIME_NONE, &proof};
	static const char *const names[] = {"log.example/other", "log.example/segments"};
	for (size_t i = 0; i < 2; i++) {
		BUF_AUTO struct buf list = {0};
		struct fixture_archive good = archive;
		struct verify_result result;
		char name[16];
		snprintf(name, sizeof name, "origin-%zu", i);
		log_name = names[i];
		sign_list(&listed, 1, &list);
		log_name = NULL;
		fixture.signer_list = buf_slice(&list);
		assert_int_equal(fixture_make(&fixture, name, &plan, &archive), 0);
		fixture.signer_list = buf_slice(&signer_list);
		verify_signed(0, NULL, NULL, LISTED, KEPT, 0, &result);
		assert_int_equal(fixture_finds(&result, VERIFY_WARNING, "",
		                               "event 7 names the log log.example/segments, but the lists "
		                               "of signers of its service name log.example/other"),
		                 i == 0);
		verify_result_free(&result);
		archive = good;
	}
}

TEST_MAIN(set_up, tear_down)
