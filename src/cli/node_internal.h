/* Shared by the files of a running node. */
#ifndef CLI_NODE_INTERNAL_H
#define CLI_NODE_INTERNAL_H

#include <signal.h>

#include "admin/admin_socket.h"
#include "admin/reload_audit.h"
#include "cli/config.h"
#include "cli/node.h"
#include "http/server.h"
#include "jobs/jobs.h"
#include "report/renderer.h"
#include "service/service.h"

struct receipt_signer;
struct reloaded;
struct supervision;

struct node {
	const struct settings *settings;
	sigset_t signals;
	int lock_file;
	struct signer *signer;
	struct receipt_signer *receipt_signer; /* NULL: receipts are not signed */
	struct authorities *authorities;       /* created by the start, until SIGHUP replaces them */
	struct revocation_client *revocation;
	struct renderer renderer;
	struct service service;
	bool service_open;
	bool stop_requested; /* by a signal */
	struct jobs *jobs;
	struct admin admin;
	struct admin_server *admin_server;
	struct http_server *http;
	struct supervision *supervision;
	struct reload_audit *reload_audit;
	const struct config *config; /* loaded by the start */
	struct reloaded *in_force;   /* created by the last SIGHUP; NULL: none yet */
	struct reloaded *former;     /* replaced ones, newest first, while a thread may use them */
};

/* Reloads the settings and applies those that can change while serving: all of them, or none on an
 * error. Logs the result and queues its audit record, with the sender of the signal. Runs in the
 * main thread and blocks on local files only. */
void node_reload(struct node *node, const struct config_sources *sources, const siginfo_t *signal);
/* Frees replaced settings that no thread uses any more. To be called periodically. */
void node_free_replaced(struct node *node);
void reloaded_settings_free(struct reloaded *reloaded); /* with all older ones; NULL-safe */

#endif
