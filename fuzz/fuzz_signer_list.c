/* Lists of signers. An accepted list is written back unchanged. */
#include "fuzz.h"
#include "archive/signer_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ARENA_AUTO struct arena arena = {.limit = (size_t)64 << 20};
	BUF_AUTO struct buf again = {.limit = SIGNER_LIST_TEXT_MAX};
	struct slice text = slice_make((const char *)data, size);
	struct signer_list list;
	struct error error = {0};
	if (signer_list_read(&arena, text, &list, &error)) {
		require(error.cause[0], "a rejected list has a cause");
		return 0;
	}
	require(list.count > 0 && list.count <= SIGNER_LIST_ITEMS_MAX,
	        "the number is within its limits");
	signer_list_write(&list, &again);
	require(slice_equal(buf_slice(&again), text), "the list has its canonical form");
	for (size_t i = 0; i < list.count; i++) {
		require(signer_list_find(&list, &list.items[i].sha256) == &list.items[i],
		        "each certificate is listed once");
		(void)signer_list_judge(&list.items[i], list.issued_at_us);
	}
	require(signer_list_extends(&list, &list), "the list extends itself");
	return 0;
}
