/* Movements of credits of an account, and the number of days for which a balance lasts. */
#include "ledger/ledger.h"

#include <assert.h>

#include "ledger/invariants.h"
#include "ledger/notice.h"

static struct ledger_entry *entry_make(struct arena *arena, const char *kind, int64_t credits,
                                       int64_t balance, const char *reference)
{
	struct ledger_entry *entry = arena_alloc(arena, sizeof *entry);
	if (entry) {
		entry->kind = kind;
		entry->credits = credits;
		entry->balance = balance;
		entry->reference = reference;
	}
	return entry;
}

int ledger_move_credits(struct ledger_account *account, int64_t credits, const char *kind,
                        const char *reference, struct arena *arena,
                        struct ledger_result *ret_result, int64_t *ret_settled, struct error *error)
{
	const struct ledger_values before = ledger_values_of(account, NULL);
	int64_t balance;
	if (credits == 0 || __builtin_add_overflow(account->balance, credits, &balance) ||
	    balance > LEDGER_BALANCE_MAX || balance < -LEDGER_BALANCE_MAX)
		return error_set(error, ERR_VALIDATION, MSG_CREDITS_RANGE, NULL);
	struct ledger_entry *entry = entry_make(arena, kind, credits, balance, reference);
	if (!entry)
		return ERR_NO_MEMORY;
	int64_t settled = 0;
	if (balance > 0 && account->unpaid_events > 0) {
		settled = balance < account->unpaid_events ? balance : account->unpaid_events;
		balance -= settled;
		entry->next = entry_make(arena, "settlement", -settled, balance, reference);
		if (!entry->next)
			return ERR_NO_MEMORY;
	}
	account->balance = balance;
	account->unpaid_events -= settled;
	assert(settled == 0 || credits > 0); /* a loss settles nothing */
	assert_moved(&before, account, entry, settled);

	struct notice_list notices;
	notice_list_init(&notices, arena);
	notice_thresholds(&notices, account);
	if (notices.failed)
		return ERR_NO_MEMORY;
	*ret_result = (struct ledger_result){.entries = entry, .notices = notices.first};
	*ret_settled = settled;
	return OK;
}

int64_t ledger_days_left(int64_t balance, int64_t used, int64_t days)
{
	__int128 left;
	if (used <= 0 || days <= 0)
		return -1;
	if (balance <= 0)
		return 0;
	left = (__int128)balance * days / used;
	return left > LEDGER_FORECAST_DAYS_MAX ? -1 : (int64_t)left;
}
