/* The line of an event has the same content whether the fast scanner or the JSON parser reads it,
 * and a line that the fast scanner accepts is byte for byte the record of its content. */
#include "testing.h"
#include "archive/archive_lines.h"
#include "archive/archive_scan.h"
#include "ledger/record.h"

#define ROUNDS 4000
#define MUTATIONS 40
#define LINE_MAX_HERE 8192

static uint64_t random_state = 7;

static uint32_t random_below(uint32_t count)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)((random_state >> 33) % count);
}

static void fill_randomly(uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)random_below(256);
}

/* ---- facts ---- */

/* Texts: plain, with what JSON escapes, with what is not ASCII. */
static const char *const pieces[] = {
	"a",    "Z",    "0",       "-",        " ",      "/",          "{",      "}",     ":",  ",",
	"\x7f", "null", "'",       "ref-1234", "<>&",    "~",          "\"",     "\\",    "\n", "\t",
	"\x01", "\x1f", "\\u0041", "ñ",        "\u20ac", "\U0001f600", "\u2028", "\u0301"};
#define PLAIN_PIECES 16
#define ALL_PIECES (sizeof pieces / sizeof *pieces)

static bool is_plain;

static struct slice random_text(char *room, size_t size_max)
{
	size_t size = 0, count = 1 + random_below(40);
	for (size_t i = 0; i < count; i++) {
		size_t which = random_below(is_plain ? PLAIN_PIECES : ALL_PIECES);
		size_t more = strlen(pieces[which]);
		if (size + more > size_max)
			break;
		memcpy(room + size, pieces[which], more);
		size += more;
	}
	return slice_make(room, size);
}

static int64_t random_time(void)
{
	static const char *const some[] = {"0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z",
	                                   "1970-01-01T00:00:00Z", "2024-02-29T12:00:00.000001Z",
	                                   "1969-12-31T23:59:59.999999Z"};
	int64_t time_us;
	if (random_below(4))
		return (int64_t)random_below(1u << 31) * 1000003 + random_below(1000000);
	assert_int_equal(time_parse(slice_of(some[random_below(5)]), "", &time_us, NULL), OK);
	return time_us;
}

static int64_t random_integer(void)
{
	static const int64_t some[] = {
		1, 9, 10, INT64_C(999999999999999), INT64_C(1000000000000000), INT64_C(9007199254740991)};
	return random_below(3) ? 1 + random_below(1u << 30) : some[random_below(6)];
}

static struct event_facts random_event(char client_ref[CLIENT_REF_MAX], char event_id[64])
{
	is_plain = random_below(2);
	struct event_facts event = {.channel_id = "chn_0123456789abcdef",
	                            .chain = random_below(2) ? MODE_LIVE : MODE_TEST,
	                            .sequence = random_integer(),
	                            .received_at_us = random_time(),
	                            .config_version = random_integer()};
	event.event_id =
		random_below(2) ? slice_of("evt_l0123456789abcdef1") : random_text(event_id, 64);
	struct declaration *declared = &event.declaration;
	declared->client_ref = random_text(client_ref, CLIENT_REF_MAX);
	declared->occurred_at_us = random_below(2) ? TIME_NONE : random_time();
	declared->modality = random_below(2) ? MODALITY_CONTENT : MODALITY_HASH_ONLY;
	declared->hash_algorithm = random_below(2) ? HASH_SHA256 : HASH_SHA512;
	fill_randomly(declared->hash, hash_algorithm_size(declared->hash_algorithm));
	fill_randomly(event.config_hash.bytes, SHA256_SIZE);
	fill_randomly(event.previous_chain_hash.bytes, SHA256_SIZE);
	return event;
}

static void is_same(const struct event_facts *a, const struct event_facts *b)
{
	const struct declaration *x = &a->declaration, *y = &b->declaration;
	assert_string_equal(a->channel_id, b->channel_id);
	assert_true(a->chain == b->chain && a->sequence == b->sequence);
	assert_true(a->received_at_us == b->received_at_us && a->config_version == b->config_version);
	assert_true(slice_equal(a->event_id, b->event_id));
	assert_true(slice_equal(x->client_ref, y->client_ref));
	assert_true(x->occurred_at_us == y->occurred_at_us && x->modality == y->modality);
	assert_true(x->hash_algorithm == y->hash_algorithm);
	assert_memory_equal(x->hash, y->hash, hash_algorithm_size(x->hash_algorithm));
	assert_true(sha256_equal(&a->config_hash, &b->config_hash));
	assert_true(sha256_equal(&a->previous_chain_hash, &b->previous_chain_hash));
}

