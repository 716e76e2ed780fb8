/* Well-known resources: security.txt, robots.txt, the icon, and `OPTIONS *`. */
#include "http/embedded.h"
#include "http/http_internal.h"
#include "service/settings.h"

#define TEXT_TYPE "text/plain; charset=utf-8"
#define CONTACT_DAYS 90

static void answer_file(struct exchange *exchange, const char *type, struct slice content)
{
	answer_with(exchange, 200, type, content);
	answer_header(exchange, "X-Content-Type-Options", "nosniff");
}

/* Answers with security.txt (RFC 9116). `Expires` is computed, so it needs no maintenance: an
 * unmaintained service does not respond. */
static bool security(struct exchange *exchange)
{
	const struct settings *settings = exchange->service->settings;
	const char *contact = settings->service_security_contact;
	struct buf *out = &exchange->out;
	char expires[TIME_TEXT_SIZE];
	if (!*contact) {
		answer_error(exchange, error_set(&exchange->error, ERR_NOT_FOUND, MSG_HTTP_PATH, NULL));
		return true;
	}
	while (*contact) {
		size_t size = strcspn(contact, ",");
		buf_printf(out, "Contact: %.*s\n", (int)size, contact);
		contact += size + (contact[size] == ',');
	}
	time_format(time_next_day(clock_now_us()) + CONTACT_DAYS * US_PER_DAY, expires);
	buf_printf(out,
	           "Expires: %.19sZ\nPreferred-Languages: en, es\n"
	           "Canonical: %s/.well-known/security.txt\n",
	           expires, settings->service_public_url);
	if (buf_check(out))
		answer_error(exchange, ERR_NO_MEMORY);
	else
		answer_file(exchange, TEXT_TYPE, buf_slice(out));
	return true;
}

/* Answers with robots.txt. It excludes what needs a key or a link. Pages of single certifications
 * have a noindex tag instead, which crawlers see only if they may fetch the page. */
static bool robots(struct exchange *exchange)
{
	answer_file(exchange, TEXT_TYPE,
	            slice_of("User-agent: *\nDisallow: /v1\nDisallow: /payments/\n"));
	return true;
}

static bool icon(struct exchange *exchange)
{
	answer_file(exchange, "image/x-icon", embedded_icon);
	return true;
}

static bool server_options(struct exchange *exchange)
{
	answer_with(exchange, 204, NULL, (struct slice){"", 0});
	answer_header(exchange, "Allow", "GET, HEAD, POST, OPTIONS");
	return true;
}

const struct operation operation_server_options = {.open = true, .finish = server_options};
const struct operation operation_security = {.open = true, .finish = security};
const struct operation operation_robots = {.open = true, .finish = robots};
const struct operation operation_icon = {.open = true, .finish = icon};
