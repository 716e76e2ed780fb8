#include "proof/pdf_sign.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <qpdf/qpdf-c.h>

#include "base/buf.h"
#include "base/clock.h"
#include "proof/pdf_sign_form.h"
#include "proof/zip_shape.h"

#define DICTIONARY_MAX 65536
#define UPDATE_MAX ((size_t)1 << 20)
#define ANNOTATIONS_MAX 1000

/* What the update needs to know of the base file. */
struct base {
	int catalog_id;
	int page_id;
	int next_id; /* the first free object number */
	int64_t cross_reference_at;
	int64_t size_bytes;
	struct buf catalog; /* "<< … " without the closing brackets */
	struct buf page;
	struct buf trailer;  /* /Root and /Info */
	struct buf first_id; /* the file identifier that stays, in binary */
};

/* The update in two pieces, with the place of the signature between them. */
struct update {
	struct buf before;
	struct buf after;
	int64_t contents_at; /* of '<' in the file */
};

static void base_free(struct base *base)
{
	buf_free(&base->catalog);
	buf_free(&base->page);
	buf_free(&base->trailer);
	buf_free(&base->first_id);
}

static void update_free(struct update *update)
{
	buf_free(&update->before);
	buf_free(&update->after);
}

static int refused(struct error *error, const char *why)
{
	return error_cause(error, ERR_REFUSED, "the file to sign %s", why);
}

/* Appends an object's dictionary without its closing brackets, for members to be added. */
static bool open_dictionary(qpdf_data pdf, qpdf_oh object, struct buf *out)
{
	const char *text = qpdf_oh_unparse_resolved(pdf, object);
	size_t size = text ? strlen(text) : 0;
	if (size < 4 || strncmp(text, "<<", 2) != 0 || strcmp(text + size - 2, ">>") != 0)
		return false;
	buf_add(out, text, size - 2);
	return true;
}

/* The page's annotations move into an array that the widget can be appended to. */
static int open_page(qpdf_data pdf, qpdf_oh page, struct buf *out)
{
	qpdf_oh annotations = qpdf_oh_get_key(pdf, page, "/Annots");
	BUF_AUTO struct buf list;
	buf_init(&list, DICTIONARY_MAX);
	int count = 0;
	if (qpdf_oh_is_array(pdf, annotations))
		count = qpdf_oh_get_array_n_items(pdf, annotations);
	if (count > ANNOTATIONS_MAX)
		return ERR_REFUSED;
	for (int i = 0; i < count; i++) {
		qpdf_oh item = qpdf_oh_get_array_item(pdf, annotations, i);
		if (!qpdf_oh_is_indirect(pdf, item))
			return ERR_REFUSED;
		buf_printf(&list, "%d %d R ", qpdf_oh_get_object_id(pdf, item),
		           qpdf_oh_get_generation(pdf, item));
	}
	qpdf_oh_remove_key(pdf, page, "/Annots");
	if (buf_check(&list))
		return ERR_NO_MEMORY;
	if (!open_dictionary(pdf, page, out))
		return ERR_REFUSED;
	buf_add_text(out, "/Annots [ ");
	buf_add_slice(out, buf_slice(&list));
	return OK;
}

static int read_objects(qpdf_data pdf, struct base *base, struct error *error)
{
	qpdf_oh trailer = qpdf_get_trailer(pdf);
	qpdf_oh root = qpdf_get_root(pdf);
	if (qpdf_get_num_pages(pdf) < 1)
		return refused(error, "has no page");
	qpdf_oh page = qpdf_get_page_n(pdf, 0);
	if (qpdf_oh_has_key(pdf, root, "/AcroForm"))
		return refused(error, "has a form already");
	base->catalog_id = qpdf_oh_get_object_id(pdf, root);
	base->page_id = qpdf_oh_get_object_id(pdf, page);
	base->next_id = qpdf_oh_get_int_value_as_int(pdf, qpdf_oh_get_key(pdf, trailer, "/Size"));
	size_t size = 0;
	qpdf_oh identifiers = qpdf_oh_get_key(pdf, trailer, "/ID");
	qpdf_oh first = qpdf_oh_is_array(pdf, identifiers) ? qpdf_oh_get_array_item(pdf, identifiers, 0)
	                                                   : identifiers;
	const char *identifier = qpdf_oh_get_binary_string_value(pdf, first, &size);
	if (!identifier || size != 16)
		return refused(error, "has no identifier");
	buf_add(&base->first_id, identifier, size);
	buf_printf(&base->trailer, "/Root %d 0 R", base->catalog_id);
	qpdf_oh info = qpdf_oh_get_key(pdf, trailer, "/Info");
	if (qpdf_oh_is_indirect(pdf, info))
		buf_printf(&base->trailer, " /Info %d 0 R", qpdf_oh_get_object_id(pdf, info));
	int opened = open_page(pdf, page, &base->page);
	if (opened == ERR_NO_MEMORY)
		return error_cause(error, opened, "signing a report");
	if (opened || !open_dictionary(pdf, root, &base->catalog))
		return refused(error, "has an unexpected catalog or first page");
	if (base->catalog_id < 1 || base->page_id < 1 || base->next_id <= base->catalog_id ||
	    base->next_id <= base->page_id || base->catalog_id == base->page_id)
		return refused(error, "numbers its objects in an unexpected way");
	if (qpdf_has_error(pdf))
		return refused(error, "cannot be read");
	if (base->catalog.failed || base->page.failed || base->trailer.failed || base->first_id.failed)
		return error_cause(error, ERR_NO_MEMORY, "signing a report");
	return OK;
}

