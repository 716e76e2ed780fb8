/* The check of reports returns either valid or not valid. A valid report has a binding to an
 * archive, and is no longer valid with one more byte. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "report/pdf_check.h"

static void require_binding(const struct pdf_binding *binding)
{
	require(memchr(binding->certification_id, '\0', PDF_TEXT_SIZE) != NULL &&
	            memchr(binding->verification_code, '\0', PDF_TEXT_SIZE) != NULL &&
	            memchr(binding->channel_id, '\0', PDF_TEXT_SIZE) != NULL,
	        "texts are terminated");
	require(binding->event_count == binding->last_sequence - binding->first_sequence + 1,
	        "the range is consistent");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice file = slice_make(data, size);
	struct pdf_binding binding;
	struct pdf_facts facts;
	int result = pdf_read_binding(file, &binding, NULL);
	require(!result || result == ERR_INVALID_EVIDENCE, "a binding is accepted or rejected");
	if (!result)
		require_binding(&binding);
	result = pdf_check(file, &(struct trust_roots){0}, &facts, NULL);
	require(!result || result == ERR_INVALID_EVIDENCE, "a report is valid or not valid");
	if (result)
		return 0;
	require_binding(&facts.binding);
	char *longer = malloc(size + 1);
	if (!longer)
		return 0;
	memcpy(longer, data, size);
	longer[size] = '\n';
	require(pdf_check(slice_make(longer, size + 1), &(struct trust_roots){0}, &facts, NULL) ==
	            ERR_INVALID_EVIDENCE,
	        "every byte is covered");
	free(longer);
	return 0;
}
