#include "report/pdf_long_term.h"

#include <stdio.h>
#include <string.h>

#include "report/pdf_read.h"
#include "report/pdf_sign.h"
#include "report/pdf_sign_form.h"
#include "report/pdf_update.h"

#define DICTIONARY_MAX ((size_t)128 << 10)
#define PLACE_SIZE (2 + 2 * PDF_CMS_SIZE_MAX)

#define BASE_AUTO __attribute__((cleanup(pdf_base_free)))
#define UPDATE_AUTO __attribute__((cleanup(pdf_update_free)))

static int invalid(struct error *error, const char *why)
{
	return error_cause(error, ERR_INVALID_EVIDENCE, "the report %s", why);
}

void pdf_parts_free(struct pdf_parts *parts)
{
	validation_set_free(&parts->set);
}

bool pdf_is_long_term(struct slice file)
{
	int64_t at;
	int id;
	if (!pdf_last_object(file, &at))
		return false;
	struct slice object = pdf_text_from(file, at);
	return pdf_take_id(&object, &id) && pdf_take(&object, " 0 obj\n" PDF_FORM_TIMESTAMP_BEGIN);
}

/* ---- the signed report ---- */

/* Reads the dictionary of an object without its end. */
static bool read_open(struct slice file, int64_t at, int id, const char *end, struct buf *out)
{
	char begin[32];
	snprintf(begin, sizeof begin, "%d 0 obj\n", id);
	struct slice object = pdf_text_from(file, at);
	if (!pdf_take(&object, begin))
		return false;
	size_t most = object.size < DICTIONARY_MAX ? object.size : DICTIONARY_MAX;
	size_t end_size = strlen(end);
	const char *found = memmem(object.data, most, "\nendobj\n", 8);
	if (!found)
		return false;
	size_t size = (size_t)(found - object.data) + 8;
	if (size < end_size || memcmp(object.data + size - end_size, end, end_size) != 0)
		return false;
	buf_add(out, object.data, size - end_size);
	return true;
}

static bool read_table(struct slice file, const struct pdf_trailer *trailer, struct pdf_base *base,
                       int64_t *ret_catalog_at, int64_t *ret_page_at)
{
	struct slice rest = pdf_text_from(file, base->cross_reference_at);
	int ids[2];
	int64_t places[2], widget_at, signature_at;
	if (!pdf_take(&rest, "xref\n"))
		return false;
	for (int i = 0; i < 2; i++)
		if (!pdf_take_id(&rest, &ids[i]) || !pdf_take(&rest, " 1\n") ||
		    !pdf_take_entry(&rest, &places[i]))
			return false;
	if (!pdf_take_id(&rest, &base->signature_id) || !pdf_take(&rest, " 2\n") ||
	    !pdf_take_entry(&rest, &widget_at) || !pdf_take_entry(&rest, &signature_at) ||
	    rest.data - file.data != trailer->at)
		return false;
	bool catalog_first = ids[0] == trailer->root_id;
	if (!catalog_first && ids[1] != trailer->root_id)
		return false;
	base->catalog_id = trailer->root_id;
	base->page_id = ids[catalog_first];
	*ret_catalog_at = places[!catalog_first];
	*ret_page_at = places[catalog_first];
	return base->page_id != base->catalog_id;
}

/* Reads the data of the signed report that the next update needs. */
static bool read_signed(struct slice file, int64_t table_at, const struct pdf_trailer *trailer,
                        struct pdf_base *base)
{
	char end[96];
	int64_t catalog_at, page_at;
	base->cross_reference_at = table_at;
	base->size_bytes = trailer->end;
	base->info_id = trailer->info_id;
	base->next_id = trailer->size;
	memcpy(base->first_id, trailer->first_id, sizeof base->first_id);
	if (!read_table(file, trailer, base, &catalog_at, &page_at) ||
	    base->next_id != base->signature_id + 2)
		return false;
	snprintf(end, sizeof end, "/AcroForm << /Fields [ %d 0 R ] /SigFlags 3 >> >>\nendobj\n",
	         base->signature_id);
	return read_open(file, catalog_at, base->catalog_id, end, &base->catalog) &&
	       read_open(file, page_at, base->page_id, "] >>\nendobj\n", &base->page);
}

/* ---- /DSS ---- */

/* Counts the references in an array. */
static bool count_array(struct slice *rest, const char *begin, size_t *ret_count)
{
	int id;
	*ret_count = 0;
	if (!pdf_take(rest, begin))
		return true;
	while (pdf_take(rest, " ")) {
		if (pdf_take(rest, "]"))
			return true;
		if (!pdf_take_id(rest, &id) || !pdf_take(rest, " 0 R") ||
		    ++*ret_count > VALIDATION_SET_OBJECTS_MAX)
			return false;
	}
	return false;
}