/* The position that startxref names; it must be a classic table. */
static int read_end(int base_fd, struct base *base, struct error *error)
{
	char end[64] = {0};
	char table[5] = {0};
	off_t size = lseek(base_fd, 0, SEEK_END);
	if (size < 0)
		return error_cause(error, ERR_IO, "the file to sign: %s", strerror(errno));
	if (size < (off_t)sizeof(end))
		return refused(error, "is too short");
	if (!zip_read_at(base_fd, end, sizeof(end) - 1, (uint64_t)size - sizeof(end) + 1))
		return error_cause(error, ERR_IO, "the file to sign: %s", strerror(errno));
	const char *mark = strstr(end, "startxref\n");
	char *rest = NULL;
	long long at = mark ? strtoll(mark + strlen("startxref\n"), &rest, 10) : -1;
	if (at < 0 || strcmp(rest, "\n%%EOF\n") != 0)
		return refused(error, "has an unexpected end");
	if (at > size - (off_t)sizeof(table))
		return refused(error, "has an unexpected end");
	if (!zip_read_at(base_fd, table, sizeof(table), (uint64_t)at))
		return error_cause(error, ERR_IO, "the file to sign: %s", strerror(errno));
	if (memcmp(table, "xref\n", sizeof(table)) != 0)
		return refused(error, "has no classic cross-reference table");
	base->cross_reference_at = at;
	base->size_bytes = size;
	return OK;
}

static int read_base(const char *path, int base_fd, struct base *base, struct error *error)
{
	buf_init(&base->catalog, DICTIONARY_MAX);
	buf_init(&base->page, 2 * DICTIONARY_MAX);
	buf_init(&base->trailer, 256);
	buf_init(&base->first_id, 64);
	int result = read_end(base_fd, base, error);
	if (result)
		return result;
	qpdf_data pdf = qpdf_init();
	qpdf_silence_errors(pdf);
	qpdf_set_suppress_warnings(pdf, QPDF_TRUE);
	qpdf_set_attempt_recovery(pdf, QPDF_FALSE);
	if (qpdf_read(pdf, path, NULL) & QPDF_ERRORS)
		result = refused(error, "cannot be read");
	else
		result = read_objects(pdf, base, error);
	qpdf_cleanup(&pdf);
	return result;
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

static int64_t object_begin(struct update *update, const struct base *base, int id)
{
	int64_t at = base->size_bytes + (int64_t)update->before.size;
	buf_printf(&update->before, "%d 0 obj\n", id);
	return at;
}

static void add_objects(const struct base *base, struct update *update, struct places *places)
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
static void add_end(const struct base *base, struct update *update, const struct places *places)
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
	buf_add_slice(out, buf_slice(&base->trailer));
	buf_printf(out, " /Prev %lld /ID [ <", (long long)base->cross_reference_at);
	buf_add_hex(out, base->first_id.data, base->first_id.size);
	buf_add_text(out, "> <");
	buf_add_hex(out, changed.bytes, 16);
	buf_printf(out, "> ] >>\nstartxref\n%lld\n%%%%EOF\n", (long long)table_at);
}

static int make_update(const struct base *base, int64_t time_us, struct update *update)
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

static int write_all(int fd, const char *data, size_t size, const char *path, struct error *error)
{
	while (size > 0) {
		ssize_t written = write(fd, data, size);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return error_cause(error, errno == ENOSPC || errno == EDQUOT ? ERR_NO_SPACE : ERR_IO,
			                   "%s: %s", path, strerror(errno));
		data += written;
		size -= (size_t)written;
	}
	return OK;
}

/* Reads a file from its start, into a digest and, unless to_fd is negative, into another file. */
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
		int result = to_fd < 0 ? OK : write_all(to_fd, block, (size_t)got, path, error);
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
	return result ? result : write_all(fd, contents.data, contents.size, path, error);
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
		result = write_all(fd, update->before.data, update->before.size, path, error);
	if (!result)
		result = write_contents(fd, &cms, path, error);
	if (!result)
		result = write_all(fd, update->after.data, update->after.size, path, error);
	if (!result && fsync(fd))
		result = error_cause(error, ERR_IO, "%s: %s", path, strerror(errno));
	return result;
}

/* Reads back what was written. */
static int summarize(int fd, const char *path, struct pdf_signed *ret_signed, struct error *error)
{
	struct digest_stream *digest = digest_begin();
	if (!digest)
		return error_cause(error, ERR_NO_MEMORY, "signing a report");
	int result = pass_through(fd, -1, digest, path, error);
	struct sha256 whole = digest_end(digest);
	if (!result)
		*ret_signed = (struct pdf_signed){whole, lseek(fd, 0, SEEK_END)};
	return result;
}

int pdf_sign(const char *base_path, const char *signed_path, int64_t time_us,
             const struct cms_signing *signing, struct pdf_signed *ret_signed, struct error *error)
{
	struct base base __attribute__((cleanup(base_free))) = {0};
	struct update update __attribute__((cleanup(update_free))) = {0};
	int base_fd = open(base_path, O_RDONLY | O_CLOEXEC);
	if (base_fd < 0)
		return error_cause(error, ERR_IO, "%s: %s", base_path, strerror(errno));
	int result = read_base(base_path, base_fd, &base, error);
	if (!result)
		result = make_update(&base, time_us, &update);
	int fd = result ? -1 : open(signed_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	if (!result && fd < 0)
		result = error_cause(error, ERR_IO, "%s: %s", signed_path, strerror(errno));
	if (!result)
		result = sign_copy(base_fd, fd, &update, signing, signed_path, error);
	if (!result)
		result = summarize(fd, signed_path, ret_signed, error);
	close(base_fd);
	if (fd >= 0) {
		close(fd);
		if (result)
			unlink(signed_path);
	}
	return result;
}
