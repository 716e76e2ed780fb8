/* Creates the documents of one certification: content parts, evidence archive and both signed
 * reports. The memory used does not depend on the size of the range. */
#ifndef ISSUE_ISSUE_H
#define ISSUE_ISSUE_H

#include "service/service.h"
#include "store/certifications/certifications.h"

struct issue_listener {
	/* Called periodically with the progress. A nonzero return value stops the work and becomes its
	 * result. */
	int (*progress)(void *context, int64_t permille);
	void *context;
};

struct issue_result {
	int64_t issued_at_us;
	struct document *documents; /* in the arena; their objects are durable in the content store */
	size_t count;
};

/* Creates the documents. The whole range must be sealed, except for a test certification.
 * `directory` is an existing empty directory for working files; the caller removes what is left in
 * it. After a failure nothing references the stored objects: they are deleted, or swept later.
 * ERR_UNAVAILABLE, ERR_IO, ERR_NO_SPACE, ERR_NO_MEMORY, ERR_AUTHORITY and ERR_NETWORK are
 * temporary; all other errors are permanent. ERR_INVALID_EVIDENCE: the documents do not verify. A
 * wrong clock or a bit error may be the cause, so the caller should retry a few times. */
int issue_certification(struct service *service, const struct certification *certification,
                        const char *directory, const struct issue_listener *watch,
                        struct arena *arena, struct issue_result *ret_result, struct error *error)
	MUST_CHECK;

#endif
