/* Making and renewing evidence records. */
#include "seal/evidence_record.h"

#include <assert.h>
#include <stdlib.h>

#include "seal/evidence_asn1.h"

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

/* The first list holds the leaf and its sibling, ascending; each later one a sibling. */
static bool set_hashtree(ArchiveTimeStamp *stamp, const struct evidence_path *path)
{
	if (path->count == 0)
		return true;
	bool complete = (stamp->reduced_hashtree = sk_PartialHashtree_new_null()) != NULL;
	for (size_t i = 0; complete && i < path->count; i++) {
		struct digest hashes[] = {path->siblings[i], path->leaf};
		size_t size = digest_size(path->leaf.algorithm);
		if (i == 0 && memcmp(hashes[0].bytes, hashes[1].bytes, size) > 0) {
			hashes[0] = path->leaf;
			hashes[1] = path->siblings[0];
		}
		PartialHashtree *list = make_list(hashes, i == 0 ? 2 : 1);
		complete = list && sk_PartialHashtree_push(stamp->reduced_hashtree, list) > 0;
		if (!complete)
			partial_hashtree_free(list);
	}
	return complete;
}

/* NULL without memory. */
static ArchiveTimeStamp *make_stamp(const struct evidence_path *path, struct slice token)
{
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

/* ---- making ---- */

struct digest evidence_path_root(const struct evidence_path *path)
{
	struct digest node = path->leaf;
	for (size_t i = 0; i < path->count; i++) {
		struct digest pair[] = {node, path->siblings[i]};
		node = evidence_node(pair, 2);
	}
	return node;
}

static int check_token(const struct evidence_path *path, struct slice token, struct error *error)
{
	struct digest imprint, root = evidence_path_root(path);
	int result = timestamp_token_imprint(token, &imprint, error);
	if (!result && !digest_equal(&imprint, &root))
		result = error_cause(error, ERR_INVALID_EVIDENCE,
		                     "the token is not over what the hash tree leads to");
	return result;
}

/* Appends a chain of one archive timestamp, and its algorithm to digestAlgorithms. */
static int begin_chain(struct evidence_record *record, const struct evidence_path *path,
                       struct slice token)
{
	enum digest_algorithm algorithm = path->leaf.algorithm;
	int chains = evidence_chain_count(record);
	X509_ALGOR *named =
		evidence_record_uses(record, algorithm) ? NULL : evidence_algorithm_new(algorithm);
	ArchiveTimeStampChain *chain = sk_ArchiveTimeStamp_new_null();
	ArchiveTimeStamp *stamp = make_stamp(path, token);
	bool complete = chain && stamp && (named || evidence_record_uses(record, algorithm)) &&
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

int evidence_record_create(const struct tree_proof *proof, struct slice token,
                           struct evidence_record **ret_record, struct error *error)
{
	struct evidence_path path = {.leaf = digest_of_sha256(&proof->leaf), .count = proof->count};
	for (size_t i = 0; i < proof->count; i++)
		path.siblings[i] = digest_of_sha256(&proof->siblings[i]);
	int result = check_token(&path, token, error);
	if (result)
		return result;
	struct evidence_record *record = calloc(1, sizeof *record);
	if (!record)
		return ERR_NO_MEMORY;
	record->asn1 = EvidenceRecord_new();
	result = record->asn1 && ASN1_INTEGER_set_int64(record->asn1->version, 1) == 1
	             ? begin_chain(record, &path, token)
	             : ERR_NO_MEMORY;
	if (!result)
		*ret_record = record;
	else
		evidence_record_free(record);
	return result;
}

/* ---- renewing ---- */

static ArchiveTimeStampChain *newest_chain(const struct evidence_record *record)
{
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

static bool has_room(const struct evidence_record *record, bool new_chain)
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
		result = error_cause(error, ERR_INVALID_EVIDENCE,
		                     "the hash tree does not begin with what the renewal has to cover");
	if (!result)
		result = check_token(path, token, error);
	if (!result && !has_room(record, data != NULL))
		result = error_cause(error, ERR_REFUSED, "the evidence record has no room for a renewal");
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

/* ---- many with one token ---- */

#define LEVELS_MAX 17 /* 2^16 leaves and the root */

/* As struct hash_tree, by any algorithm. */
struct renewal_tree {
	size_t level_count;
	struct digest *levels[LEVELS_MAX]; /* leaves first */
	size_t counts[LEVELS_MAX];
};

static void renewal_tree_free(struct renewal_tree *tree)
{
	for (size_t i = 0; i < LEVELS_MAX; i++)
		free(tree->levels[i]);
}

static int take_leaves(struct renewal_tree *tree, const struct evidence_renewal *renewals,
                       size_t count, struct error *error)
{
	struct digest *leaves = tree->levels[0] = calloc(count, sizeof *leaves);
	if (!leaves)
		return ERR_NO_MEMORY;
	tree->counts[0] = count;
	tree->level_count = 1;
	for (size_t i = 0; i < count; i++) {
		int result = evidence_record_next_leaf(renewals[i].record, renewals[i].data, &leaves[i]);
		if (result)
			return result;
		if (leaves[i].algorithm != leaves[0].algorithm)
			return error_cause(error, ERR_USAGE,
			                   "records that hash by different algorithms cannot share a token");
	}
	return OK;
}

static int build_levels(struct renewal_tree *tree)
{
	while (tree->counts[tree->level_count - 1] > 1) {
		size_t level = tree->level_count++;
		size_t below_count = tree->counts[level - 1];
		const struct digest *below = tree->levels[level - 1];
		tree->counts[level] = (below_count + 1) / 2;
		struct digest *here = tree->levels[level] = calloc(tree->counts[level], sizeof *here);
		if (!here)
			return ERR_NO_MEMORY;
		for (size_t i = 0; i < below_count; i += 2) {
			struct digest pair[] = {below[i], below[i + 1 < below_count ? i + 1 : i]};
			here[i / 2] = i + 1 < below_count ? evidence_node(pair, 2) : below[i];
		}
	}
	return OK;
}

static void find_path(const struct renewal_tree *tree, size_t index, struct evidence_path *path)
{
	*path = (struct evidence_path){.leaf = tree->levels[0][index]};
	for (size_t level = 0; level + 1 < tree->level_count; level++, index /= 2)
		if ((index ^ 1) < tree->counts[level])
			path->siblings[path->count++] = tree->levels[level][index ^ 1];
}

int evidence_records_renew(const struct evidence_renewal *renewals, size_t count,
                           evidence_stamper stamper, void *context, struct error *error)
{
	struct renewal_tree tree = {0};
	BUF_AUTO struct buf token;
	buf_init(&token, TIMESTAMP_RESPONSE_MAX);
	assert(count >= 1 && count <= EVIDENCE_RENEWED_MAX);
	int result = take_leaves(&tree, renewals, count, error);
	if (!result)
		result = build_levels(&tree);
	if (!result)
		result = stamper(context, &tree.levels[tree.level_count - 1][0], &token, error);
	for (size_t i = 0; i < count && !result; i++) {
		struct evidence_path path;
		find_path(&tree, i, &path);
		result = evidence_record_renew(renewals[i].record, renewals[i].data, &path,
		                               buf_slice(&token), error);
	}
	renewal_tree_free(&tree);
	return result;
}
