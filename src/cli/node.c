#include "cli/node.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/durable.h"
#include "base/file.h"
#include "base/log.h"
#include "http/server.h"
#include "jobs/jobs.h"
#include "proof/renderer.h"
#include "seal/authority.h"
#include "seal/revocation_client.h"
#include "seal/signer.h"
#include "seal/trust.h"
#include "service/admin_socket.h"
#include "service/history.h"
#include "service/service.h"
#include "service/signers.h"

#define DRAIN_US (20 * US_PER_SECOND)
#define END_BY_FORCE_S 29
#define LOOK_AGAIN_NS 200000000
#define LIST_MEMORY_MAX ((size_t)64 * 1024)

struct node {
	const struct settings *settings;
	sigset_t signals;
	int lock_file;
	struct signer *signer;
	struct authorities *authorities;
	struct revocation_client *revocation;
	struct renderer renderer;
	struct service service;
	bool service_open;
	struct jobs *jobs;
	struct admin admin;
	struct admin_server *admin_server;
	struct http_server *http;
};

/* ---- authorities from the settings ---- */

/* The item of a list that stands for authority `index`: its own, or the only one. NULL: none. */
static const char *list_item(struct arena *arena, const char *list, size_t index)
{
	bool single = !strchr(list, ',');
	for (size_t i = 0; !single && i < index; i++) {
		const char *comma = strchr(list, ',');
		if (!comma)
			return NULL;
		list = comma + 1;
	}
	size_t size = strcspn(list, ",");
	while (size && *list == ' ')
		list++, size--;
	while (size && list[size - 1] == ' ')
		size--;
	return size ? arena_copy(arena, list, size) : NULL;
}

/* A secret of one authority alone is no list. */
static const char *secret_item(struct arena *arena, const char *list, size_t count, size_t index)
{
	return count == 1 && *list ? list : list_item(arena, list, index);
}

static size_t list_count(const char *list)
{
	size_t count = *list != '\0';
	for (; *list; list++)
		count += *list == ',';
	return count;
}

static int create_authorities(struct node *node, struct error *error)
{
	const struct settings *settings = node->settings;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, LIST_MEMORY_MAX);
	struct authority_options items[AUTHORITIES_MAX] = {0};
	struct authorities_options options = {
		.authorities = items,
		.count = list_count(settings->tsa_url),
		.signer = node->signer,
		.timeout_ms = (int)(settings->tsa_timeout / 1000),
		.time_bound_us = settings->tsa_time_bound,
	};
	if (options.count == 0 || options.count > AUTHORITIES_MAX)
		return error_cause(error, ERR_VALIDATION, "tsa.url names no authority, or too many");
	for (size_t i = 0; i < options.count; i++) {
		const char *kind = list_item(&arena, settings->tsa_kind, i);
		items[i].url =
			options.count == 1 ? settings->tsa_url : list_item(&arena, settings->tsa_url, i);
		items[i].roots_path = list_item(&arena, settings->tsa_roots, i);
		items[i].policy = list_item(&arena, settings->tsa_policy, i);
		items[i].user = list_item(&arena, settings->tsa_user, i);
		items[i].password = secret_item(&arena, settings->tsa_password, options.count, i);
		items[i].bearer = secret_item(&arena, settings->tsa_token, options.count, i);
		items[i].client_certificate = list_item(&arena, settings->tsa_client_certificate, i);
		items[i].client_key = list_item(&arena, settings->tsa_client_key, i);
		items[i].tls_roots_path = list_item(&arena, settings->tsa_tls_roots, i);
		items[i].kind = AUTHORITY_NON_QUALIFIED;
		if (!items[i].url || (kind && !authority_kind_parse(slice_of(kind), &items[i].kind)))
			return error_cause(error, ERR_VALIDATION, "tsa.url or tsa.kind");
	}
	int result =
		network_list_parse(slice_of(settings->tsa_allow_networks), &options.guard.allowed, error);
	return result ? result : authorities_create(&options, &node->authorities, error);
}

