/* cc -o verify verify.c -lcrypto; WEBHOOK_SECRET=whsec_… ./verify TIMESTAMP SIGNATURE < body */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TOLERANCE_SECONDS 300
#define BODY_MAX 65536
#define TIMESTAMP_MAX 18
#define EXPECTED_SIZE (3 + 64)

static void expect(const char *secret, const char *timestamp, const unsigned char *body,
                   size_t size, char expected[EXPECTED_SIZE + 1])
{
	static unsigned char text[TIMESTAMP_MAX + 1 + BODY_MAX];
	unsigned char mac[32];
	size_t length = strlen(timestamp);
	memcpy(text, timestamp, length);
	text[length++] = '.';
	memcpy(text + length, body, size);
	HMAC(EVP_sha256(), secret, (int)strlen(secret), text, length + size, mac, NULL);
	memcpy(expected, "v1=", 3);
	for (int i = 0; i < 32; i++)
		sprintf(expected + 3 + 2 * i, "%02x", mac[i]);
}

/* timestamp and signature: the headers X-SVC-Timestamp and X-SVC-Signature; body: the raw bytes of
 * the request. 1: good. */
int verify(const char *secret, const char *timestamp, const char *signature,
           const unsigned char *body, size_t size)
{
	char expected[EXPECTED_SIZE + 1];
	size_t digits = strspn(timestamp, "0123456789");
	if (digits < 1 || digits > TIMESTAMP_MAX || timestamp[digits] || size > BODY_MAX)
		return 0;
	long long age = (long long)time(NULL) - atoll(timestamp);
	if (age > TOLERANCE_SECONDS || age < -TOLERANCE_SECONDS)
		return 0;
	expect(secret, timestamp, body, size, expected);
	/* After a rotation there are two signatures; one of them must be good. */
	for (;;) {
		size_t length = strcspn(signature, ",");
		if (length == EXPECTED_SIZE && CRYPTO_memcmp(signature, expected, length) == 0)
			return 1;
		if (!signature[length])
			return 0;
		signature += length + 1;
	}
}

int main(int count, char **words)
{
	static unsigned char body[BODY_MAX + 1];
	const char *secret = getenv("WEBHOOK_SECRET");
	size_t size = fread(body, 1, sizeof body, stdin);
	int good = secret && count == 3 && verify(secret, words[1], words[2], body, size);
	puts(good ? "valid" : "invalid");
	return !good;
}
