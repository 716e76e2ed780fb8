/* The functions of libpq, which is loaded when a PostgreSQL database is opened. */
#include "base/library.h"
#include "db/postgres/postgres_internal.h"

#define ALL(FUNCTION)                                                                              \
	FUNCTION(int, PQcancel, (PGcancel * cancel, char *why, int size), (cancel, why, size))         \
	FUNCTION(void, PQclear, (PGresult * result), (result))                                         \
	FUNCTION(char *, PQcmdStatus, (PGresult * result), (result))                                   \
	FUNCTION(char *, PQcmdTuples, (PGresult * result), (result))                                   \
	FUNCTION(PGconn *, PQconnectdbParams,                                                          \
	         (const char *const *keywords, const char *const *values, int expand),                 \
	         (keywords, values, expand))                                                           \
	FUNCTION(void, PQconninfoFree, (PQconninfoOption * options), (options))                        \
	FUNCTION(PQconninfoOption *, PQconninfoParse, (const char *text, char **ret_why),              \
	         (text, ret_why))                                                                      \
	FUNCTION(int, PQconsumeInput, (PGconn * pg), (pg))                                             \
	FUNCTION(int, PQenterPipelineMode, (PGconn * pg), (pg))                                        \
	FUNCTION(char *, PQerrorMessage, (const PGconn *pg), (pg))                                     \
	FUNCTION(PGresult *, PQexec, (PGconn * pg, const char *sql), (pg, sql))                        \
	FUNCTION(int, PQexitPipelineMode, (PGconn * pg), (pg))                                         \
	FUNCTION(void, PQfinish, (PGconn * pg), (pg))                                                  \
	FUNCTION(int, PQflush, (PGconn * pg), (pg))                                                    \
	FUNCTION(void, PQfreeCancel, (PGcancel * cancel), (cancel))                                    \
	FUNCTION(void, PQfreemem, (void *memory), (memory))                                            \
	FUNCTION(Oid, PQftype, (const PGresult *result, int column), (result, column))                 \
	FUNCTION(PGcancel *, PQgetCancel, (PGconn * pg), (pg))                                         \
	FUNCTION(PGresult *, PQgetResult, (PGconn * pg), (pg))                                         \
	FUNCTION(int, PQgetisnull, (const PGresult *result, int row, int column),                      \
	         (result, row, column))                                                                \
	FUNCTION(int, PQgetlength, (const PGresult *result, int row, int column),                      \
	         (result, row, column))                                                                \
	FUNCTION(char *, PQgetvalue, (const PGresult *result, int row, int column),                    \
	         (result, row, column))                                                                \
	FUNCTION(int, PQisBusy, (PGconn * pg), (pg))                                                   \
	FUNCTION(int, PQnfields, (const PGresult *result), (result))                                   \
	FUNCTION(int, PQntuples, (const PGresult *result), (result))                                   \
	FUNCTION(int, PQpipelineSync, (PGconn * pg), (pg))                                             \
	FUNCTION(char *, PQresultErrorField, (const PGresult *result, int field), (result, field))     \
	FUNCTION(char *, PQresultErrorMessage, (const PGresult *result), (result))                     \
	FUNCTION(ExecStatusType, PQresultStatus, (const PGresult *result), (result))                   \
	FUNCTION(int, PQsendFlushRequest, (PGconn * pg), (pg))                                         \
	FUNCTION(int, PQsendPrepare,                                                                   \
	         (PGconn * pg, const char *name, const char *sql, int count, const Oid *types),        \
	         (pg, name, sql, count, types))                                                        \
	FUNCTION(int, PQsendQuery, (PGconn * pg, const char *sql), (pg, sql))                          \
	FUNCTION(int, PQsendQueryParams,                                                               \
	         (PGconn * pg, const char *sql, int count, const Oid *types,                           \
	          const char *const *values, const int *sizes, const int *formats, int result_format), \
	         (pg, sql, count, types, values, sizes, formats, result_format))                       \
	FUNCTION(int, PQsendQueryPrepared,                                                             \
	         (PGconn * pg, const char *name, int count, const char *const *values,                 \
	          const int *sizes, const int *formats, int result_format),                            \
	         (pg, name, count, values, sizes, formats, result_format))                             \
	FUNCTION(PQnoticeReceiver, PQsetNoticeReceiver,                                                \
	         (PGconn * pg, PQnoticeReceiver receiver, void *context), (pg, receiver, context))     \
	FUNCTION(int, PQsetnonblocking, (PGconn * pg, int on), (pg, on))                               \
	FUNCTION(int, PQsocket, (const PGconn *pg), (pg))                                              \
	FUNCTION(ConnStatusType, PQstatus, (const PGconn *pg), (pg))

LIBRARY_FUNCTIONS(ALL)

static const struct library_function functions[] = {ALL(LIBRARY_ROW)};
static struct library libpq = {LIBPQ, functions, sizeof functions / sizeof *functions, false};

int libpq_load(struct error *error)
{
	return library_load(&libpq, error);
}
