#include "proof/archive_lines.h"
const char archive_readme[] = "x\n";
const char archive_leeme[] = "x\n";
