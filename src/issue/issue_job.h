/* Shared by the files that issue certifications. */
#ifndef ISSUE_ISSUE_JOB_H
#define ISSUE_ISSUE_JOB_H

#include "archive/archive.h"
#include "issue/issue.h"
#include "report/report.h"
#include "seal/level.h"

#define ISSUE_PATH_MAX 4096

/* State of the work on one certification, shared by its steps. Everything is allocated in the
 * arena. */
struct issue_job {
	struct service *service;
	const struct certification *certification;
	const char *directory;
	const struct issue_listener *watch;
	struct arena *arena;

	int64_t progress_from, progress_to; /* range of the current step, in permille */
	int64_t progress_at_us, progress_interval_us;
	int64_t space_bytes; /* reserved on the disk */

	struct chain_head head;
	struct channel channel;
	struct report_configuration *configurations; /* in force in the range, in ascending order */
	size_t configuration_count;

	struct issue_parts *making; /* parts in progress; NULL: finished, or none needed */
	const struct part_facts *parts;
	size_t part_count;

	struct cms_signing signing;
	struct cms_signer signer;

	/* Data of the last timestamp, needed to validate it. */
	struct buf authority_path;
	struct buf path_inside; /* of its token: timestamp_embedded_path */
	int64_t stamped_us;
	int64_t stamped_until_us; /* expiry of its certificate */
	enum level collected;     /* last level of issue_collect: LEVEL_T or LEVEL_LT */

	/* Set by the archive step for the reports. */
	char archive_name[DOCUMENT_NAME_SIZE];
	struct zip_sum archive_sum;
	struct sha256 chain_hash_before, first_chain_hash, last_chain_hash;
	struct report_event *events;
	size_t event_rows;
	int64_t first_received_at_us, last_received_at_us;
	struct report_seal *seals;
	size_t seal_rows;
	int64_t seal_count;
	struct report_authority *authorities;
	size_t authority_rows;
	struct report_log log;
	bool has_history; /* the archive has the seal documents from the chain's first segment */
	char verification_url[1024];
	int64_t issued_at_us;
};

int64_t issue_event_count(const struct issue_job *work);
/* Writes the path of a working file. */
void issue_path(const struct issue_job *work, const char *name, char path[ISSUE_PATH_MAX]);
/* Reports the progress of the current step. A nonzero result stops the work. */
int issue_progress(struct issue_job *work, int64_t done, int64_t total) MUST_CHECK;
/* Calls `each` for every event of the range, in order. */
int issue_each_event(const struct issue_job *work, bool with_content,
                     int (*each)(void *context, const struct event *event), void *context,
                     struct error *error) MUST_CHECK;

/* Starts the creation of the content parts on a separate thread (issue_parts.c). */
int issue_start_parts(struct issue_job *work, struct error *error) MUST_CHECK;
/* Returns their progress; 1000: there is nothing to wait for. */
int64_t issue_parts_permille(const struct issue_job *work);
/* Waits for the parts and sets work->parts. */
int issue_await_parts(struct issue_job *work, struct error *error) MUST_CHECK;
/* Must always follow issue_start_parts. Stops and frees what is still in progress. */
void issue_free_parts(struct issue_job *work);

/* Writes the evidence archive (issue_archive.c). */
int issue_archive(struct issue_job *work, struct error *error) MUST_CHECK;

/* Obtains a timestamp for a signature; only live documents have one (issue_level.c). A
 * cms_timestamp_function. */
int issue_stamp(void *context, const struct sha256 *imprint, struct buf *out, struct error *error)
	MUST_CHECK;
/* Collects the available validation data of the last signature and its timestamp. The collect
 * function of struct pdf_long_term. ERR_UNAVAILABLE: the level would be below
 * certification.level. */
int issue_collect(void *context, struct validation_set *set, struct error *error) MUST_CHECK;
/* Does the same for a signature that contains the data and has no timestamp over it. A
 * cms_collect_function. */
int issue_collect_inside(void *context, struct validation_set *set, struct error *error) MUST_CHECK;
/* issue_predict_level fills in the level that a report signed now will reach, judging from the
 * archive's signature, which was made before. issue_check_level checks that a signed report has
 * reached it. ERR_UNAVAILABLE: it has not, so that the report's own statement is wrong. */
int issue_predict_level(struct issue_job *work, struct report_facts *facts, struct error *error)
	MUST_CHECK;
int issue_check_level(const struct issue_job *work, const struct report_facts *facts,
                      struct error *error) MUST_CHECK;

/* Reserves the maximum space that the documents may need, on the disk of the working directory and,
 * if the content store is a directory, on its disk, above the reserve for registrations
 * (issue_space.c). ERR_NO_SPACE: there is not enough space now. ERR_TOO_LARGE: there never will be.
 * issue_release_space must be called in any case. */
int issue_reserve_space(struct issue_job *work, struct error *error) MUST_CHECK;
void issue_release_space(struct issue_job *work);
/* Returns ERR_NO_SPACE when others have used the free space down to the reserve. */
int issue_check_space(const struct issue_job *work) MUST_CHECK;

/* Verifies the finished documents in the directory (issue_verify.c) with the roots in trust.pem and
 * no other knowledge of the service. Documents that are not valid are never issued.
 * ERR_INVALID_EVIDENCE. ERR_UNAVAILABLE: only the root of a round's authority is missing, or the
 * key is no longer in force. */
int issue_verify(struct issue_job *work, const struct document *documents, size_t count,
                 struct error *error) MUST_CHECK;

#endif
