#include "http/html.h"

#include <inttypes.h>
#include <stdio.h>

#include "http/http_internal.h"
#include "service/settings.h"

#define MIB ((size_t)1024 * 1024)

/* Maximum length of typed or pasted text, including spaces. */
#define TYPED_MAX 256

static const char policy[] =
	"default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; "
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

void html_escape(struct buf *out, struct slice text)
{
	for (size_t i = 0; i < text.size; i++) {
		switch (text.data[i]) {
		case '<': buf_add_text(out, "&lt;"); break;
		case '>': buf_add_text(out, "&gt;"); break;
		case '&': buf_add_text(out, "&amp;"); break;
		case '"': buf_add_text(out, "&quot;"); break;
		case '\'': buf_add_text(out, "&#39;"); break;
		default: buf_add_byte(out, text.data[i]);
		}
	}
}

void html_time(struct buf *out, enum language language, struct slice time)
{
	static const char *const months[][12] = {
		{"January", "February", "March", "April", "May", "June", "July", "August", "September",
	     "October", "November", "December"},
		{"enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre",
	     "octubre", "noviembre", "diciembre"}};
	int64_t time_us;
	char text[TIME_TEXT_SIZE];
	if (time_parse(time, "time", &time_us, NULL)) {
		html_escape(out, time);
		return;
	}
	time_format(time_us, text);
	bool spanish = language == LANGUAGE_SPANISH;
	int month = (text[5] - '0') * 10 + text[6] - '0';
	int day = (text[8] - '0') * 10 + text[9] - '0';
	buf_printf(out, "<time datetime=\"%s\">%d %s%s%s %.4s, %.8s UTC</time>", text, day,
	           spanish ? "de " : "", months[spanish][month - 1], spanish ? " de" : "", text,
	           text + 11);
}

/* ---- the frame ---- */

void html_begin(const struct exchange *exchange, const char *title, struct buf *out)
{
	enum language language = exchange->language;
	buf_printf(out,
	           "<!DOCTYPE html>\n<html lang=\"%s\">\n<head>\n<meta charset=\"utf-8\">\n"
	           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	           "<meta name=\"color-scheme\" content=\"light dark\">\n%s" HTML_ICONS "<title>%s · ",
	           TEXT(language, "en", "es"),
	           exchange->operation && exchange->operation->listed
	               ? ""
	               : "<meta name=\"robots\" content=\"noindex\">\n",
	           title);
	html_escape(out, slice_of(exchange->service->settings->service_name));
	buf_add_text(out, "</title>\n<link rel=\"stylesheet\" href=\"/assets/verify.css\">\n"
	                  "</head>\n<body>\n<header>\n<p><a href=\"/\">");
	html_escape(out, slice_of(exchange->service->settings->service_name));
	buf_printf(out, "</a></p>\n</header>\n<main>\n<h1>%s</h1>\n", title);
}

void html_end(struct buf *out)
{
	buf_add_text(out, "</main>\n</body>\n</html>\n");
}

static void code_form(struct buf *out, enum language language)
{
	buf_printf(
		out,
		"<form action=\"/verify\" method=\"get\">\n<h2>%s</h2>\n<label for=\"code\">%s</label>\n"
		"<input id=\"code\" name=\"code\" required maxlength=\"%d\" autocomplete=\"off\" "
		"autocapitalize=\"characters\" spellcheck=\"false\">\n<button>%s</button>\n</form>\n",
		TEXT(language, "By code", "Por código"),
		TEXT(language, "Verification code, as printed on the report",
	         "Código de verificación, como figura en el informe"),
		TYPED_MAX, TEXT(language, "Look up", "Buscar"));
}

