/* The exact bytes of the shape, shared by the writer and the reader of zip.h. */
#ifndef ARCHIVE_ZIP_SHAPE_H
#define ARCHIVE_ZIP_SHAPE_H

#include "archive/zip.h"

#define ZIP_LOCAL_SIZE 30u
#define ZIP_CENTRAL_SIZE 46u

/* Returns whether a name consists of 1 to ZIP_NAME_MAX letters, digits and "._-/", without empty,
 * "." or ".." components. */
bool zip_name_allowed(struct slice name);
/* Writes the local header, which the name follows. */
void zip_local_header(const struct zip_entry *entry, uint8_t header[ZIP_LOCAL_SIZE]);
/* Writes the record of the central directory, which the name follows. */
void zip_central_header(const struct zip_entry *entry, uint8_t header[ZIP_CENTRAL_SIZE]);
void zip_end_record(uint32_t entries, uint64_t directory_size, uint64_t directory_offset,
                    uint8_t record[ZIP_END_SIZE]);

#endif
