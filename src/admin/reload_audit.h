/* Audit records of reloads of the settings ("config reload").
 *
 * The main thread, which must not block on the store, queues a record. A thread of its own writes
 * it, and retries until the store accepts it. A record that the store refuses, that finds the queue
 * full, or that is still queued at the end is only a line `audit_record_not_written` in the log. */
#ifndef ADMIN_RELOAD_AUDIT_H
#define ADMIN_RELOAD_AUDIT_H

#include <signal.h>

#include "store/store.h"

struct reload_audit;

/* Starts the thread. The store outlives it. */
int reload_audit_start(struct store *store, struct reload_audit **ret, struct error *error)
	MUST_CHECK;
/* Queues the record of one reload; does not block on the store. `signal` is that of the request.
 * `arguments` is a JSON object, to which the members of the signal are added. NULL-safe. */
void reload_audit_add(struct reload_audit *audit, const siginfo_t *signal, struct slice arguments);
/* Attempts the queued records a last time, and writes those to the log that the store has not
 * accepted within five seconds. No record may be added afterwards. NULL-safe. */
void reload_audit_flush(struct reload_audit *audit);
/* Flushes, and ends the thread; blocks while the store does not answer it. NULL-safe. */
void reload_audit_stop(struct reload_audit *audit);

#endif
