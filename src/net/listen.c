#include "net/listen.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/notify.h"

#define BACKLOG 1024
#define FIRST_HANDED_OVER 3
#define HANDED_OVER_MAX 64

/* Parses "127.0.0.1:8080" or "[::1]:8080". */
static bool parse_listen(const char *text, struct sockaddr_storage *ret, socklen_t *ret_size)
{
	char host[64];
	const char *colon = strrchr(text, ':');
	if (!colon || !isdigit((unsigned char)colon[1]) || (size_t)(colon - text) >= sizeof host)
		return false;
	char *end;
	unsigned long port = strtoul(colon + 1, &end, 10);
	if (*end || port > 65535)
		return false;
	bool bracketed = text[0] == '[' && colon > text + 1 && colon[-1] == ']';
	snprintf(host, sizeof host, "%.*s", (int)(colon - text) - (bracketed ? 2 : 0),
	         text + bracketed);
	memset(ret, 0, sizeof *ret);
	struct sockaddr_in *four = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;
	if (!bracketed && inet_pton(AF_INET, host, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons((uint16_t)port);
		*ret_size = sizeof *four;
		return true;
	}
	if (!bracketed || inet_pton(AF_INET6, host, &six->sin6_addr) != 1)
		return false;
	six->sin6_family = AF_INET6;
	six->sin6_port = htons((uint16_t)port);
	*ret_size = sizeof *six;
	return true;
}

static uint16_t port_of(const struct sockaddr_storage *address)
{
	return ntohs(address->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)address)->sin6_port
	                                            : ((const struct sockaddr_in *)address)->sin_port);
}

static bool is_loopback(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
	const struct in6_addr *bytes = &six->sin6_addr;
	if (address->ss_family == AF_INET)
		return ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return address->ss_family == AF_INET6 &&
	       (IN6_IS_ADDR_LOOPBACK(bytes) ||
	        (IN6_IS_ADDR_V4MAPPED(bytes) && bytes->s6_addr[12] == IN_LOOPBACKNET));
}

bool listen_is_loopback(const char *text)
{
	struct sockaddr_storage address;
	socklen_t size;
	return parse_listen(text, &address, &size) && is_loopback(&address);
}

bool listen_is_bound_to_loopback(int descriptor)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof address;
	return getsockname(descriptor, (struct sockaddr *)&address, &size) == 0 &&
	       is_loopback(&address);
}

int listen_port(const char *text)
{
	struct sockaddr_storage address;
	socklen_t size;
	return parse_listen(text, &address, &size) ? port_of(&address) : -1;
}

static bool is_any(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET6
	           ? IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)address)->sin6_addr)
	           : !((const struct sockaddr_in *)address)->sin_addr.s_addr;
}

/* A socket at [::] accepts IPv4 connections as well. */
static bool covers(const struct sockaddr_storage *one, const struct sockaddr_storage *other)
{
	return is_any(one) && (one->ss_family == AF_INET6 || other->ss_family == AF_INET);
}

