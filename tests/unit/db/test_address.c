/* Addresses of stores: which are accepted, and that passwords in them are hidden. */
#include "testing.h"
#include "db/db.h"

TEST_CASE(addresses_are_told_apart)
{
	static const char *const good[] = {
		"sqlite:/var/lib/x.db",
		"sqlite:x.db",
		"postgres://h/d",
		"postgresql://u@h1:5432,h2:5432/d?target_session_attrs=read-write",
		"postgresql://u:p%40w@[::1]:5432/d",
		"postgresql:///d?host=/run/postgresql",
	};
	static const char *const bad[] = {
		"",
		"x",
		"sqlite:",
		"SQLITE:x",
		"postgresql:d",
		"mysql://h/d",
		"host=h dbname=d",
		"postgresql://h/d?no_such_word=1",
		"postgresql://[::1/d",
		"postgresql://h/d?password",
		"postgresql://u:%zz@h/d",
	};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_int_equal(db_check_url(good[i], NULL), OK);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct error error = {0};
		assert_int_equal(db_check_url(bad[i], &error), ERR_VALIDATION);
		assert_non_null(strstr(error_message(&error, LANGUAGE_ENGLISH), "postgresql://"));
	}
}

TEST_CASE(addresses_are_shown_as_far_as_they_may_be)
{
	static const char *const rows[][2] = {
		{"sqlite:/a/b:c@d?password=x", "sqlite:/a/b:c@d?password=x"},
		{"postgresql://h/d", "postgresql://h/d"},
		{"postgresql://u@h:1/d?sslmode=verify-full", "postgresql://u@h:1/d?sslmode=verify-full"},
		{"postgresql://u:p@h:1,i:2/d?a=1", "postgresql://u@h:1,i:2/d?a=1"},
		{"postgresql://u:@h/d", "postgresql://u@h/d"},
		{"postgresql://h1:1,h2:2/d?user=a@b", "postgresql://h1:1,h2:2/d?user=a@b"},
		{"postgresql://[::1]:5/d", "postgresql://[::1]:5/d"},
		{"postgresql://u:p@[::1]:5/d", "postgresql://u@[::1]:5/d"},
		{"postgresql://h/d?password=p&user=u", "postgresql://h/d?password=&user=u"},
		{"postgresql://h/d?user=u&sslpassword=p&password=q",
	     "postgresql://h/d?user=u&sslpassword=&password="},
		{"postgresql://h/d?options=-csearch_path%3Dx",
	     "postgresql://h/d?options=-csearch_path%3Dx"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char shown[256];
		db_shown_url(rows[i][0], shown, sizeof shown);
		assert_string_equal(shown, rows[i][1]);
	}
}

/* However it was written, escaped or not, in a text of any size. */
TEST_CASE(no_part_of_a_password_is_shown)
{
	static const char *const forms[] = {
		"postgresql://u:$@h/d",
		"postgres://u:$@h:1,i:2/d?x=y",
		"postgresql://u:a@$@h/d",
		"postgresql://u:/$@h/d",
		"postgresql://u:?$@h/d",
		"postgresql://u:/?$@h/d",
		"postgresql://u:a:$:@h/d",
		"postgresql://u:#$@h",
		"postgresql://u:$@",
		"postgresql://h/d?password=$",
		"postgresql://h/d?user=u&password=$&sslmode=require",
		"postgresql://h/d?pass%77ord=$",
		"postgresql://h/d?password=1&sslpassword=$",
		"postgresql://h?password=$",
		"postgresql:///?host=/run&password=$",
		"mysql://u:$@h/d",
		"u:$@h",
		"postgresql:u:$@h/d",
		"postgresq://u:$@h/d",
		"host=h password=$ dbname=d",
		"host=h password='$ x'",
	};
	static const char *const secrets[] = {"SECRET", "SECRETSECRETSECRETSECRETSECRETSECRETSECRET"};
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		for (size_t j = 0; j < sizeof secrets / sizeof *secrets; j++) {
			char url[256], shown[128], sentence[1200];
			struct error error = {0};
			size_t place = strcspn(forms[i], "$");
			snprintf(url, sizeof url, "%.*s%s%s", (int)place, forms[i], secrets[j],
			         forms[i] + place + 1);
			for (size_t size = 1; size <= sizeof shown; size++) {
				db_shown_url(url, shown, size);
				assert_true(strlen(shown) < size);
				assert_null(strstr(shown, "SEC"));
			}
			if (!db_check_url(url, &error))
				continue;
			snprintf(sentence, sizeof sentence, "%s %s %s", error_message(&error, LANGUAGE_ENGLISH),
			         error_message(&error, LANGUAGE_SPANISH), error.cause);
			assert_null(strstr(sentence, "SEC"));
		}
	}
}

TEST_CASE(an_address_names_its_engine)
{
	assert_string_equal(db_url_engine("sqlite:/a/b.db"), "SQLite");
	assert_string_equal(db_url_engine("postgresql://h/d"), "PostgreSQL");
	assert_null(db_url_engine("mysql://h/d"));
	assert_string_equal(db_url_path("sqlite:/a/b.db"), "/a/b.db");
	assert_null(db_url_path("postgres://h/d"));
	assert_null(db_url_path("/a/b.db"));
}

TEST_MAIN(NULL, NULL)
