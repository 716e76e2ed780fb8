#include "net/libcurl.h"

#include <stdarg.h>

#include "base/library.h"

/* Type-checking macros of curl.h. */
#undef curl_easy_getinfo
#undef curl_easy_setopt
#undef curl_multi_setopt

#define ALL_FIXED(FUNCTION)                                                                        \
	FUNCTION(void, curl_easy_cleanup, (CURL * easy), (easy))                                       \
	FUNCTION(CURL *, curl_easy_init, (void), ())                                                   \
	FUNCTION(CURLcode, curl_easy_perform, (CURL * easy), (easy))                                   \
	FUNCTION(void, curl_easy_reset, (CURL * easy), (easy))                                         \
	FUNCTION(const char *, curl_easy_strerror, (CURLcode code), (code))                            \
	FUNCTION(CURLcode, curl_global_init, (long flags), (flags))                                    \
	FUNCTION(CURLMcode, curl_multi_add_handle, (CURLM * multi, CURL * easy), (multi, easy))        \
	FUNCTION(CURLMcode, curl_multi_cleanup, (CURLM * multi), (multi))                              \
	FUNCTION(CURLMsg *, curl_multi_info_read, (CURLM * multi, int *left), (multi, left))           \
	FUNCTION(CURLM *, curl_multi_init, (void), ())                                                 \
	FUNCTION(CURLMcode, curl_multi_perform, (CURLM * multi, int *running), (multi, running))       \
	FUNCTION(CURLMcode, curl_multi_poll,                                                           \
	         (CURLM * multi, struct curl_waitfd extra[], unsigned count, int timeout_ms,           \
	          int *ret_ready),                                                                     \
	         (multi, extra, count, timeout_ms, ret_ready))                                         \
	FUNCTION(CURLMcode, curl_multi_remove_handle, (CURLM * multi, CURL * easy), (multi, easy))     \
	FUNCTION(CURLMcode, curl_multi_wakeup, (CURLM * multi), (multi))                               \
	FUNCTION(struct curl_slist *, curl_slist_append, (struct curl_slist * list, const char *text), \
	         (list, text))                                                                         \
	FUNCTION(void, curl_slist_free_all, (struct curl_slist * list), (list))

/* The option determines the type of the last argument. */
#define ALL_VARIABLE(FUNCTION)                                                                     \
	FUNCTION(CURLcode, curl_easy_getinfo, , )                                                      \
	FUNCTION(CURLcode, curl_easy_setopt, , )                                                       \
	FUNCTION(CURLMcode, curl_multi_setopt, , )

LIBRARY_FUNCTIONS(ALL_FIXED)
ALL_VARIABLE(LIBRARY_POINTER)

CURLcode curl_easy_getinfo(CURL *easy, CURLINFO info, ...)
{
	va_list list;
	va_start(list, info);
	void *place = va_arg(list, void *);
	va_end(list);
	return curl_easy_getinfo_loaded(easy, info, place);
}

/* All other option types are pointers. */
#define IS_LONG(option) ((option) < CURLOPTTYPE_OBJECTPOINT)
#define IS_OFFSET(option) ((option) >= CURLOPTTYPE_OFF_T && (option) < CURLOPTTYPE_BLOB)

#define PASS_ON(function, handle, option)                                                          \
	va_list list;                                                                                  \
	va_start(list, option);                                                                        \
	__typeof__(function(handle, option)) code =                                                    \
		IS_LONG(option)     ? function(handle, option, va_arg(list, long))                         \
		: IS_OFFSET(option) ? function(handle, option, va_arg(list, curl_off_t))                   \
							: function(handle, option, va_arg(list, void *));                      \
	va_end(list);                                                                                  \
	return code

CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
	/* NOLINTNEXTLINE(bugprone-branch-clone): the types differ */
	PASS_ON(curl_easy_setopt_loaded, easy, option);
}

CURLMcode curl_multi_setopt(CURLM *multi, CURLMoption option, ...)
{
	/* NOLINTNEXTLINE(bugprone-branch-clone): the types differ */
	PASS_ON(curl_multi_setopt_loaded, multi, option);
}

static const struct library_function functions[] = {ALL_FIXED(LIBRARY_ROW)
                                                        ALL_VARIABLE(LIBRARY_ROW)};
static struct library libcurl = {LIBCURL, functions, sizeof functions / sizeof *functions, false};

int libcurl_load(struct error *error)
{
	return library_load(&libcurl, error);
}
