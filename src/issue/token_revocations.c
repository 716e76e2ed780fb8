#include "issue/token_revocations.h"
#include "service/read_only.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/log.h"
#include "issue/issue_job.h"
#include "seal/revocation_client.h"

#define PATH_PEM_MAX ((size_t)512 << 10)
#define LINE_FRAME_SIZE 256 /* overhead of a line of the archive */
/* Without this limit, every certification would wait for an authority that has ceased to exist. */
#define WAIT_MAX_US (3600 * US_PER_SECOND)

/* ---- fetching ---- */

static bool is_kept(const struct token_revocations *all, const struct sha256 *sha256)
{
	bool found = false;
	for (size_t i = 0; i < all->count && !found; i++)
		found = validation_set_find(&all->paths[i].set, sha256) != NULL;
	return found;
}

/* Keeps fetched revocation data that fits into an archive; the certificates are already in it. Data
 * shared by several paths is counted once. */
static int keep_revocations(struct token_revocations *all, struct known_path *path,
                            const struct validation_set *got, struct error *error)
{
	int result = OK;
	for (size_t i = 0; i < got->count && !result; i++) {
		const struct validation_object *object = &got->objects[i];
		if (object->kind == VALIDATION_CERTIFICATE)
			continue;
		size_t more_bytes = is_kept(all, &object->sha256) ? 0 : object->der.size;
		if (BASE64_SIZE(object->der.size) + LINE_FRAME_SIZE > ARCHIVE_LINE_MAX ||
		    more_bytes > TOKEN_REVOCATIONS_BYTES_MAX - all->size_bytes) {
			log_warning("revocation_data_too_large", "certification_id",
			            all->work->certification->certification_id, "kind",
			            validation_kind_text(object->kind));
			continue;
		}
		all->size_bytes += more_bytes;
		result = validation_set_add(&path->set, object->kind, object->der, error);
	}
	return result;
}

/* Returns whether the data may become available. For an expired certificate no authority responds,
 * and none would be credible. */
static bool may_come(const struct revocation_verdict *verdict, int64_t now_us)
{
	return !revocation_is_sufficient(verdict->outcome) &&
	       verdict->outcome != REVOCATION_UNPUBLISHED && verdict->outcome != REVOCATION_REVOKED &&
	       verdict->certificate.not_after_us > now_us;
}

static void log_missing(const struct token_revocations *all, const struct revocation_verdict *lack)
{
	log_info("timestamp_revocation_unknown", "certification_id",
	         all->work->certification->certification_id, "certificate", lack->certificate.name,
	         "outcome", revocation_outcome_text(lack->outcome), "cause", lack->cause);
}

/* The topmost certificate is not considered: it is the root, or its issuer is unknown. */
static void evaluate(const struct token_revocations *all, const struct revocation_verdict *verdicts,
                     size_t count, int64_t now_us, struct known_path *path)
{
	const struct revocation_verdict *awaited = NULL;
	const struct revocation_verdict *lack = revocation_find_insufficient(verdicts, count);
	path->unpublished = true;
	for (size_t i = 0; i < count; i++) {
		path->unpublished &= revocation_is_sufficient(verdicts[i].outcome) ||
		                     verdicts[i].outcome == REVOCATION_UNPUBLISHED;
		if (!awaited && i + 1 < count && may_come(&verdicts[i], now_us))
			awaited = &verdicts[i];
	}
	path->awaited = awaited != NULL;
	if (awaited)
		snprintf(path->cause, sizeof path->cause, "revocation data of %.200s: %s, %.200s",
		         awaited->certificate.name, revocation_outcome_text(awaited->outcome),
		         awaited->cause);
	else if (lack)
		log_missing(all, lack);
}

static int fetch(struct token_revocations *all, struct slice pem, struct known_path *path,
                 struct error *error)
{
	VALIDATION_SET_AUTO struct validation_set got = {0};
	struct revocation_moment now = {clock_now_us(), true};
	struct revocation_verdict *verdicts = calloc(REVOCATION_PATH_MAX, sizeof *verdicts);
	size_t count = 0;
	int result = verdicts ? revocation_fetch(all->work->service->revocation, pem, &now, &got,
	                                         verdicts, &count, error)
	                      : ERR_NO_MEMORY;
	if (!result)
		evaluate(all, verdicts, count, now.time_us, path);
	if (!result)
		result = keep_revocations(all, path, &got, error);
	free(verdicts);
	return result;
}

/* Fetches the data of a path. If the path cannot be evaluated, its data stays empty. */
static int get(struct token_revocations *all, struct slice der, struct known_path *path,
               struct error *error)
{
	BUF_AUTO struct buf pem;
	struct certificate_facts facts;
	int64_t from_us, until_us;
	struct error local = {0};
	buf_init(&pem, PATH_PEM_MAX);
	if (!all->work->service->revocation)
		return OK;
	int result = trust_path_to_pem(der, &pem, &local);
	if (!result)
		result = trust_describe_path(buf_slice(&pem), &facts, &from_us, &until_us, &local);
	if (!result && until_us > clock_now_us())
		result = fetch(all, buf_slice(&pem), path, &local);
	if (result == ERR_NO_MEMORY)
		return result;
	if (result)
		log_warning("timestamp_revocation_unknown", "certification_id",
		            all->work->certification->certification_id, "cause",
		            error_reason(&local, result));
	return OK;
}

