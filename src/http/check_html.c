#include "http/check_html.h"

#include <inttypes.h>

#include "http/html.h"
#include "http/internal.h"

enum kind { KIND_ARCHIVE, KIND_REPORT, KIND_PART, KIND_RECORD, KIND_OTHER };

enum verdict { VERDICT_VALID, VERDICT_NOT_VALID, VERDICT_NOT_CHECKED };

struct view {
	const struct check_outcome *outcome;
	enum language language;
	enum kind kind;
	enum verdict verdict;
	bool test;
	int64_t events, timestamps;
};

static bool is_true(const struct json *object, const char *name)
{
	const struct json *member = json_member(object, name);
	return member && member->type == JSON_TRUE;
}

static int64_t count(const struct json *checked, const char *name)
{
	const struct json *counts = json_member(checked, "checked");
	int64_t value = 0;
	if (counts && counts->type == JSON_OBJECT)
		json_get_integer(counts, name, &value);
	return value;
}

/* The items of a member that is an array of objects; NULL: none. */
static const struct json *items(const struct json *checked, const char *name)
{
	const struct json *list = json_member(checked, name);
	return list && list->type == JSON_ARRAY ? list->first : NULL;
}

static struct slice text_of(const struct json *object, const char *name)
{
	struct slice text = {"", 0};
	if (object->type == JSON_OBJECT)
		json_get_text(object, name, &text);
	return text;
}

static bool warns_of(const struct json *checked, const char *what)
{
	for (const struct json *item = items(checked, "warnings"); item; item = item->next) {
		struct slice text = text_of(item, "what");
		if (memmem(text.data, text.size, what, strlen(what)))
			return true;
	}
	return false;
}

static struct view look(const struct check_outcome *outcome, enum language language)
{
	const struct json *checked = outcome->checked;
	struct slice mode = outcome->issued ? text_of(outcome->issued, "mode") : slice_of("");
	struct view view = {
		.outcome = outcome,
		.language = language,
		.kind = count(checked, "reports") > 0            ? KIND_REPORT
	            : count(checked, "parts") > 0            ? KIND_PART
	            : count(checked, "files") > 0            ? KIND_ARCHIVE
	            : count(checked, "evidence_records") > 0 ? KIND_RECORD
	                                                     : KIND_OTHER,
		.verdict = is_true(checked, "valid")             ? VERDICT_VALID
	               : is_true(checked, "could_not_check") ? VERDICT_NOT_CHECKED
	                                                     : VERDICT_NOT_VALID,
		.events = count(checked, "events"),
		.timestamps = count(checked, "timestamps"),
	};
	view.test = slice_is(mode, "test") || warns_of(checked, "this is a test archive");
	return view;
}

/* ---- the verdict ---- */

static const char *title(const struct view *view)
{
	enum language language = view->language;
	switch (view->verdict) {
	case VERDICT_VALID:
		return view->kind == KIND_REPORT
		           ? TEXT(language, "This report is valid", "Este informe es válido")
		           : TEXT(language, "This archive is valid", "Este archivo es válido");
	case VERDICT_NOT_VALID:
		return TEXT(language, "This file is not valid", "Este fichero no es válido");
	case VERDICT_NOT_CHECKED: break;
	}
	return TEXT(language, "This file could not be checked to the end",
	            "Este fichero no se ha podido comprobar por completo");
}

static const char *explanation(const struct view *view)
{
	enum language language = view->language;
	switch (view->verdict) {
	case VERDICT_VALID:
		return TEXT(language,
		            "Every signature, timestamp and digest in it was checked, and nothing that is "
		            "signed was changed.",
		            "Se ha comprobado cada firma, sello de tiempo y resumen que contiene, y no ha "
		            "cambiado nada de lo firmado.");
	case VERDICT_NOT_VALID:
		return TEXT(language, "What is wrong stands below. It attests nothing: do not rely on it.",
		            "Lo que falla figura más abajo. No acredita nada: no se fíe de él.");
	case VERDICT_NOT_CHECKED: break;
	}
	if (view->kind == KIND_RECORD)
		return TEXT(
			language,
			"It is an evidence record, which needs the files that it covers: <code>constancia "
			"verify</code> checks them together, on your own machine.",
			"Es un registro de evidencias, que necesita los ficheros que cubre: "
			"<code>constancia verify</code> los comprueba juntos, en su propia máquina.");
	return TEXT(language, "Why stands below. By itself it attests nothing.",
	            "El motivo figura más abajo. Por sí solo no acredita nada.");
}

