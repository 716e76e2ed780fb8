/* The table of administration operations, run on a store and through the socket. */
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"
#include "scratch.h"
#include "admin/admin_socket.h"
#include "admin/backup.h"
#include "service/keys.h"

struct fixture {
	char directory[SCRATCH_MAX];
	char url[128];
	char content_url[128];
	char socket[256];
	struct settings settings;
	struct admin admin;
	struct arena arena;
	struct error error;
};

static void make_directory(struct fixture *fixture)
{
	scratch_make(fixture->directory);
	snprintf(fixture->url, sizeof fixture->url, "sqlite:%s/constancia.db", fixture->directory);
	snprintf(fixture->content_url, sizeof fixture->content_url, "file:%s/content",
	         fixture->directory);
	snprintf(fixture->socket, sizeof fixture->socket, "%s/admin.sock", fixture->directory);
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);
	make_directory(fixture);
	arena_init(&fixture->arena, (size_t)16 << 20);
	fixture->settings.service_prefix = "svc";
	fixture->settings.account_unpaid_limit = 42;
	fixture->admin.settings = &fixture->settings;
	assert_int_equal(store_open(&(struct db_options){.url = fixture->url, .create = true},
	                            &fixture->admin.store, NULL),
	                 OK);
	assert_int_equal(content_open(fixture->content_url, true, &fixture->admin.content, NULL), OK);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	content_close(fixture->admin.content);
	store_close(fixture->admin.store);
	arena_free(&fixture->arena);
	scratch_remove(fixture->directory);
	free(fixture);
	return 0;
}

static int run(struct fixture *fixture, const char *operation, const char *arguments,
               struct json **ret_answer)
{
	BUF_AUTO struct buf answer = {.limit = ADMIN_RESULT_MAX};
	struct json *json;
	error_clear(&fixture->error);
	assert_int_equal(json_parse(&fixture->arena, slice_of(arguments), NULL, &json, NULL), OK);
	const struct admin_operation *found = admin_find(slice_of(operation));
	assert_non_null(found);
	int result = admin_run(&fixture->admin, found, json, NULL, &answer, &fixture->error);
	if (result) {
		assert_int_equal(answer.size, 0);
		return result;
	}
	char *kept = arena_copy(&fixture->arena, answer.data, answer.size);
	assert_int_equal(
		json_parse(&fixture->arena, slice_make(kept, answer.size), NULL, ret_answer, NULL), OK);
	return OK;
}

static const char *text(struct fixture *fixture, const struct json *json, const char *name)
{
	struct slice value;
	assert_true(json_get_text(json, name, &value));
	return arena_copy(&fixture->arena, value.data, value.size);
}

static int64_t integer(const struct json *json, const char *name)
{
	int64_t value;
	assert_true(json_get_integer(json, name, &value));
	return value;
}

static const char *make(struct fixture *fixture, const char *operation, const char *id_name,
                        const char *format, const char *owner)
{
	char arguments[512];
	struct json *answer;
	const char *place = strchr(format, '@');
	snprintf(arguments, sizeof arguments, "%.*s%s%s",
	         place ? (int)(place - format) : (int)strlen(format), format, place ? owner : "",
	         place ? place + 1 : "");
	assert_int_equal(run(fixture, operation, arguments, &answer), OK);
	return text(fixture, answer, id_name);
}

static const char *make_channel(struct fixture *fixture)
{
	const char *account =
		make(fixture, "account create", "account_id", "{\"name\":\"A\",\"credits\":7}", NULL);
	return make(fixture, "channel create", "channel_id",
	            "{\"account\":\"@\",\"name\":\"C\",\"declarant\":\"D\",\"modality\":\"content\"}",
	            account);
}

