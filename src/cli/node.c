#include "cli/node.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "admin/admin_socket.h"
#include "base/clock.h"
#include "base/durable.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/node_internal.h"
#include "cli/node_parts.h"
#include "cli/supervision.h"
#include "evidence/signers.h"
#include "http/server.h"
#include "issue/check_file.h"
#include "issue/links.h"
#include "jobs/jobs.h"
#include "report/renderer.h"
#include "seal/authority.h"
#include "seal/receipt_signer.h"
#include "seal/revocation_client.h"
#include "seal/signer.h"
#include "seal/trust.h"
#include "service/clock_start.h"
#include "service/history.h"
#include "service/service.h"

#define LOCK_ATTEMPTS 40
#define LOCK_PAUSE_NS (50 * 1000 * 1000)
#define DRAIN_US (20 * US_PER_SECOND)
#define FORCED_EXIT_S 29
#define POLL_INTERVAL_NS 200000000
#define ANNOUNCE_INTERVAL_NS 20000000
/* How long to wait for the first comparison of the clock before the node reports that it serves.
 * Usually the clock is compared by then, and no request is refused. */
#define CLOCK_WAIT_US (2 * US_PER_SECOND)

/* ---- starting ---- */

static void prepare_process(struct node *node)
{
	sigemptyset(&node->signals);
	sigaddset(&node->signals, SIGINT);
	sigaddset(&node->signals, SIGTERM);
	sigaddset(&node->signals, SIGHUP);
	sigaddset(&node->signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &node->signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	file_allow_many();
}

/* Locks the data directory, which belongs to one service; a store may be shared by several. A child
 * that a killed service had just forked holds the lock until it ends. */
static int lock_directory(struct node *node, struct error *error)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/node.lock", node->settings->service_data_dir);
	int result = file_lock(path, &node->lock_file, error);
	for (int i = 0; i < LOCK_ATTEMPTS && result == ERR_UNAVAILABLE; i++) {
		nanosleep(&(struct timespec){.tv_nsec = LOCK_PAUSE_NS}, NULL);
		result = file_lock(path, &node->lock_file, error);
	}
	if (result == ERR_UNAVAILABLE)
		return error_set(error, result, MSG_DATA_LOCKED, node->settings->service_data_dir, NULL);
	return result;
}

static void store_first_error(void *context, bool warning, const char *setting,
                              const struct error *error)
{
	struct error *first = context;
	(void)setting;
	if (!warning && !first->code)
		*first = *error;
}

/* Runs the same checks as `config check`; returns the first error. */
static int check_environment(const struct settings *settings, bool create, struct error *error)
{
	struct error first = {0};
	struct node_precheck look = {
		.settings = settings, .create = create, .refused = store_first_error, .context = &first};
	(void)node_precheck(&look);
	if (first.code && error)
		*error = first;
	return first.code;
}

static int start_signers(struct node *node, struct error *error)
{
	int result = node_start_signer(node->settings, &node->signer, error);
	if (!result)
		result = node_start_receipt_signer(node->settings, &node->receipt_signer, error);
	log_start(); /* after the forks: the children have no such threads */
	return result;
}

static void equip(struct node *node)
{
	struct service *service = &node->service;
	service->signer = node->signer;
	service->renderer = &node->renderer;
	service->authorities = node->authorities;
	service->revocation = node->revocation;
	node->admin = (struct admin){.settings = node->settings,
	                             .store = service->store,
	                             .content = service->content,
	                             .service = service};
}

