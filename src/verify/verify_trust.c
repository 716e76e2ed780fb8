/* The signers and timestamp authorities that were found, and whether they lead to the given roots.
 */
#include "verify/verify_check.h"

static struct verify_identity *find(const struct verify_identities *list,
                                    const struct certificate_facts *identity)
{
	struct verify_identity *at = list->first;
	while (at && !sha256_equal(&at->certificate.sha256, &identity->sha256))
		at = at->next;
	return at;
}

/* Finds or adds an identity. *ret_item is its item in the list, NULL if there are too many. */
static int note(struct run *run, struct verify_identities *list,
                const struct certificate_facts *identity, struct slice path,
                struct verify_identity **ret_item)
{
	*ret_item = find(list, identity);
	if (*ret_item)
		return 0;
	if (list->count == VERIFY_IDENTITIES_MAX) {
		verify_add(run, VERIFY_UNCHECKED, "", "", FINDING_TRUST_COUNT, VERIFY_IDENTITIES_MAX);
		return 0;
	}
	struct verify_identity *item = arena_alloc(&run->result->arena, sizeof *item);
	if (!item)
		return ERR_NO_MEMORY;
	const char *copy = path.size > 0 ? arena_copy(&run->result->arena, path.data, path.size) : "";
	if (!copy)
		return ERR_NO_MEMORY;
	*item = (struct verify_identity){.certificate = *identity,
	                                 .path = slice_make(copy, path.size),
	                                 .first_gen_time_us = TIME_NONE,
	                                 .trusted = true};
	char *texts[] = {item->certificate.subject, item->certificate.issuer, item->certificate.name,
	                 item->certificate.issuer_name};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		verify_make_visible(texts[i]);
	if (list->last)
		list->last->next = item;
	else
		list->first = item;
	list->last = item;
	list->count++;
	*ret_item = item;
	return 0;
}

static void note_time(struct verify_identity *item, int64_t time_us)
{
	if (item->first_gen_time_us == TIME_NONE || time_us < item->first_gen_time_us)
		item->first_gen_time_us = time_us;
	if (item->last_gen_time_us < time_us)
		item->last_gen_time_us = time_us;
}

int verify_note_timestamp(struct run *run, const struct timestamp_facts *facts, struct slice along)
{
	run->result->checked.timestamps++;
	run->result->authorities_trusted &= facts->trusted;
	run->timestamps_without_accuracy += facts->accuracy_us == TIMESTAMP_ACCURACY_UNKNOWN;
	run->later_timestamps += verify_is_later(run, facts->gen_time_us);
	run->coarse_timestamps += facts->accuracy_us > VERIFY_ACCURACY_MAX_US;
	if (facts->accuracy_us > run->coarsest_us)
		run->coarsest_us = facts->accuracy_us;
	struct verify_identity *item;
	int result = note(run, &run->result->authorities, &facts->authority, along, &item);
	if (result || !item)
		return result;
	note_time(item, facts->gen_time_us);
	item->timestamps++;
	item->trusted &= facts->trusted;
	return 0;
}

void verify_note_not_revoked(struct run *run, const struct certificate_facts *authority)
{
	struct verify_identity *item = find(&run->result->authorities, authority);
	if (item)
		item->not_revoked++;
}

int verify_note_signature(struct run *run, struct input *input, const char *where,
                          const struct cms_facts *facts, const struct cms_paths *paths)
{
	bool pinned = verify_is_signer_required(run, &facts->signer.sha256);
	run->signatures++;
	input->is_signed = true;
	input->signer = facts->signer.sha256;
	input->signer_subject = arena_text(&run->arena, facts->signer.subject);
	if (!input->signer_subject)
		return ERR_NO_MEMORY;
	input->signed_at_us = facts->has_timestamp ? facts->timestamp.gen_time_us : TIME_NONE;
	input->is_trusted =
		(facts->trusted || pinned) && (!facts->has_timestamp || facts->timestamp.trusted);
	run->result->signers_trusted &= facts->trusted || pinned;
	if (run->options && run->options->signer_count > 0 && !pinned)
		verify_add(run, VERIFY_WRONG, input->path, where, FINDING_SIGNATURE_SIGNER_NOT_ASKED,
		           facts->signer.name);
	verify_signers_judge(run, input->path, where, facts);
	struct verify_identity *item;
	int result = note(run, &run->result->signers, &facts->signer, buf_slice(&paths->signer), &item);
	if (!result && item) {
		note_time(item, facts->has_timestamp ? facts->timestamp.gen_time_us : run->result->at_us);
		item->trusted &= facts->trusted || pinned;
	}
	return !result && facts->has_timestamp
	           ? verify_note_timestamp(run, &facts->timestamp, buf_slice(&paths->authority))
	           : result;
}

int verify_note_level(struct run *run, struct input *input, const struct reached *reached)
{
	struct verify_result *result = run->result;
	struct verify_level *item = arena_alloc(&result->arena, sizeof *item);
	char *shown = arena_text(&result->arena, input->path);
	if (!item || !shown)
		return ERR_NO_MEMORY;
	verify_make_visible(shown);
	input->issued_us = reached->issued_us;
	input->until_us = reached->until_us;
	*item = (struct verify_level){shown, reached->level, reached->until_us, NULL};
	if (result->last_level)
		result->last_level->next = item;
	else
		result->first_level = item;
	result->last_level = item;
	return 0;
}

static const struct verify_identity *first_unknown(const struct verify_identities *list)
{
	const struct verify_identity *at = list->first;
	while (at && at->trusted)
		at = at->next;
	return at;
}

/* Returns the name in the first unknown certificate. Anyone can create a certificate with that
 * name. */
static const char *name_unknown(const struct verify_identities *list)
{
	const struct verify_identity *unknown = first_unknown(list);
	return unknown ? unknown->certificate.name : "?";
}

static void record_signer(struct run *run)
{
	if (run->result->signers_given)
		verify_add(run, VERIFY_UNESTABLISHED, "", "", FINDING_TRUST_SIGNER_UNKNOWN,
		           name_unknown(&run->result->signers));
	else
		verify_add(run, VERIFY_UNESTABLISHED, "", "", FINDING_TRUST_SIGNER_NO_ROOTS);
}

static void record_authority(struct run *run)
{
	if (run->result->authorities_given)
		verify_add(run, VERIFY_UNESTABLISHED, "", "", FINDING_TRUST_AUTHORITY_UNKNOWN,
		           name_unknown(&run->result->authorities));
	else
		verify_add(run, VERIFY_UNESTABLISHED, "", "", FINDING_TRUST_AUTHORITY_NO_ROOTS);
}

void verify_trust_conclude(struct run *run)
{
	struct verify_result *result = run->result;
	result->signers_given = run->roots.signers.data;
	result->authorities_given = run->roots.timestamps.data;
	if (!result->signers_trusted)
		record_signer(run);
	if (!result->authorities_trusted)
		record_authority(run);
	result->trusted = run->signatures > 0 && result->signers_trusted &&
	                  result->authorities_trusted && result->wrong == 0;
}
