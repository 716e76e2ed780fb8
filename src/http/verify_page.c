/* /verify and /verify/{code}: the public page on which anyone checks a verification code or a file.
 * HTML for people, JSON for programs. It works without the script, but for the digest of a file. */
#include <stdio.h>

#include "http/header.h"
#include "http/internal.h"

#define TEXT(language, english, spanish) ((language) == LANGUAGE_SPANISH ? (spanish) : (english))
#define CODE_MAX 64

static const char policy[] =
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/* ---- HTML ---- */

static void escape(struct buf *out, struct slice text)
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

static void head(struct buf *out, enum language language)
{
	buf_printf(
		out,
		"<!DOCTYPE html>\n<html lang=\"%s\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width\">\n"
		"<meta name=\"robots\" content=\"noindex\">\n<title>%s</title>\n"
		"<link rel=\"stylesheet\" href=\"/assets/verify.css\">\n"
		"<script src=\"/assets/verify.js\" defer></script>\n</head>\n<body>\n<main>\n<h1>%s</h1>\n",
		TEXT(language, "en", "es"),
		TEXT(language, "Verify a certification", "Verificar una certificación"),
		TEXT(language, "Verify a certification", "Verificar una certificación"));
}

static void forms(struct buf *out, enum language language)
{
	buf_printf(
		out,
		"<form action=\"/verify\" method=\"get\">\n<label for=\"code\">%s</label>\n"
		"<input id=\"code\" name=\"code\" required maxlength=\"%d\" autocomplete=\"off\" "
		"autocapitalize=\"characters\" spellcheck=\"false\">\n<button>%s</button>\n</form>\n",
		TEXT(language, "Verification code, as printed on the report",
	         "Código de verificación, como figura en el informe"),
		CODE_MAX, TEXT(language, "Verify", "Verificar"));
	buf_printf(
		out,
		"<form id=\"file-form\" action=\"/verify\" method=\"get\" hidden>\n"
		"<label for=\"file\">%s</label>\n<input id=\"file\" type=\"file\">\n"
		"<p id=\"file-state\" role=\"status\" data-reading=\"%s\" "
		"data-failed=\"%s\"></p>\n</form>\n",
		TEXT(language,
	         "Or choose or drop a report (PDF) or an archive (ZIP): its SHA-256 is computed in "
	         "this browser, and the file is not sent",
	         "O elija o arrastre un informe (PDF) o un archivo (ZIP): su SHA-256 se calcula en "
	         "este navegador y el fichero no se envía"),
		TEXT(language, "Computing the SHA-256…", "Calculando el SHA-256…"),
		TEXT(language, "This browser cannot compute it here. Use sha256sum and the field below.",
	         "Este navegador no puede calcularlo aquí. Use sha256sum y el campo de abajo."));
	buf_printf(out,
	           "<form action=\"/verify\" method=\"get\">\n<label for=\"sha256\">%s</label>\n"
	           "<input id=\"sha256\" name=\"sha256\" required minlength=\"64\" maxlength=\"64\" "
	           "pattern=\"[0-9A-Fa-f]{64}\" autocomplete=\"off\" spellcheck=\"false\">\n"
	           "<button>%s</button>\n</form>\n</main>\n</body>\n</html>\n",
	           TEXT(language, "Or the SHA-256 of a file", "O el SHA-256 de un fichero"),
	           TEXT(language, "Verify", "Verificar"));
}

