#include "evidence/signer_listing.h"

#include "archive/signer_list.h"
#include "base/base64.h"
#include "base/json.h"
#include "evidence/signers.h"
#include "evidence/timestamp_roots.h"
#include "seal/authority.h"
#include "seal/cms.h"
#include "seal/receipt_signer.h"
#include "store/evidence/public_keys.h"
#include "store/evidence/signer_records.h"

#define LIST_MEMORY_MAX ((size_t)64 << 20)
#define STATE_MAX ((size_t)8 << 20)
#define LIST_LIFE_US US_PER_DAY

_Static_assert(RECEIPT_SIGNATURE_SIZE == SIGNER_LIST_PROOF_SIZE,
               "the signer makes the proofs of the list");

/* The present signers in the store. */
struct listing {
	struct arena arena;
	struct signer_record *records;
	size_t count;
	struct signer_list_key *keys[SIGNER_LIST_KINDS];
	size_t key_counts[SIGNER_LIST_KINDS];
	struct sha256 state;
};

static void listing_cleanup(struct listing *listing)
{
	arena_free(&listing->arena);
}
#define LISTING_AUTO __attribute__((cleanup(listing_cleanup)))

static int digest_records(struct listing *listing)
{
	BUF_AUTO struct buf text;
	struct json_writer writer = {.out = &text};
	buf_init(&text, STATE_MAX);
	json_begin_array(&writer, NULL);
	for (size_t i = 0; i < listing->count; i++) {
		const struct signer_record *record = &listing->records[i];
		json_hex(&writer, NULL, record->sha256.bytes, SHA256_SIZE);
		json_time(&writer, NULL, record->used_from_us);
		json_time(&writer, NULL, record->used_until_us);
		json_text(&writer, NULL, record->reason);
	}
	for (int kind = 0; kind < SIGNER_LIST_KINDS; kind++) {
		json_integer(&writer, NULL, kind);
		for (size_t i = 0; i < listing->key_counts[kind]; i++) {
			json_text(&writer, NULL, listing->keys[kind][i].key);
			json_time(&writer, NULL, listing->keys[kind][i].used_from_us);
			json_time(&writer, NULL, listing->keys[kind][i].used_until_us);
			if (listing->keys[kind][i].proof)
				json_hex(&writer, NULL, listing->keys[kind][i].proof->certificate.bytes,
				         SHA256_SIZE);
		}
	}
	json_end_array(&writer);
	listing->state = sha256_of(text.data, text.size);
	return buf_check(&text);
}

static int read_proof(const struct public_key *stored, struct arena *arena,
                      const struct signer_list_proof **ret, struct error *error)
{
	size_t size = 0;
	*ret = NULL;
	if (!stored->proof || !stored->proof_of)
		return OK;
	struct signer_list_proof *proof = arena_alloc(arena, sizeof *proof);
	if (!proof)
		return ERR_NO_MEMORY;
	if (!base64_decode(slice_of(stored->proof), proof->signature, sizeof proof->signature, &size) ||
	    size != sizeof proof->signature ||
	    !hex_decode(slice_of(stored->proof_of), proof->certificate.bytes, SHA256_SIZE))
		return error_cause(error, ERR_CORRUPT, "proof of the key %s", stored->key);
	*ret = proof;
	return OK;
}

static int read_keys(struct store *store, struct listing *listing, enum signer_list_kind kind,
                     struct error *error)
{
	enum public_key_kind stored = kind == SIGNER_LIST_LOG ? PUBLIC_KEY_LOG : PUBLIC_KEY_RECEIPT;
	struct public_key *items;
	size_t count;
	int result = store_list_public_keys(store, stored, &listing->arena, &items, &count, error);
	if (result)
		return result;
	struct signer_list_key *keys = arena_alloc(&listing->arena, (count + 1) * sizeof *keys);
	if (!keys)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < count && !result; i++) {
		keys[i] = (struct signer_list_key){.key = items[i].key,
		                                   .used_from_us = items[i].used_from_us,
		                                   .used_until_us = items[i].used_until_us};
		result = read_proof(&items[i], &listing->arena, &keys[i].proof, error);
	}
	listing->keys[kind] = keys;
	listing->key_counts[kind] = count;
	return result;
}