static void check_form(struct buf *out, enum language language, size_t size_max)
{
	bool small = size_max < MIB;
	buf_printf(
		out,
		"<form action=\"/verify\" method=\"post\" enctype=\"multipart/form-data\">\n<h2>%s</h2>\n"
		"<label for=\"checked\">%s</label>\n<input id=\"checked\" name=\"file\" type=\"file\" "
		"required accept=\".pdf,.zip,.asice,application/pdf,application/zip,"
		"application/vnd.etsi.asic-e+zip\" "
		"aria-describedby=\"checked-note\">\n<p class=\"note\" id=\"checked-note\">",
		TEXT(language, "Full verification of the file", "Verificación completa del fichero"),
		TEXT(language, "Report (PDF), evidence archive (ZIP) or container (ASiC-E)",
	         "Informe (PDF), archivo de evidencias (ZIP) o contenedor (ASiC-E)"));
	buf_printf(
		out,
		TEXT(language,
	         "The file is sent to this service, which verifies all its signatures, timestamps and "
	         "digests and does not store it. Maximum size: %zu %s. To verify a larger file, run "
	         "<code>constancia verify</code> on your own computer.",
	         "El fichero se envía a este servicio, que verifica todas sus firmas, sellos de "
	         "tiempo y resúmenes y no lo guarda. Tamaño máximo: %zu %s. Para verificar un fichero "
	         "mayor, ejecute <code>constancia verify</code> en su propio ordenador."),
		small ? size_max / 1024 : size_max / MIB, small ? "KiB" : "MiB");
	buf_printf(out, "</p>\n<button>%s</button>\n</form>\n",
	           TEXT(language, "Verify the file", "Verificar el fichero"));
}

static void digest_form(struct buf *out, enum language language)
{
	buf_printf(
		out,
		"<form action=\"/verify\" method=\"get\">\n<h2>%s</h2>\n"
		"<div id=\"file-form\" hidden>\n<label for=\"file\">%s</label>\n"
		"<input id=\"file\" type=\"file\">\n<p id=\"file-state\" role=\"status\" "
		"data-reading=\"%s\" data-failed=\"%s\"></p>\n</div>\n",
		TEXT(language, "By SHA-256, without sending the file",
	         "Por SHA-256, sin enviar el fichero"),
		TEXT(language,
	         "Choose or drop a file. Its SHA-256 is computed in this browser, and the file is not "
	         "sent",
	         "Elija o arrastre un fichero. Su SHA-256 se calcula en este navegador y el fichero "
	         "no se envía"),
		TEXT(language, "Computing the SHA-256…", "Calculando el SHA-256…"),
		TEXT(language,
	         "This browser cannot compute the SHA-256. Use sha256sum and the field below.",
	         "Este navegador no puede calcular el SHA-256. Use sha256sum y el campo de abajo."));
	buf_printf(
		out,
		"<label for=\"sha256\">%s</label>\n"
		"<input id=\"sha256\" name=\"sha256\" required maxlength=\"%d\" "
		"pattern=\"\\s*([0-9A-Fa-f]\\s*){64}\" autocomplete=\"off\" spellcheck=\"false\">\n"
		"<button>%s</button>\n</form>\n",
		TEXT(language, "SHA-256, 64 hexadecimal digits", "SHA-256, 64 dígitos hexadecimales"),
		TYPED_MAX, TEXT(language, "Look up", "Buscar"));
}

void html_forms(const struct exchange *exchange, struct buf *out)
{
	size_t size_max = check_size_max(exchange);
	buf_add_text(out, "<div class=\"forms\">\n");
	code_form(out, exchange->language);
	if (size_max > 0)
		check_form(out, exchange->language, size_max);
	digest_form(out, exchange->language);
	buf_add_text(out, "</div>\n<script src=\"/assets/verify.js\"></script>\n");
}

void html_headers(struct exchange *exchange)
{
	exchange->answer.vary = "Accept, Accept-Language";
	answer_header(exchange, "Content-Security-Policy", policy);
	answer_header(exchange, "X-Content-Type-Options", "nosniff");
	answer_header(exchange, "Referrer-Policy", "no-referrer");
}

void html_answer(struct exchange *exchange, int status, const struct buf *page)
{
	struct buf *out = &exchange->out;
	buf_clear(out);
	buf_add_slice(out, buf_slice(page));
	if (buf_check(page) || buf_check(out)) {
		answer_error(exchange, ERR_NO_MEMORY);
		return;
	}
	answer_with(exchange, status, HTML_TYPE, buf_slice(out));
	html_headers(exchange);
}

