#include "http/verification_result_html.h"

#include <inttypes.h>

#include "http/html.h"
#include "http/http_internal.h"
#include "issue/check_file.h"

enum kind { KIND_ARCHIVE, KIND_REPORT, KIND_PART, KIND_RECORD, KIND_CONTAINER, KIND_OTHER };

enum verdict { VERDICT_VALID, VERDICT_NOT_VALID, VERDICT_FOREIGN, VERDICT_NOT_CHECKED };

struct view {
	const struct check_outcome *outcome;
	const struct json *checked;
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

/* Returns the items of a member that is an array of objects; NULL: none. */
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

static bool warns_of(const struct json *checked, const char *code)
{
	for (const struct json *item = items(checked, "warnings"); item; item = item->next) {
		if (slice_is(text_of(item, "code"), code))
			return true;
	}
	return false;
}

static bool is_of_test(const struct json *file)
{
	static const char begin[] = "CERT-TEST-";
	struct slice id = text_of(file, "certification_id");
	return id.size >= sizeof begin - 1 && memcmp(id.data, begin, sizeof begin - 1) == 0;
}

static enum kind kind_of(const struct check_outcome *outcome)
{
	const struct json *checked = outcome->check->verification;
	return outcome->check->is_container             ? KIND_CONTAINER
	       : count(checked, "reports") > 0          ? KIND_REPORT
	       : count(checked, "parts") > 0            ? KIND_PART
	       : count(checked, "files") > 0            ? KIND_ARCHIVE
	       : count(checked, "evidence_records") > 0 ? KIND_RECORD
	                                                : KIND_OTHER;
}

static enum verdict verdict_of(const struct file_check *check)
{
	if (is_true(check->verification, "valid"))
		return VERDICT_VALID;
	if (is_true(check->verification, "could_not_check"))
		return VERDICT_NOT_CHECKED;
	return check->origin == FILE_FOREIGN && check->is_intact ? VERDICT_FOREIGN : VERDICT_NOT_VALID;
}

static struct view make_view(const struct check_outcome *outcome, enum language language)
{
	const struct json *checked = outcome->check->verification;
	struct slice mode = outcome->issued ? text_of(outcome->issued, "mode") : slice_of("");
	struct view view = {
		.outcome = outcome,
		.checked = checked,
		.language = language,
		.kind = kind_of(outcome),
		.verdict = verdict_of(outcome->check),
		.events = count(checked, "events"),
		.timestamps = count(checked, "timestamps"),
	};
	view.test = slice_is(mode, "test") || warns_of(checked, "archive.test");
	for (const struct json *file = items(checked, "files"); file; file = file->next)
		view.test |= is_of_test(file);
	return view;
}

/* ---- the verdict ---- */

static const char *title_of_valid(const struct view *view)
{
	enum language language = view->language;
	switch (view->kind) {
	case KIND_REPORT: return TEXT(language, "This report is valid", "Este informe es válido");
	case KIND_CONTAINER:
		return TEXT(language, "This container is valid", "Este contenedor es válido");
	default: return TEXT(language, "This archive is valid", "Este archivo es válido");
	}
}

static const char *title(const struct view *view)
{
	enum language language = view->language;
	switch (view->verdict) {
	case VERDICT_VALID: return title_of_valid(view);
	case VERDICT_NOT_VALID:
		return TEXT(language, "This file is not valid", "Este fichero no es válido");
	case VERDICT_FOREIGN:
		return TEXT(language, "Not valid: this service did not issue this file",
		            "No válido: este servicio no emitió este fichero");
	case VERDICT_NOT_CHECKED: break;
	}
	return TEXT(language, "This file could not be fully verified",
	            "Este fichero no se ha podido verificar por completo");
}

static const char *explanation(const struct view *view)
{
	enum language language = view->language;
	switch (view->verdict) {
	case VERDICT_VALID:
		return TEXT(
			language,
			"All its signatures, timestamps and digests were verified. No signed data was changed.",
			"Se han verificado todas sus firmas, sellos de tiempo y resúmenes. Ningún dato "
			"firmado ha cambiado.");
	case VERDICT_NOT_VALID:
		return TEXT(
			language, "The findings are listed below. The file attests nothing: do not rely on it.",
			"Los errores se indican más abajo. El fichero no acredita nada: no confíe en él.");
	case VERDICT_FOREIGN:
		return TEXT(
			language,
			"The file is not on record, and no key of this service signed it while that key was "
			"in force. It attests nothing, regardless of its signature: do not rely on it.",
			"El fichero no consta en este servicio, y ninguna de sus claves lo firmó mientras "
			"estaba en vigor. No acredita nada, sea cual sea su firma: no confíe en él.");
	case VERDICT_NOT_CHECKED: break;
	}
	if (view->kind == KIND_RECORD)
		return TEXT(
			language,
			"This is an evidence record. To verify it together with the files that it covers, "
			"run <code>constancia verify</code> on your own computer.",
			"Este es un registro de evidencia. Para verificarlo junto con los ficheros que "
			"cubre, ejecute <code>constancia verify</code> en su propio ordenador.");
	return TEXT(language, "The reason is given below. The file alone attests nothing.",
	            "El motivo se indica más abajo. El fichero por sí solo no acredita nada.");
}

/* States whether this service issued the file. */
static void record_part(struct buf *out, const struct view *view, const char *digest)
{
	enum language language = view->language;
	const struct json *issued = view->outcome->issued;
	buf_printf(out, "<h3>%s</h3>\n",
	           issued ? TEXT(language, "This service issued exactly this file",
	                         "Este servicio emitió exactamente este fichero")
	                  : TEXT(language, "This service has no record of having issued this file",
	                         "A este servicio no le consta haber emitido este fichero"));
	if (!issued && view->verdict == VERDICT_VALID)
		buf_printf(
			out, "<p>%s</p>\n",
			TEXT(
				language,
				"Nevertheless, it is signed with a key of this service. Either unsigned data in "
				"the file was changed, or the record was lost, or someone else used the key. Ask "
				"the operator of the service before you rely on it.",
				"No obstante, está firmado con una clave de este servicio. O bien se cambiaron "
				"datos no firmados del fichero, o bien se perdió su registro, o bien otra "
				"persona usó la clave. Consulte al operador del servicio antes de confiar en él."));
	if (issued)
		html_issued(out, language, issued, digest);
}

static const char *origin_text(const struct json *file, enum language language)
{
	struct slice origin = text_of(file, "origin");
	if (slice_is(origin, "issued"))
		return TEXT(language, "issued by this service", "emitido por este servicio");
	if (slice_is(origin, "signed"))
		return TEXT(language, "signed by this service, but not on record",
		            "firmado por este servicio, pero no consta");
	return slice_is(origin, "foreign")
	           ? TEXT(language, "not from this service", "no es de este servicio")
	           : TEXT(language, "evidence record", "registro de evidencia");
}

static void file_row(struct buf *out, const struct json *file, enum language language)
{
	static const char before[] = "file/";
	struct slice path = text_of(file, "path"), id = text_of(file, "certification_id");
	if (path.size < sizeof before || memcmp(path.data, before, sizeof before - 1) != 0)
		return; /* the container itself */
	buf_add_text(out, "<tr><th scope=\"row\">");
	html_escape(out, slice_make(path.data + sizeof before - 1, path.size - sizeof before + 1));
	buf_printf(out, "</th><td>%s", origin_text(file, language));
	if (id.size > 0)
		buf_add_text(out, ": ");
	html_escape(out, id);
	buf_add_text(out, "</td><td><code>");
	html_escape(out, text_of(file, "sha256"));
	buf_add_text(out, "</code></td></tr>\n");
}

/* Lists the files of a container with their origin. Anyone can create a container, so only its
 * files matter. */
static void container_part(struct buf *out, const struct view *view)
{
	enum language language = view->language;
	buf_printf(
		out,
		"<h3>%s</h3>\n<p>%s</p>\n<table>\n<caption>%s</caption>\n<thead><tr>"
		"<th scope=\"col\">%s</th><th scope=\"col\">%s</th>"
		"<th scope=\"col\">SHA-256</th></tr></thead>\n<tbody>\n",
		TEXT(language, "This is a container of files", "Es un contenedor de ficheros"),
		TEXT(language,
	         "Anyone can create a container. What matters is the origin of each file in it.",
	         "Cualquiera puede crear un contenedor. Lo que importa es el origen de cada fichero "
	         "que contiene."),
		TEXT(language, "Files in the container", "Ficheros del contenedor"),
		TEXT(language, "File", "Fichero"), TEXT(language, "Origin", "Origen"));
	for (const struct json *file = items(view->checked, "files"); file; file = file->next)
		file_row(out, file, language);
	buf_add_text(out, "</tbody>\n</table>\n");
}

static const char *class_of(const struct view *view)
{
	switch (view->verdict) {
	case VERDICT_VALID: return view->outcome->check->origin == FILE_ISSUED ? "found" : "unsure";
	case VERDICT_NOT_CHECKED: return "unsure";
	default: return "missing";
	}
}

static void verdict_section(struct buf *out, const struct view *view)
{
	char digest[2 * SHA256_SIZE + 1];
	hex_encode(view->outcome->digest.bytes, SHA256_SIZE, digest);
	buf_printf(out, "<section class=\"%s\">\n<h2>%s</h2>\n<p>%s</p>\n", class_of(view), title(view),
	           explanation(view));
	if (view->test && !view->outcome->issued)
		buf_printf(out, "<p class=\"test\"><strong>%s</strong></p>\n",
		           TEXT(view->language, "Test mode: no probative value.",
		                "Modo de prueba: sin valor probatorio."));
	if (view->kind == KIND_CONTAINER)
		container_part(out, view);
	else if (view->verdict != VERDICT_FOREIGN)
		record_part(out, view, digest);
	if (!view->outcome->issued)
		buf_printf(out, "<dl><dt>SHA-256</dt><dd><code>%s</code></dd></dl>\n", digest);
	buf_add_text(out, "</section>\n");
}

/* ---- attestation ---- */

static void point(struct buf *out, const char *text)
{
	buf_printf(out, "<li>%s</li>\n", text);
}

static void unchanged(struct buf *out, const struct view *view)
{
	enum language language = view->language;
	if (view->kind == KIND_CONTAINER && view->outcome->check->origin == FILE_ISSUED)
		point(out, TEXT(language, "That its files are identical to the issued ones, byte for byte.",
		                "Que sus ficheros son idénticos, byte a byte, a los emitidos."));
	else if (view->outcome->issued)
		point(out, TEXT(language, "That this file is identical to the issued one, byte for byte.",
		                "Que este fichero es idéntico, byte a byte, al emitido."));
	else
		point(out, TEXT(language, "That no signed data was changed.",
		                "Que ningún dato firmado ha cambiado."));
}

/* Writes a point about the log of segments, which shows that there is one history as far as its
 * witnesses are independent. */
static void attested_by_log(struct buf *out, const struct view *view)
{
	enum language language = view->language;
	const struct json *log = items(view->checked, "logs");
	int64_t segments = 0, logged = 0;
	if (!log || log->type != JSON_OBJECT || !is_true(log, "signed"))
		return;
	json_get_integer(log, "segments", &segments);
	json_get_integer(log, "segments_logged", &logged);
	if (logged < 1)
		return;
	buf_printf(out,
	           TEXT(language,
	                "<li>That %" PRId64 " of its %" PRId64
	                " segments are entries of the append-only log <code>",
	                "<li>Que %" PRId64 " de sus %" PRId64
	                " segmentos son entradas del registro de solo adición <code>"),
	           logged, segments);
	html_escape(out, text_of(log, "origin"));
	buf_add_text(out, "</code>");
	const struct json *witness = items(log, "cosigned_by");
	if (witness)
		buf_printf(out, "%s ", TEXT(language, ", cosigned by", ", cofirmado por"));
	else
		buf_printf(out, "%s",
		           TEXT(language, ", which no witness cosigned", ", que ningún testigo cofirmó"));
	for (; witness; witness = witness->next) {
		html_escape(out, text_of(witness, "name"));
		buf_add_text(out, " (");
		html_time(out, language, text_of(witness, "time"));
		buf_add_text(out, witness->next ? "), " : ")");
	}
	buf_add_text(out, ".</li>\n");
}

/* Returns whether the archive has segments, and in *ret_history whether it has the seal documents
 * from the first segment of its channel. */
static bool has_segments(const struct view *view, bool *ret_history)
{
	for (const struct json *file = items(view->checked, "files"); file; file = file->next) {
		const struct json *history = json_member(file, "seal_history");
		if (!history || history->type == JSON_NULL)
			continue;
		*ret_history = is_true(file, "seal_history");
		return true;
	}
	return false;
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
		point(out,
		      TEXT(language,
		           "That each declaration existed before the timestamp that covers it, issued by "
		           "the authority named below.",
		           "Que cada declaración existía antes del sello de tiempo que la cubre, emitido "
		           "por la autoridad indicada abajo."));
	bool history;
	if (has_segments(view, &history) && history)
		point(out,
		      TEXT(language,
		           "That the archive has the seals of all segments from the first one of the "
		           "channel, without a gap. They show whether another archive of the channel is of "
		           "the same history.",
		           "Que el archivo contiene los sellos de todos los segmentos desde el primero del "
		           "canal, sin huecos. Muestran si otro archivo del canal es de la misma "
		           "historia."));
	attested_by_log(out, view);
	unchanged(out, view);
}

static void attested_by_report(struct buf *out, const struct view *view)
{
	enum language language = view->language;
	unchanged(out, view);
	if (view->timestamps > 0)
		point(out,
		      TEXT(language,
		           "That it existed before the timestamp over its signature, issued by the "
		           "authority named below.",
		           "Que existía antes del sello de tiempo de su firma, emitido por la autoridad "
		           "indicada abajo."));
	point(out,
	      TEXT(language, "Which evidence archive it belongs to, by the SHA-256 of the archive.",
	           "A qué archivo de evidencias corresponde, por el SHA-256 del archivo."));
}

static void not_attested(struct buf *out, const struct view *view)
{
	enum language language = view->language;
	point(out, TEXT(language, "That the declarations are true.", "Que lo declarado sea cierto."));
	point(out, TEXT(language, "The identity of the declarant, beyond the account used.",
	                "La identidad del declarante, más allá de la cuenta utilizada."));
	point(
		out,
		TEXT(
			language,
			"When the declared facts happened. The archive shows only when the service received "
			"each declaration, as stated by the service, and that it existed before its timestamp.",
			"Cuándo ocurrieron los hechos declarados. Solo consta cuándo recibió el servicio "
			"cada declaración, según afirma el propio servicio, y que existía antes de su sello "
			"de tiempo."));
	bool history;
	if (has_segments(view, &history) && !history)
		point(out,
		      TEXT(language,
		           "That this archive and earlier ones of the channel are of one history: it does "
		           "not have the seals of the segments before its own.",
		           "Que este archivo y otros anteriores del canal sean de una misma historia: no "
		           "contiene los sellos de los segmentos anteriores a los suyos."));
	if (view->kind == KIND_REPORT)
		point(
			out,
			TEXT(
				language,
				"The events themselves. The evidence archive attests them; verify it here as well.",
				"Los eventos en sí. Los acredita el archivo de evidencias; verifíquelo también "
				"aquí."));
	else if (count(view->checked, "parts") == 0)
		point(out,
		      TEXT(language,
		           "The declared content, which is in separate content parts. <code>constancia "
		           "verify</code> verifies them together with this archive.",
		           "El contenido declarado, que va en partes de contenido separadas. "
		           "<code>constancia verify</code> las verifica junto con este archivo."));
}

/* The files of a container are verified individually. Events are known only if it contains an
 * archive. */
static void attested_by_container(struct buf *out, const struct view *view)
{
	enum language language = view->language;
	const struct json *record = items(view->checked, "evidence_records");
	if (view->events > 0)
		attested_by_archive(out, view);
	else
		unchanged(out, view);
	if (!record)
		return;
	buf_printf(
		out, "<li>%s ",
		TEXT(language, "That all its files existed at", "Que todos sus ficheros existían el"));
	html_time(out, language, text_of(record, "exists_since"));
	buf_add_text(out, ".</li>\n");
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
	else if (view->kind == KIND_CONTAINER)
		attested_by_container(out, view);
	else
		attested_by_archive(out, view);
	buf_printf(out, "</ul>\n</section>\n<section>\n<h2>%s</h2>\n<ul class=\"no\">\n",
	           TEXT(language, "What it does not attest", "Qué no acredita"));
	not_attested(out, view);
	buf_add_text(out, "</ul>\n</section>\n</div>\n");
}

/* ---- signers and authorities ---- */

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
	const struct json *item = items(view->checked, member);
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
	const struct json *item = items(view->checked, "signatures");
	if (!item || view->verdict != VERDICT_VALID)
		return;
	buf_printf(out, "<section>\n<h2>%s</h2>\n<dl>\n",
	           TEXT(language, "Long-term verifiability", "Verificabilidad a largo plazo"));
	named(out, TEXT(language, "Level of the signature", "Nivel de la firma"),
	      text_of(item, "level"));
	timed(out, language,
	      TEXT(language, "Verifiable without this service until",
	           "Verificable sin este servicio hasta"),
	      text_of(item, "checkable_until"));
	buf_add_text(out, "</dl>\n</section>\n");
}

