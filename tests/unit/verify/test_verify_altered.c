/* Archives in which an owner of all keys altered a word and corrected every digest and the
 * signature: the contradiction is found and located. */
#include <openssl/evp.h>
#include <zlib.h>

#include "testing.h"
#include "archive/archive_lines.h"
#include "archive/zip.h"
#include "base/base64.h"
#include "base/clock.h"
#include "seal/timestamp.h"
#include "test_archive_fixture.h"

#define ENTRIES_MAX 16
#define CONTENT_MAX ((size_t)1 << 20)

struct member {
	char name[ZIP_NAME_MAX + 1];
	struct buf content;
};

static struct fixture fixture;
static struct fixture_archive with_content, plain;
static struct member members[ENTRIES_MAX];
static uint32_t count;

/* ---- unpacking and packing ---- */

static void load(const char *path)
{
	struct zip_reader *reader;
	assert_int_equal(zip_open(path, &reader, NULL), 0);
	count = zip_count(reader);
	assert_true(count <= ENTRIES_MAX);
	for (uint32_t i = 0; i < count; i++) {
		const struct zip_entry *entry = zip_at(reader, i);
		snprintf(members[i].name, sizeof members[i].name, "%.*s", (int)entry->name.size,
		         entry->name.data);
		buf_init(&members[i].content, CONTENT_MAX);
		assert_int_equal(zip_entry_load(reader, entry, CONTENT_MAX, &members[i].content, NULL), 0);
	}
	zip_reader_free(reader);
}

/* Stores the members with a signature of their present content. */
static void store(const char *path)
{
	struct cms_signer signer;
	struct cms_signing signing = fixture_signing(&fixture, MODE_LIVE, &signer);
	struct archive_manifest manifest;
	ARENA_AUTO struct arena arena = {.limit = CONTENT_MAX};
	struct zip_writer *writer;
	struct zip_sum sum;
	int64_t signing_time_us = clock_now_us();
	if (archive_read_manifest(&arena, buf_slice(&members[count - 3].content), &manifest, NULL) == 0)
		signing_time_us = manifest.facts.issued_at_us;
	assert_int_equal(zip_create(path, ZIP_BYTES_MAX, ZIP_ENTRIES_MAX, &writer, NULL), 0);
	for (uint32_t i = 0; i < count; i++) {
		struct buf *content = &members[i].content;
		if (i + 1 == count) {
			buf_clear(content);
			assert_int_equal(cms_create(&sum.sha256, signing_time_us, &signing, content, NULL), 0);
		}
		assert_int_equal(zip_add(writer, members[i].name, buf_slice(content), &sum, NULL), 0);
		buf_free(content);
	}
	assert_int_equal(zip_finish(writer, &sum, NULL), 0);
	zip_writer_free(writer);
}

static uint32_t find(const char *name)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(members[i].name, name) == 0)
			return i;
	fail_msg("no %s", name);
	return 0;
}

