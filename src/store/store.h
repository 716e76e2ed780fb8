/* The store: accounts, channels, keys, chains of events, the ledger of credits, limits, notices,
 * segments and certifications, over one of the engines of db.h.
 *
 * Every function is thread safe. Returned strings and slices live in the caller's arena.
 * ERR_NOT_FOUND means that an object does not exist. Engine failures: ERR_UNAVAILABLE (busy or
 * connection lost, retry), ERR_NO_SPACE, ERR_IO, ERR_UNKNOWN_OUTCOME (commit), ERR_CORRUPT. After a
 * failure for which store_is_poisoned is true the process must end.
 *
 * This header has opening, keys for authentication, registration, reading and checking. Others:
 *   accounts/        administration of accounts, channels, keys, credits and limits
 *   events/          segments and the rounds that seal them
 *   evidence/        archive timestamps, which preserve the proof of issued and sealed data
 *   money/           billing, packs, purchases and their payments, automatic top-up
 *   notices/         webhooks, deliveries, e-mails
 *   certifications/  certifications and issued files, the secrets of download links
 *   inspect.h, leases.h, sweeps.h */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/arena.h"
#include "db/db.h"
#include "ledger/ledger.h"

struct store;

/* Opens a store. `create` creates the schema in an empty one; an existing schema must be current
 * (store_migrate), or newer by `rolling` steps only (db/schema.h). */
int store_open(const struct db_options *options, struct store **ret_store, struct error *error)
	MUST_CHECK;
void store_close(struct store *store);
/* Refuses to create a store in a database of a server that has that of another installation. */
int store_check_alone(const struct db_options *options, struct error *error) MUST_CHECK;
/* Applies the missing steps of the schema (db_migrate), or with `dry_run` only lists them. Writes
 * their names to `out` (one per line) and into the arguments of `act` (store/audit/audit_log.h),
 * which is recorded with them. `progress` receives the progress of a long step. `act`, `out` and
 * `progress` may be NULL.
 */
struct act;
int store_migrate(const struct db_options *options, bool dry_run, struct act *act, struct buf *out,
                  const struct schema_progress *progress, struct error *error) MUST_CHECK;
/* Distributes the tables that are not distributed yet, or with `dry_run` only lists them. Writes
 * their names to `out` (one per line) and into the arguments of `act`. Continues after an
 * interruption. Returns ERR_REFUSED when the server does not support distribution. */
int store_distribute(const struct db_options *options, bool dry_run, struct act *act,
                     struct buf *out, const struct schema_progress *progress, struct error *error)
	MUST_CHECK;
/* Returns the last schema step of this program, which an open store has as well. */
const char *store_schema_name(void);
/* Returns the kind of a schema step of this program: "rolling" or "stop". */
const char *store_step_kind(struct slice name);
/* Checks whether writes can be acknowledged. On ERR_UNAVAILABLE the reason is in error->cause. */
int store_ready(struct store *store, struct error *error) MUST_CHECK;
/* Reads a secret of the installation; *ret_found false: it does not exist. Writes nothing. */
int store_find_secret(struct store *store, const char *name, bool *ret_found, struct sha256 *ret,
                      struct error *error) MUST_CHECK;
/* Reads a secret of the installation, which is created at its first use and is the same on every
 * node. */
int store_get_secret(struct store *store, const char *name, struct sha256 *ret, struct error *error)
	MUST_CHECK;
/* Commits without a change. Afterwards everything that was visible before is as durable as what
 * this store acknowledges. */
int store_confirm(struct store *store, struct error *error) MUST_CHECK;
/* Does the same for what was visible of the account (0: of no account), on whichever server its
 * rows are. */
int store_confirm_account(struct store *store, int64_t account, struct error *error) MUST_CHECK;
/* Returns the installation's identifier, 64 hex digits. It is part of the database, so that a
 * restored copy has it as well. It is created at its first use and is the same on every node. */
#define INSTALLATION_SIZE 65
int store_get_installation(struct store *store, char ret[INSTALLATION_SIZE], struct error *error)
	MUST_CHECK;
/* Checks whether all earlier writes are visible (db_await_writes). */
int store_await_writes(struct store *store, struct error *error) MUST_CHECK;
/* Returns whether all servers with rows of accounts are available; work on all of them waits for
 * that. */
bool store_is_whole(struct store *store);
/* Returns the durability that a receipt of this store promises: "durable" (one machine) or
 * "replicated". */
const char *store_promise(struct store *store);
/* Returns true after an I/O error in a commit: nothing may be acknowledged any more. */
bool store_is_poisoned(const struct store *store);
/* Does the engine's housekeeping between batches (db_maintain). */
int store_maintain(struct store *store, struct error *error) MUST_CHECK;
/* Writes a consistent copy to the file `path` while serving (db_backup). store_backup_name returns
 * the name of such a file. */
