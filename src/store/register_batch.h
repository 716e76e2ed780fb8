/* A batch of registrations between loading, deciding and writing; shared by register*.c alone. */
#ifndef STORE_REGISTER_BATCH_H
#define STORE_REGISTER_BATCH_H

#include "store/client_refs.h"
#include "store/internal.h"

/* One item of a batch beside the ledger's request. */
struct batch_item {
	struct registration *registration;
	struct ledger_request request;
	int64_t ref_hash;
	struct batch_item *next; /* of the same account, in order of arrival */
};

/* A chain head as loaded; the ledger sees its first member. */
struct loaded_chain {
	struct ledger_chain ledger;
	bool sealed; /* no live event waits for a seal */
};

/* What a batch holds of one account. */
struct account_batch {
	struct ledger_account account;
	struct batch_item *first;
	struct batch_item **end;
	size_t count;
	struct account_batch *next;
};

/* What is kept for the batches of one sequencer. */
struct sequencer {
	struct arena arena;              /* of the batch */
	struct client_refs *client_refs; /* embedded engine alone */
	struct event_columns *columns;   /* server alone */
};

struct batch {
	struct db_connection *connection;
	struct sequencer *sequencer;
	struct arena *arena;
	struct ledger_clock clock;
	char day[PERIOD_KEY_SIZE];
	struct account_batch *accounts; /* in order of their numbers */
	size_t account_count;
};

/* A request that the ledger let in as a new event. */
static inline bool batch_item_is_new(const struct batch_item *item)
{
	return item->request.result == OK && !item->request.replayed;
}

/* The engines differ in how the events that hold given client_refs are found, and in how many rows
 * are written at once: all on a server, where each statement costs more than its rows. */
int register_find_known(struct batch *batch, struct account_batch *part, struct error *error);
int register_write_events(struct batch *batch, struct account_batch *part, struct error *error);
struct db_query *register_ask_known_server(struct batch *batch, struct account_batch *part);
int register_read_known_server(struct batch *batch, struct db_query *query,
                               struct account_batch *part, struct error *error);
int register_write_events_server(struct batch *batch, struct account_batch *part,
                                 struct error *error);
/* Room for the numbers of the batch's chains; emptied. */
struct db_array *register_chain_numbers(struct batch *batch);
/* Live events that a key registered in the batch. */
struct usage {
	int64_t channel;
	int64_t key;
	char day[PERIOD_KEY_SIZE]; /* in which they were received */
	int64_t events;
};
int register_add_usage(struct batch *batch, int64_t account, const struct usage *usage,
                       size_t count, struct error *error);
int register_add_usage_server(struct batch *batch, int64_t account, const struct usage *usage,
                              size_t count, struct error *error);
int event_columns_open(struct event_columns **ret);
void event_columns_close(struct event_columns *columns); /* NULL-safe */

/* What else the ledger must know of the items of an account, which is locked and read already;
 * chains are locked in the order of their numbers. */
int register_load(struct batch *batch, struct account_batch *part, struct error *error);
/* Everything that the ledger decided. */
int register_write(struct batch *batch, struct account_batch *part,
                   const struct ledger_result *decided, struct error *error);

#endif
