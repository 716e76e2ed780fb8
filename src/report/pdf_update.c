#include "report/pdf_update.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "report/pdf_sign.h"
#include "report/pdf_sign_form.h"

#define UPDATE_MAX ((size_t)1 << 20)
#define PLACE_SIZE (2 + 2 * PDF_CMS_SIZE_MAX)
#define DEVELOPER_EXTENSION "/Extensions << /ESIC << /BaseVersion /1.7 /ExtensionLevel 1 >> >> "

static void begin(struct pdf_update *update)
{
	memset(update, 0, sizeof *update);
	buf_init(&update->before, UPDATE_MAX + CMS_VALIDATION_SIZE_MAX);
	buf_init(&update->after, UPDATE_MAX);
}

void pdf_update_free(struct pdf_update *update)
{
	buf_free(&update->before);
	buf_free(&update->after);
}

/* ---- objects ---- */

static int64_t object_begin(const struct pdf_base *base, struct pdf_update *update, int id)
{
	int64_t at = base->size_bytes + (int64_t)update->before.size;
	buf_printf(&update->before, "%d 0 obj\n", id);
	return at;
}

/* Returns the number of the object. */
static int added_begin(const struct pdf_base *base, struct pdf_update *update)
{
	assert(update->added_count < sizeof update->added_at / sizeof *update->added_at);
	int id = base->next_id + (int)update->added_count;
	update->added_at[update->added_count++] = object_begin(base, update, id);
	return id;
}

/* Adds the catalog. The number 0 means that the widget or /DSS does not exist. */
static void add_catalog(const struct pdf_base *base, struct pdf_update *update, int signature_id,
                        int timestamp_id, int validation_id)
{
	struct buf *out = &update->before;
	update->catalog_at = object_begin(base, update, base->catalog_id);
	buf_add_slice(out, buf_slice(&base->catalog));
	buf_printf(out, "/AcroForm << /Fields [ %d 0 R ", signature_id);
	if (timestamp_id)
		buf_printf(out, "%d 0 R ", timestamp_id);
	buf_add_text(out, "] /SigFlags 3 >> ");
	if (validation_id)
		buf_printf(out, "/DSS %d 0 R " DEVELOPER_EXTENSION, validation_id);
	buf_add_text(out, ">>\nendobj\n");
}

/* Adds the page with one more widget, and the widget, whose value is the object after it. */
static void add_field(const struct pdf_base *base, struct pdf_update *update, const char *name)
{
	struct buf *out = &update->before;
	update->page_at = object_begin(base, update, base->page_id);
	buf_add_slice(out, buf_slice(&base->page));
	buf_printf(out, "%d 0 R ] >>\nendobj\n", base->next_id);
	int widget_id = added_begin(base, update);
	buf_printf(out,
	           "<< /Type /Annot /Subtype /Widget /FT /Sig /T (%s) /TU (%s) "
	           "/Rect [ 0 0 0 0 ] /F 132 /P %d 0 R /V %d 0 R >>\nendobj\n",
	           name, name, base->page_id, widget_id + 1);
	added_begin(base, update);
}

/* ---- the end ---- */

static void add_entry(struct buf *out, int64_t at)
{
	buf_printf(out, PDF_FORM_ENTRY, (long long)at);
}

static void add_changed(const struct pdf_base *base, const struct pdf_update *update,
                        struct buf *out)
{
	bool catalog_first = base->catalog_id < base->page_id;
	for (int i = 0; i < 2; i++) {
		bool catalog = (i == 0) == catalog_first;
		int64_t at = catalog ? update->catalog_at : update->page_at;
		if (at) {
			buf_printf(out, "%d 1\n", catalog ? base->catalog_id : base->page_id);
			add_entry(out, at);
		}
	}
}

static void add_end(const struct pdf_base *base, struct pdf_update *update, struct buf *out)
{
	struct sha256 changed = sha256_of(update->before.data, update->before.size);
	buf_add_text(out, "xref\n");
	add_changed(base, update, out);
	buf_printf(out, "%d %zu\n", base->next_id, update->added_count);
	for (size_t i = 0; i < update->added_count; i++)
		add_entry(out, update->added_at[i]);
	buf_printf(out, "trailer\n<< /Size %d ", base->next_id + (int)update->added_count);
	buf_printf(out, "/Root %d 0 R", base->catalog_id);
	if (base->info_id)
		buf_printf(out, " /Info %d 0 R", base->info_id);
	buf_printf(out, " /Prev %lld /ID [ <%s> <", (long long)base->cross_reference_at,
	           base->first_id);
	buf_add_hex(out, changed.bytes, 16);
	buf_printf(out, "> ] >>\nstartxref\n%lld\n%%%%EOF\n", (long long)update->table_at);
}

/* Adds everything after "/ByteRange [0 ". The numbers have a fixed width, because they depend on
 * the size of the text. */
