/* Bytes that are kept until all of them are wanted, in the order in which they came: what does not
 * fit into a little memory goes to a file without a name, which is gone with the process. */
#ifndef BASE_SPOOL_H
#define BASE_SPOOL_H

#include "base/buf.h"
#include "base/error.h"

struct spool;

/* NULL without memory. `directory` is where the file goes. */
struct spool *spool_make(const char *directory);
/* ERR_IO, ERR_NO_SPACE. */
int spool_add(struct spool *spool, struct slice bytes, struct error *error) MUST_CHECK;
uint64_t spool_size(const struct spool *spool);
/* Gives all of them to `take`, piece by piece; not 0 ends that, and is answered. */
int spool_give(struct spool *spool,
               int (*take)(void *context, const void *data, size_t size, struct error *error),
               void *context, struct error *error) MUST_CHECK;
/* For others; the file stays, empty. */
int spool_clear(struct spool *spool, struct error *error) MUST_CHECK;
void spool_free(struct spool *spool); /* NULL-safe */

#endif
