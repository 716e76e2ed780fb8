/* The folder's own: the line of an event, of which an archive has millions, read without a tree. */
#ifndef PROOF_ARCHIVE_SCAN_H
#define PROOF_ARCHIVE_SCAN_H

#include "base/arena.h"
#include "ledger/record.h"

/* True: `line` is an event's record as event_record writes it, its texts plain ASCII without
 * escapes, and says these facts, which point into the line and the arena. False: read it otherwise;
 * it may be a record all the same. */
bool archive_scan_event(struct arena *arena, struct slice line, struct event_facts *ret_event)
	MUST_CHECK;

#endif
