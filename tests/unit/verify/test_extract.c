/* Evidence records extracted from archives. */
#include "testing.h"
#include "ledger/ledger.h"
#include "seal/evidence_record.h"
#include "verify/extract.h"
#include "test_archive_fixture.h"

static struct fixture fixture;
static struct arena arena;
static struct error error;

static int set_up(void **state)
{
	fixture_open(&fixture);
	arena_init(&arena, (size_t)64 << 20);
	return 0;
}

static int tear_down(void **state)
{
	fixture_close(&fixture);
	arena_free(&arena);
	return 0;
}

static struct fixture_archive make(const char *name, const struct fixture_plan *plan)
{
	struct fixture_archive made;
	fixture_forget(&fixture);
	if (fixture_make(&fixture, name, plan, &made) != 0)
		fail_msg("the archive %s could not be made", name);
	return made;
}

static int extract_id(const char *path, const char *event_id, struct extracted *extracted)
{
	error = (struct error){0};
	return extract_record(&(struct extraction){.archive = path, .event_id = event_id}, &arena,
	                      extracted, &error);
}

static int extract(const char *path, enum mode mode, int64_t sequence, struct extracted *extracted)
{
	char event_id[ID_SIZE];
	event_id_make(FIXTURE_CHANNEL, mode, sequence, event_id);
	return extract_id(path, event_id, extracted);
}

static void assert_covers(const struct extracted *extracted, struct slice roots)
{
	EVIDENCE_RECORD_AUTO struct evidence_record *record = NULL;
	struct digest digests[DIGEST_ALGORITHM_COUNT] = {
		digest_by(DIGEST_SHA256, extracted->event.data, extracted->event.size)};
	struct evidence_query question = {.roots_pem = roots, .at_us = extracted->gen_time_us};
	struct evidence_facts facts;
	assert_int_equal(evidence_record_parse(extracted->record, &record, &error), 0);
	if (evidence_record_verify(record, digests, &question, &arena, &facts, &error))
		fail_msg("event %d: %s", (int)extracted->sequence, error.cause);
	assert_true(facts.trusted);
	assert_int_equal(facts.exists_since_us, extracted->gen_time_us);
}

/* Ranges that begin and end within segments, and at their ends. */
TEST_CASE(test_every_event)
{
	static const struct fixture_plan plans[] = {
		{MODE_LIVE, 1, 1, 1, 1, false, 0, FAULT_NONE},
		{MODE_LIVE, 20, 1, 20, 5, false, 0, FAULT_NONE},
		{MODE_LIVE, 20, 7, 14, 5, false, 0, FAULT_NONE},
		{MODE_LIVE, 40, 13, 29, 16, true, 0, FAULT_NONE},
	};
	for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
		struct fixture_archive made = make("every", &plans[i]);
		for (int64_t sequence = plans[i].first; sequence <= plans[i].last; sequence++) {
			struct extracted extracted;
			if (extract(made.path, MODE_LIVE, sequence, &extracted) != 0)
				fail_msg("event %d: %s", (int)sequence, error.cause);
			assert_int_equal(extracted.sequence, sequence);
			assert_true(extracted.received_at_us <= extracted.gen_time_us + 300 * US_PER_SECOND);
			assert_true(extracted.authority[0] && extracted.segment_id[0]);
			assert_covers(&extracted, fixture.roots.timestamps);
		}
	}
}

TEST_CASE(test_not_there)
{
	static const struct fixture_plan live = {MODE_LIVE, 20, 7, 14, 5, false, 0, FAULT_NONE};
	static const struct fixture_plan test = {MODE_TEST, 3, 1, 3, 5, false, 0, FAULT_NONE};
	struct fixture_archive made = make("there", &live);
	struct extracted extracted = {0};
	assert_int_equal(extract(made.path, MODE_LIVE, 6, &extracted), ERR_NOT_FOUND);
	assert_non_null(strstr(error.cause, "contains events 7 to 14"));
	assert_int_equal(extract(made.path, MODE_LIVE, 15, &extracted), ERR_NOT_FOUND);
	assert_int_equal(extract(made.path, MODE_TEST, 8, &extracted), ERR_NOT_FOUND);
	assert_int_equal(extract_id(made.path, "evt_", &extracted), ERR_NOT_FOUND);
	assert_int_equal(extract_id(made.path, "", &extracted), ERR_NOT_FOUND);
	assert_int_equal(extract(fixture.trust, MODE_LIVE, 8, &extracted), ERR_INVALID_EVIDENCE);
	assert_int_equal(extract("/nowhere.zip", MODE_LIVE, 8, &extracted), ERR_IO);
	made = make("test", &test);
	assert_int_equal(extract(made.path, MODE_TEST, 1, &extracted), ERR_REFUSED);
	assert_null(extracted.record.data);
}