int node_open(const struct settings *settings, bool create, struct node **ret_node,
              bool *ret_keys_tried, struct error *error)
{
	struct node *node = calloc(1, sizeof *node);
	if (ret_keys_tried)
		*ret_keys_tried = false;
	if (!node)
		return ERR_NO_MEMORY;
	node->settings = settings;
	node->lock_file = -1;
	node->renderer.program = -1;
	prepare_process(node);
	int result = check_environment(settings, create, error);
	if (!result)
		result = durable_make_directory(settings->service_data_dir, error);
	if (!result)
		result = lock_directory(node, error);
	if (!result) {
		if (ret_keys_tried)
			*ret_keys_tried = true;
		result = start_signers(node, error);
	}
	if (!result)
		node->supervision = supervision_start();
	if (!result)
		result = renderer_find(&node->renderer, error);
	if (!result)
		result = node_create_authorities(settings, node->signer, &node->authorities, error);
	if (!result)
		result = node_create_revocation_client(settings, node->signer, &node->revocation, error);
	node->service.receipt_signer = node->receipt_signer;
	log_origin(settings, node->service.log_origin);
	if (!result)
		result = service_open(settings, create, &node->service, error);
	node->service_open = !result;
	if (!result)
		result = links_open(&node->service, error);
	if (!result) {
		equip(node);
		result = signers_join(&node->service, error);
	}
	if (result) {
		node_close(node);
		return result;
	}
	*ret_node = node;
	return OK;
}

int node_check_history(struct node *node, struct error *error)
{
	struct history history = {0}; /* filled if the store could be read */
	int result = history_check(node->service.store, node->signer, &history, error);
	if (!result && history.known.round == 0 && history.found.round > 0) {
		char round[24];
		snprintf(round, sizeof round, "%lld", (long long)history.found.round);
		log_warning("store_history_unknown", "round", round, "meaning",
		            "this node has not seen the store before: a rollback cannot be detected");
	}
	/* The node's mark is updated later: once there is disk space, or once a standby has the round
	 * and another round is sealed. */
	bool waits = *history.store_id && (result == ERR_UNKNOWN_OUTCOME || result == ERR_UNAVAILABLE);
	return result == ERR_NO_SPACE || waits ? OK : result;
}

/* Writes the store's record of the rollback and the audit log entry in one transaction. */
static int accept_rollback(struct node *node, struct store *store, struct slice reason,
                           struct history *ret, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, (size_t)1 << 20);
	struct actor actor;
	struct act act = {.by = &actor, .operation = "store accept-rollback", .arena = &arena};
	char origin[NOTE_NAME_MAX + 1];
	log_origin(node->settings, origin);
	int result = admin_actor(getuid(), "command", getenv("SUDO_USER"), &arena, &actor);
	act.reason = arena_copy(&arena, reason.data, reason.size);
	struct store *acting = store_audited(store, &act);
	if (!result && (!act.reason || !acting))
		result = ERR_NO_MEMORY;
	if (!result)
		result = history_accept(acting, node->signer, node->settings->service_data_dir, origin,
		                        reason, ret, error);
	store_audited_end(acting);
	return result;
}

int node_accept_rollback(const struct settings *settings, struct slice reason,
                         struct history *ret_history, struct error *error)
{
	struct node *node = calloc(1, sizeof *node);
	struct store *store = NULL;
	if (!node)
		return ERR_NO_MEMORY;
	node->settings = settings;
	node->lock_file = -1;
	node->renderer.program = -1;
	prepare_process(node);
	struct db_options options = settings_store(settings, false);
	int result = lock_directory(node, error);
	if (!result)
		result = node_start_signer(node->settings, &node->signer, error);
	if (!result)
		result = store_open(&options, &store, error);
	if (!result)
		result = accept_rollback(node, store, reason, ret_history, error);
	store_close(store);
	node_close(node);
	return result;
}

int node_listen(struct node *node, struct error *error)
{
	clock_start_begin(&node->service);
	int result = jobs_start(&node->service, &node->jobs, error);
	if (!result)
		result = admin_server_start(&node->admin, node->settings->service_admin_socket,
		                            &node->admin_server, error);
	if (!result)
		result = reload_audit_start(node->service.store, &node->reload_audit, error);
	if (!result)
		result = http_start(&node->service, &node->admin, &node->http, error);
	if (result)
		return result;
	clock_start_await(&node->service, CLOCK_WAIT_US);
	supervision_notify_ready(node->supervision, node->settings->service_listen);
	return OK;
}

struct service *node_service(struct node *node)
{
	return &node->service;
}

struct admin *node_admin(struct node *node)
{
	return &node->admin;
}

uint16_t node_port(const struct node *node)
{
	return http_port(node->http);
}

uint16_t node_monitor_port(const struct node *node)
{
	return http_monitor_port(node->http);
}

