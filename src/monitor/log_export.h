/* Copies a transparency log, in the form of C2SP tlog-tiles, to a place that others serve: a
 * directory, or a bucket.
 *
 * Full tiles never change, so each run copies what is new, after it is shown to lead to the root.
 * The checkpoint is written last: a reader of the place never finds one whose tiles are missing. A
 * tree that does not begin with the one that was copied before is refused, so the copy never
 * contradicts itself. */
#ifndef MONITOR_LOG_EXPORT_H
#define MONITOR_LOG_EXPORT_H

#include "monitor/log_head.h"

/* The place of the copy. Paths are those below the log's prefix. */
struct log_target {
	/* Appends a file. ERR_NOT_FOUND: there is none. */
	int (*read)(void *context, const char *path, struct buf *out, struct error *error);
	/* Replaces a file as a whole. */
	int (*write)(void *context, const char *path, struct slice data, struct error *error);
	void *context;
};

struct log_export_result {
	struct log_head head;   /* of the copy */
	uint64_t size_before;   /* entries that it had before */
	uint64_t files_written; /* checkpoint included */
};

/* The results point into the arena. `policy` may be NULL; ERR_REFUSED: the checkpoint has no
 * signature of its log. ERR_INVALID_EVIDENCE: the source contradicts itself or the copy. Also the
 * errors of log_source_read and of the target. */
int log_export(struct log_source *source, const struct policy *policy,
               const struct log_target *target, struct arena *arena, struct log_export_result *ret,
               struct error *error) MUST_CHECK;

#endif
