#include "proof/pdf_sign.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "proof/pdf_base.h"
#include "proof/pdf_sign_form.h"

#define UPDATE_MAX ((size_t)1 << 20)

/* The update in two pieces, with the place of the signature between them. */
struct update {
	struct buf before;
	struct buf after;
	int64_t contents_at; /* of '<' in the file */
};

static void update_free(struct update *update)
{
	buf_free(&update->before);
	buf_free(&update->after);
}

static void add_range(struct update *update, int64_t after_size)
{
	int64_t resumes_at = update->contents_at + 2 + 2 * PDF_CMS_SIZE_MAX;
	char numbers[PDF_FORM_RANGE_SIZE + 1];
	snprintf(numbers, sizeof(numbers), "%lld %lld %lld", (long long)update->contents_at,
	         (long long)resumes_at, (long long)after_size);
	buf_printf(&update->before, "%-*s", PDF_FORM_RANGE_SIZE, numbers);
}

/* Where each object of the update begins in the file. */
struct places {
	int64_t catalog, page, widget, signature;
};

static int64_t object_begin(struct update *update, const struct pdf_base *base, int id)
{
	int64_t at = base->size_bytes + (int64_t)update->before.size;
	buf_printf(&update->before, "%d 0 obj\n", id);
	return at;
}

static void add_objects(const struct pdf_base *base, struct update *update, struct places *places)
{
	struct buf *out = &update->before;
	int widget_id = base->next_id;
	places->catalog = object_begin(update, base, base->catalog_id);
	buf_add_slice(out, buf_slice(&base->catalog));
	buf_printf(out, "/AcroForm << /Fields [ %d 0 R ] /SigFlags 3 >> >>\nendobj\n", widget_id);
	places->page = object_begin(update, base, base->page_id);
	buf_add_slice(out, buf_slice(&base->page));
	buf_printf(out, "%d 0 R ] >>\nendobj\n", widget_id);
	places->widget = object_begin(update, base, widget_id);
	buf_printf(out,
	           "<< /Type /Annot /Subtype /Widget /FT /Sig /T (Signature) /TU (Signature) "
	           "/Rect [ 0 0 0 0 ] /F 132 /P %d 0 R /V %d 0 R >>\nendobj\n",
	           base->page_id, widget_id + 1);
	places->signature = object_begin(update, base, widget_id + 1);
}

/* Everything behind the signature's digits. */
static void add_end(const struct pdf_base *base, struct update *update, const struct places *places)
{
	struct buf *out = &update->after;
	int64_t table_at =
		update->contents_at + 2 + 2 * PDF_CMS_SIZE_MAX + (int64_t)strlen(PDF_FORM_END);
	bool catalog_first = base->catalog_id < base->page_id;
	buf_add_text(out, PDF_FORM_END "xref\n");
	buf_printf(out, "%d 1\n" PDF_FORM_ENTRY, catalog_first ? base->catalog_id : base->page_id,
	           (long long)(catalog_first ? places->catalog : places->page));
	buf_printf(out, "%d 1\n" PDF_FORM_ENTRY, catalog_first ? base->page_id : base->catalog_id,
	           (long long)(catalog_first ? places->page : places->catalog));
	buf_printf(out, "%d 2\n" PDF_FORM_ENTRY PDF_FORM_ENTRY, base->next_id,
	           (long long)places->widget, (long long)places->signature);
	struct sha256 changed = sha256_of(update->before.data, update->before.size);
	buf_printf(out, "trailer\n<< /Size %d ", base->next_id + 2);
	buf_printf(out, "/Root %d 0 R", base->catalog_id);
	if (base->info_id)
		buf_printf(out, " /Info %d 0 R", base->info_id);
	buf_printf(out, " /Prev %lld /ID [ <%s> <", (long long)base->cross_reference_at,
	           base->first_id);
	buf_add_hex(out, changed.bytes, 16);
	buf_printf(out, "> ] >>\nstartxref\n%lld\n%%%%EOF\n", (long long)table_at);
}

static int make_update(const struct pdf_base *base, int64_t time_us, struct update *update)
{
	buf_init(&update->before, UPDATE_MAX);
	buf_init(&update->after, UPDATE_MAX);
	struct places places;
	char date[PDF_DATE_SIZE];
	pdf_date(time_us, date);
	add_objects(base, update, &places);
	buf_printf(&update->before, PDF_FORM_BEGIN "%s" PDF_FORM_RANGE, date);
	update->contents_at = base->size_bytes + (int64_t)update->before.size + PDF_FORM_RANGE_SIZE +
	                      (int64_t)strlen(PDF_FORM_CONTENTS);
	int result = buf_check(&update->before);
	if (result)
		return result;
	add_end(base, update, &places);
	add_range(update, (int64_t)update->after.size);
	buf_add_text(&update->before, PDF_FORM_CONTENTS);
	result = buf_check(&update->before);
	return result ? result : buf_check(&update->after);
}

