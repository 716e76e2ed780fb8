/* Makes the documents of one certification: content parts, evidence archive and both signed
 * reports. Memory does not grow with the range. */
#ifndef ISSUE_ISSUE_H
#define ISSUE_ISSUE_H

#include "service/service.h"
#include "store/certifications/certifications.h"

struct issue_watch {
	/* Told now and then how far it is; not 0 stops the work, and is given back. */
	int (*progress)(void *context, int64_t permille);
	void *context;
};

struct issue_result {
	int64_t issued_at_us;
	struct document *documents; /* in the arena; their objects are durable in the content store */
	size_t count;
};

/* The whole range must be sealed (a test range needs no seal). `directory` is an existing empty
 * directory for working files; what is left in it is the caller's to remove. On failure nothing
 * that was stored is named anywhere: objects already in the content store are deleted again, or
 * swept later. Transient: ERR_UNAVAILABLE, ERR_IO, ERR_NO_SPACE, ERR_NO_MEMORY, ERR_AUTHORITY,
 * ERR_NETWORK; everything else will not pass by waiting.
 * ERR_INVALID_EVIDENCE: what was made does not verify, which a clock or a bit may be to blame for,
 * so that a few attempts more are worth it. */
int issue_certification(struct service *service, const struct certification *certification,
                        const char *directory, const struct issue_watch *watch, struct arena *arena,
                        struct issue_result *ret_result, struct error *error) MUST_CHECK;

#endif
