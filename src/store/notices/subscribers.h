/* Notices about what is sealed and archived, for the accounts that have an endpoint whose types
 * name them (notice_types.def). They are written in the transaction of the round or of the archive
 * timestamp; nothing is written for other accounts. With a sharded store neither is written,
 * because a round must not depend on all shard servers. Private to src/store. */
#ifndef STORE_SUBSCRIBERS_H
#define STORE_SUBSCRIBERS_H

#include "db/db.h"

/* Limits of one round or archive timestamp. What exceeds them has no notice. */
#define SUBSCRIBERS_MAX 1000             /* accounts with notices of a round */
#define SEALED_SEGMENTS_OF_NOTICE 100    /* channels in one notice */
#define SEALED_NOTICES_OF_ACCOUNT_MAX 50 /* notices of one account */
#define EVIDENCE_NOTICES_MAX 1000        /* certifications of an archive timestamp with a notice */

/* Writes event.sealed for the channels whose events the round seals. */
int write_sealed_notices(struct db_connection *connection, int64_t round, int64_t sealed_at_us,
                         struct error *error) MUST_CHECK;
/* Writes certification.evidence_ready for the certifications whose first evidence record begins
 * with the archive timestamp. */
int write_evidence_notices(struct db_connection *connection, int64_t stamp, int64_t stamped_at_us,
                           struct error *error) MUST_CHECK;

#endif
