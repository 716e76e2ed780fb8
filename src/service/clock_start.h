/* Comparison of this machine's clock with a timestamp after each start. Without it, a wrong clock
 * would be used until the first sealing round. Live registrations are refused until the comparison
 * has an outcome, and while the two differ by more than seal.clock_bound in either direction. If no
 * authority responds, registrations continue, and the segments of these events record that
 * (seal/segment.h); the comparison is made as soon as an authority responds. Once the clock has
 * agreed, the rules of service/registration_clock.h apply.
 *
 * Thread safe, but only one thread at a time may ask and only one may decide. */
#ifndef SERVICE_CLOCK_START_H
#define SERVICE_CLOCK_START_H

#include "service/service.h"

/* Starts the comparison: live registrations are refused until it has an outcome. Without
 * authorities there is nothing to compare. Must be called before requests are accepted. */
void clock_start_begin(struct service *service);
/* Requests the time of each authority in turn until the clock agrees with one. Blocks on the
 * network. Must be called again after *ret_pause_us. Returns false if no request is needed now;
 * once the clock has agreed, none is ever needed. */
bool clock_start_query(struct service *service, const atomic_bool *stopping, int64_t *ret_pause_us);
/* Updates the outcome from the responses. To be called after clock_start_query and every two
 * seconds. Blocks on the store when the outcome is recorded there. */
void clock_start_decide(struct service *service);
/* Blocks until there is an outcome, at most `patience_us`. */
void clock_start_await(const struct service *service, int64_t patience_us);

/* ---- internal to src/service ---- */
/* Returns the estimated time for which live registrations are refused; 0: they are accepted. */
int64_t clock_start_refusal_us(const struct service *service);
/* Returns ERR_CLOCK with the reason while live registrations are refused. Returns OK while the
 * store is a read-only copy and nothing is compared yet. */
int clock_start_ready(const struct service *service, struct error *error) MUST_CHECK;
/* Records a time given to registrations. If the clock was not compared, seals have to report that
 * time. */
void clock_start_record_time(struct service *service, int64_t now_us);

#endif