static int create_revocation_client(struct node *node, struct error *error)
{
	struct revocation_client_options options = {
		.signer = node->signer,
		.timeout_ms = (int)(node->settings->revocation_timeout / 1000),
	};
	int result = network_list_parse(slice_of(node->settings->revocation_allow_networks),
	                                &options.guard.allowed, error);
	if (result)
		return result;
	node->revocation = revocation_client_create(&options);
	return node->revocation ? OK : ERR_NO_MEMORY;
}

/* ---- starting ---- */

static void prepare_process(struct node *node)
{
	sigemptyset(&node->signals);
	sigaddset(&node->signals, SIGINT);
	sigaddset(&node->signals, SIGTERM);
	sigaddset(&node->signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &node->signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	file_allow_many();
}

static struct signer_options signer_options_of(const struct settings *settings)
{
	bool development = !*settings->signer_key;
	bool next = *settings->signer_next_key != '\0';
	return (struct signer_options){
		.directory = settings->signer_directory,
		.development = development,
		.key = {.key = development ? NULL : settings->signer_key,
	            .chain = settings->signer_chain,
	            .passphrase = settings->signer_passphrase_file},
		.next = {.key = next ? settings->signer_next_key : NULL,
	             .chain = settings->signer_next_chain,
	             .passphrase = *settings->signer_next_passphrase_file
	                               ? settings->signer_next_passphrase_file
	                               : settings->signer_passphrase_file},
	};
}

/* The operator is to read it, not only the log. */
static int signer_unusable(struct error *error)
{
	char cause[ERROR_CAUSE_MAX];
	if (!error)
		return ERR_REFUSED;
	snprintf(cause, sizeof cause, "%s", error->cause);
	return error_set(error, ERR_REFUSED, MSG_SIGNER_UNUSABLE, cause, NULL);
}

static int start_signer(struct node *node, struct error *error)
{
	struct signer_options options = signer_options_of(node->settings);
	int result = signer_start(&options, &node->signer, error);
	return result == ERR_REFUSED ? signer_unusable(error) : result;
}

int node_try_signer(const struct settings *settings, struct error *error)
{
	struct signer_options options = signer_options_of(settings);
	int result = options.development ? OK : signer_try(&options, error);
	return result == ERR_REFUSED ? signer_unusable(error) : result;
}

/* One service for a data directory; the store may be shared by many. */
static int lock_directory(struct node *node, struct error *error)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/node.lock", node->settings->service_data_dir);
	int result = file_lock(path, &node->lock_file, error);
	if (result == ERR_UNAVAILABLE)
		return error_set(error, result, MSG_DATA_LOCKED, node->settings->service_data_dir, NULL);
	return result;
}

int node_open(const struct settings *settings, bool create, struct node **ret_node,
              struct error *error)
{
	struct node *node = calloc(1, sizeof *node);
	if (!node)
		return ERR_NO_MEMORY;
	node->settings = settings;
	node->lock_file = -1;
	node->renderer.program = -1;
	prepare_process(node);
	int result = OK;
	if (!create && access(settings->service_data_dir, F_OK) != 0)
		result =
			error_set(error, ERR_NOT_FOUND, MSG_STORE_ABSENT, settings->service_data_dir, NULL);
	if (!result)
		result = durable_make_directory(settings->service_data_dir, error);
	if (!result)
		result = lock_directory(node, error);
	if (!result)
		result = start_signer(node, error);
	if (!result)
		log_start(); /* after the signer: a forked process has no such thread */
	if (!result)
		result = renderer_find(&node->renderer, error);
	if (!result)
		result = create_authorities(node, error);
	if (!result)
		result = create_revocation_client(node, error);
	if (!result)
		result = service_open(settings, create, &node->service, error);
	node->service_open = !result;
	if (result) {
		node_close(node);
		return result;
	}
	node->service.signer = node->signer;
	node->service.renderer = &node->renderer;
	node->service.authorities = node->authorities;
	node->service.revocation = node->revocation;
	node->admin = (struct admin){.settings = settings,
	                             .store = node->service.store,
	                             .content = node->service.content,
	                             .service = &node->service};
	result = signers_join(&node->service, error);
	if (result) {
		node_close(node);
		return result;
	}
	*ret_node = node;
	return OK;
}

