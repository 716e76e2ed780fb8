/* Stores the issuers of a timestamp authority's certificate that its token does not contain, when a
 * round is sealed. Not thread safe. */
#ifndef EVIDENCE_TOKEN_PATH_H
#define EVIDENCE_TOKEN_PATH_H

#include "seal/authority.h"
#include "store/events/validation_records.h"

/* To be called before the round is written. */
int token_path_store(struct store *store, const struct authority_result *stamped,
                     struct error *error) MUST_CHECK;

#endif
