#include "http/libmicrohttpd.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/library.h"

#define ALL_FIXED(FUNCTION)                                                                        \
	FUNCTION(enum MHD_Result, MHD_add_connection,                                                  \
	         (struct MHD_Daemon * daemon, MHD_socket descriptor, const struct sockaddr *address,   \
	          socklen_t size),                                                                     \
	         (daemon, descriptor, address, size))                                                  \
	FUNCTION(enum MHD_Result, MHD_add_response_header,                                             \
	         (struct MHD_Response * response, const char *name, const char *value),                \
	         (response, name, value))                                                              \
	FUNCTION(struct MHD_Response *, MHD_create_response_from_buffer,                               \
	         (size_t size, void *data, enum MHD_ResponseMemoryMode mode), (size, data, mode))      \
	FUNCTION(struct MHD_Response *, MHD_create_response_from_callback,                             \
	         (uint64_t size, size_t block, MHD_ContentReaderCallback read, void *context,          \
	          MHD_ContentReaderFreeCallback end),                                                  \
	         (size, block, read, context, end))                                                    \
	FUNCTION(void, MHD_destroy_response, (struct MHD_Response * response), (response))             \
	FUNCTION(int, MHD_get_connection_values_n,                                                     \
	         (struct MHD_Connection * connection, enum MHD_ValueKind kind,                         \
	          MHD_KeyValueIteratorN iterator, void *context),                                      \
	         (connection, kind, iterator, context))                                                \
	FUNCTION(enum MHD_Result, MHD_get_timeout,                                                     \
	         (struct MHD_Daemon * daemon, MHD_UNSIGNED_LONG_LONG * ret_ms), (daemon, ret_ms))      \
	FUNCTION(const char *, MHD_get_version, (void), ())                                            \
	FUNCTION(enum MHD_Result, MHD_is_feature_supported, (enum MHD_FEATURE feature), (feature))     \
	FUNCTION(const char *, MHD_lookup_connection_value,                                            \
	         (struct MHD_Connection * connection, enum MHD_ValueKind kind, const char *name),      \
	         (connection, kind, name))                                                             \
	FUNCTION(enum MHD_Result, MHD_queue_response,                                                  \
	         (struct MHD_Connection * connection, unsigned status, struct MHD_Response *response), \
	         (connection, status, response))                                                       \
	FUNCTION(enum MHD_Result, MHD_set_connection_value,                                            \
	         (struct MHD_Connection * connection, enum MHD_ValueKind kind, const char *name,       \
	          const char *value),                                                                  \
	         (connection, kind, name, value))                                                      \
	FUNCTION(MHD_socket, MHD_quiesce_daemon, (struct MHD_Daemon * daemon), (daemon))               \
	FUNCTION(void, MHD_resume_connection, (struct MHD_Connection * connection), (connection))      \
	FUNCTION(enum MHD_Result, MHD_run, (struct MHD_Daemon * daemon), (daemon))                     \
	FUNCTION(void, MHD_stop_daemon, (struct MHD_Daemon * daemon), (daemon))                        \
	FUNCTION(void, MHD_suspend_connection, (struct MHD_Connection * connection), (connection))

#define ALL_VARIABLE(FUNCTION)                                                                     \
	FUNCTION(, MHD_get_connection_info, , )                                                        \
	FUNCTION(, MHD_get_daemon_info, , )                                                            \
	FUNCTION(, MHD_set_connection_option, , )                                                      \
	FUNCTION(, MHD_start_daemon_va, , )

LIBRARY_FUNCTIONS(ALL_FIXED)
ALL_VARIABLE(LIBRARY_POINTER)

/* The information types that we request take no further argument. */
const union MHD_ConnectionInfo *MHD_get_connection_info(struct MHD_Connection *connection,
                                                        enum MHD_ConnectionInfoType type, ...)
{
	return MHD_get_connection_info_loaded(connection, type);
}

const union MHD_DaemonInfo *MHD_get_daemon_info(struct MHD_Daemon *daemon,
                                                enum MHD_DaemonInfoType type, ...)
{
	return MHD_get_daemon_info_loaded(daemon, type);
}

enum MHD_Result MHD_set_connection_option(struct MHD_Connection *connection,
                                          enum MHD_CONNECTION_OPTION option, ...)
{
	va_list values;
	va_start(values, option);
	unsigned value = va_arg(values, unsigned);
	va_end(values);
	return MHD_set_connection_option_loaded(connection, option, value);
}

struct MHD_Daemon *MHD_start_daemon(unsigned flags, uint16_t port, MHD_AcceptPolicyCallback accept,
                                    void *accept_context, MHD_AccessHandlerCallback handle,
                                    void *handle_context, ...)
{
	va_list options;
	va_start(options, handle_context);
	struct MHD_Daemon *daemon = MHD_start_daemon_va_loaded(flags, port, accept, accept_context,
	                                                       handle, handle_context, options);
	va_end(options);
	return daemon;
}

static const struct library_function functions[] = {ALL_FIXED(LIBRARY_ROW)
                                                        ALL_VARIABLE(LIBRARY_ROW)};
static struct library libmicrohttpd = {LIBMICROHTTPD, functions,
                                       sizeof functions / sizeof *functions, false};

static bool is_lenient;

int libmicrohttpd_load(struct error *error)
{
	int result = library_load(&libmicrohttpd, error);
	if (!result)
		is_lenient = atoi(MHD_get_version()) < 1;
	return result;
}

bool libmicrohttpd_is_lenient(void)
{
	return is_lenient;
}
