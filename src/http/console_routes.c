/* The paths /console and below: converts between HTTP and console/console.h. Secrets of links are
 * in queries, which are never logged. */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "console/console.h"
#include "http/header.h"
#include "http/http_internal.h"
#include "http/representation.h"
#include "service/interface.h"

/* ---- the request ---- */

static bool keep_header(struct exchange *exchange, const char *name, struct slice *ret)
{
	const char *value = MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
	*ret = slice_of(value ? arena_text(&exchange->arena, value) : "");
	return ret->data;
}

static bool keep_cookie(struct exchange *exchange, struct slice *ret)
{
	struct slice cookie = exchange->head.cookie;
	const char *copy = cookie.size ? arena_copy(&exchange->arena, cookie.data, cookie.size) : "";
	*ret = slice_make(copy, cookie.size);
	return copy;
}

static const char *address_text(struct exchange *exchange)
{
	struct sockaddr_storage address;
	char text[INET6_ADDRSTRLEN] = "";
	guard_client_address(exchange, &address);
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address;
	if (address.ss_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)&address)->sin_addr, text, sizeof text);
	else if (address.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
		inet_ntop(AF_INET, six->sin6_addr.s6_addr + 12, text, sizeof text);
	else if (address.ss_family == AF_INET6)
		inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text);
	return arena_text(&exchange->arena, text);
}

/* On a worker. */
static int64_t count_form(void *context, const char *user_id)
{
	return guard_user_wait(context, user_id);
}

/* Copies the request. On the polling thread, while the headers are available. */
static int begin(struct exchange *exchange, struct error *error)
{
	struct console_request *request = arena_alloc(&exchange->arena, sizeof *request);
	struct slice agent;
	exchange->body_limit = CONSOLE_BODY_MAX;
	exchange->console = request;
	if (!request || !keep_cookie(exchange, &request->cookie) ||
	    !keep_header(exchange, "Content-Type", &request->content_type) ||
	    !keep_header(exchange, "Origin", &request->origin) ||
	    !keep_header(exchange, "Sec-Fetch-Site", &request->fetch_site) ||
	    !keep_header(exchange, "User-Agent", &agent) ||
	    !(request->address = address_text(exchange)))
		return error_set(error, ERR_NO_MEMORY, MSG_NONE, NULL);
	request->agent = agent.data;
	request->post = strcmp(exchange->method, "POST") == 0;
	request->language = exchange->language;
	request->query = exchange->query;
	request->path = slice_make(exchange->path.data + sizeof CONSOLE_PATH - 1,
	                           exchange->path.size - (sizeof CONSOLE_PATH - 1));
	request->wait_seconds = exchange->rate.allowed ? 0 : exchange->rate.retry_after_seconds;
	request->count_form = exchange->operation->reports_rate ? count_form : NULL;
	request->context = exchange;
	return body_check_encoding(exchange, error);
}

/* ---- the answer ---- */

void console_headers(struct exchange *exchange, const struct console_answer *answer)
{
	exchange->answer.vary = "Accept-Language, Cookie";
	exchange->answer.language = answer->language == LANGUAGE_SPANISH ? "es" : "en";
	answer_header(exchange, "Location", answer->location);
	answer_header(exchange, "Content-Disposition", answer->disposition);
	answer_header(exchange, "Allow", answer->allow);
	answer_header(exchange, "Content-Security-Policy", answer->policy);
	if (!answer->file)
		answer_header(exchange, "X-Content-Type-Options", "nosniff");
	answer_header(exchange, "Referrer-Policy", answer->referrer);
	answer_header(exchange, "Cross-Origin-Opener-Policy", "same-origin");
	for (size_t i = 0; i < CONSOLE_COOKIES_MAX && answer->cookies[i]; i++)
		answer_header(exchange, "Set-Cookie", answer->cookies[i]);
}

static int put_file(struct exchange *exchange, const struct console_file *file, struct error *error)
{
	struct representation representation = {
		.type = file->type,
		.digest = file->digest,
		.file_name = file->name,
		.object = file->object,
		.body = buf_slice(&exchange->out),
		.size = file->size,
	};
	exchange->content_owner = file->account;
	return answer_representation(exchange, &representation, error);
}

