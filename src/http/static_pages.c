/* Static documents that need neither a key nor the store: the API descriptions, the reference, the
 * page of error codes, and assets of pages. */

#include "http/embedded.h"
#include "http/html.h"
#include "http/http_internal.h"
#include "http/representation.h"

/* Cached and revalidated by entity tag, so that after an upgrade no page uses old assets. */
#define STYLE_CACHE "no-cache"
#define FACE_CACHE "public, max-age=604800"

static bool description(struct exchange *exchange, struct slice document)
{
	answer_with(exchange, 200, "application/yaml; charset=utf-8", document);
	answer_header(exchange, "X-Content-Type-Options", "nosniff");
	return true;
}

static bool openapi(struct exchange *exchange)
{
	return description(exchange, embedded_openapi);
}

static bool webhooks(struct exchange *exchange)
{
	return description(exchange, embedded_webhooks);
}

static const struct {
	const char *name;
	const char *type;
	const struct slice *content;
	const struct sha256 *digest;
	const char *cache;
} assets[] = {
#define ASSET(name, type, content, cache)                                                          \
	{                                                                                              \
		name, type, &embedded_##content, &embedded_##content##_digest, cache                       \
	}
	ASSET("verify.css", "text/css; charset=utf-8", style, STYLE_CACHE),
	ASSET("verify.js", "text/javascript; charset=utf-8", script, STYLE_CACHE),
	ASSET("reference.css", "text/css; charset=utf-8", reference_style, STYLE_CACHE),
	ASSET("console.css", "text/css; charset=utf-8", console_style, STYLE_CACHE),
	ASSET("console.js", "text/javascript; charset=utf-8", console_script, STYLE_CACHE),
	ASSET("passkeys.js", "text/javascript; charset=utf-8", passkeys_script, STYLE_CACHE),
	ASSET("lookup.js", "text/javascript; charset=utf-8", lookup_script, STYLE_CACHE),
	ASSET("proof.js", "text/javascript; charset=utf-8", proof_script, STYLE_CACHE),
	ASSET("mark.svg", "image/svg+xml", mark, STYLE_CACHE),
	ASSET("noto-sans.woff", "font/woff", sans, FACE_CACHE),
	ASSET("noto-sans-bold.woff", "font/woff", sans_bold, FACE_CACHE),
	ASSET("noto-serif.woff", "font/woff", serif, FACE_CACHE),
	ASSET("noto-serif-bold.woff", "font/woff", serif_bold, FACE_CACHE),
	ASSET("dejavu-sans-mono.woff", "font/woff", mono, FACE_CACHE),
#undef ASSET
};

static bool asset(struct exchange *exchange)
{
	for (size_t i = 0; i < sizeof assets / sizeof *assets; i++) {
		if (!slice_is(exchange->arguments[0], assets[i].name))
			continue;
		const struct representation representation = {.type = assets[i].type,
		                                              .digest = *assets[i].digest,
		                                              .body = *assets[i].content,
		                                              .size = assets[i].content->size};
		int result = answer_representation(exchange, &representation, &exchange->error);
		if (result)
			answer_error(exchange, result);
		else if (exchange->answer.status < 400)
			exchange->answer.cache = assets[i].cache;
		return true;
	}
	answer_error(exchange, error_set(&exchange->error, ERR_NOT_FOUND, MSG_HTTP_PATH, NULL));
	return true;
}

/* Adds the headers of a page without scripts and forms. */
static void fixed_page_headers(struct exchange *exchange)
{
	answer_header(exchange, "Content-Security-Policy",
	              "default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self'; "
	              "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
	answer_header(exchange, "X-Content-Type-Options", "nosniff");
	answer_header(exchange, "Referrer-Policy", "no-referrer");
}

static bool error_docs(struct exchange *exchange)
{
	const struct http_server *server = exchange->server;
	answer_with(exchange, 200, HTML_TYPE, slice_make(server->error_docs, server->error_docs_size));
	fixed_page_headers(exchange);
	return true;
}

static bool reference(struct exchange *exchange)
{
	answer_with(exchange, 200, HTML_TYPE, embedded_reference);
	fixed_page_headers(exchange);
	return true;
}

const struct operation operation_openapi = {.open = true, .finish = openapi};
const struct operation operation_webhooks = {.open = true, .finish = webhooks};
const struct operation operation_verify_asset = {.open = true, .finish = asset};
const struct operation operation_error_docs = {.open = true, .page = true, .finish = error_docs};
const struct operation operation_reference = {.open = true, .page = true, .finish = reference};
