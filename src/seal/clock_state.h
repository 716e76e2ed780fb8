/* State of the system clock according to the kernel (ntp_adjtime(3)). Thread safe. */
#ifndef SEAL_CLOCK_STATE_H
#define SEAL_CLOCK_STATE_H

#include <stdbool.h>
#include <stdint.h>

struct clock_state {
	bool synchronized;
	int64_t max_error_us; /* the kernel's bound; grows without synchronization up to 16 s */
	const char *source;   /* source of the state: "ntp_adjtime"; static text */
};

struct clock_state clock_state_read(void);

#endif
