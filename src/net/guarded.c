#include "net/guarded.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CURLcode start_result;

static void start(void)
{
	start_result = curl_global_init(CURL_GLOBAL_DEFAULT);
}

int guarded_start(struct error *error)
{
	int result = libcurl_load(error);
	if (result)
		return result;
	pthread_once(&once, start);
	return start_result == CURLE_OK ? OK : ERR_NO_MEMORY;
}

int guarded_handle(CURL **ret_easy, struct error *error)
{
	assert(ret_easy);
	int result = guarded_start(error);
	if (result)
		return result;
	*ret_easy = curl_easy_init();
	return *ret_easy ? OK : ERR_NO_MEMORY;
}

static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct guarded_sockets *sockets = context;
	(void)purpose;
	if (!address_guard_permits(sockets->guard, &address->addr)) {
		sockets->refused = true;
		sockets->refused_kind = address_classify(&address->addr);
		address_text(&address->addr, sockets->refused_address);
		return CURL_SOCKET_BAD;
	}
	sockets->opened = true;
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

CURLcode guarded_set_options(CURL *easy, struct guarded_sockets *sockets)
{
	assert(easy);
	assert(!sockets->opened && !sockets->refused); /* the sockets of one exchange */
	CURLcode code = curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);

	code |= curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, sockets);
	code |= curl_easy_setopt(easy, CURLOPT_PROXY, ""); /* ignores the environment, too */
	code |= curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	code |= curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	return code | curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
}

int guarded_check(const struct guarded_sockets *sockets, int code, struct error *error)
{
	assert(code < 0);
	if (!sockets->refused || sockets->opened)
		return OK;
	assert(sockets->refused_kind != ADDRESS_PUBLIC && *sockets->refused_address);
	error_cause(error, code, "address %s is %s and not permitted", sockets->refused_address,
	            address_kind_text(sockets->refused_kind));
	error_blame(error, BLAME_NETWORK);
	return code;
}

/* Returns whether OpenSSL could not build a path to a trusted root. A certificate that is expired,
 * or for another host, is a fault of the server or of its address. */
static bool has_unknown_issuer(CURL *easy)
{
	static const long unknown[] = {2, 18, 19, 20, 21}; /* X509_V_ERR_*, x509_vfy.h */
	long result = 0;
	if (curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &result) == CURLE_OK)
		for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
			if (result == unknown[i])
				return true;
	return false;
}

/* Returns whether the server ended the connection with a TLS alert about the client certificate,
 * which libcurl has no code for. */
static bool is_certificate_alert(const char *reason)
{
	const char *alert = strstr(reason, " alert ");
	return alert && (strstr(alert, "certificate") || strstr(alert, "unknown ca"));
}

enum error_blame guarded_fault(CURL *easy, CURLcode code, const char *reason)
{
	switch (code) {
	case CURLE_LOGIN_DENIED: return BLAME_PASSWORD;
	case CURLE_SSL_CERTPROBLEM: return BLAME_CLIENT_CERTIFICATE;
	case CURLE_SSL_CACERT_BADFILE: return BLAME_TLS_ROOTS;
	case CURLE_USE_SSL_FAILED: return BLAME_TLS;
	case CURLE_PEER_FAILED_VERIFICATION:
		return has_unknown_issuer(easy) ? BLAME_TLS_ROOTS : BLAME_NONE;
	default: return is_certificate_alert(reason) ? BLAME_CLIENT_CERTIFICATE : BLAME_NONE;
	}
}
