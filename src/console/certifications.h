/* Additional data of the pages about certifications. */
#ifndef CONSOLE_CERTIFICATIONS_H
#define CONSOLE_CERTIFICATIONS_H

#include "console/visit.h"

/* "shown": the filter, by default with the first channel; "certifications": those of the channel,
 * with "certifications_last". `data` already contains "channels". */
int certifications_state(struct visit *visit, struct json_writer *data) MUST_CHECK;
/* "verification" with the "url" of {certification} if it is completed. */
int certification_state(struct visit *visit, struct json_writer *data) MUST_CHECK;
/* Redirects to a new link of the file {name} of {certification}. ERR_NOT_FOUND. */
int certification_file(struct visit *visit) MUST_CHECK;

#endif
