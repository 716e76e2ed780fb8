/* The command `events tail`, which prints the newest events of a chain and follows it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli/api_access.h"
#include "tools/json_items.h"
#include "tools/remote_certification.h"

#define MEMORY_MAX ((size_t)64 << 20)
#define LINES_DEFAULT 10
#define LINES_MAX 500 /* one page of the interface */
#define PAGE 500
#define TEXT_SHOWN 1024 /* bytes of a text, of which a client_ref is the longest */
#define INTERVAL_DEFAULT_US (2 * US_PER_SECOND)

const struct option events_tail_options[] = {
	API_OPTIONS,
	{"lines", "N", "number of events to begin with, 0 to 500; short form -n; by default 10"},
	{"follow", NULL, "print new events as they are registered, until a signal ends it"},
	{"interval", "DURATION", "time between two requests with --follow; by default 2s"},
	{0},
};

struct tail {
	const struct command_line *line;
	struct api api;
	struct arena arena;
	int64_t last; /* sequence number of the newest event that is known */
};

static void tail_cleanup(struct tail *tail)
{
	api_close(&tail->api);
	arena_free(&tail->arena);
}

/* Without what a terminal would execute. */
static void print_text(struct slice text)
{
	char shown[TEXT_SHOWN];
	utf8_show(text, shown, sizeof shown);
	printf(" %s", shown);
}

static void print_event(const struct tail *tail, const struct json *event, struct slice text)
{
	struct slice id = {0}, ref = {0}, received = {0}, status = {0}, hash = {0};
	int64_t sequence = 0;
	if (tail->line->json) {
		command_print_line(text);
		return;
	}
	(void)json_get_text(event, "event_id", &id);
	(void)json_get_text(event, "client_ref", &ref);
	(void)json_get_text(event, "received_at", &received);
	(void)json_get_text(event, "status", &status);
	(void)json_get_text(event, "hash", &hash);
	(void)json_get_integer(event, "sequence", &sequence);
	printf("%" PRId64, sequence);
	print_text(received);
	print_text(id);
	print_text(status);
	print_text(hash);
	print_text(ref);
	printf("\n");
}

/* The events of a page, for printing in either order. */
struct page {
	struct slice texts[PAGE];
	size_t count;
};

static int collect(void *context, struct slice item)
{
	struct page *page = context;
	if (page->count == PAGE)
		return ERR_NETWORK;
	page->texts[page->count++] = item;
	return 0;
}

/* Gets one page and prints its events, the oldest first. */
static int print_page(struct tail *tail, const char *path, bool newest_first, size_t *ret_count,
                      struct error *error)
{
	struct api_answer answer;
	struct page page = {.count = 0};
	arena_reset(&tail->arena);
	int result =
		api_send(&tail->api, &(struct api_request){.path = path}, &tail->arena, &answer, error);
	if (!result)
		result = json_items(answer.text, "data", collect, &page);
	for (size_t i = 0; !result && i < page.count; i++) {
		struct slice text = page.texts[newest_first ? page.count - 1 - i : i];
		struct json *event;
		int64_t sequence;
		result = json_parse(&tail->arena, text, NULL, &event, error);
		if (!result && !json_get_integer(event, "sequence", &sequence))
			result = error_cause(error, ERR_NETWORK, "the answer is no list of events");
		if (result)
			break;
		print_event(tail, event, text);
		tail->last = sequence > tail->last ? sequence : tail->last;
	}
	(void)fflush(stdout);
	*ret_count = page.count;
	return result;
}

static int print_newest(struct tail *tail, int64_t lines, struct error *error)
{
	char path[64];
	size_t count;
	snprintf(path, sizeof path, "/events?order=desc&limit=%" PRId64, lines);
	return print_page(tail, path, true, &count, error);
}

/* Prints the events after the last known one, and then those that are registered. */
static int follow(struct tail *tail, int64_t interval_us, struct error *error)
{
	for (unsigned failures = 0;;) {
		char path[96];
		size_t count = 0;
		snprintf(path, sizeof path, "/events?order=asc&limit=%d&seq_from=%" PRId64, PAGE,
		         tail->last + 1);
		error_clear(error);
		int result = print_page(tail, path, false, &count, error);
		bool passing = result == ERR_NETWORK || result == ERR_UNAVAILABLE ||
		               result == ERR_RATE_LIMITED || result == ERR_INTERNAL;
		if (result && !passing)
			return result;
		failures = result ? failures + 1 : 0;
		if (result) {
			error->code = result;
			(void)command_fail(tail->line, error);
			api_sleep_us(api_pause_us(failures, 0));
		} else if (count < PAGE) {
			api_sleep_us(interval_us);
		}
	}
}

int command_events_tail(const struct command_line *line)
{
	__attribute__((cleanup(tail_cleanup))) struct tail tail = {.line = line};
	struct error error = {0};
	int64_t lines = LINES_DEFAULT, interval_us = INTERVAL_DEFAULT_US;
	int exit_code = command_number(line, "lines", 0, LINES_MAX, &lines);
	if (!exit_code)
		exit_code = command_duration(line, "interval", 3600 * US_PER_SECOND, &interval_us);
	if (!exit_code)
		exit_code = command_open_api(line, &tail.api);
	arena_init(&tail.arena, MEMORY_MAX);
	if (exit_code)
		return exit_code;
	error.code = lines ? print_newest(&tail, lines, &error)
	                   : remote_last_sequence(&tail.api, &tail.arena, &tail.last, &error);
	if (!error.code && command_option(line, "follow"))
		error.code = follow(&tail, interval_us, &error);
	return error.code ? command_fail(line, &error) : 0;
}
