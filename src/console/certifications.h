/* What the pages on certifications have beside the answers of their operations. */
#ifndef CONSOLE_CERTIFICATIONS_H
#define CONSOLE_CERTIFICATIONS_H

#include "console/visit.h"

/* "shown": the filter, with the first channel where none is chosen; "certifications": those of the
 * channel, with "certifications_last". `data` has "channels" before. */
int certifications_state(struct visit *visit, struct json_writer *data) MUST_CHECK;
/* "verification" with "url" of {certification}, where it is completed. */
int certification_state(struct visit *visit, struct json_writer *data) MUST_CHECK;
/* To the link of the file {name} of {certification}, made for this moment. ERR_NOT_FOUND. */
int certification_file(struct visit *visit) MUST_CHECK;

#endif
