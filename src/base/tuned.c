#include "base/tuned.h"

#ifdef CONSTANCIA_TUNED
#include <stdlib.h>
#include <string.h>

int64_t tuned(const char *name, int64_t usual)
{
	const size_t length = strlen(name);
	const char *at = getenv("TORTURE_SIZES");
	while (at) {
		if (strncmp(at, name, length) == 0 && at[length] == '=') {
			long long value = strtoll(at + length + 1, NULL, 10);
			return value > 0 ? value : usual;
		}
		at = strchr(at, ',');
		at += at != NULL;
	}
	return usual;
}
#else
int64_t tuned(const char *name, int64_t usual)
{
	return usual;
}
#endif

int64_t tuned_up_to(const char *name, int64_t most)
{
	const int64_t value = tuned(name, most);
	return value < most ? value : most;
}
