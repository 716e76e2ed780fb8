/* The public page for verifying a code or a file, /verify and /verify/{code}. HTML for browsers,
 * JSON for programs. Only the computation of a digest needs the script. */
#include "http/guard.h"
#include "http/header.h"
#include "http/html.h"
#include "http/http_internal.h"
#include "issue/verification.h"
#include "issue/verification_code.h"

static void found_section(struct buf *out, enum language language, const struct json *found,
                          const char *digest)
{
	buf_printf(out, "<section class=\"found\">\n<h2>%s</h2>\n",
	           digest ? TEXT(language, "This file was issued by this service and is unaltered",
	                         "Este fichero lo emitió este servicio y no está alterado")
	                  : TEXT(language, "This certification was issued by this service",
	                         "Esta certificación la emitió este servicio"));
	html_issued(out, language, found, digest);
	if (!digest)
		buf_printf(
			out, "<p>%s</p>\n",
			TEXT(language,
		         "A file is authentic if its SHA-256 is in this table. Compare it with the "
		         "SHA-256 of your file.",
		         "Un fichero es auténtico si su SHA-256 está en esta tabla. Compárelo con el de "
		         "su fichero."));
	buf_add_text(out, "</section>\n");
}

static void missing_section(struct buf *out, enum language language, bool by_digest)
{
	buf_printf(
		out, "<section class=\"missing\">\n<h2>%s</h2>\n<p>%s</p>\n</section>\n",
		by_digest ? TEXT(language, "This service did not issue this file",
	                     "Este servicio no emitió este fichero")
				  : TEXT(language, "No certification has this code",
	                     "Ninguna certificación tiene este código"),
		by_digest
			? TEXT(language, "Or the file was altered after it was issued.",
	               "O el fichero se alteró después de emitirse.")
			: TEXT(language,
	               "Compare the letters and digits with those in the report. Case, spaces and "
	               "hyphens are ignored.",
	               "Compare las letras y cifras con las del informe. Se ignoran mayúsculas, "
	               "espacios y guiones."));
}

/* ---- the answer ---- */

struct lookup {
	bool wanted;
	bool by_code, by_digest;
	struct slice code;
	struct sha256 digest;
	char digest_text[2 * SHA256_SIZE + 1];
};

static void answer_html(struct exchange *exchange, const struct lookup *lookup,
                        const struct json *found)
{
	enum language language = exchange->language;
	BUF_AUTO struct buf page;
	buf_init(&page, OUT_MAX);
	html_begin(exchange, TEXT(language, "Verify a certification", "Verificar una certificación"),
	           &page);
	if (found)
		found_section(&page, language, found, lookup->by_digest ? lookup->digest_text : NULL);
	else if (lookup->wanted)
		missing_section(&page, language, lookup->by_digest);
	html_forms(exchange, &page);
	html_end(&page);
	html_answer(exchange, lookup->wanted && !found ? 404 : 200, &page);
}

/* Looks up a code. Text that cannot be a code does not count as a guess. */
static int find_code(struct exchange *exchange, struct slice code, struct error *error)
{
	bool is_guess = verification_code_read(code).count > 0;
	int result = is_guess ? guard_check_code(exchange, error) : OK;
	if (!result)
		result = verification_lookup(exchange->service, code, NULL, &exchange->out, error);
	if (result != ERR_NOT_FOUND || !is_guess)
		return result;
	int counted = guard_count_wrong_code(exchange, error);
	return counted ? counted : result;
}

static int find(struct exchange *exchange, const struct lookup *lookup, struct error *error)
{
	if (lookup->by_digest)
		return verification_lookup(exchange->service, lookup->code, &lookup->digest, &exchange->out,
		                           error);
	return find_code(exchange, lookup->code, error);
}

/* Answers with the result of the lookup. Blocks on the store only if something is looked up. */
static int look_up(struct exchange *exchange, const struct lookup *lookup, struct error *error)
{
	bool as_json = header_prefers_json(exchange->head.accept);
	struct json *found = NULL;
	int result = 0;
	if (lookup->wanted)
		result = find(exchange, lookup, error);
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

/* Reads the parameters as free text, because forms send them too. */
static int read_parameters(struct exchange *exchange, struct lookup *lookup, struct slice *sha256,
                           struct error *error)
{
	int by_code = query_text(&exchange->parameters, "code", &exchange->arena, &lookup->code, error);
	int by_digest =
		by_code < 0 ? 0
					: query_text(&exchange->parameters, "sha256", &exchange->arena, sha256, error);
	if (by_code < 0 || by_digest < 0)
		return by_code < 0 ? by_code : by_digest;
	lookup->by_code = by_code > 0;
	lookup->by_digest = by_digest > 0;
	lookup->wanted = by_code || by_digest;
	return OK;
}

static int parse(struct exchange *exchange, struct lookup *ret_lookup, struct error *error)
{
	struct slice sha256;
	struct lookup lookup = {0};
	int result = read_parameters(exchange, &lookup, &sha256, error);
	if (result)
		return result;
	bool as_json = header_prefers_json(exchange->head.accept);
	if ((lookup.by_code && lookup.by_digest) || (!lookup.wanted && as_json) ||
	    (lookup.by_digest && !verification_digest_read(sha256, &lookup.digest)))
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

/* Answers the plain page without the store, so that it is available during an outage. */
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
	struct lookup lookup = {.wanted = true, .code = exchange->arguments[0]};
	return look_up(exchange, &lookup, error);
}

const struct operation operation_verify = {
	.open = true,
	.page = true,
	.parameters = (const char *const[]){"code", "sha256", NULL},
	.finish = verify_at_once,
	.work = verify,
};
const struct operation operation_verify_code = {.open = true, .page = true, .work = verify_code};