int store_backup(struct store *store, const char *path, struct error *error) MUST_CHECK;
const char *store_backup_name(const struct store *store);
/* Backups by pages (db_backup_pages). */
bool store_has_page_backups(const struct store *store);
int store_backup_pages(struct store *store, const struct db_page_target *target,
                       struct db_pages *ret, struct error *error) MUST_CHECK;
/* Returns the time of the clock for leases and due times, which all nodes share (db_now_us). */
int64_t store_now_us(const struct store *store);
/* Returns whether other processes also write to the store. store_latest_now_us then returns the
 * latest time that their common clock may show now (db_latest_now_us). */
bool store_is_shared(const struct store *store);
int64_t store_latest_now_us(const struct store *store);
/* Returns the number of batches that can be registered in parallel, each by a sequencer of its own.
 * Batches of different accounts do not wait for each other. */
unsigned store_sequencer_count(struct store *store);

/* ---- keys for authentication ---- */
struct key_identity {
	int64_t account;
	int64_t channel;
	int64_t chain;
	int64_t key;
	char account_id[ID_SIZE];
	char channel_id[ID_SIZE];
	char key_id[ID_SIZE];
	enum mode mode;
	enum modality modality; /* of the configuration in force */
	bool revoked;
	int64_t expires_at_us; /* 0: no expiry */
	bool account_suspended;
	bool channel_suspended;
	bool account_disabled;
	int64_t rate;         /* live requests per second of each key; 0: the general setting */
	int64_t account_rate; /* the same for all live keys together */
};
/* Finds a key by the SHA-256 of its complete text. Returns ERR_NOT_FOUND when it does not exist. */
int store_find_key(struct store *store, const struct sha256 *key_hash, struct key_identity *ret,
                   struct error *error) MUST_CHECK;

/* ---- registration ---- */
struct registration {
	/* Input. */
	int64_t account;
	int64_t channel;
	int64_t chain;
	int64_t key;
	struct declaration declaration; /* its modality is checked again against the channel */
	struct slice content;           /* canonical JSON sent inline (up to 16 KiB), or empty */
	const char *content_object;     /* name in the content store, or NULL */
	const char *file_name;          /* of a file, or NULL */
	int64_t content_bytes;          /* -1: hash-only */

	/* Memory for the output of the caller, who can refuse a request without it; NULL: the store
	 * takes it from `arena`. */
	struct event *room;

	/* Output. */
	int result; /* OK or an ERR_* of the API */
	bool replayed;
	bool chain_is_ahead;       /* ERR_CLOCK: of a clock that was accepted */
	struct error *error;       /* in `arena`, of a result that is not OK; NULL: general message */
	char original_id[ID_SIZE]; /* ERR_CONFLICT: the event that already has client_ref */
	struct event *event;       /* when result is OK */
	struct receipt_signature *receipt; /* set by the caller of the store; NULL: unsigned */
	struct arena *arena;               /* of the request; receives the output */
};
/* Sets the result of a registration that is not executed, with a copy of the error. */
void registration_refuse(struct registration *registration, int result, const struct error *error);
/* Copies the error of a registration whose result is not OK. */
void registration_get_error(const struct registration *registration, struct error *ret);

struct registration_batch {
	struct registration **items;
	size_t count;
	struct ledger_clock clock; /* not before the reception of any item */
	int64_t stored_max;        /* limit in bytes of an account without its own limit; 0: no limit */
	/* With several writers a batch may have to wait for an account. Once it has its accounts, it
	 * may grow: the function appends to `items` what has arrived for these accounts (sorted) and
	 * updates count and clock. NULL: the batch does not grow. */
	void (*grow)(struct registration_batch *batch, const int64_t *accounts, size_t account_count);
	/* Called in the transaction when all outcomes are known, before its commit; again if the batch
	 * is retried. Must not block. NULL: not called. */
	void (*decided)(struct registration_batch *batch);
	void *context; /* of both */
};
/* Decides and writes a batch in one durable transaction. Items may be of several accounts. When the
 * result is not 0, nothing of the batch may be acknowledged. One thread at a time for each
 * `sequencer`, counted from 0; the events of an account should go through one of them. */
int store_register_batch(struct store *store, unsigned sequencer, struct registration_batch *batch,
                         struct error *error) MUST_CHECK;

