/* What renewed an archive's timestamps before their certificates ended: which archive timestamps
 * these are, each once, whatever the number of tokens. One thread at a time. */
#ifndef EVIDENCE_TOKEN_RENEWALS_H
#define EVIDENCE_TOKEN_RENEWALS_H

#include "archive/archive.h"
#include "base/arena.h"
#include "store/evidence/evidence.h"

/* Zeroed to begin with. */
struct token_renewals {
	int64_t *stamps; /* ascending */
	size_t count, room;
};
void token_renewals_free(struct token_renewals *renewals);

/* Which archive timestamp covers a token at rest, by SHA-256; its path lives in `arena`. What is
 * damaged at rest is told and left out: the token then stands as it is. ERR_TOO_LARGE: there are
 * more than an archive may hold. */
int token_renewals_add(struct token_renewals *renewals, struct store *store,
                       enum token_source source, int64_t number, struct slice token,
                       struct arena *arena, struct archive_renewal *ret_renewal,
                       struct error *error) MUST_CHECK;
/* Behind everything else: those, and those that renewed them. */
int token_renewals_write(struct token_renewals *renewals, struct store *store,
                         struct archive *archive, struct error *error) MUST_CHECK;

#endif
