/* A running node: signing process, timestamp authorities, store, content, jobs, administration and
 * HTTP, started and ended in order. Belongs to the main thread. */
#ifndef CLI_NODE_H
#define CLI_NODE_H

#include "base/buf.h"
#include "base/error.h"
#include "service/settings.h"

struct node;
struct service;
struct admin;

/* Starts everything but what is reached from outside. The signing process is forked first, so no
 * thread may exist. SIGINT, SIGTERM and SIGCHLD are blocked from here on, for node_wait. `create`:
 * also prepares an empty store. */
int node_open(const struct settings *settings, bool create, struct node **ret_node,
              struct error *error) MUST_CHECK;
/* Whether the store is no older than this node has seen it (service/history.h); to be asked before
 * anything is written. */
int node_check_history(struct node *node, struct error *error) MUST_CHECK;
/* For a store that went back: the operator confirms it, while no service runs here. */
struct history;
int node_accept_rollback(const struct settings *settings, struct slice reason,
                         struct history *ret_history, struct error *error) MUST_CHECK;
/* Whether a node would start with the keys that the settings name, tried in a process of its own;
 * ERR_REFUSED with the reason. Without threads, like node_open. */
int node_try_signer(const struct settings *settings, struct error *error) MUST_CHECK;
/* Opens the administration socket and the listeners. */
int node_listen(struct node *node, struct error *error) MUST_CHECK;

struct service *node_service(struct node *node);
struct admin *node_admin(struct node *node);
uint16_t node_port(const struct node *node);
uint16_t node_monitor_port(const struct node *node); /* 0: none */

/* Writes the roots that verifiers have to trust to trust.pem in the data directory. */
int node_write_trust(struct node *node, struct error *error) MUST_CHECK;

/* Whether the certificates of the signing key go up to a root. */
bool node_knows_root(const struct node *node);

/* Waits for SIGINT or SIGTERM: 0. When the store can no longer be written safely or has gone back,
 * or the signing process has ended: 1, for the supervisor to start the program anew. Logs which. */
int node_wait(struct node *node);
/* Drains and ends everything; the process is ended by force after 29 s. NULL-safe, also for a node
 * that never listened. */
void node_close(struct node *node);

#endif
