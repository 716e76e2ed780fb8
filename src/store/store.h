/* The store: accounts, channels, keys, chains of events, the ledger of credits, limits, notices,
 * segments and certifications, over one of the engines of db.h.
 *
 * Every function is thread safe. Strings and slices given back live in the caller's arena. What is
 * not found is ERR_NOT_FOUND. Engine failures: ERR_UNAVAILABLE (busy or lost, repeat),
 * ERR_NO_SPACE, ERR_IO, ERR_UNKNOWN_OUTCOME (commit), ERR_CORRUPT; store_is_poisoned says that the
 * process must end.
 *
 * Here: opening, keys as the guard sees them, registration, reading, checking. Beside it:
 *   accounts/        accounts, channels, keys, credits, limits as the administration manages them
 *   events/          segments and the rounds that seal them
 *   evidence/        archive timestamps, which keep what was issued and sealed provable
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

/* `create` prepares an empty one; an existing schema must be current (store_migrate). */
int store_open(const struct db_options *options, struct store **ret_store, struct error *error)
	MUST_CHECK;
void store_close(struct store *store);
/* Applies the steps of the schema that are missing, or with `dry_run` only tells; their names into
 * out (one per line), and into the arguments of `act` (store/audit/acts.h), which is recorded with
 * them. `act`, `out` and `progress`, which is told how far a long step is, may be NULL. */
struct act;
int store_migrate(const struct db_options *options, bool dry_run, struct act *act, struct buf *out,
                  const struct schema_progress *progress, struct error *error) MUST_CHECK;
/* Has the server distribute the tables that are not yet, or with `dry_run` only tells; their names
 * into out (one per line) and into the arguments of `act`. ERR_REFUSED: it distributes none. One
 * that was broken off goes on where it was. */
int store_distribute(const struct db_options *options, bool dry_run, struct act *act,
                     struct buf *out, const struct schema_progress *progress, struct error *error)
	MUST_CHECK;
/* The last step of the schema that this program has, which an open store has, too. */
const char *store_schema_name(void);
/* Whether writes can be acknowledged; on ERR_UNAVAILABLE the reason is in error->cause. */
int store_ready(struct store *store, struct error *error) MUST_CHECK;
/* One that is there; false in *ret_found: there is none. Nothing is written. */
int store_find_secret(struct store *store, const char *name, bool *ret_found, struct sha256 *ret,
                      struct error *error) MUST_CHECK;
/* A secret of the installation, made at its first use and the same on every node. */
int store_get_secret(struct store *store, const char *name, struct sha256 *ret, struct error *error)
	MUST_CHECK;
/* A commit that changes nothing: behind it, all that was visible before is as safe as what this
 * store acknowledges. */
int store_confirm(struct store *store, struct error *error) MUST_CHECK;
/* The same for what was visible of that account (0: of none), wherever its rows are. */
int store_confirm_account(struct store *store, int64_t account, struct error *error) MUST_CHECK;
/* The installation's identifier, 64 hex digits: it comes with the database, so that a copy that was
 * brought back has it too. Made at its first use and the same on every node. */
#define INSTALLATION_SIZE 65
int store_get_installation(struct store *store, char ret[INSTALLATION_SIZE], struct error *error)
	MUST_CHECK;
/* Whether all that was written before can be seen, as db_await_writes says. */
int store_await_writes(struct store *store, struct error *error) MUST_CHECK;
/* Whether all that has accounts' rows answers: what goes through them all does not begin before. */
bool store_is_whole(struct store *store);
/* "durable" (one machine) or "replicated": what a receipt of this store promises. */
const char *store_promise(struct store *store);
/* After an I/O error in a commit nothing may be acknowledged any more: true once that happened. */
bool store_is_poisoned(const struct store *store);
/* The engine's housekeeping between batches (db_maintain). */
int store_maintain(struct store *store, struct error *error) MUST_CHECK;
/* A consistent copy into the file `path`, made while serving (db_backup), and what it is called. */
int store_backup(struct store *store, const char *path, struct error *error) MUST_CHECK;
const char *store_backup_name(const struct store *store);
/* The clock of leases and due times, which all nodes share (db_now_us). */
int64_t store_now_us(const struct store *store);
/* Whether other processes write to it too; then, the latest time that their common clock may show
 * now (db_latest_now_us). */
bool store_is_shared(const struct store *store);
int64_t store_latest_now_us(const struct store *store);
/* How many batches it registers at a time, each given by a sequencer of its own: those of different
 * accounts do not wait for each other. */
unsigned store_sequencer_count(struct store *store);

/* ---- keys, as the guard sees them ---- */
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
	int64_t expires_at_us; /* 0: not by itself */
	bool account_suspended;
	bool channel_suspended;
	bool account_disabled;
	int64_t rate;         /* the account's own live rate per second of a key, 0: the general one */
	int64_t account_rate; /* the same of all its live keys together */
};
/* By the SHA-256 of the whole key text; ERR_NOT_FOUND. */
int store_find_key(struct store *store, const struct sha256 *key_hash, struct key_identity *ret,
                   struct error *error) MUST_CHECK;