static void row(struct buf *out, const char *label, const struct json *found, const char *member)
{
	const struct json *value = json_member(found, member);
	if (!value || (value->type != JSON_STRING && value->type != JSON_NUMBER))
		return;
	buf_printf(out, "<dt>%s</dt><dd>", label);
	escape(out, value->text);
	buf_add_text(out, "</dd>\n");
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
	for (const struct json *item = list->first; item; item = item->next) {
		struct slice name = {"", 0}, sha256 = {"", 0};
		int64_t bytes = 0;
		json_get_text(item, "name", &name);
		json_get_text(item, "sha256", &sha256);
		json_get_integer(item, "bytes", &bytes);
		bool yours = digest && slice_is(sha256, digest);
		buf_add_text(out,
		             yours ? "<tr class=\"yours\"><th scope=\"row\">" : "<tr><th scope=\"row\">");
		escape(out, name);
		if (yours)
			buf_add_text(out,
			             TEXT(language, " (the file you checked)", " (el fichero comprobado)"));
		buf_printf(out, "</th><td>%lld</td><td><code>", (long long)bytes);
		escape(out, sha256);
		buf_add_text(out, "</code></td></tr>\n");
	}
	buf_add_text(out, "</tbody>\n</table>\n");
}

static void result_section(struct buf *out, enum language language, const struct json *found,
                           const char *digest)
{
	struct slice mode;
	bool test = json_get_text(found, "mode", &mode) && slice_is(mode, "test");
	buf_printf(out, "<section class=\"found\" aria-live=\"polite\">\n<h2>%s</h2>\n",
	           digest ? TEXT(language, "This file was issued by this service and is unaltered",
	                         "Este fichero lo emitió este servicio y no está alterado")
	                  : TEXT(language, "This certification was issued by this service",
	                         "Esta certificación la emitió este servicio"));
	if (test)
		buf_printf(out, "<p class=\"test\"><strong>%s</strong></p>\n",
		           TEXT(language, "Test mode: it has no probative value.",
		                "Modo de prueba: no tiene valor probatorio."));
	buf_add_text(out, "<dl>\n");
	row(out, TEXT(language, "Certification", "Certificación"), found, "certification_id");
	row(out, TEXT(language, "Verification code", "Código de verificación"), found,
	    "verification_code");
	row(out, TEXT(language, "Issued at (UTC)", "Emitida (UTC)"), found, "issued_at");
	row(out, TEXT(language, "Events", "Eventos"), found, "event_count");
	row(out, TEXT(language, "First sequence", "Primera secuencia"), found, "first_sequence");
	row(out, TEXT(language, "Last sequence", "Última secuencia"), found, "last_sequence");
	buf_add_text(out, "</dl>\n");
	documents(out, language, found, digest);
	if (!digest)
		buf_printf(
			out, "<p>%s</p>\n",
			TEXT(
				language,
				"A file is authentic when its SHA-256 is in this table; compare the file you hold.",
				"Un fichero es auténtico si su SHA-256 está en esta tabla; compare el que tiene."));
	buf_add_text(out, "</section>\n");
}

static void not_found_section(struct buf *out, enum language language, bool by_digest)
{
	buf_printf(
		out,
		"<section class=\"missing\" aria-live=\"polite\">\n<h2>%s</h2>\n<p>%s</p>\n</section>\n",
		by_digest ? TEXT(language, "This service did not issue this file",
	                     "Este servicio no emitió este fichero")
				  : TEXT(language, "There is no certification with this code",
	                     "No hay ninguna certificación con este código"),
		by_digest ? TEXT(language, "Or it was altered afterwards.", "O se alteró después.")
				  : TEXT(language, "Check it against the report: letters, digits and hyphens.",
	                     "Compruébelo con el informe: letras, cifras y guiones."));
}

/* ---- the answer ---- */

struct lookup {
	bool wanted;
	bool by_digest;
	struct slice code;
	struct sha256 digest;
	char digest_text[2 * SHA256_SIZE + 1];
};

static void finish_html(struct exchange *exchange, int status, struct buf *page)
{
	const char *text =
		buf_check(page) ? NULL : arena_copy(&exchange->arena, page->data, page->size);
	if (!text) {
		answer_error(exchange, ERR_NO_MEMORY);
		return;
	}
	answer_with(exchange, status, "text/html; charset=utf-8", slice_make(text, page->size));
	exchange->answer.vary = "Accept, Accept-Language";
	answer_header(exchange, "Content-Security-Policy", policy);
	answer_header(exchange, "X-Content-Type-Options", "nosniff");
	answer_header(exchange, "Referrer-Policy", "no-referrer");
}

