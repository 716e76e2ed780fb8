#include "console/qr.h"

#include <qrencode.h>

#define QUIET_ZONE 4 /* modules on each side */
#define TEXT_MAX 2000

/* Draws a rectangle for each run of dark modules in a row. */
static void draw_modules(const QRcode *code, struct buf *out)
{
	for (int row = 0; row < code->width; row++)
		for (int column = 0, run; column < code->width; column += run) {
			const unsigned char *module = &code->data[row * code->width + column];
			for (run = 1; column + run < code->width && ((module[run] ^ module[0]) & 1) == 0;)
				run++;
			if (module[0] & 1)
				buf_printf(out, "M%d %dh%dv1h-%dz", column, row, run, run);
		}
}

int qr_picture(const struct json *data, struct buf *out)
{
	struct slice url;
	char text[TEXT_MAX];
	if (!data || !json_get_text(data, "url", &url))
		return OK;
	if (url.size >= sizeof text)
		return ERR_INTERNAL;
	memcpy(text, url.data, url.size);
	text[url.size] = '\0';
	QRcode *code = QRcode_encodeString8bit(text, 0, QR_ECLEVEL_M);
	if (!code)
		return ERR_INTERNAL;
	int side = code->width + 2 * QUIET_ZONE;
	buf_printf(out,
	           "<svg class=\"qr\" viewBox=\"-%d -%d %d %d\" aria-hidden=\"true\""
	           " shape-rendering=\"crispEdges\"><rect x=\"-%d\" y=\"-%d\" width=\"%d\""
	           " height=\"%d\" fill=\"#fff\"/><path fill=\"#000\" d=\"",
	           QUIET_ZONE, QUIET_ZONE, side, side, QUIET_ZONE, QUIET_ZONE, side, side);
	draw_modules(code, out);
	buf_printf(out, "\"/></svg>");
	QRcode_free(code);
	return buf_check(out);
}
