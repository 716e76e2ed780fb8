/* Whether this node can acknowledge what is registered, and what is wrong, or will soon be: for
 * /readyz, /metrics, and the log when it changes. Thread safe. */
#ifndef ADMIN_READINESS_H
#define ADMIN_READINESS_H

#include "service/watch.h"

/* Of one kind there may be several findings. The names are labels of metrics. */
#define CONCERNS                                                                                   \
	CONCERN(STORE, "store") /* it cannot acknowledge */                                            \
	CONCERN(SPACE, "space") /* none is left where the store is */                                  \
	CONCERN(CLOCK, "clock")                                                                        \
	CONCERN(QUIET, "quiet")             /* a copy that is only looked at */                        \
	CONCERN(SIGNER, "signer")           /* the signing process */                                  \
	CONCERN(SEALING, "sealing")         /* events wait for their seal for too long */              \
	CONCERN(CHAIN_APART, "chain_apart") /* it is not sealed, or not registered in */               \
	CONCERN(CHAIN_AHEAD, "chain_ahead") /* of the clock */                                         \
	CONCERN(SIGNING_KEY, "signing_key")                                                            \
	CONCERN(CERTIFICATE, "certificate") /* comes to its end */                                     \
	CONCERN(AUTHORITY, "authority")     /* it fails; another one may answer */                     \
	CONCERN(DISK, "disk")               /* nearly full */                                          \
	CONCERN(CONTENT, "content")         /* its store does not answer */                            \
	CONCERN(REPLICAS, "replicas")       /* the store's are fewer than asked for */                 \
	CONCERN(SHARD, "shard")             /* one of the store's servers is away or not replicated */ \
	CONCERN(DEVELOPMENT_KEY, "development_key")                                                    \
	CONCERN(BACKUP, "backup") /* too old, or none */                                               \
	CONCERN(LIMIT, "limit")   /* a number comes near its bound */                                  \
	CONCERN(WATCH, "watch")   /* what is watched does not answer */
enum concern {
#define CONCERN(name, text) CONCERN_##name,
	CONCERNS
#undef CONCERN
		CONCERN_COUNT
};
const char *concern_text(enum concern concern);

struct finding {
	enum concern concern;
	bool stops;     /* registration */
	char about[64]; /* which one of its kind; may be empty */
	char text[ERROR_CAUSE_MAX + 128];
};
#define READINESS_MAX 48
struct readiness {
	bool ready;
	size_t count;
	struct finding items[READINESS_MAX]; /* in the order of what they concern */
};

/* What the stores say, as whoever asks has just found. `cause` is looked at where it is not OK. */
struct stores_state {
	int store, content;
	struct error store_error, content_error;
};
/* Waits for nothing. */
void readiness_read(struct service *service, const struct stores_state *stores,
                    struct readiness *ret);
/* Of how many findings of that kind there are. */
size_t readiness_count(const struct readiness *readiness, enum concern concern);
/* Tells the log where something came or went since it was told last. Waits for nothing. By one
 * thread alone, with the same `told`, zeroed at first. */
void readiness_tell(struct service *service, struct readiness *told);

/* What neither the store nor the server has to be asked for; the rest stays. */
void service_read_gauges(struct service *service, struct gauges *ret);

#endif