static void unpack(struct buf *content)
{
	BUF_AUTO struct buf packed;
	packed = *content;
	buf_init(content, CONTENT_MAX);
	char *text = malloc(CONTENT_MAX);
	z_stream stream = {.next_in = (Bytef *)packed.data,
	                   .avail_in = (uInt)packed.size,
	                   .next_out = (Bytef *)text,
	                   .avail_out = CONTENT_MAX};
	assert_int_equal(inflateInit2(&stream, 31), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	buf_add(content, text, stream.total_out);
	inflateEnd(&stream);
	free(text);
}

static void pack(struct buf *content)
{
	BUF_AUTO struct buf text;
	text = *content;
	buf_init(content, CONTENT_MAX);
	char *packed = malloc(CONTENT_MAX);
	z_stream stream = {.next_in = (Bytef *)text.data,
	                   .avail_in = (uInt)text.size,
	                   .next_out = (Bytef *)packed,
	                   .avail_out = CONTENT_MAX};
	assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	buf_add(content, packed, stream.total_out);
	deflateEnd(&stream);
	free(packed);
}

/* Replaces the `nth` occurrence (from 0) by another text; NULL: changes the character after it. */
static void replace(struct buf *content, const char *from, const char *to, int nth)
{
	BUF_AUTO struct buf old;
	old = *content;
	buf_init(content, CONTENT_MAX);
	const char *at = strstr(old.data, from);
	for (; at && nth > 0; nth--)
		at = strstr(at + 1, from);
	if (!at)
		fail_msg("no %s", from);
	buf_add(content, old.data, (size_t)(at - old.data));
	const char *rest = at + strlen(from);
	if (to) {
		buf_add_text(content, to);
	} else {
		buf_add_text(content, from);
		buf_add_byte(content, *rest++ == 'a' ? 'b' : 'a');
	}
	buf_add(content, rest, old.size - (size_t)(rest - old.data));
}

static void replace_digest(struct buf *content, const struct sha256 *old, const struct sha256 *new)
{
	char texts[2][2 * SHA256_SIZE + 1], codes[2][48];
	if (sha256_equal(old, new))
		return;
	const struct sha256 *digests[] = {old, new};
	for (size_t i = 0; i < 2; i++) {
		hex_encode(digests[i]->bytes, SHA256_SIZE, texts[i]);
		EVP_EncodeBlock((unsigned char *)codes[i], digests[i]->bytes, SHA256_SIZE);
	}
	while (strstr(content->data, texts[0]))
		replace(content, texts[0], texts[1], 0);
	while (strstr(content->data, codes[0]))
		replace(content, codes[0], codes[1], 0);
}

static struct sha256 digest_of(uint32_t i)
{
	return sha256_of(members[i].content.data, members[i].content.size);
}

/* Corrects the size of a file in the manifest. */
static void replace_size(struct buf *manifest, const char *name, size_t old, size_t new)
{
	char from[32], to[32], path[ZIP_NAME_MAX + 16];
	snprintf(path, sizeof path, "\"path\":\"%s\"", name);
	snprintf(from, sizeof from, "\"size\":%zu}", old);
	snprintf(to, sizeof to, "\"size\":%zu}", new);
	int nth = 0;
	const char *object = strstr(manifest->data, path);
	if (!object || old == new)
		return;
	for (const char *at = manifest->data; (at = strstr(at, from)) && at < object; at++)
		nth++;
	replace(manifest, from, to, nth);
}

struct change {
	const char *member, *from, *to;
	int nth;
	const char *where, *what; /* of a finding */
};

static void alter(const struct change *change)
{
	uint32_t at = find(change->member), manifest = find(ARCHIVE_MANIFEST_NAME);
	struct buf *content = &members[at].content;
	struct sha256 old = digest_of(at), old_manifest = digest_of(manifest);
	size_t old_size = content->size;
	bool packed = strstr(change->member, ".gz") != NULL;
	if (packed)
		unpack(content);
	replace(content, change->from, change->to, change->nth);
	if (packed)
		pack(content);
	struct sha256 new = digest_of(at);
	struct buf *asic = &members[find(ARCHIVE_ASIC_NAME)].content;
	if (at != manifest) {
		replace_digest(&members[manifest].content, &old, &new);
		replace_size(&members[manifest].content, change->member, old_size, content->size);
		replace_digest(asic, &old, &new);
	}
	struct sha256 new_manifest = digest_of(manifest);
	replace_digest(asic, &old_manifest, &new_manifest);
}

/* ---- the tests ---- */

static int set_up(void **state)
{
	static const struct fixture_plan plans[] = {{MODE_LIVE, 7, 2, 7, 5, true, 0, FAULT_NONE},
	                                            {MODE_LIVE, 7, 1, 7, 5, false, 0, FAULT_NONE}};
	fixture_open(&fixture);
	return fixture_make(&fixture, "content", &plans[0], &with_content) ||
	       fixture_make(&fixture, "plain", &plans[1], &plain);
}

static void expect_wrong(const struct fixture_archive *made, const char *path,
                         const struct change *change)
{
	struct verify_result result;
	const char *paths[FIXTURE_PARTS_MAX + 1] = {path};
	for (size_t i = 0; i < made->part_count; i++)
		paths[i + 1] = made->part_paths[i];
	fixture_verify(paths, made->part_count + 1, &fixture.roots, &result);
	if (!fixture_finds(&result, VERIFY_WRONG, change->where, change->what) ||
	    verify_exit_code(&result) != 1) {
		verify_print(&result, false, stderr);
		fail_msg("%s, %s %d: not found: %s: %s", change->member, change->from, change->nth,
		         change->where, change->what);
	}
	verify_result_free(&result);
	if (fixture_agrees(&fixture, path, made, NULL))
		fail_msg("%s, %s %d: the second verifier takes it", change->member, change->from,
		         change->nth);
}

static void expect_all_wrong(const struct fixture_archive *made, const struct change *changes,
                             size_t change_count)
{
	char path[FIXTURE_PATH_SIZE];
	snprintf(path, sizeof path, "%s/altered.zip", fixture.directory);
	load(made->path);
	store(path);
	assert_true(fixture_agrees(&fixture, path, made, NULL)); /* nothing is altered yet */
	for (size_t i = 0; i < change_count; i++) {
		load(made->path);
		alter(&changes[i]);
		store(path);
		expect_wrong(made, path, &changes[i]);
	}
}

#define ALL_WRONG(made, changes) expect_all_wrong(made, changes, sizeof changes / sizeof *changes)
#define MANIFEST ARCHIVE_MANIFEST_NAME
#define EVENTS "events/events-000001.ndjson.gz"
#define SEALS "seals/seals-000001.ndjson.gz"
#define ROUNDS "rounds/rounds-000001.ndjson.gz"
#define CONFIG "config/config-000001.json"
#define CHANNEL "\"channel_id\":\"" FIXTURE_CHANNEL "\""
#define OTHER_CHANNEL "\"channel_id\":\"chn_0000000000000000\""

TEST_CASE(a_manifest_that_says_otherwise)
{
	static const struct change changes[] = {
		{MANIFEST, "\"event_count\":6", "\"event_count\":5", 0, "manifest.json",
	     "event_count does not agree with frozen_range"},
		{MANIFEST, "\"last_sequence\":7}", "\"last_sequence\":8}", 0, "manifest.json",
	     "event_count does not agree with frozen_range"},
		{MANIFEST, "\"path\":\"README.txt\"", "\"path\":\"README.txx\"", 0, "README.txt",
	     "the manifest lists 'README.txx' at this position"},
		{MANIFEST, "\"size\":", "\"size\":1", 0, "README.txt", "bytes, but the manifest says 1"},
		{MANIFEST, "\"path\":\"README.txt\",\"sha256\":\"", NULL, 0, "README.txt",
	     "the SHA-256 of the file differs from the one"},
		{MANIFEST, "\"mode\":\"live\"", "\"mode\":\"test\"", 0, "genesis.json",
	     "or mode of the genesis document differs from the manifest"},
		{MANIFEST, CHANNEL, OTHER_CHANNEL, 0, "genesis.json",
	     "or mode of the genesis document differs from the manifest"},
		{MANIFEST, CHANNEL, OTHER_CHANNEL, 0,
	     "seals/seals-000001.ndjson.gz line 1 member seal.channel_id",
	     "the value differs from the channel in the manifest"},
		{MANIFEST, CHANNEL, OTHER_CHANNEL, 0, "config/config-000001.json",
	     "channel or version in the document differs from the manifest"},
		{MANIFEST, "\"first_chain_hash\":\"", NULL, 0,
	     "events/events-000001.ndjson.gz line 1 sequence 2 member (the whole line)",
	     "the SHA-256 of the event is not the first_chain_hash"},
		{MANIFEST, "\"last_chain_hash\":\"", NULL, 0, "manifest.json",
	     "last_chain_hash is not the SHA-256 of the last event"},
		{MANIFEST, "\"previous_chain_hash\":\"", NULL, 0,
	     "leaves/leaves-000001.ndjson.gz line 1 member chain_hash",
	     "the value is not the previous_chain_hash of the first event"},
		{MANIFEST, "\"config_versions\":[{\"hash\":\"", NULL, 0, "config/config-000001.json",
	     "the SHA-256 of the document is not the hash in the"},
		{MANIFEST, "\"version\":1}", "\"version\":2}", 0, "config/config-000001.json",
	     "this position must be 'config/config-000002.json'"},
		{MANIFEST, "\"seq_from\":2", "\"seq_from\":null", 0, "manifest.json",
	     "requested_range must contain either two times or two"},
		{MANIFEST, "\"from\":null", "\"from\":\"2026-01-01T00:00:00.000000Z\"", 0, "manifest.json",
	     "requested_range must contain either two times or two"},
		{MANIFEST, "[{\"bytes\":", "[{\"bytes\":1", 0, "part.json",
	     "number, certification or channel of the part differs from"},
		{MANIFEST, "\"first_sequence\":", "\"first_sequence\":1", 0, "manifest.json",
	     "content_parts: the range of content-part-001.zip is"},
		{MANIFEST, "\"name\":\"content-part-001.zip\"", "\"name\":\"content-part-002.zip\"", 0,
	     "manifest.json", "content-part-002.zip must be named content-part-001.zip"},
		{MANIFEST, "\"name\":\"content-part-001.zip\"", "\"name\":\"other.zip\"", 0,
	     "manifest.json", "other.zip must be named content-part-001.zip"},
		{MANIFEST, "[{\"bytes\":", "[{\"bytes\":999999", 0, "manifest.json",
	     "content-part-001.zip is larger than a content part may be"},
		{MANIFEST, "-001.zip\",\"sha256\":\"", NULL, 0, "",
	     "the part states that it belongs to CERT-2026-0000001"},
		{MANIFEST, "\"certification_id\":\"CERT", "\"certification_id\":\"CERU", 0, "part.json",
	     "number, certification or channel of the part differs from"},
		{MANIFEST, "\"v\":3", "\"v\":4", 0, "manifest.json",
	     "member 'v' is missing or its value is not allowed"},
		{MANIFEST, "\"v\":3", "\"v\":1", 0, "rounds/rounds-000001.ndjson.gz line 1",
	     "member 'authority' is missing or its value is not allowed"},
	};
	ALL_WRONG(&with_content, changes);
}

TEST_CASE(an_event_that_says_otherwise)
{
	static const struct change changes[] = {
		{EVENTS, "\"sequence\":2", "\"sequence\":9", 0,
	     "events/events-000001.ndjson.gz line 1 sequence 2 member sequence",
	     "the sequence number of the line does not match"},
		{EVENTS, "\"chain\":\"live\"", "\"chain\":\"test\"", 0,
	     "events/events-000001.ndjson.gz line 1 sequence 2 member chain",
	     "the value differs from the mode in the manifest"},
		{EVENTS, CHANNEL, OTHER_CHANNEL, 0,
	     "events/events-000001.ndjson.gz line 1 sequence 2 member channel_id",
	     "the value differs from the channel in the manifest"},
		{EVENTS, "\"previous_chain_hash\":\"", NULL, 0,
	     "events/events-000001.ndjson.gz line 1 sequence 2 member previous_chain_hash",
	     "the value is not the previous_chain_hash of the manifest"},
		{EVENTS, "\"previous_chain_hash\":\"", NULL, 1,
	     "events/events-000001.ndjson.gz line 2 sequence 3 member previous_chain_hash",
	     "the value is not the SHA-256 of the previous event"},
		{EVENTS, "\"config_version\":1", "\"config_version\":9", 0,
	     "events/events-000001.ndjson.gz line 1 sequence 2 member config_version",
	     "the archive contains no configuration document of this"},
		{EVENTS, "\"hash\":\"", NULL, 0, "index.ndjson line 1",
	     "sequence, event_id or hash differs from event 2"},
		{EVENTS, "\"event_id\":\"evt_0", NULL, 0, "index.ndjson line 1",
	     "sequence, event_id or hash differs from event 2"},
		{EVENTS, "\"modality\":\"content\"", "\"modality\":\"hash_only\"", 0,
	     "events/events-000001.ndjson.gz line 1 sequence 2 member modality",
	     "the value differs from the modality in the"},
		{EVENTS, "\"v\":1}", "\"v\":1} ", 0, "events/events-000001.ndjson.gz line 1",
	     "the document is not canonical from byte 532 on"},
		{EVENTS, "\"v\":1}\n", "\"v\":1}\n{}\n", 0, "events/events-000001.ndjson.gz line 2",
	     "member 'channel_id' is missing or its value is not"},
	};
	ALL_WRONG(&with_content, changes);
}

TEST_CASE(an_event_of_content_that_says_otherwise)
{
	static const struct change changes[] = {
		{EVENTS, "\"modality\":\"hash_only\"", "\"modality\":\"content\"", 5,
	     "events/events-000001.ndjson.gz line 6 sequence 6 member hash_alg",
	     "an event of modality content must be sha-256"},
		{EVENTS, "\"client_ref\":\"", "\"client_ref\":\"\\u0000", 0,
	     "events/events-000001.ndjson.gz line 1", "member 'client_ref' is missing or its value is"},
		{EVENTS, "\"event_id\":\"", "\"event_id\":\"\\u0000", 0,
	     "events/events-000001.ndjson.gz line 1", "member 'event_id' is missing or its value is"},
	};
	ALL_WRONG(&plain, changes);
}

/* Renames the round to a name of that many bytes, also where its segment names it. */
static void rename_round(size_t size, const char *path)
{
	char id[256], member[300];
	memset(id, 'r', size);
	id[size] = 0;
	snprintf(member, sizeof member, "\"round_id\":\"%s\"", id);
	load(plain.path);
	alter(&(struct change){SEALS, "\"round_id\":\"rnd_1\"", member, 0, "", ""});
	alter(&(struct change){ROUNDS, "\"round_id\":\"rnd_1\"", member, 0, "", ""});
	store(path);
}

TEST_CASE(a_round_is_named_in_1_to_127_bytes)
{
	static const struct {
		size_t size;
		bool good;
	} cases[] = {
		{1, true}, {ARCHIVE_ROUND_ID_MAX, true}, {ARCHIVE_ROUND_ID_MAX + 1, false}, {0, false}};
	char path[FIXTURE_PATH_SIZE];
	const char *const paths[] = {path};
	snprintf(path, sizeof path, "%s/named.zip", fixture.directory);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct verify_result result;
		rename_round(cases[i].size, path);
		fixture_verify(paths, 1, &fixture.roots, &result);
		assert_int_equal(verify_exit_code(&result), cases[i].good ? 0 : 1);
		assert_true(cases[i].good ||
		            fixture_finds(&result, VERIFY_WRONG, "seals/seals-000001.ndjson.gz line 2",
		                          "member 'round_id' is missing or its value is not allowed"));
		verify_result_free(&result);
		assert_int_equal(fixture_agrees(&fixture, path, NULL, NULL), cases[i].good);
	}
}

