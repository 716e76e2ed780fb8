/* Creation and renewal of evidence records. */
#include "seal/evidence_record.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>

#include "seal/evidence_asn1.h"
#include "seal/evidence_tree.h"
#include "seal/validation_set.h"

/* ---- one archive timestamp ---- */

static PartialHashtree *make_list(const struct digest *hashes, size_t count)
{
	PartialHashtree *list = sk_ASN1_OCTET_STRING_new_null();
	bool complete = list != NULL;
	for (size_t i = 0; complete && i < count; i++) {
		ASN1_OCTET_STRING *hash = ASN1_OCTET_STRING_new();
		complete = hash &&
		           ASN1_OCTET_STRING_set(hash, hashes[i].bytes,
		                                 (int)digest_size(hashes[i].algorithm)) == 1 &&
		           sk_ASN1_OCTET_STRING_push(list, hash) > 0;
		if (!complete)
			ASN1_OCTET_STRING_free(hash);
	}
	if (complete)
		return list;
	partial_hashtree_free(list);
	return NULL;
}

static bool add_list(ArchiveTimeStamp *stamp, const struct digest *hashes, size_t count)
{
	PartialHashtree *list = make_list(hashes, count);
	if (list && sk_PartialHashtree_push(stamp->reduced_hashtree, list) > 0)
		return true;
	partial_hashtree_free(list);
	return false;
}

/* The first list contains the group, or the leaf and its sibling in ascending order; each later
 * list one sibling. */
static bool set_hashtree(ArchiveTimeStamp *stamp, const struct evidence_path *path)
{
	if (path->count == 0 && !path->group)
		return true;
	bool complete = (stamp->reduced_hashtree = sk_PartialHashtree_new_null()) != NULL;
	size_t next = 0;
	if (complete && path->group) {
		complete = add_list(stamp, path->group, path->group_count);
	} else if (complete) {
		struct digest pair[] = {path->siblings[next++], path->leaf};
		if (memcmp(pair[0].bytes, pair[1].bytes, digest_size(path->leaf.algorithm)) > 0) {
			pair[1] = pair[0];
			pair[0] = path->leaf;
		}
		complete = add_list(stamp, pair, 2);
	}
	for (; complete && next < path->count; next++)
		complete = add_list(stamp, &path->siblings[next], 1);
	return complete;
}

/* Returns NULL without memory. */
static ArchiveTimeStamp *make_stamp(const struct evidence_path *path, struct slice token)
{
	assert(token.size > 0 && token.size <= INT_MAX);
	ArchiveTimeStamp *stamp = ArchiveTimeStamp_new();
	ASN1_STRING *whole = ASN1_STRING_type_new(V_ASN1_SEQUENCE);
	bool complete = stamp && whole && ASN1_STRING_set(whole, token.data, (int)token.size) == 1 &&
	                (stamp->digest_algorithm = evidence_algorithm_new(path->leaf.algorithm)) &&
	                set_hashtree(stamp, path);
	if (!complete) {
		ASN1_STRING_free(whole);
		ArchiveTimeStamp_free(stamp);
		return NULL;
	}
	ASN1_TYPE_set(stamp->token, V_ASN1_SEQUENCE, whole);
	return stamp;
}

/* ---- creation ---- */

struct digest evidence_path_root(const struct evidence_path *path)
{
	struct digest node = path->leaf;
	for (size_t i = 0; i < path->count; i++)
		node = evidence_pair(&node, &path->siblings[i]);
	return node;
}

int evidence_group_leaf(struct digest *hashes, size_t count, struct digest *ret_leaf)
{
	return evidence_node(hashes, count, ret_leaf);
}

static int check_token(const struct evidence_path *path, struct slice token, struct error *error)
{
	struct digest imprint, root = evidence_path_root(path);
	int result = timestamp_token_imprint(token, &imprint, error);
	if (!result && !digest_equal(&imprint, &root))
		result = error_cause(error, ERR_INVALID_EVIDENCE,
		                     "the token's imprint is not the root of the hash tree");
	return result;
}

