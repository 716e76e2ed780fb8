/* The functions of libcurl that are also macros of its header, which check the types of arguments.
 */
#include "libcurl.h"

#include <stdarg.h>

#undef curl_easy_getinfo
#undef curl_easy_setopt
#undef curl_multi_setopt

/* The option determines the type of the last argument. */
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
