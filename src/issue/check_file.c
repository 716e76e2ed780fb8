/* Verification of an uploaded file by this service. */
#include <limits.h>
#include <stdio.h>

#include "base/durable.h"
#include "base/json.h"
#include "evidence/log_publisher.h"
#include "evidence/signers.h"
#include "evidence/timestamp_roots.h"
#include "issue/check_file.h"
#include "issue/file_origin.h"
#include "seal/authority.h"
#include "seal/signer.h"
#include "tlog/policy.h"
#include "verify/verifier.h"

#define TRUST_MAX ((size_t)4 << 20)

/* Appends the roots as PEM. */
static int add_roots(struct service *service, struct buf *out, struct error *error)
{
	buf_add_slice(out, signer_trust(service->signer));
	int result = authorities_trust(service->authorities, out, error);
	if (!result)
		result = signers_add_roots(service->store, out, error);
	if (!result)
		result = timestamp_roots_add(service->store, out, error);
	return result ? result : buf_check(out);
}

int service_write_trust(struct service *service, struct error *error)
{
	BUF_AUTO struct buf roots;
	buf_init(&roots, TRUST_MAX);
	int result = add_roots(service, &roots, error);
	if (result)
		return result;
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/trust.pem", service->settings->service_data_dir);
	return durable_replace(path, 0644, buf_slice(&roots), error);
}

/* Parses the verifier's output. The tree points into the text. */
static int read_result(const struct buf *text, struct arena *arena, struct json **ret_json,
                       struct error *error)
{
	size_t size = text->size;
	while (size > 0 && text->data[size - 1] == '\n')
		size--;
	const char *copy = arena_copy(arena, text->data, size);
	if (!copy)
		return ERR_NO_MEMORY;
	int result = json_parse(arena, slice_make(copy, size), NULL, ret_json, error);
	/* The verifier is untrusted: the file may have exploited it. */
	if (result == ERR_VALIDATION || (!result && (*ret_json)->type != JSON_OBJECT))
		return error_cause(error, ERR_UNAVAILABLE, "the output of the verifier is not JSON");
	return result;
}

int service_check_file(struct service *service, int file, const struct sha256 *digest,
                       struct arena *arena, struct file_check *ret_check, struct error *error)
{
	BUF_AUTO struct buf roots, policy, output;
	buf_init(&roots, TRUST_MAX);
	buf_init(&policy, POLICY_SIZE_MAX);
	buf_init(&output, VERIFIER_RESULT_MAX);
	struct file_check check = {0};
	int result = add_roots(service, &roots, error);
	if (!result)
		result = log_policy_write(service, &policy, error);
	if (!result)
		result = verifier_check(file, buf_slice(&roots), buf_slice(&policy), &output, error);
	if (!result)
		result = read_result(&output, arena, &check.verification, error);
	if (!result)
		result = file_origin_judge(service, digest, arena, &check, error);
	if (!result)
		*ret_check = check;
	return result;
}