static void add_range_and_end(const struct pdf_base *base, struct pdf_update *update)
{
	struct buf *out = &update->before;
	int64_t contents_at = base->size_bytes + (int64_t)out->size + PDF_FORM_RANGE_SIZE +
	                      (int64_t)strlen(PDF_FORM_CONTENTS);
	int64_t resumes_at = contents_at + PLACE_SIZE;
	update->table_at = resumes_at + (int64_t)strlen(PDF_FORM_END);
	buf_add_text(&update->after, PDF_FORM_END);
	add_end(base, update, &update->after);
	char numbers[3 * 21];
	snprintf(numbers, sizeof numbers, "%lld %lld %lld", (long long)contents_at,
	         (long long)resumes_at, (long long)update->after.size);
	buf_printf(out, "%-*s" PDF_FORM_CONTENTS, PDF_FORM_RANGE_SIZE, numbers);
	/* The signature covers everything except the bytes in between. */
	assert(buf_check(out) || base->size_bytes + (int64_t)out->size == contents_at);
}

static int finish(struct pdf_update *update)
{
	int64_t place = update->after.size > 0 ? PLACE_SIZE : 0;
	update->size_bytes = (int64_t)update->before.size + place + (int64_t)update->after.size;
	int result = buf_check(&update->before);
	return result ? result : buf_check(&update->after);
}

/* ---- the updates ---- */

int pdf_update_signature(const struct pdf_base *base, int64_t time_us,
                         struct pdf_update *ret_update)
{
	char date[PDF_DATE_SIZE];
	begin(ret_update);
	pdf_date(time_us, date);
	add_catalog(base, ret_update, base->next_id, 0, 0);
	add_field(base, ret_update, "Signature");
	buf_printf(&ret_update->before, PDF_FORM_BEGIN "%s" PDF_FORM_RANGE, date);
	add_range_and_end(base, ret_update);
	return finish(ret_update);
}

int pdf_update_timestamp(const struct pdf_base *base, struct pdf_update *ret_update)
{
	begin(ret_update);
	add_catalog(base, ret_update, base->signature_id, base->next_id, base->validation_id);
	add_field(base, ret_update, "Timestamp");
	buf_add_text(&ret_update->before, PDF_FORM_TIMESTAMP_BEGIN);
	add_range_and_end(base, ret_update);
	return finish(ret_update);
}

static const char *const array_names[] = {
	[VALIDATION_CERTIFICATE] = "Certs", [VALIDATION_CRL] = "CRLs", [VALIDATION_OCSP] = "OCSPs"};
#define KINDS 3

static void add_array(struct pdf_update *update, const struct validation_set *set,
                      enum validation_kind kind, int *next_id)
{
	bool any = false;
	for (size_t i = 0; i < set->count; i++) {
		if (set->objects[i].kind != kind)
			continue;
		if (!any)
			buf_printf(&update->before, " /%s [", array_names[kind]);
		any = true;
		buf_printf(&update->before, " %d 0 R", (*next_id)++);
	}
	if (any)
		buf_add_text(&update->before, " ]");
}

static void add_objects(const struct pdf_base *base, struct pdf_update *update,
                        const struct validation_set *set, enum validation_kind kind)
{
	struct buf *out = &update->before;
	for (size_t i = 0; i < set->count; i++) {
		if (set->objects[i].kind != kind)
			continue;
		added_begin(base, update);
		buf_printf(out, PDF_FORM_STREAM_BEGIN "%zu" PDF_FORM_STREAM_DATA, set->objects[i].der.size);
		buf_add_slice(out, set->objects[i].der);
		buf_add_text(out, PDF_FORM_STREAM_END);
	}
}

int pdf_update_validation(const struct pdf_base *base, const struct validation_set *set,
                          struct pdf_update *ret_update)
{
	begin(ret_update);
	if (set->size_bytes > CMS_VALIDATION_SIZE_MAX)
		return ERR_TOO_LARGE;
	add_catalog(base, ret_update, base->signature_id, 0, base->next_id);
	int next_id = added_begin(base, ret_update) + 1;
	buf_add_text(&ret_update->before, PDF_FORM_DSS_BEGIN);
	for (int kind = 0; kind < KINDS; kind++)
		add_array(ret_update, set, (enum validation_kind)kind, &next_id);
	buf_add_text(&ret_update->before, PDF_FORM_END);
	for (int kind = 0; kind < KINDS; kind++)
		add_objects(base, ret_update, set, (enum validation_kind)kind);
	ret_update->table_at = base->size_bytes + (int64_t)ret_update->before.size;
	BUF_AUTO struct buf end;
	buf_init(&end, UPDATE_MAX);
	add_end(base, ret_update, &end);
	buf_add_slice(&ret_update->before, buf_slice(&end));
	int result = buf_check(&end);
	return result ? result : finish(ret_update);
}

/* ---- the base after an update ---- */

static void advance(struct pdf_base *base, const struct pdf_update *update)
{
	base->next_id += (int)update->added_count;
	base->cross_reference_at = update->table_at;
	base->size_bytes += update->size_bytes;
}

int pdf_base_add_signature(struct pdf_base *base, const struct pdf_update *update)
{
	base->signature_id = base->next_id;
	buf_printf(&base->page, "%d 0 R ", base->next_id);
	advance(base, update);
	return buf_check(&base->page);
}

void pdf_base_add_validation(struct pdf_base *base, const struct pdf_update *update)
{
	base->validation_id = base->next_id;
	advance(base, update);
}
