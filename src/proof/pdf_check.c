#include "proof/pdf_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "proof/pdf_sign.h"
#include "proof/pdf_sign_form.h"
#include "proof/report_finish.h"

#define DIGITS ((size_t)2 * PDF_CMS_SIZE_MAX)

static int invalid(struct error *error, const char *why)
{
	return error_cause(error, ERR_INVALID_EVIDENCE, "the report %s", why);
}

/* What is still to be read, from the front. */
static bool take(struct slice *rest, const char *expected)
{
	size_t size = strlen(expected);
	if (rest->size < size || memcmp(rest->data, expected, size) != 0)
		return false;
	*rest = slice_make(rest->data + size, rest->size - size);
	return true;
}

/* A decimal number without sign or superfluous zeros. */
static bool take_number(struct slice *rest, int64_t *ret_number)
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

static struct slice from(struct slice file, int64_t at)
{
	if (at < 0 || (uint64_t)at > file.size)
		return slice_make(file.data + file.size, 0);
	return slice_make(file.data + at, file.size - (size_t)at);
}

/* The position of the signature's object: the last entry of the last cross-reference table. */
static bool find_signature(struct slice file, int64_t *ret_at)
{
	size_t end_size = file.size < 40 ? file.size : 40;
	struct slice end = from(file, (int64_t)(file.size - end_size));
	const char *mark = memmem(end.data, end.size, "startxref\n", 10);
	if (!mark)
		return false;
	int64_t table_at;
	struct slice rest = from(end, mark - end.data);
	if (!take(&rest, "startxref\n") || !take_number(&rest, &table_at) ||
	    !take(&rest, "\n%%EOF\n") || rest.size != 0)
		return false;
	struct slice table = from(file, table_at);
	const char *trailer = memmem(table.data, table.size < 1024 ? table.size : 1024, "trailer\n", 8);
	if (!take(&table, "xref\n") || !trailer || trailer - table.data < PDF_FORM_ENTRY_SIZE)
		return false;
	char entry[PDF_FORM_ENTRY_SIZE + 1] = {0};
	char written[PDF_FORM_ENTRY_SIZE + 16];
	memcpy(entry, trailer - PDF_FORM_ENTRY_SIZE, PDF_FORM_ENTRY_SIZE);
	int64_t at = strtoll(entry, NULL, 10);
	snprintf(written, sizeof(written), PDF_FORM_ENTRY, (long long)at);
	if (strcmp(written, entry) != 0)
		return false;
	*ret_at = at;
	return true;
}

static bool take_date(struct slice *rest, int64_t *ret_us)
{
	if (rest->size < PDF_DATE_SIZE - 1)
		return false;
	const char *d = rest->data;
	char iso[32];
	snprintf(iso, sizeof(iso), "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", d + 2, d + 6, d + 8, d + 10,
	         d + 12, d + 14);
	int64_t time_us;
	char written[PDF_DATE_SIZE];
	if (time_parse(slice_of(iso), "M", &time_us, NULL))
		return false;
	pdf_date(time_us, written);
	if (!take(rest, written))
		return false;
	*ret_us = time_us;
	return true;
}

