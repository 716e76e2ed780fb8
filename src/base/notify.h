/* Service notifications to a supervisor by the protocol of sd_notify(3): datagrams of assignments
 * to the socket in NOTIFY_SOCKET, a path or, with a leading @, an abstract name. Without that
 * variable nothing is sent. Any thread may call; no call blocks for more than a second. */
#ifndef BASE_NOTIFY_H
#define BASE_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

bool notify_is_enabled(void);
/* Reports that the service is ready. `status` is one line of text for users. */
void notify_ready(const char *status);
void notify_status(const char *status);
/* Reports that settings are being reloaded; notify_ready ends this state. */
void notify_reloading(void);
/* Reports that the service is stopping. `watched`: also resets the watchdog. */
void notify_stopping(bool watched);
/* Extends the timeout of the current operation to `more_us` from now. */
void notify_extend(int64_t more_us);
/* Resets the watchdog. */
void notify_alive(void);
/* Returns the watchdog interval (WATCHDOG_USEC, if WATCHDOG_PID is this process or unset). 0: no
 * watchdog. */
int64_t notify_watchdog_us(void);
/* Returns the number in an environment variable of the supervisor; 0 if it is unset or not a
 * positive number. */
int64_t notify_number(const char *variable);

#endif
