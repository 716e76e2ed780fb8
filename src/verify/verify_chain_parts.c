/* Compares each content event of a chain with the index line of its content part. */
#include <assert.h>
#include <inttypes.h>

#include "verify/verify_chain.h"

void chain_close_part(struct chain *chain)
{
	line_stream_free(chain->part_index);
	zip_reader_free(chain->part_zip);
	chain->part_index = NULL;
	chain->part_zip = NULL;
	chain->part_input = NULL;
	chain->part_open = false;
}

/* Records the failure to read a part. Errors in the part itself were recorded by its own check. */
static int note_part(struct chain *chain, const char *where, int status, const struct error *error)
{
	assert(chain->part_input);
	if (status == ERR_INVALID_EVIDENCE)
		return 0;
	return verify_add_error(chain->run, chain->part_input->path, where, FINDING_PART_MALFORMED,
	                        status, error);
}

/* Ends a part at the end of its range, where its index must end, too. */
static int finish_part(struct chain *chain)
{
	assert(chain->part_open && chain->part < chain->range->part_count);
	struct slice line;
	struct error error = {0};
	int result = 0;
	if (chain->part_index) {
		result = line_stream_next(chain->part_index, &line, &error);
		if (result == 1)
			verify_add(chain->run, VERIFY_WRONG, chain->part_input->path,
			           line_stream_where(chain->part_index), FINDING_PART_LINE_WITHOUT_EVENT);
		if (result < 0)
			result = note_part(chain, line_stream_where(chain->part_index), result, &error);
	}
	chain_close_part(chain);
	chain->part++;
	return result < 0 ? result : 0;
}

static int open_part(struct chain *chain)
{
	assert(!chain->part_open && !chain->part_input && chain->part < chain->range->part_count);
	const struct part_facts *part = &chain->range->parts[chain->part];
	chain->part_open = true;
	for (size_t i = 0; i < chain->run->input_count && !chain->part_input; i++) {
		struct input *input = &chain->run->inputs[i];
		if (input->kind == INPUT_PART && sha256_equal(&input->sum.sha256, &part->sha256)) {
			input->bound = true;
			chain->part_input = input;
		}
	}
	if (!chain->part_input) {
		verify_add(chain->run, VERIFY_WARNING, chain->facts->input->path, part->name,
		           FINDING_PART_NOT_GIVEN);
		return 0;
	}
	const struct input *input = chain->part_input;
	int result = verify_part_worker_wait(chain->run, input);
	if (result < 0)
		return result;
	if (input->sum.size_bytes != part->size_bytes ||
	    (input->described &&
	     (input->head.number != chain->part + 1 ||
	      strcmp(input->head.certification_id, chain->range->certification_id) != 0 ||
	      strcmp(input->head.channel_id, chain->range->channel_id) != 0)))
		verify_add(chain->run, VERIFY_WRONG, input->path, PART_HEAD_NAME, FINDING_PART_HEAD_DIFFERS,
		           chain->facts->input->path);
	struct error error = {0};
	result = verify_open_zip(input, &chain->part_zip, &error);
	const struct zip_entry *index = !result ? zip_find(chain->part_zip, PART_INDEX_NAME) : NULL;
	if (!result && index)
		result = line_stream_open_plain(chain->part_zip, index, &chain->part_index, &error);
	return result < 0 ? note_part(chain, "", result, &error) : 0;
}

int chain_compare_part(struct chain *chain, const struct event_facts *event)
{
	int result = 0;
	while (!result && chain->part < chain->range->part_count &&
	       chain->range->parts[chain->part].last_sequence < event->sequence) {
		if (!chain->part_open)
			result = open_part(chain);
		if (!result)
			result = finish_part(chain);
	}
	if (result < 0)
		return result;
	if (chain->part >= chain->range->part_count ||
	    chain->range->parts[chain->part].first_sequence > event->sequence) {
		chain->without_part++;
		return 0;
	}
	if (!chain->part_open)
		result = open_part(chain);
	if (result < 0 || !chain->part_index)
		return result;
	struct error error = {0};
	struct slice line;
	struct part_entry entry;
	result = line_stream_next(chain->part_index, &line, &error);
	if (result == 1)
		result = archive_read_part_line(&chain->arena, line, &entry, &error);
	else if (!result)
		result = finding_fail(&error, FINDING_PART_INDEX_ENDS_EARLY);
	if (!result &&
	    (entry.sequence != event->sequence || !slice_equal(entry.event_id, event->event_id) ||
	     event->declaration.hash_algorithm != HASH_SHA256 ||
	     memcmp(entry.hash.bytes, event->declaration.hash, SHA256_SIZE) != 0))
		result = finding_fail(&error, FINDING_PART_EVENT_DIFFERS, event->sequence);
	if (!result)
		return 0;
	result =
		verify_add_error(chain->run, chain->part_input->path, line_stream_where(chain->part_index),
	                     FINDING_PART_MALFORMED, result, &error);
	line_stream_free(chain->part_index); /* the remaining lines could cause misleading findings */
	chain->part_index = NULL;
	return result;
}

int chain_finish_parts(struct chain *chain)
{
	int result = 0;
	while (!result && chain->part < chain->range->part_count) {
		if (!chain->part_open)
			result = open_part(chain);
		if (!result)
			result = finish_part(chain);
	}
	return result;
}
