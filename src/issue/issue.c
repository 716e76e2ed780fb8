#include "issue/issue.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "base/tuned.h"
#include "issue/issue_job.h"
#include "report/pdf_sign.h"
#include "report/renderer.h"
#include "store/accounts/accounts.h"

#define PROGRESS_INTERVAL_US (US_PER_SECOND / 2)
#define AUTHORITY_PATH_MAX ((size_t)256 << 10)
/* Progress at the end of each step, in permille. */
enum {
	PROGRESS_ARCHIVE = 550, /* archive and parts */
	PROGRESS_REPORTS = 600,
	PROGRESS_VERIFIED = 900,
	PROGRESS_END = 1000,
};

/* ---- shared with issue_archive.c ---- */

int64_t issue_event_count(const struct issue_job *work)
{
	return work->certification->last_sequence - work->certification->first_sequence + 1;
}

void issue_path(const struct issue_job *work, const char *name, char path[ISSUE_PATH_MAX])
{
	snprintf(path, ISSUE_PATH_MAX, "%s/%s", work->directory, name);
}

int issue_progress(struct issue_job *work, int64_t done, int64_t total)
{
	int64_t now_us = clock_monotonic_us();
	if (now_us - work->progress_at_us < work->progress_interval_us)
		return OK;
	work->progress_at_us = now_us;
	int result = issue_check_space(work);
	if (result)
		return result;
	assert(total > 0 && done >= 0 && done <= total);
	int64_t share = 1000 * done / total, parts = issue_parts_permille(work);
	int64_t permille = work->progress_from + (work->progress_to - work->progress_from) *
	                                             (parts < share ? parts : share) / 1000;
	return work->watch->progress(work->watch->context, permille);
}

static void begin_step(struct issue_job *work, int64_t to)
{
	assert(to > work->progress_to && to <= PROGRESS_END);
	work->progress_from = work->progress_to;
	work->progress_to = to;
}

int issue_each_event(const struct issue_job *work, bool with_content,
                     int (*each)(void *context, const struct event *event), void *context,
                     struct error *error)
{
	const struct certification *certification = work->certification;
	struct event_filter filter = {
		.from_us = TIME_NONE,
		.to_us = TIME_NONE,
		.seq_from = certification->first_sequence,
		.seq_to = certification->last_sequence,
		.status = -1,
	};
	return store_list_events(work->service->store, certification->account, certification->chain,
	                         &filter, 0, with_content, each, context, error);
}

/* ---- input ---- */

static int load_configurations(struct issue_job *work, struct error *error)
{
	struct json *versions;
	int result = json_parse(work->arena, slice_of(work->certification->config_versions), NULL,
	                        &versions, error);
	if (result)
		return result;
	work->configurations =
		arena_alloc(work->arena, (versions->count + 1) * sizeof *work->configurations);
	if (!work->configurations)
		return ERR_NO_MEMORY;
	for (const struct json *item = versions->first; item; item = item->next) {
		int64_t version = (int64_t)item->number;
		struct channel of_version;
		result = store_get_channel_versions(work->service->store, work->certification->account,
		                                    work->certification->channel, version + 1, 1,
		                                    work->arena, &of_version, error);
		if (result)
			return result;
		const struct channel_config *config = of_version.configs;
		if (!of_version.config_count || config->facts.version != version)
			return error_cause(error, ERR_CORRUPT, "no configuration version %" PRId64, version);
		work->configurations[work->configuration_count++] =
			(struct report_configuration){config->facts, config->hash};
		work->configurations[work->configuration_count - 1].facts.channel_id =
			work->channel.channel_id;
	}
	return work->configuration_count
	           ? OK
	           : error_cause(error, ERR_CORRUPT, "the certification has no configuration version");
}

static int load(struct issue_job *work, struct error *error)
{
	struct service *service = work->service;
	const struct certification *certification = work->certification;
	work->signer = (struct cms_signer){service->signer, SIGNER_ARCHIVE};
	work->signing = (struct cms_signing){
		.certificates_pem = signer_certificates(service->signer),
		.sign = cms_sign_with_signer,
		.sign_context = &work->signer,
		.timestamp = certification->mode == MODE_LIVE ? issue_stamp : NULL,
		.timestamp_context = work,
	};
	snprintf(work->archive_name, sizeof work->archive_name, "%s-evidence.zip",
	         certification->certification_id);
	snprintf(work->verification_url, sizeof work->verification_url, "%s/verify/%s",
	         service->settings->service_public_url, certification->verification_code);
	int result = store_get_chain(service->store, certification->account, certification->chain,
	                             &work->head, error);
	if (!result)
		result = store_get_chain_hash(service->store, certification->account, certification->chain,
		                              certification->first_sequence - 1, &work->chain_hash_before,
		                              error);
	if (!result)
		result = store_get_channel_versions(service->store, certification->account,
		                                    certification->channel, INT64_MAX, 1, work->arena,
		                                    &work->channel, error);
	return result ? result : load_configurations(work, error);
}

/* ---- reports ---- */

