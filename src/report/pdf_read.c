#include "report/pdf_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/pdf_sign_form.h"
#include "seal/validation_set.h"

#define TABLE_MAX ((size_t)(VALIDATION_SET_OBJECTS_MAX + 16) * PDF_FORM_ENTRY_SIZE)

bool pdf_take(struct slice *rest, const char *expected)
{
	size_t size = strlen(expected);
	if (rest->size < size || memcmp(rest->data, expected, size) != 0)
		return false;
	*rest = slice_make(rest->data + size, rest->size - size);
	return true;
}

bool pdf_take_number(struct slice *rest, int64_t *ret_number)
{
	int64_t number = 0;
	size_t count = 0;
	while (count < rest->size && count < 18 && rest->data[count] >= '0' && rest->data[count] <= '9')
		number = number * 10 + (rest->data[count++] - '0');
	if (count == 0 || (count > 1 && rest->data[0] == '0'))
		return false;
	*rest = slice_make(rest->data + count, rest->size - count);
	*ret_number = number;
	return true;
}

bool pdf_take_id(struct slice *rest, int *ret_id)
{
	int64_t number;
	if (!pdf_take_number(rest, &number) || number < 1 || number > PDF_OBJECTS_MAX)
		return false;
	*ret_id = (int)number;
	return true;
}

bool pdf_take_entry(struct slice *rest, int64_t *ret_at)
{
	char entry[PDF_FORM_ENTRY_SIZE + 1] = {0};
	char written[PDF_FORM_ENTRY_SIZE + 16];
	if (rest->size < PDF_FORM_ENTRY_SIZE)
		return false;
	memcpy(entry, rest->data, PDF_FORM_ENTRY_SIZE);
	*ret_at = strtoll(entry, NULL, 10);
	snprintf(written, sizeof written, PDF_FORM_ENTRY, (long long)*ret_at);
	return pdf_take(rest, written);
}

struct slice pdf_text_from(struct slice file, int64_t at)
{
	if (at < 0 || (uint64_t)at > file.size)
		return slice_make(file.data + file.size, 0);
	return slice_make(file.data + at, file.size - (size_t)at);
}

bool pdf_last_table(struct slice file, int64_t *ret_at)
{
	size_t end_size = file.size < 40 ? file.size : 40;
	struct slice end = pdf_text_from(file, (int64_t)(file.size - end_size));
	const char *mark = memmem(end.data, end.size, "startxref\n", 10);
	if (!mark)
		return false;
	struct slice rest = pdf_text_from(end, mark - end.data);
	return pdf_take(&rest, "startxref\n") && pdf_take_number(&rest, ret_at) &&
	       pdf_take(&rest, "\n%%EOF\n") && rest.size == 0;
}

/* Returns the beginning of the trailer of a table; NULL: none. */
static const char *find_trailer(struct slice file, int64_t table_at)
{
	struct slice table = pdf_text_from(file, table_at);
	const char *trailer =
		memmem(table.data, table.size < TABLE_MAX ? table.size : TABLE_MAX, "trailer\n", 8);
	return pdf_take(&table, "xref\n") ? trailer : NULL;
}

bool pdf_last_object(struct slice file, int64_t *ret_at)
{
	int64_t table_at;
	const char *trailer = pdf_last_table(file, &table_at) ? find_trailer(file, table_at) : NULL;
	if (!trailer)
		return false;
	struct slice entry = pdf_text_from(file, trailer - file.data - PDF_FORM_ENTRY_SIZE);
	return pdf_take_entry(&entry, ret_at);
}

static bool take_identifier(struct slice *rest, char text[PDF_IDENTIFIER_DIGITS + 1])
{
	uint8_t bytes[PDF_IDENTIFIER_DIGITS / 2];
	if (rest->size < PDF_IDENTIFIER_DIGITS ||
	    !hex_decode(slice_make(rest->data, PDF_IDENTIFIER_DIGITS), bytes, sizeof bytes))
		return false;
	hex_encode(bytes, sizeof bytes, text);
	return pdf_take(rest, text);
}

static bool take_trailer(struct slice *rest, struct pdf_trailer *trailer)
{
	char second_id[PDF_IDENTIFIER_DIGITS + 1];
	int64_t table_at;
	if (!pdf_take(rest, "trailer\n<< /Size ") || !pdf_take_id(rest, &trailer->size) ||
	    !pdf_take(rest, " /Root ") || !pdf_take_id(rest, &trailer->root_id) ||
	    !pdf_take(rest, " 0 R"))
		return false;
	if (pdf_take(rest, " /Info ") &&
	    (!pdf_take_id(rest, &trailer->info_id) || !pdf_take(rest, " 0 R")))
		return false;
	return pdf_take(rest, " /Prev ") && pdf_take_number(rest, &trailer->previous_at) &&
	       pdf_take(rest, " /ID [ <") && take_identifier(rest, trailer->first_id) &&
	       pdf_take(rest, "> <") && take_identifier(rest, second_id) &&
	       pdf_take(rest, "> ] >>\nstartxref\n") && pdf_take_number(rest, &table_at) &&
	       pdf_take(rest, "\n%%EOF\n");
}

bool pdf_read_trailer(struct slice file, int64_t table_at, struct pdf_trailer *ret_trailer)
{
	struct pdf_trailer trailer = {0};
	const char *mark = find_trailer(file, table_at);
	if (!mark)
		return false;
	struct slice rest = pdf_text_from(file, mark - file.data);
	if (!take_trailer(&rest, &trailer))
		return false;
	trailer.at = mark - file.data;
	trailer.end = rest.data - file.data;
	*ret_trailer = trailer;
	return true;
}
