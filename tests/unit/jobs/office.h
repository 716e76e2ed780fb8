/* A whole service without HTTP, with the embedded authority, for tests of the jobs. */
#ifndef OFFICE_H
#define OFFICE_H

#include "jobs/jobs.h"
#include "sample.h"
#include "store/certifications/certifications.h"

struct office {
	struct sample sample;
	struct settings settings;
	struct service service;
	struct jobs *jobs; /* NULL while stopped */
	struct key_identity live_key, test_key;
};

/* Once, before any thread. */
int office_start_signer(void **state);
int office_stop_signer(void **state);

/* A service with a channel; its jobs do not run yet. */
void office_open(struct office *office, enum modality modality, int64_t credits);
void office_close(struct office *office);
/* The keys are those of the sample's channel. */
void office_use_channel(struct office *office);
void office_start_jobs(struct office *office);
void office_stop_jobs(struct office *office);
/* An authority that never answers, and the embedded one again. Jobs must not run. */
void office_break_authority(struct office *office);
void office_mend_authority(struct office *office);

/* Registers one live event whose content is an object of its own. */
void office_register_object(struct office *office, struct slice content, const char *file_name,
                            char ret_object[CONTENT_NAME_MAX]);
/* Waits until `sequence` of the live chain is sealed. */
void office_await_seal(struct office *office, int64_t sequence);
/* Requests a range of sequences; the identifier of the certification. */
void office_request(struct office *office, enum mode mode, int64_t first, int64_t last,
                    char ret_id[ID_SIZE]);
/* Waits until it is over. */
struct certification office_await(struct office *office, enum mode mode, const char *id);
/* Copies its documents into DIRECTORY/ID and gives them to the verifier: its exit code. What it
 * finds is printed. */
int office_verify(struct office *office, const struct certification *certification);

#endif
