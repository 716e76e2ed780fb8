#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing.h"
#include "base/error.h"
#include "cli/config.h"

static char path[64];

static const char *write_file(const char *text)
{
	strcpy(path, "/tmp/constancia-conf-XXXXXX");
	int file = mkstemp(path);
	assert_true(file >= 0);
	assert_int_equal(write(file, text, strlen(text)), strlen(text));
	close(file);
	return path;
}

static void assert_problem(struct config_sources *sources, const char *expected)
{
	struct config config;
	assert_int_equal(config_load(sources, &config), ERR_USAGE);
	if (!strstr(config.problems.data, expected))
		fail_msg("%s\nis not in\n%s", expected, config.problems.data);
	config_free(&config);
}

static void assert_set_problem(const char *set, const char *expected)
{
	struct config_sources sources = {.sets = {set}, .set_count = 1};
	assert_problem(&sources, expected);
}

TEST_CASE(test_defaults_are_usable)
{
	struct config_sources sources = {0};
	struct config config;
	assert_int_equal(config_load(&sources, &config), OK);
	assert_int_equal(config.settings.rate_live, 50);
	assert_int_equal(config.settings.seal_interval, 60000000);
	assert_string_equal(config.settings.store_url, "sqlite:/var/lib/constancia/constancia.db");
	assert_string_equal(config.settings.service_admin_socket, "/var/lib/constancia/admin.sock");
	assert_int_equal(config.warnings.size, 0);
	assert_false(config_is_given(&config, "rate.live"));
	config_free(&config);
}

TEST_CASE(test_later_sources_win)
{
	char *environment[] = {"CONSTANCIA_RATE_LIVE=3", "CONSTANCIA_RATE_TEST=4", "PATH=/bin", NULL};
	const char *const presets[] = {"rate.live=1", "seal.interval=5s", NULL};
	struct config_sources sources = {
		.presets = presets,
		.file = write_file("# a comment\n[rate]\nlive = 2\ntest = 2 ; two\n[service]\nname=x\n"),
		.environment = environment,
		.data_dir = "/data",
		.sets = {"rate.test=5", "service.public_url=https://a.example?no",
	             "service.public_url="
	             "https://a.example"},
		.set_count = 3,
	};
	struct config config;
	assert_int_equal(config_load(&sources, &config), OK);
	assert_int_equal(config.settings.rate_live, 3);
	assert_int_equal(config.settings.rate_test, 5);
	assert_int_equal(config.settings.seal_interval, 5000000);
	assert_string_equal(config.settings.service_name, "x");
	assert_string_equal(config.settings.service_public_url, "https://a.example");
	assert_string_equal(config.settings.content_url, "file:/data/content");
	assert_true(config_is_given(&config, "rate.test"));
	assert_false(config_is_given(&config, "seal.interval"));
	config_free(&config);
	unlink(path);
}

TEST_CASE(test_file_problems_have_lines)
{
	struct config_sources sources = {
		.file =
			write_file("[rate]\nlive = many\nfast = 1\n[nothing]\nx = 1\n[seal]\n"
	                   "interval = 60\nnonsense\n[rate]\nlive = 3\n[webhook]\nallow_http = yes\n")};
	struct config config;
	assert_int_equal(config_load(&sources, &config), ERR_USAGE);
	static const char *const expected[] = {
		":3: unknown setting 'rate.fast'",
		":5: unknown setting 'nothing.x'",
		":7: seal.interval: must be a duration",
		":8: must be a [section]",
		":10: rate.live: is set twice",
		":12: webhook.allow_http: must be true or false",
		":2: rate.live: must be a decimal integer",
	};
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
		if (!strstr(config.problems.data, expected[i]))
			fail_msg("%s\nis not in\n%s", expected[i], config.problems.data);
	assert_int_equal(config.problem_count, 7);
	config_free(&config);
	unlink(path);
}

#define LINE_MAX_BYTES 4096

/* A file with one long line: "[tsa]\nroots = xxx…\n", of that many bytes. */
static const char *write_long_line(size_t size)
{
	char text[LINE_MAX_BYTES + 64] = "[tsa]\nroots = ";
	size_t begin = strlen("[tsa]\n"), now = strlen(text);
	memset(text + now, 'x', begin + size - now);
	strcpy(text + begin + size, "\n");
	return write_file(text);
}

TEST_CASE(test_lines_have_four_kilobytes)
{
	struct config_sources sources = {.file = write_long_line(LINE_MAX_BYTES)};
	struct config config;
	assert_int_equal(config_load(&sources, &config), OK);
	assert_int_equal(strlen(config.settings.tsa_roots), LINE_MAX_BYTES - strlen("roots = "));
	config_free(&config);
	unlink(path);
	sources.file = write_long_line(LINE_MAX_BYTES + 1);
	assert_problem(&sources, ":2: the line is longer than 4096 bytes; continue a list on indented");
	unlink(path);
	sources.file = "/nonexistent/constancia.conf";
	assert_problem(&sources, "/nonexistent/constancia.conf: No such file");
}

