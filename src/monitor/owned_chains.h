/* The chains of a watcher: their tags, and the receipts of their events. One thread at a time. */
#ifndef MONITOR_OWNED_CHAINS_H
#define MONITOR_OWNED_CHAINS_H

#include "archive/receipt.h"
#include "tlog/entry.h"

#define OWNED_CHAINS_MAX 1000
#define OWNED_RECEIPTS_MAX ((size_t)1 << 20)
#define PROMISE_MAX_US (24 * 3600 * US_PER_SECOND) /* a promise of a later time is none */

struct owned_receipt {
	int64_t sequence;
	struct sha256 chain_hash;
	int64_t seal_by_us;   /* promised, and signed; TIME_NONE: the receipt promises nothing */
	bool is_signed;       /* by the key that it states */
	bool is_far;          /* that was promised for later than PROMISE_MAX_US after its event */
	bool is_of_other_log; /* it is signed for another log than owned_chains.origin */
};

struct owned_chain {
	char channel_id[TLOG_CHAIN_NAME_MAX + 1];
	struct sha256 tag;
	struct owned_receipt *receipts;
	size_t receipt_count;
};

struct owned_chains {
	struct owned_chain chains[OWNED_CHAINS_MAX];
	size_t count;
	size_t receipt_count;
	const char *origin;         /* of the log that is watched; NULL: any */
	uint64_t test_receipts;     /* ignored: the log has live chains only */
	uint64_t unusable_receipts; /* texts that are no receipts */
	uint64_t false_receipts;    /* with a signature that does not verify: they promise nothing */
};

/* Adds the live chain of a channel, unless it is there. ERR_INVALID_EVIDENCE with the cause. */
int owned_add_channel(struct owned_chains *owned, const char *channel_id, struct error *error)
	MUST_CHECK;

/* Adds a receipt, the answer to a registration, and its channel. A text that is no receipt is
 * counted, so that it hides no other one. ERR_INVALID_EVIDENCE with the cause: there are
 * too many channels. ERR_TOO_LARGE: above OWNED_RECEIPTS_MAX. ERR_NO_MEMORY. */
int owned_add_receipt(struct owned_chains *owned, struct slice text, struct error *error)
	MUST_CHECK;
/* Reads a text of one receipt, and what the table keeps of it. *ret_is_valid: it has a signature
 * that verifies with the key that it states. The receipt points into the arena. Errors as
 * owned_add_receipt. */
int owned_read_receipt(struct arena *arena, struct slice text, struct receipt *ret,
                       struct owned_receipt *ret_kept, bool *ret_is_valid, struct error *error)
	MUST_CHECK;
/* Sorts the receipts of each chain by sequence and removes repeated ones, of which the one that
 * binds the service most remains; call it after the last one was added. */
void owned_sort_receipts(struct owned_chains *owned);
void owned_clear_receipts(struct owned_chains *owned);

/* Returns the chain with that tag; NULL: it is another owner's. */
struct owned_chain *owned_find(struct owned_chains *owned, const struct sha256 *tag);
/* Returns the index of the chain's first receipt with at least that sequence. */
size_t owned_first_receipt(const struct owned_chain *chain, int64_t sequence);

#endif
