/* Fast readers for lines of events and of part indexes, of which there are millions. They work
 * without a JSON tree. Internal to src/archive. */
#ifndef ARCHIVE_ARCHIVE_SCAN_H
#define ARCHIVE_ARCHIVE_SCAN_H

#include "archive/part.h"
#include "base/arena.h"
#include "ledger/record.h"

/* Reads an event record. Returns true if `line` has the form that event_record writes and its texts
 * are plain ASCII without escapes; the result points into the line and the arena. Returns false
 * otherwise; the line may still be a valid record for the general reader. */
bool archive_scan_event(struct arena *arena, struct slice line, struct event_facts *ret_event)
	MUST_CHECK;
/* Returns whether the name of a part's entry has the JSON suffix. */
bool part_name_is_json(struct slice name);
/* Reads a line of a part's index in the form that part_index_line writes. */
bool archive_scan_part_line(struct slice line, struct part_entry *ret_entry) MUST_CHECK;

#endif