static void assert_file_problem(const char *text, const char *expected)
{
	struct config_sources sources = {.file = write_file(text)};
	struct config config;
	char whole[512];
	assert_int_equal(config_load(&sources, &config), ERR_USAGE);
	snprintf(whole, sizeof whole, "%s%s\n", path, expected);
	assert_string_equal(config.problems.data, whole);
	config_free(&config);
	unlink(path);
}

TEST_CASE(test_lists_continue)
{
	static const char *const files[] = {
		"[tsa]\nurl =\n  https://a.example,\n  https://b.example\nroots = /etc/passwd\n",
		"[tsa]\nurl = https://a.example\n\n# second\n\thttps://b.example ; the last\nroots = "
		"/etc/passwd",
		"  [tsa]\n  url = https://a.example,\n    https://b.example\n  roots = /etc/passwd\n",
		"\xef\xbb\xbf[tsa]\r\nurl = https://a.example,\r\n  https://b.example\r\nroots: /etc/passwd",
	};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		struct config_sources sources = {.file = write_file(files[i])};
		struct config config;
		assert_int_equal(config_load(&sources, &config), OK);
		assert_string_equal(config.settings.tsa_url, "https://a.example,https://b.example");
		assert_string_equal(config.settings.tsa_roots, "/etc/passwd");
		config_free(&config);
		unlink(path);
	}
	assert_file_problem("[store]\nurl = postgresql://a,\n  b/register\n",
	                    ":3: store.url: is not a list and cannot continue on an indented line; a "
	                    "line may have 4096 bytes");
	assert_file_problem("[tsa]\nurl = https://a\n  kidn = qualified\n",
	                    ":3: unknown setting 'tsa.kidn'; did you mean tsa.kind; 'constancia config "
	                    "print' lists all settings");
}

/* A list of several thousand networks, one a line. */
TEST_CASE(test_long_lists_continue)
{
	BUF_AUTO struct buf text = {.limit = 1 << 20};
	struct config config;
	buf_add_text(&text, "[webhook]\nallow_networks =\n");
	for (int i = 0; i < 3000; i++)
		buf_printf(&text, "  10.%d.%d.0/24,\n", i / 256, i % 256);
	buf_add_text(&text, "  192.168.0.0/16\ntimeout = 9s\n");
	struct config_sources sources = {.file = write_file(text.data)};
	assert_int_not_equal(config_load(&sources, &config), ERR_NO_MEMORY);
	assert_int_equal(config.settings.webhook_timeout, 9000000);
	assert_non_null(strstr(config.settings.webhook_allow_networks, "10.11.183.0/24,192.168."));
	config_free(&config);
	unlink(path);
	buf_clear(&text);
	buf_add_text(&text, "[webhook]\nallow_networks =\n");
	for (int i = 0; i < 7000; i++)
		buf_add_text(&text, "  10.0.0.0/8\n");
	sources.file = write_file(text.data);
	assert_problem(&sources, ":2: webhook.allow_networks: the list is longer than 65536 bytes");
	unlink(path);
}

TEST_CASE(test_three_hosts_are_one_line)
{
	static const char url[] =
		"postgresql://constancia@register-db-1.internal.example.org:5432,"
		"register-db-2.internal.example.org:5432,register-db-3.internal.example.org:5432/register?"
		"target_session_attrs=read-write&connect_timeout=5&sslmode=verify-full&sslrootcert=/etc/"
		"constancia/postgresql-ca.pem&application_name=constancia";
	static const char *const indents[] = {"", " ", "\t", "        "};
	for (size_t i = 0; i < sizeof indents / sizeof *indents; i++) {
		BUF_AUTO struct buf text = {.limit = 4096};
		struct config config;
		buf_printf(&text, "%s[store]\n%srequire_replicas = 1\n%surl = %s\n%scommit_timeout = 6s\n",
		           indents[i], indents[i], indents[i], url, indents[i]);
		struct config_sources sources = {.file = write_file(text.data)};
		assert_int_equal(config_load(&sources, &config), OK);
		assert_string_equal(config.settings.store_url, url);
		assert_int_equal(config.settings.store_commit_timeout, 6000000);
		config_free(&config);
		unlink(path);
	}
}

TEST_CASE(test_shape_of_files)
{
	assert_file_problem("\xff\xfe[\n", ": the file is UTF-16; save it as UTF-8 text");
	assert_file_problem("[rate\nlive = 3\n", ":1: the ']' after the section's name is missing");
	assert_file_problem("nothing = 3\n",
	                    ":1: 'nothing' must be below a [section], such as [service]");
	assert_file_problem("public_url = https://a.example\n",
	                    ":1: 'public_url' must be written as 'public_url = …' below [service]");
	assert_file_problem("[service]\nrate.live = 3\n",
	                    ":2: 'rate.live' must be written as 'live = …' below [rate]");
	assert_file_problem("[rate] live = 3\n", ":1: must be a [section], key = value or a comment");
	assert_file_problem("[rate]\nlive 3\n", ":2: must be a [section], key = value or a comment");
}