/* Finds the digits of /Contents and that all else is covered. */
static int locate(struct slice file, size_t *ret_contents_at, int64_t *ret_time_us,
                  struct error *error)
{
	int64_t at;
	int64_t object_id;
	int64_t before;
	int64_t resumes;
	int64_t after;
	struct slice begin = file;
	if (!take(&begin, "%PDF-1.7\n"))
		return invalid(error, "is not a PDF file of the expected version");
	if (!find_signature(file, &at))
		return invalid(error, "does not end as a signed report does");
	struct slice rest = from(file, at);
	if (!take_number(&rest, &object_id) || !take(&rest, " 0 obj\n" PDF_FORM_BEGIN) ||
	    !take_date(&rest, ret_time_us) || !take(&rest, PDF_FORM_RANGE))
		return invalid(error, "has no signature of the expected form");
	struct slice range = rest;
	if (!take_number(&rest, &before) || !take(&rest, " ") || !take_number(&rest, &resumes) ||
	    !take(&rest, " ") || !take_number(&rest, &after))
		return invalid(error, "has a malformed byte range");
	while (take(&rest, " "))
		;
	if (rest.data - range.data != PDF_FORM_RANGE_SIZE || !take(&rest, PDF_FORM_CONTENTS))
		return invalid(error, "has a malformed byte range");
	size_t contents = (size_t)(rest.data - file.data);
	if (rest.size < DIGITS + 2 || rest.data[0] != '<' || rest.data[DIGITS + 1] != '>')
		return invalid(error, "has a malformed signature");
	if ((uint64_t)before != contents || (uint64_t)resumes != contents + DIGITS + 2 ||
	    (uint64_t)after != file.size - (size_t)resumes)
		return invalid(error, "has bytes that the signature does not cover");
	rest = from(file, resumes);
	if (!take(&rest, PDF_FORM_END "xref\n"))
		return invalid(error, "goes on in an unexpected way behind the signature");
	*ret_contents_at = contents + 1;
	return OK;
}

static int read_cms(struct slice digits, char *cms, size_t *ret_size, struct error *error)
{
	for (size_t i = 0; i < digits.size; i++)
		if (!((digits.data[i] >= '0' && digits.data[i] <= '9') ||
		      (digits.data[i] >= 'a' && digits.data[i] <= 'f')))
			return invalid(error, "has a signature that is not in lower-case hexadecimal");
	if (!hex_decode(digits, cms, PDF_CMS_SIZE_MAX))
		return invalid(error, "has a malformed signature");
	size_t size = cms_size(slice_make(cms, PDF_CMS_SIZE_MAX));
	if (size == 0 || size > PDF_CMS_SIZE_MAX)
		return invalid(error, "has a malformed signature");
	for (size_t i = size; i < PDF_CMS_SIZE_MAX; i++)
		if (cms[i] != 0)
			return invalid(error, "has something behind its signature");
	*ret_size = size;
	return OK;
}

static int check_signature(struct slice file, size_t contents_at, const struct trust_roots *roots,
                           struct cms_facts *ret_facts, struct error *error)
{
	char cms[PDF_CMS_SIZE_MAX];
	size_t size = 0;
	int result = read_cms(slice_make(file.data + contents_at, DIGITS), cms, &size, error);
	if (result)
		return result;
	struct digest_stream *digest = digest_begin();
	if (!digest)
		return error_cause(error, ERR_NO_MEMORY, "checking a report");
	size_t resumes = contents_at + DIGITS + 1;
	digest_add(digest, file.data, contents_at - 1);
	digest_add(digest, file.data + resumes, file.size - resumes);
	struct sha256 covered = digest_end(digest);
	result = cms_verify(slice_make(cms, size), &covered, roots, ret_facts, error);
	if (!result && ret_facts->signing_time_us != TIME_NONE)
		result = invalid(error, "has a signing-time attribute, which no PAdES signature may have");
	return result;
}

/* The only occurrence of a text; NULL data when there is none or another. Answers what follows. */
static struct slice after_only(struct slice text, const char *wanted)
{
	size_t size = strlen(wanted);
	const char *found = text.size < size ? NULL : memmem(text.data, text.size, wanted, size);
	if (!found)
		return (struct slice){0};
	struct slice rest = from(text, found - text.data + (int64_t)size);
	if (rest.size >= size && memmem(rest.data, rest.size, wanted, size))
		return (struct slice){0};
	return rest;
}

/* The value of one property, cut out of the packet. */
static bool property(struct slice packet, const char *name, struct slice *ret_value)
{
	char tag[80];
	snprintf(tag, sizeof(tag), "<" REPORT_XMP_PREFIX ":%s>", name);
	struct slice value = after_only(packet, tag);
	if (!value.data)
		return false;
	snprintf(tag, sizeof(tag), "</" REPORT_XMP_PREFIX ":%s>\n", name);
	const char *end = memmem(value.data, value.size, tag, strlen(tag));
	if (!end)
		return false;
	*ret_value = slice_make(value.data, (size_t)(end - value.data));
	return true;
}

