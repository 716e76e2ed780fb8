#include "service/mail_templates.h"

#include "base/json.h"

#define VALUES_MEMORY_MAX ((size_t)256 * 1024)

struct template
{
	const char *name;
	const char *subjects[2];
	const char *texts[2];
};

static const struct template templates[] = {
#define MAIL_TEMPLATE(name, subject_en, text_en, subject_es, text_es)                              \
	{#name, {subject_en, subject_es}, {text_en, text_es}},
#define MAIL_REASON(name, english, spanish)
#include "service/mail_templates.def"
#undef MAIL_TEMPLATE
#undef MAIL_REASON
};

static const struct {
	const char *name;
	const char *sentences[2];
} reasons[] = {
#define MAIL_TEMPLATE(name, subject_en, text_en, subject_es, text_es)
#define MAIL_REASON(name, english, spanish) {#name, {english, spanish}},
#include "service/mail_templates.def"
#undef MAIL_TEMPLATE
#undef MAIL_REASON
};

struct filling {
	const struct mail_facts *facts;
	const struct json *values;
};

static struct slice reason_sentence(const struct filling *filling, struct slice name)
{
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
		if (slice_is(name, reasons[i].name))
			return slice_of(reasons[i].sentences[filling->facts->language == LANGUAGE_SPANISH]);
	return name;
}

/* Returns false if there is no such value. */
static bool find_value(const struct filling *filling, struct slice name, struct slice *ret_value)
{
	char member[64];
	if (slice_is(name, "service")) {
		*ret_value = slice_of(filling->facts->service);
		return true;
	}
	if (slice_is(name, "account")) {
		*ret_value = slice_of(filling->facts->account_id);
		return true;
	}
	if (name.size >= sizeof member)
		return false;
	memcpy(member, name.data, name.size);
	member[name.size] = '\0';
	if (!json_get_text(filling->values, member, ret_value))
		return false;
	if (slice_is(name, "reason") || slice_is(name, "role"))
		*ret_value = reason_sentence(filling, *ret_value);
	return true;
}

static void add_value(struct buf *out, struct slice value)
{
	for (size_t i = 0; i < value.size; i++) {
		unsigned char byte = (unsigned char)value.data[i];
		buf_add_byte(out, byte < 0x20 || byte == 0x7f ? ' ' : (char)byte);
	}
}

/* Returns false if the line must be omitted. */
static bool fill_line(const struct filling *filling, struct slice line, struct buf *out)
{
	while (line.size) {
		const char *open = memchr(line.data, '{', line.size);
		size_t plain = open ? (size_t)(open - line.data) : line.size;
		buf_add(out, line.data, plain);
		line = slice_make(line.data + plain, line.size - plain);
		const char *close = line.size ? memchr(line.data, '}', line.size) : NULL;
		if (!close)
			break;
		struct slice name = slice_make(line.data + 1, (size_t)(close - line.data) - 1);
		struct slice value;
		if (!find_value(filling, name, &value))
			return false;
		add_value(out, value);
		line = slice_make(close + 1, line.size - name.size - 2);
	}
	return true;
}

static void fill_text(const struct filling *filling, const char *text, struct buf *out)
{
	BUF_AUTO struct buf line;
	buf_init(&line, out->limit);
	while (*text) {
		size_t size = strcspn(text, "\n");
		buf_clear(&line);
		if (fill_line(filling, slice_make(text, size), &line)) {
			buf_add_byte(&line, '\n');
			out->failed |= line.failed;
			buf_add_slice(out, buf_slice(&line));
		}
		text += size + (text[size] == '\n');
	}
}

int mail_template_fill(const struct mail_facts *facts, struct buf *subject, struct buf *text,
                       struct error *error)
{
	const struct template *found = NULL;
	ARENA_AUTO struct arena arena;
	struct json *values = NULL;
	bool spanish = facts->language == LANGUAGE_SPANISH;
	arena_init(&arena, VALUES_MEMORY_MAX);
	for (size_t i = 0; i < sizeof templates / sizeof *templates; i++)
		if (strcmp(templates[i].name, facts->template_name) == 0)
			found = &templates[i];
	if (!found)
		return error_cause(error, ERR_VALIDATION, "there is no e-mail template '%.60s'",
		                   facts->template_name);
	int result = json_parse(&arena, slice_of(facts->values), NULL, &values, NULL);
	if (result == ERR_NO_MEMORY)
		return result;
	if (result || values->type != JSON_OBJECT)
		return error_cause(error, ERR_VALIDATION, "the values of an e-mail are not an object");
	struct filling filling = {facts, values};
	if (!fill_line(&filling, slice_of(found->subjects[spanish]), subject))
		return error_cause(error, ERR_VALIDATION,
		                   "a value of the subject of the e-mail '%s' is missing",
		                   facts->template_name);
	fill_text(&filling, found->texts[spanish], text);
	result = buf_check(subject);
	return result ? result : buf_check(text);
}
