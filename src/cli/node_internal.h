/* What the files of a running node share. */
#ifndef CLI_NODE_INTERNAL_H
#define CLI_NODE_INTERNAL_H

#include <signal.h>

#include "admin/admin_socket.h"
#include "cli/config.h"
#include "cli/node.h"
#include "http/server.h"
#include "jobs/jobs.h"
#include "report/renderer.h"
#include "service/service.h"

struct reloaded;
struct supervision;

struct node {
	const struct settings *settings;
	sigset_t signals;
	int lock_file;
	struct signer *signer;
	struct authorities *authorities; /* of the start, until SIGHUP replaces them */
	struct revocation_client *revocation;
	struct renderer renderer;
	struct service service;
	bool service_open;
	struct jobs *jobs;
	struct admin admin;
	struct admin_server *admin_server;
	struct http_server *http;
	struct supervision *supervision;
	const struct config *config; /* of the start */
	struct reloaded *in_force;   /* what SIGHUP made last; NULL: nothing yet */
	struct reloaded *former;     /* and before, the last first, as long as somebody may hold it */
};

/* Reads the settings again and takes over what can be changed while serving, all of it or nothing.
 * Logs what became of it. In the main thread, and waits for nothing but local files. */
void node_reload(struct node *node, const struct config_sources *sources);
/* Frees of what reloads replaced that which nobody holds any more; to be called often. */
void node_forget_former(struct node *node);
void reloaded_free(struct reloaded *reloaded); /* and all behind it; NULL-safe */

#endif
