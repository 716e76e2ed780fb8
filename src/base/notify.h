/* What a supervisor is told of this process, by the protocol of sd_notify(3): datagrams of
 * assignments to the socket that NOTIFY_SOCKET names, a path or, with @ first, an abstract name.
 * Without one nothing is said. Any thread may call; none waits for longer than a second. */
#ifndef BASE_NOTIFY_H
#define BASE_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

bool notify_is_heard(void);
/* It serves. `status` is one line for people. */
void notify_ready(const char *status);
void notify_status(const char *status);
/* It takes settings over; notify_ready ends that. */
void notify_reloading(void);
/* It ends; and lives, where that is waited for. */
void notify_stopping(bool watched);
/* It makes progress: what it is at may take so much longer, from now on. */
void notify_extend(int64_t more_us);
/* It lives. */
void notify_alive(void);
/* How often notify_alive is expected at least (WATCHDOG_USEC, where WATCHDOG_PID is this process or
 * none); 0: never. */
int64_t notify_watchdog_us(void);
/* What a variable of the supervisor says; 0: it is not there, or is no number above 0. */
int64_t notify_number(const char *variable);

#endif