/* Reads the same document with the parser: the scanner does not accept a leading space. */
static int read_as_tree(struct arena *arena, struct slice line, struct event_facts *ret)
{
	struct event_facts none;
	char *spaced = arena_alloc(arena, line.size + 1);
	assert_non_null(spaced);
	spaced[0] = ' ';
	memcpy(spaced + 1, line.data, line.size);
	assert_false(archive_scan_event(arena, slice_make(spaced, line.size + 1), &none));
	return archive_read_event(arena, slice_make(spaced, line.size + 1), ret, NULL);
}

/* Scans any line, copied to the end of an allocation, so that a sanitizer detects a read beyond
 * it. */
static bool look(struct slice line)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	BUF_AUTO struct buf record = {.limit = LINE_MAX_HERE};
	struct event_facts event, read;
	char *copy = malloc(line.size ? line.size : 1);
	assert_non_null(copy);
	memcpy(copy, line.data, line.size);
	line = slice_make(copy, line.size);
	bool scanned = archive_scan_event(&arena, line, &event);
	if (scanned) {
		event_record(&event, &record);
		if (!slice_equal(buf_slice(&record), line))
			fail_msg("differs from its written form: %.*s", (int)line.size, line.data);
		assert_int_equal(read_as_tree(&arena, line, &read), 0);
		is_same(&event, &read);
	}
	free(copy);
	return scanned;
}

static bool has_escapes(struct slice text)
{
	for (size_t i = 0; i < text.size; i++)
		if (text.data[i] & 0x80 || text.data[i] == '\\' || (uint8_t)text.data[i] < ' ')
			return true;
	return false;
}

/* ---- tests ---- */

TEST_CASE(same_facts)
{
	int scanned_count = 0;
	for (int i = 0; i < ROUNDS; i++) {
		ARENA_AUTO struct arena arena = {.limit = 1 << 20};
		BUF_AUTO struct buf line = {.limit = LINE_MAX_HERE};
		char client_ref[CLIENT_REF_MAX], event_id[64];
		struct event_facts event = random_event(client_ref, event_id), read, read_by_tree;
		event_record(&event, &line);
		assert_int_equal(archive_read_event(&arena, buf_slice(&line), &read, NULL), 0);
		is_same(&event, &read);
		assert_int_equal(read_as_tree(&arena, buf_slice(&line), &read_by_tree), 0);
		is_same(&event, &read_by_tree);
		bool scanned = look(buf_slice(&line));
		scanned_count += scanned;
		if (has_escapes(buf_slice(&line)))
			assert_false(scanned);
		else if (event.sequence < INT64_C(1000000000000000) &&
		         event.config_version < INT64_C(1000000000000000))
			assert_true(scanned);
	}
	assert_true(scanned_count > ROUNDS / 8);
}

static void mutate(struct buf *line)
{
	static const char bytes[] = "\"\\{}:,0123456789abcdefABCDEFTZtz.+-e nul\n\xc3";
	char *data = line->data;
	size_t at = random_below((uint32_t)line->size), more;
	char byte = bytes[random_below(sizeof bytes)];
	switch (random_below(5)) {
	case 0: data[at] = byte; break;
	case 1: data[at] ^= (char)(1 << random_below(8)); break;
	case 2: /* left out */
		memmove(data + at, data + at + 1, line->size - at - 1);
		line->size--;
		break;
	case 3: /* put in */
		buf_add_byte(line, 0);
		data = line->data;
		memmove(data + at + 1, data + at, line->size - at - 1);
		data[at] = byte;
		break;
	case 4: /* the end is missing or misplaced */
		more = random_below(20) ? random_below(3) : random_below((uint32_t)line->size);
		line->size -= more < line->size ? more : 0;
		break;
	}
}

/* ---- lines of a part's index ---- */

