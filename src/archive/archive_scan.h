/* The folder's own: the lines of events, of which archives and parts have millions, read without a
 * tree. */
#ifndef ARCHIVE_ARCHIVE_SCAN_H
#define ARCHIVE_ARCHIVE_SCAN_H

#include "archive/part.h"
#include "base/arena.h"
#include "ledger/record.h"

/* True: `line` is an event's record as event_record writes it, its texts plain ASCII without
 * escapes, and says these facts, which point into the line and the arena. False: read it otherwise;
 * it may be a record all the same. */
bool archive_scan_event(struct arena *arena, struct slice line, struct event_facts *ret_event)
	MUST_CHECK;
/* Whether the name of an entry of a part says that it is JSON. */
bool part_name_is_json(struct slice name);
/* The same of a line of a part's index, as part_index_line writes it. */
bool archive_scan_part_line(struct slice line, struct part_entry *ret_entry) MUST_CHECK;

#endif
