/* Long-term preservation of evidence beyond the lifetime of certificates and digests (RFC 4998): a
 * first archive timestamp over the documents of certifications, and renewals of every token, of
 * rounds and of archive timestamps, before its certificates expire (evidence.renew_before). One
 * token covers everything that is due; the memory used does not depend on the amount. The caller
 * holds the lease and schedules the passes (jobs). */
#ifndef EVIDENCE_RENEWAL_H
#define EVIDENCE_RENEWAL_H

#include "service/service.h"

struct renewal {
	struct service *service;
	const atomic_bool *stopping;
	const atomic_bool *lost; /* another node holds the lease */
};
/* Processes everything that is due. Tokens that expired before renewal are logged, and the
 * documents that depended on them get a new record. A document that cannot be read is delayed
 * individually. ERR_REFUSED: another node was faster, or the pass must stop. ERR_AUTHORITY: no
 * token is available; what is staged waits for one. */
int renewal_pass(const struct renewal *renewal, struct error *error) MUST_CHECK;
/* Queues completed live certifications that neither have a record nor wait for one: an older node,
 * which still ran after the migration of the store, completed them. Reads all certifications. */
int renewal_queue_missing(const struct renewal *renewal, struct error *error) MUST_CHECK;

#endif
