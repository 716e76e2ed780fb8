"""The operations of a script on the series of backups that need no service. A part of operations.Interface."""

import json

from program import run

COMMAND_SECONDS = 300


def printed(text):
    """Returns the JSON document that a command printed, None if it printed another text."""
    try:
        return json.loads(text)
    except ValueError:
        return None


class BackupOperations:
    def command(self, operation, words, *options, environment=None):
        """Runs a command to its end. Its status is 200, or 400 if the exit status is not 0."""
        operation.kind, operation.invoked = words, self.run.clock()
        done = run([self.run.world.binary, *words.split(), "--json", *options], environment, COMMAND_SECONDS)
        operation.completed, operation.status = self.run.clock(), 400 if done.returncode else 200
        operation.answer = {"exit": done.returncode, "error": done.stderr[-500:]}
        if found := printed(done.stdout):
            operation.answer |= {"printed": found}

    def series(self):
        """Returns the settings by which a command finds the series. The file of a node may have wrong ones."""
        world = self.run.world
        return [f"--set=backup.directory={world.series}", f"--set=store.url=sqlite:{world.disk.directory}/store.db"]

    def backup_list(self, step, operation):
        operation.arguments = {"stopped": step.get("stopped", False)}
        self.command(operation, "store backup-list", *self.series())

    def backup_verify(self, step, operation):
        """Verifies the newest backup, or the one that the step names."""
        name = step.get("name")
        operation.arguments = {"name": name, "stopped": step.get("stopped", False)}
        self.command(operation, "store backup-verify", *([f"{self.run.world.series}/{name}"] if name else []),
                     *self.series())
