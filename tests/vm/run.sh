#!/bin/sh
# run.sh BUILDDIR [ARGS of kmatrix]: the agent on other kernels, in emulated machines. Needs kmatrix, found in
# $RINGSPAN_VM_TOOLS or in ../shared/tools/vm beside the checkout; without it the test is skipped (exit 77).
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
build=$1
shift
tools=${RINGSPAN_VM_TOOLS:-}
[ -n "$tools" ] || for d in "$top/../shared/tools/vm" "$top/shared/tools/vm"; do
	[ ! -x "$d/kmatrix" ] || tools=$d
done
if [ ! -x "$tools/kmatrix" ]; then
	echo "check-vm: skipped: no VM tools; set RINGSPAN_VM_TOOLS to the directory of kmatrix"
	exit 77
fi
exec "$tools/kmatrix" -v -m 768 -t 600 "$@" "$top/tests/vm" "$build/ringspan" "$build/traffic" "$build/caps" "$build/tlstraffic"
