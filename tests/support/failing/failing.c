#include "failing.h"

#include <errno.h>
#include <openssl/err.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "trampoline.h"

int failing_errno = EIO;

static _Thread_local unsigned armed;
static _Thread_local int countdown;
static _Thread_local const char *failed;
static _Thread_local bool arms_others;

void failing_arm(unsigned kinds, int at)
{
	arms_others = false;
	armed = kinds;
	countdown = at;
	failed = NULL;
}

static _Atomic unsigned others_armed;
static _Atomic int others_countdown;
static const char *_Atomic others_failed;

void failing_arm_others(unsigned kinds, int at)
{
	arms_others = true;
	atomic_store(&others_failed, NULL);
	atomic_store(&others_countdown, at);
	atomic_store(&others_armed, kinds);
}

const char *failing_disarm(void)
{
	armed = 0;
	atomic_store(&others_armed, 0);
	return arms_others ? atomic_load(&others_failed) : failed;
}

static bool is_due(const char *name, unsigned kind)
{
	if (armed & kind && !failed && --countdown <= 0) {
		failed = name;
		return true;
	}
	if (arms_others || !(atomic_load(&others_armed) & kind) ||
	    atomic_fetch_sub(&others_countdown, 1) != 1)
		return false;
	atomic_store(&others_failed, name);
	return true;
}

/* Not every executable links OpenSSL and SQLite. */
#pragma weak ERR_new
#pragma weak ERR_set_debug
#pragma weak ERR_set_error
#pragma weak sqlite3_sql

/* Returns whether a call cannot fail: a rollback that was prepared needs nothing. */
static bool is_spared(const char *name, void *first)
{
	return strcmp(name, "sqlite3_step") == 0 && strcmp(sqlite3_sql(first), "ROLLBACK") == 0;
}

__attribute__((used)) int failing_decide(const char *name, unsigned kind, void *first);

/* `first`: the first argument of the call. */
int failing_decide(const char *name, unsigned kind, void *first)
{
	if (is_spared(name, first) || !is_due(name, kind))
		return 0;
	if (kind == FAILING_OPENSSL && ERR_new)
		ERR_raise(ERR_LIB_CRYPTO, ERR_R_MALLOC_FAILURE);
	errno = kind == FAILING_MEMORY ? ENOMEM : failing_errno;
	return 1;
}

#define CALL(kind, value, name) TRAMPOLINE(".weak", kind, value, name)
#include "calls.def"
