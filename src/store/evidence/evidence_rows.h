/* Private to src/store/evidence. */
#ifndef STORE_EVIDENCE_EVIDENCE_ROWS_H
#define STORE_EVIDENCE_EVIDENCE_ROWS_H

#include "store/evidence/evidence.h"
#include "store/transaction.h"

/* SQL condition: row `e` of evidence_chains is the last chain of its certification. */
#define EVIDENCE_CHAIN_IS_LAST                                                                     \
	" NOT EXISTS (SELECT 1 FROM evidence_chains l WHERE l.account = e.account"                     \
	" AND l.certification = e.certification AND (l.record > e.record"                              \
	" OR (l.record = e.record AND l.chain > e.chain)))"

/* Conversion between enumerators and column values. */
const char *evidence_algorithm_text(enum digest_algorithm algorithm);
bool evidence_algorithm_of(struct slice text, enum digest_algorithm *ret_algorithm) MUST_CHECK;
const char *token_source_text(enum token_source source);

int write_renewable_token(struct db_connection *connection, const struct renewable_token *token,
                          struct error *error) MUST_CHECK;
/* Returns ERR_REFUSED when the token is already covered or was given up. */
int cover_token(struct db_connection *connection, const struct renewable_token *token,
                int64_t stamp, int64_t place, struct error *error) MUST_CHECK;
/* Returns ERR_REFUSED when the documents are not queued. */
int write_evidence_chain(struct db_connection *connection, const struct evidence_chain_row *chain,
                         int64_t stamp, int64_t place, struct error *error) MUST_CHECK;
/* Reads source, number, stamped_at and valid_until; false: the source is unknown. */
bool read_renewable_token(struct db_query *query, struct renewable_token *ret) MUST_CHECK;
int refuse_token_source(struct error *error) MUST_CHECK;

#endif
