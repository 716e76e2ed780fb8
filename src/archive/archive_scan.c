#include "archive/archive_scan.h"

#include "archive/archive_lines.h"
#include "base/json_scan.h"

#define DIGITS_MAX 15 /* digits of an integer that JSON represents exactly */

struct scan {
	const char *at, *end;
	bool failed;
};

static size_t left(const struct scan *scan)
{
	return (size_t)(scan->end - scan->at);
}

static bool meet(struct scan *scan, struct slice text)
{
	if (scan->failed || left(scan) < text.size || memcmp(scan->at, text.data, text.size) != 0)
		return false;
	scan->at += text.size;
	return true;
}

/* Consumes the expected text, or fails. */
static void pass(struct scan *scan, struct slice text)
{
	scan->failed |= !meet(scan, text);
}
#define PASS(scan, text) pass(scan, slice_make(text, sizeof text - 1))
#define MEET(scan, text) meet(scan, slice_make(text, sizeof text - 1))

/* Consumes a text and its closing quote. */
static struct slice take_text(struct scan *scan)
{
	const char *start = scan->at;
	size_t size = scan->failed ? 0 : json_plain_run(start, left(scan), 0x80);
	scan->at += size;
	PASS(scan, "\"");
	return slice_make(start, scan->failed ? 0 : size);
}

static int64_t take_integer(struct scan *scan)
{
	int64_t number = 0;
	const char *start = scan->at;
	while (scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9' &&
	       scan->at - start < DIGITS_MAX)
		number = 10 * number + (*scan->at++ - '0');
	scan->failed |= scan->at == start || *start == '0';
	return number;
}

/* Decodes lower-case hexadecimal digits, the only form that is written. */
static bool read_hex(struct slice text, void *bytes, size_t size)
{
	bool capital = false;
	for (size_t i = 0; i < text.size; i++)
		capital |= text.data[i] >= 'A' && text.data[i] <= 'F';
	return !capital && hex_decode(text, bytes, size);
}

static void take_hex(struct scan *scan, void *bytes, size_t size)
{
	struct slice text = take_text(scan);
	scan->failed |= scan->failed || !read_hex(text, bytes, size);
}

static int64_t take_time(struct scan *scan)
{
	int64_t time_us = TIME_NONE;
	struct slice text = take_text(scan);
	/* This length and these letters imply UTC with microseconds. */
	scan->failed |= text.size != TIME_TEXT_SIZE - 1 || text.data[10] != 'T' ||
	                text.data[TIME_TEXT_SIZE - 2] != 'Z' ||
	                time_parse(text, "", &time_us, NULL) != OK;
	return time_us;
}

static int64_t take_time_or_null(struct scan *scan)
{
	if (MEET(scan, "null"))
		return TIME_NONE;
	PASS(scan, "\"");
	return take_time(scan);
}

bool archive_scan_event(struct arena *arena, struct slice line, struct event_facts *ret_event)
{
	struct scan scan = {line.data, line.data + line.size, false};
	struct event_facts event = {0};
	struct declaration *declared = &event.declaration;
	PASS(&scan, "{\"chain\":\"");
	scan.failed |= !mode_parse(take_text(&scan), &event.chain);
	PASS(&scan, ",\"channel_id\":\"");
	struct slice channel_id = take_text(&scan);
	PASS(&scan, ",\"client_ref\":\"");
	declared->client_ref = take_text(&scan);
	PASS(&scan, ",\"config_hash\":\"");
	take_hex(&scan, event.config_hash.bytes, SHA256_SIZE);
	PASS(&scan, ",\"config_version\":");
	event.config_version = take_integer(&scan);
	PASS(&scan, ",\"event_id\":\"");
	event.event_id = take_text(&scan);
	PASS(&scan, ",\"hash\":\"");
	const struct slice hash = take_text(&scan);
	PASS(&scan, ",\"hash_alg\":\"");
	scan.failed |= !hash_algorithm_parse(take_text(&scan), &declared->hash_algorithm) ||
	               !read_hex(hash, declared->hash, hash_algorithm_size(declared->hash_algorithm));
	PASS(&scan, ",\"modality\":\"");
	scan.failed |= !modality_parse(take_text(&scan), &declared->modality);
	PASS(&scan, ",\"occurred_at\":");
	declared->occurred_at_us = take_time_or_null(&scan);
	PASS(&scan, ",\"previous_chain_hash\":\"");
	take_hex(&scan, event.previous_chain_hash.bytes, SHA256_SIZE);
	PASS(&scan, ",\"received_at\":\"");
	event.received_at_us = take_time(&scan);
	PASS(&scan, ",\"sequence\":");
	event.sequence = take_integer(&scan);
	PASS(&scan, ",\"v\":1}");
	if (scan.failed || scan.at != scan.end || declared->client_ref.size == 0 ||
	    declared->client_ref.size > CLIENT_REF_MAX)
		return false;
	event.channel_id = arena_copy(arena, channel_id.data, channel_id.size);
	*ret_event = event;
	return event.channel_id;
}

bool part_name_is_json(struct slice name)
{
	return name.size > 5 && memcmp(name.data + name.size - 5, ".json", 5) == 0;
}

bool archive_scan_part_line(struct slice line, struct part_entry *ret_entry)
{
	struct scan scan = {line.data, line.data + line.size, false};
	struct part_entry entry;
	PASS(&scan, "{\"entry\":\"");
	const struct slice name = take_text(&scan);
	PASS(&scan, ",\"event_id\":\"");
	entry.event_id = take_text(&scan);
	PASS(&scan, ",\"hash\":\"");
	take_hex(&scan, entry.hash.bytes, SHA256_SIZE);
	PASS(&scan, ",\"sequence\":");
	entry.sequence = take_integer(&scan);
	PASS(&scan, "}");
	if (scan.failed || scan.at != scan.end)
		return false;
	char wanted[ZIP_NAME_MAX + 1];
	entry.is_json = part_name_is_json(name);
	part_entry_name(&entry, wanted);
	*ret_entry = entry;
	return slice_is(name, wanted);
}
