/* Whether a store is quiet: a copy that was brought back to be looked at, for which nothing is
 * sent, charged, sealed or acknowledged until it is told that it is the one to go on with. The mark
 * lies in the store itself, so that every node of it sees it. Thread safe. */
#ifndef STORE_NODES_QUIET_H
#define STORE_NODES_QUIET_H

#include "store/store.h"

#define QUIET_REASON_MAX 200 /* bytes */

struct quiet {
	bool is;
	int64_t since_us;
	char reason[QUIET_REASON_MAX + 1];
	int64_t woken_us; /* when it was last told to go on, as a copy may have been; 0: never */
	/* From when on it may have been a copy, whose own history is not the original's: when it became
	 * quiet before it was first woken. 0: never woken. */
	int64_t copied_us;
};
int store_get_quiet(struct store *store, struct quiet *ret, struct error *error) MUST_CHECK;
/* One that is quiet already stays so since then, and keeps its reason. */
int store_set_quiet(struct store *store, const char *reason, int64_t now_us, struct error *error)
	MUST_CHECK;
/* The same for a store that is brought back (db_restore). `reason` NULL: it is woken at once. The
 * text is the caller's, and the mark's value. */
#define QUIET_MARK_SIZE (24 + QUIET_REASON_MAX + 1)
struct db_mark quiet_mark(const char *reason, int64_t now_us, char text[QUIET_MARK_SIZE]);
/* Also notes when (`woken_us`), and the first time since when (`copied_us`). */
int store_end_quiet(struct store *store, int64_t now_us, struct error *error) MUST_CHECK;

/* What would be done if it were not quiet, now or in its time. */
struct quiet_due {
	int64_t notices; /* deliveries to enabled endpoints */
	int64_t mails;
	int64_t payments; /* asked for, or top-ups whose threshold is passed */
	int64_t certifications;
	/* Of them. */
	int64_t charges; /* asked for */
	int64_t topups;
	int64_t certifications_before; /* asked for before `before_us` */
};
int store_count_due(struct store *store, int64_t before_us, struct quiet_due *ret,
                    struct error *error) MUST_CHECK;
/* Ends the deliveries that wait for enabled endpoints as failed, so that they can be replayed. In
 * short transactions; *ret_count: how many. */
int store_skip_deliveries(struct store *store, int64_t now_us, int64_t *ret_count,
                          struct error *error) MUST_CHECK;

#endif
