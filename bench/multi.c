/* What a plain loop over libcurl's multi interface sends: POST requests of one size to receivers in
 * turn, a few to each at a time, connections kept, nothing signed, looked up or recorded.
 *
 *     bench-multi --requests N [--at-once N] [--bytes N] PORT...
 *
 * Prints JSON: requests, seconds, rate. */
#include <curl/curl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PORTS_MAX 1000

static struct curl_slist *headers;
static char *body;

static double now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static size_t ignore(char *data, size_t one, size_t size, void *context)
{
	return one * size;
}

static CURL *prepare(const char *port)
{
	char url[64];
	CURL *easy = curl_easy_init();
	snprintf(url, sizeof url, "http://127.0.0.1:%s/hook", port);
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 10000L);
	return easy;
}

static int run(CURLM *multi, long requests, long begun)
{
	long done = 0;
	while (done < requests) {
		int running, left;
		curl_multi_perform(multi, &running);
		CURLMsg *message;
		while ((message = curl_multi_info_read(multi, &left))) {
			CURL *easy = message->easy_handle;
			if (message->data.result != CURLE_OK)
				return 1;
			done++;
			curl_multi_remove_handle(multi, easy);
			if (begun < requests) {
				begun++;
				curl_multi_add_handle(multi, easy);
			}
		}
		if (done < requests)
			curl_multi_poll(multi, NULL, 0, 1000, NULL);
	}
	return 0;
}

int main(int count, char **words)
{
	static const struct option options[] = {{"requests", required_argument, NULL, 'r'},
	                                        {"at-once", required_argument, NULL, 'a'},
	                                        {"bytes", required_argument, NULL, 'b'},
	                                        {0}};
	long requests = 0, at_once = 4, bytes = 250;
	int option;
	while ((option = getopt_long(count, words, "", options, NULL)) != -1) {
		if (option == 'r')
			requests = atol(optarg);
		else if (option == 'a')
			at_once = atol(optarg);
		else if (option == 'b')
			bytes = atol(optarg);
		else
			return 2;
	}
	long ports = count - optind;
	if (requests < 1 || at_once < 1 || bytes < 1 || ports < 1 || ports > PORTS_MAX)
		return 2;
	curl_global_init(CURL_GLOBAL_DEFAULT);
	body = malloc((size_t)bytes + 1);
	if (!body)
		return 2;
	memset(body, 'x', (size_t)bytes);
	body[bytes] = '\0';
	headers = curl_slist_append(NULL, "Content-Type: application/json");
	headers = curl_slist_append(headers, "Expect:");
	CURLM *multi = curl_multi_init();
	curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, ports * at_once);
	long begun = 0;
	double start_s = now_s();
	for (; begun < ports * at_once && begun < requests; begun++)
		curl_multi_add_handle(multi, prepare(words[optind + begun % ports]));
	if (run(multi, requests, begun) != 0) {
		fprintf(stderr, "bench-multi: a request failed\n");
		return 1;
	}
	double seconds = now_s() - start_s;
	printf("{\"requests\": %ld, \"seconds\": %.6f, \"rate\": %.1f}\n", requests, seconds,
	       (double)requests / seconds);
	return 0;
}
