#include "admin/reload_audit.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "admin/admin.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"

#define OPERATION "config reload"
#define QUEUED_MAX 64
#define ARGUMENTS_MAX ((size_t)128 * 1024)
#define RETRY_US (2 * US_PER_SECOND)
#define FLUSH_US (5 * US_PER_SECOND)
#define ACT_MEMORY_MAX ((size_t)4 << 20)

enum attempted { WRITTEN, DELAYED, LOST };

struct queued {
	struct queued *next;
	struct buf arguments;
	int64_t uid;          /* of the sender, by the kernel; -1: unknown */
	int64_t claimed;      /* stated by the sender itself; -1: nothing */
	char act_id[ID_SIZE]; /* of an attempt whose commit may have succeeded; empty: none */
	bool delayed;         /* its first failure was logged */
};

struct reload_audit {
	struct store *store;
	pthread_t thread;
	pthread_mutex_t mutex; /* of the members below */
	pthread_cond_t changed;
	bool stopping, ended;
	bool abandoned; /* the queued records are logged as not written */
	struct queued *first, *last;
	unsigned count;
};

static void queued_free(struct queued *queued)
{
	if (queued)
		buf_free(&queued->arguments);
	free(queued);
}

static void log_lost(const struct queued *queued, const char *cause)
{
	log_error("audit_record_not_written", "operation", OPERATION, "made",
	          queued && queued->arguments.data ? queued->arguments.data : "", "cause", cause);
}

/* ---- the sender ---- */

/* The kernel fills in the sender of kill(2) and tgkill(2). A sender of sigqueue(3) fills in any
 * number itself. A signal of the kernel, as when a terminal is closed, has no sender. */
static void read_sender(struct queued *queued, const siginfo_t *signal, struct json_writer *out)
{
	bool proven = signal->si_code == SI_USER || signal->si_code == SI_TKILL;
	bool stated = signal->si_code < 0 && !proven;
	queued->uid = proven ? (int64_t)signal->si_uid : -1;
	queued->claimed = stated ? (int64_t)signal->si_uid : -1;
	if (proven)
		json_integer(out, "pid", signal->si_pid);
	else
		json_null(out, "pid");
}

/* ---- writing: on the thread ---- */

/* Returns OK if an earlier attempt has committed the record after all. */
static int find_written(struct store *store, const struct queued *queued, struct arena *arena,
                        struct error *error)
{
	struct audit_record record;
	if (!*queued->act_id)
		return ERR_NOT_FOUND;
	int result = store_get_audit_record(store, slice_of(queued->act_id), arena, &record, error);
	return result ? result : store_confirm_account(store, 0, error);
}

static int fill_actor(const struct queued *queued, struct arena *arena, char claimed[24],
                      struct actor *ret)
{
	struct actor other;
	const uid_t uid = queued->uid >= 0 ? (uid_t)queued->uid : 0;
	int result = admin_actor(uid, "signal", NULL, arena, ret);
	if (result || queued->uid >= 0)
		return result;
	ret->uid = -1;
	ret->user = NULL;
	if (queued->claimed < 0)
		return OK;
	snprintf(claimed, 24, "%lld", (long long)queued->claimed);
	result = admin_actor((uid_t)queued->claimed, "signal", NULL, arena, &other);
	ret->claimed = !result && other.user ? other.user : claimed;
	return result;
}

static void log_written(const struct actor *actor, const struct act *act)
{
	char uid[24] = "";
	if (actor->uid >= 0)
		snprintf(uid, sizeof uid, "%lld", (long long)actor->uid);
	log_info("administration", "operation", OPERATION, "uid", uid, "user",
	         actor->user ? actor->user : "", "claimed", actor->claimed ? actor->claimed : "",
	         "account", "", "act", act->act_id, "outcome", "done");
}

static int write_record(struct store *store, struct queued *queued, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, ACT_MEMORY_MAX);
	struct actor actor;
	char claimed[24];
	struct act act = {.by = &actor, .operation = OPERATION, .arena = &arena};
	int result = find_written(store, queued, &arena, error);
	if (result != ERR_NOT_FOUND)
		return result;
	error_clear(error);
	*queued->act_id = '\0';
	result = fill_actor(queued, &arena, claimed, &actor);
	if (!result)
		result = json_parse(&arena, buf_slice(&queued->arguments), NULL, &act.arguments, error);
	if (result)
		return result;
	struct store *acting = store_audited(store, &act);
	result =
		acting ? store_write_audit_record(acting, AUDIT_DONE, NULL, NULL, error) : ERR_NO_MEMORY;
	store_audited_end(acting);
	if (result == ERR_UNKNOWN_OUTCOME)
		memcpy(queued->act_id, act.act_id, ID_SIZE);
	if (!result)
		log_written(&actor, &act);
	return result;
}

static bool may_pass(int result)
{
	return result == ERR_UNAVAILABLE || result == ERR_UNKNOWN_OUTCOME || result == ERR_NO_SPACE ||
	       result == ERR_IO || result == ERR_NO_MEMORY;
}

