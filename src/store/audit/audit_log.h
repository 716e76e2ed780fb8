/* The audit log: which administrative operation was done by whom, when, from where and why.
 *
 * An audit record is one row. It is written in the transaction of the change that it describes, so
 * that neither exists without the other. An operation of several transactions is recorded in the
 * first one. Rows are only ever inserted. The records of an account are numbered from 1 without
 * gaps, and so are those without an account (account 0). Each record is chained to the previous
 * one:
 *
 *   chain_hash = SHA-256(previous chain_hash, 32 zero bytes for the first ‖ SHA-256(document))
 *
 * Urgent records form a second chain of the account, so that they do not wait for the number of an
 * ordinary record whose commit waits for a standby. Their rows have the numbers -1, -2, … Within a
 * chain `at` increases.
 *
 * An operator's operation on a user is recorded on each account of that user, one row for each.
 *
 * The document is canonical JSON (RFC 8785) with these members:
 *   account_id      null: no account
 *   act_id          "act_…"
 *   actor           "operator", "user", or "service" for what the service does automatically
 *   uid, user       authenticated: of the socket's peer, of the process of a command that ran
 *                   without the service, or of the sender of a signal; null for a user of the
 *                   console, and for a signal whose sender the kernel does not vouch for
 *   claimed         the user who ran the command through sudo, as stated by the command, or the
 *                   sender that a signal states; null: not stated, or a user of the console
 *   via             "socket", "command", "console", "signal" or "service"
 *   node            the machine's name
 *   user_id, email, address   user of the console: identifier, e-mail and client address
 *   signed_in_by    user of the console: how the session began (store/people/console_users.h);
 * null: not recorded for the session; absent in documents of older versions operation       such as
 * "key revoke" arguments       as given, without secrets. Content is stated as "sha-256:…". URLs
 * are masked (base/url_mask.h), also in `before` and `after` reason          or null at by the
 * store's clock before, after   changed values, in objects by kind of object; null: none made
 * identifiers and numbers that the operation created found           identifiers of an existing
 * object that replaced a creation; absent: none outcome         "unknown": the operation was
 * requested and may have been done; else absent number          within its chain urgent whether it
 * is in the urgent chain; absent in documents of older versions: false
 */
#ifndef STORE_AUDIT_AUDIT_LOG_H
#define STORE_AUDIT_AUDIT_LOG_H

#include "base/json.h"
#include "store/store.h"

#define AUDIT_CREATED_MAX 4
#define AUDIT_DOCUMENT_MAX ((size_t)256 * 1024)

struct actor {
	int64_t uid;         /* negative: unknown, recorded as null */
	const char *user;    /* NULL: the uid has no name here */
	const char *claimed; /* stated by the command (sudo); NULL: nothing */
	const char *via;
	const char *node;
	const char *user_id;      /* of a user of the console; NULL: the operator */
	const char *email;        /* of that user */
	const char *address;      /* client address of the browser, as text */
	const char *signed_in_by; /* how the session began; NULL: unknown */
	bool is_service;          /* neither a user nor the operator */
};

/* What must hold when a user's operation is committed: the session is open, the user has the role
 * in the account, and has signed in with a passkey where the account requires one. */
struct audit_authorization {
	const char *session_id, *account_id, *role;
	enum {
		PASSKEY_REQUIRED,
		PASSKEY_IF_ANY, /* required only if the user has a passkey */
		PASSKEY_NOT_REQUIRED
	} passkey;
};

/* Deduplication of a submitted page form. A form is accepted once; that is recorded in the
 * transaction of the operation. A repeated submission returns ERR_CONFLICT and sets `repeated`,
 * before anything is changed. */
struct submitted_form {
	/* Generated for the form when the page was made. */
	struct slice number;
	/* Over the number, the user, the operation and the arguments. */
	struct sha256 digest;
	bool repeated;
	/* Set with `repeated`: the audit record of the first submission; empty: that operation is in
	 * progress, or its outcome is unknown. */
	char act_id[ID_SIZE];

	/* Private to the store: recorded before the operation was done. */
	bool claimed;
};

struct audit_values;

enum audit_outcome {
	AUDIT_DONE,
	AUDIT_FOUND,  /* the object to be created already existed */
	AUDIT_UNKNOWN /* the operation was requested and may have been done */
};

