#include "cli/settings_table.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define VARIABLE_PREFIX "CONSTANCIA_"
#define NEAR_MAX 3 /* typing errors */

const struct setting settings_table[SETTINGS_COUNT] = {
#define SETTING(section, key, type, default_text, comment)                                         \
	{#section, #key, type, default_text, comment, offsetof(struct settings, section##_##key)},
#include "service/settings.def"
};

void setting_name(const struct setting *setting, char name[SETTING_NAME_SIZE])
{
	snprintf(name, SETTING_NAME_SIZE, "%s.%s", setting->section, setting->key);
}

bool setting_is_reloadable(const struct setting *setting)
{
	static const size_t offsets[] = {
#define RELOADS(section, key) offsetof(struct settings, section##_##key),
#include "service/settings.def"
	};
	for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
		if (offsets[i] == setting->offset)
			return true;
	return false;
}

static size_t size_of(const struct setting *setting)
{
	switch (setting->type) {
	case INTEGER:
	case DURATION: return sizeof(int64_t);
	case BOOLEAN: return sizeof(bool);
	default: return sizeof(const char *);
	}
}

bool setting_differs(const struct setting *setting, const struct settings *one,
                     const struct settings *other)
{
	const void *here = (const char *)one + setting->offset;
	const void *there = (const char *)other + setting->offset;
	if (setting->type == TEXT || setting->type == LIST || setting_is_secret(setting))
		return strcmp(*(const char *const *)here, *(const char *const *)there) != 0;
	return memcmp(here, there, size_of(setting)) != 0;
}

void setting_copy(const struct setting *setting, struct settings *to, const struct settings *from)
{
	memcpy((char *)to + setting->offset, (const char *)from + setting->offset, size_of(setting));
}

const struct setting *setting_find(const char *section, size_t section_size, const char *key)
{
	for (size_t i = 0; i < SETTINGS_COUNT; i++)
		if (slice_is(slice_make(section, section_size), settings_table[i].section) &&
		    strcmp(settings_table[i].key, key) == 0)
			return &settings_table[i];
	return NULL;
}

const struct setting *setting_find_by_name(const char *name)
{
	const char *dot = strchr(name, '.');
	return dot ? setting_find(name, (size_t)(dot - name), dot + 1) : NULL;
}

void setting_variable(const struct setting *setting, char variable[SETTING_NAME_SIZE])
{
	snprintf(variable, SETTING_NAME_SIZE, VARIABLE_PREFIX "%s_%s", setting->section, setting->key);
	for (char *at = variable; *at; at++)
		*at = (char)toupper((unsigned char)*at);
}

const struct setting *setting_find_by_variable(struct slice variable)
{
	if (slice_is(variable, "CONSTANCIA_ADMIN_SOCKET"))
		return setting_find_by_name("service.admin_socket");
	for (size_t i = 0; i < SETTINGS_COUNT; i++) {
		char name[SETTING_NAME_SIZE];
		setting_variable(&settings_table[i], name);
		if (slice_is(variable, name))
			return &settings_table[i];
	}
	return NULL;
}

/* ---- similar names ---- */

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Returns the edit distance of two names: letters to add, drop or change, or to swap with their
 * neighbour. */
static unsigned distance(struct slice one, const char *other)
{
	unsigned rows[3][SETTING_NAME_SIZE + 1];
	unsigned *before = rows[0], *last = rows[1], *row = rows[2];
	size_t size = strlen(other);
	if (one.size > SETTING_NAME_SIZE || size > SETTING_NAME_SIZE)
		return NEAR_MAX + 1;
	for (unsigned i = 0; i <= size; i++)
		last[i] = i;
	for (size_t at = 1; at <= one.size; at++) {
		row[0] = (unsigned)at;
		for (size_t i = 1; i <= size; i++) {
			unsigned changed = last[i - 1] + (one.data[at - 1] != other[i - 1]);
			row[i] = least(changed, least(last[i], row[i - 1]) + 1);
			if (at > 1 && i > 1 && one.data[at - 1] == other[i - 2] &&
			    one.data[at - 2] == other[i - 1])
				row[i] = least(row[i], before[i - 2] + 1);
		}
		unsigned *oldest = before;
		before = last;
		last = row;
		row = oldest;
	}
	return last[size];
}

static const struct setting *nearest(struct slice name,
                                     void (*name_of)(const struct setting *, char *))
{
	const struct setting *found = NULL;
	unsigned best = NEAR_MAX + 1;
	for (size_t i = 0; i < SETTINGS_COUNT; i++) {
		char other[SETTING_NAME_SIZE];
		name_of(&settings_table[i], other);
		unsigned far = distance(name, other);
		if (far < best) {
			best = far;
			found = &settings_table[i];
		}
	}
	return found;
}

const struct setting *setting_find_similar(const char *name)
{
	const char *dot = strchr(name, '.');
	const struct setting *found = nearest(slice_of(name), setting_name);
	/* A correct key in the wrong section is a typing error too. */
	for (size_t i = 0; !found && dot && strlen(dot + 1) > 3 && i < SETTINGS_COUNT; i++)
		if (strcmp(settings_table[i].key, dot + 1) == 0)
			found = &settings_table[i];
	return found;
}

const struct setting *setting_find_similar_variable(struct slice variable)
{
	char upper[SETTING_NAME_SIZE];
	size_t size = variable.size < sizeof upper ? variable.size : sizeof upper;
	for (size_t i = 0; i < size; i++)
		upper[i] = (char)toupper((unsigned char)variable.data[i]);
	return nearest(slice_make(upper, size), setting_variable);
}
