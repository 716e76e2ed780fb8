/* The plots of an account, from the documents that operations answer. */
#ifndef CONSOLE_ACCOUNT_PLOTS_H
#define CONSOLE_ACCOUNT_PLOTS_H

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

/* A picture of a template: a figure with the plot and its table. `data` is that of the page; the
 * answer of `account overview` is its member "state". "events": by day and channel; "credits": the
 * balance and when it runs out; "limits"; "deliveries", "delivery_delay"; "sealing". Nothing is
 * appended where there is nothing to show. */
int account_picture(const char *name, const struct json *data, enum language language,
                    struct buf *out) MUST_CHECK;

struct plot;
/* A figure: the title, the plot, and its table behind a word. */
int figure_draw(const struct plot *plot, struct buf *out) MUST_CHECK;

#endif
