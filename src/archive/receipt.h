/* Receipts: the answers to registrations (POST /events), as clients keep them.
 *
 * A text holds one answer, a JSON array of answers, or one answer in each line; empty lines do not
 * count. Of an answer everything that is sealed must be there; its other members may change and are
 * passed over. No I/O. */
#ifndef ARCHIVE_RECEIPT_H
#define ARCHIVE_RECEIPT_H

#include "base/arena.h"
#include "base/error.h"
#include "ledger/record.h"

#define RECEIPTS_MAX 10000
#define RECEIPT_TEXT_MAX ((size_t)16 << 20)

struct receipt {
	struct event_facts event; /* without config_hash and previous_chain_hash */
	struct sha256 chain_hash;
};

/* What is read points into the arena and the text. ret_receipts is an array of the arena's. 0 with
 * at least one receipt; ERR_INVALID_EVIDENCE with the cause, which names the receipt by its number;
 * ERR_NO_MEMORY. */
int receipts_read(struct arena *arena, struct slice text, struct receipt **ret_receipts,
                  size_t *ret_count, struct error *error) MUST_CHECK;

#endif
