/* Archives of which somebody with all the keys altered a word, and put every digest and the
 * signature right again: that it does not agree with the rest is found, and where. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/clock.h"
#include "proof/archive_lines.h"
#include "proof/zip.h"
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

/* ---- taking apart and putting together ---- */

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

/* With a signature of what is there now. */
static void store(const char *path)
{
	struct cms_signer signer;
	struct cms_signing signing = fixture_signing(&fixture, MODE_LIVE, &signer);
	struct archive_manifest manifest;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, CONTENT_MAX);
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

/* The `nth` occurrence (from 0) becomes another text; NULL: the letter behind it another one. */
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

/* The manifest's size of a file. */
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
	(void)state;
	static const struct fixture_plan plans[] = {{MODE_LIVE, 7, 2, 7, 5, true, 0, FAULT_NONE},
	                                            {MODE_LIVE, 7, 1, 7, 5, false, 0, FAULT_NONE}};
	fixture_open(&fixture);
	return fixture_make(&fixture, "content", &plans[0], &with_content) ||
	       fixture_make(&fixture, "plain", &plans[1], &plain);
}

static int tear_down(void **state)
{
	(void)state;
	fixture_close(&fixture);
	return 0;
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

static void a_manifest_that_says_otherwise(void **state)
{
	(void)state;
	static const struct change changes[] = {
		{MANIFEST, "\"event_count\":6", "\"event_count\":5", 0, "manifest.json",
	     "event_count does not fit the frozen range"},
		{MANIFEST, "\"last_sequence\":7}", "\"last_sequence\":8}", 0, "manifest.json",
	     "event_count does not fit the frozen range"},
		{MANIFEST, "\"path\":\"README.txt\"", "\"path\":\"README.txx\"", 0, "README.txt",
	     "the manifest lists 'README.txx' in its place"},
		{MANIFEST, "\"size\":", "\"size\":1", 0, "README.txt", "bytes, the manifest says 1"},
		{MANIFEST, "\"path\":\"README.txt\",\"sha256\":\"", NULL, 0, "README.txt",
	     "its SHA-256 is not the one in the manifest"},
		{MANIFEST, "\"mode\":\"live\"", "\"mode\":\"test\"", 0, "genesis.json",
	     "its channel or mode is not the manifest's"},
		{MANIFEST, CHANNEL, OTHER_CHANNEL, 0, "genesis.json",
	     "its channel or mode is not the manifest's"},
		{MANIFEST, CHANNEL, OTHER_CHANNEL, 0,
	     "seals/seals-000001.ndjson.gz line 1 member seal.channel_id",
	     "it is not the manifest's channel"},
		{MANIFEST, CHANNEL, OTHER_CHANNEL, 0, "config/config-000001.json",
	     "its channel or version is not the one it stands for"},
		{MANIFEST, "\"first_chain_hash\":\"", NULL, 0,
	     "events/events-000001.ndjson.gz line 1 sequence 2 member (the whole line)",
	     "its SHA-256 is not the manifest's first_chain_hash"},
		{MANIFEST, "\"last_chain_hash\":\"", NULL, 0, "manifest.json",
	     "last_chain_hash is not the SHA-256 of the last event"},
		{MANIFEST, "\"previous_chain_hash\":\"", NULL, 0,
	     "leaves/leaves-000001.ndjson.gz line 1 member chain_hash",
	     "it is not the previous_chain_hash of the range's"},
		{MANIFEST, "\"config_versions\":[{\"hash\":\"", NULL, 0, "config/config-000001.json",
	     "its SHA-256 is not the hash that the manifest gives"},
		{MANIFEST, "\"version\":1}", "\"version\":2}", 0, "config/config-000001.json",
	     "'config/config-000002.json' must stand in its place"},
		{MANIFEST, "\"seq_from\":2", "\"seq_from\":null", 0, "manifest.json",
	     "requested_range must give either two times or two"},
		{MANIFEST, "[{\"bytes\":", "[{\"bytes\":1", 0, "part.json",
	     "its size, number, certification or channel is not"},
		{MANIFEST, "\"first_sequence\":", "\"first_sequence\":1", 0, "manifest.json",
	     "content_parts: the range of content-part-001.zip is"},
		{MANIFEST, "-001.zip\",\"sha256\":\"", NULL, 0, "",
	     "it says it belongs to CERT-2026-0000001, but the"},
		{MANIFEST, "\"certification_id\":\"CERT", "\"certification_id\":\"CERU", 0, "part.json",
	     "its size, number, certification or channel is not"},
		{MANIFEST, "\"v\":2", "\"v\":3", 0, "manifest.json",
	     "member 'v' is missing or its value is not allowed"},
		{MANIFEST, "\"v\":2", "\"v\":1", 0, "rounds/rounds-000001.ndjson.gz line 1",
	     "member 'authority' is missing or its value is not allowed"},
	};
	ALL_WRONG(&with_content, changes);
}

static void an_event_that_says_otherwise(void **state)
{
	(void)state;
	static const struct change changes[] = {
		{EVENTS, "\"sequence\":2", "\"sequence\":9", 0,
	     "events/events-000001.ndjson.gz line 1 sequence 2 member sequence",
	     "the line has another sequence number than its place"},
		{EVENTS, "\"chain\":\"live\"", "\"chain\":\"test\"", 0,
	     "events/events-000001.ndjson.gz line 1 sequence 2 member chain",
	     "it is not the manifest's mode"},
		{EVENTS, CHANNEL, OTHER_CHANNEL, 0,
	     "events/events-000001.ndjson.gz line 1 sequence 2 member channel_id",
	     "it is not the manifest's channel"},
		{EVENTS, "\"previous_chain_hash\":\"", NULL, 0,
	     "events/events-000001.ndjson.gz line 1 sequence 2 member previous_chain_hash",
	     "it is not the manifest's previous_chain_hash"},
		{EVENTS, "\"previous_chain_hash\":\"", NULL, 1,
	     "events/events-000001.ndjson.gz line 2 sequence 3 member previous_chain_hash",
	     "it is not the SHA-256 of the event before"},
		{EVENTS, "\"config_version\":1", "\"config_version\":9", 0,
	     "events/events-000001.ndjson.gz line 1 sequence 2 member config_version",
	     "the archive holds no configuration document of this"},
		{EVENTS, "\"hash\":\"", NULL, 0, "index.ndjson line 1",
	     "sequence, event_id or hash is not that of event 2"},
		{EVENTS, "\"event_id\":\"evt_0", NULL, 0, "index.ndjson line 1",
	     "sequence, event_id or hash is not that of event 2"},
		{EVENTS, "\"modality\":\"content\"", "\"modality\":\"hash_only\"", 0,
	     "events/events-000001.ndjson.gz line 1 sequence 2 member modality",
	     "it is not that of the configuration document of"},
		{EVENTS, "\"v\":1}", "\"v\":1} ", 0, "events/events-000001.ndjson.gz line 1",
	     "from byte 532 on it is not the canonical form of"},
		{EVENTS, "\"v\":1}\n", "\"v\":1}\n{}\n", 0, "events/events-000001.ndjson.gz line 2",
	     "member 'channel_id' is missing or its value is not"},
	};
	ALL_WRONG(&with_content, changes);
}

static void a_seal_that_says_otherwise(void **state)
{
	(void)state;
	static const struct change changes[] = {
		{SEALS, "\"chain\":\"live\"", "\"chain\":\"test\"", 0,
	     "seals/seals-000001.ndjson.gz line 1 member seal.chain", "it is not the manifest's mode"},
		{SEALS, CHANNEL, OTHER_CHANNEL, 0,
	     "seals/seals-000001.ndjson.gz line 1 member seal.channel_id",
	     "it is not the manifest's channel"},
		{SEALS, "\"chain_hash_before\":\"", NULL, 0,
	     "seals/seals-000001.ndjson.gz line 1 member seal.chain_hash_before",
	     "it is not the chain hash before the segment"},
		{SEALS, "\"chain_hash_before\":\"", NULL, 1,
	     "seals/seals-000001.ndjson.gz line 2 member seal.chain_hash_before",
	     "it is not the chain hash of the event before the"},
		{SEALS, "\"chain_hash_last\":\"", NULL, 0,
	     "seals/seals-000001.ndjson.gz line 1 member seal.chain_hash_last",
	     "it is not the chain hash of the segment's last event"},
		{SEALS, "\"first_sequence\":1", "\"first_sequence\":2", 0,
	     "seals/seals-000001.ndjson.gz line 1", "member 'count' is missing or its value is not"},
		{SEALS, "\"last_sequence\":7", "\"last_sequence\":6", 0,
	     "seals/seals-000001.ndjson.gz line 2", "member 'count' is missing or its value is not"},
		{SEALS, "\"previous_seal_hash\":null",
	     "\"previous_seal_hash\":\"00000000000000000000000000"
	     "00000000000000000000000000000000000000\"",
	     0, "seals/seals-000001.ndjson.gz line 1 member seal.previous_seal_hash",
	     "only the first segment of a chain has none"},
		{SEALS, "\"previous_seal_hash\":\"", NULL, 0,
	     "seals/seals-000001.ndjson.gz line 2 member seal.previous_seal_hash",
	     "it is not the SHA-256 of the seal document before"},
		{SEALS, "\"previous_token_hash\":null",
	     "\"previous_token_hash\":\"0000000000000000000000000"
	     "000000000000000000000000000000000000000\"",
	     0, "seals/seals-000001.ndjson.gz line 1 member path",
	     "the segment's events and seal do not lead to the"},
		{SEALS, "\"round_id\":\"rnd_1\"", "\"round_id\":\"rnd_9\"", 0,
	     "seals/seals-000001.ndjson.gz line 2 member round_id",
	     "the archive holds no such round behind that of the"},
		{ROUNDS, "\"round_id\":\"rnd_0\"", "\"round_id\":\"rnd_9\"", 0,
	     "seals/seals-000001.ndjson.gz line 1 member round_id",
	     "the archive holds no such round behind that of the"},
		{ROUNDS, "\"root\":\"", NULL, 0, "rounds/rounds-000001.ndjson.gz line 1",
	     "the timestamp is over something else"},
		{ROUNDS, "\"token\":\"MII", NULL, 0, "rounds/rounds-000001.ndjson.gz line 1",
	     "the signed data does not parse"},
	};
	ALL_WRONG(&plain, changes);
}

static void another_document_that_says_otherwise(void **state)
{
	(void)state;
	static const struct change changes[] = {
		{"mimetype", "asic-e", "asic-s", 0, "mimetype",
	     "the first entry is not 'mimetype' with the content"},
		{"genesis.json", "\"chain\":\"live\"", "\"chain\":\"test\"", 0, "genesis.json",
	     "its channel or mode is not the manifest's"},
		{"genesis.json", CHANNEL, OTHER_CHANNEL, 0, "genesis.json",
	     "its channel or mode is not the manifest's"},
		{"genesis.json", "\"v\":1", "\"v\":3", 0, "genesis.json",
	     "member 'v' is missing or its value is not allowed"},
		{CONFIG, CHANNEL, OTHER_CHANNEL, 0, "config/config-000001.json",
	     "its channel or version is not the one it stands for"},
		{CONFIG, "\"version\":1", "\"version\":4", 0, "config/config-000001.json",
	     "its channel or version is not the one it stands for"},
		{ARCHIVE_ASIC_NAME, "URI=\"README.txt\"", "URI=\"README.txx\"", 0,
	     "META-INF/ASiCManifest001.xml", "it does not list README.txt with its"},
	};
	ALL_WRONG(&plain, changes);
}

static void files_that_stand_in_other_places(void **state)
{
	(void)state;
	static const struct change changes[] = {
		{"mimetype", "mimetypf", "", 0, "mimetype",
	     "the first entry is not 'mimetype' with the content"},
		{"README.txt", "README.txx", "", 0, "META-INF/ASiCManifest001.xml",
	     "it does not list README.txx with its"},
		{CONFIG, "config/config-000009.json", "", 0, "META-INF/ASiCManifest001.xml",
	     "it does not list"},
		{EVENTS, "events/events-000002.ndjson.gz", "", 0, "META-INF/ASiCManifest001.xml",
	     "it does not list"},
		{ROUNDS, "sounds/rounds-000001.ndjson.gz", "", 0, "META-INF/ASiCManifest001.xml",
	     "it does not list"},
		{MANIFEST, "manifest.jsom", "", 0, "manifest.json",
	     "it is not the last entry but two of the ZIP"},
		{ARCHIVE_ASIC_NAME, "META-INF/ASiCManifest002.xml", "", 0, "META-INF/ASiCManifest001.xml",
	     "it is not the last entry but one of the ZIP"},
		{ARCHIVE_SIGNATURE_NAME, "META-INF/signature002.p7s", "", 0, "META-INF/signature001.p7s",
	     "it is not the last entry of the ZIP"},
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_manifest_that_says_otherwise),
		cmocka_unit_test(an_event_that_says_otherwise),
		cmocka_unit_test(a_seal_that_says_otherwise),
		cmocka_unit_test(another_document_that_says_otherwise),
		cmocka_unit_test(files_that_stand_in_other_places),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
