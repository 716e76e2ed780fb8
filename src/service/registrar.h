/* The sequencers: each a thread that takes whatever waits as one batch, has it decided and written
 * in one durable transaction, and gives every waiting request its own outcome. A batch grows with
 * the load by itself; a lone client waits for the end of the turn of the polling thread that it
 * came in, one commit, and nothing else. An account's requests all go to one sequencer; how many
 * there are, the store says. */
#ifndef SERVICE_REGISTRAR_H
#define SERVICE_REGISTRAR_H

#include "service/service.h"

int registrar_start(struct service *service, struct registrar **ret, struct error *error)
	MUST_CHECK;
/* Takes nothing new, answers what waits, ends the threads. NULL-safe. */
void registrar_stop(struct registrar *registrar);
void registrar_read_gauges(struct registrar *registrar, struct gauges *ret);

#endif
