/* Runs an administration operation in the running service or, when no service runs, in this
 * process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "admin/admin_socket.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/service_user.h"

#define ANSWER_LIMIT ((size_t)16 << 20)
#define LOCK_TIMEOUT_US (5 * US_PER_SECOND)

const char *command_claimed_user(void)
{
	return getenv("SUDO_USER");
}

/* Fills `error` from the error object of the service's response. */
static int parse_error(const struct json *response, struct error *error)
{
	struct slice code = {0}, message = {0}, cause = {0};
	int64_t exit_code = 2;
	(void)json_get_text(response, "code", &code);
	(void)json_get_text(response, "message", &message);
	(void)json_get_text(response, "cause", &cause);
	(void)json_get_integer(response, "exit", &exit_code);
	/* Several errors share an API code; API code and exit code together identify one. */
	int found = error_find(code.data, code.size, (int)exit_code);
	error_clear(error);
	error->code = found;
	snprintf(error->english, sizeof error->english, "%.*s", (int)message.size, message.data);
	snprintf(error->cause, sizeof error->cause, "%.*s", (int)cause.size, cause.data);
	return found;
}

static int read_answer(struct slice answer, struct buf *result, struct error *error)
{
	static const char start[] = "{\"result\":";
	const size_t start_size = sizeof start - 1;
	if (answer.size > start_size && memcmp(answer.data, start, start_size) == 0) {
		buf_add(result, answer.data + start_size, answer.size - start_size - 1);
		return buf_check(result);
	}
	ARENA_AUTO struct arena arena;
	arena_init(&arena, ANSWER_LIMIT);
	struct json *json;
	int code = json_parse(&arena, answer, NULL, &json, error);
	return code ? code : parse_error(json_member(json, "error"), error);
}

static int ask_service(const struct settings *settings, const struct admin_operation *operation,
                       struct slice arguments, struct buf *result, struct error *error)
{
	BUF_AUTO struct buf request;
	BUF_AUTO struct buf answer;
	buf_init(&request, ADMIN_REQUEST_MAX);
	buf_init(&answer, ANSWER_LIMIT);
	struct json_writer writer = {.out = &request};
	json_begin_object(&writer, NULL);
	json_raw(&writer, "arguments", arguments);
	json_text(&writer, "claimed", command_claimed_user());
	json_text(&writer, "operation", operation->name);
	json_end_object(&writer);
	int code = buf_check(&request);
	if (!code)
		code = admin_exchange(settings->service_admin_socket, buf_slice(&request), &answer, error);
	if (!code)
		code = read_answer(buf_slice(&answer), result, error);
	if (answer.data)
		explicit_bzero(answer.data, answer.size);
	return code;
}

/* Store commands also open the content store, unless the caller passes no_content. */
static bool wants_content(const struct admin_operation *operation, const struct json *arguments)
{
	return strncmp(operation->name, "store ", 6) == 0 && !json_member(arguments, "no_content");
}

/* Root makes backups of the series as the owner of the data directory, whose timer reads, extends
 * and rotates them. */
static int become_owner(const struct settings *settings, const struct admin_operation *operation,
                        const struct json *arguments, struct error *error)
{
	if (strcmp(operation->name, "store backup") != 0 || json_member(arguments, "directory"))
		return OK;
	const struct service_user owner = service_user_of(settings->service_data_dir);
	return service_user_become(&owner, error);
}

static int run_locally(const struct settings *settings, const struct admin_operation *operation,
                       struct slice arguments, struct buf *result, struct error *error)
{
	ARENA_AUTO struct arena arena;
	arena_init(&arena, ANSWER_LIMIT);
	struct json *json;
	struct admin admin = {.settings = settings};
	uid_t user = getuid();
	int code = json_parse(&arena, arguments, NULL, &json, error);
	if (!code)
		code = become_owner(settings, operation, json, error);
	struct db_options options = settings_store(settings, false);
	struct content_options content = settings_content(settings, false);
	if (!code)
		code = store_open(&options, &admin.store, error);
	if (code)
		return code;
	if (wants_content(operation, json))
		code = content_open_with(&content, &admin.content, error);
	struct admin_caller caller = {0};
	if (!code)
		code = admin_actor(user, "command", command_claimed_user(), &arena, &caller.actor);
	if (!code)
		code = admin_run(&admin, operation, json, &caller, result, error);
	if (admin.content)
		content_close(admin.content);
	store_close(admin.store);
	return code;
}

static bool is_service_absent(int code, const struct error *error)
{
	return code == ERR_NOT_FOUND && error->message == MSG_ADMIN_NO_SERVICE;
}

/* Retries while the store is locked: a service that starts or stops, or another command, holds the
 * lock for a moment. */
int administer(const struct settings *settings, const struct admin_operation *operation,
               struct slice arguments, struct buf *result, struct error *error)
{
	int64_t deadline_us = clock_monotonic_us() + LOCK_TIMEOUT_US;
	for (;;) {
		error_clear(error);
		int code = ask_service(settings, operation, arguments, result, error);
		if (!is_service_absent(code, error))
			return code;
		error_clear(error);
		code = run_locally(settings, operation, arguments, result, error);
		bool locked = code == ERR_UNAVAILABLE && error->message == MSG_STORE_LOCKED;
		if (!locked || clock_monotonic_us() > deadline_us)
			return code;
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	}
}
