#include "console/proof_picture.h"

#include <stdio.h>

#include "base/utf8.h"
#include "console/template.h"

/* Dimensions of the drawing, which fits on a phone at full size. */
#define WIDTH 340
#define MAIN_WIDTH 196 /* width of a box of the main path */
#define SIDE_LEFT 224  /* left edge of the boxes of siblings */
#define SIDE_WIDTH 114
#define BOX_HEIGHT 44
#define ROW_HEIGHT 66
#define TOGETHER 6 /* gap between boxes of one step */
#define SHOWN_DIGITS 12
#define SIDE_DIGITS 8
#define STEPS_SHOWN 3 /* steps shown at each end of a long path */
#define DIGIT_WIDTH 7 /* width of a digit with spacing */
#define TEXT_SIZE 160

enum word {
	WORD_TITLE,
	WORD_SUMMARY,
	WORD_CONTENT,
	WORD_DIGEST,
	WORD_RECORD,
	WORD_BEFORE,
	WORD_JOINED,
	WORD_WITH,
	WORD_ROOT,
	WORD_STAMP,
	WORD_SECOND,
	WORD_RENEWED,
	WORD_MORE,
	WORD_WAITS,
	WORD_TEST,
};
static const char *const words[][2] = {
	[WORD_TITLE] = {"From the content to the timestamp", "Del contenido al sello de tiempo"},
	[WORD_SUMMARY] =
		{"Each box is the hash of the box above it combined with the box next to it. The table "
         "below contains the full hashes.",
         "Cada recuadro es el resumen del recuadro superior combinado con el contiguo. La tabla "
         "de abajo contiene los resúmenes completos."},
	[WORD_CONTENT] = {"Content", "Contenido"},
	[WORD_DIGEST] = {"Declared digest", "Resumen declarado"},
	[WORD_RECORD] = {"Event record", "Registro del evento"},
	[WORD_BEFORE] = {"previous event", "evento anterior"},
	[WORD_JOINED] = {"Combined hash", "Resumen conjunto"},
	[WORD_WITH] = {"sibling", "nodo hermano"},
	[WORD_ROOT] = {"Merkle root", "Raíz de Merkle"},
	[WORD_STAMP] = {"Timestamp", "Sello de tiempo"},
	[WORD_SECOND] = {"Second timestamp", "Segundo sello"},
	[WORD_RENEWED] = {"Renewed", "Renovado"},
	[WORD_MORE] = {"… more steps:", "… más pasos:"},
	[WORD_WAITS] = {"Timestamp pending", "Sello de tiempo pendiente"},
	[WORD_TEST] = {"Test event: no timestamp", "Prueba: sin sello de tiempo"},
};

struct drawing {
	struct buf *out;
	enum language language;
	int y; /* position of the next row */
};

static const char *say(enum word word, enum language language)
{
	return words[word][language];
}

/* ---- data ---- */

static bool read_hash(const struct json *value, struct sha256 *ret)
{
	return value && value->type == JSON_STRING && value->text.size == 2 * SHA256_SIZE &&
	       hex_decode(value->text, ret->bytes, SHA256_SIZE);
}

static struct sha256 join(const struct sha256 *a, const struct sha256 *b)
{
	bool first = memcmp(a->bytes, b->bytes, SHA256_SIZE) <= 0;
	struct sha256 pair[2] = {first ? *a : *b, first ? *b : *a};
	return sha256_of(pair, sizeof pair);
}

static const struct json *member(const struct json *object, const char *name)
{
	return object ? json_member(object, name) : NULL;
}

size_t proof_steps(const struct json *one, struct proof_step steps[PROOF_STEPS_MAX])
{
	size_t count = 0;
	const struct json *path = member(member(one, "proof"), "path");
	struct sha256 node;
	if (!path || !read_hash(member(member(one, "receipt"), "chain_hash"), &node))
		return 0;
	for (const struct json *list = path->first; list && count < PROOF_STEPS_MAX;
	     list = list->next) {
		struct proof_step *step = &steps[count++];
		step->other = node; /* the first list also contains the leaf */
		for (const struct json *hash = list->first; hash; hash = hash->next) {
			struct sha256 read;
			if (read_hash(hash, &read) && !sha256_equal(&read, &node))
				step->other = read;
		}
		node = step->joined = join(&node, &step->other);
	}
	return count;
}

