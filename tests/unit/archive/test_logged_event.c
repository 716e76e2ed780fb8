#include "testing.h"

#include "archive/logged_event.h"
#include "failing.h"
#include "ledger/ledger.h"
#include "tlog/entry.h"

#define EVENTS 4
#define FIRST 2 /* of the segment */
#define CHANNEL "chn_0123456789abcdef"
#define MEMORY ((size_t)32 << 20)
#define ORIGIN "example.com/log"
#define SIGNATURE "\n\xe2\x80\x94 " ORIGIN " AAAAAAAAAAA=\n"

/* What a test makes wrong. Zeroed: nothing. */
struct made {
	const char *channel_id; /* of the seal document */
	const char *chain;      /* of the seal document */
	enum mode mode;         /* of the events */
	int64_t later;          /* the proof is of so many events later than the first */
	int64_t seal_later;     /* so is the segment */
	int64_t skipped;        /* left out of the records; 0: none */
	int64_t unlinked;       /* has another previous_chain_hash; 0: none */
	int64_t renamed;        /* has the identifier of another event; 0: none */
	int index_shift;
	bool other_last, longer, without_end, spaced, other_tag;
};

static struct event_facts make_event(const struct made *made, int64_t sequence,
                                     const struct sha256 *previous, char id[ID_SIZE])
{
	event_id_make(CHANNEL, made->mode, sequence + (sequence == made->renamed), id);
	struct event_facts event = {
		.channel_id = CHANNEL,
		.chain = made->mode,
		.sequence = sequence,
		.event_id = slice_of(id),
		.declaration = {slice_of("ref"), TIME_NONE, MODALITY_HASH_ONLY, HASH_SHA256, {7}},
		.received_at_us = 1700000000000000,
		.config_version = 1,
		.previous_chain_hash = *previous};
	if (sequence == made->unlinked)
		event.previous_chain_hash.bytes[0] ^= 1;
	return event;
}

/* Appends the records from FIRST + made->later on. Returns the chain hash of the last event. */
static struct sha256 add_records(const struct made *made, struct buf *lines)
{
	struct sha256 previous = {{1}};
	for (int64_t sequence = 1; sequence <= EVENTS; sequence++) {
		char id[ID_SIZE];
		struct event_facts event = make_event(made, sequence, &previous, id);
		BUF_AUTO struct buf record = {.limit = EVENT_RECORD_MAX};
		event_record(&event, &record);
		assert_int_equal(buf_check(&record), OK);
		previous = sha256_of(record.data, record.size);
		if (sequence < FIRST + made->later || sequence == made->skipped)
			continue;
		buf_add_slice(lines, buf_slice(&record));
		buf_add_text(lines, made->spaced && sequence == EVENTS ? " \n" : "\n");
	}
	if (made->longer)
		buf_add_text(lines, "{}\n");
	if (made->without_end)
		lines->size--;
	return previous;
}

static void add_proof(const struct made *made, struct slice lines, const struct sha256 *leaf,
                      struct buf *out)
{
	const struct sha256 others[2] = {{{5}}, {{6}}};
	const struct sha256 left = merkle_node(&others[0], leaf);
	struct checkpoint checkpoint = {.origin = ORIGIN, .size = 3};
	const struct merkle_path path = {2, {others[0], others[1]}};
	BUF_AUTO struct buf note = {.limit = NOTE_SIZE_MAX};
	checkpoint.root = merkle_node(&left, &others[1]);
	checkpoint_write(&checkpoint, &note);
	buf_add_text(&note, SIGNATURE);
	assert_int_equal(
		logged_event_write(lines, (uint64_t)(1 + made->index_shift), &path, buf_slice(&note), out),
		OK);
}

static void make(const struct made *made, struct buf *out)
{
	BUF_AUTO struct buf lines = {.limit = LOGGED_EVENT_LINES_MAX};
	BUF_AUTO struct buf records = {.limit = LOGGED_EVENT_LINES_MAX};
	struct seal_document seal = {.segment_id = "seg_1",
	                             .channel_id = made->channel_id ? made->channel_id : CHANNEL,
	                             .chain = made->chain ? made->chain : "live",
	                             .first_sequence = FIRST + made->seal_later,
	                             .last_sequence = EVENTS,
	                             .chain_hash_last = add_records(made, &records),
	                             .previous_seal_hash = &(struct sha256){{3}},
	                             .clock = {.source = "ntp_adjtime"}};
	if (made->other_last)
		seal.chain_hash_last.bytes[0] ^= 1;
	seal_document_write(&seal, &lines);
	struct tlog_entry entry = {.first_sequence = seal.first_sequence,
	                           .last_sequence = seal.last_sequence,
	                           .chain_hash_last = seal.chain_hash_last,
	                           .seal_hash = sha256_of(lines.data, lines.size)};
	assert_true(tlog_tag(seal.channel_id, seal.chain, &entry.tag));
	entry.tag.bytes[0] ^= made->other_tag;
	buf_add_byte(&lines, '\n');
	buf_add_slice(&lines, buf_slice(&records));
	BUF_AUTO struct buf scratch = {.limit = TLOG_ENTRY_MAX};
	struct sha256 leaf;
	assert_int_equal(tlog_entry_leaf(&entry, &scratch, &leaf), OK);
	add_proof(made, buf_slice(&lines), &leaf, out);
}

