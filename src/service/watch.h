/* Monitoring of the node's dependencies. Jobs check them periodically; the operator's pages show
 * the last result and never block. Thread safe. */
#ifndef SERVICE_WATCH_H
#define SERVICE_WATCH_H

#include "service/service.h"
#include "store/nodes/store_state.h"

#define WATCH_INTERVAL_US (5 * US_PER_SECOND)
/* A check that takes longer than this is reported as hanging. */
#define WATCH_LATE_US (60 * US_PER_SECOND)
/* Results older than this are no longer shown. Checks run at least about once a minute, so several
 * consecutive ones have failed since. */
#define WATCH_STALE_US (180 * US_PER_SECOND)
/* A store that does not respond within this time is reported as unavailable. */
#define WATCH_ANSWER_LATE_US (10 * US_PER_SECOND)

/* Directories by their purpose. */
enum place { PLACE_DATA, PLACE_STORE, PLACE_CONTENT, PLACE_SIGNER, PLACE_COUNT };
const char *place_text(enum place place);
struct disk {
	bool known;            /* false: the directory is not on a local disk, or the check failed */
	int failed;            /* errno of the failed check; 0: none */
	int64_t size_bytes;    /* of the file system */
	int64_t free_bytes;    /* available to the service */
	int64_t free_permille; /* of bytes, or of inodes if that fraction is smaller */
};

/* A server of the store with rows of accounts that cannot acknowledge writes for them. */
struct failing_server {
	char name[64];
	char cause[ERROR_CAUSE_MAX];
};
#define FAILING_SERVERS_MAX 8

struct observation {
	int64_t at_us; /* monotonic; 0: the store has not responded yet, or not within WATCH_STALE_US */
	int64_t stale_us;                  /* time without a response; 0: not too long */
	char stale_cause[ERROR_CAUSE_MAX]; /* cause of the last failure */
	int64_t oldest_pending_us, last_seal_us, last_backup_us; /* TIME_NONE: none */
	struct store_replicas replicas;
	bool bounds_known; /* `bounds` has the last result of watch_read_limits */
	struct bound_use bounds[BOUND_COUNT];
	struct failing_server failing[FAILING_SERVERS_MAX];
	size_t failing_count; /* entries used */
	struct disk disks[PLACE_COUNT];
	int store, content; /* OK: ready, or not asked yet */
	char store_cause[ERROR_CAUSE_MAX], content_cause[ERROR_CAUSE_MAX];
};

/* Returns NULL if memory is exhausted. */
struct watch *watch_make(void);
void watch_free(struct watch *watch); /* NULL-safe */

/* Checks whether the store is ready. Blocks, and may hang with the store. */
void watch_check_ready(struct service *service);
/* Checks each server of the store if accounts are distributed over several. Blocks. */
void watch_check_servers(struct service *service);
/* After a full disk, checks whether the store has space again. Then reads everything else from the
 * store, unless a slow check was made too recently. Values that cannot be read are kept. Blocks,
 * and may hang with the store. This and the two functions above are to be called again after
 * WATCH_INTERVAL_US. */
void watch_check_store(struct service *service);
/* Reads the usage of the store's limits. If that fails, the old values are kept. Blocks. */
int watch_read_limits(struct service *service, struct error *error) MUST_CHECK;
/* Checks the disks and the content store. Blocks, and may hang with a mount. */
void watch_check_disks(struct service *service);
/* Returns the last results. Does not block: a store that hangs is reported as not responding. */
struct observation watch_get_observation(const struct service *service);
/* Returns how long the current check of watch_check_store or watch_check_disks has been running,
 * the longer of both, in microseconds; 0: none is running. */
int64_t watch_hangs_us(const struct service *service);

/* Health of a timestamp authority, as seen by this node. */
struct authority_status {
	char host[128]; /* with port; or "embedded" */
	bool development;
	int64_t successes, failures;
	int64_t last_success_us; /* 0: none */
	bool fails;              /* its last request failed, recently */
	int64_t failed_boot_us;  /* clock_boot_us of the last failure */
	char reason[512];        /* of the last failure */
};
/* An authority in use is asked at least every five minutes. An older failure means that it is not
 * in use. */
#define WATCH_AUTHORITY_FAILS_US (900 * US_PER_SECOND)
/* Returns the authority with that index in tsa.url, from 0; false: there is none. */
bool watch_get_authority(const struct service *service, size_t index, struct authority_status *ret);

#endif
