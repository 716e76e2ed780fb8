/* Certifications through the interface: request, wait, and download of the documents. */
#ifndef TOOLS_REMOTE_CERTIFICATION_H
#define TOOLS_REMOTE_CERTIFICATION_H

#include "base/clock.h"
#include "tools/api.h"

#define CERTIFICATION_ID_MAX 64

/* A range by sequence numbers, or by time if `by_time` is set; `to_us` is exclusive. */
struct certified_range {
	bool by_time;
	int64_t first, last;
	int64_t from_us, to_us;
};

struct certification {
	char id[CERTIFICATION_ID_MAX];
	char code[CERTIFICATION_ID_MAX]; /* of verification; empty until completed */
	bool completed, failed;
	double progress;
	int64_t retry_after_us; /* 0: not stated */
	bool replayed;          /* an earlier request with the same range had this effect */
	struct json *json;      /* in the arena */
};

/* Requests a certification, with `seal_history` one whose archive has the seal documents of all
 * segments before its own. The Idempotency-Key is derived from both, so that a repetition within 24
 * hours returns the same certification and pays nothing. A failed certification, whose fee was
 * refunded, is followed by the next key. */
int remote_certify(struct api *api, const struct certified_range *range, bool seal_history,
                   struct arena *arena, struct certification *ret_certification,
                   struct error *error) MUST_CHECK;
int remote_certification(struct api *api, const char *id, struct arena *arena,
                         struct certification *ret_certification, struct error *error) MUST_CHECK;

struct certification_wait {
	int64_t until_us; /* of the monotonic clock */
	/* Called with each state that is seen; NULL: never. */
	void (*progress)(void *context, const struct certification *certification);
	void *context;
};
/* Waits until the certification is completed. ERR_REFUSED: it failed. ERR_UNAVAILABLE: it is still
 * in progress at the end of the time. */
int remote_wait(struct api *api, const struct certification_wait *wait, const char *id,
                struct error *error) MUST_CHECK;

/* Gets the sequence number of the newest event; 0: the chain is empty. */
int remote_last_sequence(struct api *api, struct arena *arena, int64_t *ret_last,
                         struct error *error) MUST_CHECK;
/* Finds the certification that covers the highest sequence number, without those that failed, as
 * the service lists them. `last` of the range is that number, also of a range by time, and 0 if
 * there is none. Waits for a range by time that is still in progress, because its end is not known
 * before. */
int remote_find_certified(struct api *api, const struct certification_wait *wait,
                          struct arena *arena, char ret_id[CERTIFICATION_ID_MAX],
                          struct certified_range *ret_range, struct error *error) MUST_CHECK;

/* What was certified, by the service's own verification, and the files that were saved. */
struct saved_documents {
	int64_t first, last;
	bool is_test;
	const char **paths; /* in the arena */
	size_t count;
};
/* Downloads the documents of a completed certification into a directory, which is created. Each is
 * compared with the digest that the service has on record, and appears under its name only when
 * complete. A file that is already there with this digest is not downloaded again. */
int remote_save(struct api *api, const char *id, const char *directory, struct arena *arena,
                struct saved_documents *ret_saved, struct error *error) MUST_CHECK;

/* Copies the receipts of a channel and range, as the user asked for them, from a file of receipts
 * to files in `directory`, of 10,000 each as the verifier takes them. */
struct receipt_selection {
	const char *receipts, *directory;
	const char *channel_id;
	/* What was asked for: the events from `first` to `last`, or, by time, those received in the
	 * period. */
	struct certified_range range;
	bool is_test;
};
/* Gets the highest sequence number of the receipts of a channel and mode; 0: there are none. */
int receipts_find_newest(const char *receipts, const char *channel_id, bool is_test,
                         int64_t *ret_last, struct error *error) MUST_CHECK;
int receipts_select(const struct receipt_selection *selection, struct arena *arena,
                    const char *ret_paths[], size_t paths_max, size_t *ret_count,
                    uint64_t *ret_receipts, struct error *error) MUST_CHECK;

#endif
