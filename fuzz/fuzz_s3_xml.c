/* XML responses of an S3 service. Every reader either returns values within its limits or rejects
 * the text. */
#include "content/s3/s3_xml.h"
#include "fuzz.h"

#define ITEMS_MAX 16

static void check_listing(struct slice text)
{
	ARENA_AUTO struct arena arena = {.limit = (size_t)4 << 20};
	struct s3_listing listing;
	int result = s3_xml_listing(text, ITEMS_MAX, &arena, &listing, NULL);
	require(!result || result == ERR_IO || result == ERR_NO_MEMORY, "the result is a known error");
	if (result)
		return;
	require(listing.count <= ITEMS_MAX, "no more items than asked for");
	for (size_t i = 0; i < listing.count; i++)
		require(listing.items[i].key && strlen(listing.items[i].key) <= S3_XML_TEXT_MAX,
		        "every item has a key");
	require(!listing.truncated || listing.token || listing.key_marker,
	        "a truncated list has a cursor");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_make(data, size);
	struct s3_error error = {0};
	char value[32];
	if (s3_xml_error(text, &error) == 0)
		require(strlen(error.code) < sizeof error.code, "the code is terminated");
	if (s3_xml_upload_id(text, value, sizeof value, NULL) == 0)
		require(*value && strlen(value) < sizeof value, "the upload id is within its limits");
	if (s3_xml_completion(text, value, sizeof value, NULL) == 0)
		require(*value && strlen(value) < sizeof value, "the ETag is within its limits");
	check_listing(text);
	return 0;
}
