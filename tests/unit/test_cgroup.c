// SPDX-License-Identifier: Apache-2.0
/* Containers and pods from cgroup paths: the corpus, and forms of our own. */
#include <stdio.h>
#include <stdlib.h>

#include "meta/cgroup.h"
#include "unit.h"

#define ID   "326cc3c5ff5d99a6653d5c2f89406567ebd0bb216d7b9788b4be02711c94c8a4"
#define ID2  "0b27c158feb36ab18a10ff687909ec730ece6280581dd407e2672359be7725dd"
#define UID  "aabdce00-6d4e-a41d-a13f-afa1f0c255c1"
#define UID_ "aabdce00_6d4e_a41d_a13f_afa1f0c255c1"
#define UID2 "0d7a3b6e-9be6-4a53-8f3d-0c3f6a1f7b11"
#define HASH "ab93f20792dc4e4db6d83bb1f6dfc924"

static void expect(const char *what, struct str text, struct str id, struct str uid,
		   struct str runtime)
{
	struct rs_cgroup c;
	bool any = rs_cgroup_text(text, &c);
	const char *name = rs_runtime_name((enum rs_runtime)c.runtime);

	if (any != (id.len || uid.len) || !str_eq(str_c(c.container_id), id) ||
	    !str_eq(str_c(c.pod_uid), uid) || !str_eq(str_c(name), runtime))
		fail_msg("%s: %.*s\n\tis id '%s' pod '%s' runtime '%s'", what, STR_ARG(text),
			 c.container_id, c.pod_uid, name);
}

/* line, runtime, container id, pod uid, note; "a|b" and "ecs": the path does not tell the runtime. */
static void test_corpus(void **state)
{
	FILE *f = fopen("tests/vectors/k8s/cgroup.tsv", "re");
	char line[2048];
	int rows = 0;

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		struct str rest = str_c(line), col[5];

		if (line[0] == '#')
			continue;
		rest.len -= rest.len && rest.ptr[rest.len - 1] == '\n';
		for (int i = 0; i < 5; i++)
			rest = str_cut(rest, '\t', &col[i]);
		if (str_find(col[1], '|') < col[1].len || str_eq(col[1], STR("ecs")))
			col[1] = STR_NONE;
		expect("corpus", col[0], col[2], col[3], col[1]);
		rows++;
	}
	fclose(f);
	assert_true(rows > 0);
}

