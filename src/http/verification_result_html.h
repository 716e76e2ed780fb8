/* The page with the result of a full file verification. */
#ifndef HTTP_VERIFICATION_RESULT_HTML_H
#define HTTP_VERIFICATION_RESULT_HTML_H

#include "http/exchange.h"
#include "issue/check_file.h"

struct check_outcome {
	struct sha256 digest; /* of the file */
	/* result of verification_lookup; NULL: not issued by this service */
	const struct json *issued;
	const struct file_check *check; /* its JSON tree is untrusted */
};

/* Answers with a page that states what the file attests and does not attest, the signers, the
 * timestamp authorities, how long it is verifiable, and the errors. */
void check_html_answer(struct exchange *exchange, const struct check_outcome *outcome);

#endif