static int list_report_parts(struct issue_job *work, struct report_facts *facts)
{
	size_t rows = work->part_count < REPORT_PART_ROWS_MAX ? work->part_count : REPORT_PART_ROWS_MAX;
	struct report_part *parts = arena_alloc(work->arena, (rows + 1) * sizeof *parts);
	if (!parts)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < rows; i++)
		parts[i] = (struct report_part){work->parts[i].name, (int64_t)work->parts[i].size_bytes,
		                                work->parts[i].sha256};
	facts->parts = parts;
	facts->part_rows = rows;
	facts->part_count = (int64_t)work->part_count;
	return OK;
}

static int gather_facts(struct issue_job *work, struct report_facts *ret_facts)
{
	const struct certification *certification = work->certification;
	size_t configurations = work->configuration_count;
	*ret_facts = (struct report_facts){
		.mode = certification->mode,
		.service_name = work->service->settings->service_name,
		.certification_id = certification->certification_id,
		.verification_code = certification->verification_code,
		.verification_url = work->verification_url,
		.requested_at_us = certification->requested_at_us,
		.issued_at_us = work->issued_at_us,
		.channel_id = certification->channel_id,
		.modality = work->configurations[configurations - 1].facts.modality,
		.configurations = work->configurations,
		.configuration_rows = configurations < REPORT_CONFIGURATION_ROWS_MAX
	                              ? configurations
	                              : REPORT_CONFIGURATION_ROWS_MAX,
		.configuration_count = (int64_t)configurations,
		.from_us = certification->range.from_us,
		.to_us = certification->range.to_us,
		.seq_from = certification->range.seq_from,
		.seq_to = certification->range.seq_to,
		.first_sequence = certification->first_sequence,
		.last_sequence = certification->last_sequence,
		.event_count = issue_event_count(work),
		.first_received_at_us = work->first_received_at_us,
		.last_received_at_us = work->last_received_at_us,
		.chain_hash_before = work->chain_hash_before,
		.first_chain_hash = work->first_chain_hash,
		.last_chain_hash = work->last_chain_hash,
		.events = work->events,
		.event_rows = work->event_rows,
		.seals = work->seals,
		.seal_rows = work->seal_rows,
		.seal_count = work->seal_count,
		.authorities = work->authorities,
		.authority_rows = work->authority_rows,
		.log = work->log,
		.has_history = work->has_history,
		.archive_name = work->archive_name,
		.archive_size_bytes = (int64_t)work->archive_sum.size_bytes,
		.archive_digest = work->archive_sum.sha256,
	};
	return list_report_parts(work, ret_facts);
}

static int make_report(struct issue_job *work, const struct report_facts *facts,
                       enum language language, struct document *document, struct error *error)
{
	document->kind = DOCUMENT_REPORT;
	document->language = language;
	snprintf(document->name, sizeof document->name, "%s-%s.pdf",
	         work->certification->certification_id, language == LANGUAGE_SPANISH ? "es" : "en");
	char unsigned_path[ISSUE_PATH_MAX], path[ISSUE_PATH_MAX];
	issue_path(work, "unsigned.pdf", unsigned_path);
	issue_path(work, document->name, path);
	int result = renderer_draw(work->service->renderer, facts, language, unsigned_path, error);
	struct pdf_signed made;
	struct pdf_long_term lasting = {issue_collect, work};
	work->signer.purpose = SIGNER_REPORT;
	if (!result)
		result = pdf_sign(unsigned_path, path, work->issued_at_us, &work->signing,
		                  work->signing.timestamp && work->service->revocation ? &lasting : NULL,
		                  &made, error);
	if (!result)
		result = issue_check_level(work, facts, error);
	if (!result) {
		document->size_bytes = made.size_bytes;
		document->sha256 = made.digest;
		result = issue_progress(work, 1, 1);
	}
	return result;
}

/* ---- the whole ---- */

/* Creates the documents; `documents` receives the reports, then the archive. The parts are in
 * work->parts. */
static int make_documents(struct issue_job *work, struct document *documents, struct error *error)
{
	begin_step(work, PROGRESS_ARCHIVE);
	int result = issue_start_parts(work, error);
	if (!result)
		result = issue_archive(work, error);
	issue_free_parts(work);
	begin_step(work, PROGRESS_REPORTS);
	struct report_facts facts;
	if (!result)
		result = gather_facts(work, &facts);
	if (!result)
		result = issue_predict_level(work, &facts, error);
	if (!result)
		result = make_report(work, &facts, LANGUAGE_SPANISH, &documents[0], error);
	if (!result)
		result = make_report(work, &facts, LANGUAGE_ENGLISH, &documents[1], error);
	if (result)
		return result;
	documents[2].kind = DOCUMENT_EVIDENCE;
	memcpy(documents[2].name, work->archive_name, sizeof documents[2].name);
	documents[2].size_bytes = (int64_t)work->archive_sum.size_bytes;
	documents[2].sha256 = work->archive_sum.sha256;
	return OK;
}

