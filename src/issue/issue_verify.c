/* Verification of issued documents before they are handed out. */
#include "evidence/signers.h"
#include "evidence/timestamp_roots.h"
#include "issue/issue_job.h"
#include "seal/authority.h"
#include "seal/signer.h"
#include "store/evidence/signer_records.h"
#include "verify/verify.h"

#define ROOTS_MAX ((size_t)4 << 20)

/* The documents to verify, and the trust roots. */
struct question {
	struct issue_job *work;
	const char **paths;
	size_t count;
	struct buf signers, timestamps; /* PEM */
};

static int report_progress(void *context, const char *path, uint64_t done, uint64_t total)
{
	/* A damaged archive may have more events than its manifest states. */
	uint64_t most = total > 0 ? total : 1;
	return issue_progress(context, (int64_t)(done < most ? done : most), (int64_t)most);
}

static int not_valid(const struct verify_result *found, struct error *error)
{
	const struct verify_finding *finding = found->first;
	while (finding && finding->severity == VERIFY_WARNING)
		finding = finding->next;
	const char *slash = finding ? strrchr(finding->path, '/') : NULL;
	return error_cause(error, ERR_INVALID_EVIDENCE, "the certification does not verify: %s %s: %s",
	                   slash ? slash + 1 : "", finding ? finding->where : "",
	                   finding ? finding->what : "no reason given");
}

/* Returns the last such finding, which concerns the authorities. */
static const char *unestablished(const struct verify_result *found)
{
	const char *what = "";
	for (const struct verify_finding *at = found->first; at; at = at->next)
		if (at->severity == VERIFY_UNESTABLISHED)
			what = at->what;
	return what;
}

static struct slice roots_of(const struct buf *pem)
{
	return pem->size > 0 ? buf_slice(pem) : slice_make(NULL, 0);
}

/* The key may have been ended or replaced since it signed. The timestamp of its signature may then
 * be later than the end, and the signature would be indistinguishable from one by a stolen key. */
static int check_in_force(const struct question *question, const struct verify_result *found,
                          struct error *error)
{
	struct sha256 in_force;
	bool any = false;
	int result = store_get_signer(question->work->service->store, &in_force, &any, error);
	for (const struct verify_identity *at = found->signers.first; at && !result; at = at->next)
		if (!any || !sha256_equal(&at->certificate.sha256, &in_force))
			result = error_cause(
				error, ERR_UNAVAILABLE,
				"the key that signed it is no longer in force; it will be issued again");
	return result;
}

static int judge(const struct question *question, const struct verify_result *found,
                 struct error *error)
{
	switch (verify_verdict(found)) {
	case VERIFY_VALID: return check_in_force(question, found, error);
	case VERIFY_AUTHORITY_OPEN:
		return error_cause(error, ERR_UNAVAILABLE,
		                   "a round's timestamp leads to none of the known roots and could not be "
		                   "verified; add its authority's root to tsa.roots; %s",
		                   unestablished(found));
	default: return not_valid(found, error);
	}
}

static int verify_by_roots(const struct question *question, struct error *error)
{
	struct trust_roots roots = {.signers = roots_of(&question->signers),
	                            .timestamps = roots_of(&question->timestamps)};
	struct verify_options options = {.progress = report_progress,
	                                 .progress_context = question->work,
	                                 .use_threads = true,
	                                 .own_seals = true,
	                                 .stop_early = true};
	struct verify_result found;
	int result = verify_paths(question->paths, question->count, &roots, &options, &found, error);
	if (result)
		return result;
	result = judge(question, &found, error);
	verify_result_free(&found);
	return result;
}

/* Reads the roots of trust.pem, separately for signatures and timestamps. Only self-signed
 * certificates are used, so that the documents must contain all intermediate certificates. Roots of
 * former keys and authorities are included. */
static int find_roots(struct question *question, struct error *error)
{
	const struct service *service = question->work->service;
	int result = trust_add_roots(signer_trust(service->signer), &question->signers, error);
	if (!result)
		result = signers_add_roots(service->store, &question->signers, error);
	if (!result)
		result = authorities_trust(service->authorities, &question->timestamps, error);
	if (!result)
		result = timestamp_roots_add(service->store, &question->timestamps, error);
	if (!result && (buf_check(&question->signers) || buf_check(&question->timestamps)))
		result = error_cause(error, ERR_NO_MEMORY, "trusted roots");
	return result;
}

int issue_verify(struct issue_job *work, const struct document *documents, size_t count,
                 struct error *error)
{
	struct question question = {.work = work, .count = count};
	question.paths = arena_alloc(work->arena, count * sizeof *question.paths);
	if (!question.paths)
		return error_cause(error, ERR_NO_MEMORY, "%zu paths", count);
	for (size_t i = 0; i < count; i++) {
		question.paths[i] = arena_printf(work->arena, "%s/%s", work->directory, documents[i].name);
		if (!question.paths[i])
			return error_cause(error, ERR_NO_MEMORY, "%zu paths", count);
	}
	buf_init(&question.signers, ROOTS_MAX);
	buf_init(&question.timestamps, ROOTS_MAX);
	int result = find_roots(&question, error);
	if (!result)
		result = verify_by_roots(&question, error);
	buf_free(&question.signers);
	buf_free(&question.timestamps);
	return result;
}
