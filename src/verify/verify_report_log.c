/* Compares what a report states of the log of segments with the newest checkpoint of its archive.
 * Whether the cosignatures there are valid is for those to say who know the keys (verify_log.c). */
#include <inttypes.h>

#include "archive/xml_text.h"
#include "tlog/checkpoint.h"
#include "verify/verify_check.h"

#define NOTE_MEMORY_MAX ((size_t)512 << 10)
#define NAME_SIZE_MAX (6 * NOTE_NAME_MAX + 1)       /* with the escapes of XML */
#define COSIGNATURE_SIZE (8 + NOTE_SIGNATURE_SIZE)  /* a time in seconds, and the signature */
#define SECONDS_MAX (INT64_MAX / US_PER_SECOND / 2) /* a later time is none */

/* Takes what is before the next space. */
static struct slice take_word(struct slice *rest)
{
	const char *space = rest->size > 0 ? memchr(rest->data, ' ', rest->size) : NULL;
	size_t size = space ? (size_t)(space - rest->data) : rest->size;
	struct slice word = slice_make(rest->data, size);
	*rest = slice_make(rest->data + size + (space != NULL), rest->size - size - (space != NULL));
	return word;
}

/* Returns whether a word is that name, with the escapes of XML. */
static bool is_name(struct slice word, struct slice name)
{
	char text[NOTE_NAME_MAX + 1];
	BUF_AUTO struct buf escaped;
	buf_init(&escaped, NAME_SIZE_MAX);
	if (name.size > NOTE_NAME_MAX)
		return false;
	memcpy(text, name.data, name.size);
	text[name.size] = '\0';
	xml_add_text(&escaped, text);
	return buf_check(&escaped) == OK && slice_equal(word, buf_slice(&escaped));
}

static bool is_number(struct slice word, uint64_t number)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRIu64, number);
	return slice_is(word, text);
}

/* Returns whether a signature has the form of a cosignature of that time. */
static bool is_of_time(const struct note_signature *signature, struct slice word)
{
	char text[TIME_TEXT_SIZE];
	uint64_t seconds = 0;
	if (signature->bytes.size != COSIGNATURE_SIZE)
		return false;
	for (size_t i = 0; i < 8; i++)
		seconds = seconds << 8 | (uint8_t)signature->bytes.data[i];
	if (seconds > (uint64_t)SECONDS_MAX)
		return false;
	time_format((int64_t)seconds * US_PER_SECOND, text);
	return slice_is(word, text);
}

static bool is_cosigned(const struct note *note, struct slice time, struct slice name)
{
	for (size_t i = 0; i < note->count; i++)
		if (is_of_time(&note->signatures[i], time) && is_name(name, note->signatures[i].name))
			return true;
	return false;
}

int verify_compare_log(struct run *run, const struct input *report, const struct input *archive,
                       const char *stated)
{
	ARENA_AUTO struct arena arena;
	struct note note;
	struct checkpoint checkpoint;
	struct slice rest = slice_of(stated);
	arena_init(&arena, NOTE_MEMORY_MAX);
	if (rest.size == 0 || !archive->log_is_read)
		return 0;
	int result = archive->log_note ? note_parse(&arena, slice_of(archive->log_note), &note, NULL)
	                               : ERR_INVALID_EVIDENCE;
	if (result == ERR_NO_MEMORY)
		return result;
	struct slice entries = take_word(&rest), segments = take_word(&rest), origin = take_word(&rest);
	if (result || checkpoint_parse(note.text, &checkpoint, NULL) ||
	    !is_number(entries, checkpoint.size) || !is_number(segments, archive->log_segments) ||
	    !is_name(origin, slice_of(checkpoint.origin))) {
		verify_add(run, VERIFY_WRONG, report->path, "metadata", FINDING_REPORT_LOG, archive->path);
		return 0;
	}
	while (rest.size > 0) {
		struct slice time = take_word(&rest), name = take_word(&rest);
		if (!is_cosigned(&note, time, name)) {
			verify_add(run, VERIFY_WRONG, report->path, "metadata", FINDING_REPORT_WITNESS,
			           archive->path);
			return 0;
		}
	}
	return 0;
}
