/* The pages that say what this is and where to go on: /, /docs and /v1. Of the settings alone, so
 * that they are there while the store is away. */
#include <stdio.h>

#include "http/header.h"
#include "http/html.h"
#include "http/internal.h"
#include "service/settings.h"

#define PAGE_MAX ((size_t)32 * 1024)

static void paragraph(struct buf *out, const char *text)
{
	buf_printf(out, "<p>%s</p>\n", text);
}

static void heading(struct buf *out, const char *text)
{
	buf_printf(out, "<section>\n<h2>%s</h2>\n", text);
}

static void entry(struct buf *out, const char *address, const char *name, const char *what)
{
	buf_printf(out, "<dt><a href=\"%s\">%s</a></dt>\n<dd>%s</dd>\n", address, name, what);
}

/* ---- / ---- */

static void what_this_is(struct buf *out, enum language language)
{
	paragraph(
		out,
		TEXT(
			language,
			"A third party that keeps declarations on record. Whoever has to prove later what was "
			"said, and when, declares it here at the time: a JSON document, a file, or only its "
			"digest.",
			"Un tercero que deja constancia de declaraciones. Quien tenga que probar más tarde qué "
			"se dijo, y cuándo, lo declara aquí en su momento: un documento JSON, un fichero, o "
			"solo su resumen."));
	paragraph(out, TEXT(language, "Its certifications attest:", "Sus certificaciones acreditan:"));
	buf_printf(
		out, "<ul>\n<li>%s</li>\n<li>%s</li>\n<li>%s</li>\n</ul>\n",
		TEXT(language, "<strong>That it was received,</strong> and stored before the answer.",
	         "<strong>Que se recibió,</strong> y se guardó antes de responder."),
		TEXT(language, "<strong>When,</strong> proven by the timestamps of outside authorities.",
	         "<strong>Cuándo,</strong> probado por sellos de tiempo de autoridades externas."),
		TEXT(language, "<strong>That nothing of it was altered since.</strong>",
	         "<strong>Que nada de ello se ha alterado desde entonces.</strong>"));
	paragraph(out, TEXT(language, "They never attest that what was declared is true.",
	                    "Nunca acreditan que lo declarado sea cierto."));
}

static void how_to_verify(struct buf *out, enum language language)
{
	heading(out,
	        TEXT(language, "You hold a report or an archive", "Tiene un informe o un archivo"));
	paragraph(
		out,
		TEXT(
			language,
			"Anyone can check it, without an account: by the verification code printed on it, or by "
			"the file itself. <a href=\"/verify\">Verify a certification</a>.",
			"Cualquiera puede comprobarlo, sin tener cuenta: por el código de verificación que "
			"figura en él, o por el propio fichero. <a href=\"/verify\">Verificar una "
			"certificación</a>."));
	buf_add_text(out, "</section>\n");
}

static void command(const struct exchange *exchange, struct buf *out, const char *rest)
{
	const struct settings *settings = exchange->service->settings;
	buf_printf(out, "<pre tabindex=\"0\"><code>curl -u %s_test_…: \\\n  %s \\\n  ",
	           settings->service_prefix, rest);
	html_escape(out, slice_of(settings->service_public_url));
}

static void how_to_begin(const struct exchange *exchange, struct buf *out)
{
	enum language language = exchange->language;
	heading(out, TEXT(language, "You want to declare", "Quiere declarar"));
	buf_printf(
		out, "<ol>\n<li><p>%s</p></li>\n<li><p>%s</p>\n",
		TEXT(language,
	         "Ask whoever runs this service for a channel. You get two keys: with the test key you "
	         "try everything, free of charge and without probative value.",
	         "Pida un canal a quien presta este servicio. Recibirá dos claves: con la de prueba lo "
	         "ensaya todo, sin coste y sin valor probatorio."),
		TEXT(language, "Register an event. The answer is the receipt.",
	         "Registre un evento. La respuesta es el justificante."));
	command(exchange, out,
	        "--json '{\"client_ref\": \"first\", \"payload\": {\"hello\": \"world\"}}'");
	buf_printf(out, "/v1/events</code></pre></li>\n<li><p>%s</p>\n",
	           TEXT(language, "Ask for a certification of it, and read it until it is issued.",
	                "Pida su certificación, y léala hasta que esté emitida."));
	command(exchange, out, "--json '{\"seq_from\": 1, \"seq_to\": 1}'");
	buf_printf(
		out, "/v1/certifications</code></pre></li>\n<li><p>%s</p></li>\n</ol>\n",
		TEXT(
			language,
			"Download its reports and its evidence archive, and verify them here or on your own "
			"machine.",
			"Descargue sus informes y su archivo de evidencias, y verifíquelos aquí o en su propia "
			"máquina."));
	paragraph(
		out,
		TEXT(language,
	         "The <a href=\"/docs/reference\">reference</a> has each operation with examples in "
	         "seven languages; there is more in the <a href=\"/docs\">documentation</a>.",
	         "La <a href=\"/docs/reference\" hreflang=\"en\">referencia</a> (en inglés) tiene "
	         "cada operación con ejemplos en siete lenguajes; hay más en la "
	         "<a href=\"/docs\">documentación</a>."));
	buf_add_text(out, "</section>\n");
}

