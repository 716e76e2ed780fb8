/* Signed receipts. The statement of a receipt is canonical JSON (RFC 8785):
 *   {"chain","chain_hash","channel_id","hash","hash_alg","origin","received_at","seal_by"|null,
 *    "sequence","v":"constancia-receipt/1"}
 * `origin` is the name of the service's log, and `seal_by` the time until which the service
 * promises to seal the event; null for the test chain, which is never sealed. Statements are leaves
 * of a tree (RFC 6962), of one batch of registrations, whose root is signed. Pure. */
#ifndef LEDGER_RECEIPT_STATEMENT_H
#define LEDGER_RECEIPT_STATEMENT_H

#include "ledger/record.h"

#define RECEIPT_STATEMENT_MAX 4096
#define RECEIPT_TREE_MAX 1024 /* leaves */
#define RECEIPT_TREE_PATH_MAX 10
#define RECEIPT_PUBLIC_KEY_SIZE 32 /* Ed25519 (RFC 8032) */
#define RECEIPT_SIGNED_SIZE 64

struct receipt_facts {
	const char *channel_id;
	enum mode chain;
	int64_t sequence;
	const struct declaration *declaration; /* its hash */
	int64_t received_at_us;
	struct sha256 chain_hash;
	const char *origin;
	int64_t seal_by_us; /* TIME_NONE: null */
};
/* Appends the statement. */
void receipt_statement(const struct receipt_facts *facts, struct buf *out);

/* What the member "receipt" of a response to a registration contains. */
struct receipt_signature {
	const char *origin;
	int64_t seal_by_us;       /* TIME_NONE: null */
	int64_t index, tree_size; /* of the statement among the leaves */
	size_t path_count;        /* hashes from the leaf upwards */
	struct sha256 path[RECEIPT_TREE_PATH_MAX];
	uint8_t key[RECEIPT_PUBLIC_KEY_SIZE];
	uint8_t signature[RECEIPT_SIGNED_SIZE];
};

#endif
