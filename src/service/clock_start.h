/* The comparison of this machine's clock with a timestamp, which each start begins: a clock that is
 * wrong before the first round would be believed until then. Until the comparison has an outcome,
 * and while the two differ by more than seal.clock_bound, either way, live registrations are
 * refused. Where no authority answers they go on, and the segments of what is registered meanwhile
 * say so (seal/segment.h); the comparison is made as soon as one does. Once the clock agreed, the
 * rules of service/clock.h remain.
 *
 * Thread safe, but that one thread at a time asks and one decides. */
#ifndef SERVICE_CLOCK_START_H
#define SERVICE_CLOCK_START_H

#include "service/service.h"

/* Nothing is registered live until it has an outcome; without authorities there is nothing to
 * compare. Before requests come. */
void clock_start_begin(struct service *service);
/* Asks the authorities for their time, one after the other, until the clock agrees with one. Waits
 * for the network. After *ret_pause_us it is to be called again. False: nothing is to be asked now,
 * and once the clock agreed never again. */
bool clock_start_ask(struct service *service, const atomic_bool *stopping, int64_t *ret_pause_us);
/* Decides by what is known: to be called when somebody has asked, and every two seconds. Waits for
 * the store where the outcome is to be kept. */
void clock_start_decide(struct service *service);
/* Waits for an outcome, so long at most. */
void clock_start_await(const struct service *service, int64_t patience_us);

/* ---- inside src/service only ---- */
/* About how long live registrations are refused for; 0: they are not. */
int64_t clock_start_refuses_us(const struct service *service);
/* ERR_CLOCK while it is refused, with the reason; OK also while the store is quiet, and nothing is
 * compared yet. */
int clock_start_ready(const struct service *service, struct error *error) MUST_CHECK;
/* A time that registrations are given, which may have to be told of as one of a clock that was not
 * compared. */
void clock_start_note(struct service *service, int64_t now_us);

#endif
