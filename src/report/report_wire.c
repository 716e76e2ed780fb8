#include "report/report_wire.h"

#include <assert.h>
#include <string.h>

#define ABSENT UINT32_MAX

/* One traversal of the facts serves writing and reading. Pointers are written as NULL, so that the
 * process that draws hostile text learns no addresses of the service. */
struct wire {
	struct buf *out; /* output when writing; NULL: reading */
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

/* Transfers the bytes at a pointer, followed by NUL. */
static const void *block(struct wire *wire, const void *data, uint32_t *size)
{
	bytes(wire, size, sizeof *size);
	if (wire->out) {
		if (*size != ABSENT)
			buf_add(wire->out, data, *size);
		return NULL;
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
	assert(!wire->out || !*value || strlen(*value) <= REPORT_WIRE_MAX);
	uint32_t size = wire->out && *value ? (uint32_t)strlen(*value) : ABSENT;
	*value = block(wire, *value, &size);
}

static void slice(struct wire *wire, struct slice *value)
{
	assert(!wire->out || !value->data || value->size <= REPORT_WIRE_MAX);
	uint32_t size = wire->out && value->data ? (uint32_t)value->size : ABSENT;
	value->data = block(wire, value->data, &size);
	value->size = value->data ? size : 0;
}

/* Overwrites data written in its memory layout, now with NULL pointers. */
static void settle(const struct wire *wire, size_t at, const void *data, size_t size)
{
	assert(!wire->out || wire->failed || wire->out->failed || at + size <= wire->out->size);
	if (wire->out && !wire->failed && !wire->out->failed)
		memcpy(wire->out->data + at, data, size);
}

/* Transfers an array in its memory layout, then the data to which its elements point. */
static const void *array(struct wire *wire, const void *items, size_t count, size_t size,
                         void (*element)(struct wire *wire, void *item))
{
	if (count > REPORT_WIRE_MAX / size)
		wire->failed = true;
	char *copy = wire->failed ? NULL : arena_alloc(wire->arena, count * size + 1);
	if (!copy) {
		wire->failed = true;
		return NULL;
	}
	size_t at = wire->out ? wire->out->size : 0;
	if (wire->out && count)
		memcpy(copy, items, count * size);
	bytes(wire, copy, count * size);
	for (size_t i = 0; i < count && !wire->failed; i++)
		element(wire, copy + i * size);
	settle(wire, at, copy, count * size);
	return wire->out ? NULL : copy;
}

static void configuration(struct wire *wire, void *item)
{
	struct config_facts *texts = &((struct report_configuration *)item)->facts;
	text(wire, &texts->channel_id);
	text(wire, &texts->name);
	text(wire, &texts->description);
	text(wire, &texts->declarant);
	text(wire, &texts->supplementary_info);
}

static void event(struct wire *wire, void *item)
{
	struct report_event *event = item;
	size_t size = hash_algorithm_size(event->hash_algorithm);
	struct slice hash = slice_make(event->hash, event->hash ? size : 0);
	slice(wire, &event->client_ref);
	slice(wire, &hash);
	event->hash = (const uint8_t *)hash.data;
	wire->failed |= hash.data && hash.size != size;
}

static void seal(struct wire *wire, void *item)
{
	struct report_seal *seal = item;
	text(wire, &seal->segment_id);
	text(wire, &seal->authority);
}

static void authority(struct wire *wire, void *item)
{
	text(wire, &((struct report_authority *)item)->name);
}

static void witness(struct wire *wire, void *item)
{
	text(wire, &((struct report_witness *)item)->name);
}

static void part(struct wire *wire, void *item)
{
	text(wire, &((struct report_part *)item)->name);
}

static void walk(struct wire *wire, struct report_facts *facts, enum language *language)
{
	bytes(wire, language, sizeof *language);
	size_t at = wire->out ? wire->out->size : 0;
	bytes(wire, facts, sizeof *facts);
	text(wire, &facts->service_name);
	text(wire, &facts->certification_id);
	text(wire, &facts->verification_code);
	text(wire, &facts->verification_url);
	text(wire, &facts->channel_id);
	text(wire, &facts->archive_name);
	text(wire, &facts->log.origin);
#define ARRAY(items, rows, element)                                                                \
	facts->items = array(wire, facts->items, facts->rows, sizeof *facts->items, element)
	ARRAY(configurations, configuration_rows, configuration);
	ARRAY(events, event_rows, event);
	ARRAY(seals, seal_rows, seal);
	ARRAY(authorities, authority_rows, authority);
	ARRAY(parts, part_rows, part);
	ARRAY(log.witnesses, log.witness_rows, witness);
#undef ARRAY
	settle(wire, at, facts, sizeof *facts);
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
		return error_cause(error, ERR_VALIDATION, "the report data is truncated");
	return OK;
}