/* ---- boxes ---- */

static void add_box(struct drawing *drawing, int left, int width, const char *kind,
                    const char *title, struct slice below)
{
	struct buf *out = drawing->out;
	struct slice cut = utf8_cut(below, (size_t)(width - 16) / DIGIT_WIDTH);
	buf_printf(out,
	           "<rect class=\"proof-box%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>"
	           "<text x=\"%d\" y=\"%d\">",
	           kind, left, drawing->y, width, BOX_HEIGHT, left + 8, drawing->y + 18);
	template_escape(out, slice_of(title), TEMPLATE_IN_TEXT);
	buf_printf(out, "</text><text class=\"proof-value\" x=\"%d\" y=\"%d\">", left + 8,
	           drawing->y + 35);
	template_escape(out, cut, TEMPLATE_IN_TEXT);
	buf_add_text(out, cut.size < below.size ? "…</text>" : "</text>");
}

/* Draws an arrow from the previous row to this one. */
static void add_arrow(struct drawing *drawing)
{
	int x = MAIN_WIDTH / 2, y = drawing->y;
	buf_printf(drawing->out, "<path class=\"proof-way\" d=\"M%d %dV%dM%d %dL%d %dL%d %d\"/>", x,
	           y - (ROW_HEIGHT - BOX_HEIGHT), y - 1, x - 4, y - 7, x, y - 1, x + 4, y - 7);
}

static void add_main(struct drawing *drawing, const char *kind, const char *title,
                     struct slice below)
{
	add_arrow(drawing);
	add_box(drawing, 1, MAIN_WIDTH, kind, title, below);
	drawing->y += ROW_HEIGHT;
}

static void short_hex(struct slice hash, size_t digits, char text[TEXT_SIZE])
{
	snprintf(text, TEXT_SIZE, "%.*s…", (int)(hash.size < digits ? hash.size : digits),
	         hash.size ? hash.data : "");
}

static struct slice text_of(const struct json *object, const char *name)
{
	struct slice text = slice_of("");
	if (object)
		(void)json_get_text(object, name, &text);
	return text;
}

/* Draws a box with the combined hash next to the box of its sibling. */
static void add_joined(struct drawing *drawing, const char *title, struct slice hash,
                       const char *side_title, struct slice side)
{
	char text[TEXT_SIZE];
	int y = drawing->y + BOX_HEIGHT / 2;
	short_hex(side, SIDE_DIGITS, text);
	add_box(drawing, SIDE_LEFT, SIDE_WIDTH, " proof-side", side_title, slice_of(text));
	buf_printf(drawing->out, "<path class=\"proof-way\" d=\"M%d %dH%dM%d %dL%d %dL%d %d\"/>",
	           SIDE_LEFT, y, MAIN_WIDTH + 2, MAIN_WIDTH + 8, y - 4, MAIN_WIDTH + 2, y,
	           MAIN_WIDTH + 8, y + 4);
	short_hex(hash, SHOWN_DIGITS, text);
	add_main(drawing, "", title, slice_of(text));
}

static void add_steps(struct drawing *drawing, const struct proof_step *steps, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char other[2 * SHA256_SIZE + 1], joined[2 * SHA256_SIZE + 1], text[TEXT_SIZE];
		size_t left_out = count - 2 * STEPS_SHOWN;
		if (count > 2 * STEPS_SHOWN + 1 && i == STEPS_SHOWN) {
			snprintf(text, sizeof text, "%s %zu", say(WORD_MORE, drawing->language), left_out);
			add_main(drawing, " proof-open", text, slice_of(""));
			i += left_out;
		}
		hex_encode(steps[i].other.bytes, SHA256_SIZE, other);
		hex_encode(steps[i].joined.bytes, SHA256_SIZE, joined);
		add_joined(drawing, say(i + 1 < count ? WORD_JOINED : WORD_ROOT, drawing->language),
		           slice_of(joined), say(WORD_WITH, drawing->language), slice_of(other));
	}
}