TEST_CASE(two_lines_in_a_row_are_of_two_rounds)
{
	static const struct change changes[] = {
		{ROUNDS, "\"round_id\":\"rnd_1\"", "\"round_id\":\"rnd_0\"", 0,
	     "rounds/rounds-000001.ndjson.gz line 2",
	     "member 'round_id' is the same as in the previous line"},
	};
	ALL_WRONG(&plain, changes);
}

TEST_CASE(a_seal_that_says_otherwise)
{
	static const struct change changes[] = {
		{SEALS, "\"chain\":\"live\"", "\"chain\":\"test\"", 0,
	     "seals/seals-000001.ndjson.gz line 1 member seal.chain",
	     "the value differs from the mode in the manifest"},
		{SEALS, CHANNEL, OTHER_CHANNEL, 0,
	     "seals/seals-000001.ndjson.gz line 1 member seal.channel_id",
	     "the value differs from the channel in the manifest"},
		{SEALS, "\"chain_hash_before\":\"", NULL, 0,
	     "seals/seals-000001.ndjson.gz line 1 member seal.chain_hash_before",
	     "the value is not the chain hash before the segment"},
		{SEALS, "\"chain_hash_before\":\"", NULL, 1,
	     "seals/seals-000001.ndjson.gz line 2 member seal.chain_hash_before",
	     "the value is not the chain hash of the last event"},
		{SEALS, "\"chain_hash_last\":\"", NULL, 0,
	     "seals/seals-000001.ndjson.gz line 1 member seal.chain_hash_last",
	     "chain hash of the last event of the segment"},
		{SEALS, "\"first_sequence\":1", "\"first_sequence\":2", 0,
	     "seals/seals-000001.ndjson.gz line 1", "member 'count' is missing or its value is not"},
		{SEALS, "\"last_sequence\":7", "\"last_sequence\":6", 0,
	     "seals/seals-000001.ndjson.gz line 2", "member 'count' is missing or its value is not"},
		{SEALS, "\"max_error_us\":1500", "\"max_error_us\":-1", 0,
	     "seals/seals-000001.ndjson.gz line 1",
	     "member 'max_error_us' is missing or its value is not allowed"},
		{SEALS, "\"previous_seal_hash\":null",
	     "\"previous_seal_hash\":\"00000000000000000000000000"
	     "00000000000000000000000000000000000000\"",
	     0, "seals/seals-000001.ndjson.gz line 1 member seal.previous_seal_hash",
	     "the value must be null in the first segment of a chain"},
		{SEALS, "\"previous_seal_hash\":\"", NULL, 0,
	     "seals/seals-000001.ndjson.gz line 2 member seal.previous_seal_hash",
	     "the value is not the SHA-256 of the previous seal document"},
		{SEALS, "\"previous_token_hash\":null",
	     "\"previous_token_hash\":\"0000000000000000000000000"
	     "000000000000000000000000000000000000000\"",
	     0, "seals/seals-000001.ndjson.gz line 1 member path",
	     "the events and the seal of the segment do not lead to the"},
		{SEALS, "\"round_id\":\"rnd_1\"", "\"round_id\":\"rnd_9\"", 0,
	     "seals/seals-000001.ndjson.gz line 2 member round_id",
	     "the archive contains no such round after the"},
		{ROUNDS, "\"round_id\":\"rnd_0\"", "\"round_id\":\"rnd_9\"", 0,
	     "seals/seals-000001.ndjson.gz line 1 member round_id",
	     "the archive contains no such round after the"},
		{ROUNDS, "\"root\":\"", NULL, 0, "rounds/rounds-000001.ndjson.gz line 1",
	     "the imprint of the timestamp is not that of the data"},
		{ROUNDS, "\"token\":\"MII", NULL, 0, "rounds/rounds-000001.ndjson.gz line 1",
	     "the signed data does not parse"},
	};
	ALL_WRONG(&plain, changes);
}

