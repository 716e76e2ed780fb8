/* The check of files that somebody hands in, and the roots for it. */
#ifndef ISSUE_CHECK_FILE_H
#define ISSUE_CHECK_FILE_H

#include "service/service.h"

/* PEM, appended: the roots that whoever verifies this service's evidence has to trust. Asks the
 * store. */
int service_trust(struct service *service, struct buf *out, struct error *error) MUST_CHECK;
#define SERVICE_TRUST_MAX ((size_t)4 << 20)
/* Writes them to trust.pem in the data directory. Waits for store and disk. */
int service_write_trust(struct service *service, struct error *error) MUST_CHECK;
/* Verifies an open file that anybody may have handed in, with that SHA-256, in a process of its own
 * (verify/verifier.h), against these roots and the signers that the store lists: what is neither on
 * record nor signed by one of them while it was in force is not valid. ERR_UNAVAILABLE when that
 * could not be done to its end; ERR_TOO_LARGE. Waits. */
enum file_origin {
	FILE_FOREIGN, /* some of it is neither issued nor signed by this service */
	FILE_SIGNED,  /* all of it at least signed, some of it not on record */
	FILE_ISSUED,  /* all of it on record */
};
struct file_check {
	enum file_origin origin;
	bool is_container; /* of files, which are what is judged */
	bool is_intact;    /* nothing is wrong but that it is foreign */
	/* In the arena: as `constancia verify --json` has it, with the findings of this service and
	 * "certification_id" and "origin" ("foreign", "issued", "signed"), or null, in each of "files".
	 * Its form is not to be relied on. */
	struct json *verification;
};
int service_check_file(struct service *service, int file, const struct sha256 *digest,
                       struct arena *arena, struct file_check *ret_check, struct error *error)
	MUST_CHECK;

#endif