/* ---- findings ---- */

/* The detail at the end of a finding is always in English. */
static void finding_text(struct buf *out, const struct view *view, const struct json *item)
{
	bool spanish = view->language == LANGUAGE_SPANISH;
	struct slice what = text_of(item, spanish ? "what_es" : "what");
	struct slice detail = text_of(item, "detail");
	if (!spanish || detail.size == 0 || detail.size > what.size ||
	    memcmp(what.data + what.size - detail.size, detail.data, detail.size) != 0) {
		html_escape(out, what);
		return;
	}
	html_escape(out, slice_make(what.data, what.size - detail.size));
	buf_add_text(out, "<span lang=\"en\">");
	html_escape(out, detail);
	buf_add_text(out, "</span>");
}

static void findings(struct buf *out, const struct view *view, const char *member,
                     const char *heading)
{
	const struct json *item = items(view->checked, member);
	if (!item)
		return;
	buf_printf(out, "<section>\n<h2>%s</h2>\n<ul>\n", heading);
	for (; item; item = item->next) {
		struct slice where = text_of(item, "where");
		buf_add_text(out, "<li>");
		if (where.size > 0) {
			buf_add_text(out, "<code>");
			html_escape(out, where);
			buf_add_text(out, "</code>: ");
		}
		finding_text(out, view, item);
		buf_add_text(out, "</li>\n");
	}
	buf_add_text(out, "</ul>\n</section>\n");
}

void check_html_answer(struct exchange *exchange, const struct check_outcome *outcome)
{
	enum language language = exchange->language;
	struct view view = make_view(outcome, language);
	BUF_AUTO struct buf page;
	buf_init(&page, OUT_MAX);
	html_begin(exchange, TEXT(language, "Verify a certification", "Verificar una certificación"),
	           &page);
	verdict_section(&page, &view);
	findings(&page, &view, "findings",
	         view.verdict == VERDICT_NOT_CHECKED
	             ? TEXT(language, "What could not be verified", "Qué no se pudo verificar")
	             : TEXT(language, "Errors", "Errores"));
	meaning_section(&page, &view);
	if (view.verdict == VERDICT_VALID) {
		identities(&page, &view, "signers", TEXT(language, "Signers", "Firmantes"));
		identities(&page, &view, "authorities",
		           TEXT(language, "Timestamp authorities", "Autoridades de sellado de tiempo"));
	}
	level_section(&page, &view);
	findings(&page, &view, "warnings", TEXT(language, "Warnings", "Advertencias"));
	html_forms(exchange, &page);
	html_end(&page);
	html_answer(exchange, 200, &page);
}
