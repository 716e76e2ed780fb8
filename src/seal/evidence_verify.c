/* Verification of evidence records (RFC 4998 sections 3.3, 4.3 and 5.3). */
#include <stdlib.h>

#include "seal/evidence_asn1.h"

struct check {
	const struct evidence_record *record;
	const struct digest *data;
	const struct evidence_query *question;
	struct evidence_facts facts;
	struct error *error;
};

/* Computes the hash that the archive timestamp at that place must cover. */
static int find_leaf(const struct check *check, int chain, int number, struct digest *ret_leaf)
{
	enum digest_algorithm algorithm = check->record->algorithms[chain];
	if (number == 0)
		return evidence_chain_leaf(check->record, chain, &check->data[algorithm], ret_leaf);
	struct slice token = archive_timestamp_token(
		sk_ArchiveTimeStamp_value(evidence_chain(check->record, chain), number - 1));
	*ret_leaf = digest_by(algorithm, token.data, token.size);
	return OK;
}

static struct digest hash_at(const PartialHashtree *list, int at, enum digest_algorithm algorithm)
{
	struct digest hash = {.algorithm = algorithm};
	memcpy(hash.bytes, ASN1_STRING_get0_data(sk_ASN1_OCTET_STRING_value(list, at)),
	       digest_size(algorithm));
	return hash;
}

static size_t list_count(const PartialHashtree *list, const struct digest *leaf)
{
	size_t count = 0;
	for (int i = 0; i < sk_ASN1_OCTET_STRING_num(list); i++) {
		struct digest hash = hash_at(list, i, leaf->algorithm);
		count += digest_equal(&hash, leaf);
	}
	return count;
}

/* Combines the hashes of a list, and `node` unless it is NULL. */
static int join_list(const PartialHashtree *list, enum digest_algorithm algorithm,
                     const struct digest *node, struct digest *ret_node)
{
	int count = sk_ASN1_OCTET_STRING_num(list);
	struct digest *hashes = malloc(((size_t)count + 1) * sizeof *hashes);
	if (!hashes)
		return ERR_NO_MEMORY;
	for (int i = 0; i < count; i++)
		hashes[i] = hash_at(list, i, algorithm);
	if (node)
		hashes[count++] = *node;
	int result = evidence_node(hashes, (size_t)count, ret_node);
	free(hashes);
	return result;
}

/* Returns how often the first list contains the leaf. */
static size_t tree_count(const ArchiveTimeStamp *stamp, const struct digest *leaf)
{
	return list_count(sk_PartialHashtree_value(stamp->reduced_hashtree, 0), leaf);
}

/* Computes the root above a leaf of the tree. `carried`: a first list of one hash is used as the
 * node itself. */
static int find_root(const ArchiveTimeStamp *stamp, const struct digest *leaf, bool carried,
                     struct digest *ret_root)
{
	const STACK_OF(PartialHashtree) *lists = stamp->reduced_hashtree;
	struct digest node = *leaf;
	int result = OK;
	for (int i = carried; lists && i < sk_PartialHashtree_num(lists) && !result; i++)
		result = join_list(sk_PartialHashtree_value(lists, i), leaf->algorithm,
		                   i > 0 ? &node : NULL, &node);
	if (!result)
		*ret_root = node;
	return result;
}

/* Returns whether the tree leads from the leaf to the token's imprint. Some implementations use a
 * first list of one hash as the node, as RFC 6283 section 3.2.1 specifies for XML; RFC 4998 section
 * 4.3 hashes it. In both cases the token covers the leaf. */
static int leads_to(const ArchiveTimeStamp *stamp, const struct digest *leaf,
                    const struct digest *imprint, bool *ret_leads)
{
	bool single =
		stamp->reduced_hashtree &&
		sk_ASN1_OCTET_STRING_num(sk_PartialHashtree_value(stamp->reduced_hashtree, 0)) == 1;
	struct digest root;
	int result = find_root(stamp, leaf, single, &root);
	*ret_leads = !result && digest_equal(&root, imprint);
	if (!result && single && !*ret_leads) {
		result = find_root(stamp, leaf, false, &root);
		*ret_leads = !result && digest_equal(&root, imprint);
	}
	return result;
}

size_t evidence_record_covers(const struct evidence_record *record,
                              const struct digest data[DIGEST_ALGORITHM_COUNT])
{
	const ArchiveTimeStamp *stamp = sk_ArchiveTimeStamp_value(evidence_chain(record, 0), 0);
	const struct digest *leaf = &data[record->algorithms[0]];
	struct digest imprint;
	if (stamp->reduced_hashtree)
		return tree_count(stamp, leaf);
	return timestamp_token_imprint(archive_timestamp_token(stamp), &imprint, NULL) == OK &&
	       digest_equal(&imprint, leaf);
}

