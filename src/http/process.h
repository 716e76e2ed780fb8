/* Facts about this process from the kernel. */
#ifndef HTTP_PROCESS_H
#define HTTP_PROCESS_H

#include <stdint.h>

/* -1: unknown. */
struct process_state {
	int64_t cpu_us;        /* of all threads, in user and system mode */
	int64_t started_at_us; /* since 1970 */
	int64_t resident_bytes, virtual_bytes;
	int64_t threads;
	int64_t open_files, open_files_max;
};
struct process_state process_read_state(void);

#endif
