/* The certificates above a timestamp authority's that its token does not have inside: kept in the
 * store when a round is sealed. One thread at a time. */
#ifndef EVIDENCE_TOKEN_PATH_H
#define EVIDENCE_TOKEN_PATH_H

#include "seal/authority.h"
#include "store/events/validation.h"

/* Before the round is written. */
int token_path_keep(struct store *store, const struct authority_result *stamped,
                    struct error *error) MUST_CHECK;

#endif
