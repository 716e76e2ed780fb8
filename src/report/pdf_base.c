#include "report/pdf_base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/zip_shape.h"
#include "base/file.h"
#include "report/pdf_sign_form.h"

#define DICTIONARY_MAX 65536
#define TRAILER_MAX 512

static int refused(struct error *error, const char *why)
{
	return error_cause(error, ERR_REFUSED, "the file to sign %s", why);
}

static int read_at(int file, char *bytes, size_t size, int64_t at, struct error *error)
{
	if (!file_read_at(file, bytes, size, (uint64_t)at))
		return error_cause(error, ERR_IO, "the file to sign: %s", strerror(errno));
	bytes[size] = '\0';
	return OK;
}

/* ---- members of a dictionary on one line ---- */

/* Returns the text after " /Key "; NULL: no such member. */
static const char *find_member(const char *dictionary, const char *key)
{
	char member[64];
	int size = snprintf(member, sizeof member, " /%s ", key);
	const char *found = strstr(dictionary, member);
	return found ? found + size : NULL;
}

/* Consumes "N 0 R " and returns N; 0: another text. */
static int take_reference(const char **text)
{
	char *end;
	if (**text < '1' || **text > '9')
		return 0;
	long id = strtol(*text, &end, 10);
	if (id > PDF_OBJECTS_MAX || strncmp(end, " 0 R ", 5) != 0)
		return 0;
	*text = end + 5;
	return (int)id;
}

static int find_reference(const char *dictionary, const char *key)
{
	const char *found = find_member(dictionary, key);
	return found ? take_reference(&found) : 0;
}

/* ---- the file ---- */

/* Reads the position after startxref and the number of objects in that table. */
static int read_end(int file, struct pdf_base *base, struct error *error)
{
	char end[64], table[32];
	off_t size = lseek(file, 0, SEEK_END);
	if (size < 0)
		return error_cause(error, ERR_IO, "the file to sign: %s", strerror(errno));
	if (size < (off_t)sizeof end)
		return refused(error, "is too short");
	int result = read_at(file, end, sizeof end - 1, size - (off_t)sizeof end + 1, error);
	if (result)
		return result;
	const char *mark = strstr(end, "startxref\n");
	char *rest = NULL;
	long long at = mark ? strtoll(mark + strlen("startxref\n"), &rest, 10) : -1;
	if (at < 0 || strcmp(rest, "\n%%EOF\n") != 0 || at > size - (off_t)sizeof table)
		return refused(error, "has an unexpected end");
	result = read_at(file, table, sizeof table - 1, at, error);
	if (result)
		return result;
	int header_size = 0;
	if (sscanf(table, "xref\n0 %7d\n%n", &base->next_id, &header_size) != 1 || !header_size ||
	    base->next_id < 1)
		return refused(error, "has no classic cross-reference table");
	base->cross_reference_at = at;
	base->size_bytes = size;
	return OK;
}

/* Returns the position of the table entry of an object; for the first free number, the end of the
 * table. */
static int64_t entry_at(const struct pdf_base *base, int id)
{
	char header[32];
	int size = snprintf(header, sizeof header, "xref\n0 %d\n", base->next_id);
	return base->cross_reference_at + size + (int64_t)id * PDF_FORM_ENTRY_SIZE;
}

static int read_trailer(int file, struct pdf_base *base, struct error *error)
{
	char text[TRAILER_MAX + 1];
	int64_t at = entry_at(base, base->next_id);
	if (at >= base->size_bytes || base->size_bytes - at > TRAILER_MAX)
		return refused(error, "has an unexpected trailer");
	int result = read_at(file, text, (size_t)(base->size_bytes - at), at, error);
	if (result)
		return result;
	const char *size = find_member(text, "Size");
	const char *identifiers = strstr(text, " /ID [<");
	if (strncmp(text, "trailer << ", 11) != 0 || !size || atoi(size) != base->next_id)
		return refused(error, "has an unexpected trailer");
	base->catalog_id = find_reference(text, "Root");
	base->info_id = find_reference(text, "Info");
	if (base->info_id >= base->next_id)
		return refused(error, "has an unexpected trailer");
	const char *identifier = identifiers ? identifiers + strlen(" /ID [<") : "";
	if (strspn(identifier, "0123456789abcdef") != PDF_IDENTIFIER_DIGITS)
		return refused(error, "has no identifier");
	memcpy(base->first_id, identifier, PDF_IDENTIFIER_DIGITS);
	base->first_id[PDF_IDENTIFIER_DIGITS] = '\0';
	return OK;
}

