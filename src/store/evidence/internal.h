/* Shared by the files of src/store/evidence alone. */
#ifndef STORE_EVIDENCE_INTERNAL_H
#define STORE_EVIDENCE_INTERNAL_H

#include "store/evidence/evidence.h"
#include "store/transaction.h"

/* Whether a row `e` of evidence_chains is the last of its certification. */
#define EVIDENCE_CHAIN_IS_LAST                                                                     \
	" NOT EXISTS (SELECT 1 FROM evidence_chains l WHERE l.account = e.account"                     \
	" AND l.certification = e.certification AND (l.record > e.record"                              \
	" OR (l.record = e.record AND l.chain > e.chain)))"

/* As the columns have them. */
const char *evidence_algorithm_text(enum digest_algorithm algorithm);
bool evidence_algorithm_of(struct slice text, enum digest_algorithm *ret_algorithm) MUST_CHECK;
const char *token_source_text(enum token_source source);
bool token_source_of(struct slice text, enum token_source *ret_source) MUST_CHECK;

int write_token_at_rest(struct db_connection *connection, const struct token_at_rest *token,
                        struct error *error) MUST_CHECK;
/* ERR_REFUSED when something covers it already, or it was given up. */
int cover_token(struct db_connection *connection, const struct token_at_rest *token, int64_t stamp,
                int64_t place, struct error *error) MUST_CHECK;
/* ERR_REFUSED when its documents do not wait. */
int write_evidence_chain(struct db_connection *connection, const struct evidence_chain_row *chain,
                         int64_t stamp, int64_t place, struct error *error) MUST_CHECK;
/* Of a query for source, number, stamped_at and valid_until; false: of an unknown source. */
bool read_token_at_rest(struct db_query *query, struct token_at_rest *ret) MUST_CHECK;
int refuse_token_source(struct error *error) MUST_CHECK;

#endif