/* Replaces the request of the first round by the result of `change`. */
static void alter_request(const char *path, void (*change)(struct buf *request))
{
	BUF_AUTO struct buf text = {.limit = CONTENT_MAX};
	BUF_AUTO struct buf request = {.limit = TIMESTAMP_REQUEST_MAX};
	BUF_AUTO struct buf old = {.limit = CONTENT_MAX};
	BUF_AUTO struct buf new = {.limit = CONTENT_MAX};
	load(plain.path);
	buf_add_slice(&text, buf_slice(&members[find(ROUNDS)].content));
	unpack(&text);
	const char *begin = strstr(text.data, "\"request\":\"") + strlen("\"request\":\"");
	size_t size = (size_t)(strchr(begin, '"') - begin), decoded;
	char *to = buf_extend(&request, size);
	assert_true(base64_decode(slice_make(begin, size), to, size, &decoded));
	request.size = decoded;
	change(&request);
	buf_add(&old, begin, size + 1);
	buf_add_byte(&old, 0);
	buf_add_base64(&new, buf_slice(&request));
	buf_add_text(&new, "\"");
	buf_add_byte(&new, 0);
	alter(&(struct change){ROUNDS, old.data, new.data, 0, "", ""});
	store(path);
}

static void junk(struct buf *request)
{
	buf_clear(request);
	buf_add_text(request, "request");
}

