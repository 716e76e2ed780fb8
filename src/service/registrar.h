/* The sequencers, which implement group commit. Each is a thread that takes the waiting
 * registrations as one batch, processes them in one durable transaction, and returns each request
 * its own result. The batch size grows with the load. A single client waits only for the end of the
 * poll iteration in which its request arrived and for one commit. All requests of an account go to
 * the same sequencer. The store determines the number of sequencers. */
#ifndef SERVICE_REGISTRAR_H
#define SERVICE_REGISTRAR_H

#include "service/service.h"

int registrar_start(struct service *service, struct registrar **ret, struct error *error)
	MUST_CHECK;
/* Rejects new registrations, processes the waiting ones and ends the threads. NULL-safe. */
void registrar_stop(struct registrar *registrar);
void registrar_read_gauges(struct registrar *registrar, struct gauges *ret);

#endif
