#include "proof/report.h"

#include <string.h>

#include <cairo-pdf.h>
#include <fontconfig/fontconfig.h>
#include <pango/pangocairo.h>
#include <pango/pangofc-fontmap.h>

#include "proof/report_body.h"
#include "proof/report_finish.h"

#define ARENA_MAX ((size_t)64 << 20)
#define PDF_MAX ((size_t)64 << 20)
#define TEXT_MAX 4096 /* bytes of any one text of the facts */
#define URL_MAX 1000

static int check_cairo(cairo_status_t status, const char *what, struct error *error)
{
	if (status == CAIRO_STATUS_SUCCESS)
		return OK;
	bool memory = status == CAIRO_STATUS_NO_MEMORY;
	bool output = status == CAIRO_STATUS_WRITE_ERROR || status == CAIRO_STATUS_TEMP_FILE_ERROR;
	return error_cause(error,
	                   memory   ? ERR_NO_MEMORY
	                   : output ? ERR_IO
	                            : ERR_INTERNAL,
	                   "%s: %s", what, cairo_status_to_string(status));
}

/* One pass: with a NULL surface it only counts. */
static int pass(struct draft *draft, PangoContext *pango, cairo_surface_t *surface, int page_count,
                struct error *error)
{
	cairo_t *cairo = surface ? cairo_create(surface) : NULL;
	struct sheet_frame frame = report_frame(draft);
	sheet_begin(&draft->sheet, cairo, pango, &frame, page_count);
	int result = report_compose(draft, error);
	sheet_end(&draft->sheet);
	if (cairo) {
		if (!result)
			result = check_cairo(cairo_status(cairo), "drawing the report", error);
		cairo_destroy(cairo);
	}
	if (!result && draft->failed)
		result = error_cause(error, ERR_NO_MEMORY, "composing the report");
	arena_reset(&draft->arena);
	return result;
}

static cairo_status_t collect(void *closure, const unsigned char *data, unsigned int length)
{
	struct buf *pdf = closure;
	buf_add(pdf, data, length);
	return pdf->failed ? CAIRO_STATUS_NO_MEMORY : CAIRO_STATUS_SUCCESS;
}

static int draw(const struct report_facts *facts, enum language language, PangoContext *pango,
                struct buf *pdf, struct error *error)
{
	struct draft draft = {.facts = facts, .language = language};
	arena_init(&draft.arena, ARENA_MAX);
	int result = pass(&draft, pango, NULL, 0, error);
	if (!result) {
		cairo_surface_t *surface =
			cairo_pdf_surface_create_for_stream(collect, pdf, SHEET_PAGE_WIDTH, SHEET_PAGE_HEIGHT);
		result = pass(&draft, pango, surface, draft.sheet.page, error);
		cairo_surface_finish(surface);
		if (!result)
			result = check_cairo(cairo_surface_status(surface), "writing the report", error);
		if (!result && buf_check(pdf)) /* not every failure to write is remembered */
			result = error_cause(error, ERR_NO_MEMORY, "writing the report");
		cairo_surface_destroy(surface);
	}
	arena_free(&draft.arena);
	return result;
}

/* The system's own fonts and no user's settings. Colour fonts are left out: their glyphs are
 * pictures, without text to search and without a place in PDF/A. */
static const char font_settings[] =
	"<?xml version=\"1.0\"?><!DOCTYPE fontconfig SYSTEM \"urn:fontconfig:fonts.dtd\"><fontconfig>"
	"<dir>/usr/share/fonts</dir><cachedir>/var/cache/fontconfig</cachedir><selectfont>"
	"<rejectfont><pattern><patelt name=\"color\"><bool>true</bool></patelt></pattern></rejectfont>"
	"<rejectfont><pattern><patelt name=\"scalable\"><bool>false</bool></patelt></pattern>"
	"</rejectfont></selectfont></fontconfig>";

