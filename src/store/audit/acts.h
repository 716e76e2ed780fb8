/* Acts of administration: who changed what, when, from where and why.
 *
 * An act is one row, written in the transaction of the change that it tells of: neither is without
 * the other. Where an act takes several transactions its row is in the first. Rows are only ever
 * inserted. Those on one account are numbered from 1 without gaps, those on none (account 0) too,
 * and each is bound to the one before:
 *
 *   chain_hash = SHA-256(chain_hash of the one before, 32 zero bytes at first ‖ SHA-256(document))
 *
 * What is urgent is a second chain of the account, so that it needs no number behind an act whose
 * commit waits for a standby; its rows have the numbers -1, -2, … Along a chain `at` increases.
 *
 * What the operator does to a user is an act on each of the user's accounts, with a row in each.
 *
 * The document is canonical JSON (RFC 8785) with the members
 *   account_id  null: on no account         act_id      "act_…"
 *   actor       "operator", "user"          uid, user   proven: of the socket's peer, or of the
 *                                                       process that did it without a service
 *   claimed     what the command said of who is behind that user (sudo); null: nothing
 *   via         "socket", "command"         node        the machine's name
 *               of a user of the console uid, user and claimed are null, via is "console", and he
 *               has user_id, email, address: from where, and
 *   signed_in_by   how his session began (store/people/people.h); null: it is from before that was
 *               kept; absent in documents of then, too
 *   operation   "key revoke"                arguments   as given; none of them is a secret. Of
 *                                                       content "sha-256:…", addresses masked
 *                                                       (base/url_mask.h), in before and after, too
 *   reason      or null                     at          by the store's clock
 *   before, after   objects by kind of thing, of what differs; null: nothing
 *   made        identifiers and numbers that came of it
 *   found       the same of what was there before, in place of making it; absent: nothing
 *   outcome     "unknown": it was asked for, and may have been done; absent otherwise
 *   number      within its chain           urgent      in the chain of the urgent ones; absent in
 *                                          documents of before there was one: false */
#ifndef STORE_AUDIT_ACTS_H
#define STORE_AUDIT_ACTS_H

#include "base/json.h"
#include "store/store.h"

#define ACT_MADE_MAX 4
#define ACT_DOCUMENT_MAX ((size_t)256 * 1024)

struct actor {
	int64_t uid;
	const char *user;    /* NULL: the uid has no name here */
	const char *claimed; /* NULL: nothing was said */
	const char *via;
	const char *node;
	const char *user_id;      /* of a user of the console; NULL: the operator */
	const char *email;        /* then his address, */
	const char *address;      /* and that of his browser, as text */
	const char *signed_in_by; /* how his session began; NULL: it is not known */
};

/* What a user must still be when his act is done: in a session that goes on, with that role in that
 * account, and come in by a passkey where the account asks for them. */
struct act_standing {
	const char *session_id, *account_id, *role;
	enum {
		PASSKEY_ASKED,
		PASSKEY_IF_ANY, /* only if he has one */
		PASSKEY_UNASKED
	} passkey;
};

/* The form of a page that an act is sent with. What was done with it once is not done again: that
 * is kept in the act's transaction, and whoever sends the same again is refused with ERR_CONFLICT
 * and `repeated`, before anything is changed. */
struct act_form {
	/* What the page gave its forms; the user, the operation and the arguments belong to it. */
	struct slice number;
	/* Of all of those. */
	struct sha256 digest;
	bool repeated;
	/* Then of the first one's act; empty: it is under way, or its outcome is not known. */
	char act_id[ID_SIZE];

	/* The store's own: taken before its doing. */
	bool claimed;
};

struct act_subjects;

enum act_outcome {
	ACT_DONE,
	ACT_FOUND,  /* what was to be made was there */
	ACT_UNKNOWN /* it was asked for, and may have been done */
};