static void verdict_section(struct buf *out, const struct view *view)
{
	static const char *const classes[] = {"found", "missing", "unsure"};
	enum language language = view->language;
	char digest[2 * SHA256_SIZE + 1];
	hex_encode(view->outcome->digest.bytes, SHA256_SIZE, digest);
	buf_printf(out, "<section class=\"%s\">\n<h2>%s</h2>\n<p>%s</p>\n", classes[view->verdict],
	           title(view), explanation(view));
	if (view->test && !view->outcome->issued)
		buf_printf(out, "<p class=\"test\"><strong>%s</strong></p>\n",
		           TEXT(language, "Test mode: it has no probative value.",
		                "Modo de prueba: no tiene valor probatorio."));
	buf_printf(out, "<h3>%s</h3>\n",
	           view->outcome->issued
	               ? TEXT(language, "This service issued exactly this file",
	                      "Este servicio emitió exactamente este fichero")
	               : TEXT(language, "This service has no record of having issued this file",
	                      "A este servicio no le consta haber emitido este fichero"));
	if (!view->outcome->issued && view->verdict == VERDICT_VALID)
		buf_printf(out, "<p>%s</p>\n",
		           TEXT(language,
		                "Its signature holds all the same. Either another service issued it, or "
		                "something in it that is not signed is not as it was issued.",
		                "Aun así, su firma es correcta. O lo emitió otro servicio, o algo que no "
		                "está firmado en él no es como se emitió."));
	if (view->outcome->issued)
		html_issued(out, language, view->outcome->issued, digest);
	else
		buf_printf(out, "<dl><dt>SHA-256</dt><dd><code>%s</code></dd></dl>\n", digest);
	buf_add_text(out, "</section>\n");
}

/* ---- what it attests ---- */

static void point(struct buf *out, const char *text)
{
	buf_printf(out, "<li>%s</li>\n", text);
}

static void unchanged(struct buf *out, const struct view *view)
{
	enum language language = view->language;
	if (view->outcome->issued)
		point(out, TEXT(language, "That this is, byte for byte, the file that was issued.",
		                "Que este es, byte a byte, el fichero que se emitió."));
	else
		point(out, TEXT(language, "That nothing that is signed was changed.",
		                "Que no ha cambiado nada de lo firmado."));
}

static void attested_by_archive(struct buf *out, const struct view *view)
{
	enum language language = view->language;
	if (view->events == 1)
		point(out, TEXT(language, "That the service received this one declaration.",
		                "Que el servicio recibió esta única declaración."));
	else
		buf_printf(
			out,
			TEXT(language,
		         "<li>That the service received these %" PRId64
		         " declarations, in this order, with none missing between them.</li>\n",
		         "<li>Que el servicio recibió estas %" PRId64
		         " declaraciones, en este orden y sin que falte ninguna entre ellas.</li>\n"),
			view->events);
	if (view->timestamps > 0 && !view->test)
		point(out, TEXT(language,
		                "That each existed before the timestamp that covers it, by the authority "
		                "named below.",
		                "Que cada una existía antes del sello de tiempo que la cubre, de la "
		                "autoridad que se nombra abajo."));
	unchanged(out, view);
}

static void attested_by_report(struct buf *out, const struct view *view)
{
	enum language language = view->language;
	unchanged(out, view);
	if (view->timestamps > 0)
		point(out, TEXT(language,
		                "That it existed before the timestamp over its signature, by the authority "
		                "named below.",
		                "Que existía antes del sello de tiempo de su firma, de la autoridad que "
		                "se nombra abajo."));
	point(out, TEXT(language, "Which evidence archive it belongs to, by that one's SHA-256.",
	                "A qué archivo de evidencias corresponde, por el SHA-256 de este."));
}

static void not_attested(struct buf *out, const struct view *view)
{
	enum language language = view->language;
	point(out, TEXT(language, "That what was declared is true.", "Que lo declarado sea cierto."));
	point(out, TEXT(language, "Who the declarant is, beyond the account that declared.",
	                "Quién es el declarante, más allá de la cuenta que declaró."));
	point(out, TEXT(language,
	                "When something happened: only when its declaration was received, as the "
	                "service states, and that it existed before its timestamp.",
	                "Cuándo ocurrió algo: solo cuándo se recibió su declaración, según afirma el "
	                "servicio, y que existía antes de su sello de tiempo."));
	if (view->kind == KIND_REPORT)
		point(out,
		      TEXT(language, "The events themselves: the evidence archive does. Check it here too.",
		           "Los eventos en sí: eso lo hace el archivo de evidencias. Compruébelo "
		           "también aquí."));
	else
		point(out, TEXT(language,
		                "The declared content, which is in parts of its own: <code>constancia "
		                "verify</code> checks them together with this archive.",
		                "El contenido declarado, que va en partes propias: <code>constancia "
		                "verify</code> las comprueba junto con este archivo."));
}

static void meaning_section(struct buf *out, const struct view *view)
{
	enum language language = view->language;
	if (view->verdict != VERDICT_VALID)
		return;
	buf_printf(out, "<div class=\"pair\">\n<section>\n<h2>%s</h2>\n<ul class=\"yes\">\n",
	           TEXT(language, "What it attests", "Qué acredita"));
	if (view->kind == KIND_REPORT)
		attested_by_report(out, view);
	else
		attested_by_archive(out, view);
	buf_printf(out, "</ul>\n</section>\n<section>\n<h2>%s</h2>\n<ul class=\"no\">\n",
	           TEXT(language, "What it does not attest", "Qué no acredita"));
	not_attested(out, view);
	buf_add_text(out, "</ul>\n</section>\n</div>\n");
}

