/* What the pages on events have beside the answers of their operations, and what is downloaded. */
#ifndef CONSOLE_EVENTS_H
#define CONSOLE_EVENTS_H

#include "console/visit.h"

/* "shown": the filter, with the first channel where none is chosen; "events": those of the channel,
 * with "events_last". `data` has "channels" before. */
int events_state(struct visit *visit, struct json_writer *data) MUST_CHECK;
/* "one": the event as the operation shows it; "content_state": "held", "missing", "altered" or
 * "unreachable"; "content_text" where it is short JSON; "steps": from its chain hash up to the
 * root, each the hash that is joined and what comes of it. */
int event_state(struct visit *visit, struct json_writer *data) MUST_CHECK;
/* Downloads, of {event}. ERR_NOT_FOUND. */
int event_content(struct visit *visit) MUST_CHECK;
int event_record_file(struct visit *visit) MUST_CHECK;
int event_evidence(struct visit *visit) MUST_CHECK;

#endif
