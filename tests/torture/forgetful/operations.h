/* The tree as a file system of the kernel's, and the moment at which its machine ends. */
#ifndef FORGETFUL_OPERATIONS_H
#define FORGETFUL_OPERATIONS_H

#define FUSE_USE_VERSION 35
#include <fuse_lowlevel.h>

#include "syncfs.h"
#include "tree.h"

enum power {
	POWER_ON,
	POWER_FAILING, /* nothing is answered: what happened until now is all that happened */
	POWER_OFF,     /* everything fails with EIO, so that who still waits can die */
};

struct file_system {
	struct tree tree;
	enum power power;
	fuse_req_t held;      /* the sync during which the power began to fail */
	uint64_t syncs;       /* number requested */
	uint64_t failed;      /* number that failed on purpose */
	uint64_t freeze_in;   /* the power fails in the Nth sync from now; 0: not */
	uint64_t fail_in;     /* the Nth sync from now fails */
	bool failure_forgets; /* what it was asked to keep is lost then */
};

/* For fuse_session_new, with a struct file_system as user data. */
extern const struct fuse_lowlevel_ops operations;

#endif
