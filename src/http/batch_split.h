/* Divides the body of a batch into its items while the body arrives: the lines of newline-delimited
 * JSON, or the elements of a JSON array. It finds where an item begins and ends; whether the item
 * is valid JSON is decided by its parser. Pure. One thread at a time. */
#ifndef HTTP_BATCH_SPLIT_H
#define HTTP_BATCH_SPLIT_H

#include "base/buf.h"
#include "base/error.h"

enum batch_format { BATCH_LINES, BATCH_ARRAY };

/* Called for each item in order. `item` is valid during the call and may have white space after
 * it. An item that is longer than the limit is passed without its text (`data` NULL). A non-zero
 * result ends the division and is returned to the caller. */
typedef int batch_item_function(void *context, struct slice item, struct error *error);

struct batch_split {
	enum batch_format format;
	size_t item_max; /* bytes */
	batch_item_function *item;
	void *context;
	/* Private to batch_split.c: */
	struct buf partial; /* beginning of an item that continues in the next chunk */
	bool is_long;       /* that item is longer than the limit; `partial` is empty */
	int place;          /* in an array */
	unsigned depth;     /* of open objects and arrays inside the item */
	bool in_string, escaped;
	uint64_t position; /* bytes before the current chunk */
};

/* Starts the division. `budget` counts the memory of an unfinished item (at most item_max bytes) as
 * `kind`, and must outlive it. */
void batch_split_begin(struct batch_split *split, enum batch_format format, size_t item_max,
                       batch_item_function *item, void *context, struct budget *budget,
                       unsigned kind);
/* Divides the next chunk. Returns the result of `item`; ERR_VALIDATION if the array is malformed
 * between its items; ERR_NO_MEMORY. */
int batch_split_feed(struct batch_split *split, struct slice data, struct error *error) MUST_CHECK;
/* Ends the division: the last line needs no newline, an array must be complete. Returns as
 * batch_split_feed. */
int batch_split_end(struct batch_split *split, struct error *error) MUST_CHECK;
/* Frees the memory. Accepts a zeroed or ended one. */
void batch_split_free(struct batch_split *split);

#endif
