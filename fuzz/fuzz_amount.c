/* Parsed amounts are written back unchanged. */
#include "fuzz.h"
#include "ledger/purchase_rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice given = slice_make((const char *)data, size);
	int64_t minor = -1;
	int64_t again = -1;
	char text[AMOUNT_TEXT_SIZE];
	if (!amount_parse(given, AMOUNT_TOTAL_MAX, &minor)) {
		require(minor == -1, "a rejected amount writes nothing");
		return 0;
	}
	require(minor >= 0 && minor <= AMOUNT_TOTAL_MAX, "the amount is within its limits");
	amount_format(minor, text);
	require(amount_parse(slice_of(text), AMOUNT_TOTAL_MAX, &again),
	        "the amount can be parsed again");
	require(minor == again, "the amount is the same");
	return 0;
}