/* An operation in progress that is to be recorded. Belongs to one thread. */
struct act {
	const struct actor *by;
	/* Checked in the transaction before any change, and again before the commit or before a change
	 * that may remove the user's own authorization. In an operation of several transactions it is
	 * checked at the beginning of each. NULL: an operation of the operator. */
	const struct audit_authorization *authorization;
	struct submitted_form *form; /* NULL: not sent with a form */
	const char *operation;
	struct json *arguments; /* an object, or NULL; is converted to canonical form */
	const char *reason;     /* NULL: none */
	struct arena *arena;
	/* Committed without waiting for a standby, and recorded in the urgent chain. */
	bool urgent;
	/* Maximum number of records in the account's chain in a UTC day, by any user. The next
	 * operation is refused with ERR_FULL before any change. 0: no limit. Does not apply to urgent
	 * operations. */
	int64_t most_of_day;
	/* A second record of the same transaction: the other one decides on which server the commit is
	 * confirmed. */
	bool is_secondary;
	enum audit_outcome outcome;

	bool recorded; /* its row is committed */
	char act_id[ID_SIZE];
	int64_t account;          /* 0: none */
	char account_id[ID_SIZE]; /* empty: none */
	int64_t number;

	/* Private to the store. */
	struct audit_values *before;
	int failed;        /* error while reading the values before the change */
	int64_t *accounts; /* accounts that each get a row; NULL: only the account that is named */
	size_t account_count;
	bool settled; /* the authorization is not checked again */
	struct {
		const char *name;
		char id[ID_SIZE]; /* empty: it is a number */
		int64_t number;
	} made[AUDIT_CREATED_MAX];
	size_t made_count;
};

/* Returns a handle of the same store whose next write transaction records `act`. That transaction
 * fails with ERR_FORBIDDEN or ERR_PASSKEY when the user is no longer authorized. Belongs to one
 * thread. The caller ends it before `act` and the store end. Returns NULL when memory is
 * exhausted. */
struct store *store_audited(struct store *store, struct act *act) MUST_CHECK;
void store_audited_end(struct store *acting); /* NULL-safe */
/* Records, in a transaction of its own, an operation that was done outside the store or in another
 * transaction. `id` is the identifier of the created object and `name` the name of the member, such
 * as "event_id"; NULL: none. */
int store_write_audit_record(struct store *acting, enum audit_outcome outcome, const char *name,
                             const char *id, struct error *error) MUST_CHECK;
/* Checks, before it is done, an operation that is recorded afterwards. Returns ERR_FORBIDDEN,
 * ERR_PASSKEY, or ERR_CONFLICT for a repeated form. The later record is then written even if the
 * user loses the authorization in the meantime. */
int store_authorize_operation(struct store *acting, struct error *error) MUST_CHECK;
/* Removes the deduplication records of forms that were submitted before before_us and have
 * expired. */
int store_remove_old_forms(struct store *store, int64_t before_us, struct error *error) MUST_CHECK;

struct audit_record {
	char act_id[ID_SIZE];
	int64_t account, chain,
		number; /* AUDIT_CHAIN or URGENT_AUDIT_CHAIN (store/events/segments.h) */
	struct slice document;
	struct sha256 chain_hash;
	char segment_id[ID_SIZE]; /* empty: not sealed yet, and the next four are not set */
	int64_t sealed_at_us;     /* according to the timestamp authority */
	const char *authority, *kind;
	int64_t round;
};
struct audit_record_list {
	struct audit_record *items;
	size_t count;
	bool more;
	bool partial; /* incomplete: a shard server is unavailable */
};
struct audit_filter {
	struct slice account_id; /* empty: all accounts */
	bool installation;       /* only records without an account */
	struct slice operation;  /* empty: any */
	int64_t since_us;        /* TIME_NONE: none; inclusive */
	int64_t until_us;        /* TIME_NONE: none; exclusive */
	struct slice
		after; /* an act_id: starts after this record, in list order; empty: at the start */
	enum list_order order; /* by time, and within one account by number */
	int64_t limit;
};
/* Lists at most `limit` records and about 4 MiB. */
int store_list_audit_records(struct store *store, const struct audit_filter *filter,
                             struct arena *arena, struct audit_record_list *ret,
                             struct error *error) MUST_CHECK;

/* Reads one record into the arena. Returns ERR_NOT_FOUND when it does not exist. */
int store_get_audit_record(struct store *store, struct slice act_id, struct arena *arena,
                           struct audit_record *ret, struct error *error) MUST_CHECK;

/* Computes the chain hash of a record from the previous chain hash. */
struct sha256 audit_chain_hash(const struct sha256 *before, struct slice document);

#endif