/* The path from the event to the token is checked; other faults are for `verify`. */
TEST_CASE(test_faults)
{
	static const enum fixture_fault faults[] = {
		FAULT_EVENT_FOREIGN,   FAULT_PATH,       FAULT_LEAF,       FAULT_LEAF_MISSING,
		FAULT_SEGMENT_MISSING, FAULT_ROUND_ROOT, FAULT_SEAL_COUNT, FAULT_ROUND_REPLAY,
	};
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		struct fixture_plan plan = {MODE_LIVE, 20, 2, 19, 5, false, 0, faults[i]};
		struct fixture_archive made = make("fault", &plan);
		int refused = 0;
		for (int64_t sequence = 2; sequence <= 19; sequence++) {
			struct extracted extracted;
			int result = extract(made.path, MODE_LIVE, sequence, &extracted);
			if (!result)
				assert_covers(&extracted, fixture.roots.timestamps);
			else
				assert_int_equal(result, ERR_INVALID_EVIDENCE);
			refused += result != 0;
		}
		if (refused == 0)
			fail_msg("fault %d is not noticed", (int)faults[i]);
	}
}

/* Whatever is damaged, the result covers the event or there is none. */
TEST_CASE(test_damaged)
{
	static const struct fixture_plan plan = {MODE_LIVE, 9, 3, 8, 4, false, 0, FAULT_NONE};
	struct fixture_archive made = make("whole", &plan);
	char damaged[FIXTURE_PATH_SIZE];
	BUF_AUTO struct buf content = {.limit = (size_t)1 << 20};
	int refused = 0, taken = 0;
	fixture_read(made.path, &content);
	snprintf(damaged, sizeof damaged, "%s/damaged.zip", fixture.directory);
	for (size_t at = 0; at < content.size; at += 37) {
		struct extracted extracted;
		content.data[at] ^= 0x10;
		fixture_write(damaged, buf_slice(&content));
		content.data[at] ^= 0x10;
		arena_reset(&arena);
		int result = extract(damaged, MODE_LIVE, 5, &extracted);
		assert_true(!result || result == ERR_INVALID_EVIDENCE || result == ERR_NOT_FOUND ||
		            result == ERR_REFUSED);
		taken += !result;
		refused += result != 0;
		if (!result) {
			EVIDENCE_RECORD_AUTO struct evidence_record *record = NULL;
			struct digest digests[DIGEST_ALGORITHM_COUNT] = {
				digest_by(DIGEST_SHA256, extracted.event.data, extracted.event.size)};
			assert_int_equal(evidence_record_parse(extracted.record, &record, &error), 0);
			assert_true(evidence_record_covers(record, digests));
		}
	}
	assert_true(refused > 10 && taken > 10);
	fixture_write(damaged, slice_make(content.data, content.size / 2));
	struct extracted extracted;
	assert_int_equal(extract(damaged, MODE_LIVE, 5, &extracted), ERR_INVALID_EVIDENCE);
}

static int stop(void *context, const char *path, uint64_t done, uint64_t total)
{
	int *calls = context;
	assert_non_null(path);
	assert_true(done <= total);
	return ++*calls == 2 ? ERR_UNAVAILABLE : 0;
}

TEST_CASE(test_progress)
{
	static const struct fixture_plan plan = {MODE_LIVE, 9000, 1, 9000, 4000, false, 0, FAULT_NONE};
	struct fixture_archive made = make("long", &plan);
	struct extracted extracted;
	char event_id[ID_SIZE];
	int calls = 0;
	event_id_make(FIXTURE_CHANNEL, MODE_LIVE, 8999, event_id);
	struct extraction extraction = {made.path, event_id, stop, &calls};
	assert_int_equal(extract_record(&extraction, &arena, &extracted, &error), ERR_UNAVAILABLE);
	calls = 2;
	assert_int_equal(extract_record(&extraction, &arena, &extracted, &error), 0);
	assert_true(calls > 3);
	assert_covers(&extracted, fixture.roots.timestamps);
}

/* An archive and receipts of an earlier version. */
TEST_CASE(test_version_1)
{
	const char *folder = getenv("CONSTANCIA_EVIDENCE_1");
	char path[512];
	BUF_AUTO struct buf receipts = {.limit = (size_t)1 << 20};
	BUF_AUTO struct buf roots = {.limit = (size_t)1 << 20};
	int found = 0;
	assert_non_null(folder);
	snprintf(path, sizeof path, "%s/receipts.ndjson", folder);
	fixture_read(path, &receipts);
	snprintf(path, sizeof path, "%s/trust.pem", folder);
	fixture_read(path, &roots);
	snprintf(path, sizeof path, "%s/archive.zip", folder);
	for (char *at = receipts.data; (at = strstr(at, "\"event_id\": \""));) {
		char event_id[ID_SIZE];
		struct extracted extracted;
		at += strlen("\"event_id\": \"");
		snprintf(event_id, sizeof event_id, "%.*s", (int)strcspn(at, "\""), at);
		if (extract_id(path, event_id, &extracted) != 0)
			continue;
		assert_covers(&extracted, buf_slice(&roots));
		found++;
	}
	assert_true(found > 0);
}

TEST_MAIN(set_up, tear_down)
