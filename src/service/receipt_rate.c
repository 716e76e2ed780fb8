#include "service/receipt_rate.h"

#include <stdio.h>
#include <string.h>

#define BURST_US (RECEIPT_RATE_BURST * RECEIPT_RATE_PAUSE_US)

int receipt_rate_take(struct receipt_rate *rate, const char *account_id, int64_t now_us,
                      struct error *error)
{
	size_t place = 0;
	for (size_t i = 0; i < RECEIPT_RATE_ACCOUNTS; i++) {
		if (strcmp(rate->accounts[i].account_id, account_id) == 0) {
			place = i;
			break;
		}
		if (rate->accounts[i].spent_until_us < rate->accounts[place].spent_until_us)
			place = i;
	}
	bool known = strcmp(rate->accounts[place].account_id, account_id) == 0;
	int64_t until_us = known ? rate->accounts[place].spent_until_us : now_us;
	until_us = (until_us > now_us ? until_us : now_us) + RECEIPT_RATE_PAUSE_US;
	int64_t early_us = until_us - now_us - BURST_US;
	if (early_us > 0) {
		char minutes[24];
		snprintf(minutes, sizeof minutes, "%lld",
		         (long long)((early_us + RECEIPT_RATE_PAUSE_US - 1) / RECEIPT_RATE_PAUSE_US));
		int result = error_set(error, ERR_RATE_LIMITED, MSG_SALE_OFTEN, minutes, NULL);
		if (error)
			error->retry_after_seconds = (int)((early_us + US_PER_SECOND - 1) / US_PER_SECOND);
		return result;
	}
	snprintf(rate->accounts[place].account_id, ID_SIZE, "%s", account_id);
	rate->accounts[place].spent_until_us = until_us;
	return OK;
}
