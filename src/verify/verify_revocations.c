/* Determines whether the certificates of an archive's timestamps were revoked, by the objects to
 * which their tokens refer. The result for a path and its data is cached for all times to which it
 * applies. */
#include <stdio.h>

#include "seal/validation_set.h"
#include "verify/verify_chain.h"

static const enum validation_kind kinds[] = {
	[OBJECT_CERTIFICATE] = VALIDATION_CERTIFICATE,
	[OBJECT_CRL] = VALIDATION_CRL,
	[OBJECT_OCSP] = VALIDATION_OCSP,
};

static int gather(const struct chain *chain, const struct archive_token *token,
                  struct validation_set *set, struct error *error)
{
	int result = 0;
	for (size_t i = 0; i < token->revocation_count && !result; i++) {
		const struct object_state *object = chain_find_object(chain, &token->revocations[i]);
		result = validation_set_add(set, kinds[object->kind], object->der, error);
	}
	return result;
}

static struct sha256 name_of(const struct archive_token *token, struct slice path)
{
	struct sha256 both[2] = {
		sha256_of(path.data, path.size),
		sha256_of(token->revocations, token->revocation_count * sizeof *token->revocations),
	};
	return sha256_of(both, sizeof both);
}

static int judge(struct chain *chain, const struct archive_token *token, struct slice path,
                 struct token_verdict *ret_verdict, struct error *error)
{
	VALIDATION_SET_AUTO struct validation_set set = {0};
	int result = gather(chain, token, &set, error);
	if (!result)
		result = revocation_judge_token(path, token->gen_time_us, &set, ret_verdict, error);
	if (!result && set.count < token->revocation_count)
		result = finding_fail(error, FINDING_TOKEN_REVOCATION_SUPERFLUOUS);
	return result;
}

int chain_judge_revocations(struct chain *chain, const struct archive_token *token,
                            struct slice known, struct token_verdict *ret_verdict,
                            struct error *error)
{
	BUF_AUTO struct buf path;
	buf_init(&path, CMS_PATH_SIZE_MAX);
	*ret_verdict = (struct token_verdict){.standing = TOKEN_UNDECIDED};
	if (token->revocation_count == 0)
		return 0;
	if (token->revocation_count > ARCHIVE_TOKEN_REVOCATIONS_MAX)
		return finding_fail(error, FINDING_TOKEN_REVOCATION_COUNT, ARCHIVE_TOKEN_REVOCATIONS_MAX);
	int result = timestamp_known_path(token->token, known, &path, error);
	if (result)
		return result;
	struct sha256 name = name_of(token, buf_slice(&path));
	struct judged_path *judged = &chain->judged[name.bytes[0] % CHAIN_JUDGED_MAX];
	if (sha256_equal(&judged->name, &name) && token->gen_time_us <= judged->good_until_us) {
		ret_verdict->standing = TOKEN_GOOD;
		return 0;
	}
	result = judge(chain, token, buf_slice(&path), ret_verdict, error);
	if (!result && ret_verdict->standing == TOKEN_GOOD)
		*judged = (struct judged_path){name, ret_verdict->same_until_us};
	return result;
}

void chain_ignore_later_revocation(const struct stamp_state *stamp, struct token_verdict *verdict)
{
	if (stamp && verdict->standing == TOKEN_REVOKED && verdict->revoked_us > stamp->gen_time_us)
		verdict->standing = TOKEN_UNDECIDED;
}

bool chain_warn_revoked(struct chain *chain, const struct token_verdict *verdicts, size_t count)
{
	const struct token_verdict *revoked = NULL;
	size_t left = 0;
	for (size_t i = 0; i < count; i++) {
		if (verdicts[i].standing != TOKEN_REVOKED)
			left++;
		else
			revoked = &verdicts[i];
	}
	if (!revoked)
		return false;
	const char *where = line_stream_where(chain->streams[STREAM_ROUNDS]);
	char as_of[TIME_TEXT_SIZE];
	time_format(revoked->revoked_us, as_of);
	if (left > 0)
		verify_add(chain->run, VERIFY_WARNING, chain->facts->input->path, where,
		           FINDING_ROUND_ONE_REVOKED, revoked->certificate.name, as_of);
	else
		verify_add(chain->run, VERIFY_WARNING, chain->facts->input->path, where,
		           FINDING_ROUND_ALL_REVOKED, revoked->certificate.name, as_of);
	return left == 0;
}
