#include "net/mail_compose.h"

#include <assert.h>
#include <stdio.h>

#include "base/thread.h"
#include "net/guarded.h"
#include "net/url.h"

#define CONNECT_TIMEOUT_MS 15000L
#define URL_MAX 300

/* A message being sent. */
struct mail_transfer {
	const struct mail_server *server;
	struct buf text;
	size_t sent;
	bool recipient_said; /* RCPT was sent */
	char url[2 * URL_MAX];
	struct curl_slist *recipients;
	struct guarded_sockets sockets;
	char reason[CURL_ERROR_SIZE];
};

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

int mail_url_check(const char *text)
{
	struct slice all = slice_of(or_empty(text));
	struct url url;
	bool usable = all.size <= URL_MAX && url_read(all, &url) &&
	              (url_has_scheme(&url, "smtp") || url_has_scheme(&url, "smtps")) &&
	              (!url.path.size || slice_is(url.path, "/"));
	return usable ? OK : ERR_VALIDATION;
}

/* ---- callbacks of libcurl ---- */

static size_t give_text(char *data, size_t one, size_t size, void *context)
{
	struct mail_transfer *transfer = context;
	assert(transfer->sent <= transfer->text.size);
	size_t rest = transfer->text.size - transfer->sent;
	size_t part = one * size < rest ? one * size : rest;
	memcpy(data, transfer->text.data + transfer->sent, part);
	transfer->sent += part;
	return part;
}

static size_t pass_over(char *data, size_t one, size_t size, void *context)
{
	(void)data, (void)context;
	return one * size;
}

/* libcurl has no other way to determine which command a response belongs to. */
static int watch(CURL *easy, curl_infotype type, char *data, size_t size, void *context)
{
	struct mail_transfer *transfer = context;
	(void)easy;
	if (type == CURLINFO_HEADER_OUT && size > 5 && memcmp(data, "RCPT ", 5) == 0)
		transfer->recipient_said = true;
	return 0;
}

/* ---- sending ---- */

static CURLcode set_options(struct mail_transfer *transfer, CURL *easy)
{
	const struct mail_server *server = transfer->server;
	long timeout_ms = server->timeout_ms > 0 ? server->timeout_ms : MAIL_TIMEOUT_MS;
	CURLcode code = guarded_set_options(easy, &transfer->sockets);

	code |= curl_easy_setopt(easy, CURLOPT_URL, transfer->url);
	code |= curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
	code |= curl_easy_setopt(easy, CURLOPT_USE_SSL,
	                         (long)(server->require_tls ? CURLUSESSL_ALL : CURLUSESSL_TRY));
	code |= curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms);
	code |= curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	code |= curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, pass_over);
	code |= curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->reason);
	code |= curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L); /* for `watch`, which prints nothing */
	code |= curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, watch);
	code |= curl_easy_setopt(easy, CURLOPT_DEBUGDATA, transfer);
	if (*or_empty(server->user)) {
		code |= curl_easy_setopt(easy, CURLOPT_USERNAME, server->user);
		code |= curl_easy_setopt(easy, CURLOPT_PASSWORD, or_empty(server->password));
	}
	if (*or_empty(server->roots))
		code |= curl_easy_setopt(easy, CURLOPT_CAINFO, server->roots);
	return code;
}

/* Without a message only NOOP follows the login. */
static CURLcode set_message(struct mail_transfer *transfer, CURL *easy, const char *from)
{
	if (!transfer->recipients) {
		CURLcode code = curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "NOOP");
		return code | curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
	}
	CURLcode code = curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
	code |= curl_easy_setopt(easy, CURLOPT_READFUNCTION, give_text);
	code |= curl_easy_setopt(easy, CURLOPT_READDATA, transfer);
	code |= curl_easy_setopt(easy, CURLOPT_MAIL_FROM, from);
	code |= curl_easy_setopt(easy, CURLOPT_MAIL_RCPT, transfer->recipients);
	return code;
}