/* ---- registration ---- */
struct registration {
	/* Given. */
	int64_t account;
	int64_t channel;
	int64_t chain;
	int64_t key;
	struct declaration declaration; /* its modality is checked against the channel again */
	struct slice content;       /* canonical JSON that travels inline (up to 16 KiB), or empty */
	const char *content_object; /* name in the content store, or NULL */
	const char *file_name;      /* files, or NULL */
	int64_t content_bytes;      /* -1: hash-only */

	/* Outcome. */
	int result; /* OK or the ERR_* of the interface */
	bool replayed;
	struct error error;
	char original_id[ID_SIZE]; /* ERR_CONFLICT: of the event that holds client_ref */
	struct event *event;       /* in `arena`, when result is OK */
	struct arena *arena;       /* of the request; the store allocates the outcome there */
};
struct registration_batch {
	struct registration **items;
	size_t count;
	struct ledger_clock clock; /* no item was received later */
	int64_t stored_max;        /* bytes of an account without a bound of its own; 0: any number */
	/* Where others write too, an account may have to be waited for. So once its accounts are the
	 * batch's own, it may grow: appends to `items` what has come for these accounts (sorted) by
	 * now, and brings count and clock up to date. NULL: it stays as it is. */
	void (*grow)(struct registration_batch *batch, const int64_t *accounts, size_t account_count);
	void *context; /* of grow */
};
/* Decides and writes a batch in one durable transaction. Items of several accounts may come
 * together. Not 0: nothing of the batch may be acknowledged. Only one thread at a time for each
 * `sequencer`, counted from 0; the events of an account should come through one of them. */
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
	/* Not part of the public record. */
	struct slice content; /* inline content, only where asked for */
	const char *content_object;
	const char *file_name;
	int64_t content_bytes; /* -1: hash-only */
};

/* The sealed facts of an event; what they point to is the event's. */
struct event_facts event_facts_of(const struct event *event, const struct sha256 *config_hash,
                                  const struct sha256 *previous_chain_hash);

enum list_order { ORDER_ASCENDING, ORDER_DESCENDING };

/* A page of a list. */
struct list_page {
	enum list_order order;
	int64_t past; /* only what is behind this number, in the order; 0: the first page */
	int64_t limit;
};

struct event_filter {
	int64_t from_us;  /* TIME_NONE: none; inclusive */
	int64_t to_us;    /* exclusive */
	int64_t seq_from; /* 0: none */
	int64_t seq_to;
	int status;              /* -1: any, else enum event_status */
	int64_t past;            /* the cursor: only those behind this sequence, in the order; 0: all */
	enum list_order order;   /* of sequences */
	struct slice client_ref; /* NULL: any; the one event that holds it, found by an index */
};
/* Calls `each` in the filter's order, at most `limit` times (0: no end); memory does not grow. The
 * event's slices live until the next call. A non-zero answer of `each` ends it and is given
 * back. */
int store_list_events(struct store *store, int64_t account, int64_t chain,
                      const struct event_filter *filter, int64_t limit, bool with_content,
                      int (*each)(void *context, const struct event *event), void *context,
                      struct error *error) MUST_CHECK;
/* With inline content and everything else. */
int store_get_event(struct store *store, int64_t account, int64_t chain, int64_t sequence,
                    struct arena *arena, struct event *ret, struct error *error) MUST_CHECK;

struct chain_head {
	int64_t created_at_us;
	struct sha256 genesis_hash;
	int64_t last_sequence;
	int64_t last_received_at_us;
	struct sha256 last_chain_hash;
	int64_t sealed_sequence; /* all up to it are in sealed segments; staged ones are not */
};
int store_get_chain(struct store *store, int64_t account, int64_t chain, struct chain_head *ret,
                    struct error *error) MUST_CHECK;
/* chain_hash of event `sequence`, the genesis hash for 0. */
int store_get_chain_hash(struct store *store, int64_t account, int64_t chain, int64_t sequence,
                         struct sha256 *ret, struct error *error) MUST_CHECK;
/* First and last sequence received in [from, to); last < first: none. */
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
	struct channel_config *configs; /* in order of version; the last is in force */
	size_t config_count;
};
int store_get_channel(struct store *store, int64_t account, int64_t channel, struct arena *arena,
                      struct channel *ret, struct error *error) MUST_CHECK;

/* ---- checking ---- */
struct check_report {
	int64_t accounts, chains, events, segments, certifications;
	int64_t problems;
};
/* What a check tells while it runs; all but `problem` may be NULL. */
struct check_listener {
	void (*problem)(void *context, const char *text);
	/* Asked for every event whose content lies in the content store: OK, or ERR_CORRUPT after
	 * having said why through `problem`. */
	int (*content)(void *context, const struct event *event);
	/* Asked for every segment, in order of its chain, from 1: likewise. */
	int (*segment)(void *context, int64_t account, int64_t chain, int64_t number);
	/* Asked for every archive timestamp, in order: likewise. */
	int (*archive_timestamp)(void *context, int64_t stamp);
	void *context;
};
/* Recomputes every chain, reference and sum, while serving: each chain up to the head that it had
 * when its turn came. ERR_CORRUPT when there were problems. */
int store_check(struct store *store, const struct check_listener *listener,
                struct check_report *ret_report, struct error *error) MUST_CHECK;

#endif
