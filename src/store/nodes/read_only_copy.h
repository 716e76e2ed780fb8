/* Read-only copies: a restored store that is marked for inspection. Nothing is sent, charged,
 * sealed or acknowledged for it until an operator resumes it as the store in service. The mark is
 * in the store itself, so that all its nodes see it. Thread safe. */
#ifndef STORE_NODES_READ_ONLY_COPY_H
#define STORE_NODES_READ_ONLY_COPY_H

#include "store/store.h"

#define COPY_REASON_MAX 200 /* bytes */

struct quiet {
	bool is;
	int64_t since_us;
	char reason[COPY_REASON_MAX + 1];
	int64_t woken_us; /* when it was last resumed, which may have been as a copy; 0: never */
	/* The earliest time since which it may have been a copy with a history that differs from the
	 * original: when it became a read-only copy before it was first resumed. 0: never resumed. */
	int64_t copied_us;
};
int store_get_copy_state(struct store *store, struct quiet *ret, struct error *error) MUST_CHECK;
/* Marks the store as a read-only copy. If it is already one, time and reason are kept. */
int store_mark_copy(struct store *store, const char *reason, int64_t now_us, struct error *error)
	MUST_CHECK;
/* Returns the mark for a store that is being restored (db_restore). `reason` NULL: it is resumed at
 * once. `text` belongs to the caller and holds the value of the mark. */
#define COPY_MARK_SIZE (24 + COPY_REASON_MAX + 1)
struct db_mark copy_mark(const char *reason, int64_t now_us, char text[COPY_MARK_SIZE]);
/* Resumes the store. Records the time (`woken_us`) and, the first time, since when it was a copy
 * (`copied_us`). */
int store_resume_copy(struct store *store, int64_t now_us, struct error *error) MUST_CHECK;

/* The work that is pending, due now or later, as if the store were resumed. */
struct pending_work {
	int64_t notices; /* deliveries to enabled endpoints */
	int64_t mails;
	int64_t payments; /* requested, or top-ups whose threshold is passed */
	int64_t certifications;
	/* Parts of these numbers. */
	int64_t charges; /* requested payments */
	int64_t topups;
	int64_t certifications_before; /* requested before `before_us` */
};
int store_count_pending_work(struct store *store, int64_t before_us, struct pending_work *ret,
                             struct error *error) MUST_CHECK;
/* Ends as failed the deliveries that wait for enabled endpoints, so that they can be replayed. Uses
 * short transactions; *ret_count is the number of deliveries. */
int store_skip_deliveries(struct store *store, int64_t now_us, int64_t *ret_count,
                          struct error *error) MUST_CHECK;

#endif
