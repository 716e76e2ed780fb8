#include "archive/zip_shape.h"

#define ZIP_DATE 0x0021u /* 1980-01-01 */
#define ZIP_VERSION 10u  /* version needed to extract: stored entries only */
#define ZIP_UNIX 3u
#define ZIP_FILE_MODE 0100644u

static uint8_t *put16(uint8_t *to, uint32_t value)
{
	*to++ = (uint8_t)value;
	*to++ = (uint8_t)(value >> 8);
	return to;
}

static uint8_t *put32(uint8_t *to, uint64_t value)
{
	to = put16(to, (uint32_t)value & 0xffff);
	return put16(to, (uint32_t)(value >> 16) & 0xffff);
}

bool zip_name_allowed(struct slice name)
{
	if (name.size == 0 || name.size > ZIP_NAME_MAX)
		return false;
	size_t step = 0; /* beginning of the current path component */
	for (size_t i = 0; i <= name.size; i++) {
		if (i == name.size || name.data[i] == '/') {
			struct slice part = slice_make(name.data + step, i - step);
			if (part.size == 0 || slice_is(part, ".") || slice_is(part, ".."))
				return false;
			step = i + 1;
			continue;
		}
		char c = name.data[i];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '.' || c == '_' || c == '-'))
			return false;
	}
	return true;
}

/* Writes the fields from "version needed" to the length of the extra field, which both headers
 * have. */
static uint8_t *put_common(uint8_t *to, const struct zip_entry *entry)
{
	to = put16(to, ZIP_VERSION);
	to = put16(to, 0); /* flags */
	to = put16(to, 0); /* method: stored */
	to = put16(to, 0); /* time */
	to = put16(to, ZIP_DATE);
	to = put32(to, entry->crc);
	to = put32(to, entry->size);
	to = put32(to, entry->size);
	to = put16(to, (uint32_t)entry->name.size);
	return put16(to, 0); /* extra field */
}

void zip_local_header(const struct zip_entry *entry, uint8_t header[ZIP_LOCAL_SIZE])
{
	put_common(put32(header, 0x04034b50), entry);
}

void zip_central_header(const struct zip_entry *entry, uint8_t header[ZIP_CENTRAL_SIZE])
{
	uint8_t *to = put32(header, 0x02014b50);
	to = put16(to, ZIP_UNIX << 8 | ZIP_VERSION);
	to = put_common(to, entry);
	to = put16(to, 0); /* comment */
	to = put16(to, 0); /* disk */
	to = put16(to, 0); /* internal attributes */
	to = put32(to, (uint64_t)ZIP_FILE_MODE << 16);
	put32(to, entry->offset - entry->name.size - ZIP_LOCAL_SIZE);
}

void zip_end_record(uint32_t entries, uint64_t directory_size, uint64_t directory_offset,
                    uint8_t record[ZIP_END_SIZE])
{
	uint8_t *to = put32(record, 0x06054b50);
	to = put32(to, 0); /* disks */
	to = put16(to, entries);
	to = put16(to, entries);
	to = put32(to, directory_size);
	to = put32(to, directory_offset);
	put16(to, 0); /* comment */
}
