/* Reads entries of a log one by one, and shows that they are those of its checkpoint: the leaves
 * lead to the root. Memory does not depend on the size of the log. */
#ifndef MONITOR_LOG_SCAN_H
#define MONITOR_LOG_SCAN_H

#include "monitor/log_source.h"
#include "tlog/checkpoint.h"
#include "tlog/frontier.h"

/* The same as the progress of a verification (cli/command.h). */
typedef int log_progress(void *context, const char *name, uint64_t done, uint64_t total);

struct log_scan {
	struct log_source *source;
	const struct checkpoint *checkpoint;
	/* Takes an entry: before the root is known to be right. A result other than 0 stops the scan
	 * and is returned. */
	int (*take)(void *context, uint64_t index, const struct tlog_entry *entry, struct slice text,
	            struct error *error);
	/* Takes the leaves of a whole bundle after its entries; NULL: not needed. */
	int (*take_leaves)(void *context, uint64_t bundle, const struct sha256 *leaves, unsigned count,
	                   struct error *error);
	void *context;
	log_progress *progress; /* NULL: none */
	void *progress_context;
};

/* Reads all entries that the tree of `begin` does not have. ERR_INVALID_EVIDENCE: an entry is not
 * of the form of tlog/entry.h, or the leaves do not lead to the root. Also the errors of
 * log_source_read. */
int log_scan_run(const struct log_scan *scan, const struct frontier *begin, struct error *error)
	MUST_CHECK;

#endif