/* ---- who ---- */

static void named(struct buf *out, const char *label, struct slice value)
{
	buf_printf(out, "<dt>%s</dt><dd>", label);
	html_escape(out, value);
	buf_add_text(out, "</dd>\n");
}

static void timed(struct buf *out, enum language language, const char *label, struct slice time)
{
	buf_printf(out, "<dt>%s</dt><dd>", label);
	html_time(out, language, time);
	buf_add_text(out, "</dd>\n");
}

static void identity(struct buf *out, enum language language, const struct json *item)
{
	int64_t timestamps = 0;
	buf_add_text(out, "<h3>");
	html_escape(out, text_of(item, "name"));
	buf_add_text(out, "</h3>\n<dl>\n");
	named(out, TEXT(language, "Certificate issued by", "Certificado emitido por"),
	      text_of(item, "issuer_name"));
	timed(out, language, TEXT(language, "Certificate valid until", "Certificado válido hasta"),
	      text_of(item, "not_after"));
	if (item->type == JSON_OBJECT && json_get_integer(item, "timestamps", &timestamps)) {
		buf_printf(out, "<dt>%s</dt><dd>%" PRId64 "</dd>\n",
		           TEXT(language, "Timestamps", "Sellos de tiempo"), timestamps);
		timed(out, language, TEXT(language, "First", "Primero"), text_of(item, "first_gen_time"));
		timed(out, language, TEXT(language, "Last", "Último"), text_of(item, "last_gen_time"));
	}
	buf_printf(out, "<dt>SHA-256</dt><dd><code>");
	html_escape(out, text_of(item, "sha256"));
	buf_add_text(out, "</code></dd>\n</dl>\n");
}

static void identities(struct buf *out, const struct view *view, const char *member,
                       const char *heading)
{
	const struct json *item = items(view->outcome->checked, member);
	if (!item)
		return;
	buf_printf(out, "<section>\n<h2>%s</h2>\n", heading);
	for (; item; item = item->next)
		identity(out, view->language, item);
	buf_add_text(out, "</section>\n");
}

static void level_section(struct buf *out, const struct view *view)
{
	enum language language = view->language;
	const struct json *item = items(view->outcome->checked, "signatures");
	if (!item || view->verdict != VERDICT_VALID)
		return;
	buf_printf(out, "<section>\n<h2>%s</h2>\n<dl>\n",
	           TEXT(language, "How long it can be checked", "Hasta cuándo se puede comprobar"));
	named(out, TEXT(language, "Level of the signature", "Nivel de la firma"),
	      text_of(item, "level"));
	timed(out, language, TEXT(language, "Without this service, until", "Sin este servicio, hasta"),
	      text_of(item, "checkable_until"));
	buf_add_text(out, "</dl>\n</section>\n");
}

/* ---- findings, which are in English ---- */

static void findings(struct buf *out, const struct view *view, const char *member,
                     const char *heading)
{
	const struct json *item = items(view->outcome->checked, member);
	if (!item)
		return;
	buf_printf(out, "<section>\n<h2>%s</h2>\n<ul lang=\"en\">\n", heading);
	for (; item; item = item->next) {
		struct slice where = text_of(item, "where");
		buf_add_text(out, "<li>");
		if (where.size > 0) {
			buf_add_text(out, "<code>");
			html_escape(out, where);
			buf_add_text(out, "</code>: ");
		}
		html_escape(out, text_of(item, "what"));
		buf_add_text(out, "</li>\n");
	}
	buf_add_text(out, "</ul>\n</section>\n");
}

void check_html_answer(struct exchange *exchange, const struct check_outcome *outcome)
{
	enum language language = exchange->language;
	struct view view = look(outcome, language);
	BUF_AUTO struct buf page;
	buf_init(&page, OUT_MAX);
	html_begin(exchange, TEXT(language, "Verify a certification", "Verificar una certificación"),
	           &page);
	verdict_section(&page, &view);
	findings(&page, &view, "findings",
	         view.verdict == VERDICT_NOT_VALID
	             ? TEXT(language, "What is wrong", "Qué falla")
	             : TEXT(language, "What could not be checked", "Qué no se pudo comprobar"));
	meaning_section(&page, &view);
	if (view.verdict == VERDICT_VALID) {
		identities(&page, &view, "signers", TEXT(language, "Who signed", "Quién firmó"));
		identities(&page, &view, "authorities",
		           TEXT(language, "Who gave the time", "Quién dio la hora"));
	}
	level_section(&page, &view);
	findings(&page, &view, "warnings", TEXT(language, "To be known", "Conviene saber"));
	html_forms(exchange, &page);
	html_end(&page);
	html_answer(exchange, 200, &page);
}