/* ---- reading ---- */
struct event {
	char event_id[ID_SIZE];
	char channel_id[ID_SIZE];
	struct declaration declaration;
	int64_t sequence;
	int64_t received_at_us;
	struct sha256 chain_hash;
	enum event_status status;
	enum mode mode;
	int64_t config_version;
	char segment_id[ID_SIZE]; /* empty: pending (live) or simulated (test) */
	int64_t sealed_at_us;     /* TIME_NONE while not sealed */
	bool is_logged;           /* its segment has an entry in the log (tlog/log_records.h) */
	/* Not part of the public record. */
	struct slice content; /* inline content, only on request */
	const char *content_object;
	const char *file_name;
	int64_t content_bytes; /* -1: hash-only */
};

/* Returns the sealed facts of an event; their pointers refer to the event. */
struct event_facts event_facts_of(const struct event *event, const struct sha256 *config_hash,
                                  const struct sha256 *previous_chain_hash);

enum list_order { ORDER_ASCENDING, ORDER_DESCENDING };

/* A page of a list. */
struct list_page {
	enum list_order order;
	int64_t past; /* only numbers after this one, in the order; 0: first page */
	int64_t limit;
};

struct event_filter {
	int64_t from_us;  /* inclusive; TIME_NONE: no bound */
	int64_t to_us;    /* exclusive */
	int64_t seq_from; /* 0: none */
	int64_t seq_to;
	int status;              /* -1: any, else enum event_status */
	int64_t past;            /* cursor: only sequences after this one, in the order; 0: all */
	enum list_order order;   /* of sequences */
	struct slice client_ref; /* NULL: any; else the one event that has it, found by an index */
	struct slice digest;     /* NULL: any; else those that have it, found by an index; of its
	                            algorithm's size */
	/* Only with a digest. Receives the sequence at which the list ended because many events had the
	 * digest and did not pass the filter; 0: it did not. */
	int64_t *ret_stopped_at;
};
/* Calls `each` in the filter's order, at most `limit` times (0: no limit), with constant memory.
 * The slices of the event are valid until the next call. A non-zero result of `each` ends the
 * iteration and is returned. */
int store_list_events(struct store *store, int64_t account, int64_t chain,
                      const struct event_filter *filter, int64_t limit, bool with_content,
                      int (*each)(void *context, const struct event *event), void *context,
                      struct error *error) MUST_CHECK;
/* Reads an event with its inline content and all other members. */
int store_get_event(struct store *store, int64_t account, int64_t chain, int64_t sequence,
                    struct arena *arena, struct event *ret, struct error *error) MUST_CHECK;

struct chain_head {
	int64_t created_at_us;
	struct sha256 genesis_hash;
	int64_t last_sequence;
	int64_t last_received_at_us;
	struct sha256 last_chain_hash;
	int64_t sealed_sequence; /* last event in a sealed segment; staged ones do not count */
};
int store_get_chain(struct store *store, int64_t account, int64_t chain, struct chain_head *ret,
                    struct error *error) MUST_CHECK;
/* Returns the chain_hash of event `sequence`; 0: the genesis hash. */
int store_get_chain_hash(struct store *store, int64_t account, int64_t chain, int64_t sequence,
                         struct sha256 *ret, struct error *error) MUST_CHECK;
/* Finds the first and last sequence received in [from, to); last < first: none. */
int store_resolve_times(struct store *store, int64_t account, int64_t chain, int64_t from_us,
                        int64_t to_us, int64_t *ret_first, int64_t *ret_last, struct error *error)
	MUST_CHECK;

struct balance {
	int64_t balance;
	int64_t unpaid_events;
};
int store_get_balance(struct store *store, int64_t account, struct balance *ret,
                      struct error *error) MUST_CHECK;

struct channel_config {
	struct config_facts facts; /* strings in the arena */
	struct sha256 hash;
};
struct channel {
	char channel_id[ID_SIZE];
	char account_id[ID_SIZE];
	int64_t account;
	int64_t channel;
	struct channel_config *configs; /* in order of version; the last one is in force */
	size_t config_count;
};

/* ---- checking ---- */
struct check_report {
	int64_t accounts, chains, events, segments, certifications;
	int64_t problems;
};
/* Callbacks of a check; all except `problem` may be NULL. */
struct check_listener {
	void (*problem)(void *context, const char *text);
	/* Called for every event whose content is in the content store. Returns OK, or ERR_CORRUPT
	 * after reporting the reason through `problem`. */
	int (*content)(void *context, const struct event *event);
	/* Called for every segment, in order of its chain, from 1. Returns as above. */
	int (*segment)(void *context, int64_t account, int64_t chain, int64_t number);
	/* Called for every archive timestamp, in order. Returns as above. */
	int (*archive_timestamp)(void *context, int64_t stamp);
	void *context;
};
/* Recomputes every chain, reference and sum, while serving. Each chain is checked up to the head
 * that it has when its check begins. Returns ERR_CORRUPT when there were problems. */
int store_check(struct store *store, const struct check_listener *listener,
                struct check_report *ret_report, struct error *error) MUST_CHECK;

#endif
