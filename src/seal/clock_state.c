#include "seal/clock_state.h"

#include <sys/timex.h>

struct clock_state clock_state_read(void)
{
	struct timex timex = {0}; /* modes 0: only reads */
	int state = ntp_adjtime(&timex);

	return (struct clock_state){
		.synchronized = state != -1 && state != TIME_ERROR && !(timex.status & STA_UNSYNC),
		.max_error_us = timex.maxerror,
		.source = "ntp_adjtime",
	};
}
