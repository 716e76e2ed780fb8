/* The page of error codes, which doc_url of an Error record points at: cause, remedy and an example
 * of each code in both languages. */
#include "base/json.h"
#include "http/html.h"
#include "http/http_internal.h"

#define PAGE_MAX ((size_t)128 * 1024)

struct error_doc {
	int error;
	const char *cause[2], *remedy[2]; /* by enum language */
	const char *path, *arguments;     /* of the example */
	const char *scenario;             /* NULL: none */
};

static const struct error_doc docs[] = {
#define ERROR_DOC(name, cause, cause_es, remedy, remedy_es, path, arguments, scenario)             \
	{ERR_##name, {cause, cause_es}, {remedy, remedy_es}, path, arguments, scenario},
#include "http/error_docs.def"
#undef ERROR_DOC
};

static void add_escaped(struct buf *page, const char *text)
{
	html_escape(page, slice_of(text));
}

static void add_request(struct buf *page, const struct error_doc *doc, const char *header)
{
	static const char key[] = "-H \"Authorization: Bearer $CONSTANCIA_TEST_KEY\"";
	bool has_key = strstr(doc->arguments, "Authorization") != NULL;
	buf_printf(page, "<pre tabindex=\"0\"><code>curl -sS \"$CONSTANCIA_URL%s\" ", doc->path);
	add_escaped(page, has_key ? "" : key);
	if (*doc->arguments)
		buf_add_text(page, has_key ? "" : " ");
	add_escaped(page, doc->arguments);
	if (doc->scenario)
		buf_printf(page, " \\\n  -H '%s: %s'", header, doc->scenario);
}

/* Returns the message of the example's answer. */
static const char *example_message(const struct error_doc *doc, enum language language,
                                   struct error *error)
{
	if (doc->error != ERR_VALIDATION)
		return error_general_message(doc->error, language);
	(void)error_set(error, ERR_VALIDATION, MSG_BASE_JSON_INTEGER, "42 (payload.total)", NULL);
	return error_message(error, language);
}

static void add_answer(struct buf *page, const struct error_doc *doc, enum language language)
{
	BUF_AUTO struct buf record;
	struct error error = {0};
	buf_init(&record, 4096);
	struct json_writer writer = {.out = &record};
	json_begin_object(&writer, NULL);
	json_text(&writer, "code", error_code_text(doc->error));
	json_text(&writer, "message", example_message(doc, language, &error));
	buf_printf(page, "\n\n%d ", error_http_status(doc->error));
	html_escape(page, buf_slice(&record));
	page->failed |= record.failed; /* no page is better than a wrong one */
	buf_add_text(page, ",…}</code></pre>\n");
}

static void add_part(struct buf *page, const struct error_doc *doc, enum language language,
                     const char *header)
{
	buf_printf(page, "<p>%s</p>\n<dl>\n<dt>%s</dt>\n<dd>",
	           error_general_message(doc->error, language), TEXT(language, "Cause", "Causa"));
	add_escaped(page, doc->cause[language]);
	buf_printf(page, "</dd>\n<dt>%s</dt>\n<dd>", TEXT(language, "What to do", "Qué hacer"));
	add_escaped(page, doc->remedy[language]);
	buf_printf(page, "</dd>\n</dl>\n<p>%s</p>\n", TEXT(language, "Example:", "Ejemplo:"));
	add_request(page, doc, header);
	add_answer(page, doc, language);
}

static void add_section(struct buf *page, const struct error_doc *doc, const char *header)
{
	const char *code = error_code_text(doc->error);
	buf_printf(page, "<section id=\"%s\">\n<h2><code>%s</code> (HTTP %d)</h2>\n", code, code,
	           error_http_status(doc->error));
	add_part(page, doc, LANGUAGE_ENGLISH, header);
	buf_add_text(page, "<div lang=\"es\">\n");
	add_part(page, doc, LANGUAGE_SPANISH, header);
	buf_add_text(page, "</div>\n</section>\n");
}

int error_docs_make(struct http_server *server)
{
	BUF_AUTO struct buf page;
	buf_init(&page, PAGE_MAX);
	buf_add_text(&page, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	                    "<meta name=\"viewport\" content=\"width=device-width\">\n" HTML_ICONS
	                    "<title>Error codes · Códigos de error</title>\n"
	                    "<link rel=\"stylesheet\" href=\"/assets/verify.css\">\n</head>\n<body>\n"
	                    "<header>\n<p><a href=\"/docs\">Documentation · <span "
	                    "lang=\"es\">Documentación</span></a></p>\n</header>\n<main>\n"
	                    "<h1>Error codes · <span lang=\"es\">Códigos de error</span></h1>\n<ul>\n");
	for (size_t i = 0; i < sizeof docs / sizeof *docs; i++) {
		const char *code = error_code_text(docs[i].error);
		buf_printf(&page, "<li><a href=\"#%s\"><code>%s</code></a></li>\n", code, code);
	}
	buf_add_text(&page, "</ul>\n");
	for (size_t i = 0; i < sizeof docs / sizeof *docs; i++)
		add_section(&page, &docs[i], server->scenario_header);
	buf_add_text(&page, "</main>\n</body>\n</html>\n");
	int result = buf_check(&page);
	server->error_docs_size = page.size;
	server->error_docs = buf_take(&page);
	return result;
}
