#include "support.h"

#include "seal/key_uri.h"

static void assert_refused(const char *text, const char *why)
{
	struct key_uri uri;
	struct error error = {0};

	assert_int_equal(key_uri_parse(text, &uri, &error), ERR_REFUSED);
	if (!strstr(error.cause, why))
		fail_msg("%s: %s instead of %s", text, error.cause, why);
}

TEST_CASE(test_all_attributes)
{
	struct key_uri uri;

	assert_int_equal(
		key_uri_parse(
			"pkcs11:token=My%20token;manufacturer=M;serial=4711;model=v2;object=seal%3b1;"
			"id=%00%01%ff;type=private?module-path=/usr/lib/x.so&pin-source=file:///etc/pin",
			&uri, NULL),
		0);
	assert_string_equal(uri.token.data, "My token");
	assert_string_equal(uri.manufacturer.data, "M");
	assert_string_equal(uri.serial.data, "4711");
	assert_string_equal(uri.model.data, "v2");
	assert_string_equal(uri.object.data, "seal;1");
	assert_int_equal(uri.id.size, 3);
	assert_memory_equal(uri.id.data, "\x00\x01\xff", 3);
	assert_string_equal(uri.module_path, "/usr/lib/x.so");
	assert_string_equal(uri.pin_source, "/etc/pin");
}

TEST_CASE(test_the_least)
{
	struct key_uri uri;

	assert_int_equal(key_uri_parse("pkcs11:id=%77?module-path=/m.so", &uri, NULL), 0);
	assert_false(uri.token.given || uri.serial.given || uri.object.given);
	assert_true(uri.id.given && uri.id.size == 1 && uri.id.data[0] == 0x77);
	assert_string_equal(uri.pin_source, "");
	assert_int_equal(key_uri_parse("pkcs11:object=a?pin-source=/p&module-path=/m.so", &uri, NULL),
	                 0);
	assert_string_equal(uri.pin_source, "/p");
}

TEST_CASE(test_what_could_not_be_heeded)
{
	char longer[400] = "pkcs11:object=";

	assert_refused("pkcs11:object=a", "module-path is missing");
	assert_refused("pkcs11:token=a?module-path=/m.so", "object or id is required");
	assert_refused("pkcs11:?module-path=/m.so", "object or id is required");
	assert_refused("pkcs11:object=a;object=b?module-path=/m.so", "object is set twice");
	assert_refused("pkcs11:object=a?module-path=/m.so&module-path=/n.so", "is set twice");
	assert_refused("pkcs11:object=a;slot-id=1?module-path=/m.so", "slot-id is not supported");
	assert_refused("pkcs11:object=a;type=cert?module-path=/m.so", "type must be private");
	assert_refused("pkcs11:object=a?module-name=m", "module-name is not supported");
	assert_refused("pkcs11:object=a?module-path=m.so", "must be an absolute path");
	assert_refused("pkcs11:object=a?module-path=/m.so&pin-value=1234", "would reveal");
	assert_refused("pkcs11:object=a?module-path=/m.so&pin-source=%7cls",
	               "must be an absolute path");
	assert_refused("pkcs11:object=%4?module-path=/m.so", "has an invalid value");
	assert_refused("pkcs11:object=a%00b?module-path=/m.so", "has an invalid value");
	assert_refused("pkcs11:object=?module-path=/m.so", "has an invalid value");
	assert_refused("pkcs11:object?module-path=/m.so", "has an invalid value");
	memset(longer + strlen(longer), 'a', KEY_URI_TEXT_MAX + 1);
	strcat(longer, "?module-path=/m.so");
	assert_refused(longer, "has an invalid value");
}

TEST_MAIN(NULL, NULL)