static void one_byte_more(struct buf *request)
{
	buf_add_byte(request, 0);
}

/* Its end is certReq, TRUE, and before it the nonce. */
static void another_truth(struct buf *request)
{
	request->data[request->size - 1] = 1;
}

static void another_nonce(struct buf *request)
{
	request->data[request->size - 4] ^= 1;
}

/* [0] IMPLICIT, of an extension that is not critical. */
static void extension(struct buf *request)
{
	static const char more[] = "\xa0\x0a\x30\x08\x06\x03\x2a\x03\x04\x04\x01\x00";
	buf_add(request, more, sizeof more - 1);
	request->data[1] = (char)(request->data[1] + (int)sizeof more - 1);
}

/* The policy 1.2.3.4 becomes 1.2.3.5; that of the development authority is longer. */
static void another_policy(struct buf *request)
{
	char *nonce = request->data + request->size - 3 - 18;
	assert_true(nonce > request->data);
	nonce[-1] ^= 1;
}

TEST_CASE(a_request_that_the_token_does_not_answer)
{
	static const struct {
		void (*change)(struct buf *request);
		const char *what;
	} cases[] = {
		{junk, "the request does not parse"},
		{one_byte_more, "the request is not a TimeStampReq in DER"},
		{another_truth, "the request is not a TimeStampReq in DER"},
		{extension, "the request is not a TimeStampReq in DER"},
		{another_nonce, "the nonce is not the one sent"},
		{another_policy, "the policy is not the requested one"},
	};
	char path[FIXTURE_PATH_SIZE];
	snprintf(path, sizeof path, "%s/asked.zip", fixture.directory);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		alter_request(path, cases[i].change);
		expect_wrong(&plain, path,
		             &(struct change){ROUNDS, "request", "", (int)i,
		                              "rounds/rounds-000001.ndjson.gz line 1", cases[i].what});
	}
}