static void test_forms(void **state)
{
	static const struct {
		const char *text, *id, *uid, *runtime;
	} rows[] = {
		/* the other driver's name, taken literally */
		{ "0::/system.slice/containerd.service/kubepods-besteffort-pod" UID_
		  ".slice:cri-containerd:" ID,
		  ID, UID, "containerd" },
		{ "0::/kubepods-burstable-pod" UID_ ".slice:crio:" ID, ID, UID, "cri-o" },
		{ "0::/system.slice:docker:" ID, ID, "", "docker" },
		{ "0::/machine.slice:libpod:" ID, ID, "", "podman" },
		/* relative to the reader's cgroup namespace */
		{ "0::/../../../kubepods-burstable.slice/kubepods-burstable-pod" UID_
		  ".slice/cri-containerd-" ID ".scope",
		  ID, UID, "containerd" },
		{ "0::/../../pod" UID "/" ID, ID, UID, "" },
		/* podman */
		{ "0::/machine.slice/machine-libpod_pod_" ID ".slice/libpod-" ID2 ".scope", ID2, "",
		  "podman" },
		{ "0::/libpod_parent/" ID "/libpod-" ID2, ID2, "", "podman" },
		{ "0::/libpod_parent/" ID "/libpod-conmon-" ID2, "", "", "" },
		{ "0::/libpod_parent/libpod-" ID, ID, "", "podman" },
		{ "0::/system.slice/web.service/libpod-payload-" ID, ID, "", "podman" },
		/* others */
		{ "0::/system.slice/nerdctl-" ID ".scope", ID, "", "containerd" },
		{ "0::/k8s.io/" ID, ID, "", "containerd" },
		{ "0::/system.slice/containerd-" ID ".scope", ID, "", "containerd" },
		{ "0::/../ecs/" HASH "/" ID, ID, "", "" },
		{ "0::/docker/" ID "/syscont-cgroup-root/init.scope", ID, "", "docker" },
		{ "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_
		  ".slice/" ID,
		  ID, UID, "" },
		{ "3:cpu,cpuacct:/ecs/" UID "/" ID, ID, "", "" },
		{ "0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" ID ".scope",
		  ID, "", "docker" },
		{ "0::/system.slice/system-apache.slice/web.service", "", "", "" },
		{ "12:pids:/actions_job/" ID, ID, "", "docker" },
		{ "0::/custom/parent/" ID, ID, "", "" },
		{ "0::/kubepods/besteffort/pod" UID "/kata_" ID, ID, UID, "" },
		{ "0::/kata_overhead/" ID, "", "", "" },
		{ "0::/ecstasks.slice/ecstasks-" HASH ".slice/docker-" ID ".scope", ID, "",
		  "docker" },
		{ "4:memory:/garden/" UID, UID, "", "garden" },
		{ "4:memory:/lxc/101/ns/init.scope", "101", "", "lxc" },
		{ "0::/lxc.payload.101/docker/" ID, ID, "", "docker" },
		{ "0::/lxc.monitor.web-1", "", "", "" },
		/* Docker in a pod: the innermost container, and the pod */
		{ "0::/kubepods/burstable/pod" UID "/" ID "/docker/" ID2, ID2, UID, "docker" },
		/* a monitor in a container is the container's process */
		{ "0::/docker/" ID "/kubepods.slice/kubepods-pod" UID_ ".slice/crio-conmon-" ID2
		  ".scope",
		  ID, UID, "docker" },
		/* removed under its process */
		{ "0::/system.slice/docker-" ID ".scope (deleted)", ID, "", "docker" },
		/* static pods */
		{ "0::/kubepods.slice/kubepods-pod" HASH ".slice/crio-" ID ".scope", ID, HASH,
		  "cri-o" },
		/* Several lines. An exiting process shows '/' on v1 lines. */
		{ "11:memory:/\n1:name=systemd:/\n0::/docker/" ID "\n", ID, "", "docker" },
		{ "11:memory:/docker/" ID "\n0::/\n", ID, "", "docker" },
		{ "11:memory:/docker/" ID2 "\n0::/docker/" ID, ID, "", "docker" },
		{ "0::/kubepods/pod" UID "\n3:cpu:/kubepods/pod" UID "/" ID, ID, UID, "" },
		{ "0::/system.slice/containerd.service\n13:misc:/\n12:pids:/kubepods/pod" UID
		  "\n11:memory:/kubepods/pod" UID "\n",
		  "", UID, "" },
		/* near misses */
		{ "0::/docker/" ID "0", "", "", "" },
		{ "0::/x" ID, "", "", "" },
		/* scopes of systemd and its users that end as a container's do */
		{ "0::/user.slice/user-1000.slice/session-" ID ".scope", "", "", "" },
		{ "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-x-" ID ".scope",
		  "", "", "" },
		{ "0::/system.slice/run-" ID ".scope", "", "", "" },
		{ "0::/system.slice/" HASH "-12.scope", "", "", "" },
		{ "0::/system.slice/" ID ".service", "", "", "" },
		/* the rest of what nodes run; no container has an id of its own in these */
		{ "0::/machine.slice/machine-web.scope", "", "", "" },
		{ "0::/machine.slice/machine-web\\x2d1.scope/payload/system.slice/x.service", "",
		  "", "" },
		{ "0::/machine.slice/machine-web.scope/payload/system.slice/docker-" ID ".scope",
		  ID, "", "docker" },
		{ "0::/machine.slice/machine-qemu\\x2d1\\x2ddb.scope/libvirt/emulator", "", "",
		  "" },
		{ "0::/machine.slice/machine-rkt\\x2d" UID ".scope/system.slice/app.service", "",
		  "", "" },
		{ "0::/nomad.slice/share.slice/" UID ".web.scope", "", "", "" },
		{ "0::/nomad.slice/share.slice/docker-" ID ".scope", ID, "", "docker" },
		{ "5:cpuset:/nomad/shared/" UID "-web", "", "", "" },
		{ "0::/docker/buildkit/zvs3hl0gnpbqs5ruaxfnb2n4x", "", "", "" },
		{ "0::/docker/" ID "/docker/buildkit/zvs3hl0gnpbqs5ruaxfnb2n4x", ID, "", "docker" },
		{ "0::/system.slice/var-lib-docker-containers-" ID "-mounts-shm.mount", "", "",
		  "" },
		{ "0::/system.slice/run-containerd-x-" ID "-rootfs.mount", "", "", "" },
		{ "0::/system.slice/runc-web.scope", "", "", "" },
		{ "0::/system.slice/pve-container@101.service", "", "", "" },
		{ "0::/slurm/uid_1000/job_12/step_0/task_0", "", "", "" },
		{ "0::/system/kubelet", "", "", "" },
		{ "0::/podruntime/runtime", "", "", "" },
		{ "0::/system.slice/snap.lxd.daemon.service", "", "", "" },
		{ "0::/system.slice/web.service/runtime", "", "", "" },
		{ "0::/machine.slice/libpod-conmon-" ID ".scope/x", "", "", "" },
		{ "0::/system.slice/" ID "-7a1b2c3d4e5f6071.timer", "", "", "" },
		/* further parents of ids */
		{ "0::/user.slice/user-1000.slice/user@1000.service/app.slice/docker.service/docker/" ID,
		  ID, "", "docker" },
		{ "0::/user.slice/user-1000.slice/user@1000.service/user.slice/user-libpod_pod_" ID
		  ".slice/libpod-" ID2 ".scope/container",
		  ID2, "", "podman" },
		{ "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-conmon-" ID
		  ".scope",
		  "", "", "" },
		{ "0::/user.slice/user-1000.slice/session-3.scope/lxc.payload.c1/.lxc", "c1", "",
		  "lxc" },
		{ "12:pids:/user/1000.user/1.session/lxc/c1", "c1", "", "lxc" },
		{ "0::/lxc.payload/c1/init.scope", "c1", "", "lxc" },
		{ "0::/lxc.monitor/c1", "", "", "" },
		{ "1:name=systemd:/docker/" ID ".scope", ID, "", "docker" },
		{ "4:memory:/garden/good/" UID, UID, "", "garden" },
		{ "4:memory:/system.slice/runc-bpm-garden.scope/garden/" UID, UID, "", "garden" },
		{ "12:pids:/mesos/" UID, UID, "", "mesos" },
		{ "12:pids:/mesos/" UID "/mesos/" UID2 "/leaf", UID2, "", "mesos" },
		{ "0::/" HASH "-1053176469", HASH "-1053176469", "", "" },
		{ "0::/azpl_job/" ID, ID, "", "" },
		{ "0::/kubepods/kubepods/besteffort/pod" UID "/" ID, ID, UID, "" },
		{ "0::/foo.slice/foo-kubepods.slice/foo-kubepods-burstable.slice/"
		  "foo-kubepods-burstable-pod" UID_ ".slice/crio-" ID ".scope",
		  ID, UID, "cri-o" },
		{ "0::/kubepods/burstable/pod" UID "/crio-conmon-" ID, "", UID, "" },
		{ "0::/lxc.payload.node1/kubepods.slice/kubepods-pod" UID_
		  ".slice/cri-containerd-" ID ".scope/init",
		  ID, UID, "containerd" },
		{ "0::/..", "", "", "" },
		{ "0::/../../../", "", "", "" },
		{ "0::/../crio-conmon-" ID ".scope", "", "", "" },
		{ "0::/../pod" UID " (deleted)", "", UID, "" },
		{ "1:name=systemd:/system.slice/docker-" ID ".scope\n", ID, "", "docker" },
		{ "1:name=elogind:/1\n0::/1\n", "", "", "" },
		/* Podman 1 */
		{ "0::/libpod_parent/libpod-" ID "/conmon", "", "", "" },
		{ "0::/libpod_parent/libpod-" ID "/ctr", ID, "", "podman" },
		{ "0::/pod" UID "x/y", "", "", "" },
		{ "0::/kubepods-poda.slice", "", "", "" },
		{ "0::/user.slice/pod-" HASH ".slice", "", "", "" },
		{ "0::/machine.slice/machine-libpod_pod_" ID ".slice", "", "", "" },
		{ "0::/default/" UID, "", "", "" },
		{ "", "", "", "" },
		{ "\n::\n:::\n0\n0:\n0::\n", "", "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect("form", str_c(rows[i].text), str_c(rows[i].id), str_c(rows[i].uid),
		       str_c(rows[i].runtime));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_corpus),
		cmocka_unit_test(test_forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
