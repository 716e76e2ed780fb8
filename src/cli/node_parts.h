/* The parts of a start that serving (node.c) and trying (node_try.c) have in common. */
#ifndef CLI_NODE_PARTS_H
#define CLI_NODE_PARTS_H

#include "cli/node.h"
#include "seal/authority.h"
#include "seal/revocation_client.h"
#include "seal/signer.h"
#include "service/settings.h"
#include "store/store.h"

/* What only needs a look, before anything is made: directories and addresses. Each calls `refused`
 * with what it finds, and with what it goes on; nothing is made, taken or written. */
struct node_look {
	const struct settings *settings;
	bool create;  /* for init: an absent directory is made, nothing listens */
	bool absent;  /* that the directory is not there was told */
	bool running; /* a service runs with this directory: what is in use is its own */
	node_refused *refused;
	void *context;
};
void node_look(const struct node_look *look);

/* Where an embedded store lies; NULL: it is on a server. */
const char *node_embedded_store(const struct settings *settings);
/* Whether that is there and this user's: a store that is opened has files of whoever did. */
bool node_may_open_store(const char *path);

/* `signer` is for "embedded:" and outlives what is made; NULL: only to try. */
int node_create_authorities(const struct settings *settings, struct signer *signer,
                            struct authorities **ret, struct error *error) MUST_CHECK;
/* One of them alone, to be tried; *ret stays NULL for an embedded one. */
size_t node_count_authorities(const struct settings *settings);
int node_create_authority(const struct settings *settings, size_t index, struct authorities **ret,
                          struct error *error) MUST_CHECK;
int node_create_revocation_client(const struct settings *settings, struct signer *signer,
                                  struct revocation_client **ret, struct error *error) MUST_CHECK;
/* Without threads. ERR_REFUSED with the reason. */
int node_start_signer(const struct settings *settings, struct signer **ret, struct error *error)
	MUST_CHECK;
/* What would sign, told by its certificates. All zeros: not tried, or no good. */
struct node_keys {
	bool known, development;
	struct signer *tried;                       /* what the keys are borrowed from; NULL */
	const struct signer_key *keys[SIGNER_KEYS]; /* NULL: there is none */
	struct signer_key made; /* in development: the one there; zeros: it will be made */
	struct buf certificate; /* its own */
};
/* Whether it would start, in a process of its own. *ret is given to node_keys_free on failure, too.
 */
int node_try_signer(const struct settings *settings, struct node_keys *ret, struct error *error)
	MUST_CHECK;
void node_keys_free(struct node_keys *keys);
/* Whether a start would take this store: that it did not go back, and that these keys are those
 * that it names. Nothing is written; `refused` is told with the setting. */
void node_try_opened_store(const struct settings *settings, struct store *store,
                           const struct node_keys *keys, node_refused *refused, void *context);

#endif
