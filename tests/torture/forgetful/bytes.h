/* The bytes of a file, twice: as they are seen, and as they would be found after a power cut.
 *
 * Both are arrays of pages that they share until one of them is written. A page that was written
 * since the last sync is dirty. Nothing here fails but for want of memory, which ends it. */
#ifndef FORGETFUL_BYTES_H
#define FORGETFUL_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "choice.h"

#define PAGE_SIZE ((size_t)4096)

struct page;

struct bytes {
	struct page **visible; /* NULL: zeros */
	struct page **durable;
	uint8_t *dirty;
	size_t page_count; /* of each of the arrays */
	uint64_t visible_size;
	uint64_t durable_size;
};

/* What a cut did to written pages. */
struct loss {
	uint64_t kept;
	uint64_t torn;
	uint64_t lost;
};

void bytes_free(struct bytes *bytes);
/* How many bytes were read: fewer than asked for at the end of the file. */
size_t bytes_read(const struct bytes *bytes, uint64_t offset, void *data, size_t size);
void bytes_write(struct bytes *bytes, uint64_t offset, const void *data, size_t size);
void bytes_resize(struct bytes *bytes, uint64_t size);

/* Makes durable what is seen. */
void bytes_sync(struct bytes *bytes);
/* As the kernel does after a failed sync: what is dirty stays to be seen, and no later sync writes
 * it. */
void bytes_forget_dirty(struct bytes *bytes);
/* Makes some dirty page durable, as a kernel may at any time. */
void bytes_write_back(struct bytes *bytes, struct choice *choice);

/* What is found after a cut: the durable pages, and of the dirty ones each as chosen, or in part,
 * where parts are whole sectors of `sector_size` bytes. */
struct bytes bytes_after_cut(const struct bytes *bytes, struct choice *choice, size_t sector_size,
                             struct loss *loss);

#endif