/* ---- selection ---- */

static void log_too_many_paths(struct token_revocations *all)
{
	if (!all->too_many_logged)
		log_warning("timestamp_revocation_unknown", "certification_id",
		            all->work->certification->certification_id, "cause",
		            "the timestamps have more certificate paths than the limit");
	all->too_many_logged = true;
}

/* *ret_path NULL: the limit of paths is reached. */
static int find_path(struct token_revocations *all, struct slice der, struct known_path **ret_path,
                     struct error *error)
{
	struct sha256 digest = sha256_of(der.data, der.size);
	*ret_path = NULL;
	if (!all->paths)
		all->paths = calloc(TOKEN_PATHS_MAX, sizeof *all->paths);
	if (!all->paths)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < all->count; i++)
		if (sha256_equal(&all->paths[i].digest, &digest))
			*ret_path = &all->paths[i];
	if (*ret_path)
		return OK;
	if (all->count == TOKEN_PATHS_MAX) {
		log_too_many_paths(all);
		return OK;
	}
	*ret_path = &all->paths[all->count++];
	**ret_path = (struct known_path){.digest = digest, .minimal_until_us = TIME_NONE};
	return get(all, der, *ret_path, error);
}

static int keep_minimal(struct known_path *path, const struct validation_set *last,
                        int64_t until_us, struct error *error)
{
	validation_set_free(&path->minimal);
	path->minimal_until_us = TIME_NONE;
	int result = validation_set_add_all(&path->minimal, last, error);
	if (!result)
		path->minimal_until_us = until_us;
	return result;
}

/* Fills in all->last, or sets *ret_set to the minimal set. */
static int find_needed(struct token_revocations *all, struct known_path *path, struct slice der,
                       int64_t gen_time_us, const struct validation_set **ret_set,
                       enum token_state *ret_standing, struct error *error)
{
	struct token_verdict verdict;
	*ret_standing = TOKEN_GOOD;
	if (gen_time_us <= path->minimal_until_us) {
		*ret_set = &path->minimal;
		return OK;
	}
	int result = validation_set_add_all(&all->last, &path->set, error);
	if (!result)
		result = revocation_judge_token(der, gen_time_us, &all->last, &verdict, error);
	if (!result)
		*ret_standing = verdict.standing;
	if (!result && verdict.standing == TOKEN_GOOD && verdict.same_until_us != TIME_NONE)
		result = keep_minimal(path, &all->last, verdict.same_until_us, error);
	return result;
}

int token_revocations_find(struct token_revocations *all, struct slice der, int64_t gen_time_us,
                           const struct validation_set **ret_set,
                           struct token_prospect *ret_prospect, struct error *error)
{
	struct known_path *path;
	enum token_state standing = TOKEN_UNDECIDED;
	validation_set_free(&all->last);
	*ret_set = &all->last;
	*ret_prospect = (struct token_prospect){0};
	int result = find_path(all, der, &path, error);
	if (!result && path && path->set.count > 0)
		result = find_needed(all, path, der, gen_time_us, ret_set, &standing, error);
	if (result || !path)
		return result;
	ret_prospect->suffices = standing == TOKEN_GOOD || path->unpublished;
	if (path->awaited && standing == TOKEN_UNDECIDED)
		ret_prospect->awaited = path;
	return OK;
}

/* ---- waiting ---- */

static bool may_wait(const struct token_revocations *all)
{
	const struct service *service = all->work->service;
	int64_t half_us = service->settings->certification_give_up_after / 2;
	int64_t from_us = read_only_waiting_since(service, all->work->certification->requested_at_us);
	int64_t waited_us = store_now_us(service->store) - from_us;
	enum level least = LEVEL_B;
	return level_parse(service->settings->certification_level, &least) && least > LEVEL_T &&
	       waited_us < (half_us < WAIT_MAX_US ? half_us : WAIT_MAX_US);
}

int token_revocations_check_round(struct token_revocations *all,
                                  const struct token_prospect *tokens, size_t count,
                                  struct error *error)
{
	bool suffices = false;
	for (size_t i = 0; i < count; i++)
		suffices |= tokens[i].suffices;
	for (size_t i = 0; i < count; i++) {
		struct known_path *awaited = tokens[i].awaited;
		if (!awaited)
			continue;
		if (!suffices && may_wait(all))
			return error_cause(error, ERR_UNAVAILABLE, "%s", awaited->cause);
		if (!awaited->is_told)
			log_warning("timestamp_revocation_unknown", "certification_id",
			            all->work->certification->certification_id, "cause", awaited->cause);
		awaited->is_told = true;
	}
	return OK;
}

void token_revocations_free(struct token_revocations *all)
{
	for (size_t i = 0; i < all->count; i++) {
		validation_set_free(&all->paths[i].set);
		validation_set_free(&all->paths[i].minimal);
	}
	free(all->paths);
	validation_set_free(&all->last);
}
