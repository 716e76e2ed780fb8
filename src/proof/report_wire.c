#include "proof/report_wire.h"

#include <string.h>

#define ABSENT UINT32_MAX

/* One walk over all that the facts point to serves both directions. */
struct wire {
	struct buf *out; /* writing; NULL: reading */
	struct slice in;
	struct arena *arena;
	bool failed;
};

static void bytes(struct wire *wire, void *data, size_t size)
{
	if (wire->out) {
		buf_add(wire->out, data, size);
		return;
	}
	if (wire->failed || size > wire->in.size) {
		wire->failed = true;
		memset(data, 0, size);
		return;
	}
	memcpy(data, wire->in.data, size);
	wire->in = slice_make(wire->in.data + size, wire->in.size - size);
}

/* Bytes that something points to, with a NUL behind them. */
static const void *block(struct wire *wire, const void *data, uint32_t *size)
{
	bytes(wire, size, sizeof *size);
	if (wire->out) {
		if (*size != ABSENT)
			buf_add(wire->out, data, *size);
		return data;
	}
	if (*size == ABSENT || wire->failed || *size > wire->in.size) {
		wire->failed |= *size != ABSENT;
		return NULL;
	}
	char *copy = arena_alloc(wire->arena, (size_t)*size + 1);
	if (!copy) {
		wire->failed = true;
		return NULL;
	}
	bytes(wire, copy, *size);
	copy[*size] = '\0';
	return copy;
}

static void text(struct wire *wire, const char **value)
{
	uint32_t size = wire->out && *value ? (uint32_t)strlen(*value) : ABSENT;
	*value = block(wire, *value, &size);
}

static void slice(struct wire *wire, struct slice *value)
{
	uint32_t size = wire->out && value->data ? (uint32_t)value->size : ABSENT;
	value->data = block(wire, value->data, &size);
	value->size = value->data ? size : 0;
}

/* An array's elements as they are in memory: a copy to walk on, its pointers yet to be settled. */
static void *elements(struct wire *wire, const void *items, size_t count, size_t size)
{
	if (count > REPORT_WIRE_MAX / size)
		wire->failed = true;
	void *copy = wire->failed ? NULL : arena_alloc(wire->arena, count * size + 1);
	if (!copy) {
		wire->failed = true;
		return NULL;
	}
	if (wire->out)
		memcpy(copy, items, count * size);
	bytes(wire, copy, count * size);
	return copy;
}

static void configurations(struct wire *wire, struct report_facts *facts)
{
	struct report_configuration *items =
		elements(wire, facts->configurations, facts->configuration_rows, sizeof *items);
	for (size_t i = 0; i < facts->configuration_rows && !wire->failed; i++) {
		struct config_facts *texts = &items[i].facts;
		text(wire, &texts->channel_id);
		text(wire, &texts->name);
		text(wire, &texts->description);
		text(wire, &texts->declarant);
		text(wire, &texts->supplementary_info);
	}
	facts->configurations = items;
}

static void events(struct wire *wire, struct report_facts *facts)
{
	struct report_event *items = elements(wire, facts->events, facts->event_rows, sizeof *items);
	for (size_t i = 0; i < facts->event_rows && !wire->failed; i++) {
		size_t size = hash_algorithm_size(items[i].hash_algorithm);
		struct slice hash = slice_make(items[i].hash, items[i].hash ? size : 0);
		slice(wire, &items[i].client_ref);
		slice(wire, &hash);
		items[i].hash = (const uint8_t *)hash.data;
		wire->failed |= hash.data && hash.size != size;
	}
	facts->events = items;
}

static void seals(struct wire *wire, struct report_facts *facts)
{
	struct report_seal *items = elements(wire, facts->seals, facts->seal_rows, sizeof *items);
	for (size_t i = 0; i < facts->seal_rows && !wire->failed; i++) {
		text(wire, &items[i].segment_id);
		text(wire, &items[i].authority);
	}
	facts->seals = items;
}

static void rest(struct wire *wire, struct report_facts *facts)
{
	struct report_authority *authorities =
		elements(wire, facts->authorities, facts->authority_rows, sizeof *authorities);
	for (size_t i = 0; i < facts->authority_rows && !wire->failed; i++)
		text(wire, &authorities[i].name);
	facts->authorities = authorities;
	struct report_part *parts = elements(wire, facts->parts, facts->part_rows, sizeof *parts);
	for (size_t i = 0; i < facts->part_rows && !wire->failed; i++)
		text(wire, &parts[i].name);
	facts->parts = parts;
}

static void walk(struct wire *wire, struct report_facts *facts, enum language *language)
{
	bytes(wire, language, sizeof *language);
	bytes(wire, facts, sizeof *facts);
	text(wire, &facts->service_name);
	text(wire, &facts->certification_id);
	text(wire, &facts->verification_code);
	text(wire, &facts->verification_url);
	text(wire, &facts->channel_id);
	text(wire, &facts->archive_name);
	configurations(wire, facts);
	events(wire, facts);
	seals(wire, facts);
	rest(wire, facts);
}

int report_wire_write(const struct report_facts *facts, enum language language, struct buf *out)
{
	ARENA_AUTO struct arena arena;
	struct report_facts copy = *facts;
	struct wire wire = {.out = out, .arena = &arena};
	arena_init(&arena, REPORT_WIRE_MAX);
	walk(&wire, &copy, &language);
	return wire.failed ? ERR_NO_MEMORY : buf_check(out);
}

int report_wire_read(struct slice in, struct arena *arena, struct report_facts *ret_facts,
                     enum language *ret_language, struct error *error)
{
	struct wire wire = {.in = in, .arena = arena};
	walk(&wire, ret_facts, ret_language);
	if (wire.failed || wire.in.size > 0)
		return error_cause(error, ERR_VALIDATION, "the facts of a report are cut short");
	return OK;
}
