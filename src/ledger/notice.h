/* Internal to the ledger: collects notices with their data for the API. */
#ifndef LEDGER_NOTICE_H
#define LEDGER_NOTICE_H

#include "ledger/ledger.h"

struct notice_list {
	struct arena *arena;
	struct ledger_notice *first;
	struct ledger_notice **end; /* initially &first */
	bool failed;                /* the arena was exhausted */
};
void notice_list_init(struct notice_list *list, struct arena *arena);
/* Issues a notice for every armed threshold at or above the balance; arms thresholds below it. */
void notice_thresholds(struct notice_list *list, struct ledger_account *account);
void notice_exhausted(struct notice_list *list, const char *channel_id);
void notice_unpaid_limit(struct notice_list *list, const struct ledger_account *account);
void notice_consumption_limit(struct notice_list *list, const struct ledger_limit *limit,
                              const char *key);

#endif