TEST_CASE_WITH(test_table_is_well_formed, NULL, NULL)
{
	const struct admin_operation *operation;
	size_t count = 0;
	for (; (operation = admin_operation_at(count)); count++) {
		assert_ptr_equal(admin_find(slice_of(operation->name)), operation);
		const char *space = strchr(operation->name, ' '); /* a name has one or two words */
		assert_true(!space || !strchr(space + 1, ' '));
		assert_non_null(operation->run);
		size_t parameters = 0;
		bool flags_began = false;
		for (; operation->parameters[parameters].name; parameters++) {
			const struct admin_parameter *at = &operation->parameters[parameters];
			assert_non_null(at->help);
			assert_true(!at->positional || (!flags_began && at->place));
			flags_began |= !at->positional;
			assert_true((at->kind == ADMIN_CHOICE) == (at->choices != NULL));
		}
		assert_true(parameters <= ADMIN_PARAMETERS_MAX);
	}
	assert_true(count > 30);
	assert_null(admin_find(slice_of("account")));
}

TEST_CASE_ON(test_arguments_are_checked, struct fixture *fixture)
{
	static const struct {
		const char *operation, *arguments, *message;
	} bad[] = {
		{"account create", "{}", FIELD("name") " is missing"},
		{"account create", "{\"name\":\"\"}", FIELD("name") " must be 1 to 200 bytes"},
		{"account create", "{\"name\":\"a\\nb\"}", "without control characters"},
		{"account create", "{\"name\":\"a\\u0085b\"}", "without control characters"},
		{"account create", "{\"name\":5}", FIELD("name") " must be"},
		{"account create", "{\"name\":\"a\",\"credits\":-1}",
	     FIELD("credits") " must be an integer from 0"},
		{"account create", "{\"name\":\"a\",\"credits\":\"1\"}",
	     FIELD("credits") " must be an integer"},
		{"account create", "{\"name\":\"a\",\"credits\":1.5}", "it is '1.5'"},
		{"account create", "{\"name\":\"a\",\"language\":\"fr\"}", "must be one of en|es"},
		{"account create", "{\"name\":\"a\",\"email\":\"nobody\"}", FIELD("email") " must be"},
		{"account create", "{\"name\":\"a\",\"colour\":\"red\"}", "'colour' is unknown"},
		{"account show", "{\"account\":\"a b\"}", FIELD("account") " must be an identifier"},
		{"account set", "{\"account\":\"acc_1\"}", "No change was specified"},
		{"credits add", "{\"account\":\"acc_1\",\"credits\":0}", "must not be 0"},
		{"credits add", "{\"account\":\"acc_1\",\"credits\":1,\"revert\":true}", "negative"},
		{"credits add", "{\"account\":\"acc_1\",\"credits\":1,\"revert\":false}", "takes no value"},
		{"limit create", "{\"period\":\"day\",\"max\":1,\"action\":\"warn\"}",
	     "either " FIELD("channel") " or " FIELD("key")},
		{"store backup", "{\"directory\":\"relative\"}", "absolute path"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct json *answer;
		assert_int_equal(run(fixture, bad[i].operation, bad[i].arguments, &answer), ERR_USAGE);
		if (!strstr(fixture->error.english, bad[i].message))
			fail_msg("%s: %s", bad[i].arguments, fixture->error.english);
	}
	struct json *answer;
	assert_int_equal(run(fixture, "account list", "{}", &answer), OK);
	assert_null(json_member(answer, "data")->first);
}

/* Returns a value that no parameter of this kind accepts. */
static const char *bad_value(enum admin_kind kind)
{
	switch (kind) {
	case ADMIN_INTEGER: return "1.5";
	case ADMIN_SWITCH: return "false";
	case ADMIN_CHOICE: return "\"none of them\"";
	case ADMIN_CONTENT: return "\"a\\u0000b\"";
	default: return "\"a\\u0007b\"";
	}
}

TEST_CASE_ON(test_errors_name_the_field, struct fixture *fixture)
{
	const struct admin_operation *operation;
	const struct admin_parameter *at;
	size_t tried = 0;
	for (size_t i = 0; (operation = admin_operation_at(i)); i++)
		for (size_t k = 0; (at = admin_parameter_at(operation, k)); k++, tried++) {
			char arguments[128], field[FIELD_SIZE];
			struct json *answer;
			snprintf(arguments, sizeof arguments, "{\"%s\":%s}", at->name, bad_value(at->kind));
			assert_int_equal(run(fixture, operation->name, arguments, &answer), ERR_USAGE);
			error_field(at->name, field);
			if (!strstr(fixture->error.english, field) || !strstr(fixture->error.spanish, field))
				fail_msg("%s %s: %s", operation->name, arguments, fixture->error.english);
		}
	assert_true(tried > 150);
}

/* Returns whether the text names a command line other than an operator command ('constancia …'). */
static bool speaks_of_commands(const char *text)
{
	for (const char *at = text; (at = strchr(at, '\'')); at++)
		if (strncmp(at, "'constancia ", strlen("'constancia ")) == 0)
			return false;
	return strstr(text, "--") || strstr(text, "audit list") || strstr(text, "user role");
}

TEST_CASE_WITH(test_no_sentence_speaks_of_a_command_line, NULL, NULL)
{
	for (enum message i = MSG_NONE + 1; i < MSG_COUNT; i++) {
		struct error error = {0};
		error_set(&error, ERR_USAGE, i, "", NULL);
		/* Messages that only the command line prints. */
		if (i != MSG_ADMIN_CSV_OR_JSON &&
		    (speaks_of_commands(error.english) || speaks_of_commands(error.spanish)))
			fail_msg("%s", error.english);
	}
}

TEST_CASE_ON(test_a_new_account_has_the_limit_of_the_settings, struct fixture *fixture)
{
	struct json *answer;
	make_channel(fixture);
	assert_int_equal(run(fixture, "account list", "{}", &answer), OK);
	const struct json *account = json_member(answer, "data")->first;
	assert_int_equal(integer(account, "balance"), 7);
	assert_int_equal(integer(account, "unpaid_limit"), 42);
}

TEST_CASE_ON(test_backup_comes_back, struct fixture *fixture)
{
	make_channel(fixture);
	char arguments[256], backup[128], path[160];
	struct json *answer;
	snprintf(backup, sizeof backup, "%s/backup", fixture->directory);
	snprintf(arguments, sizeof arguments, "{\"directory\":\"%s\"}", backup);
	assert_int_equal(run(fixture, "store backup", arguments, &answer), OK);
	assert_int_equal(integer(answer, "content_objects"), 0);
	assert_int_equal(run(fixture, "store backup", arguments, &answer), ERR_REFUSED);
	make_channel(fixture); /* registered after the backup */

	struct fixture other = {0};
	make_directory(&other);
	struct backup_facts facts;
	struct content_options fixture_content = {.url = fixture->content_url, .create = true};
	struct content_options other_content = {.url = other.content_url, .create = true};
	struct db_options fixture_store = {.url = fixture->url};
	struct db_options other_store = {.url = other.url};
	assert_int_equal(backup_restore(backup, &fixture_store, &fixture_content, true, NULL, NULL,
	                                &facts, &fixture->error),
	                 ERR_REFUSED);
	assert_int_equal(backup_restore(backup, &other_store, &other_content, true, NULL, NULL, &facts,
	                                &fixture->error),
	                 OK);
	struct admin_operation const *list = admin_find(slice_of("account list"));
	struct admin admin = {.settings = &fixture->settings};
	BUF_AUTO struct buf text_of_list = {.limit = ADMIN_RESULT_MAX};
	assert_int_equal(store_open(&(struct db_options){.url = other.url}, &admin.store, NULL), OK);
	assert_int_equal(admin_run(&admin, list, NULL, NULL, &text_of_list, NULL), OK);
	store_close(admin.store);
	struct json *json;
	assert_int_equal(json_parse(&fixture->arena, buf_slice(&text_of_list), NULL, &json, NULL), OK);
	assert_int_equal(json_member(json, "data")->count, 1);

	/* A backup with one flipped byte, or without its manifest, is not restored. */
	snprintf(path, sizeof path, "%s/constancia.db", backup);
	FILE *file = fopen(path, "r+");
	fseek(file, 5000, SEEK_SET);
	int byte = getc(file);
	fseek(file, 5000, SEEK_SET);
	putc(byte ^ 1, file);
	fclose(file);
	snprintf(path, sizeof path, "%s/constancia.db", other.directory);
	unlink(path);
	assert_int_equal(backup_restore(backup, &other_store, &other_content, true, NULL, NULL, &facts,
	                                &fixture->error),
	                 ERR_CORRUPT);
	assert_int_not_equal(access(path, F_OK), 0);
	snprintf(path, sizeof path, "%s/backup.json", backup);
	unlink(path);
	assert_int_equal(backup_restore(backup, &other_store, &other_content, true, NULL, NULL, &facts,
	                                &fixture->error),
	                 ERR_IO);
	scratch_remove(other.directory);
}

/* ---- the socket ---- */

static const char *exchange(struct fixture *fixture, const char *request)
{
	BUF_AUTO struct buf answer = {.limit = ADMIN_RESULT_MAX};
	assert_int_equal(admin_exchange(fixture->socket, slice_of(request), &answer, &fixture->error),
	                 OK);
	return arena_copy(&fixture->arena, answer.data, answer.size);
}

TEST_CASE_ON(test_socket_answers, struct fixture *fixture)
{
	struct admin_server *server;
	BUF_AUTO struct buf nothing = {.limit = 4096};
	assert_int_equal(admin_exchange(fixture->socket, slice_of("{}"), &nothing, &fixture->error),
	                 ERR_NOT_FOUND);
	assert_int_equal(admin_server_start(&fixture->admin, fixture->socket, &server, &fixture->error),
	                 OK);
	struct stat there;
	assert_int_equal(stat(fixture->socket, &there), 0);
	assert_int_equal(there.st_mode & 0777, 0600);
	const char *answer =
		exchange(fixture, "{\"operation\":\"account create\",\"arguments\":{\"name\":\"Ñ\"}}");
	assert_memory_equal(answer, "{\"result\":{\"account_id\":\"acc_", 28);
	answer =
		exchange(fixture, "{\"operation\":\"account show\",\"arguments\":{\"account\":\"x\"}}");
	assert_string_equal(answer, "{\"error\":{\"code\":\"not_found\",\"exit\":1,\"message\":"
	                            "\"There is no account 'x'.\",\"cause\":null}}");
	assert_non_null(strstr(exchange(fixture, "{\"operation\":\"drop\"}"), "no operation 'drop'"));
	assert_non_null(strstr(exchange(fixture, "[1,2]"), "\"exit\":2"));
	assert_non_null(strstr(exchange(fixture, "{\"operation\""), "\"exit\":1"));
	assert_non_null(strstr(exchange(fixture, ""), "\"error\""));
	admin_server_stop(server);
	assert_int_not_equal(access(fixture->socket, F_OK), 0);
}

TEST_CASE_ON(test_socket_limits_requests, struct fixture *fixture)
{
	struct admin_server *server;
	assert_int_equal(admin_server_start(&fixture->admin, fixture->socket, &server, NULL), OK);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "%s/admin.sock", fixture->directory);
	int connection = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(connect(connection, (struct sockaddr *)&address, sizeof address), 0);
	static char much[ADMIN_REQUEST_MAX + 4096];
	memset(much, ' ', sizeof much);
	(void)!send(connection, much, sizeof much, MSG_NOSIGNAL);
	char answer[512];
	ssize_t size = recv(connection, answer, sizeof answer - 1, 0);
	assert_true(size > 0);
	answer[size] = '\0';
	assert_non_null(strstr(answer, "\"error\""));
	close(connection);
	assert_non_null(strstr(exchange(fixture, "{\"operation\":\"account list\"}"), "\"data\":[]"));
	admin_server_stop(server);
}

