#include "http/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

/* Fields of /proc/PID/stat after the program name, numbered as in proc(5). */
#define FIRST_FIELD 3
enum { USER_TIME = 14, SYSTEM_TIME = 15, THREADS = 20, START = 22, SIZE = 23, RESIDENT = 24 };

static void read_stat(struct process_state *state)
{
	char text[1024];
	DESCRIPTOR_AUTO int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t size = file >= 0 ? read(file, text, sizeof text - 1) : -1;
	text[size > 0 ? size : 0] = '\0';
	char *at = strrchr(text, ')'); /* the name may contain any character */
	long long fields[RESIDENT + 1] = {0};
	int field = FIRST_FIELD - 1;
	char *rest = NULL;
	for (char *word = at ? strtok_r(at + 1, " ", &rest) : NULL; word && field < RESIDENT;
	     word = strtok_r(NULL, " ", &rest)) {
		if (++field > FIRST_FIELD && sscanf(word, "%lld", &fields[field]) != 1)
			return;
	}
	long ticks = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
	if (field < RESIDENT || ticks <= 0 || page <= 0)
		return;
	state->cpu_us = (fields[USER_TIME] + fields[SYSTEM_TIME]) * (US_PER_SECOND / ticks);
	/* Computed once: it is derived from two clocks, and a varying value would look like a
	 * restart. */
	static _Atomic int64_t began_at_us;
	int64_t up_us = clock_boot_us() - fields[START] * (US_PER_SECOND / ticks), none = 0;
	atomic_compare_exchange_strong(&began_at_us, &none, clock_now_us() - up_us);
	state->started_at_us = atomic_load(&began_at_us);
	state->threads = fields[THREADS];
	state->virtual_bytes = fields[SIZE];
	state->resident_bytes = fields[RESIDENT] * page;
}

static int64_t count_open_files(void)
{
	DIR *directory = opendir("/proc/self/fd");
	if (!directory)
		return -1;
	int64_t count = -1; /* excludes the directory's own descriptor */
	for (const struct dirent *entry; (entry = readdir(directory));)
		count += entry->d_name[0] != '.';
	closedir(directory);
	return count;
}

struct process_state process_read_state(void)
{
	struct process_state state = {-1, -1, -1, -1, -1, -1, -1};
	struct rlimit limit;
	read_stat(&state);
	state.open_files = count_open_files();
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		state.open_files_max = (int64_t)limit.rlim_cur;
	return state;
}
