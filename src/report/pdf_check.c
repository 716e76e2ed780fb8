#include "report/pdf_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "report/pdf_long_term.h"
#include "report/pdf_read.h"
#include "report/pdf_sign.h"
#include "report/pdf_sign_form.h"
#include "report/report_finish.h"

#define DIGITS ((size_t)2 * PDF_CMS_SIZE_MAX)

static int invalid(struct error *error, const char *why)
{
	return error_cause(error, ERR_INVALID_EVIDENCE, "the report %s", why);
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
	if (!pdf_take(rest, written))
		return false;
	*ret_us = time_us;
	return true;
}

/* Finds the digits of /Contents and checks that the signature covers all other bytes. */
static int locate(struct slice file, size_t *ret_contents_at, int64_t *ret_time_us,
                  struct error *error)
{
	int64_t at;
	int64_t object_id;
	int64_t before;
	int64_t resumes;
	int64_t after;
	struct slice begin = file;
	if (!pdf_take(&begin, "%PDF-1.7\n"))
		return invalid(error, "is not a PDF file of the expected version");
	if (!pdf_last_object(file, &at))
		return invalid(error, "does not end as a signed report does");
	struct slice rest = pdf_text_from(file, at);
	if (!pdf_take_number(&rest, &object_id) || !pdf_take(&rest, " 0 obj\n" PDF_FORM_BEGIN) ||
	    !take_date(&rest, ret_time_us) || !pdf_take(&rest, PDF_FORM_RANGE))
		return invalid(error, "has no signature of the expected form");
	struct slice range = rest;
	if (!pdf_take_number(&rest, &before) || !pdf_take(&rest, " ") ||
	    !pdf_take_number(&rest, &resumes) || !pdf_take(&rest, " ") ||
	    !pdf_take_number(&rest, &after))
		return invalid(error, "has a malformed byte range");
	while (pdf_take(&rest, " "))
		;
	if (rest.data - range.data != PDF_FORM_RANGE_SIZE || !pdf_take(&rest, PDF_FORM_CONTENTS))
		return invalid(error, "has a malformed byte range");
	size_t contents = (size_t)(rest.data - file.data);
	if (rest.size < DIGITS + 2 || rest.data[0] != '<' || rest.data[DIGITS + 1] != '>')
		return invalid(error, "has a malformed signature");
	if ((uint64_t)before != contents || (uint64_t)resumes != contents + DIGITS + 2 ||
	    (uint64_t)after != file.size - (size_t)resumes)
		return invalid(error, "has bytes that the signature does not cover");
	rest = pdf_text_from(file, resumes);
	if (!pdf_take(&rest, PDF_FORM_END "xref\n"))
		return invalid(error, "has unexpected data after the signature");
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
			return invalid(error, "has trailing data in its signature");
	*ret_size = size;
	return OK;
}

/* Reads the CMS at the place of a signature, and the digest of all bytes around it. */
static int read_covered(struct slice file, size_t contents_at, char *cms, size_t *ret_size,
                        struct sha256 *ret_covered, struct error *error)
{
	int result = read_cms(slice_make(file.data + contents_at, DIGITS), cms, ret_size, error);
	if (result)
		return result;
	struct digest_stream *digest = digest_begin();
	if (!digest)
		return error_cause(error, ERR_NO_MEMORY, "checking a report");
	size_t resumes = contents_at + DIGITS + 1;
	digest_add(digest, file.data, contents_at - 1);
	digest_add(digest, file.data + resumes, file.size - resumes);
	*ret_covered = digest_end(digest);
	return OK;
}

static int check_signature(struct slice file, size_t contents_at, const struct trust_roots *roots,
                           struct cms_paths *paths, struct cms_facts *ret_facts,
                           struct error *error)
{
	char cms[PDF_CMS_SIZE_MAX];
	size_t size = 0;
	struct sha256 covered;
	int result = read_covered(file, contents_at, cms, &size, &covered, error);
	if (!result)
		result = cms_verify_paths(slice_make(cms, size), &covered, roots, paths, ret_facts, error);
	if (!result && ret_facts->signing_time_us != TIME_NONE)
		result = invalid(error, "has a signing-time attribute, which PAdES does not allow");
	return result;
}

/* Returns the text after the only occurrence of `wanted`; data is NULL if it occurs not exactly
 * once. */
static struct slice after_only(struct slice text, const char *wanted)
{
	size_t size = strlen(wanted);
	const char *found = text.size < size ? NULL : memmem(text.data, text.size, wanted, size);
	if (!found)
		return (struct slice){0};
	struct slice rest = pdf_text_from(text, found - text.data + (int64_t)size);
	if (rest.size >= size && memmem(rest.data, rest.size, wanted, size))
		return (struct slice){0};
	return rest;
}

/* Finds the value of one property in the packet. */
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
	return property(packet, name, &value) && pdf_take_number(&value, ret_number) && value.size == 0;
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

