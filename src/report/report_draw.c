/* Drawing of the pages of a report with Cairo and Pango. */
#include <string.h>

#include <cairo-pdf.h>
#include <fontconfig/fontconfig.h>
#include <pango/pangocairo.h>
#include <pango/pangofc-fontmap.h>

#include "report/report_body.h"

#define ARENA_MAX ((size_t)64 << 20)
#define PDF_MAX ((size_t)64 << 20)

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

/* Runs one pass. With a NULL surface it only counts pages. */
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

static int draw(struct draft *draft, PangoContext *pango, struct buf *pdf, struct error *error)
{
	arena_init(&draft->arena, ARENA_MAX);
	int result = pass(draft, pango, NULL, 0, error);
	if (!result) {
		cairo_surface_t *surface =
			cairo_pdf_surface_create_for_stream(collect, pdf, SHEET_PAGE_WIDTH, SHEET_PAGE_HEIGHT);
		result = pass(draft, pango, surface, draft->sheet.page, error);
		cairo_surface_finish(surface);
		if (!result)
			result = check_cairo(cairo_surface_status(surface), "writing the report", error);
		if (!result && buf_check(pdf)) /* cairo does not report every write error */
			result = error_cause(error, ERR_NO_MEMORY, "writing the report");
		cairo_surface_destroy(surface);
	}
	arena_free(&draft->arena);
	return result;
}

/* Only system fonts, without user settings. Colour fonts are excluded: their glyphs are pictures
 * without searchable text, which PDF/A does not allow. */
static const char font_settings[] =
	"<?xml version=\"1.0\"?><!DOCTYPE fontconfig SYSTEM \"urn:fontconfig:fonts.dtd\"><fontconfig>"
	"<dir>/usr/share/fonts</dir><cachedir>/var/cache/fontconfig</cachedir><selectfont>"
	"<rejectfont><pattern><patelt name=\"color\"><bool>true</bool></patelt></pattern></rejectfont>"
	"<rejectfont><pattern><patelt name=\"scalable\"><bool>false</bool></patelt></pattern>"
	"</rejectfont></selectfont></fontconfig>";

static const struct {
	const char *family;
	const char *package;
} fonts[] = {{"Noto Sans", "fonts-noto-core"},
             {"Noto Serif", "fonts-noto-core"},
             {"Noto Sans CJK JP", "fonts-noto-cjk"},
             {"DejaVu Sans", "fonts-dejavu-core"},
             {"DejaVu Sans Mono", "fonts-dejavu-core"}};
#define FONT_COUNT (sizeof fonts / sizeof *fonts)

static bool has_font(FcConfig *config, const char *family)
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
	return same;
}

static int read_fonts(FcConfig *config, struct error *error)
{
	return FcConfigParseAndLoadFromMemory(config, (const FcChar8 *)font_settings, FcFalse) &&
	               FcConfigBuildFonts(config)
	           ? OK
	           : error_cause(error, ERR_INTERNAL, "the fonts cannot be read");
}

static int load_fonts(FcConfig *config, struct error *error)
{
	int result = read_fonts(config, error);
	for (size_t i = 0; !result && i < FONT_COUNT; i++)
		if (!has_font(config, fonts[i].family))
			result = error_cause(error, ERR_INTERNAL, "the font %s is not installed (package %s)",
			                     fonts[i].family, fonts[i].package);
	return result;
}

int report_check_places(struct error *error)
{
	char missing[ERROR_CAUSE_MAX / 2] = "";
	size_t used = 0;
	FcConfig *config = FcConfigCreate();
	int result =
		config ? read_fonts(config, error) : error_cause(error, ERR_NO_MEMORY, "font settings");
	for (size_t i = 0; !result && i < FONT_COUNT; i++)
		if (!has_font(config, fonts[i].family) && used < sizeof missing)
			used += (size_t)snprintf(missing + used, sizeof missing - used, "%s%s (package %s)",
			                         used ? ", " : "", fonts[i].family, fonts[i].package);
	if (config)
		FcConfigDestroy(config);
	if (!result && access(REPORT_PROFILE_PATH, R_OK) != 0 && used < sizeof missing)
		used += (size_t)snprintf(missing + used, sizeof missing - used, "%s%s (package %s)",
		                         used ? ", " : "", REPORT_PROFILE_PATH, "icc-profiles-free");
	return result || !used ? result : error_cause(error, ERR_IO, "%s", missing);
}

/* Pango keeps one font map per thread. The first report of a thread sets the fonts, and all later
 * ones reuse them. A font map per report would leak some kilobytes each time (Pango 1.50). */
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

int draft_draw(struct draft *draft, const struct report_finishing *finishing, int file,
               struct error *error)
{
	PangoContext *pango = NULL;
	int result = fonts_open(&pango, error);
	if (result)
		return result;
	BUF_AUTO struct buf pdf;
	buf_init(&pdf, PDF_MAX);
	result = draw(draft, pango, &pdf, error);
	g_object_unref(pango);
	return result ? result : report_finish(buf_slice(&pdf), finishing, file, error);
}