/* Reads an object that is a dictionary, "<< … >>", without line feeds. */
static int read_dictionary(int file, const struct pdf_base *base, int id, struct buf *out,
                           struct error *error)
{
	char entry[PDF_FORM_ENTRY_SIZE + 1], begin[32];
	long long at = 0;
	if (id < 1 || id >= base->next_id)
		return refused(error, "numbers its objects in an unexpected way");
	int result = read_at(file, entry, PDF_FORM_ENTRY_SIZE, entry_at(base, id), error);
	if (result)
		return result;
	if (sscanf(entry, "%10lld 00000 n ", &at) != 1 || at < 0 || at >= base->cross_reference_at)
		return refused(error, "has an unexpected cross-reference table");
	int64_t most = base->cross_reference_at - at;
	size_t size = most < DICTIONARY_MAX ? (size_t)most : DICTIONARY_MAX;
	BUF_AUTO struct buf object;
	buf_init(&object, DICTIONARY_MAX);
	char *text = buf_extend(&object, size);
	if (!text)
		return error_cause(error, ERR_NO_MEMORY, "signing a report");
	result = read_at(file, text, size, at, error);
	if (result)
		return result;
	size_t begin_size = (size_t)snprintf(begin, sizeof begin, "%d 0 obj\n", id);
	const char *end = strstr(text, " >>\nendobj\n");
	if (!end || strncmp(text, begin, begin_size) != 0 || strncmp(text + begin_size, "<< ", 3) != 0)
		return refused(error, "has an object of an unexpected form");
	struct slice line = slice_make(text + begin_size, (size_t)(end - text) + 3 - begin_size);
	if (memchr(line.data, '\n', line.size))
		return refused(error, "has an object of an unexpected form");
	buf_clear(out);
	buf_add_slice(out, line);
	return buf_check(out) ? error_cause(error, ERR_NO_MEMORY, "signing a report") : OK;
}

/* Returns a whole dictionary without its closing brackets. */
static struct slice opened(const char *dictionary)
{
	return slice_make(dictionary, strlen(dictionary) - strlen(">>"));
}

/* Moves the annotations of the page to its end, into an open array. */
static int open_page(const char *page, struct buf *out, struct error *error)
{
	const char *annotations = find_member(page, "Annots"), *rest = annotations;
	if (!annotations) {
		buf_add_slice(out, opened(page));
		buf_add_text(out, "/Annots [ ");
		return OK;
	}
	if (strncmp(rest, "[ ", 2) == 0)
		for (rest += 2; take_reference(&rest);)
			;
	if (strncmp(rest, "] ", 2) != 0)
		return refused(error, "has unexpected annotations");
	buf_add(out, page, (size_t)(annotations - page) - strlen("/Annots "));
	buf_add_slice(out, opened(rest + 2));
	buf_add_text(out, "/Annots ");
	buf_add(out, annotations, (size_t)(rest - annotations));
	return OK;
}

static int read_objects(int file, struct pdf_base *base, struct error *error)
{
	BUF_AUTO struct buf dictionary;
	buf_init(&dictionary, DICTIONARY_MAX);
	int result = read_dictionary(file, base, base->catalog_id, &dictionary, error);
	if (result)
		return result;
	if (find_member(dictionary.data, "AcroForm") || find_member(dictionary.data, "DSS") ||
	    find_member(dictionary.data, "Extensions"))
		return refused(error, "has a form, validation data or extensions already");
	int pages_id = find_reference(dictionary.data, "Pages");
	buf_add_slice(&base->catalog, opened(dictionary.data));
	result = read_dictionary(file, base, pages_id, &dictionary, error);
	if (result)
		return result;
	const char *kids = find_member(dictionary.data, "Kids");
	if (!kids || strncmp(kids, "[ ", 2) != 0)
		return refused(error, "has no page");
	kids += 2;
	base->page_id = take_reference(&kids);
	if (base->page_id == base->catalog_id)
		return refused(error, "numbers its objects in an unexpected way");
	result = read_dictionary(file, base, base->page_id, &dictionary, error);
	if (result)
		return result;
	if (!strstr(dictionary.data, " /Type /Page "))
		return refused(error, "has no page");
	result = open_page(dictionary.data, &base->page, error);
	bool whole = !buf_check(&base->catalog) && !buf_check(&base->page);
	return result || whole ? result : error_cause(error, ERR_NO_MEMORY, "signing a report");
}

int pdf_base_read(int file, struct pdf_base *ret_base, struct error *error)
{
	memset(ret_base, 0, sizeof *ret_base);
	buf_init(&ret_base->catalog, DICTIONARY_MAX);
	buf_init(&ret_base->page, 2 * DICTIONARY_MAX);
	int result = read_end(file, ret_base, error);
	if (!result)
		result = read_trailer(file, ret_base, error);
	if (!result)
		result = read_objects(file, ret_base, error);
	return result;
}

void pdf_base_free(struct pdf_base *base)
{
	buf_free(&base->catalog);
	buf_free(&base->page);
}
