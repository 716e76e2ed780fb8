#include <unistd.h>

#include "testing.h"
#include "archive/archive_lines.h"
#include "test_archive_fixture.h"

static struct fixture fixture;

static int set_up(void **state)
{
	fixture_open(&fixture);
	return 0;
}

TEST_CASE(mimetype_stands_where_the_standard_wants_it)
{
	struct fixture_plan plan = {MODE_LIVE, 5, 1, 5, 5, false, 0, FAULT_NONE};
	struct fixture_archive made;
	assert_int_equal(fixture_make(&fixture, "mimetype", &plan, &made), 0);
	BUF_AUTO struct buf bytes = {.limit = 1 << 20};
	fixture_read(made.path, &bytes);
	assert_memory_equal(bytes.data, "PK\3\4", 4);
	assert_memory_equal(bytes.data + 30, "mimetype" ARCHIVE_MIMETYPE "PK\3\4",
	                    8 + strlen(ARCHIVE_MIMETYPE) + 4);
	assert_int_equal(made.sum.size_bytes, bytes.size);
	struct sha256 digest = sha256_of(bytes.data, bytes.size);
	assert_true(sha256_equal(&digest, &made.sum.sha256));
}

TEST_CASE(entries_are_in_their_order)
{
	static const char *const names[] = {"mimetype",
	                                    "README.txt",
	                                    "LEEME.txt",
	                                    "genesis.json",
	                                    "config/config-000001.json",
	                                    "config/config-000002.json",
	                                    "events/events-000001.ndjson.gz",
	                                    "leaves/leaves-000001.ndjson.gz",
	                                    "seals/seals-000001.ndjson.gz",
	                                    "rounds/rounds-000001.ndjson.gz",
	                                    "manifest.json",
	                                    "META-INF/ASiCManifest001.xml",
	                                    "META-INF/signature001.p7s"};
	struct fixture_plan plan = {MODE_LIVE, 20, 7, 14, 5, false, 0, FAULT_NONE};
	struct fixture_archive made;
	assert_int_equal(fixture_make(&fixture, "order", &plan, &made), 0);
	struct zip_reader *zip;
	assert_int_equal(zip_open(made.path, &zip, NULL), 0);
	assert_int_equal(zip_count(zip), sizeof names / sizeof *names);
	for (uint32_t i = 0; i < zip_count(zip); i++)
		assert_true(slice_is(zip_at(zip, i)->name, names[i]));
	zip_reader_free(zip);
}

TEST_CASE(manifest_reads_back)
{
	struct fixture_plan plan = {MODE_LIVE, 20, 7, 14, 5, true, 4, FAULT_NONE};
	struct fixture_archive made;
	assert_int_equal(fixture_make(&fixture, "manifest", &plan, &made), 0);
	struct zip_reader *zip;
	assert_int_equal(zip_open(made.path, &zip, NULL), 0);
	BUF_AUTO struct buf text = {.limit = 1 << 20};
	BUF_AUTO struct buf again = {.limit = 1 << 20};
	assert_int_equal(zip_entry_load(zip, zip_find(zip, "manifest.json"), 1 << 19, &text, NULL), 0);
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	struct archive_manifest manifest;
	assert_int_equal(archive_read_manifest(&arena, buf_slice(&text), &manifest, NULL), 0);
	assert_int_equal(manifest.event_count, 8);
	assert_int_equal(manifest.facts.first_sequence, 7);
	assert_int_equal(manifest.facts.requested_last, 14);
	assert_true(manifest.facts.requested_from_us == TIME_NONE);
	assert_int_equal(manifest.config_count, 2);
	assert_int_equal(manifest.file_count, 9);
	assert_string_equal(manifest.files[0].path, "README.txt");
	/* At most 2 entries besides the manifest and the index. */
	assert_int_equal(manifest.facts.part_count, 4);
	assert_string_equal(manifest.facts.parts[1].name, "content-part-002.zip");
	assert_int_equal(manifest.facts.parts[1].first_sequence, 9);
	assert_int_equal(manifest.facts.parts[1].last_sequence, 10);
	archive_manifest_write(&manifest, &again);
	assert_true(slice_equal(buf_slice(&text), buf_slice(&again)));
	zip_reader_free(zip);
}

TEST_CASE(writer_refuses_what_breaks_the_chain)
{
	struct fixture_plan plan = {MODE_LIVE, 5, 1, 5, 5, false, 0, FAULT_PREVIOUS_CHAIN_HASH};
	struct fixture_archive made;
	assert_int_equal(fixture_make(&fixture, "refused", &plan, &made), ERR_CORRUPT);
	char path[FIXTURE_PATH_SIZE];
	snprintf(path, sizeof path, "%s/refused.zip", fixture.directory);
	assert_int_not_equal(access(path, F_OK), 0); /* no incomplete file is left */
}

TEST_CASE(writer_refuses_an_incomplete_range)
{
	struct archive_facts facts = {.certification_id = "CERT-TEST-2026-0000001",
	                              .verification_code = "c",
	                              .channel_id = "chn_a",
	                              .mode = MODE_TEST,
	                              .requested_first = 1,
	                              .requested_last = 2,
	                              .requested_from_us = TIME_NONE,
	                              .requested_to_us = TIME_NONE,
	                              .first_sequence = 1,
	                              .last_sequence = 2,
	                              .service_name = "s",
	                              .service_prefix = "svc",
	                              .verification_url = "u"};
	char path[FIXTURE_PATH_SIZE];
	snprintf(path, sizeof path, "%s/incomplete.zip", fixture.directory);
	struct archive *archive;
	assert_int_equal(archive_begin(path, &facts, &archive, NULL), 0);
	assert_int_equal(archive_add_config(archive, 2, slice_of("{}"), NULL), 0);
	struct cms_signing signing = {0};
	struct zip_sum sum;
	assert_int_equal(archive_finish(archive, &signing, &sum, NULL), ERR_CORRUPT);
	assert_int_equal(archive_add_config(archive, 3, slice_of("{}"), NULL), ERR_USAGE);
	archive_free(archive);

	assert_int_equal(archive_begin(path, &facts, &archive, NULL), 0);
	struct sha256 hash = {{0}};
	assert_int_equal(archive_add_leaf(archive, 1, &hash, NULL), 0);
	assert_int_equal(archive_add_config(archive, 2, slice_of("{}"), NULL), ERR_USAGE);
	archive_free(archive);
}

