/* Shared by the files of src/jobs alone: one state and one run function for each kind of job. */
#ifndef JOBS_INTERNAL_H
#define JOBS_INTERNAL_H

#include "admin/readiness.h"
#include "evidence/seal_round.h"
#include "jobs/job_thread.h"
#include "jobs/jobs.h"
#include "jobs/keeper.h"
#include "seal/authority.h"

/* One account never holds all of them. */
#define ISSUER_COUNT 3
#define HOLDER_SIZE 512

/* ---- sealer.c ---- */
struct sealer {
	struct service *service;
	struct sealing sealing;
	char holder[HOLDER_SIZE];
	struct kept_lease lease;
	int64_t not_before_us; /* monotonic: after a failure, whoever wakes it */
	int64_t failures;      /* in a row */
	bool refused;          /* so ended the last pass */
	/* Behind this chain the next pass begins, since at it too many broken ones ended the last; 0:
	 * at the first. */
	int64_t behind_account, behind_chain;
};
int sealer_init(struct sealer *sealer, struct service *service, const char *node,
                struct keeper *keeper) MUST_CHECK;
void sealer_free(struct sealer *sealer);
job_thread_run_function sealer_run;

/* ---- issuer.c ---- */
struct issuer {
	struct service *service;
	struct keeper *keeper;
	char holder[HOLDER_SIZE]; /* of leases: the same after a restart */
	char node[HOLDER_SIZE];   /* what the holders of this node begin with */
	int64_t last_account;     /* whose turn it was */
	char directory[4096];     /* of working files, its own */
	bool looks_for_overdue;   /* one of them does */
	int64_t overdue_at_us;    /* monotonic: when to look next */
};
/* `directory` is that of all issuers. */
void issuer_init(struct issuer *issuer, struct service *service, const char *node,
                 const char *directory, int number, struct keeper *keeper);
job_thread_run_function issuer_run;

/* ---- renewer.c: evidence records and their renewals ---- */
struct renewer {
	struct service *service;
	char holder[HOLDER_SIZE];
	struct kept_lease lease;
	bool refused;            /* the last pass was */
	int64_t failures;        /* in a row */
	int64_t forgotten_at_us; /* by the monotonic clock: when to look for forgotten ones */
};
void renewer_init(struct renewer *renewer, struct service *service, const char *node,
                  struct keeper *keeper);
job_thread_run_function renewer_run;

/* ---- list_signer.c: signs the list of the signers ---- */
struct list_signer {
	struct service *service;
	char holder[HOLDER_SIZE];
	int64_t failures; /* in a row */
};
void list_signer_init(struct list_signer *list_signer, struct service *service, const char *node);
job_thread_run_function list_signer_run;

/* ---- topup.c: decides automatic top-ups and tries payments ---- */
#define TOPUP_COUNT 4 /* a provider that does not answer holds up to so many */
struct topup {
	struct service *service;
	char holder[HOLDER_SIZE]; /* of leases: the same after a restart */
	bool decides;             /* one of them does */
};
void topup_init(struct topup *topup, struct service *service, const char *node, int number);
job_thread_run_function topup_run;

/* ---- validation.c: which level signatures and timestamps can have ---- */
#define VALIDATION_TOLD_MAX (1 + AUTHORITIES_MAX)
struct validation_told {
	struct sha256 path; /* of what was looked at last; zeros: of nothing */
	int64_t next_us;    /* monotonic: when it is looked at again */
	struct sha256 said; /* digest of what was last said; zeros: nothing */
};
struct validation_teller {
	struct validation_told told[VALIDATION_TOLD_MAX];
};
/* To be called often. Says it in the log, of the signer and of each authority once it has given a
 * timestamp, when it is known and whenever it is not as before. Asks for what it has to know. */
void validation_tell(struct validation_teller *teller, const struct service *service,
                     const atomic_bool *stopping);

/* ---- mender.c: its context is the service ---- */
job_thread_run_function mender_run;

/* ---- watcher.c ---- */
#define WATCHER_THREADS 5
struct watcher {
	struct service *service;
	struct readiness told; /* by the last of them */
	/* Two ask the store, one looks at mounts, since any may hang; one tells the log. */
	struct job_thread *threads[WATCHER_THREADS];
};
int watcher_start(struct watcher *watcher, struct service *service, struct error *error) MUST_CHECK;
/* Ends the threads; also where they were not started. */
void watcher_stop(struct watcher *watcher);

/* ---- housekeeping.c ---- */
struct housekeeping {
	struct service *service;
	struct validation_teller teller;
	int64_t next_us; /* monotonic: what takes long is done again */
	struct keeper *keeper;
	char holder[HOLDER_SIZE];
};
job_thread_run_function housekeeping_run;

#endif