TEST_CASE(test_an_event_is_read_from_its_proof)
{
	for (int64_t from = FIRST; from <= EVENTS; from++) {
		ARENA_AUTO struct arena arena = {.limit = MEMORY};
		BUF_AUTO struct buf text = {.limit = LOGGED_EVENT_MAX};
		struct logged_event found;
		make(&(struct made){.later = from - FIRST}, &text);
		assert_true(logged_event_is(buf_slice(&text)));
		assert_int_equal(logged_event_read(&arena, buf_slice(&text), &found, NULL), OK);
		assert_int_equal(found.event.sequence, from);
		assert_int_equal(found.index, 1);
		assert_int_equal(found.checkpoint.size, 3);
		assert_int_equal(found.seal.last_sequence, EVENTS);
		assert_true(found.record.data[0] == '{');
	}
	assert_false(logged_event_is(slice_of("{\"v\":1}")));
	assert_false(logged_event_is(slice_of("c2sp")));
}

static void refused(struct made made, const char *why)
{
	ARENA_AUTO struct arena arena = {.limit = MEMORY};
	BUF_AUTO struct buf text = {.limit = LOGGED_EVENT_MAX};
	struct logged_event found;
	struct error error = {0};
	make(&made, &text);
	assert_int_equal(logged_event_read(&arena, buf_slice(&text), &found, &error),
	                 ERR_INVALID_EVIDENCE);
	if (!strstr(error.cause, why))
		fail_msg("%s: instead of: %s", error.cause, why);
}

#define WITH(...) ((struct made){__VA_ARGS__})

TEST_CASE(test_what_does_not_belong_together_is_refused)
{
	static const char not_of_it[] = "not of a live segment", no_end[] = "do not lead to the end";
	refused(WITH(.channel_id = "chn_0123456789abcdeg"), not_of_it);
	refused(WITH(.chain = "test"), not_of_it);
	refused(WITH(.mode = MODE_TEST), not_of_it);
	refused(WITH(.mode = MODE_TEST, .chain = "test"), not_of_it);
	refused(WITH(.seal_later = 1), not_of_it);
	refused(WITH(.renamed = 2), not_of_it);
	refused(WITH(.skipped = 3), "does not follow");
	refused(WITH(.unlinked = 3), "does not follow");
	refused(WITH(.unlinked = EVENTS), "does not follow");
	refused(WITH(.skipped = EVENTS), no_end);
	refused(WITH(.other_last = true), no_end);
	refused(WITH(.without_end = true), no_end);
	refused(WITH(.longer = true), "");
	refused(WITH(.spaced = true), "canonical");
	refused(WITH(.other_tag = true), "does not lead");
	refused(WITH(.index_shift = -1), "does not lead");
	refused(WITH(.index_shift = 2), "does not lead");
}

TEST_CASE(test_other_proofs_are_of_no_event)
{
	static const struct {
		const char *extra, *why;
	} wrong[] = {{"", "no extra data"},
	             {"extra \n", "no extra data"},
	             {"extra ====\n", "not base64"},
	             {"extra AAAA\n", "the seal document is missing"},
	             {"extra e30K\n", ""}, /* {} and a line feed */
	             {"extra Cg==\n", ""}};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		ARENA_AUTO struct arena arena = {.limit = MEMORY};
		BUF_AUTO struct buf text = {.limit = LOGGED_EVENT_MAX};
		struct logged_event found;
		struct error error = {0};
		buf_printf(&text, "c2sp.org/tlog-proof@v1\n%sindex 0\n\nx", wrong[i].extra);
		assert_int_equal(logged_event_read(&arena, buf_slice(&text), &found, &error),
		                 ERR_INVALID_EVIDENCE);
		if (!error.cause[0] || !strstr(error.cause, wrong[i].why))
			fail_msg("%s: instead of: %s", error.cause, wrong[i].why);
	}
}

TEST_CASE(test_every_byte_counts)
{
	BUF_AUTO struct buf text = {.limit = LOGGED_EVENT_MAX};
	make(&(struct made){0}, &text);
	const char *note = strstr(text.data, "\n\n");
	assert_non_null(note);
	/* The signatures are not verified here. */
	size_t end = (size_t)(strstr(note + 2, "\n\n") - text.data);
	for (size_t i = 0; i < end; i++) {
		ARENA_AUTO struct arena arena = {.limit = MEMORY};
		struct logged_event found;
		if (text.data[i + 1] == '=') /* some bits of the last character say nothing */
			continue;
		bool in_origin = i >= (size_t)(note + 2 - text.data) &&
		                 i < (size_t)(note + 2 - text.data) + sizeof ORIGIN - 1;
		text.data[i] ^= 1;
		int result = logged_event_read(&arena, buf_slice(&text), &found, NULL);
		text.data[i] ^= 1;
		if (result != (in_origin ? OK : ERR_INVALID_EVIDENCE))
			fail_msg("byte %zu: %d", i, result);
	}
}

/* A lack of memory makes no proof false. */
TEST_CASE(test_memory_lacks)
{
	BUF_AUTO struct buf text = {.limit = LOGGED_EVENT_MAX};
	make(&(struct made){0}, &text);
	int at = 1;
	for (;; at++) {
		ARENA_AUTO struct arena arena = {.limit = MEMORY};
		struct logged_event found;
		failing_arm(FAILING_MEMORY, at);
		int result = logged_event_read(&arena, buf_slice(&text), &found, NULL);
		const char *failed = failing_disarm();
		if (!failed)
			break;
		if (result && result != ERR_NO_MEMORY) /* a line has two readers */
			fail_msg("%s, call %d: %d", failed, at, result);
	}
	assert_true(at > 10);
}

TEST_MAIN(NULL, NULL)