TEST_CASE_ON(test_long_socket_paths_work, struct fixture *fixture)
{
	struct admin_server *server;
	size_t size = (size_t)snprintf(fixture->socket, sizeof fixture->socket, "%s/%0120d",
	                               fixture->directory, 1);
	assert_int_equal(mkdir(fixture->socket, 0700), 0);
	snprintf(fixture->socket + size, sizeof fixture->socket - size, "/admin.sock");
	assert_int_equal(admin_server_start(&fixture->admin, fixture->socket, &server, &fixture->error),
	                 OK);
	assert_non_null(strstr(exchange(fixture, "{\"operation\":\"account list\"}"), "\"data\":[]"));
	admin_server_stop(server);
	assert_int_not_equal(access(fixture->socket, F_OK), 0);
}

TEST_CASE_ON(test_stale_socket_is_replaced, struct fixture *fixture)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "%s/admin.sock", fixture->directory);
	int left = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(left, (struct sockaddr *)&address, sizeof address), 0);
	close(left);
	BUF_AUTO struct buf nothing = {.limit = 4096};
	assert_int_equal(admin_exchange(fixture->socket, slice_of("{}"), &nothing, &fixture->error),
	                 ERR_NOT_FOUND);
	struct admin_server *server;
	assert_int_equal(admin_server_start(&fixture->admin, fixture->socket, &server, NULL), OK);
	assert_non_null(strstr(exchange(fixture, "{\"operation\":\"account list\"}"), "\"data\":[]"));
	admin_server_stop(server);
	/* A file that is not a socket is not removed. */
	FILE *file = fopen(fixture->socket, "w");
	fclose(file);
	assert_int_equal(admin_server_start(&fixture->admin, fixture->socket, &server, &fixture->error),
	                 ERR_IO);
}

