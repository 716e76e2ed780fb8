#include "evidence/record_validation.h"

#include <stdlib.h>

#include "base/log.h"
#include "seal/revocation_client.h"
#include "seal/revocation_token.h"
#include "store/events/validation_records.h"

#define PATH_PEM_MAX ((size_t)512 << 10)
#define STEP_MEMORY_MAX ((size_t)8 << 20)
/* Longest delay for the client that fetches a record. */
#define WAIT_MS 2000

static int add_certificates(struct store *store, struct slice token, struct buf *issuers,
                            struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, STEP_MEMORY_MAX);
	struct sha256 hash = sha256_of(token.data, token.size);
	const struct validation_object *objects;
	size_t count = 0;
	int result = store_list_validation(store, &hash, &arena, &objects, &count, error);
	for (size_t i = 0; i < count && !result; i++)
		if (objects[i].kind == VALIDATION_CERTIFICATE)
			buf_add_slice(issuers, objects[i].der);
	return result ? result : buf_check(issuers);
}

/* Copies the CRLs and OCSP responses only. */
static int keep(const struct validation_set *got, struct validation_set *set, struct error *error)
{
	int result = OK;
	for (size_t i = 0; i < got->count && !result; i++)
		if (got->objects[i].kind != VALIDATION_CERTIFICATE)
			result = validation_set_add(set, got->objects[i].kind, got->objects[i].der, error);
	return result;
}

static int fetch(struct revocation_client *revocation, struct slice path, int64_t gen_time_us,
                 struct validation_set *set, struct error *error)
{
	BUF_AUTO struct buf pem;
	VALIDATION_SET_AUTO struct validation_set got = {0};
	/* Times in revocation data have no fractions: data issued in the same second is not fetched
	 * again. */
	struct revocation_moment at = {gen_time_us - gen_time_us % US_PER_SECOND, true};
	struct token_verdict verdict;
	size_t count = 0;
	struct revocation_verdict *verdicts = calloc(REVOCATION_PATH_MAX, sizeof *verdicts);
	buf_init(&pem, PATH_PEM_MAX);
	int result = verdicts ? trust_path_to_pem(path, &pem, error) : ERR_NO_MEMORY;
	if (!result)
		result = revocation_fetch_bounded(revocation, buf_slice(&pem), &at, WAIT_MS, &got, verdicts,
		                                  &count, error);
	if (!result)
		result = keep(&got, set, error);
	if (!result && set->count > 0)
		result = revocation_judge_token(path, gen_time_us, set, &verdict, error);
	free(verdicts);
	return result;
}

/* No authority responds for an expired certificate. */
static int add_revocations(struct revocation_client *revocation, struct slice token,
                           struct slice issuers, struct validation_set *set, struct error *error)
{
	BUF_AUTO struct buf path;
	int64_t gen_time_us = 0, until_us = 0;
	buf_init(&path, TIMESTAMP_PATH_MAX + TIMESTAMP_RESPONSE_MAX);
	int result = timestamp_valid_until(token, issuers, &gen_time_us, &until_us, error);
	if (result || until_us <= clock_now_us())
		return result;
	result = timestamp_known_path(token, issuers, &path, error);
	return result ? result : fetch(revocation, buf_slice(&path), gen_time_us, set, error);
}

/* The record is valid without this data. */
static int leave_out(int result, const struct error *cause)
{
	if (!result || result == ERR_NO_MEMORY)
		return result;
	log_warning("evidence_record_without_validation_data", "cause", error_reason(cause, result));
	return OK;
}

int record_validation_add(struct store *store, struct revocation_client *revocation,
                          struct slice token, struct evidence_record *record, struct error *error)
{
	BUF_AUTO struct buf issuers;
	VALIDATION_SET_AUTO struct validation_set set = {0};
	struct error cause = {0};
	buf_init(&issuers, TIMESTAMP_PATH_MAX);
	int result = add_certificates(store, token, &issuers, error);
	if (result == ERR_CORRUPT) {
		buf_clear(&issuers);
		result = leave_out(result, error);
	} else if (!result && revocation) {
		result = leave_out(add_revocations(revocation, token, buf_slice(&issuers), &set, &cause),
		                   &cause);
	}
	return result ? result : evidence_record_complete(record, buf_slice(&issuers), &set, error);
}
