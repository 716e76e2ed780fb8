/* How often an account has receipts made (sale_receipt.h): each has the signing process append a
 * line to its log for good, and takes a processor for a while. The first RECEIPT_RATE_BURST come at
 * once, then one each RECEIPT_RATE_PAUSE_US. Kept in memory for the accounts that asked last; one
 * thread at a time. */
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
		int64_t spent_until_us; /* when all of its burst is there again */
	} accounts[RECEIPT_RATE_ACCOUNTS];
};

/* Counts one. ERR_RATE_LIMITED with retry_after_seconds, and nothing is counted. now_us is of the
 * monotonic clock. */
int receipt_rate_take(struct receipt_rate *rate, const char *account_id, int64_t now_us,
                      struct error *error) MUST_CHECK;

#endif