static int require_font(FcConfig *config, const char *family, struct error *error)
{
	FcPattern *wanted = FcPatternBuild(NULL, FC_FAMILY, FcTypeString, family, (char *)NULL);
	FcResult outcome;
	FcPattern *found = wanted ? FcFontMatch(config, wanted, &outcome) : NULL;
	FcChar8 *name = NULL;
	bool same = found && FcPatternGetString(found, FC_FAMILY, 0, &name) == FcResultMatch &&
	            strcmp((const char *)name, family) == 0;
	if (found)
		FcPatternDestroy(found);
	if (wanted)
		FcPatternDestroy(wanted);
	return same ? OK : error_cause(error, ERR_INTERNAL, "the font %s is not installed", family);
}

static int load_fonts(FcConfig *config, struct error *error)
{
	static const char *const families[] = {"Noto Sans", "Noto Serif", "Noto Sans CJK JP",
	                                       "DejaVu Sans", "DejaVu Sans Mono"};
	int result = OK;
	if (!FcConfigParseAndLoadFromMemory(config, (const FcChar8 *)font_settings, FcFalse) ||
	    !FcConfigBuildFonts(config))
		result = error_cause(error, ERR_INTERNAL, "the fonts cannot be read");
	for (size_t i = 0; !result && i < sizeof(families) / sizeof(*families); i++)
		result = require_font(config, families[i], error);
	return result;
}

/* Pango keeps a font map for each thread. It is given our fonts at the thread's first report and
 * serves all later ones: a map of its own for each report would leak some kilobytes every time
 * (Pango 1.50). */
static int fonts_of_thread(PangoFontMap **ret_map, struct error *error)
{
	static const char mark[] = "constancia-report";
	PangoFontMap *map = pango_cairo_font_map_get_default();
	if (!g_object_get_data(G_OBJECT(map), mark)) {
		map = pango_cairo_font_map_new_for_font_type(CAIRO_FONT_TYPE_FT);
		FcConfig *config = FcConfigCreate();
		int result = config ? load_fonts(config, error)
		                    : error_cause(error, ERR_NO_MEMORY, "font configuration");
		if (!result) {
			pango_fc_font_map_set_config(PANGO_FC_FONT_MAP(map), config);
			g_object_set_data(G_OBJECT(map), mark, map);
			pango_cairo_font_map_set_default(PANGO_CAIRO_FONT_MAP(map));
		}
		if (config)
			FcConfigDestroy(config);
		g_object_unref(map);
		if (result)
			return result;
	}
	*ret_map = pango_cairo_font_map_get_default();
	return OK;
}

static int fonts_open(PangoContext **ret_pango, struct error *error)
{
	PangoFontMap *map;
	int result = fonts_of_thread(&map, error);
	if (result)
		return result;
	PangoContext *pango = pango_font_map_create_context(map);
	cairo_font_options_t *options = cairo_font_options_create();
	cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
	cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
	pango_cairo_context_set_font_options(pango, options);
	cairo_font_options_destroy(options);
	pango_cairo_context_set_resolution(pango, 72);
	pango_context_set_round_glyph_positions(pango, FALSE);
	*ret_pango = pango;
	return OK;
}

static bool text_fits(const char *text, size_t limit)
{
	return text && *text && strlen(text) <= limit;
}

static bool optional_fits(const char *text)
{
	return !text || strlen(text) <= TEXT_MAX;
}

static bool rows_fit(const struct report_facts *facts)
{
	for (size_t i = 0; i < facts->configuration_rows; i++) {
		const struct config_facts *texts = &facts->configurations[i].facts;
		if (!optional_fits(texts->name) || !optional_fits(texts->declarant) ||
		    !optional_fits(texts->description) || !optional_fits(texts->supplementary_info))
			return false;
	}
	for (size_t i = 0; i < facts->event_rows; i++)
		if (!facts->events[i].hash || facts->events[i].client_ref.size > CLIENT_REF_MAX)
			return false;
	for (size_t i = 0; i < facts->seal_rows; i++)
		if (!text_fits(facts->seals[i].segment_id, REPORT_NAME_MAX) ||
		    !text_fits(facts->seals[i].authority, TEXT_MAX))
			return false;
	for (size_t i = 0; i < facts->authority_rows; i++)
		if (!text_fits(facts->authorities[i].name, TEXT_MAX))
			return false;
	for (size_t i = 0; i < facts->part_rows; i++)
		if (!text_fits(facts->parts[i].name, REPORT_NAME_MAX))
			return false;
	return true;
}

