#include "service/token_revocations.h"

#include <stdlib.h>

#include "base/base64.h"
#include "base/log.h"
#include "seal/revocation_client.h"
#include "service/issue_work.h"

#define PATH_PEM_MAX ((size_t)512 << 10)
#define LINE_FRAME_SIZE 256 /* of a line of the archive, beside the object itself */

/* ---- getting it ---- */

/* What was asked for and can stand in an archive: the certificates do already. */
static int keep_revocations(struct token_revocations *all, struct known_path *path,
                            const struct validation_set *got, struct error *error)
{
	int result = OK;
	for (size_t i = 0; i < got->count && !result; i++) {
		const struct validation_object *object = &got->objects[i];
		if (object->kind == VALIDATION_CERTIFICATE)
			continue;
		if (BASE64_SIZE(object->der.size) + LINE_FRAME_SIZE > ARCHIVE_LINE_MAX ||
		    object->der.size > TOKEN_REVOCATIONS_BYTES_MAX - all->size_bytes) {
			log_warning("revocation_data_too_large", "certification_id",
			            all->work->certification->certification_id, "kind",
			            validation_kind_text(object->kind));
			continue;
		}
		all->size_bytes += object->der.size;
		result = validation_add(&path->set, object->kind, object->der, error);
	}
	return result;
}

/* Nobody answers any more for a certificate that has ended, and nobody could be believed. */
static bool can_be_had(const struct revocation_verdict *lack, int64_t now_us)
{
	return lack->outcome != REVOCATION_UNPUBLISHED && lack->outcome != REVOCATION_REVOKED &&
	       lack->certificate.not_after_us > now_us;
}

/* What an authority that publishes it did not give may come with the next attempt. */
static int judge_lack(const struct token_revocations *all, const struct revocation_verdict *lack,
                      int64_t now_us, struct error *error)
{
	enum level least = LEVEL_B;
	const char *setting = all->work->service->settings->certification_level;
	if (!lack)
		return OK;
	if (*setting && !level_parse(setting, &least))
		return error_cause(error, ERR_VALIDATION, "certification.level");
	if (least > LEVEL_T && can_be_had(lack, now_us))
		return error_cause(error, ERR_UNAVAILABLE, "revocation data of %s: %s, %s",
		                   lack->certificate.name, revocation_outcome_text(lack->outcome),
		                   lack->cause);
	log_info("timestamp_left_open", "certification_id", all->work->certification->certification_id,
	         "certificate", lack->certificate.name, "outcome",
	         revocation_outcome_text(lack->outcome), "cause", lack->cause);
	return OK;
}

static int fetch(struct token_revocations *all, struct slice pem, struct known_path *path,
                 struct error *error)
{
	VALIDATION_AUTO struct validation_set got = {0};
	struct revocation_moment now = {clock_now_us(), true};
	struct revocation_verdict *verdicts = calloc(REVOCATION_PATH_MAX, sizeof *verdicts);
	size_t count = 0;
	int result = verdicts ? revocation_fetch(all->work->service->revocation, pem, &now, &got,
	                                         verdicts, &count, error)
	                      : ERR_NO_MEMORY;
	if (!result)
		result = judge_lack(all, revocation_lack(verdicts, count), now.time_us, error);
	if (!result)
		result = keep_revocations(all, path, &got, error);
	free(verdicts);
	return result;
}

/* A path that cannot be asked about is left open. */
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
	if (result == ERR_NO_MEMORY || result == ERR_UNAVAILABLE)
		return error_cause(error, result, "%s", local.cause);
	if (result)
		log_warning("timestamp_left_open", "certification_id",
		            all->work->certification->certification_id, "cause",
		            error_reason(&local, result));
	return OK;
}

/* ---- naming it ---- */

/* *ret_path NULL: there are too many. */
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
	if (*ret_path || all->count == TOKEN_PATHS_MAX)
		return OK;
	*ret_path = &all->paths[all->count++];
	**ret_path = (struct known_path){.digest = digest, .minimal_until_us = TIME_NONE};
	return get(all, der, *ret_path, error);
}

static int keep_minimal(struct known_path *path, const struct validation_set *last,
                        int64_t until_us, struct error *error)
{
	validation_free(&path->minimal);
	path->minimal_until_us = TIME_NONE;
	int result = validation_add_all(&path->minimal, last, error);
	if (!result)
		path->minimal_until_us = until_us;
	return result;
}

int token_revocations_find(struct token_revocations *all, struct slice der, int64_t gen_time_us,
                           const struct validation_set **ret_set, struct error *error)
{
	struct known_path *path;
	struct token_verdict verdict;
	validation_free(&all->last);
	*ret_set = &all->last;
	int result = find_path(all, der, &path, error);
	if (result || !path || path->set.count == 0)
		return result;
	if (gen_time_us <= path->minimal_until_us) {
		*ret_set = &path->minimal;
		return OK;
	}
	result = validation_add_all(&all->last, &path->set, error);
	if (!result)
		result = revocation_judge_token(der, gen_time_us, &all->last, &verdict, error);
	if (!result && verdict.standing == TOKEN_GOOD && verdict.same_until_us != TIME_NONE)
		result = keep_minimal(path, &all->last, verdict.same_until_us, error);
	return result;
}

void token_revocations_free(struct token_revocations *all)
{
	for (size_t i = 0; i < all->count; i++) {
		validation_free(&all->paths[i].set);
		validation_free(&all->paths[i].minimal);
	}
	free(all->paths);
	validation_free(&all->last);
}
