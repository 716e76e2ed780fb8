/* Readiness of this node to acknowledge registrations, and present or expected problems, for
 * /readyz, /metrics and the log. Thread safe. */
#ifndef ADMIN_READINESS_H
#define ADMIN_READINESS_H

#include "service/watch.h"

/* Kinds of findings. There may be several findings of one kind. The names are labels of metrics. */
#define CONCERNS                                                                                   \
	CONCERN(STORE, "store")               /* cannot acknowledge */                                 \
	CONCERN(REGISTRATION, "registration") /* a batch has been written for too long */              \
	CONCERN(SPACE, "space")               /* the store's disk is full */                           \
	CONCERN(CLOCK, "clock")                                                                        \
	CONCERN(QUIET, "quiet")     /* read-only copy */                                               \
	CONCERN(SIGNER, "signer")   /* signing process */                                              \
	CONCERN(SEALING, "sealing") /* events have waited too long for their seal */                   \
	CONCERN(CHAIN_QUARANTINED, "chain_quarantined") /* chain in quarantine */                      \
	CONCERN(CHAIN_AHEAD, "chain_ahead")             /* ahead of the clock */                       \
	CONCERN(SIGNING_KEY, "signing_key")                                                            \
	CONCERN(CERTIFICATE, "certificate") /* about to expire */                                      \
	CONCERN(AUTHORITY, "authority")     /* failing; another one may respond */                     \
	CONCERN(DISK, "disk")               /* nearly full */                                          \
	CONCERN(CONTENT, "content")         /* content store does not respond */                       \
	CONCERN(REPLICAS, "replicas")       /* fewer than required */                                  \
	CONCERN(SHARD, "shard") /* a server of the store is unavailable or not replicated */           \
	CONCERN(DEVELOPMENT_KEY, "development_key")                                                    \
	CONCERN(BACKUP, "backup") /* too old, or none */                                               \
	CONCERN(LIMIT, "limit")   /* close to a limit */                                               \
	CONCERN(WATCH, "watch")   /* a watched component does not respond */
enum concern {
#define CONCERN(name, text) CONCERN_##name,
	CONCERNS
#undef CONCERN
		CONCERN_COUNT
};
const char *concern_text(enum concern concern);

struct finding {
	enum concern concern;
	bool stops;     /* it stops registration */
	char about[64]; /* object of the finding; may be empty */
	char text[ERROR_CAUSE_MAX + 128];
};
#define READINESS_MAX 48
struct readiness {
	bool ready;
	size_t count;
	struct finding items[READINESS_MAX]; /* ordered by topic */
};

/* State of the store and the content store, as just determined by the caller. The errors are read
 * only if the state is not OK. */
struct stores_state {
	int store, content;
	struct error store_error, content_error;
};
/* Collects the findings. Does not block. */
void readiness_read(struct service *service, const struct stores_state *stores,
                    struct readiness *ret);
/* Returns the number of findings of a kind. */
size_t readiness_count(const struct readiness *readiness, enum concern concern);
/* Logs findings that appeared or disappeared since the last call. Does not block. To be called by
 * one thread only, with the same parameter `logged`, zeroed at the start. */
void readiness_log(struct service *service, struct readiness *logged);

/* Reads the gauges that need neither the store nor the HTTP server; the others are left
 * unchanged. */
void service_read_gauges(struct service *service, struct gauges *ret);

#endif
