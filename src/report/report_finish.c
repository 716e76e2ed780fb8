#include "report/report_finish.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <qpdf/qpdf-c.h>

#include "base/file.h"
#include "report/pdf_sign_form.h"
#include "report/report_artifact.h"

#define PROFILE_MAX 65536
#define STREAM_MAX ((size_t)32 << 20)
#define TREE_DEPTH_MAX 16

/* qpdf keeps its first error until it is read. */
static int check(qpdf_data pdf, struct error *error)
{
	if (!qpdf_has_error(pdf))
		return OK;
	qpdf_error first = qpdf_get_error(pdf);
	return error_cause(error,
	                   qpdf_get_error_code(pdf, first) == qpdf_e_system ? ERR_IO : ERR_INTERNAL,
	                   "completing the report: %s", qpdf_get_error_full_text(pdf, first));
}

static void set(qpdf_data pdf, qpdf_oh dictionary, const char *key, qpdf_oh value)
{
	qpdf_oh_replace_key(pdf, dictionary, key, value);
	qpdf_oh_release(pdf, value);
}

static qpdf_oh stream_new(qpdf_data pdf, struct slice data)
{
	qpdf_oh stream = qpdf_oh_new_stream(pdf);
	qpdf_oh_replace_stream_data(pdf, stream, (const unsigned char *)data.data, data.size,
	                            qpdf_oh_new_null(pdf), qpdf_oh_new_null(pdf));
	return stream;
}

static int add_output_intent(qpdf_data pdf, qpdf_oh root, struct error *error)
{
	char profile[PROFILE_MAX];
	FILE *file = fopen(REPORT_PROFILE_PATH, "rbe");
	if (!file && errno != ENOENT)
		return error_cause(error, ERR_IO, "the colour profile " REPORT_PROFILE_PATH ": %s",
		                   strerror(errno));
	size_t size = file ? fread(profile, 1, sizeof(profile), file) : 0;
	if (file)
		fclose(file);
	if (size < 128 || size == sizeof(profile))
		return error_cause(error, ERR_INTERNAL,
		                   "the colour profile " REPORT_PROFILE_PATH " cannot be read");
	qpdf_oh stream = stream_new(pdf, slice_make(profile, size));
	qpdf_oh dictionary = qpdf_oh_get_dict(pdf, stream);
	set(pdf, dictionary, "/N", qpdf_oh_new_integer(pdf, 3));
	qpdf_oh intent = qpdf_oh_parse(pdf, "<< /Type /OutputIntent /S /GTS_PDFA1 "
	                                    "/OutputConditionIdentifier (sRGB) /Info (sRGB) >>");
	set(pdf, intent, "/DestOutputProfile", stream);
	qpdf_oh intents = qpdf_oh_new_array(pdf);
	qpdf_oh_append_item(pdf, intents, intent);
	set(pdf, root, "/OutputIntents", intents);
	return check(pdf, error);
}

static int add_document(qpdf_data pdf, const struct report_finishing *finishing,
                        struct error *error)
{
	qpdf_oh root = qpdf_get_root(pdf);
	bool spanish = finishing->language == LANGUAGE_SPANISH;
	set(pdf, root, "/Lang", qpdf_oh_new_string(pdf, spanish ? "es-ES" : "en-GB"));
	set(pdf, root, "/ViewerPreferences", qpdf_oh_parse(pdf, "<< /DisplayDocTitle true >>"));
	BUF_AUTO struct buf packet;
	buf_init(&packet, 65536);
	report_xmp(finishing, &packet);
	int result = buf_check(&packet);
	if (result)
		return result;
	qpdf_oh metadata = stream_new(pdf, buf_slice(&packet));
	qpdf_oh dictionary = qpdf_oh_get_dict(pdf, metadata);
	set(pdf, dictionary, "/Type", qpdf_oh_new_name(pdf, "/Metadata"));
	set(pdf, dictionary, "/Subtype", qpdf_oh_new_name(pdf, "/XML"));
	set(pdf, root, "/Metadata", metadata);

