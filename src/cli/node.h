/* A running node: signing process, timestamp authorities, store, content, jobs, administration and
 * HTTP, started and stopped in order. Belongs to the main thread. */
#ifndef CLI_NODE_H
#define CLI_NODE_H

#include "base/buf.h"
#include "base/error.h"
#include "service/settings.h"

struct node;
struct service;
struct admin;
struct config_sources;

/* Starts every component except the listeners. Forks the signing process first, so that no other
 * thread may exist. Blocks SIGINT, SIGTERM, SIGHUP and SIGCHLD for node_wait. `create`: also
 * prepares an empty store. Sets *ret_keys_tried (may be NULL), on failure too: the signing keys
 * were opened. */
int node_open(const struct settings *settings, bool create, struct node **ret_node,
              bool *ret_keys_tried, struct error *error) MUST_CHECK;
/* Checks that the store is not older than this node has seen it (service/history.h). To be called
 * before anything is written. */
int node_check_history(struct node *node, struct error *error) MUST_CHECK;
/* Records an operator's confirmation that a store was rolled back, while no service runs here. */
struct history;
int node_accept_rollback(const struct settings *settings, struct slice reason,
                         struct history *ret_history, struct error *error) MUST_CHECK;
/* Checks what node_open and node_listen need, and reports every error to `refused`: the setting
 * (NULL: concerns none) and the error (error_reason). A part that is not prepared yet is a warning.
 *
 * Changes nothing, makes no network connection and does not disturb a running service. Opens the
 * signing keys in a child process and reads their log only if ret_keys is not NULL, because each
 * attempt logs in to a token. The caller frees *ret_keys with node_keys_free (cli/node_parts.h). To
 * be called without other threads, like node_open. */
struct node_keys;
typedef void node_problem_listener(void *context, bool warning, const char *setting,
                                   const struct error *error);
void node_check_start(const struct settings *settings, struct node_keys *ret_keys,
                      node_problem_listener *refused, void *context);
/* Returns whether a service runs with the data directory. */
bool node_is_running(const struct settings *settings);
/* Starts the jobs and opens the administration socket and the listeners. */
int node_listen(struct node *node, struct error *error) MUST_CHECK;

struct service *node_service(struct node *node);
struct admin *node_admin(struct node *node);
uint16_t node_port(const struct node *node);
uint16_t node_monitor_port(const struct node *node); /* 0: none */

/* Writes the roots that verifiers must trust to trust.pem in the data directory. */
int node_write_trust(struct node *node, struct error *error) MUST_CHECK;

/* Blocks until SIGINT or SIGTERM and returns 0. SIGHUP reloads the settings from `sources`; with
 * `sources` NULL it ends the node too. Returns 1 after logging the reason when the signing process
 * has ended, and exits with 1 when the store cannot be written safely or was rolled back; the
 * supervisor then restarts the process. */
struct config;
int node_wait(struct node *node, const struct config_sources *sources, const struct config *config);
/* Drains connections and stops every component; after 29 s the process ends by force. Before, a
 * node that a signal stops serves for http.drain_delay. NULL-safe; also for a node that never
 * listened. */
void node_close(struct node *node);

#endif
