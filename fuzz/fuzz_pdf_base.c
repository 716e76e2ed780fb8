/* A file accepted as an unsigned report provides the data for signing, with positions within the
 * file. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "report/pdf_base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pdf_base base;
	int file = memfd_create("base", MFD_CLOEXEC);
	require(file >= 0 && write(file, data, size) == (ssize_t)size, "the file is written");
	int result = pdf_base_read(file, &base, NULL);
	if (!result) {
		require(base.size_bytes == (int64_t)size, "the size is that of the file");
		require(base.cross_reference_at > 0 && base.cross_reference_at < base.size_bytes,
		        "the table is within the file");
		require(base.catalog_id > 0 && base.catalog_id < base.next_id, "the catalog is an object");
		require(base.page_id > 0 && base.page_id < base.next_id, "the page is an object");
		require(base.info_id >= 0 && base.info_id < base.next_id,
		        "the information dictionary is an object");
		require(base.catalog.size <= size && base.page.size <= size + strlen(" /Annots [ "),
		        "the dictionaries are from the file");
		require(strlen(base.first_id) == PDF_IDENTIFIER_DIGITS, "the identifier is complete");
	}
	pdf_base_free(&base);
	close(file);
	return 0;
}
