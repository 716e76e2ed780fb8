#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "testing.h"
#include "net/address_kind.h"

union any_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static union any_address parse(const char *text)
{
	union any_address address = {0};

	if (inet_pton(AF_INET, text, &address.v4.sin_addr) == 1) {
		address.v4.sin_family = AF_INET;
	} else {
		assert_int_equal(inet_pton(AF_INET6, text, &address.v6.sin6_addr), 1);
		address.v6.sin6_family = AF_INET6;
	}
	return address;
}

static const struct {
	const char *text;
	enum address_kind kind;
} table[] = {
	{"0.0.0.0", ADDRESS_RESERVED},
	{"0.255.255.255", ADDRESS_RESERVED},
	{"1.0.0.0", ADDRESS_PUBLIC},
	{"9.255.255.255", ADDRESS_PUBLIC},
	{"10.0.0.0", ADDRESS_PRIVATE},
	{"10.255.255.255", ADDRESS_PRIVATE},
	{"11.0.0.0", ADDRESS_PUBLIC},
	{"100.63.255.255", ADDRESS_PUBLIC},
	{"100.64.0.0", ADDRESS_CARRIER_GRADE_NAT},
	{"100.127.255.255", ADDRESS_CARRIER_GRADE_NAT},
	{"100.100.100.200", ADDRESS_METADATA},
	{"100.128.0.0", ADDRESS_PUBLIC},
	{"126.255.255.255", ADDRESS_PUBLIC},
	{"127.0.0.1", ADDRESS_LOOPBACK},
	{"127.255.255.255", ADDRESS_LOOPBACK},
	{"128.0.0.0", ADDRESS_PUBLIC},
	{"168.63.129.16", ADDRESS_METADATA},
	{"168.63.129.17", ADDRESS_PUBLIC},
	{"169.253.255.255", ADDRESS_PUBLIC},
	{"169.254.0.1", ADDRESS_LINK_LOCAL},
	{"169.254.169.254", ADDRESS_METADATA},
	{"169.254.170.2", ADDRESS_METADATA},
	{"169.255.0.0", ADDRESS_PUBLIC},
	{"172.15.255.255", ADDRESS_PUBLIC},
	{"172.16.0.0", ADDRESS_PRIVATE},
	{"172.31.255.255", ADDRESS_PRIVATE},
	{"172.32.0.0", ADDRESS_PUBLIC},
	{"192.0.0.1", ADDRESS_RESERVED},
	{"192.0.0.192", ADDRESS_METADATA},
	{"192.0.1.0", ADDRESS_PUBLIC},
	{"192.0.2.1", ADDRESS_RESERVED},
	{"192.88.99.1", ADDRESS_RESERVED},
	{"192.167.255.255", ADDRESS_PUBLIC},
	{"192.168.0.0", ADDRESS_PRIVATE},
	{"192.168.255.255", ADDRESS_PRIVATE},
	{"192.169.0.0", ADDRESS_PUBLIC},
	{"198.17.255.255", ADDRESS_PUBLIC},
	{"198.18.0.0", ADDRESS_RESERVED},
	{"198.19.255.255", ADDRESS_RESERVED},
	{"198.20.0.0", ADDRESS_PUBLIC},
	{"198.51.100.7", ADDRESS_RESERVED},
	{"203.0.113.7", ADDRESS_RESERVED},
	{"203.0.114.0", ADDRESS_PUBLIC},
	{"223.255.255.255", ADDRESS_PUBLIC},
	{"224.0.0.1", ADDRESS_MULTICAST},
	{"239.255.255.255", ADDRESS_MULTICAST},
	{"240.0.0.0", ADDRESS_RESERVED},
	{"255.255.255.255", ADDRESS_RESERVED},

	{"::", ADDRESS_RESERVED},
	{"::1", ADDRESS_LOOPBACK},
	{"::2", ADDRESS_RESERVED},
	{"::127.0.0.1", ADDRESS_RESERVED}, /* IPv4-compatible, withdrawn */
	{"::8.8.8.8", ADDRESS_RESERVED},
	{"::ffff:127.0.0.1", ADDRESS_LOOPBACK},
	{"::ffff:10.1.2.3", ADDRESS_PRIVATE},
	{"::ffff:169.254.169.254", ADDRESS_METADATA},
	{"::ffff:8.8.8.8", ADDRESS_PUBLIC},
	{"::ffff:0:8.8.8.8", ADDRESS_RESERVED},
	{"64:ff9b::127.0.0.1", ADDRESS_LOOPBACK},
	{"64:ff9b::192.168.1.1", ADDRESS_PRIVATE},
	{"64:ff9b::169.254.169.254", ADDRESS_METADATA},
	{"64:ff9b::8.8.8.8", ADDRESS_PUBLIC},
	{"64:ff9b:1::10.0.0.1", ADDRESS_RESERVED}, /* local-use NAT64 */
	{"64:ff9b:1::8.8.8.8", ADDRESS_RESERVED},
	{"100::1", ADDRESS_RESERVED}, /* discard */
	{"1fff:ffff::1", ADDRESS_RESERVED},
	{"2000::1", ADDRESS_PUBLIC},
	{"2001::1", ADDRESS_RESERVED}, /* Teredo */
	{"2001:0:7f00:1::", ADDRESS_RESERVED},
	{"2001:10::1", ADDRESS_RESERVED},
	{"2001:20::1", ADDRESS_RESERVED},
	{"2001:1ff:ffff::1", ADDRESS_RESERVED},
	{"2001:200::1", ADDRESS_PUBLIC},
	{"2001:4860:4860::8888", ADDRESS_PUBLIC},
	{"2001:db7:ffff::1", ADDRESS_PUBLIC},
	{"2001:db8::1", ADDRESS_RESERVED},
	{"2001:db9::1", ADDRESS_PUBLIC},
	{"2002:7f00:1::1", ADDRESS_LOOPBACK}, /* 6to4 */
	{"2002:a00:1::1", ADDRESS_PRIVATE},
	{"2002:a9fe:a9fe::1", ADDRESS_METADATA},
	{"2002:808:808::1", ADDRESS_PUBLIC},
	{"2003::1", ADDRESS_PUBLIC},
	{"3ffe::1", ADDRESS_PUBLIC},
	{"3fff::1", ADDRESS_RESERVED},
	{"3fff:fff:ffff::1", ADDRESS_RESERVED},
	{"3fff:1000::1", ADDRESS_PUBLIC},
	{"4000::1", ADDRESS_RESERVED},
	{"5f00::1", ADDRESS_RESERVED},
	{"fc00::1", ADDRESS_PRIVATE},
	{"fd00:ec2::254", ADDRESS_METADATA},
	{"fd00:ec2::253", ADDRESS_PRIVATE},
	{"fd20:ce::254", ADDRESS_METADATA},
	{"fdff:ffff::1", ADDRESS_PRIVATE},
	{"fe00::1", ADDRESS_RESERVED},
	{"fe80::1", ADDRESS_LINK_LOCAL},
	{"febf:ffff::1", ADDRESS_LINK_LOCAL},
	{"fec0::1", ADDRESS_PRIVATE},
	{"ff02::1", ADDRESS_MULTICAST},
};