static int write_out(int fd, struct slice content, const char *path, struct error *error)
{
	if (!file_write_all(fd, content))
		return error_cause(error, file_code(errno), "%s: %s", path, strerror(errno));
	return OK;
}

/* Copies a whole file to where another stands, and adds it to a digest. */
static int pass_through(int from_fd, int to_fd, struct digest_stream *digest, const char *path,
                        struct error *error)
{
	char block[65536];
	off_t at = 0;
	for (;;) {
		ssize_t got = pread(from_fd, block, sizeof(block), at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_cause(error, ERR_IO, "%s: %s", path, strerror(errno));
		if (got == 0)
			return OK;
		digest_add(digest, block, (size_t)got);
		int result = write_out(to_fd, slice_make(block, (size_t)got), path, error);
		if (result)
			return result;
		at += got;
	}
}

/* '<', the digits filled up with zeros, '>'. */
static int write_contents(int fd, const struct buf *cms, const char *path, struct error *error)
{
	BUF_AUTO struct buf contents;
	buf_init(&contents, 2 * PDF_CMS_SIZE_MAX + 3);
	buf_add_byte(&contents, '<');
	buf_add_hex(&contents, cms->data, cms->size);
	size_t left = 2 * (PDF_CMS_SIZE_MAX - cms->size);
	char *padding = buf_extend(&contents, left);
	if (padding)
		memset(padding, '0', left);
	buf_add_byte(&contents, '>');
	int result = buf_check(&contents);
	return result ? result : write_out(fd, buf_slice(&contents), path, error);
}

static int sign_copy(int base_fd, int fd, const struct update *update,
                     const struct cms_signing *signing, const char *path, struct error *error)
{
	struct digest_stream *digest = digest_begin();
	if (!digest)
		return error_cause(error, ERR_NO_MEMORY, "signing a report");
	int result = pass_through(base_fd, fd, digest, path, error);
	if (result) {
		digest_cancel(digest);
		return result;
	}
	digest_add(digest, update->before.data, update->before.size);
	digest_add(digest, update->after.data, update->after.size);
	struct sha256 covered = digest_end(digest);
	BUF_AUTO struct buf cms;
	buf_init(&cms, PDF_CMS_SIZE_MAX);
	result = cms_create(&covered, TIME_NONE, signing, &cms, error);
	if (!result)
		result = buf_check(&cms);
	if (!result)
		result = write_out(fd, buf_slice(&update->before), path, error);
	if (!result)
		result = write_contents(fd, &cms, path, error);
	if (!result)
		result = write_out(fd, buf_slice(&update->after), path, error);
	if (!result && fsync(fd))
		result = error_cause(error, ERR_IO, "%s: %s", path, strerror(errno));
	return result;
}

/* Reads back what was written. */
static int summarize(int fd, const char *path, struct pdf_signed *ret_signed, struct error *error)
{
	struct sha256 digest;
	uint64_t size_bytes;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return error_cause(error, ERR_IO, "%s: %s", path, strerror(errno));
	int result = file_digest(fd, path, &size_bytes, &digest, error);
	if (!result)
		*ret_signed = (struct pdf_signed){digest, (int64_t)size_bytes};
	return result;
}

int pdf_sign(const char *base_path, const char *signed_path, int64_t time_us,
             const struct cms_signing *signing, struct pdf_signed *ret_signed, struct error *error)
{
	struct pdf_base base __attribute__((cleanup(pdf_base_free))) = {0};
	struct update update __attribute__((cleanup(update_free))) = {0};
	DESCRIPTOR_AUTO int base_fd = open(base_path, O_RDONLY | O_CLOEXEC);
	if (base_fd < 0)
		return error_cause(error, ERR_IO, "%s: %s", base_path, strerror(errno));
	int result = pdf_base_read(base_fd, &base, error);
	if (!result)
		result = make_update(&base, time_us, &update);
	if (result)
		return result;
	DESCRIPTOR_AUTO int fd = open(signed_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	if (fd < 0)
		return error_cause(error, ERR_IO, "%s: %s", signed_path, strerror(errno));
	result = sign_copy(base_fd, fd, &update, signing, signed_path, error);
	if (!result)
		result = summarize(fd, signed_path, ret_signed, error);
	if (result)
		unlink(signed_path);
	return result;
}
