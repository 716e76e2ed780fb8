/* A batch of registrations between loading, deciding and writing; shared by register*.c alone.
 *
 * The engines differ in how chain heads and the events that hold given client_refs are found, and
 * in how many rows are written at once: all on a server, where each statement costs more than its
 * rows. What differs is a `struct register_engine`, chosen when the store is opened. */
#ifndef STORE_REGISTER_BATCH_H
#define STORE_REGISTER_BATCH_H

#include "store/events/arrivals.h"
#include "store/events/client_refs.h"
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
	bool sealed;                  /* no live event waits for a seal */
	struct arrival_runs_end runs; /* embedded: of its events */
};

/* What a batch holds of one account. */
struct account_batch {
	struct ledger_account account;
	struct batch_item *first;
	struct batch_item **end;
	size_t count;
	struct db_query *heads, *known; /* a server's: asked, not read yet */
	struct account_batch *next;
};

/* What is kept from batch to batch, for each that may run at a time. */
struct batch_memory {
	struct arena arena; /* of the batch */
	/* The embedded engine's. */
	struct client_refs *client_refs;
	struct kept_heads *kept_heads;
	/* A server's. */
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
	struct account_batch *accounts; /* in order of their numbers */
	size_t account_count;
};

/* A request that the ledger let in as a new event. */
static inline bool batch_item_is_new(const struct batch_item *item)
{
	return !item->request.result && !item->request.replayed;
}

/* What a key registered in the batch. */
struct usage {
	int64_t day; /* of received_at, counted from 1970-01-01 */
	int64_t chain;
	int64_t key;
	int64_t events;
	int64_t unpaid_events; /* of them */
	int64_t content_bytes;
};

/* What an engine does in its own way. "Optional": may be NULL, and then is not called. */
struct register_engine {
	/* Whether what comes while a batch waits for its accounts is taken in. */
	bool grows;
	/* What is kept from batch to batch; close is called after a failed open, too. */
	int (*open)(struct store *store, struct batch_memory *memory, struct error *error);
	void (*close)(struct batch_memory *memory);
	/* Optional: behind the transaction's begin. */
	int (*begin)(struct batch *batch, struct error *error);
	/* Optional: sends the questions of read_heads and find_known, which then cost one round
	 * trip. */
	void (*ask)(struct batch *batch, struct account_batch *part);
	/* The heads of the account's chains, locked in order; `chains` are in the account's order. */
	int (*read_heads)(struct batch *batch, struct account_batch *part, struct loaded_chain *chains,
	                  struct error *error);
	/* Fills request.known of the items whose client_ref an event holds already, or request.result
	 * where that cannot be said. */
	int (*find_known)(struct batch *batch, struct account_batch *part, struct error *error);
	int (*write_events)(struct batch *batch, struct account_batch *part, struct error *error);
	/* Of the chains that have new events, behind write_events. */
	int (*write_heads)(struct batch *batch, const struct account_batch *part, struct error *error);
	/* What the new events cost, continuing account->last_entry. */
	int (*write_entries)(struct batch *batch, struct ledger_account *account,
	                     const struct ledger_entry *entries, struct error *error);
	/* In the order of chains and keys. */
	int (*add_usage)(struct batch *batch, int64_t account, const struct usage *usage, size_t count,
	                 struct error *error);
	/* Optional: before the commit, and when it is known how the transaction ended. */
	int (*finish)(struct batch *batch, struct error *error);
	void (*ended)(struct batch *batch, bool committed);
	/* The sequence of the event that holds a client_ref and was committed before the call, 0: none.
	 * By any thread. */
	int (*look_up)(struct store *store, int64_t account, int64_t chain, struct slice client_ref,
	               int64_t *ret_sequence, struct error *error);
};
extern const struct register_engine register_embedded;
extern const struct register_engine register_on_server;

/* A chain's head: the columns of a query and what is added to them, FROM and JOINs; and how its row
 * is read. */
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
#define CHAIN_HEADS_ADDED 9 /* the column that was added */
/* ERR_CORRUPT: a head is missing, or says what none says. */
int register_head_not_whole(int64_t chain, struct error *error) MUST_CHECK;

/* What else the ledger must know of the items of an account, which is locked and read already;
 * chains are locked in the order of their numbers. */
int register_load(struct batch *batch, struct account_batch *part, struct error *error) MUST_CHECK;
/* Everything that the ledger decided. */
int register_write(struct batch *batch, struct account_batch *part,
                   const struct ledger_result *decided, struct error *error) MUST_CHECK;

#endif