static int read_listing(struct store *store, struct listing *listing, struct error *error)
{
	arena_init(&listing->arena, LIST_MEMORY_MAX);
	int result =
		store_list_signers(store, &listing->arena, &listing->records, &listing->count, error);
	for (int kind = 0; kind < SIGNER_LIST_KINDS && !result; kind++)
		result = read_keys(store, listing, (enum signer_list_kind)kind, error);
	return result ? result : digest_records(listing);
}

/* ---- the keys of this node ---- */

int signer_listing_add_keys(struct service *service, struct error *error)
{
	char text[NOTE_VKEY_SIZE];
	int result = OK;
	if (service->receipt_signer) {
		base64_encode(receipt_signer_key(service->receipt_signer), RECEIPT_KEY_SIZE, text);
		result = store_add_public_key(service->store, PUBLIC_KEY_RECEIPT, text, error);
	}
	if (result || !service->signer)
		return result;
	const struct note_key key =
		note_key_make(service->log_origin, NOTE_ED25519, signer_log_key(service->signer));
	note_key_write(&key, text);
	return store_add_public_key(service->store, PUBLIC_KEY_LOG, text, error);
}

int signer_listing_prove(struct service *service, const struct sha256 *certificate, bool *ret_done,
                         struct error *error)
{
	uint8_t signature[RECEIPT_SIGNATURE_SIZE];
	char key[BASE64_SIZE(RECEIPT_KEY_SIZE) + 1], proof[BASE64_SIZE(RECEIPT_SIGNATURE_SIZE) + 1],
		proof_of[2 * SHA256_SIZE + 1];
	*ret_done = !service->receipt_signer ||
	            receipt_signer_prove(service->receipt_signer, certificate, signature);
	if (!service->receipt_signer || !*ret_done)
		return OK;
	base64_encode(receipt_signer_key(service->receipt_signer), RECEIPT_KEY_SIZE, key);
	base64_encode(signature, sizeof signature, proof);
	hex_encode(certificate->bytes, SHA256_SIZE, proof_of);
	return store_put_key_proof(service->store, key, proof, proof_of, error);
}

/* ---- signing ---- */

int signer_listing_is_due(struct service *service, bool *ret_due, struct error *error)
{
	LISTING_AUTO struct listing listing = {0};
	struct signed_signer_list signed_last;
	*ret_due = false;
	if (!service->signer || signers_check(service, NULL))
		return OK;
	int result = read_listing(service->store, &listing, error);
	if (!result && listing.count > 0)
		result = store_read_signer_list(service->store, &signed_last, error);
	*ret_due = result == ERR_NOT_FOUND;
	if (result == ERR_NOT_FOUND)
		error_clear(error);
	else if (!result && listing.count > 0)
		*ret_due = !sha256_equal(&signed_last.state, &listing.state) ||
		           clock_now_us() - signed_last.signed_at_us >= LIST_LIFE_US;
	return result == ERR_NOT_FOUND ? OK : result;
}

static int write_item(const struct signer_record *record, struct arena *arena,
                      struct signer_list_item *ret, struct error *error)
{
	BUF_AUTO struct buf der;
	buf_init(&der, SIGNER_LIST_CERTIFICATE_MAX);
	int result = trust_certificate_der(slice_of(record->certificates), &der, error);
	const char *copy = result ? NULL : arena_copy(arena, der.data, der.size);
	if (!result && !copy)
		return ERR_NO_MEMORY;
	*ret = (struct signer_list_item){.certificate = slice_make(copy, der.size),
	                                 .sha256 = record->sha256,
	                                 .used_from_us = record->used_from_us,
	                                 .used_until_us = record->used_until_us,
	                                 .reason = record->reason};
	return result;
}

