/* The commands `listen` and `trigger`, which bring the notices of the test mode to a developer's
 * machine. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/api_access.h"
#include "ledger/ledger.h"
#include "tools/notice_feed.h"

#define MEMORY_MAX ((size_t)64 << 20)
#define ATTEMPTS 3 /* at a receiver that fails, so that it delays the later notices little */
#define ATTEMPT_PAUSE_US US_PER_SECOND
#define LEAST_US US_PER_SECOND /* between two requests, even if each is answered at once */
#define STOP 1                 /* result of a callback: --once is reached */

const struct option listen_options[] = {
	API_OPTIONS,
	{"forward-to", "URL",
     "address to which each notice is sent, such as "
     "http://localhost:3000/hook; by default notices are only printed"},
	{"types", "TYPE,TYPE", "types of notices; by default all"},
	{"secret-file", "FILE",
     "file with the secret of the signatures; by default a random one, "
     "which is printed"},
	{"once", "N", "end after N notices; exit code 1 if one was not acknowledged"},
	{0},
};

const struct option trigger_options[] = {API_OPTIONS, {0}};

struct listening {
	const struct command_line *line;
	struct api api;
	struct arena arena;
	struct notice_feed feed;
	struct notice_receiver receiver; /* url NULL: none */
	const char *types;               /* NULL: all */
	int64_t once;                    /* 0: without end */
	int64_t count;
	bool failed; /* a notice was not acknowledged */
};

static void listening_cleanup(struct listening *listening)
{
	api_close(&listening->api);
	http_session_close(listening->receiver.session);
	explicit_bzero(listening->receiver.secret, sizeof listening->receiver.secret);
	arena_free(&listening->arena);
}

static bool has_type(const char *types, const char *type)
{
	size_t size = strlen(type);
	for (const char *at = types; *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == size && memcmp(at, type, size) == 0)
			return true;
	return false;
}

/* ---- output ---- */

static void print_json_attempt(const struct notice *notice, const struct notice_attempt *attempt,
                               int number, bool acknowledged)
{
	BUF_AUTO struct buf text;
	buf_init(&text, (size_t)16 << 20);
	struct json_writer writer = {.out = &text};
	json_begin_object(&writer, NULL);
	if (attempt) {
		json_boolean(&writer, "acknowledged", acknowledged);
		json_integer(&writer, "attempt", number);
		json_integer(&writer, "duration_ms", attempt->duration_us / 1000);
	}
	json_raw(&writer, "notice", notice->text);
	if (attempt) {
		json_text(&writer, "reason", attempt->reason[0] ? attempt->reason : NULL);
		if (attempt->status)
			json_integer(&writer, "status", attempt->status);
		else
			json_null(&writer, "status");
	}
	json_end_object(&writer);
	if (!buf_check(&text))
		command_print_line(buf_slice(&text));
}

/* `attempt` is NULL without a receiver. */
static void print_attempt(const struct listening *listening, const struct notice *notice,
                          const struct notice_attempt *attempt, int number, bool acknowledged)
{
	long long duration_ms = attempt ? (long long)(attempt->duration_us / 1000) : 0;
	if (listening->line->json)
		print_json_attempt(notice, attempt, number, acknowledged);
	else if (!attempt)
		command_print_line(notice->text);
	else if (acknowledged)
		printf("%s %s %s: %d in %lld ms\n", notice->created_at, notice->type, notice->id,
		       attempt->status, duration_ms);
	else if (attempt->status)
		printf("%s %s %s: attempt %d of %d failed: %d in %lld ms\n", notice->created_at,
		       notice->type, notice->id, number, ATTEMPTS, attempt->status, duration_ms);
	else
		printf("%s %s %s: attempt %d of %d failed: %s\n", notice->created_at, notice->type,
		       notice->id, number, ATTEMPTS, attempt->reason);
	(void)fflush(stdout);
}

static void print_start(const struct listening *listening)
{
	const struct notice_receiver *receiver = &listening->receiver;
	bool own = command_option(listening->line, "secret-file");
	if (listening->line->json) {
		BUF_AUTO struct buf text;
		buf_init(&text, 8192);
		struct json_writer writer = {.out = &text};
		json_begin_object(&writer, NULL);
		json_text(&writer, "forward_to", receiver->url);
		json_text(&writer, "secret", receiver->url && !own ? receiver->secret : NULL);
		json_end_object(&writer);
		printf("%s\n", buf_check(&text) ? "" : text.data);
	} else if (receiver->url) {
		printf("Listening for test notices; they are forwarded to %s.\n", receiver->url);
		if (!own)
			printf("Secret of the signatures: %s\n", receiver->secret);
	} else {
		puts("Listening for test notices.");
	}
	(void)fflush(stdout);
}

/* ---- one notice ---- */

static int handle(void *context, const struct notice *notice)
{
	struct listening *listening = context;
	struct notice_attempt attempt;
	bool acknowledged = false;
	if (listening->types && !has_type(listening->types, notice->type))
		return 0;
	if (!listening->receiver.url)
		print_attempt(listening, notice, NULL, 0, true);
	for (int number = 1; listening->receiver.url && number <= ATTEMPTS && !acknowledged; number++) {
		if (number > 1)
			api_sleep_us(ATTEMPT_PAUSE_US * (number - 1));
		acknowledged = notice_post(&listening->receiver, notice, &attempt);
		print_attempt(listening, notice, &attempt, number, acknowledged);
	}
	listening->failed |= listening->receiver.url && !acknowledged;
	return listening->once && ++listening->count == listening->once ? STOP : 0;
}

