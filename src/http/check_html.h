/* The page about a file that was checked in full. */
#ifndef HTTP_CHECK_HTML_H
#define HTTP_CHECK_HTML_H

#include "http/exchange.h"
#include "issue/check_file.h"

struct check_outcome {
	struct sha256 digest;           /* of the file */
	const struct json *issued;      /* as verification_lookup tells it; NULL: not issued here */
	const struct file_check *check; /* what is in its tree is not to be relied on in its form */
};

/* Answers with what the file attests and what not, who signed it, who gave the time, until when
 * that can be checked, and what is wrong with it. */
void check_html_answer(struct exchange *exchange, const struct check_outcome *outcome);

#endif