static void how_to_govern(struct buf *out, enum language language)
{
	heading(out, TEXT(language, "You have an account here", "Tiene una cuenta aquí"));
	paragraph(out, TEXT(language,
	                    "Its users, its balance and what was done to it are in the "
	                    "<a href=\"/console/sign-in\">console</a>.",
	                    "Sus usuarios, su saldo y lo que se ha hecho con ella están en la "
	                    "<a href=\"/console/sign-in\">consola</a>."));
	buf_add_text(out, "</section>\n");
}

static bool home(struct exchange *exchange)
{
	BUF_AUTO struct buf page;
	buf_init(&page, PAGE_MAX);
	html_begin(exchange, TEXT(exchange->language, "Declarations on record", "Dejar constancia"),
	           &page);
	what_this_is(&page, exchange->language);
	how_to_verify(&page, exchange->language);
	how_to_begin(exchange, &page);
	how_to_govern(&page, exchange->language);
	html_end(&page);
	html_answer(exchange, 200, &page);
	return true;
}

/* ---- /docs ---- */

static bool docs(struct exchange *exchange)
{
	enum language language = exchange->language;
	BUF_AUTO struct buf page;
	buf_init(&page, PAGE_MAX);
	html_begin(exchange, TEXT(language, "Documentation", "Documentación"), &page);
	buf_printf(&page, "<p>%s <code>", TEXT(language, "The interface is at", "La interfaz está en"));
	html_escape(&page, slice_of(exchange->service->settings->service_public_url));
	buf_add_text(&page, "/v1</code>.</p>\n<dl>\n");
	entry(
		&page, "/docs/reference", TEXT(language, "Reference", "Referencia"),
		TEXT(
			language,
			"Every operation, record and notice, with examples in curl, Python, TypeScript, Java, "
			"Go, PHP and C#",
			"Cada operación, registro y aviso, con ejemplos en curl, Python, TypeScript, Java, Go, "
			"PHP y C# (en inglés)"));
	entry(&page, "/docs/errors", TEXT(language, "Error codes", "Códigos de error"),
	      TEXT(language, "What each code means", "Qué significa cada código"));
	entry(&page, "/docs/reference#notices", TEXT(language, "Notices", "Avisos"),
	      TEXT(language, "What the service sends to your webhooks, and how it is signed",
	           "Qué envía el servicio a sus webhooks, y cómo se firma (en inglés)"));
	entry(&page, "/v1/openapi.yaml", "openapi.yaml",
	      TEXT(language, "The interface for programs: OpenAPI 3.1, to make clients from",
	           "La interfaz para programas: OpenAPI 3.1, para generar clientes"));
	entry(&page, "/v1/webhooks.yaml", "webhooks.yaml",
	      TEXT(language, "The notices for programs", "Los avisos para programas"));
	entry(&page, "/verify", TEXT(language, "Verification", "Verificación"),
	      TEXT(language, "Where anyone checks a report or an archive",
	           "Donde cualquiera comprueba un informe o un archivo"));
	buf_add_text(&page, "</dl>\n");
	html_end(&page);
	html_answer(exchange, 200, &page);
	return true;
}

/* ---- /v1 ---- */

static void address(struct json_writer *writer, const struct exchange *exchange, const char *name,
                    const char *path)
{
	char text[512];
	snprintf(text, sizeof text, "%s%s", exchange->service->settings->service_public_url, path);
	json_text(writer, name, text);
}

/* A browser says that it wants HTML; what says nothing is a program. */
static bool index_of_interface(struct exchange *exchange)
{
	if (header_prefers_html(exchange->head.accept))
		return docs(exchange);
	struct json_writer writer = {.out = &exchange->out};
	json_begin_object(&writer, NULL);
	json_text(&writer, "name", exchange->service->settings->service_name);
	address(&writer, exchange, "documentation_url", "/docs");
	address(&writer, exchange, "reference_url", "/docs/reference");
	address(&writer, exchange, "openapi_url", "/v1/openapi.yaml");
	address(&writer, exchange, "webhooks_url", "/v1/webhooks.yaml");
	address(&writer, exchange, "errors_url", "/docs/errors");
	address(&writer, exchange, "verification_url", "/verify");
	json_end_object(&writer);
	answer_out(exchange, 200);
	exchange->answer.vary = "Accept, Accept-Language";
	return true;
}

const struct operation operation_home = {
	.open = true, .page = true, .listed = true, .finish = home};
const struct operation operation_docs = {
	.open = true, .page = true, .listed = true, .finish = docs};
const struct operation operation_index = {.open = true, .finish = index_of_interface};
