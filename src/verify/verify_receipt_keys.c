/* Finds out whether a service certifies a key of receipts: by the union of all trusted lists of
 * signers that were given (--signers) or are in one of the given archives.
 *
 * An archive that contradicts a receipt cannot take the certification back. It may have no list,
 * one without the key, or one by which the key ended earlier: another list of the same service
 * counts as well, and the key was in use at least until the latest list that says so was signed.
 *
 * Nor can a stranger with a certificate of the same authority list the key as its own: the key
 * itself has to have signed the certificate of the service. */
#include <stdlib.h>

#include "verify/verify_check.h"

#define KEY_LISTS_MAX 1000
#define KEYS_ARENA_MAX ((size_t)256 << 20)

struct use {
	struct sha256 sha256;
	int64_t used_until_us; /* TIME_NONE: in force */
};
/* A key of receipts. */
struct key {
	struct signer_list_key item;
	struct signer_list_proof proof;
	char *proof_subject; /* of the listed certificate for which it was proved; NULL: none */
	bool is_verified, is_proved;
};
/* What is needed of a list. */
struct key_list {
	struct sha256 digest; /* of the signed list */
	struct certificate_facts signer;
	int64_t signed_us; /* its timestamp */
	bool is_ignored;   /* another list says that its signing key had ended */
	const struct use *uses;
	size_t use_count;
	struct key *keys;
	size_t key_count;
	const char **origins; /* the names of logs in its keys of the log */
	size_t origin_count;
};
struct receipt_keys {
	struct arena arena;
	bool is_full;
	size_t count;
	struct key_list items[KEY_LISTS_MAX];
};

static const struct use *find_use(const struct key_list *list, const struct sha256 *sha256)
{
	for (size_t i = 0; i < list->use_count; i++)
		if (sha256_equal(&list->uses[i].sha256, sha256))
			return &list->uses[i];
	return NULL;
}

/* Returns whether the list is of the service that uses that certificate: signed with it, by the
 * same organization, or by a required signer that lists it. Anyone with a certificate of the same
 * authority could list it. */
static bool vouches_for(const struct run *run, const struct key_list *list,
                        const struct sha256 *signer, const char *subject)
{
	return sha256_equal(&list->signer.sha256, signer) ||
	       trust_same_organization(list->signer.subject, subject) ||
	       (verify_is_signer_required(run, &list->signer.sha256) && find_use(list, signer));
}

/* ---- keeping lists ---- */

static bool is_known(const struct receipt_keys *keys, const struct sha256 *digest)
{
	for (size_t i = 0; i < keys->count; i++)
		if (sha256_equal(&keys->items[i].digest, digest))
			return true;
	return false;
}

/* Finds the subject of the certificate for which a key was proved. One that cannot be read proves
 * nothing. */
static int copy_proof(struct arena *arena, const struct signer_list *list, struct key *key)
{
	BUF_AUTO struct buf pem;
	struct certificate_facts facts;
	struct error ignored = {0};
	if (!key->item.proof)
		return OK;
	const struct signer_list_item *item = signer_list_find(list, &key->item.proof->certificate);
	key->proof = *key->item.proof;
	key->item.proof = &key->proof;
	if (!item)
		return OK;
	buf_init(&pem, 2 * SIGNER_LIST_CERTIFICATE_MAX);
	int result = trust_path_to_pem(item->certificate, &pem, &ignored);
	if (!result)
		result = trust_describe(buf_slice(&pem), &facts, &ignored);
	if (result)
		return result == ERR_NO_MEMORY ? result : OK;
	key->proof_subject = arena_text(arena, facts.subject);
	return key->proof_subject ? OK : ERR_NO_MEMORY;
}

static int copy_origins(struct arena *arena, const struct signer_list *list, struct key_list *ret)
{
	size_t count = list->keys[SIGNER_LIST_LOG].count;
	ret->origins = arena_alloc(arena, (count + 1) * sizeof *ret->origins);
	if (!ret->origins)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < count; i++) {
		const char *key = list->keys[SIGNER_LIST_LOG].items[i].key;
		char *name = arena_copy(arena, key, strlen(key) + 1);
		if (!name)
			return ERR_NO_MEMORY;
		name[strcspn(name, "+")] = '\0';
		ret->origins[ret->origin_count++] = name;
	}
	return OK;
}

static int copy_list(struct arena *arena, const struct signer_list *list, struct key_list *ret)
{
	size_t count = list->keys[SIGNER_LIST_RECEIPT].count;
	struct use *uses = arena_alloc(arena, (list->count + 1) * sizeof *uses);
	struct key *keys = arena_alloc(arena, (count + 1) * sizeof *keys);
	int result = OK;
	if (!uses || !keys)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < list->count; i++)
		uses[i] = (struct use){list->items[i].sha256, list->items[i].used_until_us};
	for (size_t i = 0; i < count && !result; i++) {
		keys[i] = (struct key){.item = list->keys[SIGNER_LIST_RECEIPT].items[i]};
		keys[i].item.key = arena_text(arena, keys[i].item.key);
		result = keys[i].item.key ? copy_proof(arena, list, &keys[i]) : ERR_NO_MEMORY;
	}
	ret->uses = uses;
	ret->use_count = list->count;
	ret->keys = keys;
	ret->key_count = count;
	return result;
}

