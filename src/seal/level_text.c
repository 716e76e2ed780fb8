/* Separate from level.c, so that the report renderer does not link the code that evaluates and
 * fetches revocation data. */
#include <string.h>

#include "seal/level.h"

static const char *const texts[] = {"B", "T", "LT", "LTA"};

const char *level_text(enum level level)
{
	return texts[level];
}

bool level_parse(const char *text, enum level *ret_level)
{
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (strcmp(text, texts[i]) == 0) {
			*ret_level = (enum level)i;
			return true;
		}
	return false;
}
