#include "base/error.h"
#include "failing.h"
#include "trampoline.h"

int failing_code = ERR_UNAVAILABLE;

_Static_assert(ERR_NO_MEMORY == -18, "as parts.def has it");

#define CALL(kind, value, name) TRAMPOLINE(".globl", kind, value, name)
#include "parts.def"
