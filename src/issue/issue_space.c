/* Reservation of disk space for the documents that are being issued. */
#include <errno.h>
#include <inttypes.h>
#include <sys/statvfs.h>

#include "issue/issue_job.h"

/* Upper bounds for the archive and both reports, in addition to the content. */
#define EVENT_BYTES 1024
#define REPORT_BYTES ((int64_t)16 << 20)
#define PART_BYTES ((int64_t)1 << 30)

struct space {
	int64_t total, available, reserve;
};

static int read_space(const struct issue_job *work, const char *path, struct space *ret,
                      struct error *error)
{
	struct statvfs found;
	if (statvfs(path, &found) != 0)
		return error_cause(error, ERR_IO, "statvfs %s: %s", path, strerror(errno));
	ret->total = (int64_t)(found.f_blocks * found.f_frsize);
	ret->available = (int64_t)(found.f_bavail * found.f_frsize);
	ret->reserve = ret->total / 100 * work->service->settings->certification_disk_reserve;
	return OK;
}

static int check_place(const struct issue_job *work, const char *path, int64_t others_bytes,
                       struct error *error)
{
	struct space space = {0};
	int result = read_space(work, path, &space, error);
	if (result)
		return result;
	if (work->space_bytes > space.total - space.reserve)
		return error_cause(error, ERR_TOO_LARGE,
		                   "it needs about %" PRId64 " bytes, more than the disk of %s can provide",
		                   work->space_bytes, path);
	if (work->space_bytes + others_bytes > space.available - space.reserve)
		return error_cause(error, ERR_NO_SPACE,
		                   "it needs about %" PRId64
		                   " bytes, which are not free on the disk of %s now",
		                   work->space_bytes, path);
	return OK;
}

int issue_reserve_space(struct issue_job *work, struct error *error)
{
	const struct certification *certification = work->certification;
	struct content_estimate estimate;
	int result = store_estimate_content(work->service->store, certification->account,
	                                    certification->chain, certification->first_sequence,
	                                    certification->last_sequence, &estimate, error);
	int64_t content_bytes = !result ? estimate.bytes : 0;
	if (!result && !estimate.exact)
		result = store_sum_content(work->service->store, certification->account,
		                           certification->chain, certification->first_sequence,
		                           certification->last_sequence, &content_bytes, error);
	if (result)
		return result;
	/* The largest file exists twice while it is moved into the content store. */
	int64_t archive_bytes = issue_event_count(work) * EVENT_BYTES;
	int64_t part_bytes = content_bytes < PART_BYTES ? content_bytes : PART_BYTES;
	work->space_bytes = content_bytes + archive_bytes + REPORT_BYTES +
	                    (archive_bytes > part_bytes ? archive_bytes : part_bytes);
	/* Others may have written part of their reservation already: an overestimate is safe. */
	int64_t others_bytes = atomic_fetch_add(&work->service->issuing_bytes, work->space_bytes);
	result = check_place(work, work->directory, others_bytes, error);
	const char *content = settings_content_directory(work->service->settings);
	if (!result && content)
		result = check_place(work, content, others_bytes, error);
	return result;
}

void issue_release_space(struct issue_job *work)
{
	atomic_fetch_sub(&work->service->issuing_bytes, work->space_bytes);
	work->space_bytes = 0;
}

static bool is_used_up(const struct issue_job *work, const char *path)
{
	struct space space = {0};
	return !read_space(work, path, &space, NULL) && space.available < space.reserve;
}

int issue_check_space(const struct issue_job *work)
{
	const char *content = settings_content_directory(work->service->settings);
	return is_used_up(work, work->directory) || (content && is_used_up(work, content))
	           ? ERR_NO_SPACE
	           : OK;
}
