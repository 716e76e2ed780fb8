/* Receipts of clients, compared with archives. */
#include "testing.h"
#include "archive/receipt.h"
#include "base/json.h"
#include "verify/verify_check.h"
#include "test_archive_fixture.h"

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

static int set_up(void **state)
{
	struct fixture_plan before = plan;
	struct fixture_archive sixth;
	fixture_open(&fixture);
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

TEST_MAIN(set_up, tear_down)
