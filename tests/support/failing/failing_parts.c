#include "base/error.h"
#include "failing.h"
#include "trampoline.h"

int failing_code = ERR_UNAVAILABLE;

_Static_assert(ERR_NO_MEMORY == -18, "as parts.def has it");

bool failing_is_fault(int result)
{
	return result == ERR_UNAVAILABLE || result == ERR_IO || result == ERR_NO_MEMORY ||
	       result == ERR_NO_SPACE || result == ERR_UNKNOWN_OUTCOME;
}

#define CALL(kind, value, name) TRAMPOLINE(".globl", kind, value, name)
#include "parts.def"
