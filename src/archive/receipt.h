/* Receipts: the responses to registrations (POST /events), as stored by clients.
 *
 * A text contains one response, a JSON array of responses, or one response per line; empty lines
 * are ignored. All sealed members of a response must be present, except that an absent occurred_at
 * is null, as is an absent seal_by. The member "receipt" has the service's signature
 * (ledger/receipt_statement.h); it may be absent or null. Other members may change and are ignored.
 * No I/O. */
#ifndef ARCHIVE_RECEIPT_H
#define ARCHIVE_RECEIPT_H

#include "base/arena.h"
#include "base/error.h"
#include "ledger/receipt_statement.h"

#define RECEIPTS_MAX 10000
#define RECEIPT_TEXT_MAX ((size_t)16 << 20)

struct receipt {
	struct event_facts event; /* without config_hash and previous_chain_hash */
	struct sha256 chain_hash;
	const struct receipt_signature *signature; /* NULL: unsigned */
	const char *cause; /* why it cannot be used, and nothing else is set then; NULL: it can */
};

/* Reads receipts. The results point into the arena and the text; the array is in the arena. One
 * that cannot be used, such as a line that is not JSON, has its `cause` and spoils no other one.
 * Returns 0 with at least one receipt that can be used; ERR_INVALID_EVIDENCE with the cause of the
 * first, which has its number; ERR_NO_MEMORY. */
int receipts_read(struct arena *arena, struct slice text, struct receipt **ret_receipts,
                  size_t *ret_count, struct error *error) MUST_CHECK;

/* Verifies the signature of a receipt that has one, with the key that it states. *ret_valid false:
 * the receipt was altered, or was never signed with that key. Returns 0 or ERR_NO_MEMORY. */
int receipt_verify(const struct receipt *receipt, bool *ret_valid) MUST_CHECK;

#endif