/* A 5xx response to the recipient or the message data concerns this message. A 5xx response to the
 * greeting, to encryption, to the login or to the sender, which all messages share, concerns the
 * settings, which an operator can correct. */
static bool refused_for_good(const struct mail_transfer *transfer, long status)
{
	static const long about_login[] = {530, 534, 535, 538};
	for (size_t i = 0; i < sizeof about_login / sizeof *about_login; i++)
		if (status == about_login[i])
			return false;
	return status >= 500 && status <= 599 && transfer->recipient_said;
}

static int explain(const struct mail_transfer *transfer, CURL *easy, CURLcode code,
                   struct error *error)
{
	const char *reason = transfer->reason[0] ? transfer->reason : curl_easy_strerror(code);
	long status = 0;
	if (code == CURLE_OUT_OF_MEMORY)
		return ERR_NO_MEMORY;
	int refused = guarded_check(&transfer->sockets, ERR_NETWORK, error);
	if (refused)
		return refused;
	if (curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK &&
	    refused_for_good(transfer, status))
		return error_cause(error, ERR_REFUSED, "%s (status %ld)", reason, status);
	error_cause(error, ERR_NETWORK, "%s (status %ld)", reason, status);
	error_blame(error, guarded_fault(easy, code, reason));
	return ERR_NETWORK;
}

/* A NULL `to` sends no message. */
static int perform(struct mail_transfer *transfer, const char *from, const char *to,
                   struct error *error)
{
	assert(!to || (mail_address_usable(from) && mail_address_usable(to))); /* by mail_compose */
	char sender[MAIL_ADDRESS_MAX + 3];
	char recipient[MAIL_ADDRESS_MAX + 3];
	const char *domain = strchr(from, '@');
	snprintf(sender, sizeof sender, "<%s>", from);
	snprintf(recipient, sizeof recipient, "<%s>", or_empty(to));
	size_t size = strlen(transfer->server->url);
	while (size && transfer->server->url[size - 1] == '/')
		size--;
	/* libcurl sends the URL's path as the name in EHLO. */
	snprintf(transfer->url, sizeof transfer->url, "%.*s/%s", (int)size, transfer->server->url,
	         domain ? domain + 1 : "");
	CURL *easy = NULL;
	int result = guarded_handle(&easy, error);
	if (result)
		return result;
	if (to)
		transfer->recipients = curl_slist_append(NULL, recipient);
	if (!to != !transfer->recipients)
		result = ERR_NO_MEMORY;
	if (!result && (set_options(transfer, easy) != CURLE_OK ||
	                set_message(transfer, easy, sender) != CURLE_OK))
		result = error_cause(error, ERR_NO_MEMORY, "libcurl does not support an option");
	if (!result) {
		thread_assert_may_block();
		CURLcode code = curl_easy_perform(easy);
		if (code != CURLE_OK)
			result = explain(transfer, easy, code, error);
	}
	curl_slist_free_all(transfer->recipients);
	curl_easy_cleanup(easy);
	return result;
}

int mail_check_server(const struct mail_server *server, const char *from, struct error *error)
{
	struct mail_transfer transfer = {.server = server, .sockets.guard = server->guard};
	int result = mail_url_check(server->url);
	if (result)
		return error_cause(error, result, "mail.url must be smtp://HOST or smtps://HOST");
	return perform(&transfer, from, NULL, error);
}

int mail_send(const struct mail_server *server, const struct mail_message *message,
              struct error *error)
{
	struct mail_transfer transfer = {.server = server, .sockets.guard = server->guard};
	int result = mail_url_check(server->url);
	if (result)
		return error_cause(error, result, "mail.url must be smtp://HOST or smtps://HOST");
	buf_init(&transfer.text, MAIL_MESSAGE_MAX);
	result = mail_compose(message, &transfer.text, error);
	if (!result)
		result = perform(&transfer, message->from, message->to, error);
	buf_free(&transfer.text);
	return result;
}
