/* constancia: one binary for the service, its administration and the verification of evidence. */
#include <string.h>

#include "cli/command.h"
#include "verify/verifier.h"

static const struct command commands[] = {
	{.name = "dev",
     .summary = "start a complete service for development, with a demo account",
     .options = dev_options,
     .only_given_file = true,
     .confines_itself = true, /* unless --debuggable is given */
     .run = command_dev},
	{.name = "setup",
     .summary = "ask what a deployment needs, and write its settings",
     .options = setup_options,
     .only_given_file = true,
     .run = command_setup},
	{.name = "init",
     .summary = "create the store of a deployment",
     .options = init_options,
     .run = command_init},
	{.name = "serve", .summary = "run the service", .run = command_serve},
#include "cli/tool_commands.def"
	{.name = "audit export",
     .summary = "export the audit log as JSON lines or CSV",
     .options = audit_export_options,
     .run = command_audit_export},
	{.name = "config check",
     .summary = "check the settings and report every problem with file and line",
     .options = config_check_options,
     .run = command_config_check},
	{.name = "config print",
     .summary = "print all settings as a commented file",
     .run = command_config_print},
	{.name = "migrate",
     .summary = "same as store migrate",
     .options = migrate_options,
     .run = command_migrate},
	{.name = "store migrate",
     .summary = "upgrade the schema of the store",
     .options = migrate_options,
     .run = command_migrate},
	{.name = "store distribute",
     .summary = "distribute the tables over the workers by account",
     .options = distribute_options,
     .run = command_distribute},
	{.name = "store accept-rollback",
     .summary = "confirm that a store that was rolled back is to be served",
     .options = accept_rollback_options,
     .run = command_accept_rollback},
	{.name = "store restore",
     .arguments = "[DIR]",
     .arguments_most = 1,
     .summary = "restore a backup where no store exists, check it and print the next steps",
     .options = restore_options,
     .run = command_restore},
	{.name = "store backup-list",
     .arguments = "[DIR]",
     .arguments_most = 1,
     .summary = "list the backups of the series in backup.directory or DIR",
     .run = command_backup_list},
	{.name = "store backup-verify",
     .arguments = "[DIR]",
     .arguments_most = 1,
     .summary = "read a backup, by default the newest of backup.directory, and compare its digests",
     .options = backup_verify_options,
     .run = command_backup_verify},
	{.name = "signer request",
     .summary = "make a signing key, and the request (PKCS#10) for its certificate",
     .options = signer_request_options,
     .run = command_signer_request},
	{.name = "witness key",
     .summary = "print the verifier key of a witness, which is made with --name",
     .options = witness_key_options,
     .only_given_file = true,
     .run = command_witness_key},
	{.name = "witness serve",
     .summary = "run a witness of transparency logs (C2SP tlog-witness)",
     .options = witness_serve_options,
     .only_given_file = true,
     .run = command_witness_serve},
	{.name = "version", .summary = "print the version", .run = command_version},
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

int main(int argc, char **argv)
{
	static const struct program program = {.commands = commands,
	                                       .command_count = COMMAND_COUNT,
	                                       .common_options = common_options,
	                                       .operations = &admin_operations};
	if (argc > 0 && strcmp(argv[0], VERIFIER_NAME) == 0)
		verifier_run();
	return program_run(&program, argc, argv);
}