TEST_CASE(parts_refuse_other_content)
{
	struct part_writer *writer;
	struct part_entry entry = {1, slice_of("evt_1"), sha256_of("right", 5), false};
	assert_int_equal(
		part_writer_begin(fixture.directory, "CERT-2026-0000001", "chn_a", 0, 0, &writer, NULL), 0);
	assert_int_equal(part_writer_add(writer, &entry, slice_of("wrong"), NULL), ERR_CORRUPT);
	assert_int_equal(part_writer_add(writer, &entry, slice_of("right"), NULL), ERR_USAGE);
	part_writer_free(writer);
	char path[FIXTURE_PATH_SIZE];
	snprintf(path, sizeof path, "%s/content-part-001.zip", fixture.directory);
	assert_int_not_equal(access(path, F_OK), 0);
}

TEST_CASE(parts_keep_to_their_bounds)
{
	enum { LIMIT = 20000, COUNT = 100 };
	struct part_writer *writer;
	static char content[4000];
	assert_int_equal(
		part_writer_begin(fixture.directory, "CERT-2026-0000002", "chn_a", LIMIT, 0, &writer, NULL),
		0);
	for (int i = 1; i <= COUNT; i++) {
		size_t size = (size_t)(i * 37 % 4000);
		struct part_entry entry = {i, slice_of("evt_1"), sha256_of(content, size), true};
		char name[] = "/tmp/constancia-part-XXXXXX";
		int fd = mkstemp(name);
		assert_true(fd >= 0);
		unlink(name);
		assert_int_equal(write(fd, content, size), size);
		assert_int_equal(part_writer_add_file(writer, &entry, fd, NULL), 0);
		close(fd);
	}
	const struct part_facts *parts;
	size_t count;
	assert_int_equal(part_writer_finish(writer, &parts, &count, NULL), 0);
	assert_in_range(count, 10, 20);
	int64_t next = 1;
	for (size_t i = 0; i < count; i++) {
		char path[FIXTURE_PATH_SIZE];
		struct zip_sum sum;
		snprintf(path, sizeof path, "%s/%s", fixture.directory, parts[i].name);
		assert_int_equal(zip_file_sum(path, &sum, NULL), 0);
		assert_true(sum.size_bytes == parts[i].size_bytes && sum.size_bytes <= LIMIT);
		/* Each part is full: the next entry would not have fitted. */
		assert_true(i + 1 == count || sum.size_bytes > LIMIT - 4500);
		assert_true(sha256_equal(&sum.sha256, &parts[i].sha256));
		assert_int_equal(parts[i].first_sequence, next);
		next = parts[i].last_sequence + 1;
		unlink(path);
	}
	assert_int_equal(next, COUNT + 1);
	part_writer_free(writer);
}

/* Each reader returns an error for any other line. */
TEST_CASE(readers_refuse_any_other_text)
{
	static const char *const texts[] = {"",
	                                    "no JSON",
	                                    "[]",
	                                    "7",
	                                    "{}",
	                                    "{\"v\":1}",
	                                    "{\"v\":2}",
	                                    "{\"chain\":\"other\"}",
	                                    "{\"channel_id\":\"a\\u0000b\"}",
	                                    "{\"path\":[1]}",
	                                    "{\"path\":[],\"round_id\":\"r\",\"seal\":7}",
	                                    "{\"authority\":\"a\",\"gen_time\":\"yesterday\"}",
	                                    "{\"sequence\":0}",
	                                    "[[[[[[[[[[]]]]]]]]]]"};
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct slice text = slice_of(texts[i]);
		struct event_facts event;
		struct archive_segment segment;
		struct archive_round round;
		struct archive_manifest manifest;
		struct config_facts config;
		struct part_head head;
		struct part_entry entry;
		struct sha256 hash;
		struct genesis_facts genesis;
		int64_t number;
		const int results[] = {archive_read_event(&arena, text, &event, NULL),
		                       archive_read_leaf(&arena, text, &number, &hash, NULL),
		                       archive_read_segment(&arena, text, &segment, NULL),
		                       archive_read_round(&arena, text, 1, &round, NULL),
		                       archive_read_round(&arena, text, 2, &round, NULL),
		                       archive_read_genesis(&arena, text, &genesis, NULL),
		                       archive_read_config(&arena, text, &config, NULL),
		                       archive_read_manifest(&arena, text, &manifest, NULL),
		                       archive_read_part_head(&arena, text, &head, NULL),
		                       archive_read_part_line(&arena, text, &entry, NULL)};
		for (size_t k = 0; k < sizeof results / sizeof *results; k++)
			if (results[k] != ERR_INVALID_EVIDENCE)
				fail_msg("reader %zu of '%s': %d", k, texts[i], results[k]);
	}
}

TEST_CASE(names_are_escaped)
{
	BUF_AUTO struct buf out = {.limit = 4096};
	archive_asic_file(&(struct archive_file){"a&b<c>\"d\n", {0}}, &out);
	assert_non_null(strstr(out.data, "a&amp;b&lt;c&gt;&quot;d "));
}

TEST_MAIN(set_up, fixture_tear_down)
