/* The archive timestamps that renewed an archive's timestamps before their certificates expired,
 * each once. Not thread safe. */
#ifndef EVIDENCE_TOKEN_RENEWALS_H
#define EVIDENCE_TOKEN_RENEWALS_H

#include "archive/archive.h"
#include "base/arena.h"
#include "store/evidence/evidence.h"

/* Initialized with zeros. */
struct token_renewals {
	int64_t *stamps; /* ascending */
	size_t count, room;
};
void token_renewals_free(struct token_renewals *renewals);

/* Finds the archive timestamp that covers a stored token, by SHA-256; the path is allocated in
 * `arena`. Damaged stored data is logged and omitted; the token then has no renewal. ERR_TOO_LARGE:
 * the archive would exceed its limit. */
int token_renewals_add(struct token_renewals *renewals, struct store *store,
                       enum token_source source, int64_t number, struct slice token,
                       struct arena *arena, struct archive_renewal *ret_renewal,
                       struct error *error) MUST_CHECK;
/* Writes these archive timestamps and those that renewed them. To be called after everything
 * else. */
int token_renewals_write(struct token_renewals *renewals, struct store *store,
                         struct archive *archive, struct error *error) MUST_CHECK;

#endif