int node_write_trust(struct node *node, struct error *error)
{
	return service_write_trust(&node->service, error);
}

/* ---- running and ending ---- */

/* Returns whether a signing process has ended. Exits when the store cannot be written safely or
 * was rolled back. */
static bool has_failed(struct node *node)
{
	/* SIGCHLD may also be a backup's pg_dump. A new signing process cannot be forked, since threads
	 * exist. */
	if (signer_has_ended(node->signer)) {
		log_error("signer_ended", "consequence", "the process exits; the supervisor restarts it");
		return true;
	}
	if (node->receipt_signer && receipt_signer_has_ended(node->receipt_signer)) {
		log_error("receipt_signer_ended", "cause", "it failed, or did not answer for 30 seconds",
		          "consequence", "the process exits; the supervisor restarts it");
		return true;
	}
	if (atomic_load(&node->service.store_rolled_back)) {
		log_error("store_rollback_detected", "consequence",
		          "the process exits; the next start reports what to confirm");
		log_stop();
		_exit(1);
	}
	if (store_is_poisoned(node->service.store)) {
		log_error("store_failed", "cause", "a sync of the store failed: its content is unknown",
		          "consequence", "the process exits; the supervisor restarts it");
		log_stop();
		_exit(1);
	}
	return false;
}

int node_wait(struct node *node, const struct config_sources *sources, const struct config *config)
{
	node->config = config;
	struct timespec poll_interval = {.tv_nsec = POLL_INTERVAL_NS};
	for (;;) {
		siginfo_t received;
		int signal_number = sigtimedwait(&node->signals, &received, &poll_interval);
		supervision_keep_alive(node->supervision, node->http);
		node_free_replaced(node);
		if (signal_number == SIGHUP && sources)
			node_reload(node, sources, &received);
		else if (signal_number == SIGINT || signal_number == SIGTERM || signal_number == SIGHUP) {
			log_info("stopping", "signal",
			         signal_number == SIGINT   ? "SIGINT"
			         : signal_number == SIGHUP ? "SIGHUP"
			                                   : "SIGTERM");
			node->stop_requested = true;
			return 0;
		}
		if (has_failed(node))
			return 1;
	}
}

/* Serves during the delay, unless the node has to end because of a failure. */
static void announce_drain(struct node *node)
{
	int64_t delay_us = node->stop_requested ? node->service.settings->http_drain_delay : 0;
	int64_t until_us = clock_monotonic_us() + delay_us;
	http_announce_drain(node->http);
	if (delay_us > 0)
		log_info("drain_announced", "meaning", "the node serves during http.drain_delay");
	while (clock_monotonic_us() < until_us && !has_failed(node))
		nanosleep(&(struct timespec){.tv_nsec = ANNOUNCE_INTERVAL_NS}, NULL);
}

/* Ends the process by force. Acknowledged events are durable, so nothing is lost. */
static void force_exit(int signal_number)
{
	log_write_last(LOG_WARNING, "drain_interrupted");
	_exit(0);
}

void node_close(struct node *node)
{
	if (!node)
		return;
	signal(SIGALRM, force_exit);
	alarm(FORCED_EXIT_S);
	supervision_begin_stop(node->supervision);
	reload_audit_flush(node->reload_audit);
	int64_t drained_by_us = clock_monotonic_us() + DRAIN_US;
	if (node->http) {
		announce_drain(node);
		http_drain(node->http, drained_by_us);
	}
	http_stop(node->http);
	admin_server_stop(node->admin_server);
	reload_audit_stop(node->reload_audit);
	jobs_stop(node->jobs); /* after requests and commands, which wake jobs */
	if (node->service_open) {
		links_close(&node->service);
		service_close(&node->service);
	}
	reloaded_settings_free(node->in_force);
	reloaded_settings_free(node->former);
	authorities_free(node->authorities);
	revocation_client_free(node->revocation);
	renderer_close(&node->renderer);
	receipt_signer_stop(node->receipt_signer);
	signer_stop(node->signer);
	if (node->lock_file >= 0)
		close(node->lock_file);
	alarm(0);
	supervision_free(node->supervision);
	free(node);
}
