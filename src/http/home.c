/* The overview pages /, /docs and /v1. They use only settings and are available without the
 * store. */
#include <stdio.h>

#include "http/header.h"
#include "http/html.h"
#include "http/http_internal.h"
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
		TEXT(language,
	         "An independent third party that records declarations. Register a JSON document, a "
	         "file, or only its digest here, and you can prove later what was declared, and when.",
	         "Un tercero independiente que deja constancia de declaraciones. Registre aquí un "
	         "documento JSON, un fichero o solo su resumen, y más adelante podrá probar qué se "
	         "declaró y cuándo."));
	paragraph(out, TEXT(language, "Its certifications attest:", "Sus certificaciones acreditan:"));
	buf_printf(
		out, "<ul>\n<li>%s</li>\n<li>%s</li>\n<li>%s</li>\n</ul>\n",
		TEXT(language,
	         "<strong>That each declaration was received,</strong> and stored before it was "
	         "acknowledged.",
	         "<strong>Que se recibió cada declaración,</strong> y que se guardó antes de "
	         "confirmarla."),
		TEXT(language,
	         "<strong>The time of receipt,</strong> proven by timestamps of external authorities.",
	         "<strong>La hora de recepción,</strong> probada por sellos de tiempo de autoridades "
	         "externas."),
		TEXT(language, "<strong>That it has not been altered since.</strong>",
	         "<strong>Que no se ha alterado desde entonces.</strong>"));
	paragraph(out, TEXT(language, "They never attest that the declarations are true.",
	                    "Nunca acreditan que lo declarado sea cierto."));
}

static void how_to_verify(struct buf *out, enum language language)
{
	heading(out,
	        TEXT(language, "You have a report or an archive", "Tiene un informe o un archivo"));
	paragraph(
		out,
		TEXT(language,
	         "Anyone can verify it without an account, by the verification code printed on it or "
	         "by the file itself. <a href=\"/verify\">Verify a certification</a>.",
	         "Cualquiera puede verificarlo sin tener cuenta, por el código de verificación que "
	         "figura en él o por el propio fichero. <a href=\"/verify\">Verificar una "
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
	heading(out,
	        TEXT(language, "You want to register declarations", "Quiere registrar declaraciones"));
	buf_printf(
		out, "<ol>\n<li><p>%s</p></li>\n<li><p>%s</p>\n",
		TEXT(language,
	         "Ask the operator of this service for a channel. You get two keys. Use the test key "
	         "to try all functions free of charge and without probative value.",
	         "Solicite un canal al operador de este servicio. Recibirá dos claves. Use la clave "
	         "de prueba para probar todas las funciones sin coste y sin valor probatorio."),
		TEXT(language, "Register an event. The response is the receipt.",
	         "Registre un evento. La respuesta es el acuse de recibo."));
	command(exchange, out,
	        "--json '{\"client_ref\": \"first\", \"payload\": {\"hello\": \"world\"}}'");
	buf_printf(out, "/v1/events</code></pre></li>\n<li><p>%s</p>\n",
	           TEXT(language,
	                "Request a certification of the event, and poll it until it is issued.",
	                "Solicite una certificación del evento y consúltela hasta que esté emitida."));
	command(exchange, out, "--json '{\"seq_from\": 1, \"seq_to\": 1}'");
	buf_printf(
		out, "/v1/certifications</code></pre></li>\n<li><p>%s</p></li>\n</ol>\n",
		TEXT(language,
	         "Download the reports and the evidence archive, and verify them here or on your own "
	         "computer.",
	         "Descargue los informes y el archivo de evidencias, y verifíquelos aquí o en su "
	         "propio ordenador."));
	paragraph(
		out,
		TEXT(language,
	         "The <a href=\"/docs/reference\">reference</a> describes all operations with "
	         "examples in seven languages. See also the <a href=\"/docs\">documentation</a>.",
	         "La <a href=\"/docs/reference\" hreflang=\"en\">referencia</a> (en inglés) describe "
	         "todas las operaciones con ejemplos en siete lenguajes. Consulte también la <a "
	         "href=\"/docs\">documentación</a>."));
	buf_add_text(out, "</section>\n");
}

static void how_to_govern(struct buf *out, enum language language)
{
	heading(out, TEXT(language, "You have an account here", "Tiene una cuenta aquí"));
	paragraph(out, TEXT(language,
	                    "Manage its users, balance and audit log in the <a "
	                    "href=\"/console/sign-in\">console</a>.",
	                    "Gestione sus usuarios, su saldo y su registro de auditoría en la <a "
	                    "href=\"/console/sign-in\">consola</a>."));
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
	buf_printf(&page, "<p>%s <code>",
	           TEXT(language, "The API is available at", "La API está disponible en"));
	html_escape(&page, slice_of(exchange->service->settings->service_public_url));
	buf_add_text(&page, "/v1</code>.</p>\n<dl>\n");
	entry(&page, "/docs/reference", TEXT(language, "Reference", "Referencia"),
	      TEXT(language,
	           "All operations, records and notices, with examples in curl, Python, TypeScript, "
	           "Java, Go, PHP and C#",
	           "Todas las operaciones, registros y avisos, con ejemplos en curl, Python, "
	           "TypeScript, Java, Go, PHP y C# (en inglés)"));
	entry(&page, "/docs/errors", TEXT(language, "Error codes", "Códigos de error"),
	      TEXT(language, "The meaning of each code", "El significado de cada código"));
	entry(&page, "/docs/reference#notices", TEXT(language, "Notices", "Avisos"),
	      TEXT(language, "The requests to your webhook endpoints and their signature",
	           "Las solicitudes a sus destinos de webhooks y su firma (en inglés)"));
	entry(&page, "/v1/openapi.yaml", "openapi.yaml",
	      TEXT(language,
	           "Machine-readable description of the API (OpenAPI 3.1), for generating clients",
	           "Descripción de la API legible por programas (OpenAPI 3.1), para generar clientes"));
	entry(&page, "/v1/webhooks.yaml", "webhooks.yaml",
	      TEXT(language, "Machine-readable description of the notices",
	           "Descripción de los avisos legible por programas"));
	entry(&page, "/verify", TEXT(language, "Verification", "Verificación"),
	      TEXT(language, "Public verification of reports and archives",
	           "Verificación pública de informes y archivos"));
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

/* Browsers ask for HTML; clients without a preference get JSON. */
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
