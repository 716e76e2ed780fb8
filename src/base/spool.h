/* Queue of bytes that is read back only when complete, in the order written. Data beyond a small
 * memory buffer goes to an unnamed temporary file, which vanishes with the process. */
#ifndef BASE_SPOOL_H
#define BASE_SPOOL_H

#include "base/buf.h"
#include "base/error.h"

struct spool;

/* Creates a spool whose file is in `directory`. Returns NULL without memory. */
struct spool *spool_make(const char *directory);
/* ERR_IO, ERR_NO_SPACE. */
int spool_add(struct spool *spool, struct slice bytes, struct error *error) MUST_CHECK;
uint64_t spool_size(const struct spool *spool);
/* Passes all bytes to `take`, in chunks. A result other than 0 stops and is returned. */
int spool_give(struct spool *spool,
               int (*take)(void *context, const void *data, size_t size, struct error *error),
               void *context, struct error *error) MUST_CHECK;
/* Empties the spool for reuse; keeps the file. */
int spool_clear(struct spool *spool, struct error *error) MUST_CHECK;
void spool_free(struct spool *spool); /* NULL-safe */

#endif