TEST_CASE(test_meanings_are_checked)
{
	assert_set_problem("rate.live=0", "--set rate.live: rate.live: must be from 1");
	assert_set_problem("service.prefix=SVC", "must have 2 to 10 lower-case letters or digits");
	assert_set_problem("service.public_url=ftp://x", "service.public_url: must be a URL");
	assert_set_problem("service.public_url=https://x/", "without a slash");
	assert_set_problem("service.public_url=https://x/v1", "must not end with /v1");
	assert_set_problem("service.listen=8080", "service.listen: must be address:port");
	assert_set_problem("service.listen=::1:8080", "service.listen: must be address:port");
	assert_set_problem("service.listen=127.0.0.1:65536", "service.listen: must be address:port");
	assert_set_problem("store.url=mysql://x",
	                   "store.url: The store address 'mysql://x' is not valid");
	assert_set_problem("content.url=s3",
	                   "content.url: The content store address 's3' is not valid");
	assert_set_problem("content.url=s3://b?x=1", "content.url: 'b' is not a valid S3 bucket name");
	assert_set_problem("content.url=s3://evidence?x=1", "The parameter 'x=1' of the s3: address");
	assert_set_problem("content.url=s3://evidence/../up",
	                   "'../up' is not a valid prefix for object names");
	assert_set_problem("content.url=s3://evidence?endpoint=minio:9000",
	                   "endpoint must be https://HOST[:PORT]");
	assert_set_problem("content.url=s3://evidence?region=EU", "'EU' is not a valid region name");
	assert_set_problem("content.url=s3://evidence?style=dns", "style of an s3: address");
	assert_set_problem("content.presigned_links=true",
	                   "content.presigned_links: requires an s3: address in content.url");
	assert_set_problem("content.timeout=100ms", "content.timeout: must be from 1 to 600");
	assert_set_problem("content.allow_networks=here",
	                   "content.allow_networks: must be a list of networks");
	assert_set_problem("service.trusted_proxies=10.0.0.1/8", "must be a list of networks");
	assert_set_problem("service.security_contact=security@example.org",
	                   "service.security_contact: must be a list of addresses");
	assert_set_problem("service.security_contact=mailto:a@example.org,",
	                   "must be a list of addresses");
	assert_set_problem("service.security_contact=mailto:a@example.org,b",
	                   "must be a list of addresses");
	assert_set_problem("service.security_contact=mailto:a@example.org,tel:",
	                   "must be a list of addresses");
	assert_set_problem("service.security_contact=http://example.org/x",
	                   "must be a list of addresses");
	assert_set_problem("service.security_contact=https://example.org/a b",
	                   "must be a list of addresses");
	assert_set_problem("tsa.url=gopher://x", "tsa.url: must list");
	assert_set_problem("tsa.kind=development", "tsa.kind: must be a list");
	assert_set_problem("signer.chain=/tmp/chain.pem", "signer.key: must be set when signer.chain");
	assert_set_problem("signer.passphrase_file=/tmp/pin", "signer.key: must be set");
	assert_set_problem("signer.key=pkcs11:object=a", "signer.chain: must be set with a pkcs11:");
	assert_set_problem("webhook.schedule=1m,soon",
	                   "webhook.schedule: must be a list of 1 to 20 durations");
	assert_set_problem("mail.schedule=", "mail.schedule: must be a list of 1 to 20 durations");
	assert_set_problem("mail.url=mail.example.org", "mail.url: must be smtp://HOST:PORT");
	assert_set_problem("mail.url=smtp://mail.example.org", "mail.from: must be an address");
	assert_set_problem("payment.provider=barter", "payment.provider: must be manual or stripe");
	assert_set_problem("payment.provider=stripe", "The setting payment.stripe_key is required");
	assert_set_problem("log.level=loud", "log.level: must be");
	assert_set_problem("seal.interval=1ms", "seal.interval: must be at least 50ms");
	assert_set_problem("rate.live", "must have the form section.key=value");
	assert_set_problem("rate.alive=1", "unknown setting 'rate.alive'");
	assert_set_problem("service.name=a\tb", "control characters");
	assert_set_problem("service.name=\xff", "not UTF-8");
	struct config_sources sources = {.serving = true};
	assert_problem(&sources, "tsa.url: must list a timestamp authority");
}

/* Valid settings may contradict each other, and the settings that a node needs are checked when it
 * serves. */
