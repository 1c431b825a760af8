// SPDX-License-Identifier: Apache-2.0
#include "agent_parts.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

int rs_agent_start_child(struct rs_agent *a)
{
	int gate[2];
	char c;

	if (pipe(gate))
		return -errno;
	a->child = fork();
	if (a->child < 0) {
		close(gate[0]);
		close(gate[1]);
		a->child = 0;
		return -errno;
	}
	if (a->child == 0) {
		close(gate[1]);
		while (read(gate[0], &c, 1) < 0 && errno == EINTR)
			;
		close(gate[0]);
		rs_loop_signals_default();
		(void)setpriority(PRIO_PROCESS, 0, 0);
		execvp(a->cfg->cmd[0], a->cfg->cmd);
		rs_error("cannot run %s: %s", a->cfg->cmd[0], strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	close(gate[0]);
	a->child_gate = gate[1];
	return 0;
}

void rs_agent_open_gate(struct rs_agent *a)
{
	if (a->child_gate >= 0)
		close(a->child_gate);
	a->child_gate = -1;
}

void rs_agent_reap_child(struct rs_agent *a)
{
	int status;

	if (!a->child || waitpid(a->child, &status, WNOHANG) != a->child)
		return;
	a->child_ended = true;
	a->rc = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	rs_loop_stop(&a->loop);
}

void rs_agent_kill_child(struct rs_agent *a)
{
	if (!a->child)
		return;
	kill(a->child, SIGKILL);
	waitpid(a->child, NULL, 0);
}