static bool text_property(struct slice packet, const char *name, char text[PDF_TEXT_SIZE])
{
	struct slice value;
	if (!property(packet, name, &value) || value.size == 0 || value.size >= PDF_TEXT_SIZE)
		return false;
	for (size_t i = 0; i < value.size; i++)
		if (value.data[i] < ' ' || value.data[i] > '~' || strchr("<>&", value.data[i]))
			return false;
	memcpy(text, value.data, value.size);
	text[value.size] = '\0';
	return true;
}

static bool number_property(struct slice packet, const char *name, int64_t *ret_number)
{
	struct slice value;
	return property(packet, name, &value) && take_number(&value, ret_number) && value.size == 0;
}

static bool digest_property(struct slice packet, const char *name, struct sha256 *ret_digest)
{
	struct slice value;
	if (!property(packet, name, &value))
		return false;
	for (size_t i = 0; i < value.size; i++)
		if (value.data[i] >= 'A' && value.data[i] <= 'F')
			return false;
	return hex_decode(value, ret_digest->bytes, SHA256_SIZE);
}

static bool read_binding(struct slice file, struct pdf_binding *binding)
{
	struct slice packet = after_only(file, REPORT_XMP_BEGIN);
	if (!packet.data)
		return false;
	const char *end = memmem(packet.data, packet.size, REPORT_XMP_END, strlen(REPORT_XMP_END));
	if (!end)
		return false;
	packet.size = (size_t)(end - packet.data);
	struct slice chain;
	struct slice language;
	if (!property(packet, "Chain", &chain) || !mode_parse(chain, &binding->chain) ||
	    !property(packet, "Language", &language) ||
	    (!slice_is(language, "es") && !slice_is(language, "en")))
		return false;
	return text_property(packet, "CertificationId", binding->certification_id) &&
	       text_property(packet, "VerificationCode", binding->verification_code) &&
	       text_property(packet, "ChannelId", binding->channel_id) &&
	       number_property(packet, "FirstSequence", &binding->first_sequence) &&
	       number_property(packet, "LastSequence", &binding->last_sequence) &&
	       number_property(packet, "EventCount", &binding->event_count) &&
	       digest_property(packet, "FirstChainHash", &binding->first_chain_hash) &&
	       digest_property(packet, "LastChainHash", &binding->last_chain_hash) &&
	       digest_property(packet, "ArchiveSha256", &binding->archive_digest) &&
	       number_property(packet, "ArchiveSize", &binding->archive_size_bytes) &&
	       binding->event_count == binding->last_sequence - binding->first_sequence + 1;
}

int pdf_read_binding(struct slice file, struct pdf_binding *ret_binding, struct error *error)
{
	struct pdf_binding binding = {0};
	if (!read_binding(file, &binding))
		return invalid(error, "does not say what it belongs to");
	*ret_binding = binding;
	return OK;
}

int pdf_check(struct slice file, const struct trust_roots *roots, struct pdf_facts *ret_facts,
              struct error *error)
{
	struct pdf_facts facts = {0};
	size_t contents_at = 0;
	if (file.size > (uint64_t)PDF_SIZE_MAX)
		return invalid(error, "is too large");
	int result = locate(file, &contents_at, &facts.signing_time_us, error);
	if (!result)
		result = check_signature(file, contents_at, roots, &facts.signature, error);
	if (!result)
		result = pdf_read_binding(file, &facts.binding, error);
	if (!result && facts.binding.chain == MODE_LIVE && !facts.signature.has_timestamp)
		result = invalid(error, "has a signature without a timestamp");
	if (result)
		return result;
	*ret_facts = facts;
	return OK;
}

int pdf_check_file(const char *path, const struct trust_roots *roots, struct pdf_facts *ret_facts,
                   struct error *error)
{
	BUF_AUTO struct buf file;
	buf_init(&file, (size_t)PDF_SIZE_MAX);
	int result = file_read_whole(path, &file, error);
	if (file.full)
		return invalid(error, "is too large");
	return result ? result : pdf_check(buf_slice(&file), roots, ret_facts, error);
}