TEST_CASE(test_meanings_together_are_checked)
{
	static const struct {
		const char *sets[5];
		bool serving;
		const char *expected;
	} cases[] = {
		{{"service.prefix=s"}, false, "service.prefix: must have 2 to 10"},
		{{"service.prefix=abcdefghijk"}, false, "service.prefix: must have 2 to 10"},
		{{"service.public_url=https://x y"}, false, "service.public_url: must be a URL"},
		{{"service.admin_listen=8081"}, false, "service.admin_listen: must be empty or address"},
		{{"service.data_dir="}, false, "service.data_dir: must name a directory"},
		{{"service.name="}, false, "service.name: must have 1 to 100 bytes"},
		{{"content.url=s3://evidence?endpoint=https://s3.example.org&region=eu-1",
	      "content.presigned_links=true", "certification.link_lifetime=8d"},
	     false,
	     "certification.link_lifetime: must be at most 7d"},
		{{"content.url=s3://evidence?endpoint=https://s3.example.org&region=eu-1"},
	     true,
	     "content.access_key: must be set for an s3: address"},
		{{"content.url=s3://evidence?endpoint=https://s3.example.org&region=eu-1"},
	     true,
	     "content.secret_key: must be set for an s3: address"},
		{{"tsa.url=https://a , gopher://b"}, false, "tsa.url: must list https://"},
		{{"tsa.url=https://1,https://2,https://3,https://4,https://5,https://6,https://7,https://8,"
	      "https://9"},
	     false,
	     "tsa.url: must list at most 8"},
		{{"tsa.url=embedded:", "signer.key=/k", "signer.chain=/c"},
	     false,
	     "tsa.url: must not contain embedded: when signer.key is set"},
		{{"tsa.url=https://a", "tsa.kind=qualified, non_qualified"},
	     false,
	     "tsa.kind: must have one value for all authorities, or one for each"},
		{{"tsa.url=https://a"}, true, "tsa.roots: must name a PEM file"},
		{{"tsa.tokens=3"}, false, "tsa.tokens: must be"},
		{{"tsa.tokens=0"}, false, "tsa.tokens: must be"},
		{{"tsa.url=https://a", "tsa.roots=/r", "tsa.tokens=2"},
	     true,
	     "tsa.tokens: must be 1 unless tsa.url lists two or more"},
		{{"tsa.url=https://a,https://b, https://a", "tsa.tokens=2"},
	     false,
	     "tsa.url: must not list an authority twice"},
		{{"tsa.divergence_bound=1ms"}, false, "tsa.divergence_bound: must be"},
		{{"tsa.url=https://a", "tsa.roots=/nowhere"},
	     true,
	     "tsa.roots: /nowhere cannot be read: No such file or directory"},
		{{"tsa.url=https://a", "tsa.user=x"}, false, "tsa.password: must be set too"},
		{{"tsa.url=https://a", "tsa.password=x"}, false, "tsa.user: must be set too"},
		{{"tsa.url=https://a", "tsa.client_certificate=/c"},
	     false,
	     "tsa.client_key: must be set too"},
		{{"tsa.url=https://a", "tsa.client_key=/k"},
	     false,
	     "tsa.client_certificate: must be set too"},
		{{"tsa.url=https://a", "tsa.user=x", "tsa.password=y", "tsa.token=z"},
	     false,
	     "tsa.token: must be empty when tsa.user is set"},
		{{"tsa.url=https://a,https://b", "tsa.user=x,", "tsa.password=,y"},
	     false,
	     "tsa.password: must be set too"},
		{{"tsa.url=https://a,https://b,https://c", "tsa.token=,y"},
	     false,
	     "tsa.token: must have one value for all authorities, or one for each"},
		{{"tsa.url=http://a", "tsa.token=x"}, false, "tsa.url: must be an https:// address"},
		{{"tsa.url=https://a,http://b", "tsa.token=x"},
	     false,
	     "tsa.url: must be an https:// address"},
		{{"tsa.url=http://a", "tsa.user=x", "tsa.password=y"},
	     false,
	     "tsa.url: must be an https:// address"},
		{{"tsa.url=http://a", "tsa.client_certificate=/c", "tsa.client_key=/k"},
	     false,
	     "tsa.url: must be an https:// address"},
		{{"tsa.url=https://a", "tsa.client_certificate=/nowhere", "tsa.client_key=/nowhere"},
	     true,
	     "tsa.client_key: /nowhere cannot be read: No such file or directory"},
		{{"tsa.url=https://a", "tsa.tls_roots=/nowhere"},
	     true,
	     "tsa.tls_roots: /nowhere cannot be read: No such file or directory"},
		{{"tsa.url=https://a", "tsa.tls_roots=/"},
	     true,
	     "tsa.tls_roots: / cannot be read: it is a directory"},
		{{"signer.key=/nowhere/key", "signer.chain=/nowhere/chain"},
	     true,
	     "signer.key: /nowhere/key cannot be read: No such file or directory"},
		{{"signer.key=/nowhere/key", "signer.chain=/nowhere/chain"},
	     true,
	     "signer.chain: /nowhere/chain cannot be read: No such file or directory"},
		{{"webhook.timeout=61s"}, false, "webhook.timeout: must be at most 60s"},
		{{"webhook.roots=/nowhere/roots"},
	     true,
	     "webhook.roots: /nowhere/roots cannot be read: No such file or directory"},
		{{"mail.roots=/nowhere/roots", "mail.url=smtp://mail.example.org", "mail.from=a@b.org"},
	     true,
	     "mail.roots: /nowhere/roots cannot be read: No such file or directory"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct config_sources sources = {.serving = cases[i].serving};
		for (; cases[i].sets[sources.set_count]; sources.set_count++)
			sources.sets[sources.set_count] = cases[i].sets[sources.set_count];
		assert_problem(&sources, cases[i].expected);
	}
}

/* Credentials for one authority, which may contain commas, and a key that others can read. */
TEST_CASE(test_credentials)
{
	char key[] = "/tmp/constancia-key-XXXXXX";
	char set_certificate[64], set_key[64];
	int file = mkstemp(key);
	struct config config;
	assert_true(file >= 0);
	snprintf(set_certificate, sizeof set_certificate, "tsa.client_certificate=%s", key);
	snprintf(set_key, sizeof set_key, "tsa.client_key=%s", key);
	struct config_sources sources = {
		.sets = {"tsa.url=https://a, http://b", "tsa.user=me,", "tsa.password=hush,"},
		.set_count = 3,
	};
	assert_int_equal(config_load(&sources, &config), OK);
	assert_int_equal(config.warnings.size, 0);
	config_free(&config);
	sources = (struct config_sources){
		.sets = {"tsa.url=https://a,https://b", "tsa.token=hush"},
		.set_count = 2,
	};
	assert_int_equal(config_load(&sources, &config), OK);
	assert_non_null(
		strstr(config.warnings.data, "tsa.token: is a single value, which is sent to every"));
	config_free(&config);
	sources = (struct config_sources){
		.sets = {"tsa.url=https://a", "tsa.user=me", "tsa.password=hush,hush"},
		.set_count = 3,
	};
	BUF_AUTO struct buf shown = {.limit = 65536};
	assert_int_equal(config_load(&sources, &config), OK);
	config_print(&config, &shown);
	config_print_json(&config, &shown);
	assert_null(strstr(shown.data, "hush"));
	config_free(&config);
	for (int mode = 0600; mode <= 0640; mode += 040) {
		assert_int_equal(fchmod(file, (mode_t)mode), 0);
		sources = (struct config_sources){
			.sets = {"tsa.url=https://a", set_certificate, set_key, "rate.live=0"},
			.set_count = 4,
			.serving = true,
		};
		assert_int_equal(config_load(&sources, &config), ERR_USAGE);
		assert_true(!strstr(config.problems.data ? config.problems.data : "", "mode 0600") ==
		            (mode == 0600));
		config_free(&config);
	}
	close(file);
	unlink(key);
}

static void assert_tls_problem(const char *first, const char *second, const char *expected)
{
	struct config_sources sources = {
		.sets = {first, second}, .set_count = second ? 2 : 1, .serving = true};
	assert_problem(&sources, expected);
}

TEST_CASE(test_tls)
{
	assert_tls_problem("service.tls_certificate=/nowhere", NULL,
	                   "service.tls_key: must also be set");
	assert_tls_problem("service.admin_tls_key=/nowhere", NULL,
	                   "service.admin_tls_certificate: must also be set");
	assert_tls_problem("service.tls_certificate=/nowhere", "service.tls_key=/nowhere",
	                   "service.tls_certificate: cannot be read");
	assert_tls_problem("service.tls_certificate=/dev/null", "service.tls_key=/dev/null",
	                   "service.tls_certificate:");
	assert_tls_problem("service.admin_tls_clients=/nowhere", NULL,
	                   "service.admin_tls_clients: requires TLS");
	assert_set_problem("http.tls_handshakes=0", "http.tls_handshakes: must be from 1 to 100000");
}

TEST_CASE(test_environment)
{
	char *environment[] = {"CONSTANCIA_ADMIN_SOCKET=/run/c.sock",
	                       "CONSTANCIA_SERVICE_HOST=10.0.0.1", NULL};
	struct config_sources sources = {.environment = environment};
	struct config config;
	assert_int_equal(config_load(&sources, &config), OK);
	assert_string_equal(config.settings.service_admin_socket, "/run/c.sock");
	assert_non_null(strstr(config.warnings.data, "CONSTANCIA_SERVICE_HOST"));
	config_free(&config);
	char *bad[] = {"CONSTANCIA_RATE_LIVE=x", NULL};
	sources.environment = bad;
	assert_problem(&sources, "CONSTANCIA_RATE_LIVE: rate.live: must be a decimal integer");
}

TEST_CASE(test_names_near_are_told)
{
	assert_set_problem("rate.lvie=1", "unknown setting 'rate.lvie'; did you mean rate.live;");
	assert_set_problem("webhooks.timeout=1s", "did you mean webhook.timeout;");
	assert_set_problem("http.trusted_proxies=10.0.0.0/8", "did you mean service.trusted_proxies;");
	assert_set_problem("nothing.of_that=1", "unknown setting 'nothing.of_that'; 'constancia");
	char *environment[] = {"CONSTANCIA_SEAL_INTERVALL=9s", "CONSTANCIA_PORT_8080_TCP=x", NULL};
	struct config_sources sources = {.environment = environment};
	struct config config;
	assert_int_equal(config_load(&sources, &config), OK);
	assert_non_null(strstr(config.warnings.data, "did you mean CONSTANCIA_SEAL_INTERVAL"));
	config_free(&config);
	sources.checking = true;
	assert_int_equal(config_load(&sources, &config), ERR_USAGE);
	assert_int_equal(config.problem_count, 1);
	assert_null(strstr(config.problems.data, "CONSTANCIA_PORT_8080_TCP"));
	assert_string_equal(config.findings->origin, "CONSTANCIA_SEAL_INTERVALL");
	assert_false(config.findings->warning);
	assert_true(config.findings->next->warning);
	assert_null(config.findings->next->next);
	config_free(&config);
}

TEST_CASE(test_faults_of_form_hide_none_of_meaning)
{
	struct config_sources sources = {
		.sets = {"rate.live=x", "seal.interval=0s", "log.level=loud", "rate.test=0"},
		.set_count = 4};
	struct config config;
	assert_int_equal(config_load(&sources, &config), ERR_USAGE);
	assert_int_equal(config.problem_count, 4);
	config_add(&config, false, "rate.live", "told later");
	assert_int_equal(config.problem_count, 5);
	assert_string_equal(config.last_finding->origin, "--set rate.live");
	config_free(&config);
}

TEST_CASE(test_what_is_unwise_is_told)
{
	struct config_sources sources = {.sets = {"content.keep_swept=23h"}, .set_count = 1};
	struct config config;
	assert_int_equal(config_load(&sources, &config), OK);
	assert_non_null(strstr(config.warnings.data, "content.keep_swept: should be at least one day"));
	config_free(&config);
	sources.sets[0] = "content.keep_swept=1d";
	assert_int_equal(config_load(&sources, &config), OK);
	assert_int_equal(config.warnings.size, 0);
	config_free(&config);
}

TEST_CASE(test_printed_file_reads_back)
{
	struct config_sources sources = {.sets = {"rate.live=77", "service.name=Registro"},
	                                 .set_count = 2};
	struct config config;
	assert_int_equal(config_load(&sources, &config), OK);
	struct buf text = {.limit = 1 << 20};
	config_print(&config, &text);
	assert_int_equal(buf_check(&text), OK);
	config_free(&config);
	assert_non_null(strstr(text.data, "\n#test = 10\n"));
	struct config_sources again = {.file = write_file(text.data)};
	assert_int_equal(config_load(&again, &config), OK);
	assert_int_equal(config.settings.rate_live, 77);
	assert_string_equal(config.settings.service_name, "Registro");
	config_free(&config);
	buf_free(&text);
	unlink(path);
}

TEST_CASE(test_secrets_are_not_printed)
{
	struct config_sources sources = {
		.sets = {"payment.stripe_key=sk_hidden", "mail.password=hidden"}, .set_count = 2};
	struct config config;
	BUF_AUTO struct buf text = {.limit = 1 << 20};
	BUF_AUTO struct buf json = {.limit = 1 << 20};
	assert_int_equal(config_load(&sources, &config), OK);
	config_print(&config, &text);
	config_print_json(&config, &json);
	assert_string_equal(config.settings.payment_stripe_key, "sk_hidden");
	config_free(&config);
	assert_null(strstr(text.data, "hidden"));
	assert_non_null(
		strstr(text.data, "\n#stripe_key = (not shown; set by --set payment.stripe_key)\n"));
	assert_non_null(strstr(text.data, "\n#stripe_webhook_secret = \n"));
	assert_null(strstr(json.data, "hidden"));
	assert_non_null(strstr(json.data, "\"stripe_key\":\"********\""));
	assert_non_null(strstr(json.data, "\"stripe_webhook_secret\":\"\""));
}

TEST_CASE(test_durations)
{
	int64_t us = -1;
	assert_true(duration_parse(slice_of("500ms"), &us) && us == 500000);
	assert_true(duration_parse(slice_of("2h"), &us) && us == INT64_C(7200000000));
	assert_true(duration_parse(slice_of("7d"), &us) && us == INT64_C(604800000000));
	static const char *const none[] = {"0", "0s", "0ms", "0d"};
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		us = -1;
		assert_true(duration_parse(slice_of(none[i]), &us) && us == 0);
	}
	static const char *const bad[] = {
		"", "5", "00", "s", "-1s", "1 s", "1.5s", "1w", "1sx", "999999999999d", "9999999999999s"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(duration_parse(slice_of(bad[i]), &us));
}

/* A directory as LoadCredential= makes it. */
static void make_credential(char directory[64], const char *name, const char *text, size_t size)
{
	char file_path[128];
	strcpy(directory, "/tmp/constancia-credentials-XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(file_path, sizeof file_path, "%s/%s", directory, name);
	FILE *file = fopen(file_path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, size, file), size);
	fclose(file);
}

static void drop_credential(const char *directory, const char *name)
{
	char file_path[192];
	snprintf(file_path, sizeof file_path, "%s/%s", directory, name);
	unlink(file_path);
	rmdir(directory);
}

TEST_CASE(test_secrets_are_credentials)
{
	char directory[64], variable[128];
	make_credential(directory, "mail", "a secret: with = and spaces \n", 29);
	snprintf(variable, sizeof variable, "CREDENTIALS_DIRECTORY=%s", directory);
	char *environment[] = {variable, NULL};
	struct config_sources sources = {
		.environment = environment,
		.sets = {"mail.password=credential:mail"},
		.set_count = 1,
	};
	struct config config;
	BUF_AUTO struct buf shown = {.limit = 200000};
	assert_int_equal(config_load(&sources, &config), OK);
	assert_string_equal(config.settings.mail_password, "a secret: with = and spaces ");
	config_print(&config, &shown);
	assert_null(strstr(shown.data, "with = and"));
	config_free(&config);

	sources.sets[0] = "mail.password=credential:none";
	assert_problem(&sources, "--set mail.password: mail.password: the credential cannot be read");
	sources.sets[0] = "mail.password=credential:../mail";
	assert_problem(&sources, "must be credential:NAME");
	sources.sets[0] = "mail.password=credential:";
	assert_problem(&sources, "must be credential:NAME");
	drop_credential(directory, "mail");

	make_credential(directory, "mail", "a\0b", 3);
	sources.sets[0] = "mail.password=credential:mail";
	snprintf(variable, sizeof variable, "CREDENTIALS_DIRECTORY=%s", directory);
	assert_problem(&sources, "the credential contains a NUL byte");
	drop_credential(directory, "mail");
	make_credential(directory, "mail", "\n", 1);
	snprintf(variable, sizeof variable, "CREDENTIALS_DIRECTORY=%s", directory);
	assert_problem(&sources, "the credential is empty");
	drop_credential(directory, "mail");
}

/* A command that administers a running service reads its settings but none of its secrets. */
TEST_CASE(test_credentials_are_for_what_serves)
{
	struct config_sources sources = {.sets = {"mail.password=credential:mail"}, .set_count = 1};
	struct config config;
	assert_int_equal(config_load(&sources, &config), OK);
	assert_string_equal(config.settings.mail_password, "");
	config_free(&config);
	sources.serving = true;
	assert_problem(&sources, "the supervisor provides no credentials");
}

/* ---- the choice of the file ---- */

static const char *chosen(struct config_sources sources, const char *default_path)
{
	config_choose_file(&sources, default_path);
	return sources.file;
}

TEST_CASE(test_a_command_reads_the_file_of_the_installation)
{
	char *named[] = {"PATH=/bin", "CONSTANCIA_CONFIG=/named", NULL};
	char *none[] = {"CONSTANCIA_CONFIG=", NULL};
	const char *installed = write_file("[rate]\nlive = 2\n");
	assert_string_equal(chosen((struct config_sources){0}, installed), installed);
	assert_null(chosen((struct config_sources){0}, "/nonexistent/constancia.conf"));
	assert_null(chosen((struct config_sources){0}, "/dev/null/constancia.conf"));
	assert_string_equal(chosen((struct config_sources){.environment = named}, installed), "/named");
	assert_null(chosen((struct config_sources){.environment = none}, installed));
	assert_string_equal(
		chosen((struct config_sources){.environment = named, .file = "given"}, installed), "given");
	assert_null(chosen((struct config_sources){.environment = named, .file = ""}, installed));
	/* Another data directory is another deployment. */
	assert_null(chosen((struct config_sources){.environment = named, .data_dir = "d"}, installed));
	assert_string_equal(chosen((struct config_sources){.data_dir = "d", .file = "given"}, ""),
	                    "given");
	unlink(path);
	/* A link to a file that is gone is a mistake to report, not a machine without settings. */
	assert_int_equal(symlink("/nonexistent/constancia.conf", path), 0);
	assert_string_equal(chosen((struct config_sources){0}, path), path);
	unlink(path);
	assert_int_equal(*config_default_path(), '/');

	struct config config;
	assert_int_equal(config_load(&(struct config_sources){.environment = named}, &config), OK);
	assert_int_equal(config.warnings.size, 0);
	config_free(&config);
}

TEST_CASE(test_an_unreadable_file_names_the_remedy)
{
	char what[CONFIG_UNREADABLE_SIZE];
	assert_string_equal(config_unreadable(ENOENT, what), "No such file or directory");
	assert_non_null(strstr(config_unreadable(EACCES, what), "sudo -u constancia"));
	if (geteuid() == 0)
		return; /* root can read every file */
	struct config_sources sources = {.file = write_file("[rate]\nlive = 2\n")};
	assert_int_equal(chmod(path, 0), 0);
	assert_problem(&sources, "Permission denied; run the command as the user of the service");
	unlink(path);
}

/* Without those of a supervisor, credentials are next to the file. */
TEST_CASE(test_credentials_are_next_to_the_file)
{
	char directory[64], credentials[128], file[128], variable[160];
	strcpy(directory, "/tmp/constancia-beside-XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(credentials, sizeof credentials, "%s/credentials", directory);
	snprintf(file, sizeof file, "%s/constancia.conf", directory);
	FILE *out = fopen(file, "w");
	assert_non_null(out);
	fputs("[mail]\npassword = credential:mail\n", out);
	fclose(out);
	char *environment[] = {"PATH=/bin", NULL};
	struct config_sources sources = {.file = file, .environment = environment, .serving = true};
	assert_problem(&sources, "CREDENTIALS_DIRECTORY is not set");
	assert_int_equal(mkdir(credentials, 0700), 0);
	assert_problem(&sources, "the credential cannot be read");
	snprintf(variable, sizeof variable, "%s/mail", credentials);
	out = fopen(variable, "w");
	assert_non_null(out);
	fputs("beside\n", out);
	fclose(out);
	struct config config;
	sources.serving = false;
	assert_int_equal(config_load(&sources, &config), OK);
	assert_string_equal(config.settings.mail_password, "beside");
	config_free(&config);
	/* Those of the supervisor come first. */
	char *supervised[] = {"CREDENTIALS_DIRECTORY=/nonexistent", NULL};
	sources.environment = supervised;
	assert_problem(&sources, "the credential cannot be read");
	drop_credential(credentials, "mail");
	unlink(file);
	rmdir(directory);
}

#define NO_CREDENTIALS                                                                             \
	"the supervisor provides no credentials (CREDENTIALS_DIRECTORY is not set); see "              \
	"LoadCredential= in systemd.exec(5)\n"

/* Where nothing reads them, the entries are empty and stand for secrets in the checks. */
TEST_CASE(test_credentials_that_are_not_read_are_empty)
{
	static const struct {
		const char *sets[4];
		const char *password, *token;
	} cases[] = {
		{{"tsa.url=https://a", "tsa.user=me", "tsa.password=credential:pw"}, "", ""},
		{{"tsa.url=https://a,https://b", "tsa.user=me,", "tsa.password=credential:pw,",
	      "tsa.token=,credential:to ken"},
	     ",",
	     ","},
		{{"tsa.url=https://a,https://b,https://c", "tsa.user=me,,you",
	      "tsa.password=plain,, credential:pw"},
	     "plain,,",
	     ""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct config_sources sources = {0};
		struct config config;
		BUF_AUTO struct buf shown = {.limit = 200000};
		for (; sources.set_count < 4 && cases[i].sets[sources.set_count]; sources.set_count++)
			sources.sets[sources.set_count] = cases[i].sets[sources.set_count];
		assert_int_equal(config_load(&sources, &config), OK);
		assert_string_equal(config.settings.tsa_password, cases[i].password);
		assert_string_equal(config.settings.tsa_token, cases[i].token);
		config_print(&config, &shown);
		assert_non_null(strstr(shown.data, "#password = (not shown; set by --set tsa.password)"));
		config_free(&config);
	}
	struct config_sources sources = {
		.sets = {"payment.provider=stripe", "payment.stripe_key=credential:key",
	             "payment.stripe_webhook_secret=whsec_old,credential:new"},
		.set_count = 3};
	struct config config;
	assert_int_equal(config_load(&sources, &config), OK);
	assert_string_equal(config.settings.payment_stripe_key, "");
	assert_string_equal(config.settings.payment_stripe_webhook_secret, "whsec_old,");
	config_free(&config);
}

TEST_CASE(test_each_entry_may_be_a_credential)
{
	char directory[64], variable[128];
	make_credential(directory, "pw", "one secret\n", 11);
	snprintf(variable, sizeof variable, "CREDENTIALS_DIRECTORY=%s", directory);
	char *environment[] = {variable, NULL};
	struct config_sources sources = {.environment = environment,
	                                 .sets = {"tsa.url=https://a,https://b,https://c,https://d",
	                                          "tsa.user=w,,y,z",
	                                          "tsa.password=credential:pw,,plain, credential:pw "},
	                                 .set_count = 3};
	struct config config;
	assert_int_equal(config_load(&sources, &config), OK);
	assert_string_equal(config.settings.tsa_password, "one secret,,plain,one secret");
	config_free(&config);
	sources.sets[2] = "tsa.password=credential:pw,,plain,credential:none";
	assert_int_equal(config_load(&sources, &config), ERR_USAGE);
	assert_int_equal(config.problem_count, 1);
	assert_non_null(strstr(config.problems.data, "tsa.password: the credential cannot be read"));
	assert_string_equal(config.settings.tsa_password, ",,plain,");
	config_free(&config);
	drop_credential(directory, "pw");

	make_credential(directory, "pw", "with,comma\n", 11);
	snprintf(variable, sizeof variable, "CREDENTIALS_DIRECTORY=%s", directory);
	sources.sets[2] = "tsa.password=credential:pw,,plain,credential:pw";
	assert_problem(&sources, "tsa.password: the credential pw contains a comma, which separates");
	sources.sets[0] = "tsa.url=https://a";
	sources.sets[1] = "tsa.user=me";
	sources.sets[2] = "tsa.password=credential:pw";
	assert_int_equal(config_load(&sources, &config), OK);
	assert_string_equal(config.settings.tsa_password, "with,comma");
	config_free(&config);
	drop_credential(directory, "pw");
}

/* One problem each: neither the reference nor its absence is a fault of another setting. */
TEST_CASE(test_credentials_are_for_secrets)
{
	static const char only[] = "credential:NAME works only for secrets: content.secret_key, "
							   "tsa.password, tsa.token, payment.stripe_key, "
							   "payment.stripe_webhook_secret, mail.password\n";
	static const struct {
		const char *set;
		const char *expected;
	} cases[] = {
		{"mail.user=credential:mail", only},
		{"tsa.client_key=/k,credential:key", only},
		{"store.url=credential:store", only},
		{"signer.passphrase_file=credential:pin",
	     "must name the credential without 'credential:'\n"},
		{"mail.password=credential:mail", NO_CREDENTIALS},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct config_sources sources = {
			.sets = {cases[i].set, "tsa.url=embedded:"}, .set_count = 2, .serving = true};
		struct config config;
		assert_int_equal(config_load(&sources, &config), ERR_USAGE);
		if (!strstr(config.problems.data, cases[i].expected))
			fail_msg("%s\nis not in\n%s", cases[i].expected, config.problems.data);
		config_free(&config);
	}
}

TEST_MAIN(NULL, NULL)
