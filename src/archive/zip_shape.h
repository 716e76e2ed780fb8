/* What the writer and the reader of zip.h share: the exact bytes of the shape. */
#ifndef ARCHIVE_ZIP_SHAPE_H
#define ARCHIVE_ZIP_SHAPE_H

#include "archive/zip.h"

#define ZIP_LOCAL_SIZE 30u
#define ZIP_CENTRAL_SIZE 46u

/* Letters, digits and "._-/", 1 to ZIP_NAME_MAX of them; no empty, "." or ".." step. */
bool zip_name_allowed(struct slice name);
/* The local header without the name behind it. */
void zip_local_header(const struct zip_entry *entry, uint8_t header[ZIP_LOCAL_SIZE]);
/* The record of the central directory without the name behind it. */
void zip_central_header(const struct zip_entry *entry, uint8_t header[ZIP_CENTRAL_SIZE]);
void zip_end_record(uint32_t entries, uint64_t directory_size, uint64_t directory_offset,
                    uint8_t record[ZIP_END_SIZE]);

#endif
