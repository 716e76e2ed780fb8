/* Delays individual leaves that cannot be renewed now. */
#include "base/log.h"
#include "base/schedule.h"
#include "evidence/renewal_leaf.h"

#define PAUSE_FIRST_US (60 * US_PER_SECOND)
#define PAUSE_MAX_US (6 * 3600 * US_PER_SECOND)

bool renewal_fails_alone(int failure)
{
	switch (failure) {
	case OK:
	case ERR_NO_MEMORY:
	case ERR_NO_SPACE:
	case ERR_UNAVAILABLE:
	case ERR_UNKNOWN_OUTCOME: return false;
	default: return true;
	}
}

static int64_t pause_us(int64_t attempts)
{
	return backoff_us(attempts + 1, PAUSE_FIRST_US, PAUSE_MAX_US);
}

static void count(const struct renewal *renewal)
{
	atomic_fetch_add(&renewal->service->counters.evidence_failures, 1);
}

int renewal_delay_waiting(const struct renewal *renewal, const struct evidence_queue_entry *item,
                          int failure, struct error *error)
{
	struct store *store = renewal->service->store;
	char cause[ERROR_CAUSE_MAX];
	snprintf(cause, sizeof cause, "%s", error_reason(error, failure));
	log_error("evidence_delayed", "certification_id", item->certification_id, "cause", cause);
	count(renewal);
	*error = (struct error){0};
	return store_delay_evidence(store, item, store_now_us(store) + pause_us(item->attempts), cause,
	                            error);
}

int renewal_delay_token(const struct renewal *renewal, const struct renewable_token *token,
                        int failure, struct error *error)
{
	static const char *const sources[] = {
		[TOKEN_ROUND] = "round", [TOKEN_SECOND] = "second", [TOKEN_STAMP] = "stamp"};
	char number[24];
	renewal_text(token->number, number);
	log_error("token_renewal_delayed", "source", sources[token->source], "number", number, "cause",
	          error_reason(error, failure));
	count(renewal);
	*error = (struct error){0};
	return store_delay_token(renewal->service->store, token,
	                         clock_now_us() + pause_us(token->attempts), error);
}