/* Another user is refused even where the file modes would allow access. Needs root. */
TEST_CASE_ON(test_other_users_are_refused, struct fixture *fixture)
{
	struct admin_server *server;
	if (geteuid() != 0)
		skip();
	assert_int_equal(admin_server_start(&fixture->admin, fixture->socket, &server, NULL), OK);
	pid_t children[2];
	for (int open_to_all = 0; open_to_all < 2; open_to_all++) {
		if (open_to_all) {
			assert_int_equal(chmod(fixture->directory, 0755), 0);
			assert_int_equal(chmod(fixture->socket, 0666), 0);
		}
		children[open_to_all] = fork();
		if (children[open_to_all] == 0) {
			struct buf answer = {.limit = 65536};
			if (setgid(65534) != 0 || setuid(65534) != 0)
				_exit(3);
			int code = admin_exchange(fixture->socket, slice_of("{\"operation\":\"account list\"}"),
			                          &answer, NULL);
			bool refused = open_to_all ? !code && strstr(answer.data, "Only the user of")
			                           : code == ERR_REFUSED;
			_exit(refused ? 0 : 1);
		}
		int status;
		assert_int_equal(waitpid(children[open_to_all], &status, 0), children[open_to_all]);
		assert_int_equal(status, 0);
	}
	admin_server_stop(server);
}