/* A list whose signing key had ended by another list of its service may be a thief's. */
static void compare_ends(const struct run *run, struct key_list *of, const struct key_list *by)
{
	const struct use *use = find_use(by, &of->signer.sha256);
	if (use && use->used_until_us != TIME_NONE && of->signed_us > use->used_until_us &&
	    vouches_for(run, by, &of->signer.sha256, of->signer.subject))
		of->is_ignored = true;
}

int verify_receipt_keys_add(struct run *run, const char *path, const struct sha256 *digest,
                            const struct signer_list *list, const struct cms_facts *facts)
{
	if (!run->receipt_keys) {
		run->receipt_keys = calloc(1, sizeof *run->receipt_keys);
		if (!run->receipt_keys)
			return ERR_NO_MEMORY;
		arena_init(&run->receipt_keys->arena, KEYS_ARENA_MAX);
	}
	struct receipt_keys *keys = run->receipt_keys;
	struct key_list *added = &keys->items[keys->count];
	if (is_known(keys, digest))
		return OK;
	if (keys->count == KEY_LISTS_MAX) {
		if (!keys->is_full)
			verify_add(run, VERIFY_UNCHECKED, path, "", FINDING_SIGNERS_COUNT, KEY_LISTS_MAX);
		keys->is_full = true;
		return OK;
	}
	*added = (struct key_list){
		.digest = *digest, .signer = facts->signer, .signed_us = facts->timestamp.gen_time_us};
	int result = copy_list(&keys->arena, list, added);
	if (!result)
		result = copy_origins(&keys->arena, list, added);
	if (result)
		return result;
	for (size_t i = 0; i < keys->count; i++) {
		compare_ends(run, added, &keys->items[i]);
		compare_ends(run, &keys->items[i], added);
	}
	keys->count++;
	return OK;
}

void verify_receipt_keys_free(struct run *run)
{
	if (!run->receipt_keys)
		return;
	arena_free(&run->receipt_keys->arena);
	free(run->receipt_keys);
}

/* ---- asking them ---- */

static struct key *find_key(const struct key_list *list, const char *key)
{
	for (size_t i = 0; i < list->key_count; i++)
		if (strcmp(list->keys[i].item.key, key) == 0)
			return &list->keys[i];
	return NULL;
}

/* Returns whether the key signed a certificate of the service that uses the certificate `signer`:
 * the same, or a listed one of the same organization or of a list whose signer is required. */
static bool is_proved_for(const struct run *run, const struct key_list *list, struct key *key,
                          const struct sha256 *signer, const char *subject)
{
	if (!key->item.proof)
		return false;
	if (!key->is_verified && signer_list_verify_proof(&key->item, &key->is_proved))
		return false; /* no memory: it is not certified now */
	key->is_verified = true;
	return key->is_proved &&
	       (sha256_equal(&key->proof.certificate, signer) ||
	        (key->proof_subject && (trust_same_organization(key->proof_subject, subject) ||
	                                verify_is_signer_required(run, &list->signer.sha256))));
}

bool verify_receipt_key_is_certified(const struct run *run, const struct sha256 *signer,
                                     const char *subject, const char *key, int64_t received_us)
{
	const struct receipt_keys *keys = run->receipt_keys;
	bool is_named = false, has_ended = false;
	int64_t until_us = INT64_MIN;
	for (size_t i = 0; keys && i < keys->count; i++) {
		const struct key_list *list = &keys->items[i];
		struct key *found = find_key(list, key);
		if (!found || list->is_ignored || !vouches_for(run, list, signer, subject) ||
		    !is_proved_for(run, list, found, signer, subject))
			continue;
		int64_t ended_us = found->item.used_until_us;
		int64_t used_us = ended_us == TIME_NONE ? list->signed_us : ended_us;
		is_named = true;
		has_ended |= ended_us != TIME_NONE;
		until_us = used_us > until_us ? used_us : until_us;
	}
	return is_named && (!has_ended || received_us <= until_us + SIGNER_LIST_TOLERANCE_US);
}

const struct certificate_facts *verify_receipt_key_signer(const struct run *run, const char *key,
                                                          int64_t received_us)
{
	const struct receipt_keys *keys = run->receipt_keys;
	for (size_t i = 0; keys && i < keys->count; i++) {
		const struct certificate_facts *signer = &keys->items[i].signer;
		struct key *found = find_key(&keys->items[i], key);
		if (found && is_proved_for(run, &keys->items[i], found, &signer->sha256, signer->subject) &&
		    verify_receipt_key_is_certified(run, &signer->sha256, signer->subject, key,
		                                    received_us))
			return signer;
	}
	return NULL;
}

const char *verify_receipt_keys_other_origin(const struct run *run,
                                             const struct certificate_facts *signer,
                                             const char *origin)
{
	const struct receipt_keys *keys = run->receipt_keys;
	const char *other = NULL;
	for (size_t i = 0; keys && i < keys->count; i++) {
		const struct key_list *list = &keys->items[i];
		if (list->is_ignored || !vouches_for(run, list, &signer->sha256, signer->subject))
			continue;
		for (size_t k = 0; k < list->origin_count; k++) {
			if (strcmp(list->origins[k], origin) == 0)
				return NULL;
			other = list->origins[k];
		}
	}
	return other;
}