/* Appends a chain with one archive timestamp, and adds its algorithm to digestAlgorithms. */
static int begin_chain(struct evidence_record *record, const struct evidence_path *path,
                       struct slice token)
{
	enum digest_algorithm algorithm = path->leaf.algorithm;
	int chains = evidence_chain_count(record);
	assert(chains < EVIDENCE_CHAINS_MAX);
	X509_ALGOR *named =
		evidence_record_uses_digest(record, algorithm) ? NULL : evidence_algorithm_new(algorithm);
	ArchiveTimeStampChain *chain = sk_ArchiveTimeStamp_new_null();
	ArchiveTimeStamp *stamp = make_stamp(path, token);
	bool complete = chain && stamp && (named || evidence_record_uses_digest(record, algorithm)) &&
	                sk_ArchiveTimeStamp_push(chain, stamp) > 0;
	if (!complete)
		ArchiveTimeStamp_free(stamp);
	if (complete && named)
		complete = sk_X509_ALGOR_push(record->asn1->digest_algorithms, named) > 0;
	if (!complete)
		X509_ALGOR_free(named);
	if (complete && sk_ArchiveTimeStampChain_push(record->asn1->chains, chain) > 0) {
		record->algorithms[chains] = algorithm;
		return OK;
	}
	archive_chain_free(chain);
	return ERR_NO_MEMORY;
}

static struct evidence_record *new_record(void)
{
	struct evidence_record *record = calloc(1, sizeof *record);
	if (!record)
		return NULL;
	record->asn1 = EvidenceRecord_new();
	if (record->asn1 && ASN1_INTEGER_set_int64(record->asn1->version, 1) == 1)
		return record;
	evidence_record_free(record);
	return NULL;
}

static int refuse_for_room(struct error *error)
{
	return error_cause(error, ERR_REFUSED, "the evidence record has no room for a renewal");
}

int evidence_record_begin_chain(struct evidence_record **record, const struct evidence_path *path,
                                struct slice token, struct error *error)
{
	int result = check_token(path, token, error);
	if (!result && *record && evidence_chain_count(*record) == EVIDENCE_CHAINS_MAX)
		result = refuse_for_room(error);
	if (result)
		return result;
	struct evidence_record *grown = *record ? *record : new_record();
	if (!grown)
		return ERR_NO_MEMORY;
	result = begin_chain(grown, path, token);
	if (!result)
		*record = grown;
	else if (!*record)
		evidence_record_free(grown);
	return result;
}

int evidence_record_create(const struct tree_proof *proof, struct slice token,
                           struct evidence_record **ret_record, struct error *error)
{
	struct evidence_path path = {.leaf = digest_of_sha256(&proof->leaf), .count = proof->count};
	for (size_t i = 0; i < proof->count; i++)
		path.siblings[i] = digest_of_sha256(&proof->siblings[i]);
	struct evidence_record *record = NULL;
	int result = evidence_record_begin_chain(&record, &path, token, error);
	if (!result)
		*ret_record = record;
	return result;
}

/* ---- renewal ---- */

static ArchiveTimeStampChain *newest_chain(const struct evidence_record *record)
{
	assert(evidence_chain_count(record) > 0);
	return evidence_chain(record, evidence_chain_count(record) - 1);
}

int evidence_record_next_leaf(const struct evidence_record *record, const struct digest *data,
                              struct digest *ret_leaf)
{
	int chains = evidence_chain_count(record);
	if (data)
		return evidence_chain_leaf(record, chains, data, ret_leaf);
	const ArchiveTimeStampChain *chain = newest_chain(record);
	struct slice token = archive_timestamp_token(
		sk_ArchiveTimeStamp_value(chain, sk_ArchiveTimeStamp_num(chain) - 1));
	*ret_leaf = digest_by(record->algorithms[chains - 1], token.data, token.size);
	return OK;
}

enum digest_algorithm evidence_record_digest(const struct evidence_record *record)
{
	return record->algorithms[evidence_chain_count(record) - 1];
}

bool evidence_record_has_room(const struct evidence_record *record, bool new_chain)
{
	return new_chain ? evidence_chain_count(record) < EVIDENCE_CHAINS_MAX
	                 : sk_ArchiveTimeStamp_num(newest_chain(record)) < EVIDENCE_STAMPS_MAX;
}

