#include "ledger/invariants.h"

#include <assert.h>

struct ledger_values ledger_values_of(const struct ledger_account *account,
                                      const struct ledger_chain *chain)
{
	struct ledger_values values = {
		.balance = account->balance,
		.unpaid_events = account->unpaid_events,
		.test_events_today = account->test_events_today,
		.test_bytes_today = account->test_bytes_today,
		.stored_bytes = account->stored_bytes,
	};
	if (chain) {
		values.last_sequence = chain->last_sequence;
		values.last_received_at_us = chain->last_received_at_us;
		values.last_chain_hash = chain->last_chain_hash;
	}
	return values;
}

void assert_unchanged(const struct ledger_values *before, const struct ledger_account *account,
                      const struct ledger_request *request)
{
	const struct ledger_chain *chain = request->chain;
	assert(account->balance == before->balance);
	assert(account->unpaid_events == before->unpaid_events);
	assert(account->test_events_today == before->test_events_today);
	assert(account->test_bytes_today == before->test_bytes_today);
	assert(account->stored_bytes == before->stored_bytes);
	assert(chain->last_sequence == before->last_sequence);
	assert(chain->last_received_at_us == before->last_received_at_us);
	assert(sha256_equal(&chain->last_chain_hash, &before->last_chain_hash));
	assert(request->result || request->original > 0); /* a replay names its event */
}

/* The event continues its chain: gapless, not before the previous one, and bound to it. */
static void assert_continues(const struct ledger_values *before,
                             const struct ledger_request *request)
{
	const struct ledger_chain *chain = request->chain;
	assert(chain->chain <= CHAIN_MAX && request->sequence <= EVENT_SEQUENCE_MAX);
	assert(request->sequence == before->last_sequence + 1);
	assert(chain->last_sequence == request->sequence);
	assert(request->received_at_us >= before->last_received_at_us);
	assert(chain->last_received_at_us == request->received_at_us);
	assert(sha256_equal(&chain->last_chain_hash, &request->chain_hash));
	assert(!sha256_equal(&request->chain_hash, &before->last_chain_hash));
}

void assert_appended(const struct ledger_values *before, const struct ledger_account *account,
                     const struct ledger_request *request, const struct ledger_clock *clock)
{
	bool live = request->chain->mode == MODE_LIVE;
	bool unpaid = request->status == STATUS_UNPAID;
	assert(!request->result && !request->replayed);
	assert_continues(before, request);
	assert(live == (request->status != STATUS_TEST));
	assert(account->balance == before->balance - (live && !unpaid));
	assert(account->unpaid_events == before->unpaid_events + unpaid);
	assert(!unpaid || account->unpaid_events <= account->unpaid_limit);
	assert(account->test_events_today == before->test_events_today + !live);
	assert(account->stored_bytes == before->stored_bytes + request->content_bytes);
	assert(request->content_bytes == 0 || account->stored_max == 0 ||
	       account->stored_bytes <= account->stored_max);
	assert(!live ||
	       (!ledger_clock_is_refused(clock) &&
	        ledger_clock_lag_us(before->last_received_at_us, clock->now_us) <= clock->bound_us));
}

static int64_t sum_of(const struct ledger_entry *entries)
{
	int64_t sum = 0;
	for (const struct ledger_entry *entry = entries; entry; entry = entry->next)
		sum += entry->credits;
	return sum;
}

void assert_batch(const struct ledger_values *before, const struct ledger_account *account,
                  struct ledger_request *const *requests, size_t count,
                  const struct ledger_entry *entries)
{
	int64_t unpaid = 0;
	for (size_t i = 0; i < count; i++)
		unpaid +=
			!requests[i]->result && !requests[i]->replayed && requests[i]->status == STATUS_UNPAID;
	assert(account->balance == before->balance + sum_of(entries));
	assert(account->unpaid_events == before->unpaid_events + unpaid);
}

void assert_moved(const struct ledger_values *before, const struct ledger_account *account,
                  const struct ledger_entry *entries, int64_t settled)
{
	assert(account->balance == before->balance + sum_of(entries));
	assert(settled >= 0 && settled <= before->unpaid_events);
	assert(account->unpaid_events == before->unpaid_events - settled);
	assert(settled == 0 || account->balance >= 0);
}