size_t evidence_record_group_size(const struct evidence_record *record)
{
	const ArchiveTimeStamp *stamp = sk_ArchiveTimeStamp_value(evidence_chain(record, 0), 0);
	return stamp->reduced_hashtree ? (size_t)sk_ASN1_OCTET_STRING_num(
										 sk_PartialHashtree_value(stamp->reduced_hashtree, 0))
	                               : 1;
}

static const char *not_covered(int chain, int number)
{
	return number > 0  ? "it does not cover the timestamp before it"
	       : chain > 0 ? "it does not cover the data object together with the chains before it"
	                   : "it does not cover the data object";
}

/* `judged_us`: the time of the next archive timestamp, which vouches for this one. */
static int check_stamp(const struct check *check, int64_t judged_us, struct evidence_stamp *stamped,
                       struct arena *arena)
{
	int chain = (int)stamped->chain - 1, number = (int)stamped->number - 1;
	BUF_AUTO struct buf complete;
	buf_init(&complete, TIMESTAMP_PATH_MAX);
	struct timestamp_path path = {.complete = &complete, .tolerant = check->question->tolerant};
	const ArchiveTimeStamp *stamp =
		sk_ArchiveTimeStamp_value(evidence_chain(check->record, chain), number);
	struct digest leaf, imprint;
	bool leads = false;
	int result = find_leaf(check, chain, number, &leaf);
	if (!result && stamp->reduced_hashtree && tree_count(stamp, &leaf) == 0)
		result = error_cause(check->error, ERR_INVALID_EVIDENCE, "%s", not_covered(chain, number));
	if (!result)
		result = timestamp_token_imprint(archive_timestamp_token(stamp), &imprint, check->error);
	if (!result)
		result = leads_to(stamp, &leaf, &imprint, &leads);
	if (!result && !leads)
		result = error_cause(check->error, ERR_INVALID_EVIDENCE, "%s",
		                     stamp->reduced_hashtree
		                         ? "its hash tree does not lead to the imprint of its token"
		                         : not_covered(chain, number));
	if (!result)
		result = timestamp_verify_token_at(archive_timestamp_token(stamp), &imprint,
		                                   check->question->roots_pem, &path, judged_us,
		                                   &stamped->timestamp, check->error);
	if (result)
		return result;
	stamped->path.size = complete.size;
	stamped->path.data = arena_copy(arena, complete.data, complete.size);
	return stamped->path.data ? OK : ERR_NO_MEMORY;
}

/* Lists the archive timestamps in order. */
static int list_stamps(struct check *check, struct arena *arena)
{
	struct evidence_facts *facts = &check->facts;
	facts->chain_count = (size_t)evidence_chain_count(check->record);
	for (size_t i = 0; i < facts->chain_count; i++)
		facts->stamp_count +=
			(size_t)sk_ArchiveTimeStamp_num(evidence_chain(check->record, (int)i));
	facts->stamps = arena_alloc(arena, facts->stamp_count * sizeof *facts->stamps);
	if (!facts->stamps)
		return ERR_NO_MEMORY;
	size_t at = 0;
	for (size_t i = 0; i < facts->chain_count; i++) {
		size_t count = (size_t)sk_ArchiveTimeStamp_num(evidence_chain(check->record, (int)i));
		for (size_t j = 0; j < count; j++)
			facts->stamps[at++] = (struct evidence_stamp){.chain = i + 1, .number = j + 1};
	}
	return OK;
}

int evidence_record_verify(const struct evidence_record *record,
                           const struct digest data[DIGEST_ALGORITHM_COUNT],
                           const struct evidence_query *question, struct arena *arena,
                           struct evidence_facts *ret_facts, struct error *error)
{
	struct check check = {record, data, question, {.trusted = true}, error};
	int result = list_stamps(&check, arena);
	/* Starts with the newest. The time of each determines when the previous one had to be valid. */
	int64_t judged_us = question->at_us;
	for (size_t i = check.facts.stamp_count; i-- > 0 && !result;) {
		struct evidence_stamp *stamp = &check.facts.stamps[i];
		struct timestamp_facts *facts = &stamp->timestamp;
		result = check_stamp(&check, judged_us, stamp, arena);
		if (!result && i + 1 < check.facts.stamp_count && facts->gen_time_us > judged_us)
			result = error_cause(error, ERR_INVALID_EVIDENCE,
			                     "its time is after that of the next archive timestamp");
		if (result)
			return evidence_set_stamp_error(error, result, (int)stamp->chain - 1,
			                                (int)stamp->number - 1);
		judged_us = facts->gen_time_us;
		check.facts.trusted &= facts->trusted;
	}
	if (result)
		return result;
	check.facts.exists_since_us = judged_us;
	check.facts.valid_until_us =
		check.facts.stamps[check.facts.stamp_count - 1].timestamp.authority.not_after_us;
	*ret_facts = check.facts;
	return OK;
}