TEST_CASE(another_document_that_says_otherwise)
{
	static const struct change changes[] = {
		{"mimetype", "asic-e", "asic-s", 0, "mimetype",
	     "the first entry must be 'mimetype' with the content"},
		{"genesis.json", "\"chain\":\"live\"", "\"chain\":\"test\"", 0, "genesis.json",
	     "or mode of the genesis document differs from the manifest"},
		{"genesis.json", CHANNEL, OTHER_CHANNEL, 0, "genesis.json",
	     "or mode of the genesis document differs from the manifest"},
		{"genesis.json", "\"v\":1", "\"v\":3", 0, "genesis.json",
	     "member 'v' is missing or its value is not allowed"},
		{CONFIG, CHANNEL, OTHER_CHANNEL, 0, "config/config-000001.json",
	     "channel or version in the document differs from the manifest"},
		{CONFIG, "\"version\":1", "\"version\":4", 0, "config/config-000001.json",
	     "channel or version in the document differs from the manifest"},
		{ARCHIVE_ASIC_NAME, "URI=\"README.txt\"", "URI=\"README.txx\"", 0,
	     "META-INF/ASiCManifest001.xml", "the ASiC manifest does not list README.txt with its"},
	};
	ALL_WRONG(&plain, changes);
}

TEST_CASE(files_that_stand_in_other_places)
{
	static const struct change changes[] = {
		{"mimetype", "mimetypf", "", 0, "mimetype",
	     "the first entry must be 'mimetype' with the content"},
		{"README.txt", "README.txx", "", 0, "META-INF/ASiCManifest001.xml",
	     "the ASiC manifest does not list README.txx with its"},
		{CONFIG, "config/config-000009.json", "", 0, "META-INF/ASiCManifest001.xml",
	     "the ASiC manifest does not list"},
		{EVENTS, "events/events-000002.ndjson.gz", "", 0, "META-INF/ASiCManifest001.xml",
	     "the ASiC manifest does not list"},
		{ROUNDS, "sounds/rounds-000001.ndjson.gz", "", 0, "META-INF/ASiCManifest001.xml",
	     "the ASiC manifest does not list"},
		{MANIFEST, "manifest.jsom", "", 0, "manifest.json",
	     "must be the third entry from the end of the ZIP file"},
		{ARCHIVE_ASIC_NAME, "META-INF/ASiCManifest002.xml", "", 0, "META-INF/ASiCManifest001.xml",
	     "must be the second entry from the end of the ZIP file"},
		{ARCHIVE_SIGNATURE_NAME, "META-INF/signature002.p7s", "", 0, "META-INF/signature001.p7s",
	     "must be the last entry of the ZIP file"},
	};
	char path[FIXTURE_PATH_SIZE];
	snprintf(path, sizeof path, "%s/renamed.zip", fixture.directory);
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		load(plain.path);
		char *name = members[find(changes[i].member)].name;
		snprintf(name, ZIP_NAME_MAX + 1, "%s", changes[i].from);
		store(path);
		expect_wrong(&plain, path, &changes[i]);
	}
}