TEST_CASE(test_classification)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		union any_address address = parse(table[i].text);
		enum address_kind kind = address_classify(&address.any);
		if (kind != table[i].kind)
			fail_msg("%s is %s", table[i].text, address_kind_text(kind));
		assert_int_equal(address_guard_permits(NULL, &address.any), kind == ADDRESS_PUBLIC);
	}
}

TEST_CASE(test_other_families)
{
	struct sockaddr_un local = {.sun_family = AF_UNIX};
	struct address_guard guard = {0};
	char text[ADDRESS_TEXT_SIZE];

	assert_int_equal(network_list_parse(slice_of("0.0.0.0/0, ::/0"), &guard.allowed, NULL), 0);
	assert_int_equal(address_classify((struct sockaddr *)&local), ADDRESS_RESERVED);
	assert_false(address_guard_permits(&guard, (struct sockaddr *)&local));
	address_text((struct sockaddr *)&local, text);
	assert_string_equal(text, "?");
}

TEST_CASE(test_allowed_networks)
{
	struct address_guard guard = {0};
	static const char *const permitted[] = {"10.1.255.255",      "::ffff:10.1.0.0", "127.0.0.1",
	                                        "fd12:3456:789a::1", "172.31.0.0",      "8.8.8.8"};
	static const char *const refused[] = {"10.2.0.0", "10.0.255.255",      "127.0.0.2",
	                                      "::1",      "fd12:3456:789b::1", "64:ff9b::10.1.0.1"};

	assert_int_equal(
		network_list_parse(slice_of(" 10.1.0.0/16,127.0.0.1 , fd12:3456:789a::/48,172.16.0.0/12"),
	                       &guard.allowed, NULL),
		0);
	assert_int_equal(guard.allowed.count, 4);
	for (size_t i = 0; i < sizeof permitted / sizeof *permitted; i++) {
		union any_address address = parse(permitted[i]);
		if (!address_guard_permits(&guard, &address.any))
			fail_msg("%s is refused", permitted[i]);
	}
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		union any_address address = parse(refused[i]);
		if (address_guard_permits(&guard, &address.any))
			fail_msg("%s is permitted", refused[i]);
	}
}