static void *create_accounts(void *argument)
{
	struct fixture *fixture = argument;
	for (int i = 0; i < 10; i++) {
		BUF_AUTO struct buf answer = {.limit = ADMIN_RESULT_MAX};
		if (admin_exchange(
				fixture->socket,
				slice_of("{\"operation\":\"account create\",\"arguments\":{\"name\":\"x\"}}"),
				&answer, NULL) ||
		    !strstr(answer.data, "\"result\""))
			return fixture;
	}
	return NULL;
}

TEST_CASE_ON(test_many_callers_at_once, struct fixture *fixture)
{
	struct admin_server *server;
	pthread_t threads[12];
	assert_int_equal(admin_server_start(&fixture->admin, fixture->socket, &server, NULL), OK);
	for (size_t i = 0; i < 12; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, create_accounts, fixture), 0);
	for (size_t i = 0; i < 12; i++) {
		void *failed;
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	admin_server_stop(server);
	struct json *answer;
	assert_int_equal(run(fixture, "account list", "{\"limit\":1000}", &answer), OK);
	assert_int_equal(json_member(answer, "data")->count, 120);
}

/* An operation that writes no audit record must change nothing. A new one must be added here. */
TEST_CASE_WITH(what_leaves_no_act_only_reads, NULL, NULL)
{
	static const char *const readers[] = {
		"account list",       "account show",
		"account overview",   "audit list",
		"audit proof",        "audit show",
		"certification list", "channel list",
		"channel show",       "certification show",
		"credits list",       "key list",
		"limit list",         "notice list",
		"notice show",        "pack list",
		"pack show",          "purchase list",
		"purchase show",      "segment list",
		"segment show",       "signer list",
		"store check",        "threshold list",
		"topup show",         "webhook attempts",
		"webhook deliveries", "usage",
		"webhook list",       "webhook show",
		"user list",          "session list",
		"credits history",    "passkey list",
		"billing show",       "event list",
		"event show",         "certification estimate",
		"request list",       "channel log",
	};
	const struct admin_operation *operation;
	for (size_t i = 0; (operation = admin_operation_at(i)); i++) {
		bool reads = false;
		for (size_t at = 0; at < sizeof readers / sizeof *readers; at++)
			reads |= strcmp(readers[at], operation->name) == 0;
		if (reads == admin_writes_audit_log(operation))
			fail_msg("%s %s", operation->name,
			         reads ? "is listed as one that only reads, and leaves acts"
			               : "leaves no act, and is not listed as one that only reads");
		assert_true(operation->changes || !operation->urgent);
	}
}

