/* What this node sees of what it depends on, looked at again and again by a job: the pages for the
 * operator say what was seen last, and wait for nothing. Thread safe. */
#ifndef SERVICE_WATCH_H
#define SERVICE_WATCH_H

#include "service/service.h"
#include "store/nodes/watch.h"

#define WATCH_INTERVAL_US (5 * US_PER_SECOND)
/* A look that is older than this says that it hangs. */
#define WATCH_LATE_US (60 * US_PER_SECOND)
/* What was read longer ago than this is not known any more: looks are at most about a minute apart,
 * so that since then one after the other has failed. */
#define WATCH_STALE_US (180 * US_PER_SECOND)
/* A store that was asked longer ago than this, and has not answered, does not. */
#define WATCH_ANSWER_LATE_US (10 * US_PER_SECOND)

/* A directory, by what lies there. */
enum place { PLACE_DATA, PLACE_STORE, PLACE_CONTENT, PLACE_SIGNER, PLACE_COUNT };
const char *place_text(enum place place);
struct disk {
	bool known;            /* false: nothing of ours lies on a disk of this machine there, or it */
	int failed;            /* could not be looked at; errno */
	int64_t size_bytes;    /* of its file system */
	int64_t free_bytes;    /* for us */
	int64_t free_permille; /* of bytes, or of files where fewer of these are left */
};

/* A server of the store's that has accounts' rows, and cannot acknowledge what is of these. */
struct failing_server {
	char name[64];
	char cause[ERROR_CAUSE_MAX];
};
#define FAILING_SERVERS_MAX 8

struct observation {
	int64_t at_us;    /* monotonic; 0: the store did not answer yet, or not since WATCH_STALE_US */
	int64_t stale_us; /* for so long it did not; 0: that is not too long */
	char stale_cause[ERROR_CAUSE_MAX];                       /* why, when it was last asked */
	int64_t oldest_pending_us, last_seal_us, last_backup_us; /* TIME_NONE: there is none */
	struct store_replicas replicas;
	bool bounds_known; /* as watch_look_at_bounds last read them */
	struct bound_use bounds[BOUND_COUNT];
	struct failing_server failing[FAILING_SERVERS_MAX];
	size_t failing_count; /* of those told */
	struct disk disks[PLACE_COUNT];
	int store, content; /* OK: they answered that they are ready, or were not asked yet */
	char store_cause[ERROR_CAUSE_MAX], content_cause[ERROR_CAUSE_MAX];
};

/* NULL: no memory. */
struct watch *watch_make(void);
void watch_free(struct watch *watch); /* NULL-safe */

/* Asks the store whether it is ready. Waits, and may hang with it. */
void watch_ask_store(struct service *service);
/* Asks each of its servers where accounts are spread over several. Waits. */
void watch_ask_servers(struct service *service);
/* Tries whether the store has room again where it had none, and asks it for everything else, where
 * that is not too soon after a look that took long. What it did not answer stays as it was. Waits,
 * and may hang with it. Each to be called again after WATCH_INTERVAL_US. */
void watch_look(struct service *service);
/* Reads how near the store is to its bounds. What could not be read stays as it was. Waits. */
int watch_look_at_bounds(struct service *service, struct error *error) MUST_CHECK;
/* Looks at disks and at the content store. Waits, and may hang where a mount does. */
void watch_look_around(struct service *service);
/* Waits for nothing: a store that hangs is one that does not answer. */
struct observation watch_seen(const struct service *service);
/* The whole microseconds since the job of watch_look, or that of watch_look_around, began a look
 * that is not over; 0: neither is at one. */
int64_t watch_hangs_us(const struct service *service);

/* How a timestamp authority did, as far as this node asked it. */
struct watched_authority {
	char host[128]; /* and port; "embedded" */
	bool development;
	int64_t successes, failures;
	int64_t last_success_us; /* 0: none */
	bool fails;              /* its last answer was none, or not good, and is of late */
	int64_t failed_boot_us;  /* clock_boot_us of the last failure */
	char reason[512];        /* of it */
};
/* An authority that is asked is asked again within five minutes: what failed longer ago was not. */
#define WATCH_AUTHORITY_FAILS_US (900 * US_PER_SECOND)
/* In the order of tsa.url, `index` from 0; false: there is no such one. */
bool watch_get_authority(const struct service *service, size_t index,
                         struct watched_authority *ret);

#endif
