/* Shared by the files that issue a certification. */
#ifndef ISSUE_ISSUE_WORK_H
#define ISSUE_ISSUE_WORK_H

#include "archive/archive.h"
#include "issue/issue.h"
#include "report/report.h"
#include "seal/level.h"

#define ISSUE_PATH_MAX 4096

/* The work on one certification: what its steps find out for one another. Everything lives in the
 * arena. */
struct issue_work {
	struct service *service;
	const struct certification *certification;
	const char *directory;
	const struct issue_watch *watch;
	struct arena *arena;

	int64_t progress_from, progress_to; /* permille of the step at hand */
	int64_t progress_at_us;
	int64_t space_bytes; /* taken on the disk */

	struct chain_head head;
	struct channel channel;
	struct report_configuration *configurations; /* in force in the range, ascending */
	size_t configuration_count;

	struct issue_parts *making; /* the parts, meanwhile; NULL: they are made, or there are none */
	const struct part_facts *parts;
	size_t part_count;

	struct cms_signing signing;
	struct cms_signer signer;

	/* Of the last timestamp that was given, for what validates it. */
	struct buf authority_path;
	struct buf path_inside; /* its token's: timestamp_path_inside */
	int64_t stamped_us;
	int64_t stamped_until_us; /* the end of its certificate */
	enum level collected;     /* what issue_collect came to last: LEVEL_T or LEVEL_LT */

	/* Left by the archive for the reports. */
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
	char verification_url[1024];
	int64_t issued_at_us;
};

int64_t issue_event_count(const struct issue_work *work);
/* The path of a working file. */
void issue_path(const struct issue_work *work, const char *name, char path[ISSUE_PATH_MAX]);
/* Tells how far the step at hand is; not 0 stops the work. */
int issue_progress(struct issue_work *work, int64_t done, int64_t total) MUST_CHECK;
/* Every event of the range in order. */
int issue_each_event(const struct issue_work *work, bool with_content,
                     int (*each)(void *context, const struct event *event), void *context,
                     struct error *error) MUST_CHECK;

/* Begins to make the content parts, on a thread beside (issue_parts.c). */
int issue_begin_parts(struct issue_work *work, struct error *error) MUST_CHECK;
/* How far they are; 1000: there are none to wait for. */
int64_t issue_parts_permille(const struct issue_work *work);
/* Waits for them: work->parts. */
int issue_await_parts(struct issue_work *work, struct error *error) MUST_CHECK;
/* After issue_begin_parts in any case: what is still under way is stopped and forgotten. */
void issue_end_parts(struct issue_work *work);

/* Writes the evidence archive (issue_archive.c). */
int issue_archive(struct issue_work *work, struct error *error) MUST_CHECK;

/* A timestamp for a signature: only live documents have one (issue_lasting.c). A
 * cms_timestamp_function. */
int issue_stamp(void *context, const struct sha256 *imprint, struct buf *out, struct error *error)
	MUST_CHECK;
/* What validates the signature just made and its timestamp, where it can be had: the collect of
 * struct pdf_lasting. ERR_UNAVAILABLE when less would be reached than certification.level wants. */
int issue_collect(void *context, struct validation_set *set, struct error *error) MUST_CHECK;
/* The same for a signature that has it inside and nothing over it: a cms_collect_function. */
int issue_collect_bare(void *context, struct validation_set *set, struct error *error) MUST_CHECK;
/* What a report that is signed now will reach, as far as the archive's signature shows, which was
 * made before; and whether one that was signed has reached it. ERR_UNAVAILABLE: it has not, and
 * what it says of itself is not true. */
int issue_foresee(struct issue_work *work, struct report_facts *facts, struct error *error)
	MUST_CHECK;
int issue_compare(const struct issue_work *work, const struct report_facts *facts,
                  struct error *error) MUST_CHECK;

/* Room on the disks, of the working directory and of content where that is a directory, over the
 * reserve that registration keeps on each (issue_space.c). Takes as much as the
 * documents may need at most: ERR_NO_SPACE while there is not enough, ERR_TOO_LARGE when there
 * never will be. To be given back in any case. */
int issue_take_space(struct issue_work *work, struct error *error) MUST_CHECK;
void issue_give_space(struct issue_work *work);
/* ERR_NO_SPACE once others have used up what was free, into the reserve. */
int issue_watch_space(const struct issue_work *work) MUST_CHECK;

/* Gives the documents, which are whole in the directory, to the verifier (issue_verify.c), with the
 * roots of the service's keys and authorities that trust.pem has, and nothing else that the service
 * knows: what it does not find valid is never handed out. ERR_INVALID_EVIDENCE; ERR_UNAVAILABLE
 * when only a root of a round's authority is missing, or the key is not in force any more. */
int issue_verify(struct issue_work *work, const struct document *documents, size_t count,
                 struct error *error) MUST_CHECK;

#endif
