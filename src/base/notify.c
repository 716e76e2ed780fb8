#include "base/notify.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

#define MESSAGE_MAX 512

static socklen_t find_address(struct sockaddr_un *address)
{
	const char *name = getenv("NOTIFY_SOCKET");
	size_t size = name ? strlen(name) : 0;
	if (size < 2 || size >= sizeof address->sun_path || (*name != '/' && *name != '@'))
		return 0;
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(address->sun_path, name, size);
	if (*name == '@')
		address->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + (*name == '/'));
}

bool notify_is_enabled(void)
{
	struct sockaddr_un address;
	return find_address(&address) > 0;
}

/* Errors are ignored, because there is no remedy for a lost notification. */
static void send_message(const char *text)
{
	struct sockaddr_un address;
	const struct timeval longest = {.tv_sec = 1};
	socklen_t size = find_address(&address);
	int descriptor = size ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
	if (descriptor < 0)
		return;
	(void)setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest);
	(void)!sendto(descriptor, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address, size);
	close(descriptor);
}

void notify_ready(const char *status)
{
	char text[MESSAGE_MAX];
	snprintf(text, sizeof text, "READY=1\nMAINPID=%d\nSTATUS=%s", (int)getpid(), status);
	send_message(text);
}

void notify_status(const char *status)
{
	char text[MESSAGE_MAX];
	snprintf(text, sizeof text, "STATUS=%s", status);
	send_message(text);
}

void notify_reloading(void)
{
	char text[MESSAGE_MAX];
	snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, clock_monotonic_us());
	send_message(text);
}

void notify_stopping(bool watched)
{
	send_message(watched ? "STOPPING=1\nSTATUS=finishing requests in progress\nWATCHDOG=1"
	                     : "STOPPING=1\nSTATUS=finishing requests in progress");
}

void notify_extend(int64_t more_us)
{
	char text[MESSAGE_MAX];
	snprintf(text, sizeof text, "EXTEND_TIMEOUT_USEC=%" PRId64, more_us);
	send_message(text);
}

void notify_alive(void)
{
	send_message("WATCHDOG=1");
}

int64_t notify_number(const char *variable)
{
	const char *text = getenv(variable);
	char *end;
	long long number = text ? strtoll(text, &end, 10) : 0;
	return text && end != text && !*end && number > 0 ? number : 0;
}

int64_t notify_watchdog_us(void)
{
	const char *process = getenv("WATCHDOG_PID");
	if (process && notify_number("WATCHDOG_PID") != getpid())
		return 0;
	return notify_number("WATCHDOG_USEC");
}