TEST_CASE(test_mapped_networks)
{
	struct network_list list;
	union any_address inside = parse("10.1.255.255"), mapped = parse("::ffff:10.1.0.7");
	union any_address other = parse("10.2.0.0"), six = parse("fd00::1");

	assert_int_equal(network_list_parse(slice_of("::ffff:10.1.0.0/112"), &list, NULL), 0);
	assert_true(network_list_contains(&list, &inside.any));
	assert_true(network_list_contains(&list, &mapped.any));
	assert_false(network_list_contains(&list, &other.any));
	assert_int_equal(network_list_parse(slice_of("::ffff:10.2.0.0"), &list, NULL), 0);
	assert_true(network_list_contains(&list, &other.any));
	assert_false(network_list_contains(&list, &inside.any));
	assert_int_equal(network_list_parse(slice_of("::ffff:0:0/96"), &list, NULL), 0);
	assert_true(network_list_contains(&list, &other.any));
	assert_false(network_list_contains(&list, &six.any));
	assert_int_equal(network_list_parse(slice_of("::ffff:10.1.0.0/104"), &list, NULL),
	                 ERR_VALIDATION);
}

TEST_CASE(test_list_errors)
{
	static const char *const wrong[] = {
		"10.0.0.0/33",    "10.0.0.1/8",
		"::/129",         "fd00::1/64",
		"10.0.0.0/",      "10.0.0.0/-1",
		"10.0.0.0/+8",    "10.0.0.0/8 8",
		"localhost",      "10.0.0",
		"10.0.0.0/8,",    ",",
		"10.0.0.0/8;::1", "0x7f.0.0.1",
		"10.0.0.0/0008",  "1111:1111:1111:1111:1111:1111:1111:1111:1111:1111/128",
	};
	struct network_list list = {.count = 7};
	char many[NETWORKS_MAX * 8 + 16] = "::1";

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (network_list_parse(slice_of(wrong[i]), &list, NULL) != ERR_VALIDATION)
			fail_msg("'%s' is taken", wrong[i]);
	for (int i = 0; i < NETWORKS_MAX; i++)
		strcat(many, ",::1");
	assert_int_equal(network_list_parse(slice_of(many), &list, NULL), ERR_VALIDATION);
	assert_int_equal(list.count, 7);
	assert_int_equal(network_list_parse(slice_of(many + 4), &list, NULL), 0);
	assert_int_equal(list.count, NETWORKS_MAX);
	assert_int_equal(network_list_parse(slice_of("  "), &list, NULL), 0);
	assert_int_equal(list.count, 0);
}

TEST_MAIN(NULL, NULL)
