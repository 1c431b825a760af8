#!/bin/sh
# Runs in the guest, as root: the agent must start with each backend the kernel has, say which it took, and
# see every request of `traffic` on both sides.
set -u
ip link set lo up 2>/dev/null || ifconfig lo up
uname -r
fail=0

trace() { # MODE
	ringspan trace --capture "$1" --format json -o /tmp/spans.json -- traffic >/tmp/out 2>&1
	rc=$?
	cat /tmp/out
	server=$(grep -c '"kind":"server"' /tmp/spans.json)
	client=$(grep -c '"kind":"client"' /tmp/spans.json)
	backend=$(sed -n 's/.*capturing (\([a-z]*\)).*/\1/p' /tmp/out)
	echo "capture $1: backend $backend, exit $rc, $server server and $client client spans"
	[ "$rc" = 0 ] && [ "$server" = 200 ] && [ "$client" = 200 ] && [ -n "$backend" ]
}

# The same, of a program that is started later and found by its name.
by_name() {
	: >/tmp/out # an earlier agent's "capturing" is not this one's
	ringspan trace --comm traffic --format json -o /tmp/spans.json >/tmp/out 2>&1 &
	agent=$!
	until grep -q capturing /tmp/out || ! kill -0 $agent; do sleep 0.1; done
	traffic
	kill -INT $agent
	wait $agent
	spans=$(grep -c '"kind"' /tmp/spans.json)
	echo "by name: $spans spans"
	[ "$spans" = 400 ]
}

# With the capabilities that the manifests give for this kernel (deploy/helm, docs/deploy.md), and no others; what the
# agent keeps of them once it captures.
as_in_pod() {
	caps=BPF,PERFMON,SYS_PTRACE,DAC_READ_SEARCH
	case $(uname -r) in
	5.10.*) caps=$caps,SYS_ADMIN,SYS_RESOURCE ;;
	5.* | 6.[0-5].*) caps=$caps,SYS_ADMIN ;;
	esac
	caps "$caps" ringspan trace --format json -o /tmp/spans.json --log-level debug -- traffic >/tmp/out 2>&1
	rc=$?
	grep -v '^ringspan: debug: libbpf' /tmp/out
	spans=$(grep -c '"kind"' /tmp/spans.json)
	echo "as in a pod ($caps): exit $rc, $spans spans"
	[ "$rc" = 0 ] && [ "$spans" = 400 ] && grep -q 'sandbox: capabilities' /tmp/out && ! grep -q refused /tmp/out
}

# Plain text of TLS, of a library that is found when its processes are seen (5.15).
tls() {
	case $(uname -r) in
	5.10.*)
		echo "tls: not on this kernel"
		return 0
		;;
	esac
	ringspan trace --tls always --format json -o /tmp/spans.json --log-level debug -- tlstraffic >/tmp/out 2>&1
	rc=$?
	grep -v '^ringspan: debug: libbpf' /tmp/out
	spans=$(grep -c '"url.scheme":"https"\|"url.full":"https:' /tmp/spans.json)
	echo "tls: exit $rc, $spans spans"
	[ "$rc" = 0 ] && [ "$spans" = 100 ]
}

# A container's cgroup, made by hand: of version 2, found by its number when the process is gone; of version 1 alone, by
# the process's file.
container() { # MOUNT, WHAT, SPANS (any: some, a process that is gone has no file)
	id=326cc3c5ff5d99a6653d5c2f89406567ebd0bb216d7b9788b4be02711c94c8a4
	uid=aabdce00-6d4e-a41d-a13f-afa1f0c255c1
	group=$1/kubepods/burstable/pod$uid/$id
	mkdir -p "$group" || return 1
	: >/tmp/out
	ringspan trace --comm traffic --format json -o /tmp/spans.json >/tmp/out 2>&1 &
	agent=$!
	until grep -q capturing /tmp/out || ! kill -0 $agent; do sleep 0.1; done
	sh -c 'echo $$ >"$1/cgroup.procs" && exec traffic' - "$group"
	kill -INT $agent
	wait $agent
	spans=$(grep "\"container.id\":\"$id\"" /tmp/spans.json | grep -c "\"k8s.pod.uid\":\"$uid\"")
	echo "container, cgroup $2: $spans spans"
	[ "$spans" = "${3:-400}" ] || [ "${3:-}" = any ] && [ "$spans" -gt 0 ]
}

containers() {
	mkdir -p /sys/fs/cgroup
	grep -q ' /sys/fs/cgroup cgroup2 ' /proc/mounts || mount -t cgroup2 none /sys/fs/cgroup || return 1
	container /sys/fs/cgroup v2 || return 1
	mkdir -p /tmp/v1
	mount -t cgroup -o none,name=test none /tmp/v1 2>/dev/null || {
		echo "container, cgroup v1: not on this kernel"
		return 0
	}
	container /tmp/v1 v1 any
}

ringspan check || fail=1
trace auto || fail=1
trace syscall || fail=1
by_name || fail=1
as_in_pod || fail=1
containers || fail=1
tls || fail=1
exit $fail