int node_check_history(struct node *node, struct error *error)
{
	struct history history = {0}; /* filled only when the store could be read */
	int result = history_check(node->service.store, node->signer, &history, error);
	if (!result && history.known.round == 0 && history.found.round > 0) {
		char round[24];
		snprintf(round, sizeof round, "%lld", (long long)history.found.round);
		log_warning("store_taken_as_found", "round", round, "meaning",
		            "this node has never seen the store: whether it went back cannot be told");
	}
	/* The mark lags until there is room, or until a standby has the round and another is sealed. */
	bool waits = *history.store_id && (result == ERR_UNKNOWN_OUTCOME || result == ERR_UNAVAILABLE);
	return result == ERR_NO_SPACE || waits ? OK : result;
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
		result = start_signer(node, error);
	if (!result)
		result = store_open(&options, &store, error);
	if (!result)
		result = history_accept(store, node->signer, settings->service_data_dir, reason,
		                        ret_history, error);
	store_close(store);
	node_close(node);
	return result;
}

int node_listen(struct node *node, struct error *error)
{
	int result = jobs_start(&node->service, &node->jobs, error);
	if (!result)
		result = admin_server_start(&node->admin, node->settings->service_admin_socket,
		                            &node->admin_server, error);
	return result ? result : http_start(&node->service, &node->http, error);
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
	BUF_AUTO struct buf roots;
	buf_init(&roots, SERVICE_TRUST_MAX);
	int result = service_trust(&node->service, &roots, error);
	if (result)
		return result;
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/trust.pem", node->settings->service_data_dir);
	return durable_replace(path, 0644, buf_slice(&roots), error);
}

bool node_knows_root(const struct node *node)
{
	BUF_AUTO struct buf roots;
	buf_init(&roots, SERVICE_TRUST_MAX);
	return !trust_add_roots(signer_certificates(node->signer), &roots, NULL) && roots.size > 0;
}

/* ---- running and ending ---- */

int node_wait(struct node *node)
{
	struct timespec look_again = {.tv_nsec = LOOK_AGAIN_NS};
	for (;;) {
		int signal_number = sigtimedwait(&node->signals, NULL, &look_again);
		if (signal_number == SIGINT || signal_number == SIGTERM) {
			log_info("stopping", "signal", signal_number == SIGINT ? "SIGINT" : "SIGTERM");
			return 0;
		}
		/* A backup's pg_dump is a child, too. Threads exist by now: no new one can be forked. */
		if (signer_has_ended(node->signer)) {
			log_error("signer_ended", "consequence", "the program ends, to be started anew");
			return 1;
		}
		if (atomic_load(&node->service.went_back)) {
			log_error("store_went_back", "consequence",
			          "the program ends; a start says what is to be confirmed");
			log_stop();
			_exit(1);
		}
		if (store_is_poisoned(node->service.store)) {
			log_error("store_failed", "cause",
			          "a sync of the store failed: what it holds is unknown", "consequence",
			          "the program ends, to be started anew");
			log_stop();
			_exit(1);
		}
	}
}

/* What is acknowledged is durable, so ending by force loses nothing. */
static void end_by_force(int signal_number)
{
	static const char line[] = "{\"level\":\"warning\",\"event\":\"drain_cut_short\"}\n";
	struct pollfd log = {.fd = STDERR_FILENO, .events = POLLOUT};
	if (poll(&log, 1, 0) == 1 && log.revents & POLLOUT)
		(void)!write(STDERR_FILENO, line, sizeof line - 1);
	_exit(0);
}

void node_close(struct node *node)
{
	if (!node)
		return;
	signal(SIGALRM, end_by_force);
	alarm(END_BY_FORCE_S);
	if (node->http)
		http_drain(node->http, clock_monotonic_us() + DRAIN_US);
	http_stop(node->http);
	admin_server_stop(node->admin_server);
	jobs_stop(node->jobs); /* which requests and commands wake */
	if (node->service_open)
		service_close(&node->service);
	authorities_free(node->authorities);
	revocation_client_free(node->revocation);
	renderer_close(&node->renderer);
	signer_stop(node->signer);
	if (node->lock_file >= 0)
		close(node->lock_file);
	alarm(0);
	free(node);
}
