/* A batch of registrations: loading, decision and writing. Private to register*.c.
 *
 * The engines differ in how they find chain heads and the events with given client_refs, and in the
 * number of rows per statement: all rows on a server, where a statement costs more than its rows. A
 * `struct register_engine`, chosen when the store is opened, has these differences. */
#ifndef STORE_REGISTER_BATCH_H
#define STORE_REGISTER_BATCH_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>

#include "store/events/append_log.h"
#include "store/events/client_refs.h"
#include "store/store_internal.h"

/* An item of a batch, with the ledger's request. */
struct batch_item {
	struct registration *registration;
	struct ledger_request request;
	int64_t ref_hash;
	struct batch_item *next; /* next item of the same account, in order of arrival */
};

/* A chain head as loaded; the ledger sees the first member. */
struct loaded_chain {
	struct ledger_chain ledger;
	bool sealed;                  /* no live event is waiting for a seal */
	struct arrival_runs_end runs; /* embedded engine: of its events */
};
_Static_assert(offsetof(struct loaded_chain, ledger) == 0, "converted to and from its ledger");

/* The part of a batch that concerns one account. */
struct account_batch {
	struct ledger_account account;
	struct batch_item *first;
	struct batch_item **end;
	size_t count;
	struct db_query *heads, *known; /* server: sent, but not read yet */
	struct account_batch *next;
};

/* Memory that is kept between batches, one for each sequencer. */
struct batch_memory {
	atomic_bool is_used; /* by the thread of a batch */
	struct arena arena;  /* of the current batch */
	/* Embedded engine. */
	struct client_refs *client_refs;
	struct head_cache *head_cache;
	/* Server. */
	struct event_columns *columns;
};

struct batch {
	struct db_connection *connection;
	const struct register_engine *engine;
	struct batch_memory *memory;
	struct arena *arena;
	struct ledger_clock clock;
	int64_t stored_max; /* the general setting */
	char day[PERIOD_KEY_SIZE];
	struct account_batch *accounts; /* in ascending order */
	size_t account_count;
};

/* Returns whether the ledger admitted the request as a new event. */
static inline bool batch_item_is_new(const struct batch_item *item)
{
	return !item->request.result && !item->request.replayed;
}
/* Fills the new event of an admitted item; its slices and strings are the registration's. */
void batch_item_event(const struct batch_item *item, struct event *event);

/* Returns the number of the item's new event. */
static inline int64_t batch_item_number(const struct batch_item *item)
{
	assert(batch_item_is_new(item) && item->registration->chain > 0);
	assert(item->request.chain->chain == item->registration->chain);
	return new_event_number(item->registration->chain, item->request.sequence);
}

/* The events that a key registered in the batch. */
struct usage {
	int64_t day; /* of received_at, in days since 1970-01-01 */
	int64_t chain;
	int64_t key;
	int64_t events;
	int64_t unpaid_events; /* of them */
	int64_t content_bytes;
};

/* Operations of an engine. "Optional" members may be NULL. */
struct register_engine {
	/* Whether items that arrive while the batch waits for its accounts join the batch. */
	bool grows;
	/* Allocate and free the memory that is kept between batches; close is also called after a
	 * failed open. */
	int (*open)(struct store *store, struct batch_memory *memory, struct error *error);
	void (*close)(struct batch_memory *memory);
	/* Optional: after the transaction has begun. */
	int (*begin)(struct batch *batch, struct error *error);
	/* Optional: sends the queries of read_heads and find_known together, so that they cost one
	 * round trip. */
	void (*ask)(struct batch *batch, struct account_batch *part);
	/* Reads and locks the heads of the account's chains, in the order of `chains`. */
	int (*read_heads)(struct batch *batch, struct account_batch *part, struct loaded_chain *chains,
	                  struct error *error);
	/* Fills request.known of the items whose client_ref already has an event, or request.result
	 * when that cannot be determined. */
	int (*find_known)(struct batch *batch, struct account_batch *part, struct error *error);
	int (*write_events)(struct batch *batch, struct account_batch *part, struct error *error);
	/* For the chains with new events, after write_events. */
	int (*write_heads)(struct batch *batch, const struct account_batch *part, struct error *error);
	/* Writes the credit entries of the new events, continuing account->last_entry. */
	int (*write_entries)(struct batch *batch, struct ledger_account *account,
	                     const struct ledger_entry *entries, struct error *error);
	/* Called with entries in order of chain and key. */
	int (*add_usage)(struct batch *batch, int64_t account, const struct usage *usage, size_t count,
	                 struct error *error);
	/* Optional: before the commit, and when the outcome of the transaction is known. */
	int (*finish)(struct batch *batch, struct error *error);
	void (*ended)(struct batch *batch, bool committed);
	/* Returns the sequence of the event that has the client_ref and was committed before the call;
	 * 0: none. Any thread. */
	int (*look_up)(struct store *store, int64_t account, int64_t chain, struct slice client_ref,
	               int64_t *ret_sequence, struct error *error);
};
extern const struct register_engine register_embedded;
extern const struct register_engine register_on_server;

/* The query of a chain head, with additional columns, FROM and JOINs; and the function that reads
 * its row. */
#define CHAIN_HEADS(more)                                                                          \
	"SELECT chains.chain, chains.last_sequence, last_received_at, last_chain_hash, channel_id, "   \
	"config_version, modality, config_hash, sealed_sequence" more " FROM chains "                  \
	"JOIN channels ON channels.account = chains.account "                                          \
	"AND channels.channel = chains.chain / 2 "                                                     \
	"JOIN channel_configs ON channel_configs.account = chains.account "                            \
	"AND channel_configs.channel = channels.channel "                                              \
	"AND channel_configs.version = channels.config_version "
int register_read_head(struct batch *batch, struct db_query *query, struct loaded_chain *ret)
	MUST_CHECK;
#define CHAIN_HEADS_ADDED 9 /* index of the added column */
/* Returns ERR_CORRUPT: a head is missing or has invalid values. */
int register_head_not_whole(int64_t chain, struct error *error) MUST_CHECK;

/* Fills *ret with the event that holds a client_ref. ERR_UNAVAILABLE: its digest is damaged, so a
 * replay cannot be distinguished from a conflict. */
int register_read_known(int64_t sequence, struct slice hash, int64_t occurred_at_us,
                        struct ledger_known *ret, struct error *error) MUST_CHECK;

/* Loads what the ledger needs for the items of an account that is already locked and loaded. Locks
 * chains in order of their numbers. */
int register_load(struct batch *batch, struct account_batch *part, struct error *error) MUST_CHECK;
/* Writes everything that the ledger decided. */
int register_write(struct batch *batch, struct account_batch *part,
                   const struct ledger_result *decided, struct error *error) MUST_CHECK;

#endif