void html_error(struct exchange *exchange, int status)
{
	enum language language = exchange->language;
	struct buf *out = &exchange->out;
	buf_clear(out);
	html_begin(exchange, TEXT(language, "The request failed", "La solicitud ha fallado"), out);
	buf_add_text(out, "<section class=\"missing\" role=\"alert\">\n<p>");
	html_escape(out, slice_of(error_message(&exchange->error, language)));
	buf_printf(out, "</p>\n<p class=\"note\">HTTP %d · %s</p>\n</section>\n", status,
	           exchange->request_id);
	if (!exchange->console)
		html_forms(exchange, out);
	html_end(out);
}

/* ---- a certification ---- */

static void row(struct buf *out, enum language language, const char *label,
                const struct json *found, const char *member)
{
	const struct json *value = json_member(found, member);
	if (!value || (value->type != JSON_STRING && value->type != JSON_NUMBER))
		return;
	buf_printf(out, "<dt>%s</dt><dd>", label);
	if (strcmp(member, "issued_at") == 0)
		html_time(out, language, value->text);
	else
		html_escape(out, value->text);
	buf_add_text(out, "</dd>\n");
}

static void document(struct buf *out, enum language language, const struct json *item,
                     const char *digest)
{
	struct slice name = {"", 0}, sha256 = {"", 0};
	int64_t bytes = 0;
	json_get_text(item, "name", &name);
	json_get_text(item, "sha256", &sha256);
	json_get_integer(item, "bytes", &bytes);
	bool yours = digest && slice_is(sha256, digest);
	buf_add_text(out, yours ? "<tr class=\"yours\"><th scope=\"row\">" : "<tr><th scope=\"row\">");
	html_escape(out, name);
	if (yours)
		buf_add_text(
			out, TEXT(language, " <strong>(your file)</strong>", " <strong>(su fichero)</strong>"));
	buf_printf(out, "</th><td>%" PRId64 "</td><td><code>", bytes);
	html_escape(out, sha256);
	buf_add_text(out, "</code></td></tr>\n");
}

static void documents(struct buf *out, enum language language, const struct json *found,
                      const char *digest)
{
	const struct json *list = json_member(found, "documents");
	if (!list || list->type != JSON_ARRAY || !list->count)
		return;
	buf_printf(out,
	           "<table>\n<caption>%s</caption>\n<thead><tr><th scope=\"col\">%s</th>"
	           "<th scope=\"col\">%s</th><th scope=\"col\">SHA-256</th></tr></thead>\n<tbody>\n",
	           TEXT(language, "Issued files", "Ficheros emitidos"),
	           TEXT(language, "File", "Fichero"), "Bytes");
	for (const struct json *item = list->first; item; item = item->next)
		document(out, language, item, digest);
	buf_add_text(out, "</tbody>\n</table>\n");
}

void html_issued(struct buf *out, enum language language, const struct json *found,
                 const char *digest)
{
	struct slice mode;
	if (json_get_text(found, "mode", &mode) && slice_is(mode, "test"))
		buf_printf(out, "<p class=\"test\"><strong>%s</strong></p>\n",
		           TEXT(language, "Test mode: no probative value.",
		                "Modo de prueba: sin valor probatorio."));
	buf_add_text(out, "<dl>\n");
	row(out, language, TEXT(language, "Certification", "Certificación"), found, "certification_id");
	row(out, language, TEXT(language, "Verification code", "Código de verificación"), found,
	    "verification_code");
	row(out, language, TEXT(language, "Issued", "Emitida"), found, "issued_at");
	row(out, language, TEXT(language, "Events", "Eventos"), found, "event_count");
	row(out, language, TEXT(language, "First sequence number", "Primer número de secuencia"), found,
	    "first_sequence");
	row(out, language, TEXT(language, "Last sequence number", "Último número de secuencia"), found,
	    "last_sequence");
	buf_add_text(out, "</dl>\n");
	documents(out, language, found, digest);
}
