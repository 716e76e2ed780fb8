/* Rate limit per account for receipts (sale_receipt.h). Each receipt appends a permanent line to
 * the signing process's log and uses CPU time. RECEIPT_RATE_BURST receipts are allowed at once,
 * then one each RECEIPT_RATE_PAUSE_US. Kept in memory for the most recent accounts; not thread
 * safe. */
#ifndef SERVICE_RECEIPT_RATE_H
#define SERVICE_RECEIPT_RATE_H

#include "base/clock.h"
#include "base/error.h"
#include "store/store.h"

#define RECEIPT_RATE_BURST 30
#define RECEIPT_RATE_PAUSE_US (60 * US_PER_SECOND)
#define RECEIPT_RATE_ACCOUNTS 64

struct receipt_rate {
	struct {
		char account_id[ID_SIZE];
		int64_t spent_until_us; /* time at which the full burst is available again */
	} accounts[RECEIPT_RATE_ACCOUNTS];
};

/* Counts one receipt. ERR_RATE_LIMITED with retry_after_seconds: nothing is counted. now_us is
 * monotonic. */
int receipt_rate_take(struct receipt_rate *rate, const char *account_id, int64_t now_us,
                      struct error *error) MUST_CHECK;

#endif
