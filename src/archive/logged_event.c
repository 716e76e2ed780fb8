#include "archive/logged_event.h"

#include "archive/archive_lines.h"
#include "ledger/ledger.h"
#include "tlog/entry.h"

#define FIRST_LINE "c2sp.org/tlog-proof@"
#define RECORD_MEMORY_MAX ((size_t)1 << 20)

static int refuse(struct error *error, const char *why)
{
	return error_cause(error, ERR_INVALID_EVIDENCE, "%s", why);
}

bool logged_event_is(struct slice text)
{
	const size_t size = sizeof FIRST_LINE - 1;
	return text.size >= size && memcmp(text.data, FIRST_LINE, size) == 0;
}

int logged_event_write(struct slice lines, uint64_t index, const struct merkle_path *path,
                       struct slice note, struct buf *out)
{
	BUF_AUTO struct buf extra;
	buf_init(&extra, BASE64_SIZE(LOGGED_EVENT_LINES_MAX) + 1);
	buf_add_base64(&extra, lines);
	const struct entry_proof proof = {buf_slice(&extra), index, *path, note};
	if (buf_check(&extra))
		return ERR_NO_MEMORY;
	entry_proof_write(&proof, out);
	return buf_check(out);
}

/* ---- the lines ---- */

static bool take_line(struct slice *rest, struct slice *ret)
{
	const char *end = rest->size > 0 ? memchr(rest->data, '\n', rest->size) : NULL;
	if (!end)
		return false;
	*ret = slice_make(rest->data, (size_t)(end - rest->data));
	*rest = slice_make(end + 1, rest->size - ret->size - 1);
	return true;
}

static int decode_lines(struct arena *arena, struct slice extra, struct slice *ret,
                        struct error *error)
{
	size_t size_max = extra.size / 4 * 3 + 3, size;
	if (extra.size == 0 || extra.size > BASE64_SIZE(LOGGED_EVENT_LINES_MAX))
		return refuse(error, "it has no extra data, or too much: it is of no event");
	char *lines = arena_alloc(arena, size_max);
	if (!lines)
		return ERR_NO_MEMORY;
	if (!base64_decode(extra, lines, size_max, &size))
		return refuse(error, "the extra data is not base64");
	*ret = slice_make(lines, size);
	return OK;
}

static int read_record(struct arena *arena, struct slice line, struct event_facts *ret,
                       struct error *error)
{
	BUF_AUTO struct buf again;
	int result = archive_read_event(arena, line, ret, error);
	if (result)
		return result;
	buf_init(&again, EVENT_RECORD_MAX);
	event_record(ret, &again);
	if (buf_check(&again) && !again.full)
		return ERR_NO_MEMORY;
	return slice_equal(line, buf_slice(&again))
	           ? OK
	           : refuse(error, "the record of an event is not in canonical form");
}

/* The identifier of an event states its channel and its sequence, in letters and digits alone. */
static bool has_its_place(const struct event_facts *event, const struct seal_document *seal)
{
	char id[ID_SIZE];
	enum mode mode;
	int64_t sequence;
	return event_id_read(event->event_id, id, &mode, &sequence) && mode == MODE_LIVE &&
	       event->chain == MODE_LIVE && strcmp(seal->chain, mode_text(MODE_LIVE)) == 0 &&
	       strcmp(id, seal->channel_id) == 0 && strcmp(id, event->channel_id) == 0 &&
	       strspn(id + sizeof "chn_" - 1, ID_DIGITS) == ID_OWN_SIZE &&
	       sequence == event->sequence && sequence >= seal->first_sequence;
}

/* Follows the chain from the event to the end of its segment. */
static int follow_chain(struct arena *arena, struct slice rest, struct logged_event *found,
                        struct error *error)
{
	ARENA_AUTO struct arena memory;
	struct slice line;
	if (!take_line(&rest, &found->record))
		return refuse(error, "the record of the event is missing");
	int result = read_record(arena, found->record, &found->event, error);
	if (!result && !has_its_place(&found->event, &found->seal))
		return refuse(error, "the event is not of a live segment with that seal document");
	int64_t sequence = found->event.sequence;
	struct sha256 hash = sha256_of(found->record.data, found->record.size);
	arena_init(&memory, RECORD_MEMORY_MAX);
	while (!result && take_line(&rest, &line)) {
		struct event_facts next;
		arena_reset(&memory);
		result = read_record(&memory, line, &next, error);
		if (!result &&
		    (next.sequence != ++sequence || !sha256_equal(&next.previous_chain_hash, &hash)))
			return refuse(error, "a record does not follow the one before it");
		hash = sha256_of(line.data, line.size);
	}
	if (result)
		return result;
	return rest.size == 0 && sequence == found->seal.last_sequence &&
	               sha256_equal(&hash, &found->seal.chain_hash_last)
	           ? OK
	           : refuse(error, "the records do not lead to the end of the segment");
}

/* ---- the entry ---- */

static int read_checkpoint(struct arena *arena, struct logged_event *found, struct error *error)
{
	struct note note;
	int result = note_parse(arena, found->note, &note, error);
	return result ? result : checkpoint_parse(note.text, &found->checkpoint, error);
}

static int check_entry(const struct entry_proof *proof, struct slice document,
                       const struct logged_event *found, struct error *error)
{
	const struct seal_document *seal = &found->seal;
	struct tlog_entry entry = {.first_sequence = seal->first_sequence,
	                           .last_sequence = seal->last_sequence,
	                           .chain_hash_last = seal->chain_hash_last,
	                           .seal_hash = sha256_of(document.data, document.size)};
	BUF_AUTO struct buf scratch;
	struct sha256 leaf;
	buf_init(&scratch, TLOG_ENTRY_MAX);
	if (!tlog_tag(seal->channel_id, seal->chain, &entry.tag))
		return refuse(error, "the seal document is of no chain");
	if (tlog_entry_leaf(&entry, &scratch, &leaf))
		return ERR_NO_MEMORY;
	return merkle_is_included(&leaf, proof->index, found->checkpoint.size, &proof->path,
	                          &found->checkpoint.root)
	           ? OK
	           : refuse(error, "the path does not lead from the segment's entry to the root");
}

int logged_event_read(struct arena *arena, struct slice text, struct logged_event *ret,
                      struct error *error)
{
	struct logged_event found = {0};
	struct entry_proof proof;
	struct slice lines = {0}, document = {0};
	int result = entry_proof_parse(text, &proof, error);
	if (!result)
		result = decode_lines(arena, proof.extra, &lines, error);
	if (!result && !take_line(&lines, &document))
		return refuse(error, "the seal document is missing");
	if (!result)
		result = seal_document_read(arena, document, &found.seal, error);
	if (!result)
		result = follow_chain(arena, lines, &found, error);
	found.index = proof.index;
	found.note = proof.checkpoint;
	if (!result)
		result = read_checkpoint(arena, &found, error);
	if (!result)
		result = check_entry(&proof, document, &found, error);
	if (!result)
		*ret = found;
	return result;
}