/* Attempts a record, without the mutex. */
static enum attempted attempt(struct reload_audit *audit, struct queued *queued, bool last)
{
	struct error error = {0};
	int result = write_record(audit->store, queued, &error);
	if (!result)
		return WRITTEN;
	if (last || !may_pass(result)) {
		pthread_mutex_lock(&audit->mutex);
		if (!audit->abandoned) /* else it is logged already */
			log_lost(queued, error_reason(&error, result));
		pthread_mutex_unlock(&audit->mutex);
		return LOST;
	}
	if (!queued->delayed)
		log_warning("audit_record_delayed", "operation", OPERATION, "cause",
		            error_reason(&error, result));
	queued->delayed = true;
	return DELAYED;
}

static struct queued *remove_first(struct reload_audit *audit)
{
	struct queued *first = audit->first;
	assert(first && audit->count > 0);
	audit->first = first->next;
	if (!audit->first)
		audit->last = NULL;
	audit->count--;
	return first;
}

/* Blocks until there is work. `delayed`: the first record was attempted without success. */
static void await_work(struct reload_audit *audit, bool delayed)
{
	const int64_t until_us = clock_monotonic_us() + RETRY_US;
	while (!audit->stopping && (!audit->first || delayed))
		if (!delayed)
			pthread_cond_wait(&audit->changed, &audit->mutex);
		else if (!thread_wait_until(&audit->changed, &audit->mutex, until_us))
			return;
}

static void *run(void *argument)
{
	struct reload_audit *audit = argument;
	enum attempted attempted = WRITTEN;
	pthread_setname_np(pthread_self(), "reload-audit");
	pthread_mutex_lock(&audit->mutex);
	for (;;) {
		await_work(audit, attempted == DELAYED);
		if (!audit->first || audit->abandoned)
			break;
		/* Only this thread removes records. */
		struct queued *first = audit->first;
		const bool last = audit->stopping;
		pthread_mutex_unlock(&audit->mutex);
		attempted = attempt(audit, first, last);
		pthread_mutex_lock(&audit->mutex);
		if (attempted != DELAYED && !audit->abandoned)
			queued_free(remove_first(audit));
	}
	audit->ended = true;
	pthread_cond_broadcast(&audit->changed);
	pthread_mutex_unlock(&audit->mutex);
	return NULL;
}

/* ---- the main thread ---- */

int reload_audit_start(struct store *store, struct reload_audit **ret, struct error *error)
{
	struct reload_audit *audit = calloc(1, sizeof *audit);
	if (!audit)
		return ERR_NO_MEMORY;
	audit->store = store;
	pthread_mutex_init(&audit->mutex, NULL);
	pthread_cond_init(&audit->changed, NULL);
	if (pthread_create(&audit->thread, NULL, run, audit) != 0) {
		pthread_cond_destroy(&audit->changed);
		pthread_mutex_destroy(&audit->mutex);
		free(audit);
		return error_cause(error, ERR_NO_MEMORY, "cannot start the thread of reload records");
	}
	*ret = audit;
	return OK;
}

void reload_audit_add(struct reload_audit *audit, const siginfo_t *signal, struct slice arguments)
{
	if (!audit)
		return;
	assert(arguments.size >= 2 && arguments.data[arguments.size - 1] == '}');
	struct queued *queued = calloc(1, sizeof *queued);
	if (!queued) {
		log_lost(NULL, "out of memory");
		return;
	}
	buf_init(&queued->arguments, ARGUMENTS_MAX);
	buf_add(&queued->arguments, arguments.data, arguments.size - 1);
	struct json_writer out = {.out = &queued->arguments, .comma = arguments.size > 2};
	json_time(&out, "received_at", clock_now_us());
	read_sender(queued, signal, &out);
	json_end_object(&out);
	pthread_mutex_lock(&audit->mutex);
	bool taken = !buf_check(&queued->arguments) && audit->count < QUEUED_MAX;
	if (taken) {
		*(audit->last ? &audit->last->next : &audit->first) = queued;
		audit->last = queued;
		audit->count++;
		pthread_cond_broadcast(&audit->changed);
	}
	pthread_mutex_unlock(&audit->mutex);
	if (taken)
		return;
	log_lost(queued, "too many records of reloads wait for the store");
	queued_free(queued);
}

/* Without waiting for the attempt under way, which may still succeed. */
static void abandon(struct reload_audit *audit)
{
	audit->abandoned = true;
	for (const struct queued *at = audit->first; at; at = at->next)
		log_lost(at, "the store did not accept it before the service ended");
}

void reload_audit_flush(struct reload_audit *audit)
{
	if (!audit)
		return;
	pthread_mutex_lock(&audit->mutex);
	const int64_t until_us = clock_monotonic_us() + FLUSH_US;
	audit->stopping = true;
	pthread_cond_broadcast(&audit->changed);
	while (!audit->ended && !audit->abandoned)
		if (!thread_wait_until(&audit->changed, &audit->mutex, until_us) && !audit->ended)
			abandon(audit);
	pthread_mutex_unlock(&audit->mutex);
}

void reload_audit_stop(struct reload_audit *audit)
{
	if (!audit)
		return;
	reload_audit_flush(audit);
	pthread_join(audit->thread, NULL);
	while (audit->first)
		queued_free(remove_first(audit));
	pthread_cond_destroy(&audit->changed);
	pthread_mutex_destroy(&audit->mutex);
	free(audit);
}
