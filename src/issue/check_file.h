/* Verification of uploaded files, and the trusted roots for it. */
#ifndef ISSUE_CHECK_FILE_H
#define ISSUE_CHECK_FILE_H

#include "service/service.h"

/* Writes the roots that relying parties have to trust to verify this service's evidence to
 * trust.pem in the data directory. Blocks on store and disk. */
int service_write_trust(struct service *service, struct error *error) MUST_CHECK;
/* Verifies an open file from an untrusted source, with that SHA-256, in a separate process
 * (verify/verifier.h), with these roots and the signers in the store. A file that is neither
 * recorded nor signed by one of these while in force is not valid. ERR_UNAVAILABLE: the
 * verification did not complete; ERR_TOO_LARGE. Blocks. */
enum file_origin {
	FILE_FOREIGN, /* at least one file is neither issued nor signed by this service */
	FILE_SIGNED,  /* all files are at least signed, some are not recorded */
	FILE_ISSUED,  /* all files are recorded */
};
struct file_check {
	enum file_origin origin;
	bool is_container; /* it is a container, whose files are judged */
	bool is_intact;    /* there is no fault except a foreign origin */
	/* In the arena: the result of `constancia verify --json` with the findings of this service;
	 * each of "files" has additionally "certification_id" and "origin" ("foreign", "issued",
	 * "signed"), or null. The verifier's output is untrusted: its structure must be checked. */
	struct json *verification;
};
int service_check_file(struct service *service, int file, const struct sha256 *digest,
                       struct arena *arena, struct file_check *ret_check, struct error *error)
	MUST_CHECK;

#endif
