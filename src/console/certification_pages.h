/* Additional data of the pages about certifications. */
#ifndef CONSOLE_CERTIFICATION_PAGES_H
#define CONSOLE_CERTIFICATION_PAGES_H

#include "console/visit.h"

/* "shown": the filter, by default with the first channel; "certifications": those of the channel,
 * with "certifications_last". `data` already contains "channels". */
int certification_list_data(struct visit *visit, struct json_writer *data) MUST_CHECK;
/* "verification" with the "url" of {certification} if it is completed. */
int certification_page_data(struct visit *visit, struct json_writer *data) MUST_CHECK;
/* Redirects to a new link of the file {name} of {certification}. ERR_NOT_FOUND. */
int certification_file(struct visit *visit) MUST_CHECK;

#endif