/* ---- the command ---- */

static int read_secret(struct listening *listening)
{
	BUF_AUTO struct buf text;
	struct error error = {0};
	const char *path = command_option(listening->line, "secret-file");
	notice_secret(listening->receiver.secret);
	if (!path)
		return 0;
	buf_init(&text, NOTICE_SECRET_MAX - 1);
	error.code = file_read_whole(path, &text, &error);
	if (error.code)
		return command_fail(listening->line, &error);
	size_t size = text.data ? strcspn(text.data, " \t\r\n") : 0;
	if (size == 0)
		return command_usage_error(listening->line, "%s contains no secret.", path);
	snprintf(listening->receiver.secret, NOTICE_SECRET_MAX, "%.*s", (int)size, text.data);
	explicit_bzero(text.data, text.size);
	return 0;
}

const char *trigger_type(unsigned index)
{
	return index <= NOTICE_WEBHOOK_TEST ? notice_type_text((enum notice_type)index) : NULL;
}

static bool is_type(struct slice word)
{
	const char *type;
	for (unsigned i = 0; (type = trigger_type(i)); i++)
		if (slice_is(word, type))
			return true;
	return false;
}

static int check_types(const struct command_line *line, const char *types)
{
	for (const char *at = types; *at; at += strcspn(at, ","), at += *at == ',') {
		struct slice word = slice_make(at, strcspn(at, ","));
		if (!is_type(word))
			return command_usage_error(line, "--types has the unknown type '%.*s'.",
			                           (int)(word.size < 64 ? word.size : 64), word.data);
	}
	return 0;
}

static int prepare(struct listening *listening)
{
	const struct command_line *line = listening->line;
	struct error error = {0};
	listening->types = command_option(line, "types");
	listening->receiver.url = command_option(line, "forward-to");
	int exit_code = command_number(line, "once", 1, INT64_MAX, &listening->once);
	if (!exit_code && listening->types)
		exit_code = check_types(line, listening->types);
	if (!exit_code && listening->receiver.url)
		error.code =
			http_url_check(slice_of(listening->receiver.url), true, "--forward-to", &error);
	if (error.code)
		return command_usage_error(line, "%s", command_message(&error));
	if (!exit_code)
		exit_code = read_secret(listening);
	if (!exit_code)
		exit_code = command_open_api(line, &listening->api);
	if (exit_code)
		return exit_code;
	notice_prefix(listening->api.key, listening->receiver.prefix);
	api_guard_nothing(&listening->receiver.guard);
	listening->receiver.session = http_session_open();
	return listening->receiver.session ? 0 : 2;
}

/* Returns whether a later attempt may succeed. */
static bool is_passing(int code)
{
	return code == ERR_NETWORK || code == ERR_UNAVAILABLE || code == ERR_RATE_LIMITED ||
	       code == ERR_INTERNAL;
}

int command_listen(const struct command_line *line)
{
	__attribute__((cleanup(listening_cleanup))) struct listening listening = {.line = line};
	struct error error = {0};
	int result;
	arena_init(&listening.arena, MEMORY_MAX);
	int exit_code = prepare(&listening);
	if (exit_code)
		return exit_code;
	for (unsigned failures = 0;;) {
		bool begun = listening.feed.cursor[0];
		int64_t next_us = clock_monotonic_us() + LEAST_US;
		arena_reset(&listening.arena);
		error_clear(&error);
		result = notice_feed_next(&listening.feed, &listening.api, &listening.arena, handle,
		                          &listening, &error);
		if (result == STOP)
			return listening.failed ? 1 : 0;
		error.code = result;
		if (result && (!is_passing(result) || !begun))
			return command_fail(line, &error);
		if (!result && !begun)
			print_start(&listening);
		failures = result ? failures + 1 : 0;
		if (!result) {
			int64_t early_us = begun ? next_us - clock_monotonic_us() : 0;
			if (early_us > 0)
				api_sleep_us(early_us);
			continue;
		}
		(void)command_fail(line, &error); /* the connection is made again */
		api_sleep_us(api_pause_us(failures, 0));
	}
}

/* ---- trigger ---- */

int command_trigger(const struct command_line *line)
{
	ARENA_AUTO struct arena arena;
	__attribute__((cleanup(api_close))) struct api api;
	BUF_AUTO struct buf body;
	struct api_answer answer;
	struct notice notice;
	struct error error = {0};
	int exit_code = command_open_api(line, &api);
	arena_init(&arena, MEMORY_MAX);
	buf_init(&body, 4096);
	if (exit_code)
		return exit_code;
	struct json_writer writer = {.out = &body};
	json_begin_object(&writer, NULL);
	json_text(&writer, "type", line->arguments[0]);
	json_end_object(&writer);
	error.code = buf_check(&body);
	/* Once: another notice would be created. */
	const struct api_request request = {.path = "/notices",
	                                    .content_type = "application/json",
	                                    .body = buf_slice(&body),
	                                    .once = true};
	if (!error.code)
		error.code = api_send(&api, &request, &arena, &answer, &error);
	if (!error.code)
		error.code = notice_read(answer.text, &notice, &error);
	if (error.code)
		return command_fail(line, &error);
	if (line->json)
		command_print_line(answer.text);
	else
		printf("%s: %s\n", notice.type, notice.id);
	return 0;
}