static int work(struct exchange *exchange, struct error *error)
{
	struct console_request request = *exchange->console;
	struct admin *admin = exchange->server->admin;
	struct console_answer answer;
	if (!admin)
		return error_set(error, ERR_NOT_FOUND, MSG_HTTP_PATH, NULL);
	char incident_id[INCIDENT_ID_SIZE];
	incident_id_make(incident_id);
	request.incident_id = incident_id;
	request.body = buf_slice(&exchange->body);
	int result = console_answer(admin, &request, &exchange->arena, &exchange->out, &answer, error);
	if (result)
		return result;
	if (answer.file)
		result = put_file(exchange, answer.file, error);
	else
		answer_with(exchange, answer.status, answer.type, buf_slice(&exchange->out));
	if (result)
		return result;
	console_headers(exchange, &answer);
	exchange->error_code = answer.code;
	exchange->answer.retry_after_seconds = answer.code ? error_retry_after(answer.code, error) : 0;
	if (answer.code && answer.status >= 500)
		answer_incident(exchange, answer.code, incident_id);
	return 0;
}

/* ---- early and late refusals ---- */

bool console_has_path(const struct exchange *exchange)
{
	static const char own[] = CONSOLE_PATH;
	size_t size = sizeof own - 1;
	struct slice path = exchange->route ? slice_of(exchange->route->pattern) : exchange->path;
	return path.size >= size && memcmp(path.data, own, size) == 0 &&
	       (path.size == size || path.data[size] == '/');
}

bool console_answer_error(struct exchange *exchange, int code, const char *incident_id,
                          struct console_answer *ret)
{
	struct console_request request = {.address = "", .agent = "", .language = exchange->language};
	struct error said = exchange->error;
	bool has_path = exchange->path.size >= sizeof CONSOLE_PATH - 1;
	if (exchange->console)
		request = *exchange->console;
	else if (exchange->connection && !keep_cookie(exchange, &request.cookie))
		return false;
	if (!exchange->console && has_path)
		request.path = slice_make(exchange->path.data + sizeof CONSOLE_PATH - 1,
		                          exchange->path.size - (sizeof CONSOLE_PATH - 1));
	request.post = exchange->method && strcmp(exchange->method, "POST") == 0;
	request.incident_id = incident_id;
	return exchange->server->admin &&
	       !console_answer_refused(exchange->server->admin, &request, code, &exchange->arena,
	                               &exchange->out, ret, &said);
}

const struct operation operation_console = {
	.open = true, .page = true, .parses_query = true, .begin = begin, .work = work};
/* Reads of event content have their own lane, so that they do not delay registrations and pages. */
const struct operation operation_console_content = {.open = true,
                                                    .page = true,
                                                    .parses_query = true,
                                                    .lane = LANE_CONTENT,
                                                    .begin = begin,
                                                    .work = work};
/* Forms wait for a commit and must not delay reads. */
const struct operation operation_console_form = {.open = true,
                                                 .page = true,
                                                 .reports_rate = true,
                                                 .parses_query = true,
                                                 .bucket = 3,
                                                 .costs = 10,
                                                 .lane = LANE_FORMS,
                                                 .begin = begin,
                                                 .work = work};
/* A form that waits for a registration. */
const struct operation operation_console_try = {.open = true,
                                                .page = true,
                                                .reports_rate = true,
                                                .parses_query = true,
                                                .bucket = 3,
                                                .costs = 10,
                                                .lane = LANE_TEST_EVENTS,
                                                .begin = begin,
                                                .work = work};
/* A form that waits for an endpoint or the payment provider. */
const struct operation operation_console_call = {.open = true,
                                                 .page = true,
                                                 .reports_rate = true,
                                                 .parses_query = true,
                                                 .bucket = 3,
                                                 .costs = 10,
                                                 .lane = LANE_EXTERNAL,
                                                 .begin = begin,
                                                 .work = work};
/* Forms that send e-mail or could be used for guessing. */
const struct operation operation_console_sign_in = {.open = true,
                                                    .page = true,
                                                    .reports_rate = true,
                                                    .parses_query = true,
                                                    .bucket = 4,
                                                    .costs = 50,
                                                    .lane = LANE_FORMS,
                                                    .begin = begin,
                                                    .work = work};