static bool same_host(const struct sockaddr_storage *one, const struct sockaddr_storage *other)
{
	if (one->ss_family != other->ss_family)
		return false;
	if (one->ss_family == AF_INET)
		return ((const struct sockaddr_in *)one)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)other)->sin_addr.s_addr;
	return memcmp(&((const struct sockaddr_in6 *)one)->sin6_addr,
	              &((const struct sockaddr_in6 *)other)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

bool listen_conflicts(const char *one, const char *other)
{
	struct sockaddr_storage first, second;
	socklen_t size;
	return parse_listen(one, &first, &size) && parse_listen(other, &second, &size) &&
	       port_of(&first) && port_of(&first) == port_of(&second) &&
	       (covers(&first, &second) || covers(&second, &first) || same_host(&first, &second));
}

/* Returns what to do after the failure of a bind or listen; empty: the reason says it. */
static const char *listen_remedy(int number)
{
	switch (number) {
	case EADDRINUSE: return "; 'ss -ltnp' shows the program that uses it";
	case EADDRNOTAVAIL: return "; no interface of this machine has the address ('ip address')";
	case EACCES: return "; use a port above 1023, or a socket unit of systemd";
	default: return "";
	}
}

static int listen_failed(const char *text, struct error *error)
{
	int number = errno;
	return error_cause(error, ERR_IO, "listening on %s: %s%s", text, strerror(number),
	                   listen_remedy(number));
}

/* Creates a socket that is bound to the address and not listening. */
static int bind_to(const char *setting, const char *text, int *ret_descriptor, struct error *error)
{
	struct sockaddr_storage address;
	socklen_t size;
	if (!parse_listen(text, &address, &size))
		return error_set(error, ERR_VALIDATION, MSG_HTTP_LISTEN, setting, NULL);
	DESCRIPTOR_AUTO int descriptor =
		socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1;
	if (descriptor < 0 || setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
	    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0 ||
	    bind(descriptor, (struct sockaddr *)&address, size) < 0)
		return listen_failed(text, error);
	*ret_descriptor = descriptor_take(&descriptor);
	return OK;
}

static int listen_at(const char *setting, const char *text, int *ret_descriptor, uint16_t *ret_port,
                     struct error *error)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof address;
	DESCRIPTOR_AUTO int descriptor = -1;
	int result = bind_to(setting, text, &descriptor, error);
	if (result)
		return result;
	if (listen(descriptor, BACKLOG) < 0 ||
	    getsockname(descriptor, (struct sockaddr *)&address, &size) < 0)
		return listen_failed(text, error);
	*ret_descriptor = descriptor_take(&descriptor);
	*ret_port = port_of(&address);
	return OK;
}

int listen_check(const char *setting, const char *text, struct error *error)
{
	DESCRIPTOR_AUTO int descriptor = -1;
	return bind_to(setting, text, &descriptor, error);
}

/* ---- sockets of the supervisor, by the protocol of sd_listen_fds(3) ---- */

/* Returns the passed socket of that name; -1: none. */
static int find_passed_socket(const char *name)
{
	const char *names = getenv("LISTEN_FDNAMES");
	int64_t count = notify_number("LISTEN_PID") == getpid() ? notify_number("LISTEN_FDS") : 0;
	for (int i = 0; names && i < count && i < HANDED_OVER_MAX; i++) {
		size_t size = strcspn(names, ":");
		if (size == strlen(name) && memcmp(names, name, size) == 0)
			return FIRST_HANDED_OVER + i;
		names += size + (names[size] == ':');
	}
	return -1;
}

bool listen_is_inherited(const char *name)
{
	return find_passed_socket(name) >= 0;
}

static bool is_listening(int descriptor, struct sockaddr_storage *ret)
{
	int listens = 0;
	socklen_t size = sizeof listens, address_size = sizeof *ret;
	return getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens &&
	       getsockname(descriptor, (struct sockaddr *)ret, &address_size) == 0 &&
	       (ret->ss_family == AF_INET || ret->ss_family == AF_INET6);
}

static int take_over(const char *name, int descriptor, int *ret_descriptor, uint16_t *ret_port,
                     struct error *error)
{
	struct sockaddr_storage address = {0};
	int on = 1;
	int flags = fcntl(descriptor, F_GETFL);
	if (flags < 0 || !is_listening(descriptor, &address) ||
	    fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    fcntl(descriptor, F_SETFD, FD_CLOEXEC) < 0 ||
	    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
		return error_cause(error, ERR_VALIDATION,
		                   "the socket '%s' passed by the supervisor is not a listening TCP socket",
		                   name);
	*ret_descriptor = descriptor;
	*ret_port = port_of(&address);
	return 0;
}

int listen_on(const char *setting, const char *text, const char *name, int *ret_descriptor,
              uint16_t *ret_port, struct error *error)
{
	int descriptor = find_passed_socket(name);
	if (descriptor >= 0)
		return take_over(name, descriptor, ret_descriptor, ret_port, error);
	return listen_at(setting, text, ret_descriptor, ret_port, error);
}