static int write_document(const struct service *service, struct listing *listing,
                          int64_t issued_at_us, struct buf *text, struct error *error)
{
	const struct settings *settings = service->settings;
	struct signer_list_item *items =
		arena_alloc(&listing->arena, (listing->count + 1) * sizeof *items);
	int result = items ? OK : ERR_NO_MEMORY;
	for (size_t i = 0; i < listing->count && !result; i++)
		result = write_item(&listing->records[i], &listing->arena, &items[i], error);
	if (result)
		return result;
	struct signer_list list = {
		.service_name = settings->service_name,
		.service_prefix = settings->service_prefix,
		.service_url = settings->service_public_url,
		.issued_at_us = issued_at_us,
		.items = items,
		.count = listing->count,
	};
	for (int kind = 0; kind < SIGNER_LIST_KINDS; kind++) {
		list.keys[kind].items = listing->keys[kind];
		list.keys[kind].count = listing->key_counts[kind];
	}
	signer_list_write(&list, text);
	result = buf_check(text);
	return result && text->full
	           ? error_cause(error, ERR_TOO_LARGE, "the list of signers is too large to sign")
	           : result;
}

static int stamp(void *context, const struct sha256 *imprint, struct buf *out, struct error *error)
{
	struct service *service = context;
	AUTHORITY_RESULT_AUTO struct authority_result stamped = {0};
	int result =
		authorities_timestamp(service->authorities, imprint, TIME_NONE, &stamped, NULL, error);
	if (!result)
		result = timestamp_roots_record(service, buf_slice(&stamped.path), error);
	return result ? result
	              : timestamp_token_add_certificates(buf_slice(&stamped.token),
	                                                 buf_slice(&stamped.path), out, error);
}

/* Checks that the signed list can be read before it is published. */
static int check_made(struct slice document, struct error *error)
{
	ARENA_AUTO struct arena arena;
	BUF_AUTO struct buf text;
	struct signer_list list;
	struct cms_facts facts;
	const struct trust_roots none = {0};
	arena_init(&arena, LIST_MEMORY_MAX);
	buf_init(&text, SIGNER_LIST_TEXT_MAX);
	int result = cms_verify_attached(document, &none, &facts, &text, error);
	return result ? result : signer_list_read(&arena, buf_slice(&text), &list, error);
}

/* The signing key may have been ended in the meantime; by its timestamp, the signature could be
 * later than the end. */
static int check_unchanged(struct service *service, const struct sha256 *state, struct error *error)
{
	LISTING_AUTO struct listing now = {0};
	int result = read_listing(service->store, &now, error);
	return result || sha256_equal(&now.state, state)
	           ? result
	           : error_cause(error, ERR_UNAVAILABLE, "the list changed while it was signed");
}

int signer_listing_sign(struct service *service, struct error *error)
{
	LISTING_AUTO struct listing listing = {0};
	BUF_AUTO struct buf text, made;
	struct cms_signer signer = {service->signer, SIGNER_LIST};
	int64_t now_us = clock_now_us();
	buf_init(&text, SIGNER_LIST_TEXT_MAX);
	buf_init(&made, CMS_LT_SIZE_MAX);
	int result = signers_check(service, error);
	if (!result)
		result = read_listing(service->store, &listing, error);
	if (!result)
		result = write_document(service, &listing, now_us, &text, error);
	const struct cms_signing signing = {
		.certificates_pem = signer_certificates(service->signer),
		.sign = cms_sign_with_signer,
		.sign_context = &signer,
		.timestamp = stamp,
		.timestamp_context = service,
	};
	if (!result)
		result = cms_create_attached(buf_slice(&text), now_us, &signing, &made, error);
	if (!result)
		result = check_made(buf_slice(&made), error);
	if (!result)
		result = check_unchanged(service, &listing.state, error);
	const struct signed_signer_list list = {listing.state, now_us, buf_slice(&made)};
	return result ? result : store_put_signer_list(service->store, &list, error);
}

/* ---- handing out ---- */

int signer_listing_get(struct store *store, struct buf *out, struct error *error)
{
	LISTING_AUTO struct listing listing = {0};
	struct signed_signer_list list = {0};
	int result = read_listing(store, &listing, error);
	if (!result)
		result = store_get_signer_list(store, &listing.arena, &list, error);
	if (result == ERR_NOT_FOUND || (!result && !sha256_equal(&list.state, &listing.state)))
		return error_set(error, ERR_NOT_FOUND, MSG_HTTP_SIGNER_LIST, NULL);
	if (result)
		return result;
	buf_add_slice(out, list.document);
	return buf_check(out);
}
