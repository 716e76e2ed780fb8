/* Helpers of the tests of src/seal. */
#ifndef TESTS_SEAL_SUPPORT_H
#define TESTS_SEAL_SUPPORT_H

#include "testing.h"
#include "scratch.h"
#include "seal/signer.h"

/* A temporary directory of the test. */
extern char scratch[SCRATCH_MAX];
int scratch_begin(void **state);
int scratch_end(void **state);

/* Returns scratch/NAME in a static array that the next call overwrites. */
const char *scratch_path(const char *name);
void scratch_write(const char *name, struct slice content);
/* Reads a file of the scratch directory and replaces the content of `out`. */
void scratch_read(const char *name, struct buf *out);
/* Runs a shell command in the scratch directory, with its output in scratch/output; returns the
 * exit status. */
int scratch_run(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Starts a signer with development keys in scratch/signer. */
struct signer *development_signer(void);

#endif