static bool look_at_part_line(struct slice line)
{
	ARENA_AUTO struct arena arena = {.limit = 1 << 20};
	BUF_AUTO struct buf again = {.limit = LINE_MAX_HERE};
	BUF_AUTO struct buf spaced = {.limit = LINE_MAX_HERE};
	struct part_entry entry, read;
	if (!archive_scan_part_line(line, &entry))
		return false;
	part_index_line(&entry, &again);
	if (!slice_equal(buf_slice(&again), line))
		fail_msg("differs from its written form: %.*s", (int)line.size, line.data);
	buf_add_text(&spaced, " ");
	buf_add_slice(&spaced, line);
	assert_false(archive_scan_part_line(buf_slice(&spaced), &read));
	assert_int_equal(archive_read_part_line(&arena, buf_slice(&spaced), &read, NULL), 0);
	assert_true(entry.sequence == read.sequence && entry.is_json == read.is_json);
	assert_true(sha256_equal(&entry.hash, &read.hash));
	assert_true(slice_equal(entry.event_id, read.event_id));
	return true;
}

TEST_CASE(altered_lines)
{
	for (int i = 0; i < ROUNDS; i++) {
		char client_ref[CLIENT_REF_MAX], event_id[64];
		struct event_facts event = random_event(client_ref, event_id);
		for (int k = 0; k < MUTATIONS; k++) {
			BUF_AUTO struct buf line = {.limit = LINE_MAX_HERE};
			event_record(&event, &line);
			for (uint32_t count = 1 + random_below(2); count > 0 && line.size > 1; count--)
				mutate(&line);
			(void)look(buf_slice(&line));
		}
	}
}

#define HASH32 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define LINE(reference, config_hash, version, hash, algorithm, occurred, received, sequence)       \
	"{\"chain\":\"live\",\"channel_id\":\"chn_1\",\"client_ref\":\"" reference                     \
	"\",\"config_hash\":\"" config_hash "\",\"config_version\":" version                           \
	",\"event_id\":\"evt_1\",\"hash\":\"" hash "\",\"hash_alg\":\"" algorithm                      \
	"\",\"modality\":\"content\",\"occurred_at\":" occurred ",\"previous_chain_hash\":\"" HASH32   \
	"\",\"received_at\":" received ",\"sequence\":" sequence ",\"v\":1}"
#define NUMBER(text) LINE("r", HASH32, "1", HASH32, "sha-256", "null", TIME, text)
#define RECEIVED(text) LINE("r", HASH32, "1", HASH32, "sha-256", "null", text, "1")
#define OCCURRED(text) LINE("r", HASH32, "1", HASH32, "sha-256", text, TIME, "1")
#define TIME "\"2026-01-02T03:04:05.678901Z\""

