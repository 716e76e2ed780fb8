/* The plots of an account, drawn from the JSON answers of operations. */
#ifndef CONSOLE_ACCOUNT_PLOTS_H
#define CONSOLE_ACCOUNT_PLOTS_H

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

/* Draws a picture of a template: a figure with the plot and its table. `data` is the data of the
 * page. From its member "state", the answer of `account overview`: "events", by day and channel;
 * "credits", the balance and the forecast of its end; "limits", their use. Also the pictures of
 * billing_plots.h and, as "proof", that of proof_picture.h. Appends nothing if there is no data. */
int account_picture(const char *name, const struct json *data, enum language language,
                    struct buf *out) MUST_CHECK;

struct plot;
/* Draws a figure: the title, the plot, and its table in a disclosure element. */
int figure_draw(const struct plot *plot, struct buf *out) MUST_CHECK;

#endif