	char date[PDF_DATE_SIZE];
	pdf_date(finishing->made_at_us, date);
	qpdf_oh info = qpdf_make_indirect_object(pdf, qpdf_oh_new_dictionary(pdf));
	set(pdf, info, "/Title", qpdf_oh_new_unicode_string(pdf, finishing->title));
	set(pdf, info, "/Author", qpdf_oh_new_unicode_string(pdf, finishing->author));
	set(pdf, info, "/Producer", qpdf_oh_new_string(pdf, "constancia " CONSTANCIA_VERSION));
	set(pdf, info, "/CreationDate", qpdf_oh_new_string(pdf, date));
	set(pdf, info, "/ModDate", qpdf_oh_new_string(pdf, date));
	set(pdf, qpdf_get_trailer(pdf), "/Info", info);
	return add_output_intent(pdf, root, error);
}

/* cairo omits the default glyph map of embedded TrueType subsets, but PDF/A requires it. */
static void complete_fonts(qpdf_data pdf, qpdf_oh page)
{
	qpdf_oh resources = qpdf_oh_get_key(pdf, page, "/Resources");
	qpdf_oh fonts = qpdf_oh_get_key_if_dict(pdf, resources, "/Font");
	if (!qpdf_oh_is_dictionary(pdf, fonts))
		return;
	qpdf_oh_begin_dict_key_iter(pdf, fonts);
	while (qpdf_oh_dict_more_keys(pdf)) {
		qpdf_oh font = qpdf_oh_get_key(pdf, fonts, qpdf_oh_dict_next_key(pdf));
		qpdf_oh descendants = qpdf_oh_get_key_if_dict(pdf, font, "/DescendantFonts");
		if (!qpdf_oh_is_array(pdf, descendants))
			continue;
		qpdf_oh descendant = qpdf_oh_get_array_item(pdf, descendants, 0);
		qpdf_oh subtype = qpdf_oh_get_key_if_dict(pdf, descendant, "/Subtype");
		if (qpdf_oh_is_name_and_equals(pdf, subtype, "/CIDFontType2"))
			set(pdf, descendant, "/CIDToGIDMap", qpdf_oh_new_name(pdf, "/Identity"));
	}
}

static int complete_page(qpdf_data pdf, qpdf_oh page, const char *link_text, struct error *error)
{
	set(pdf, page, "/Tabs", qpdf_oh_new_name(pdf, "/S"));
	complete_fonts(pdf, page);
	unsigned char *content = NULL;
	size_t size = 0;
	qpdf_oh_get_page_content_data(pdf, page, &content, &size);
	int result = check(pdf, error);
	if (result)
		return result;
	BUF_AUTO struct buf marked;
	buf_init(&marked, STREAM_MAX);
	result = report_mark_artifacts(slice_make(content, size), &marked, error);
	free(content);
	if (result)
		return result;
	set(pdf, page, "/Contents", stream_new(pdf, buf_slice(&marked)));
	qpdf_oh annotations = qpdf_oh_get_key_if_dict(pdf, page, "/Annots");
	int count = 0;
	if (qpdf_oh_is_array(pdf, annotations))
		count = qpdf_oh_get_array_n_items(pdf, annotations);
	for (int i = 0; i < count; i++) {
		qpdf_oh annotation = qpdf_oh_get_array_item(pdf, annotations, i);
		set(pdf, annotation, "/F", qpdf_oh_new_integer(pdf, 4));
		set(pdf, annotation, "/Contents", qpdf_oh_new_unicode_string(pdf, link_text));
	}
	return check(pdf, error);
}