/* Lists the present files again, in the manifest and in the ASiCManifest. */
static void list_again(void)
{
	ARENA_AUTO struct arena arena = {.limit = CONTENT_MAX};
	struct archive_manifest manifest;
	struct archive_file files[ENTRIES_MAX];
	struct buf *content = &members[count - 3].content, *asic = &members[count - 2].content;
	assert_int_equal(archive_read_manifest(&arena, buf_slice(content), &manifest, NULL), 0);
	manifest.file_count = count - 4;
	manifest.files = files;
	for (uint32_t i = 1; i < count - 3; i++)
		files[i - 1] =
			(struct archive_file){members[i].name, {members[i].content.size, digest_of(i)}};
	buf_clear(content);
	archive_manifest_write(&manifest, content);
	struct archive_file own = {ARCHIVE_MANIFEST_NAME, {content->size, digest_of(count - 3)}};
	buf_clear(asic);
	archive_asic_begin(asic);
	archive_asic_file(&own, asic);
	for (size_t i = 0; i < manifest.file_count; i++)
		archive_asic_file(&files[i], asic);
	archive_asic_end(asic);
}

/* Inserts another file of a stream at that place. */
static void insert(uint32_t at, const char *name, struct slice text)
{
	assert_true(count < ENTRIES_MAX);
	memmove(&members[at + 1], &members[at], (count - at) * sizeof *members);
	count++;
	snprintf(members[at].name, sizeof members[at].name, "%s", name);
	buf_init(&members[at].content, CONTENT_MAX);
	buf_add_slice(&members[at].content, text);
	pack(&members[at].content);
}

