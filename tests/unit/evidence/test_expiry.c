/* Which certificates are reported before they expire, and when. The clock, the keys and the
 * authorities come from the test. */
#include "testing.h"
#include "base/log.h"
#include "evidence/signers.h"
#include "seal/authority.h"
#include "seal/signer.h"

#define NOW (INT64_C(20000) * US_PER_DAY)

static struct {
	int64_t now_us;
	int in_force;
	struct signer_key keys[SIGNER_KEYS];
	bool has_next;
	int64_t authorities_until_us[AUTHORITIES_MAX]; /* 0: not seen */
} world;
static char told[512]; /* the reported subjects, each followed by a blank */
static struct settings settings;
static struct service service;

int64_t __wrap_clock_now_us(void);
int64_t __wrap_clock_boot_us(void);
const struct signer_key *__wrap_signer_get_key(const struct signer *signer, int index);
int __wrap_signer_active_key(const struct signer *signer);
bool __wrap_authorities_get_certificates(struct authorities *authorities, size_t index,
                                         struct authority_certificates *ret_seen,
                                         struct buf *path_pem);
void __wrap_log_write(enum log_level level, const char *event, ...);

int64_t __wrap_clock_now_us(void)
{
	return world.now_us;
}

int64_t __wrap_clock_boot_us(void)
{
	return world.now_us - NOW + US_PER_DAY;
}

const struct signer_key *__wrap_signer_get_key(const struct signer *signer, int index)
{
	return index == SIGNER_PRESENT || (index == SIGNER_NEXT && world.has_next) ? &world.keys[index]
	                                                                           : NULL;
}

int __wrap_signer_active_key(const struct signer *signer)
{
	return world.in_force;
}

bool __wrap_authorities_get_certificates(struct authorities *authorities, size_t index,
                                         struct authority_certificates *ret_seen,
                                         struct buf *path_pem)
{
	assert_null(path_pem);
	*ret_seen =
		(struct authority_certificates){.valid_until_us = world.authorities_until_us[index]};
	snprintf(ret_seen->certificate.subject, SUBJECT_SIZE, "clock%zu", index);
	return world.authorities_until_us[index] != 0;
}

void __wrap_log_write(enum log_level level, const char *event, ...)
{
	va_list fields;
	const char *name;
	assert_int_equal(level, LOG_WARNING);
	assert_string_equal(event, "certificate_expiring");
	va_start(fields, event);
	while ((name = va_arg(fields, const char *))) {
		const char *value = va_arg(fields, const char *);
		if (strcmp(name, "subject") == 0)
			strcat(strcat(told, value), " ");
	}
	va_end(fields);
}

static int set_up(void **state)
{
	memset(&world, 0, sizeof world);
	memset(&service, 0, sizeof service);
	settings.signer_warn_before = 30 * US_PER_DAY;
	service.settings = &settings;
	service.signer = (struct signer *)&world;
	service.authorities = (struct authorities *)&world;
	world.now_us = NOW;
	strcpy(world.keys[SIGNER_PRESENT].certificate.subject, "present");
	strcpy(world.keys[SIGNER_NEXT].certificate.subject, "next");
	world.keys[SIGNER_PRESENT].valid_until_us = NOW + 100 * US_PER_DAY;
	world.keys[SIGNER_NEXT].valid_until_us = NOW + 400 * US_PER_DAY;
	return 0;
}

static void assert_logged(const char *wanted)
{
	told[0] = '\0';
	service_watch_expiry(&service);
	assert_string_equal(told, wanted);
}

TEST_CASE(test_each_is_told_from_the_bound_on_once_a_day)
{
	world.authorities_until_us[1] = NOW + 131 * US_PER_DAY;
	world.now_us = NOW + 70 * US_PER_DAY;
	assert_logged("");
	world.now_us += 1;
	assert_logged("present ");
	assert_logged("");
	/* A certificate that comes close to its end on the same day is reported at once. */
	world.authorities_until_us[1] = NOW + 100 * US_PER_DAY;
	assert_logged("clock1 ");
	world.now_us += US_PER_DAY - 1;
	assert_logged("");
	world.now_us += 1;
	assert_logged("present clock1 ");
	settings.signer_warn_before = 10 * US_PER_DAY;
	world.now_us += US_PER_DAY;
	assert_logged("");
}

/* A replacement may expire as soon as the certificate before it, and the operator must learn that
 * it is the wrong one. */
TEST_CASE(test_a_new_certificate_of_the_same_subject_is_told_of)
{
	world.authorities_until_us[1] = NOW + 10 * US_PER_DAY;
	assert_logged("clock1 ");
	assert_logged("");
	world.authorities_until_us[1] = NOW + 12 * US_PER_DAY;
	assert_logged("clock1 ");
	assert_logged("");
	/* A reported certificate is not reported again on the same day, however many there were. */
	for (int i = 0; i < 2 * EXPIRING_MAX; i++) {
		world.authorities_until_us[1]++;
		assert_logged("clock1 ");
		assert_logged("");
	}
}

TEST_CASE(test_a_key_that_was_replaced_is_not_relied_on)
{
	struct expiring items[EXPIRING_MAX];
	world.has_next = true;
	assert_int_equal(service_list_expiring(&service, items), 2);
	assert_string_equal(items[0].what, "the signing certificate");
	assert_string_equal(items[1].what, "the next signing certificate");
	world.in_force = SIGNER_NEXT;
	assert_int_equal(service_list_expiring(&service, items), 1);
	assert_string_equal(items[0].subject, "next");
	assert_string_equal(items[0].what, "the signing certificate");
}

TEST_CASE(test_there_is_room_for_all)
{
	struct expiring items[EXPIRING_MAX];
	world.has_next = true;
	for (int i = 0; i < AUTHORITIES_MAX; i++)
		world.authorities_until_us[i] = NOW + i * US_PER_DAY;
	for (int i = 0; i < SERVICE_LISTENERS; i++)
		atomic_store(&service.tls_expires_us[i], NOW + US_PER_DAY);
	assert_int_equal(service_list_expiring(&service, items), EXPIRING_MAX);
	service.signer = NULL;
	service.authorities = NULL;
	assert_int_equal(service_list_expiring(&service, items), SERVICE_LISTENERS);
}

TEST_CASE(test_a_listener_s_certificate_is_near_its_end_later)
{
	struct expiring items[EXPIRING_MAX];
	service.signer = NULL;
	service.authorities = NULL;
	atomic_store(&service.tls_expires_us[1], NOW + 15 * US_PER_DAY);
	assert_int_equal(service_list_expiring(&service, items), 1);
	assert_string_equal(items[0].subject, "service.admin_tls_certificate");
	assert_false(items[0].near);
	atomic_store(&service.tls_expires_us[1], NOW + 13 * US_PER_DAY);
	assert_int_equal(service_list_expiring(&service, items), 1);
	assert_true(items[0].near);
}

TEST_CASE(test_the_first_authority_s_end)
{
	assert_int_equal(service_authorities_expire_us(&service), 0);
	world.authorities_until_us[5] = NOW + 7;
	world.authorities_until_us[2] = NOW + 9;
	assert_int_equal(service_authorities_expire_us(&service), NOW + 7);
}

TEST_MAIN_EACH(set_up, NULL)