/* Draws a timestamp: its time, "2026-01-31 09:00:00 UTC", and the authority. A long name is
 * shortened in the box and complete in its title. */
static void add_stamp(struct drawing *drawing, enum word word, const struct json *stamp,
                      const char *time_member)
{
	char title[TEXT_SIZE];
	struct slice time = text_of(stamp, time_member), authority = text_of(stamp, "authority");
	snprintf(title, sizeof title, "%s", say(word, drawing->language));
	if (time.size > 19)
		snprintf(title, sizeof title, "%s · %.10s %.8s UTC", say(word, drawing->language),
		         time.data, time.data + 11);
	buf_add_text(drawing->out, "<g><title>");
	template_escape(drawing->out, authority, TEMPLATE_IN_TEXT);
	buf_add_text(drawing->out, "</title>");
	add_box(drawing, 1, WIDTH - 2, " proof-stamp", title, authority);
	buf_add_text(drawing->out, "</g>");
	drawing->y += ROW_HEIGHT;
}

static void add_stamps(struct drawing *drawing, const struct json *round, const struct json *seal)
{
	const struct json *second = member(seal, "second"), *renewals = member(seal, "renewals");
	add_arrow(drawing);
	add_stamp(drawing, WORD_STAMP, round, "sealed_at");
	if (second) {
		drawing->y -= ROW_HEIGHT - BOX_HEIGHT - TOGETHER; /* second timestamp of the same root */
		add_stamp(drawing, WORD_SECOND, second, "sealed_at");
	}
	for (const struct json *at = renewals ? renewals->first : NULL; at; at = at->next) {
		add_arrow(drawing);
		add_stamp(drawing, WORD_RENEWED, at, "stamped_at");
	}
}

static void add_all(struct drawing *drawing, const struct json *one)
{
	struct proof_step steps[PROOF_STEPS_MAX];
	const struct json *receipt = member(one, "receipt"), *proof = member(one, "proof");
	const struct json *round = member(proof, "round");
	bool held = !slice_is(text_of(receipt, "modality"), "hash_only");
	char text[TEXT_SIZE];
	short_hex(text_of(receipt, "hash"), SHOWN_DIGITS, text);
	add_box(drawing, 1, MAIN_WIDTH, "", say(held ? WORD_CONTENT : WORD_DIGEST, drawing->language),
	        slice_of(text));
	drawing->y += ROW_HEIGHT;
	add_joined(drawing, say(WORD_RECORD, drawing->language), text_of(receipt, "chain_hash"),
	           say(WORD_BEFORE, drawing->language), text_of(proof, "previous_chain_hash"));
	add_steps(drawing, steps, proof_steps(one, steps));
	if (!round) {
		bool test = slice_is(text_of(receipt, "mode"), "test");
		add_main(drawing, " proof-open", say(test ? WORD_TEST : WORD_WAITS, drawing->language),
		         slice_of(""));
		return;
	}
	add_stamps(drawing, round, member(one, "seal"));
}

int proof_picture(const struct json *one, enum language language, struct buf *out)
{
	BUF_AUTO struct buf boxes;
	struct drawing drawing = {.out = &boxes, .language = language, .y = 4};
	buf_init(&boxes, (size_t)256 * 1024);
	if (!member(one, "receipt"))
		return OK;
	add_all(&drawing, one);
	buf_printf(
		out,
		"<figure class=\"proof\"><svg role=\"img\" aria-labelledby=\"proof-t proof-d\""
		" viewBox=\"0 0 %d %d\"><title id=\"proof-t\">%s</title><desc id=\"proof-d\">%s</desc>",
		WIDTH, drawing.y - (ROW_HEIGHT - BOX_HEIGHT) + 4, say(WORD_TITLE, language),
		say(WORD_SUMMARY, language));
	buf_add(out, boxes.data, boxes.size);
	buf_printf(out, "</svg><figcaption>%s</figcaption></figure>", say(WORD_SUMMARY, language));
	return boxes.full ? ERR_NO_MEMORY : buf_check(out);
}
