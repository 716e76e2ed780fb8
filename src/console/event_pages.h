/* Additional data of the pages about events, and downloads. */
#ifndef CONSOLE_EVENT_PAGES_H
#define CONSOLE_EVENT_PAGES_H

#include "console/visit.h"

/* "shown": the filter, by default with the first channel; "events": those of the channel, with
 * "events_last". `data` already contains "channels". */
int event_list_data(struct visit *visit, struct json_writer *data) MUST_CHECK;
/* "one": the answer of the operation; "content_state", absent for a digest: "held" or "altered" for
 * inline content, "external" for content of the content store, which is not read here;
 * "content_text" if the inline content is JSON; "steps": the path from the chain hash to the root,
 * each with the sibling hash and the combined hash. */
int event_page_data(struct visit *visit, struct json_writer *data) MUST_CHECK;
/* Answer with a file of {event}: its content, its record, its evidence record. ERR_NOT_FOUND. */
int event_content(struct visit *visit) MUST_CHECK;
int event_record_file(struct visit *visit) MUST_CHECK;
int event_evidence(struct visit *visit) MUST_CHECK;

#endif