TEST_CASE(ways_to_write)
{
	static const char *const good[] = {
		NUMBER("1"),
		NUMBER("999999999999999"),
		OCCURRED(TIME),
		LINE("r", HASH32, "7", HASH32 HASH32, "sha-512", "null", TIME, "10"),
	};
	static const char *const others[] = {
		"",
		"{",
		NUMBER("01"),
		NUMBER("0"),
		NUMBER("-0"),
		NUMBER("-1"),
		NUMBER("1.0"),
		NUMBER("1e3"),
		NUMBER("1E0"),
		NUMBER("+1"),
		NUMBER(" 1"),
		NUMBER("1 "),
		NUMBER(""),
		NUMBER("\"1\""),
		NUMBER("1000000000000000"),
		NUMBER("9007199254740993"),
		NUMBER("99999999999999999999999999"),
		RECEIVED("\"2026-01-02T03:04:05Z\""),
		RECEIVED("\"2026-01-02T03:04:05.678Z\""),
		RECEIVED("\"2026-01-02T03:04:05.6789010Z\""),
		RECEIVED("\"2026-01-02T03:04:05.678901z\""),
		RECEIVED("\"2026-01-02t03:04:05.678901Z\""),
		RECEIVED("\"2026-01-02T03:04:05.678901+00:00\""),
		RECEIVED("\"2026-01-02T03:04:05.678901-00:00\""),
		RECEIVED("\"2026-01-02T04:04:05+01:00\""),
		RECEIVED("\"2026-01-02T04:04:05.1+01:00\""),
		RECEIVED("\"2026-02-29T03:04:05.678901Z\""),
		RECEIVED("null"),
		RECEIVED("1"),
		OCCURRED("\"2026-01-02T03:04:05Z\""),
		OCCURRED("\"\""),
		OCCURRED("\"null\""),
		OCCURRED("nul"),
		OCCURRED("nulll"),
		LINE("r", HASH32, "1", HASH32, "sha-512", "null", TIME, "1"),
		LINE("r", HASH32, "1", HASH32 HASH32, "sha-256", "null", TIME, "1"),
		LINE("r", HASH32, "1", HASH32, "sha-257", "null", TIME, "1"),
		LINE("r", HASH32, "1", HASH32, "SHA-256", "null", TIME, "1"),
		LINE("r", HASH32, "1", "A" HASH32, "sha-256", "null", TIME, "1"),
		LINE("r", "00112233445566778899AABBccddeeff00112233445566778899aabbccddeeff", "1", HASH32,
	         "sha-256", "null", TIME, "1"),
		LINE("r", HASH32, "1", "00112233445566778899aabbccddeeff00112233445566778899aabbccddeefF",
	         "sha-256", "null", TIME, "1"),
		LINE("", HASH32, "1", HASH32, "sha-256", "null", TIME, "1"),
		LINE("\\u0041", HASH32, "1", HASH32, "sha-256", "null", TIME, "1"),
		LINE("\\/", HASH32, "1", HASH32, "sha-256", "null", TIME, "1"),
		LINE("ñ", HASH32, "1", HASH32, "sha-256", "null", TIME, "1"),
		NUMBER("1") " ",
		NUMBER("1") "}",
		NUMBER("1") "\n",
		" " NUMBER("1"),
	};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		if (!look(slice_of(good[i])))
			fail_msg("not scanned: %s", good[i]);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (look(slice_of(others[i])))
			fail_msg("scanned: %s", others[i]);
	/* Every prefix of it. */
	for (size_t size = 0; size < strlen(good[2]); size++)
		assert_false(look(slice_make(good[2], size)));
}

/* A reference may not be longer than registration allows. */
TEST_CASE(long_references)
{
	for (size_t size = CLIENT_REF_MAX - 1; size <= CLIENT_REF_MAX + 1; size++) {
		BUF_AUTO struct buf line = {.limit = LINE_MAX_HERE};
		ARENA_AUTO struct arena arena = {.limit = 1 << 20};
		char client_ref[CLIENT_REF_MAX + 1], event_id[64];
		struct event_facts read, event = random_event(client_ref, event_id);
		memset(client_ref, 'r', sizeof client_ref);
		event.event_id = slice_of("evt_1");
		event.sequence = event.config_version = 1;
		event.declaration.client_ref = slice_make(client_ref, size);
		event_record(&event, &line);
		bool allowed = size <= CLIENT_REF_MAX;
		assert_true(look(buf_slice(&line)) == allowed);
		assert_true((archive_read_event(&arena, buf_slice(&line), &read, NULL) == 0) == allowed);
	}
}

TEST_CASE(without_memory)
{
	ARENA_AUTO struct arena arena = {.limit = 0};
	struct event_facts event;
	assert_false(archive_scan_event(&arena, slice_of(NUMBER("1")), &event));
	assert_int_equal(archive_read_event(&arena, slice_of(NUMBER("1")), &event, NULL),
	                 ERR_NO_MEMORY);
}

TEST_CASE(lines_of_parts)
{
	for (int i = 0; i < ROUNDS; i++) {
		char event_id[64];
		is_plain = random_below(2);
		struct part_entry entry = {.sequence = random_integer(),
		                           .event_id = random_text(event_id, sizeof event_id),
		                           .is_json = random_below(2)};
		fill_randomly(entry.hash.bytes, SHA256_SIZE);
		for (int k = 0; k < MUTATIONS; k++) {
			BUF_AUTO struct buf line = {.limit = LINE_MAX_HERE};
			part_index_line(&entry, &line);
			if (k == 0)
				assert_int_equal(look_at_part_line(buf_slice(&line)),
				                 !has_escapes(buf_slice(&line)) &&
				                     entry.sequence < INT64_C(1000000000000000));
			for (uint32_t count = random_below(3); count > 0 && line.size > 1; count--)
				mutate(&line);
			(void)look_at_part_line(buf_slice(&line));
		}
	}
}

TEST_MAIN(NULL, NULL)
