/* The components of a node that both its start (node.c) and the check of a start use. */
#ifndef CLI_NODE_PARTS_H
#define CLI_NODE_PARTS_H

#include "cli/node.h"
#include "seal/authority.h"
#include "seal/revocation_client.h"
#include "seal/signer.h"
#include "service/settings.h"
#include "store/store.h"

/* Checks of directories and addresses that a start makes before it creates anything. Every finding
 * is passed to `refused`. Nothing is created, taken or written. */
struct node_precheck {
	const struct settings *settings;
	bool create;  /* for init: a missing directory is created; no listeners */
	bool absent;  /* the missing directory was already reported */
	bool running; /* a service runs with this directory and holds its addresses */
	node_problem_listener *refused;
	void *context;
};
/* Returns whether the data directory is usable, or can be created if it is absent. */
bool node_precheck(const struct node_precheck *look);

/* Returns whether the file exists and belongs to this user. Opening a store creates files of the
 * opening user. */
bool node_owns_store(const char *path);

/* `signer` serves "embedded:" authorities and outlives the result; NULL: only to check the
 * settings. */
int node_create_authorities(const struct settings *settings, struct signer *signer,
                            struct authorities **ret, struct error *error) MUST_CHECK;
int node_create_revocation_client(const struct settings *settings, struct signer *signer,
                                  struct revocation_client **ret, struct error *error) MUST_CHECK;
/* To be called without other threads. ERR_REFUSED with the reason. */
int node_start_signer(const struct settings *settings, struct signer **ret, struct error *error)
	MUST_CHECK;
/* The same for the process that signs receipts, whose key is in the directory of the signer, which
 * must have been started. *ret is NULL without receipt.signed. */
struct receipt_signer;
int node_start_receipt_signer(const struct settings *settings, struct receipt_signer **ret,
                              struct error *error) MUST_CHECK;
/* The keys that a start would sign with, described by their certificates. All zeros: not checked,
 * or unusable. */
struct node_keys {
	bool known, development;
	struct signer *tried;                       /* owner of the keys; NULL */
	const struct signer_key *keys[SIGNER_KEYS]; /* NULL: none */
	struct signer_key made; /* in development: the existing key; zeros: to be created */
	struct buf certificate; /* owned by `made` */
};
/* Opens the signing keys in a child process, to check whether a start could. The caller frees *ret
 * with node_keys_free, after a failure too. */
int node_check_signer(const struct settings *settings, struct node_keys *ret, struct error *error)
	MUST_CHECK;
void node_keys_free(struct node_keys *keys);
/* Checks whether a start would accept this store: it was not rolled back and names these keys.
 * Warns if a rollback ended the log of segments. Writes nothing; passes errors and their settings
 * to `refused`. */
void node_check_opened_store(const struct settings *settings, struct store *store,
                             const struct node_keys *keys, node_problem_listener *refused,
                             void *context);

/* Checks what `config check` examines by connections otherwise: reports files of roots without
 * certificates, and warns of missing standbys, an unsynchronized clock and missing programs. */
void node_check_surroundings(const struct settings *settings, node_problem_listener *refused,
                             void *context);

#endif