static bool request_fits(const struct report_facts *facts)
{
	bool no_times = facts->from_us == TIME_NONE && facts->to_us == TIME_NONE;
	bool no_sequences = facts->seq_from == 0 && facts->seq_to == 0;
	return no_times ? facts->seq_from > 0 && facts->seq_to >= facts->seq_from
	                : no_sequences && facts->from_us != TIME_NONE && facts->to_us > facts->from_us;
}

static bool counts_fit(const struct report_facts *facts)
{
	int64_t expected_rows =
		facts->event_count <= REPORT_EVENT_ROWS_MAX ? facts->event_count : 2 * REPORT_EDGE_ROWS;
	return facts->first_sequence >= 1 && facts->last_sequence >= facts->first_sequence &&
	       facts->event_count == facts->last_sequence - facts->first_sequence + 1 &&
	       (int64_t)facts->event_rows == expected_rows && facts->configuration_rows >= 1 &&
	       facts->configuration_rows <= REPORT_CONFIGURATION_ROWS_MAX &&
	       facts->configuration_count >= (int64_t)facts->configuration_rows &&
	       facts->seal_rows <= REPORT_SEAL_ROWS_MAX &&
	       facts->seal_count >= (int64_t)facts->seal_rows &&
	       facts->authority_rows <= REPORT_AUTHORITY_ROWS_MAX &&
	       facts->part_rows <= REPORT_PART_ROWS_MAX &&
	       facts->part_count >= (int64_t)facts->part_rows && facts->archive_size_bytes >= 0 &&
	       request_fits(facts);
}

static int check_facts(const struct report_facts *facts, struct error *error)
{
	if (!text_fits(facts->service_name, REPORT_NAME_MAX) ||
	    !text_fits(facts->certification_id, REPORT_NAME_MAX) ||
	    !text_fits(facts->verification_code, REPORT_NAME_MAX) ||
	    !text_fits(facts->verification_url, URL_MAX) ||
	    !text_fits(facts->channel_id, REPORT_NAME_MAX) ||
	    !text_fits(facts->archive_name, REPORT_NAME_MAX))
		return error_cause(error, ERR_VALIDATION, "report facts: a text is missing or too long");
	if (!counts_fit(facts))
		return error_cause(error, ERR_VALIDATION, "report facts: the numbers do not agree");
	if (!rows_fit(facts))
		return error_cause(error, ERR_VALIDATION, "report facts: a row is not complete");
	return OK;
}

int report_render(const struct report_facts *facts, enum language language, int file,
                  struct error *error)
{
	int result = check_facts(facts, error);
	PangoContext *pango = NULL;
	if (!result)
		result = fonts_open(&pango, error);
	if (result)
		return result;
	BUF_AUTO struct buf pdf;
	buf_init(&pdf, PDF_MAX);
	result = draw(facts, language, pango, &pdf, error);
	g_object_unref(pango);
	if (result)
		return result;
	ARENA_AUTO struct arena arena;
	arena_init(&arena, ARENA_MAX);
	const char *title =
		arena_printf(&arena, "%s %s", report_text(TEXT_TITLE, language), facts->certification_id);
	const char *figure =
		report_fill(&arena, TEXT_QR_DESCRIPTION, language, facts->verification_url, NULL);
	if (!title || !figure)
		return error_cause(error, ERR_NO_MEMORY, "finishing the report");
	struct report_finishing finishing = {.facts = facts,
	                                     .language = language,
	                                     .title = title,
	                                     .figure_text = figure,
	                                     .link_text = report_text(TEXT_ADDRESS, language)};
	return report_finish(buf_slice(&pdf), &finishing, file, error);
}
