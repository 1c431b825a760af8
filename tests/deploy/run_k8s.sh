#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run_k8s.sh IMAGE.tar APP: the image on a real Kubernetes. Needs k8s-node, found in $RINGSPAN_K8S_NODE or in
# ../shared/tools/k8s-node beside the checkout; without it the test is skipped (exit 77).
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
tools=${RINGSPAN_K8S_NODE:-}
[ -n "$tools" ] || for d in "$top/../shared/tools/k8s-node" "$top/shared/tools/k8s-node"; do
	[ ! -x "$d/k8s-node" ] || tools=$d
done
if [ ! -x "$tools/k8s-node" ]; then
	echo "check-k8s-node: skipped: no Kubernetes; set RINGSPAN_K8S_NODE to the directory of k8s-node"
	exit 77
fi
exec python3 "$top/tests/deploy/check_k8s.py" "$tools/k8s-node" "$@"