static int read_stream(struct slice *rest, enum validation_kind kind, struct validation_set *set,
                       struct error *error)
{
	int id;
	int64_t size;
	if (!pdf_take_id(rest, &id) || !pdf_take(rest, " 0 obj\n" PDF_FORM_STREAM_BEGIN) ||
	    !pdf_take_number(rest, &size) || !pdf_take(rest, PDF_FORM_STREAM_DATA) ||
	    size > (int64_t)CMS_VALIDATION_SIZE_MAX || (uint64_t)size > rest->size)
		return invalid(error, "has malformed validation data");
	int result = validation_set_add(set, kind, slice_make(rest->data, (size_t)size), error);
	*rest = pdf_text_from(*rest, size);
	if (!result && !pdf_take(rest, PDF_FORM_STREAM_END))
		result = invalid(error, "has malformed validation data");
	return result == ERR_VALIDATION || result == ERR_TOO_LARGE ? ERR_INVALID_EVIDENCE : result;
}

/* Reads the validation data of an update, which begins at the object of the catalog. */
static int read_validation(struct slice update, struct validation_set *set, struct error *error)
{
	size_t counts[3];
	const char *dictionary =
		memmem(update.data, update.size < DICTIONARY_MAX ? update.size : DICTIONARY_MAX,
	           " 0 obj\n" PDF_FORM_DSS_BEGIN, strlen(" 0 obj\n" PDF_FORM_DSS_BEGIN));
	if (!dictionary)
		return invalid(error, "has no validation data at the required position");
	struct slice rest = pdf_text_from(update, dictionary - update.data);
	if (!pdf_take(&rest, " 0 obj\n" PDF_FORM_DSS_BEGIN) ||
	    !count_array(&rest, " /Certs [", &counts[VALIDATION_CERTIFICATE]) ||
	    !count_array(&rest, " /CRLs [", &counts[VALIDATION_CRL]) ||
	    !count_array(&rest, " /OCSPs [", &counts[VALIDATION_OCSP]) ||
	    !pdf_take(&rest, PDF_FORM_END))
		return invalid(error, "has malformed validation data");
	int result = OK;
	for (int kind = 0; kind < 3; kind++)
		for (size_t i = 0; i < counts[kind] && !result; i++)
			result = read_stream(&rest, (enum validation_kind)kind, set, error);
	return result;
}

/* ---- the updates ---- */

static bool matches_at(struct slice file, int64_t at, const struct buf *expected)
{
	struct slice found = pdf_text_from(file, at);
	return found.size >= expected->size && memcmp(found.data, expected->data, expected->size) == 0;
}

static int check_validation(struct slice file, struct pdf_base *base,
                            const struct validation_set *set, struct error *error)
{
	UPDATE_AUTO struct pdf_update expected;
	int result = pdf_update_validation(base, set, &expected);
	if (result)
		return result == ERR_TOO_LARGE ? invalid(error, "has too much validation data") : result;
	if (!matches_at(file, base->size_bytes, &expected.before))
		return invalid(error, "has validation data of an unexpected form");
	pdf_base_add_validation(base, &expected);
	return OK;
}

static int check_timestamp(struct slice file, const struct pdf_base *base, size_t *ret_contents_at,
                           struct error *error)
{
	UPDATE_AUTO struct pdf_update expected;
	int result = pdf_update_timestamp(base, &expected);
	if (result)
		return result;
	int64_t contents_at = base->size_bytes + (int64_t)expected.before.size;
	if ((int64_t)file.size != base->size_bytes + expected.size_bytes ||
	    !matches_at(file, base->size_bytes, &expected.before) ||
	    !matches_at(file, contents_at + PLACE_SIZE, &expected.after) ||
	    file.data[contents_at] != '<' || file.data[contents_at + PLACE_SIZE - 1] != '>')
		return invalid(error, "has a document timestamp of an unexpected form");
	*ret_contents_at = (size_t)contents_at + 1;
	return OK;
}

int pdf_decompose(struct slice file, struct pdf_parts *ret_parts, struct error *error)
{
	BASE_AUTO struct pdf_base base = {0};
	struct pdf_trailer last, validation, trailer;
	int64_t table_at;
	*ret_parts = (struct pdf_parts){0};
	buf_init(&base.catalog, DICTIONARY_MAX);
	buf_init(&base.page, DICTIONARY_MAX);
	if (!pdf_last_table(file, &table_at) || !pdf_read_trailer(file, table_at, &last) ||
	    !pdf_read_trailer(file, last.previous_at, &validation) ||
	    !pdf_read_trailer(file, validation.previous_at, &trailer) ||
	    !read_signed(file, validation.previous_at, &trailer, &base))
		return invalid(error, "has updates of an unexpected form");
	int result = buf_check(&base.catalog);
	if (!result)
		result = buf_check(&base.page);
	if (!result)
		result = read_validation(pdf_text_from(file, trailer.end), &ret_parts->set, error);
	if (!result)
		result = check_validation(file, &base, &ret_parts->set, error);
	if (!result)
		result = check_timestamp(file, &base, &ret_parts->contents_at, error);
	ret_parts->signed_size = (size_t)trailer.end;
	return result;
}