static void answer_html(struct exchange *exchange, const struct lookup *lookup,
                        const struct json *found)
{
	enum language language = exchange->language;
	BUF_AUTO struct buf page;
	buf_init(&page, OUT_MAX);
	head(&page, language);
	if (found)
		result_section(&page, language, found, lookup->by_digest ? lookup->digest_text : NULL);
	else if (lookup->wanted)
		not_found_section(&page, language, lookup->by_digest);
	forms(&page, language);
	finish_html(exchange, lookup->wanted && !found ? 404 : 200, &page);
}

/* May wait for the store when something is wanted. */
static int look_up(struct exchange *exchange, const struct lookup *lookup, struct error *error)
{
	bool as_json = header_prefers_json(exchange->head.accept);
	struct json *found = NULL;
	int result = 0;
	if (lookup->wanted)
		result =
			verification_lookup(exchange->service, lookup->code,
		                        lookup->by_digest ? &lookup->digest : NULL, &exchange->out, error);
	if (result && (result != ERR_NOT_FOUND || as_json))
		return result;
	if (as_json) {
		answer_out(exchange, 200);
		exchange->answer.vary = "Accept, Accept-Language";
		return 0;
	}
	if (buf_check(&exchange->out))
		return ERR_NO_MEMORY;
	if (lookup->wanted && !result)
		result = json_parse(&exchange->arena, buf_slice(&exchange->out), NULL, &found, error);
	if (result && result != ERR_NOT_FOUND)
		return result;
	answer_html(exchange, lookup, found);
	return 0;
}

static int parse(struct exchange *exchange, struct lookup *ret_lookup, struct error *error)
{
	struct slice sha256;
	struct lookup lookup = {0};
	bool by_code = query_get(&exchange->parameters, "code", &lookup.code);
	lookup.by_digest = query_get(&exchange->parameters, "sha256", &sha256);
	lookup.wanted = by_code || lookup.by_digest;
	lookup.code = header_trim(lookup.code);
	bool as_json = header_prefers_json(exchange->head.accept);
	if ((by_code && lookup.by_digest) || (!lookup.wanted && as_json) ||
	    (lookup.by_digest && !hex_decode(sha256, lookup.digest.bytes, SHA256_SIZE)))
		return error_set(error, ERR_VALIDATION, MSG_HTTP_QUERY_ONE_OF, NULL);
	hex_encode(lookup.digest.bytes, SHA256_SIZE, lookup.digest_text);
	*ret_lookup = lookup;
	return 0;
}

static int verify(struct exchange *exchange, struct error *error)
{
	struct lookup lookup;
	int result = parse(exchange, &lookup, error);
	return result ? result : look_up(exchange, &lookup, error);
}

/* The page itself needs no store, and is there while that is away. */
static bool verify_at_once(struct exchange *exchange)
{
	struct lookup lookup;
	int result = parse(exchange, &lookup, &exchange->error);
	if (!result && lookup.wanted) {
		work_submit(exchange);
		return false;
	}
	if (!result)
		result = look_up(exchange, &lookup, &exchange->error);
	if (result)
		answer_error(exchange, result);
	return true;
}

static int verify_code(struct exchange *exchange, struct error *error)
{
	struct lookup lookup = {.wanted = true, .code = header_trim(exchange->arguments[0])};
	return look_up(exchange, &lookup, error);
}

const struct operation operation_verify = {
	.open = true,
	.parameters = (const char *const[]){"code", "sha256", NULL},
	.finish = verify_at_once,
	.work = verify,
};
const struct operation operation_verify_code = {.open = true, .work = verify_code};
