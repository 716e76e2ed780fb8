/* Shared by the files of src/jobs: one state and one run function for each kind of job. */
#ifndef JOBS_INTERNAL_H
#define JOBS_INTERNAL_H

#include "admin/readiness.h"
#include "evidence/seal_round.h"
#include "jobs/job_thread.h"
#include "jobs/jobs.h"
#include "jobs/lease_renewer.h"
#include "seal/authority.h"

/* One account never occupies all issuers. */
#define ISSUER_COUNT 3
#define HOLDER_SIZE 512

/* ---- sealer.c ---- */
struct sealer {
	struct service *service;
	struct sealing sealing;
	char holder[HOLDER_SIZE];
	struct renewed_lease lease;
	int64_t not_before_us; /* monotonic; end of the back-off, also if woken */
	int64_t failures;      /* consecutive */
	bool refused;          /* the last pass ended with ERR_REFUSED */
	/* The next pass starts after this chain, because too many chains failed there in the last one;
	 * 0: at the first chain. */
	int64_t resume_account, resume_chain;
};
int sealer_init(struct sealer *sealer, struct service *service, const char *node,
                struct lease_renewer *lease_renewer) MUST_CHECK;
void sealer_free(struct sealer *sealer);
job_thread_run_function sealer_run;

/* ---- issuer.c ---- */
struct issuer {
	struct service *service;
	struct lease_renewer *lease_renewer;
	char holder[HOLDER_SIZE]; /* of leases; the same after a restart */
	char node[HOLDER_SIZE];   /* common prefix of the holders of this node */
	int64_t last_account;     /* account served last (round-robin) */
	char directory[4096];     /* private directory for working files */
	bool checks_overdue;      /* true for one issuer */
	int64_t overdue_at_us;    /* next check for overdue certifications; monotonic */
};
/* `directory` is the parent directory of all issuers. */
void issuer_init(struct issuer *issuer, struct service *service, const char *node,
                 const char *directory, int number, struct lease_renewer *lease_renewer);
job_thread_run_function issuer_run;

/* ---- renewer.c: evidence records and their renewals ---- */
struct renewer {
	struct service *service;
	char holder[HOLDER_SIZE];
	struct renewed_lease lease;
	bool refused;                /* the last pass ended with ERR_REFUSED */
	int64_t failures;            /* consecutive */
	int64_t missing_check_at_us; /* next search for certifications without a record; monotonic */
};
void renewer_init(struct renewer *renewer, struct service *service, const char *node,
                  struct lease_renewer *lease_renewer);
job_thread_run_function renewer_run;

/* ---- list_signer.c: signs the list of signers ---- */
struct list_signer {
	struct service *service;
	char holder[HOLDER_SIZE];
	int64_t failures; /* consecutive */
	bool has_keys;    /* the store has the public keys of this node */
	bool is_listed;   /* none of them was refused */
	bool is_proved;   /* its key of receipts signed the certificate below */
	struct sha256 certificate;
};
void list_signer_init(struct list_signer *list_signer, struct service *service, const char *node);
job_thread_run_function list_signer_run;

/* ---- topup_job.c: decides automatic top-ups and attempts payments ---- */
#define TOPUP_COUNT 4 /* number of threads that an unresponsive provider can block */
struct topup {
	struct service *service;
	char holder[HOLDER_SIZE]; /* of leases; the same after a restart */
	bool decides;             /* true for one thread */
};
void topup_init(struct topup *topup, struct service *service, const char *node, int number);
job_thread_run_function topup_run;

/* ---- validation.c: achievable levels of signatures and timestamps ---- */
#define VALIDATION_LOGGED_MAX SERVICE_PATHS
struct validation_log_state {
	struct sha256 path; /* digest of the path checked last; zeros: none */
	int64_t next_us;    /* next check; monotonic */
	struct sha256 said; /* digest of the last log message; zeros: none */
};
struct validation_logger {
	struct validation_log_state logged[VALIDATION_LOGGED_MAX];
};
/* To be called frequently. Logs the achievable level of the signer, and of each authority once it
 * has issued a timestamp, when it becomes known and whenever it changes, and sets
 * service->path_states. Fetches the revocation data for that. */
void validation_log_levels(struct validation_logger *level_logger, struct service *service,
                           const atomic_bool *stopping);

/* ---- request_logger.c ---- */
struct request_logger {
	struct service *service;
	bool failing; /* the last rows were not written */
};
job_thread_run_function request_logger_run;

/* ---- index_repairer.c: its context is the service ---- */
job_thread_run_function index_repairer_run;

/* ---- digest_indexer.c: builds the index of digests ---- */
struct digest_indexer {
	struct service *service;
	char holder[HOLDER_SIZE];
	int64_t lease_until_us; /* monotonic; the lease need not be renewed before */
};
void digest_indexer_init(struct digest_indexer *indexer, struct service *service, const char *node);
job_thread_run_function digest_indexer_run;

/* ---- log_publishing.c: checkpoints of the log of segments ---- */
struct log_publisher;
struct log_publishing {
	struct service *service;
	struct log_publisher *publisher;
	char holder[HOLDER_SIZE];
	struct renewed_lease lease;
	int64_t failures;       /* consecutive */
	int64_t waits_since_us; /* monotonic; 0: nothing waits */
};
int log_publishing_init(struct log_publishing *publishing, struct service *service,
                        const char *node, struct lease_renewer *lease_renewer, struct error *error)
	MUST_CHECK;
void log_publishing_free(struct log_publishing *publishing);
job_thread_run_function log_publishing_run;

/* ---- watcher.c ---- */
#define WATCHER_THREADS 5
struct watcher {
	struct service *service;
	struct readiness logged; /* last logged readiness, of the logging thread */
	/* Separate threads, because any check may hang: two check the store, one the disks, one
	 * logs. */
	struct job_thread *threads[WATCHER_THREADS];
};
int watcher_start(struct watcher *watcher, struct service *service, struct error *error) MUST_CHECK;
/* Ends the threads; also if they were not started. */
void watcher_stop(struct watcher *watcher);

/* ---- housekeeping.c ---- */
struct housekeeping {
	struct service *service;
	struct validation_logger level_logger;
	int64_t next_us; /* next run of the long tasks; monotonic */
	struct lease_renewer *lease_renewer;
	char holder[HOLDER_SIZE];
};
job_thread_run_function housekeeping_run;

#endif