/* An act under way. Belongs to one thread. */
struct act {
	const struct actor *by;
	/* Read in the act's transaction, before it changes anything, and again before it commits, or
	 * before what may be the user's own leaving; of an act of several, at the beginning of each.
	 * NULL: the operator's. */
	const struct act_standing *standing;
	struct act_form *form; /* NULL: it was sent with none */
	const char *operation;
	struct json *arguments; /* an object, or NULL; is put into canonical order */
	const char *reason;     /* NULL: none */
	struct arena *arena;
	/* Committed without waiting for a standby, and in a chain of its own. */
	bool urgent;
	/* Acts in the account's chain on a UTC day, of whomever; one more is refused before anything is
	 * changed, with ERR_FULL. 0: any number. Not of what is urgent. */
	int64_t most_of_day;
	/* Another act of the same transaction decides on which server the commit is judged. */
	bool beside;
	enum act_outcome outcome;

	bool recorded; /* its row is committed */
	char act_id[ID_SIZE];
	int64_t account;          /* 0: on no account */
	char account_id[ID_SIZE]; /* empty: on no account */
	int64_t number;

	/* The store's own. */
	struct act_subjects *before;
	int failed;        /* looking at what was before */
	int64_t *accounts; /* on each of which there is a row of its own; none: on the one it names */
	size_t account_count;
	bool settled; /* the standing is not read again */
	struct {
		const char *name;
		char id[ID_SIZE]; /* empty: a number */
		int64_t number;
	} made[ACT_MADE_MAX];
	size_t made_count;
};

/* The same store, whose next transaction that writes records the act: ERR_FORBIDDEN, ERR_PASSKEY
 * where the user has lost his standing. Belongs to one thread; is given back before `act` and the
 * store end. NULL: no memory. */
struct store *store_acting(struct store *store, struct act *act) MUST_CHECK;
void store_acting_end(struct store *acting); /* NULL-safe */
/* Records, in a transaction of its own, an act whose doing is outside of the store, or of another
 * transaction, of which came the thing of that identifier, "event_id" by name; NULL: nothing. */
int store_record_act(struct store *acting, enum act_outcome outcome, const char *name,
                     const char *id, struct error *error) MUST_CHECK;
/* For an act that is recorded behind its doing, before that: ERR_FORBIDDEN, ERR_PASSKEY, and of a
 * form that is sent again ERR_CONFLICT. What he was let do is then on record whatever becomes of
 * him meanwhile. */
int store_permit_act(struct store *acting, struct error *error) MUST_CHECK;
/* What was done before with forms that cannot be sent any more. */
int store_forget_forms(struct store *store, int64_t before_us, struct error *error) MUST_CHECK;

struct act_record {
	char act_id[ID_SIZE];
	int64_t account, chain, number; /* ACTS_CHAIN or URGENT_ACTS_CHAIN (store/events/segments.h) */
	struct slice document;
	struct sha256 chain_hash;
	char segment_id[ID_SIZE]; /* empty: not sealed yet, nor are the next four told */
	int64_t sealed_at_us;     /* as its authority says */
	const char *authority, *kind;
	int64_t round;
};
struct act_list {
	struct act_record *items;
	size_t count;
	bool more;
	bool partial; /* a server is away that may have some, too */
};
struct act_filter {
	struct slice account_id; /* empty: of all */
	bool installation;       /* only those on no account */
	struct slice operation;  /* empty: any */
	int64_t since_us;        /* TIME_NONE: none; inclusive */
	int64_t until_us;        /* TIME_NONE: none; exclusive */
	struct slice after;      /* an act_id: go on behind it, in the order; empty: from the start */
	enum list_order order;   /* by time, and within an account by number */
	int64_t limit;
};
/* A page of at most `limit` acts and about 4 MiB. */
int store_list_acts(struct store *store, const struct act_filter *filter, struct arena *arena,
                    struct act_list *ret, struct error *error) MUST_CHECK;

/* Lives in the arena. ERR_NOT_FOUND. */
int store_get_act(struct store *store, struct slice act_id, struct arena *arena,
                  struct act_record *ret, struct error *error) MUST_CHECK;

/* The rule of the chain. */
struct sha256 act_chain_hash(const struct sha256 *before, struct slice document);

#endif