/* Returns how often the key cache was cleared. */
static uint64_t forgotten(struct service *service)
{
	char key[KEY_TEXT_MAX];
	struct key_lookup_query question;
	struct key_identity identity;
	int result;
	key_generate("svc", MODE_LIVE, key);
	assert_false(
		service_find_cached_key(service, slice_of(key), &question, &result, &identity, NULL));
	return question.generation;
}

TEST_CASE_ON(keys_are_forgotten_for_what_changed_something, struct fixture *fixture)
{
	struct service service = {
		.settings = &fixture->settings, .store = fixture->admin.store, .keys = key_cache_make()};
	const char *account = make(fixture, "account create", "account_id", "{\"name\":\"@\"}", "One");
	char arguments[200];
	struct json *answer;
	fixture->admin.service = &service;
	snprintf(arguments, sizeof arguments, "{\"account\":\"%s\"}", account);
	uint64_t before = forgotten(&service);
	assert_int_equal(run(fixture, "account billing", arguments, &answer), OK);
	assert_int_equal(run(fixture, "billing show", arguments, &answer), OK);
	assert_int_equal(forgotten(&service), before);
	snprintf(arguments, sizeof arguments, "{\"account\":\"%s\",\"country\":\"ES\"}", account);
	assert_int_equal(run(fixture, "account billing", arguments, &answer), OK);
	assert_int_equal(forgotten(&service), before + 1);
	/* A failed operation may have taken effect. */
	assert_int_equal(run(fixture, "account suspend", "{\"account\":\"acc_none\"}", &answer),
	                 ERR_NOT_FOUND);
	assert_int_equal(forgotten(&service), before + 2);
	fixture->admin.service = NULL;
	key_cache_free(service.keys);
}

TEST_MAIN_EACH(set_up, tear_down)
