#include "store/money/money.h"

#include <assert.h>

void money_begin(struct store *store, int64_t now_us, struct money *money, struct error **error)
{
	*money = (struct money){.now_us = now_us};
	money->connection = begin_write(store, error);
	arena_init(&money->arena, MONEY_MEMORY_MAX);
}

int money_end(struct money *money, int result, struct error *error)
{
	result = end_write(money->connection, result, error);
	arena_free(&money->arena);
	return result;
}

int money_hold(struct money *money, int64_t account, struct error *error)
{
	return store_load_account(money->connection, account, &money->arena, &money->account, error);
}

int money_move(struct money *money, int64_t credits, const char *kind, const char *reference,
               int64_t *ret_entry, int64_t *ret_settled, struct error *error)
{
	struct ledger_account *account = &money->account;
	struct ledger_result moved = {0};
	int64_t settled = 0;
	int64_t entry = account->last_entry + 1;
	int result = ledger_move_credits(account, credits, kind, reference, &money->arena, &moved,
	                                 &settled, error);
	if (!result && settled)
		result = store_settle(money->connection, account->account, settled, error);
	if (!result)
		result =
			store_write_entries(money->connection, account, moved.entries, money->now_us, error);
	if (!result)
		result = store_write_notices(money->connection, account->account, moved.notices, MODE_LIVE,
		                             money->now_us, error);
	if (!result)
		result = store_save_account(money->connection, account,
		                            money->activity ? money->now_us : TIME_NONE, error);
	if (!result) {
		assert(account->last_entry == entry + (settled > 0)); /* the entry, and the settlement */
		*ret_entry = entry;
		*ret_settled = settled;
	}
	return result;
}
