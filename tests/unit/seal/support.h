/* What the tests of src/seal share. */
#ifndef TESTS_SEAL_SUPPORT_H
#define TESTS_SEAL_SUPPORT_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "scratch.h"
#include "seal/signer.h"

/* A directory of the test's own. */
extern char scratch[SCRATCH_MAX];
int scratch_begin(void **state);
int scratch_end(void **state);

/* scratch/NAME, in a static array that the next call overwrites. */
const char *scratch_path(const char *name);
void scratch_write(const char *name, struct slice content);
/* Replaces out's content. */
void scratch_read(const char *name, struct buf *out);
/* Runs a shell command in the scratch directory, its output to scratch/output; the exit status. */
int scratch_run(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A signer with development keys in scratch/signer. */
struct signer *development_signer(void);

#endif