/* Sets scopes and alternative texts in the tree of structure elements. */
static int complete_element(qpdf_data pdf, qpdf_oh element, const char *figure_text, int depth,
                            struct error *error)
{
	if (depth > TREE_DEPTH_MAX)
		return error_cause(error, ERR_INTERNAL, "completing the report: structure too deep");
	qpdf_oh type = qpdf_oh_get_key_if_dict(pdf, element, "/S");
	if (qpdf_oh_is_name_and_equals(pdf, type, "/TH"))
		set(pdf, element, "/A", qpdf_oh_parse(pdf, "<< /O /Table /Scope /Column >>"));
	if (qpdf_oh_is_name_and_equals(pdf, type, "/L"))
		set(pdf, element, "/A", qpdf_oh_parse(pdf, "<< /O /List /ListNumbering /None >>"));
	if (qpdf_oh_is_name_and_equals(pdf, type, "/Figure"))
		set(pdf, element, "/Alt", qpdf_oh_new_unicode_string(pdf, figure_text));
	qpdf_oh_release(pdf, type);
	qpdf_oh kids = qpdf_oh_get_key(pdf, element, "/K");
	int count = qpdf_oh_is_array(pdf, kids) ? qpdf_oh_get_array_n_items(pdf, kids) : 0;
	int result = check(pdf, error);
	for (int i = 0; !result && i < count; i++) {
		qpdf_oh kid = qpdf_oh_get_array_item(pdf, kids, i);
		if (qpdf_oh_is_dictionary(pdf, kid) && qpdf_oh_has_key(pdf, kid, "/S"))
			result = complete_element(pdf, kid, figure_text, depth + 1, error);
		qpdf_oh_release(pdf, kid);
	}
	if (!result && qpdf_oh_is_dictionary(pdf, kids) && qpdf_oh_has_key(pdf, kids, "/S"))
		result = complete_element(pdf, kids, figure_text, depth + 1, error);
	qpdf_oh_release(pdf, kids);
	return result;
}

static int complete(qpdf_data pdf, const struct report_finishing *finishing, struct error *error)
{
	int result = add_document(pdf, finishing, error);
	int pages = qpdf_get_num_pages(pdf);
	for (int i = 0; !result && i < pages; i++) {
		qpdf_oh page = qpdf_get_page_n(pdf, (size_t)i);
		result = complete_page(pdf, page, finishing->link_text, error);
		qpdf_oh_release(pdf, page);
	}
	qpdf_oh tree = qpdf_oh_get_key(pdf, qpdf_get_root(pdf), "/StructTreeRoot");
	if (!result && !qpdf_oh_is_dictionary(pdf, tree))
		result = error_cause(error, ERR_INTERNAL, "completing the report: no structure");
	return result ? result : complete_element(pdf, tree, finishing->figure_text, 0, error);
}

static int write_file(qpdf_data pdf, int file, struct error *error)
{
	qpdf_init_write_memory(pdf);
	qpdf_set_object_stream_mode(pdf, qpdf_o_disable);
	qpdf_set_deterministic_ID(pdf, QPDF_TRUE);
	qpdf_set_newline_before_endstream(pdf, QPDF_TRUE);
	qpdf_force_pdf_version(pdf, "1.7");
	if (qpdf_write(pdf) & QPDF_ERRORS)
		return check(pdf, error);
	if (!file_write_all(file, slice_make(qpdf_get_buffer(pdf), qpdf_get_buffer_length(pdf))))
		return error_cause(error, file_code(errno), "writing the report: %s", strerror(errno));
	return OK;
}

int report_finish(struct slice data, const struct report_finishing *finishing, int file,
                  struct error *error)
{
	qpdf_data pdf = qpdf_init();
	qpdf_silence_errors(pdf);
	qpdf_set_suppress_warnings(pdf, QPDF_TRUE);
	qpdf_set_attempt_recovery(pdf, QPDF_FALSE);
	qpdf_read_memory(pdf, "report", data.data, data.size, NULL);
	int result = check(pdf, error);
	if (!result)
		result = complete(pdf, finishing, error);
	if (!result)
		result = write_file(pdf, file, error);
	qpdf_cleanup(&pdf);
	return result;
}