/* Reports have it only where the archive has places in a log. */
static bool log_property(struct slice packet, char text[PDF_LOG_SIZE])
{
	static const char tag[] = "<" REPORT_XMP_PREFIX ":SegmentLog>";
	struct slice value;
	text[0] = '\0';
	if (!memmem(packet.data, packet.size, tag, sizeof tag - 1))
		return true;
	if (!property(packet, "SegmentLog", &value) || value.size == 0 || value.size >= PDF_LOG_SIZE)
		return false;
	for (size_t i = 0; i < value.size; i++)
		if ((unsigned char)value.data[i] < ' ' || strchr("<>", value.data[i]))
			return false;
	memcpy(text, value.data, value.size);
	text[value.size] = '\0';
	return true;
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
	       log_property(packet, binding->segment_log) &&
	       binding->event_count == binding->last_sequence - binding->first_sequence + 1;
}

int pdf_read_binding(struct slice file, struct pdf_binding *ret_binding, struct error *error)
{
	struct pdf_binding binding = {0};
	if (!read_binding(file, &binding))
		return invalid(error, "does not state which archive it belongs to");
	*ret_binding = binding;
	return OK;
}

/* ---- levels ---- */

void pdf_paths_init(struct pdf_paths *paths)
{
	*paths = (struct pdf_paths){0};
	buf_init(&paths->signature.signer, CMS_PATH_SIZE_MAX);
	buf_init(&paths->signature.authority, CMS_PATH_SIZE_MAX);
	buf_init(&paths->timestamp, CMS_PATH_SIZE_MAX);
}

void pdf_paths_free(struct pdf_paths *paths)
{
	buf_free(&paths->signature.signer);
	buf_free(&paths->signature.authority);
	buf_free(&paths->timestamp);
}

static int check_timestamp(struct slice file, const struct pdf_parts *parts,
                           const struct trust_roots *roots, struct buf *path,
                           struct timestamp_facts *ret_facts, struct error *error)
{
	char token[PDF_CMS_SIZE_MAX];
	size_t size = 0;
	struct sha256 covered;
	struct timestamp_path along = {.complete = path, .tolerant = roots->tolerant};
	int result = read_covered(file, parts->contents_at, token, &size, &covered, error);
	return result ? result
	              : timestamp_verify_token_path(slice_make(token, size), &covered,
	                                            roots->timestamps, &along, ret_facts, error);
}

/* Checks a report with validation data and a document timestamp. */
static int check_lasting(struct slice file, const struct pdf_parts *parts,
                         const struct trust_roots *roots, struct pdf_paths *paths,
                         struct pdf_facts *facts, struct error *error)
{
	int result =
		check_timestamp(file, parts, roots, &paths->timestamp, &facts->document_timestamp, error);
	if (result)
		return result;
	facts->has_document_timestamp = true;
	if (!facts->signature.has_timestamp)
		return invalid(error, "has a document timestamp, but a signature without a timestamp");
	if (facts->document_timestamp.gen_time_us <
	    facts->signature.timestamp.gen_time_us - PDF_CLOCK_TOLERANCE_US)
		return invalid(error, "has a document timestamp older than the timestamp of its signature");
	struct level_proof proof = {
		.signer = buf_slice(&paths->signature.signer),
		.authority = buf_slice(&paths->signature.authority),
		.signed_us = facts->signature.timestamp.gen_time_us,
		.last = buf_slice(&paths->timestamp),
		.last_us = facts->document_timestamp.gen_time_us,
	};
	return level_judge(&proof, &parts->set, &facts->level, facts->level_cause, error);
}

static struct slice as_signed(struct slice file, const struct pdf_parts *parts)
{
	return parts->contents_at ? slice_make(file.data, parts->signed_size) : file;
}

static int check_parts(struct slice file, const struct pdf_parts *parts,
                       const struct trust_roots *roots, struct pdf_paths *paths,
                       struct pdf_facts *facts, struct error *error)
{
	struct slice report = as_signed(file, parts);
	size_t contents_at = 0;
	int result = locate(report, &contents_at, &facts->signing_time_us, error);
	if (!result)
		result = check_signature(report, contents_at, roots, &paths->signature, &facts->signature,
		                         error);
	if (result)
		return result;
	facts->level = facts->signature.has_timestamp ? LEVEL_T : LEVEL_B;
	return parts->contents_at ? check_lasting(file, parts, roots, paths, facts, error) : OK;
}

int pdf_check_along(struct slice file, const struct trust_roots *roots, struct pdf_paths *paths,
                    struct pdf_facts *ret_facts, struct error *error)
{
	struct pdf_facts facts = {0};
	struct pdf_parts parts __attribute__((cleanup(pdf_parts_free))) = {0};
	if (file.size > (uint64_t)PDF_SIZE_MAX)
		return invalid(error, "is too large");
	int result = pdf_is_long_term(file) ? pdf_decompose(file, &parts, error) : OK;
	if (!result)
		result = check_parts(file, &parts, roots, paths, &facts, error);
	if (!result)
		result = pdf_read_binding(as_signed(file, &parts), &facts.binding, error);
	if (!result && facts.binding.chain == MODE_LIVE && !facts.signature.has_timestamp)
		result = invalid(error, "has a signature without a timestamp");
	if (result)
		return result;
	*ret_facts = facts;
	return OK;
}

int pdf_check(struct slice file, const struct trust_roots *roots, struct pdf_facts *ret_facts,
              struct error *error)
{
	PDF_PATHS_AUTO struct pdf_paths paths;
	pdf_paths_init(&paths);
	return pdf_check_along(file, roots, &paths, ret_facts, error);
}