int evidence_record_renew(struct evidence_record *record, const struct digest *data,
                          const struct evidence_path *path, struct slice token, struct error *error)
{
	struct digest leaf;
	int result = evidence_record_next_leaf(record, data, &leaf);
	if (!result && !digest_equal(&leaf, &path->leaf))
		result =
			error_cause(error, ERR_INVALID_EVIDENCE,
		                "the hash tree does not begin with the hash that the renewal must cover");
	if (!result)
		result = check_token(path, token, error);
	if (!result && !evidence_record_has_room(record, data != NULL))
		result = refuse_for_room(error);
	if (result)
		return result;
	if (data)
		return begin_chain(record, path, token);
	ArchiveTimeStamp *stamp = make_stamp(path, token);
	if (stamp && sk_ArchiveTimeStamp_push(newest_chain(record), stamp) > 0)
		return OK;
	ArchiveTimeStamp_free(stamp);
	return ERR_NO_MEMORY;
}

/* ---- validation data ---- */

/* Appends the completed token, or nothing if it stays unchanged. */
static int complete_token(struct slice token, struct slice certificates,
                          const struct validation_set *set, struct buf *out, struct error *error)
{
	BUF_AUTO struct buf missing, with_path;
	buf_init(&missing, TIMESTAMP_PATH_MAX);
	buf_init(&with_path, TIMESTAMP_RESPONSE_MAX + TIMESTAMP_PATH_MAX);
	int result = timestamp_missing_certificates(token, certificates, &missing, error);
	if (!result)
		result = buf_check(&missing);
	if (!result && missing.size > 0)
		result = timestamp_token_add_certificates(token, buf_slice(&missing), &with_path, error);
	struct slice base = missing.size > 0 ? buf_slice(&with_path) : token;
	if (!result && set->count > 0)
		return timestamp_token_add_revocations(base, set, out, error);
	if (!result)
		buf_add_slice(out, buf_slice(&with_path));
	return result;
}

int evidence_record_complete(struct evidence_record *record, struct slice certificates,
                             const struct validation_set *set, struct error *error)
{
	BUF_AUTO struct buf token;
	buf_init(&token, EVIDENCE_RECORD_MAX);
	ArchiveTimeStampChain *chain = newest_chain(record);
	ArchiveTimeStamp *stamp = sk_ArchiveTimeStamp_value(chain, sk_ArchiveTimeStamp_num(chain) - 1);
	int result = complete_token(archive_timestamp_token(stamp), certificates, set, &token, error);
	if (result == ERR_TOO_LARGE)
		return OK;
	if (!result)
		result = buf_check(&token);
	if (!result && token.size > 0 &&
	    ASN1_STRING_set(stamp->token->value.sequence, token.data, (int)token.size) != 1)
		result = ERR_NO_MEMORY;
	return result;
}

/* ---- joint renewal with one token ---- */

static int take_leaves(struct digest *leaves, const struct evidence_renewal *renewals, size_t count,
                       struct error *error)
{
	for (size_t i = 0; i < count; i++) {
		int result = evidence_record_next_leaf(renewals[i].record, renewals[i].data, &leaves[i]);
		if (result)
			return result;
		if (leaves[i].algorithm != leaves[0].algorithm)
			return error_cause(error, ERR_USAGE,
			                   "records with different digest algorithms cannot share a token");
	}
	return OK;
}

static int renew_one(const struct evidence_renewal *renewal, const struct digest *leaves,
                     size_t count, size_t index, struct slice token, struct error *error)
{
	struct evidence_path path = {.leaf = leaves[index]};
	int result = evidence_tree_climb(leaves, count, index, &path);
	return result ? result
	              : evidence_record_renew(renewal->record, renewal->data, &path, token, error);
}

int evidence_records_renew(const struct evidence_renewal *renewals, size_t count,
                           evidence_stamper stamper, void *context, struct error *error)
{
	BUF_AUTO struct buf token;
	struct digest root;
	buf_init(&token, TIMESTAMP_RESPONSE_MAX);
	assert(count >= 1 && count <= EVIDENCE_RENEWED_MAX);
	struct digest *leaves = calloc(count, sizeof *leaves);
	if (!leaves)
		return ERR_NO_MEMORY;
	int result = take_leaves(leaves, renewals, count, error);
	if (!result)
		result = evidence_tree_root(leaves, count, &root);
	if (!result)
		result = stamper(context, &root, &token, error);
	for (size_t i = 0; i < count && !result; i++)
		result = renew_one(&renewals[i], leaves, count, i, buf_slice(&token), error);
	free(leaves);
	return result;
}