/* Moves the events after the first one to a second file. */
static void split_events(void)
{
	uint32_t at = find(EVENTS);
	struct buf *content = &members[at].content;
	unpack(content);
	size_t first =
		(size_t)((const char *)memchr(content->data, '\n', content->size) - content->data) + 1;
	insert(at + 1, "events/events-000002.ndjson.gz",
	       slice_make(content->data + first, content->size - first));
	content->size = first;
	pack(content);
}

static void add_empty_leaves(void)
{
	insert(find(EVENTS) + 1, "leaves/leaves-000001.ndjson.gz", slice_of(""));
}

TEST_CASE(lines_divided_in_another_way)
{
	static const struct {
		void (*change)(void);
		const char *where, *what;
	} cases[] = {
		{split_events, "events/events-000001.ndjson.gz line 2",
	     "every file of a stream except the last must contain 100000 lines"},
		{add_empty_leaves, "leaves/leaves-000001.ndjson.gz",
	     "every file of a stream except the last must contain 100000 lines"},
	};
	char path[FIXTURE_PATH_SIZE];
	snprintf(path, sizeof path, "%s/divided.zip", fixture.directory);
	load(plain.path);
	list_again();
	store(path);
	assert_true(fixture_agrees(&fixture, path, NULL, NULL)); /* nothing is altered yet */
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		load(plain.path);
		cases[i].change();
		list_again();
		store(path);
		expect_wrong(&plain, path,
		             &(struct change){EVENTS, "", "", (int)i, cases[i].where, cases[i].what});
	}
}

TEST_MAIN(set_up, fixture_tear_down)
