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
struct config_sources;

/* Starts everything but what is reached from outside. The signing process is forked first, so no
 * thread may exist. SIGINT, SIGTERM, SIGHUP and SIGCHLD are blocked from here on, for node_wait.
 * `create`: also prepares an empty store. *ret_keys_tried (NULL: nobody asks) is also set on
 * failure: whether it came to the keys. */
int node_open(const struct settings *settings, bool create, struct node **ret_node,
              bool *ret_keys_tried, struct error *error) MUST_CHECK;
/* Whether the store is no older than this node has seen it (service/history.h); to be asked before
 * anything is written. */
int node_check_history(struct node *node, struct error *error) MUST_CHECK;
/* For a store that went back: the operator confirms it, while no service runs here. */
struct history;
int node_accept_rollback(const struct settings *settings, struct slice reason,
                         struct history *ret_history, struct error *error) MUST_CHECK;
/* Goes through what node_open and node_listen need, without an end at the first fault, and tells
 * each: a setting, NULL where it is of none, and what is wrong with it (error_reason). Nothing is
 * made or changed, nothing across a network is asked, and a service that runs here meanwhile is not
 * disturbed; keys are tried in a process of its own, and their log is read, only where they are
 * asked for: each time logs in to a token. *ret_keys is then to be given to node_keys_free
 * (cli/node_parts.h). What is not prepared yet is a warning. Without threads, like node_open. */
struct node_keys;
typedef void node_refused(void *context, bool warning, const char *setting,
                          const struct error *error);
void node_try(const struct settings *settings, struct node_keys *ret_keys, node_refused *refused,
              void *context);
/* Whether a service runs with the data directory. */
bool node_is_running(const struct settings *settings);
/* Opens the administration socket and the listeners. */
int node_listen(struct node *node, struct error *error) MUST_CHECK;

struct service *node_service(struct node *node);
struct admin *node_admin(struct node *node);
uint16_t node_port(const struct node *node);
uint16_t node_monitor_port(const struct node *node); /* 0: none */

/* Writes the roots that verifiers have to trust to trust.pem in the data directory. */
int node_write_trust(struct node *node, struct error *error) MUST_CHECK;

/* Waits for SIGINT or SIGTERM: 0. SIGHUP reads the settings again from `sources`; NULL: it ends,
 * too. When the store can no longer be written safely or has gone back, or the signing process has
 * ended: 1, for the supervisor to start the program anew. Logs which. */
struct config;
int node_wait(struct node *node, const struct config_sources *sources, const struct config *config);
/* Drains and ends everything; the process is ended by force after 29 s. NULL-safe, also for a node
 * that never listened. */
void node_close(struct node *node);

#endif
