/* Public lookup of certifications by verification code or digest. */
#include "base/json.h"
#include "issue/verification.h"
#include "issue/verification_code.h"
#include "service/service.h"
#include "store/certifications/certifications.h"

#define LOOKUP_MEMORY_MAX ((size_t)64 << 20) /* a certification with many parts */

static void write_document(const struct document *document, struct json_writer *writer)
{
	static const char *const kinds[] = {"report", "evidence", "content_part"};
	const char *language = document->language == LANGUAGE_SPANISH ? "es" : "en";
	json_begin_object(writer, NULL);
	json_text(writer, "name", document->name);
	json_text(writer, "kind", kinds[document->kind]);
	json_text(writer, "language", document->kind == DOCUMENT_REPORT ? language : NULL);
	json_integer(writer, "bytes", document->size_bytes);
	json_hex(writer, "sha256", document->sha256.bytes, SHA256_SIZE);
	json_end_object(writer);
}

static void write_verification(const struct certification *certification,
                               const struct document *documents, size_t count, struct buf *out)
{
	struct json_writer writer = {.out = out};
	json_begin_object(&writer, NULL);
	json_text(&writer, "certification_id", certification->certification_id);
	json_text(&writer, "verification_code", certification->verification_code);
	json_text(&writer, "mode", mode_text(certification->mode));
	json_text(&writer, "status", certification_status_text(certification->status));
	json_time(&writer, "issued_at", certification->completed_at_us);
	json_integer(&writer, "event_count",
	             certification->last_sequence - certification->first_sequence + 1);
	json_integer(&writer, "first_sequence", certification->first_sequence);
	json_integer(&writer, "last_sequence", certification->last_sequence);
	json_begin_array(&writer, "documents");
	for (size_t i = 0; i < count; i++)
		write_document(&documents[i], &writer);
	json_end_array(&writer);
	json_end_object(&writer);
}

static int find_code(struct service *service, struct slice typed, struct arena *arena,
                     struct certification *ret, struct error *error)
{
	struct verification_codes codes = verification_code_read(typed);
	bool found = false;
	for (size_t i = 0; i < codes.count && !(found && codes.is_certain); i++) {
		struct certification one;
		int result =
			store_find_issued(service->store, slice_of(codes.codes[i]), NULL, arena, &one, error);
		if (result && result != ERR_NOT_FOUND)
			return result;
		if (result)
			continue;
		if (found)
			return ERR_NOT_FOUND; /* ambiguous */
		*ret = one;
		found = true;
	}
	return found ? OK : ERR_NOT_FOUND;
}

int verification_lookup(struct service *service, struct slice typed, const struct sha256 *digest,
                        struct buf *out, struct error *error)
{
	ARENA_AUTO struct arena arena;
	struct certification certification;
	struct document *documents = NULL;
	size_t count = 0;
	arena_init(&arena, LOOKUP_MEMORY_MAX);
	int result = digest ? store_find_issued(service->store, slice_of(""), digest, &arena,
	                                        &certification, error)
	                    : find_code(service, typed, &arena, &certification, error);
	if (!result)
		result =
			store_list_documents(service->store, certification.account, certification.certification,
		                         &arena, &documents, &count, error);
	if (!result)
		write_verification(&certification, documents, count, out);
	return result;
}
