/* Assertions of the invariants that ledger.h lists. They stay on in release builds. A failed one
 * ends the process before the store writes the batch, so that nothing of it is acknowledged. Inside
 * src/ledger only. Pure. */
#ifndef LEDGER_INVARIANTS_H
#define LEDGER_INVARIANTS_H

#include "ledger/ledger.h"

/* The values of an account and of one of its chains that a request can change. */
struct ledger_values {
	int64_t balance, unpaid_events;
	int64_t test_events_today, test_bytes_today;
	int64_t stored_bytes;
	int64_t last_sequence, last_received_at_us;
	struct sha256 last_chain_hash;
};
/* `chain` NULL: of the account alone. */
struct ledger_values ledger_values_of(const struct ledger_account *account,
                                      const struct ledger_chain *chain);

/* Asserts that a replay, a conflict or a refusal changed nothing. */
void assert_unchanged(const struct ledger_values *before, const struct ledger_account *account,
                      const struct ledger_request *request);
/* Asserts that a request appended exactly one event to its chain, that the account changed by that
 * event alone, and that the clock and the account allowed it. */
void assert_appended(const struct ledger_values *before, const struct ledger_account *account,
                     const struct ledger_request *request, const struct ledger_clock *clock);
/* Asserts that balance and unpaid events changed by the entries and outcomes of the batch alone. */
void assert_batch(const struct ledger_values *before, const struct ledger_account *account,
                  struct ledger_request *const *requests, size_t count,
                  const struct ledger_entry *entries);
/* Asserts the same of a movement of credits that settled `settled` unpaid events. */
void assert_moved(const struct ledger_values *before, const struct ledger_account *account,
                  const struct ledger_entry *entries, int64_t settled);

#endif