/* Finds the corresponding document of another certification. */
static const struct document *find_like(const struct document *document,
                                        const struct document *others, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (others[i].kind == document->kind &&
		    (document->kind != DOCUMENT_REPORT || others[i].language == document->language) &&
		    (document->kind != DOCUMENT_PART || strcmp(others[i].name, document->name) == 0))
			return &others[i];
	return NULL;
}

/* Stores only the difference from the corresponding document of the same events; the difference is
 * written to `own`. A document that cannot be compared is stored whole. */
static bool share_document(struct issue_job *work, struct document *document,
                           const struct document *like, const char *path, const char *own)
{
	struct content_difference found;
	const char *shared = like->shared[0] ? like->shared : like->object;
	if (content_compare(work->service->content, path, shared, own, &found, NULL))
		return false;
	_Static_assert(sizeof document->pieces == sizeof found.pieces, "size of the list of pieces");
	memcpy(document->pieces, found.pieces, sizeof document->pieces);
	snprintf(document->shared, sizeof document->shared, "%s", shared);
	document->own_bytes = (int64_t)found.own_bytes;
	return true;
}

static int store_document(struct issue_job *work, struct document *document,
                          const struct document *like, struct error *error)
{
	char path[ISSUE_PATH_MAX], own[ISSUE_PATH_MAX];
	issue_path(work, document->name, path);
	issue_path(work, "own", own);
	bool shares = like && share_document(work, document, like, path, own);
	int result =
		content_put_file(work->service->content, shares ? own : path, document->object, error);
	unlink(own);
	if (!result)
		unlink(path);
	return result;
}

static int find_like_documents(struct issue_job *work, struct document **ret_documents,
                               size_t *ret_count, struct error *error)
{
	const struct settings *settings = work->service->settings;
	*ret_documents = NULL;
	*ret_count = 0;
	if (settings->certification_share_within == 0)
		return OK;
	/* The same period as at acceptance, which reserved less space for a document that shares bytes,
	 * however long it has waited. */
	int64_t since_us = work->certification->requested_at_us - settings->certification_share_within;
	return store_list_same_range_documents(work->service->store, work->certification, since_us,
	                                       work->arena, ret_documents, ret_count, error);
}

/* Stores the documents under new names, so that leftovers of earlier attempts cannot be mistaken
 * for them. */
static int store_documents(struct issue_job *work, struct document *documents, size_t count,
                           struct error *error)
{
	begin_step(work, PROGRESS_END);
	struct document *others;
	size_t stored = 0, other_count;
	int result = find_like_documents(work, &others, &other_count, error);
	/* The name contains the certification, so that the sweep does not delete the object, however
	 * long the work takes. */
	char area[ID_SIZE + 8];
	snprintf(area, sizeof area, "issued/%s", work->certification->certification_id);
	for (; stored < count && !result; stored++) {
		content_fresh_name(area, documents[stored].object);
		result = store_document(work, &documents[stored],
		                        find_like(&documents[stored], others, other_count), error);
		if (!result)
			result = issue_progress(work, (int64_t)stored, (int64_t)count);
	}
	if (result)
		for (size_t i = 0; i < stored; i++)
			content_discard(work->service->content, documents[i].object);
	return result;
}

static int issue(struct issue_job *work, struct issue_result *ret_result, struct error *error)
{
	int result = load(work, error);
	if (result)
		return result;
	struct document made[3] = {0};
	result = make_documents(work, made, error);
	if (result)
		return result;
	size_t count = 3 + work->part_count;
	struct document *documents = arena_alloc(work->arena, count * sizeof *documents);
	if (!documents)
		return error_cause(error, ERR_NO_MEMORY, "%zu documents", count);
	memcpy(documents, made, sizeof made);
	for (size_t i = 0; i < work->part_count; i++) {
		struct document *document = &documents[3 + i];
		document->kind = DOCUMENT_PART;
		snprintf(document->name, sizeof document->name, "%s", work->parts[i].name);
		document->size_bytes = (int64_t)work->parts[i].size_bytes;
		document->sha256 = work->parts[i].sha256;
	}
	assert(!work->making); /* the parts are whole, and no thread writes them */
	begin_step(work, PROGRESS_VERIFIED);
	result = issue_verify(work, documents, count, error);
	if (!result)
		result = store_documents(work, documents, count, error);
	if (!result)
		*ret_result = (struct issue_result){work->issued_at_us, documents, count};
	return result;
}

int issue_certification(struct service *service, const struct certification *certification,
                        const char *directory, const struct issue_listener *watch,
                        struct arena *arena, struct issue_result *ret_result, struct error *error)
{
	struct issue_job work = {
		.service = service,
		.certification = certification,
		.directory = directory,
		.watch = watch,
		.arena = arena,
		.issued_at_us = clock_now_us(),
		.progress_interval_us = tuned_up_to("progress_us", PROGRESS_INTERVAL_US),
	};
	buf_init(&work.authority_path, AUTHORITY_PATH_MAX);
	buf_init(&work.path_inside, AUTHORITY_PATH_MAX);
	int result = issue_reserve_space(&work, error);
	if (!result)
		result = issue(&work, ret_result, error);
	issue_release_space(&work);
	buf_free(&work.authority_path);
	buf_free(&work.path_inside);
	return result;
}
